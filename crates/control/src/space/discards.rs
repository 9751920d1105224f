//! Freed slots are discarded (TRIM) on drives that benefit from it, before they are allocated again.
//!
//! A slot comes here when its unmapping is stable and no read of it is in flight. After a crash, freed slots stay free, but are
//! not discarded.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, join_all, select};
use tier0_drive::DriveHandle;
use tier0_plan::PoolShape;
use tier0_pool::SlotRun;
use tier0_pool::metadata::Metadata;
use tier0_raid::layout::{Column, Row};
use tier0_raid::set::SetIndex;
use tier0_units::{Lba, Nanos};
use tier0_world::sync::Semaphore;
use tier0_world::{IoError, PlantedBug, World, planted};

/// Stretches of rows of a pool that are discarded at once.
const DISCARDS_AT_ONCE: u64 = 4;
/// Sectors of a column that are discarded at once, at most: 64 MiB, for hosts wait behind it.
const SECTORS_MAX: u64 = 64 << 11;
/// How often one looks whether a drive that does not answer is lost.
const LOSS_LOOK: Nanos = Nanos::from_secs(1);

/// Freed slots of a pool on their way back.
pub(crate) struct Discards {
    world: World,
    shape: PoolShape,
    /// A discard has one permit: the column stays where it is meanwhile.
    column_places: Rc<Semaphore>,
    at_once: Semaphore,
    /// Members that refuse discards: they are not asked again.
    refused: RefCell<BTreeSet<u32>>,
    /// How many slots of each group are on their way.
    pending: RefCell<BTreeMap<u32, u64>>,
}

/// Rows of a set that are discarded at once, and their slots.
struct Stretch {
    set: SetIndex,
    rows: Range<Row>,
    slots: Vec<u64>,
}

impl Discards {
    /// Those of a pool, whose freed slots come here from now on.
    pub(crate) fn start(
        metadata: &Metadata,
        shape: &PoolShape,
        column_places: &Rc<Semaphore>,
    ) -> Rc<Discards> {
        let discards = Rc::new(Discards {
            world: metadata.world().clone(),
            shape: shape.clone(),
            column_places: column_places.clone(),
            at_once: Semaphore::new(DISCARDS_AT_ONCE),
            refused: RefCell::default(),
            pending: RefCell::default(),
        });
        let freed = discards.clone();
        metadata.on_freed(Box::new(move |metadata, slots| freed.release(metadata, slots)));
        discards
    }

    /// How many slots of a group are free and not back yet.
    pub(crate) fn pending(&self, group: u32) -> u64 {
        self.pending.borrow().get(&group).copied().unwrap_or(0)
    }

    /// Takes back freed slots: at once, or as soon as the drives of their set that gain by it have been told. No extent maps to
    /// them, and no read of them is in flight.
    pub(crate) fn release(self: &Rc<Self>, metadata: &Metadata, slots: Vec<u64>) {
        let (to_discard, others): (Vec<Stretch>, Vec<Stretch>) =
            self.stretches_of(slots).into_iter().partition(|stretch| self.gains(metadata, stretch.set));
        for stretch in others {
            metadata.return_slots(&runs_of(&stretch.slots));
        }
        for stretch in to_discard {
            let group = metadata.state().group_number_of(stretch.set.0);
            let count = stretch.slots.len() as u64;
            *self.pending.borrow_mut().entry(group).or_default() += count;
            let (discards, metadata) = (self.clone(), metadata.clone());
            let discard = async move {
                discards.discard(&metadata, &stretch).await;
                *discards.pending.borrow_mut().entry(group).or_default() -= count;
                metadata.return_slots(&runs_of(&stretch.slots));
            };
            self.world.spawn(discard).detach();
        }
    }

    /// Discards slots that extents still have, where that is to be done wrong.
    pub(crate) async fn discard_early(&self, metadata: &Metadata, slots: impl Iterator<Item = u64>) {
        if planted(PlantedBug::DiscardBeforeUnmapStable) {
            for stretch in self.stretches_of(slots.collect()) {
                self.discard(metadata, &stretch).await;
            }
        }
    }

    /// Discards rows on the drives that gain by it. A failed discard costs space on the drive and no data, so it is not an error.
    async fn discard(&self, metadata: &Metadata, stretch: &Stretch) {
        let _one = self.at_once.acquire(1).await;
        let _still = self.column_places.acquire(1).await;
        let sets = &self.shape.sets;
        let layout = sets.layout(stretch.set);
        let (first, unit) = (stretch.rows.start, layout.stripe_unit().0);
        let sectors = (stretch.rows.end.0 - first.0) * unit;
        let discards = (0..layout.columns()).filter_map(|column| {
            let (member, start) = sets.place_of_row(stretch.set, Column(column as u8), first);
            let (member, start) = (member as u32, start.0 + layout.page_column_lba(first, 0).0);
            let drive = metadata.drive(member).filter(|drive| drive.gains_by_discard())?;
            let is_refused = self.refused.borrow().contains(&member);
            (!is_refused).then(|| self.discard_on(drive, member, Lba(start), sectors))
        });
        join_all(discards.collect::<Vec<_>>()).await;
    }

    /// Ends when the drive has, however long that takes: what comes late would meet what is written next. A drive that is lost
    /// is not waited for.
    async fn discard_on(&self, drive: DriveHandle, member: u32, lba: Lba, sectors: u64) {
        let mut discarded = pin!(drive.discard(lba, sectors));
        let result = loop {
            match select(discarded.as_mut(), pin!(self.world.sleep(LOSS_LOOK))).await {
                Either::Left((result, _)) => break result,
                Either::Right(_) if drive.guard().is_some_and(|guard| guard.health().is_lost()) => return,
                Either::Right(_) => {}
            }
        };
        match result {
            // A drive that is away comes back.
            Ok(()) | Err(IoError::Gone | IoError::Timeout) => {}
            Err(error) => {
                tracing::info!("drive {} is not told of free space any more: {error}", drive.info().name);
                self.refused.borrow_mut().insert(member);
            }
        }
    }

    /// Whether a drive of a set gains by discards.
    fn gains(&self, metadata: &Metadata, set: SetIndex) -> bool {
        let sets = &self.shape.sets;
        let mut columns = 0..sets.layout(set).columns();
        columns.any(|column| {
            let (member, _) = sets.place_of_row(set, Column(column as u8), Row(0));
            metadata.drive(member as u32).is_some_and(|drive| drive.gains_by_discard())
        })
    }

    /// These slots in stretches as long as possible.
    fn stretches_of(&self, mut slots: Vec<u64>) -> Vec<Stretch> {
        slots.sort_unstable_by_key(|slot| {
            (self.shape.slots.place(*slot).set.0, self.shape.slots.rows(*slot).start)
        });
        let mut stretches: Vec<Stretch> = Vec::new();
        for slot in slots {
            let (set, rows) = (self.shape.slots.place(slot).set, self.shape.slots.rows(slot));
            let rows_max = (SECTORS_MAX / self.shape.sets.layout(set).stripe_unit().0).max(1);
            match stretches.last_mut() {
                Some(last)
                    if last.set == set
                        && last.rows.end == rows.start
                        && rows.end.0 - last.rows.start.0 <= rows_max =>
                {
                    last.rows.end = rows.end;
                    last.slots.push(slot);
                }
                _ => stretches.push(Stretch { set, rows, slots: vec![slot] }),
            }
        }
        stretches
    }
}

fn runs_of(slots: &[u64]) -> Vec<SlotRun> {
    slots.iter().map(|slot| SlotRun { first: *slot, count: 1 }).collect()
}
