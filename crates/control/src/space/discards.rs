//! Freed slots are discarded (TRIM) on drives that benefit from it, before they are allocated again.
//!
//! A slot comes here when its unmapping is stable and no read of it is in flight. After a crash, freed slots stay free, but are
//! not discarded.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_plan::PoolShape;
use tier0_pool::SlotRun;
use tier0_pool::metadata::Metadata;
use tier0_raid::layout::{Column, Row};
use tier0_raid::set::SetIndex;
use tier0_units::Lba;
use tier0_world::sync::Semaphore;
use tier0_world::{PlantedBug, World, planted};

/// Stretches of rows of a pool that are discarded at once.
const DISCARDS_AT_ONCE: u64 = 4;
/// Sectors of a drive that are discarded by one command, at most: 64 MiB, for hosts wait behind it.
const SECTORS_MAX: u64 = 64 << 11;

/// Freed slots of a pool on their way back.
pub(crate) struct Discards {
    world: World,
    shape: PoolShape,
    places: Semaphore,
    /// Members that have failed a discard: they are not asked again.
    refused: RefCell<BTreeSet<u32>>,
}

impl Discards {
    /// Those of a pool, whose freed slots come here from now on.
    pub(crate) fn start(metadata: &Metadata, shape: &PoolShape) -> Rc<Discards> {
        let (world, places) = (metadata.world().clone(), Semaphore::new(DISCARDS_AT_ONCE));
        let discards = Rc::new(Discards { world, shape: shape.clone(), places, refused: RefCell::default() });
        let freed = discards.clone();
        metadata.on_freed(Box::new(move |metadata, slots| freed.release(metadata, slots)));
        discards
    }

    /// Takes back freed slots. No extent maps to them, and no read of them is in flight.
    pub(crate) fn release(self: &Rc<Self>, metadata: &Metadata, slots: Vec<u64>) {
        if !any_gains(metadata) {
            return metadata.return_slots(&runs_of(&slots));
        }
        let (discards, metadata) = (self.clone(), metadata.clone());
        let discard = async move {
            discards.discard(&metadata, &slots).await;
            metadata.return_slots(&runs_of(&slots));
        };
        self.world.spawn(discard).detach();
    }

    /// Discards slots that extents still have, where that is to be done wrong.
    pub(crate) async fn discard_early(&self, metadata: &Metadata, slots: impl Iterator<Item = u64>) {
        if planted(PlantedBug::DiscardBeforeUnmapStable) {
            self.discard(metadata, &slots.collect::<Vec<_>>()).await;
        }
    }

    async fn discard(&self, metadata: &Metadata, slots: &[u64]) {
        for (set, rows) in stretches_of(&self.shape, slots) {
            let _place = self.places.acquire(1).await;
            self.discard_rows(metadata, set, rows).await;
        }
    }

    /// Discards rows on the drives that benefit from it. A failed discard costs space on the drive and no data, so it is not an
    /// error.
    async fn discard_rows(&self, metadata: &Metadata, set: SetIndex, rows: Range<Row>) {
        let sets = &self.shape.sets;
        let layout = sets.layout(set);
        let unit = layout.stripe_unit().0;
        let first = layout.page_column_lba(rows.start, 0);
        let (sectors, most) = ((rows.end.0 - rows.start.0) * unit, (SECTORS_MAX / unit).max(1) * unit);
        let discards = (0..layout.columns()).filter_map(|column| {
            let (member, start) = sets.place_of_row(set, Column(column as u8), rows.start);
            let (member, start) = (member as u32, start.0 + first.0);
            let drive = metadata.drive(member).filter(|drive| drive.gains_by_discard())?;
            Some(async move {
                for from in (0..sectors).step_by(most as usize) {
                    if self.refused.borrow().contains(&member) {
                        return;
                    }
                    let some = most.min(sectors - from);
                    if let Err(error) = drive.discard(Lba(start + from), some).await {
                        tracing::info!(
                            "drive {} is not told of free space any more: {error}",
                            drive.info().name
                        );
                        self.refused.borrow_mut().insert(member);
                    }
                }
            })
        });
        join_all(discards.collect::<Vec<_>>()).await;
    }
}

fn any_gains(metadata: &Metadata) -> bool {
    let members = 0..metadata.state().members().len() as u32;
    members.filter_map(|member| metadata.drive(member)).any(|drive| drive.gains_by_discard())
}

/// The rows of these slots, in stretches as long as possible.
fn stretches_of(shape: &PoolShape, slots: &[u64]) -> Vec<(SetIndex, Range<Row>)> {
    let mut by_set: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for slot in slots {
        let rows = shape.slots.rows(*slot);
        by_set.entry(shape.slots.place(*slot).set.0).or_default().push((rows.start.0, rows.end.0));
    }
    let mut stretches: Vec<(SetIndex, Range<Row>)> = Vec::new();
    for (set, mut rows) in by_set {
        rows.sort_unstable();
        for (start, end) in rows {
            match stretches.last_mut() {
                Some((last, range)) if last.0 == set && range.end.0 == start => range.end = Row(end),
                _ => stretches.push((SetIndex(set), Row(start)..Row(end))),
            }
        }
    }
    stretches
}

fn runs_of(slots: &[u64]) -> Vec<SlotRun> {
    slots.iter().map(|slot| SlotRun { first: *slot, count: 1 }).collect()
}
