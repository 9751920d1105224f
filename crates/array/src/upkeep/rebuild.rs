//! A shard's part in rebuilding a column: slot after slot, each remembered before it counts.

use std::collections::BTreeSet;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_control::message::command::RebuiltColumn;
use tier0_control::message::control::{ControlMessage, SlotRebuiltNote};
use tier0_raid::layout::Column;
use tier0_raid::set::SetIndex;
use tier0_units::{ExtentId, SECTOR_BYTES, SlotRef};
use tier0_world::sync::oneshot;
use tier0_world::{IoError, PlantedBug, planted};

use super::pace::Pace;
use crate::log_lane::LogLane;
use crate::pool_shard::PoolShard;
use crate::shard::Shard;

/// Slots of a column that are rebuilt together: their reads and writes come to the drives in stretches of several
/// stripe units, and one slot's writes meet the next one's reads.
const SLOTS_AT_ONCE: usize = 4;
/// The same while hosts are served, whose requests wait behind such a stretch.
const SLOTS_BESIDE_HOSTS: usize = 1;

impl Shard {
    /// Rebuilds all slots of a column that this shard's extents have.
    ///
    /// # Errors
    /// [`IoError::Gone`] when the column has moved on to another spare; else what the first slot that could not be
    /// rebuilt failed with, after all others were.
    pub(crate) async fn rebuild_column(
        self: &Rc<Self>,
        number: usize,
        what: RebuiltColumn,
    ) -> Result<(), IoError> {
        let pool = self.pool(number).clone();
        let RebuiltColumn { set, column, returned } = what;
        let (index, place) = (SetIndex(set), Column(column as u8));
        // Copies of a page that a power cut has caught may all fail its checksum until the log has written it again.
        match planted(PlantedBug::RebuildInWrongLane) {
            true => guarding_lane(&pool, index).write_back.settle_recovered().await?,
            false => pool.settle_recovered().await?,
        }
        tracing::debug!(shard = self.index, set, column, ?returned, "a column is rebuilt");
        let mut pace = Pace::new(&self.world, &self.activity, None);
        let mut result = Ok(());
        loop {
            let missing = missing_slots(&pool, index, place);
            result?;
            if missing.is_empty() {
                let Some(lane) = lane_with_left_slots(&pool, index) else { return Ok(()) };
                lane.write_back.until_fewer_are_read().await;
                continue;
            }
            let mut left = missing.as_slice();
            while !left.is_empty() {
                let most = if pace.is_yielding() { SLOTS_BESIDE_HOSTS } else { SLOTS_AT_ONCE };
                let (some, later) = left.split_at(most.min(left.len()));
                left = later;
                let begun = self.world.now();
                match self.rebuild_slots(&pool, number, some, what).await {
                    Err(IoError::Gone) => return Err(IoError::Gone),
                    rebuilt => result = result.and(rebuilt),
                }
                pace.rest(begun, some.len() as u64 * pool.extent_sectors * SECTOR_BYTES).await;
            }
        }
    }

    /// Rebuilds some slots together.
    async fn rebuild_slots(
        self: &Rc<Self>,
        pool: &PoolShard,
        number: usize,
        slots: &[(ExtentId, SlotRef)],
        what: RebuiltColumn,
    ) -> Result<(), IoError> {
        let all = slots.iter().map(|slot| self.rebuild_slot(pool, number, *slot, what));
        let mut result = Ok(());
        for ((extent, _), rebuilt) in slots.iter().zip(join_all(all).await) {
            match rebuilt {
                Err(IoError::Gone) => return Err(IoError::Gone),
                Err(error) => {
                    tracing::error!("{} cannot be rebuilt: {error}", self.extent_name(pool, *extent));
                    result = Err(error);
                }
                Ok(()) => {}
            }
        }
        result
    }

    async fn rebuild_slot(
        self: &Rc<Self>,
        pool: &PoolShard,
        number: usize,
        (known, slot): (ExtentId, SlotRef),
        RebuiltColumn { set, column, returned }: RebuiltColumn,
    ) -> Result<(), IoError> {
        // Given back meanwhile: there is nothing to rebuild.
        let Some((extent, _pinned)) = pool.mapping.pin_for_any(known, slot) else { return Ok(()) };
        let lane = match planted(PlantedBug::RebuildInWrongLane) {
            true => guarding_lane(pool, SetIndex(set)),
            false => pool.lane_of(extent),
        };
        let write_back = &lane.write_back;
        if write_back.has_failed(extent) {
            return Err(IoError::RedundancyLost);
        }
        // Whether an extent that is being closed keeps its slot is known soon.
        let _kept = write_back.keep(extent, slot).ok_or(IoError::RedundancyLost)?;
        let rebuilt = pool.slot_io.rebuild_slot(slot, Column(column as u8), returned).await?;
        let (reply, answer) = oneshot::channel();
        let note = SlotRebuiltNote {
            pool: number,
            set,
            column,
            target: rebuilt.target(),
            slot: slot.slot,
            has_lost_pages: rebuilt.has_lost_pages(),
            reply,
        };
        pool.mapping.tell(ControlMessage::SlotRebuilt(note));
        answer.await.unwrap_or(Err(IoError::Gone))?;
        if rebuilt.declare_present() { Ok(()) } else { Err(IoError::Gone) }
    }
}

/// The lane of a set's group, in which not all of its extents need to be.
fn guarding_lane(pool: &PoolShard, set: SetIndex) -> &LogLane {
    let slot = pool.slot_io.slots().slots_of(set).next().unwrap_or(0);
    pool.lane(pool.slot_io.slots().group_of(slot))
}

/// The lane through which a slot of a set is still read that no extent has any more. The column has nothing of it: it must not be
/// read there.
fn lane_with_left_slots(pool: &PoolShard, set: SetIndex) -> Option<&LogLane> {
    let read_of = |lane: &LogLane| {
        let mut read = lane.write_back.slots_read();
        read.retain(|slot| pool.slot_io.slots().place(*slot).set == set);
        read
    };
    if pool.lanes().iter().all(|lane| read_of(lane).is_empty()) {
        return None;
    }
    let in_use: BTreeSet<u64> = pool.mapping.slots_in_use().into_iter().map(|(_, slot)| slot.slot).collect();
    pool.lanes().iter().find(|lane| !read_of(lane).iter().all(|slot| in_use.contains(slot)))
}

/// This shard's slots in a set that a column lacks.
fn missing_slots(pool: &PoolShard, set: SetIndex, column: Column) -> Vec<(ExtentId, SlotRef)> {
    let slots = pool.slot_io.slots();
    let sets = pool.slot_io.raid().sets();
    let lacks = |(_, slot): &(ExtentId, SlotRef)| {
        slots.place(slot.slot).set == set && sets.is_unfilled(set, column, slots.rows(slot.slot).start)
    };
    pool.mapping.slots_in_use().into_iter().filter(lacks).collect()
}
