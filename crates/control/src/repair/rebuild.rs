//! Rebuilding lost columns on spare chunklets, many to many: every set that has lost a column gets a chunklet on a drive
//! of its own choice, and every shard rebuilds its slots of it. When nothing is lost, columns move from drive to drive in
//! the same way ([`crate::balance::column_moves`]).

use std::cell::Cell;

use futures_util::stream::{self, StreamExt};
use tier0_pool::{ChunkletAddress, ColumnMove, MetaRecord};
use tier0_raid::set::SetIndex;
use tier0_units::Nanos;
use tier0_world::IoError;
use tier0_world::sync::Notify;

use super::{Repair, RepairPool};
use crate::message::command::{RebuiltColumn, ShardCommand};
use crate::message::control::SlotRebuiltNote;
use crate::pool::{ALL_PLACES, Pool, one_slot};
use crate::repair::placement::Placement;

/// Columns that are rebuilt at the same time, at least. Otherwise as many as the pool has drives: each reads from several
/// and writes to one, so that all drives have something to do, and twice the drives are whole in half the time.
pub(crate) const COLUMNS_AT_ONCE_MIN: usize = 4;

/// How far the rebuilds of a pool are.
#[derive(Default)]
pub(crate) struct RebuildProgress {
    /// It goes on, or is about to.
    running: Cell<bool>,
    /// Wakes the task that carries it out.
    wanted: Notify,
    /// More was wanted since the round began.
    pub(crate) again: Cell<bool>,
    /// Slots to rebuild since the pool was last whole, those done included.
    pub(crate) total: Cell<u64>,
    pub(crate) done: Cell<u64>,
    bytes: Cell<u64>,
    pub(crate) begun: Cell<Nanos>,
    /// Columns for which there is no spare chunklet.
    pub(crate) without_spare: Cell<u64>,
    /// Some rebuild since the start has met pages that are lost.
    pub(crate) met_lost_pages: Cell<bool>,
    /// How often it was told that pages are lost.
    pub(crate) losses_told: Cell<u64>,
    /// Why the last round failed; none while one goes well.
    pub(crate) waits: Cell<Option<IoError>>,
}

impl RebuildProgress {
    /// Ends when a rebuild is wanted.
    pub(crate) async fn until_wanted(&self) {
        while !self.running.get() {
            self.wanted.wait().await;
        }
    }

    /// All that was wanted is done.
    pub(crate) fn end(&self) {
        self.running.set(false);
    }

    /// Whether a rebuild is going on.
    pub(crate) fn is_running(&self) -> bool {
        self.running.get()
    }

    pub(crate) fn count_slot(&self, bytes: u64) {
        self.done.set(self.done.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// Bytes per second since it began.
    pub(crate) fn rate_bytes_per_s(&self, now: Nanos) -> u64 {
        let time = now.saturating_sub(self.begun.get()).0.max(1);
        u64::try_from(u128::from(self.bytes.get()) * 1_000_000_000 / u128::from(time)).unwrap_or(u64::MAX)
    }

    fn begin(&self, now: Nanos) {
        self.begun.set(now);
        self.bytes.set(0);
        self.total.set(0);
        self.done.set(0);
    }
}

impl Repair {
    /// Has whatever is lost in a pool rebuilt, as far as there are spares; at once or when the rebuild that is going on
    /// has looked at what it knows.
    pub(crate) fn start_rebuilds(&self, number: usize) {
        let rebuild = &self.core(number).rebuild;
        if !self.upkeep.get() {
            return;
        }
        if rebuild.running.replace(true) {
            rebuild.again.set(true);
            return;
        }
        rebuild.begin(self.world.now());
        rebuild.wanted.notify_all();
    }

    /// Gives lost columns spare chunklets, as far as there are some.
    pub(crate) async fn assign_spares(&self, number: usize) -> Result<(), IoError> {
        let core = self.core(number);
        let lost: Vec<(u32, u32)> = core.metadata.state().lost_columns().collect();
        let mut without_spare = 0;
        for (set, column) in lost {
            let _alone = core.column_places.acquire(ALL_PLACES).await;
            let spare = {
                let state = core.metadata.state();
                // A drive may have returned with it.
                if state.is_active(state.place_of(set, column).drive) {
                    continue;
                }
                state.choose_spare(set, column)
            };
            let Some(target) = spare else {
                without_spare += 1;
                continue;
            };
            let (index, place) = Pool::column(set, column);
            let placing = Placement::Column { set: index, column: place, to: target.drive };
            let _under_way = core.place(placing)?;
            core.commit(vec![MetaRecord::ColumnRebuilding { set, column, target }]).await?;
            core.shape.sets.start_rebuild(index, place, target);
        }
        core.rebuild.without_spare.set(without_spare);
        Ok(())
    }

    /// Rebuilds these columns, many at a time; `moves` come later, and count in the progress. `assigned` is how the assignment of
    /// spares has ended.
    pub(crate) async fn rebuild_columns(
        &self,
        number: usize,
        columns: Vec<(u32, u32)>,
        moves: &[ColumnMove],
        assigned: Result<(), IoError>,
    ) -> Result<(), IoError> {
        let core = self.core(number);
        let missing = self.slots_missing(number, &columns) + self.slots_used(number, moves);
        core.rebuild.total.set(core.rebuild.done.get() + missing);
        let drives = core.metadata.state().members().iter().filter(|member| member.is_active()).count();
        let at_once = drives.max(COLUMNS_AT_ONCE_MIN);
        let rebuilds = columns.into_iter().map(|(set, column)| self.rebuild_column(number, set, column));
        let rebuilt = stream::iter(rebuilds)
            .buffer_unordered(at_once)
            .fold(assigned, async |all, one| one.and(all))
            .await;
        rebuilt?;
        if core.rebuild.without_spare.get() > 0 && missing > 0 {
            // What was rebuilt may have left a chunklet that another column can have.
            core.rebuild.again.set(true);
        }
        Ok(())
    }

    /// Mapped slots that these columns lack.
    fn slots_missing(&self, number: usize, columns: &[(u32, u32)]) -> u64 {
        let core = self.core(number);
        let state = core.metadata.state();
        let mut missing = 0;
        for (set, column) in columns {
            let Some(rebuild) = state.rebuild(*set, *column) else { continue };
            let slots = core.shape.slots.slots_of(tier0_raid::set::SetIndex(*set));
            let lacks = |(index, slot): &(u64, u64)| {
                state.used_slots().contains(*slot) && !rebuild.rebuilt.contains(*index)
            };
            missing += (0u64..).zip(slots).filter(lacks).count() as u64;
        }
        missing
    }

    /// Mapped slots of these columns' sets.
    fn slots_used(&self, number: usize, moves: &[ColumnMove]) -> u64 {
        let state = self.core(number).metadata.state();
        moves.iter().map(|one| state.used_slots_of(one.set).count() as u64).sum()
    }

    pub(crate) async fn rebuild_column(&self, number: usize, set: u32, column: u32) -> Result<(), IoError> {
        let core = self.core(number);
        let target = core.metadata.state().rebuild(set, column).map(|rebuild| rebuild.target);
        let returned = target.filter(|target| core.has_returned(set, column, *target));
        let what = RebuiltColumn { set, column, returned };
        let results = self.ask_all(|reply| ShardCommand::Rebuild { pool: number, column: what, reply }).await;
        results.into_iter().try_for_each(|result| result.unwrap_or(Err(IoError::Gone)))?;
        // A commit that says of a fresh slot that the column has it must not be overtaken by the end of the rebuild.
        let _alone = core.column_places.acquire(ALL_PLACES).await;
        let target = core.metadata.state().rebuild(set, column).map(|rebuild| rebuild.target);
        let (index, place) = Pool::column(set, column);
        if target != Some(core.shape.sets.chunklet(index, place)) {
            // It was moved on to another spare meanwhile.
            return Err(IoError::Gone);
        }
        let with_lost_pages = core.rebuild.met_lost_pages.get() || core.metadata.has_lost_pages();
        core.commit(vec![MetaRecord::ColumnRebuilt { set, column, with_lost_pages }]).await?;
        core.shape.sets.finish_rebuild(index, place);
        core.forget_return(set, column);
        Ok(())
    }
}

impl RepairPool {
    /// The columns under rebuild whose new drives serve.
    pub(crate) fn columns_to_rebuild(&self) -> Vec<(u32, u32)> {
        let state = self.metadata.state();
        let live = state.rebuilds().filter(|(_, _, rebuild)| state.is_active(rebuild.target.drive));
        live.map(|(set, column, _)| (set, column)).collect()
    }

    /// Remembers that a slot is rebuilt, unless its column has moved on meanwhile.
    pub(crate) async fn slot_rebuilt(&self, note: &SlotRebuiltNote) -> Result<(), IoError> {
        let Some(home) = self.metadata.state().slot_home(note.slot) else {
            return Err(IoError::OutOfRange);
        };
        let _still = self.column_places.acquire(1).await;
        let (set, column) = Pool::column(note.set, note.column);
        let is_lost = !self.metadata.state().is_active(note.target.drive);
        if is_lost || self.shape.sets.chunklet(set, column) != note.target {
            return Err(IoError::Gone);
        }
        let ranges = one_slot(home.index);
        let record = MetaRecord::SlotsRebuilt { set: note.set, column: note.column, ranges };
        self.commit(vec![record]).await?;
        self.rebuild.count_slot(self.slot_bytes(SetIndex(note.set)));
        Ok(())
    }

    /// Whether a column is being rebuilt where it was until its drive was lost, and has been nowhere else since.
    pub(crate) fn has_returned(&self, set: u32, column: u32, target: ChunkletAddress) -> bool {
        self.returned.borrow().get(&(set, column)) == Some(&target)
    }

    /// A column is rebuilt, or is to lie elsewhere: what its old chunklet holds gets old from now on.
    pub(crate) fn forget_return(&self, set: u32, column: u32) {
        self.returned.borrow_mut().remove(&(set, column));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::testing::with_pool;

    /// Every set that has lost a column gets it on a drive on which it has no other, and all of them not on one drive.
    #[test]
    fn lost_columns_find_spares_on_drives_that_their_sets_do_not_use() {
        with_pool(("raid5", 6, 3, 1), |rig| async move {
            let on = |member: u32| {
                let state = rig.control.context.pool(0).metadata.state();
                state
                    .all_columns()
                    .filter(|(set, column)| state.place_of(*set, *column).drive == member)
                    .count()
            };
            let lost = on(2);
            assert!(lost > 1);
            rig.lose(2).await;
            rig.sleep_s(5).await;
            let rebuilds = rig.shard.rebuilds.borrow();
            let sets: BTreeSet<u32> = rebuilds.iter().map(|one| one.set).collect();
            assert_eq!((sets.len(), rebuilds.len()), (lost, lost), "one column of each set, once");
            let state = rig.control.context.pool(0).metadata.state();
            assert_eq!((state.lost_columns().count(), state.rebuilds().count()), (0, 0));
            let mut targets = BTreeSet::new();
            for one in rebuilds.iter() {
                let columns = state.all_columns().filter(|(set, _)| *set == one.set);
                let drives: Vec<u32> = columns.map(|(set, column)| state.column(set, column).drive).collect();
                let different: BTreeSet<u32> = drives.iter().copied().collect();
                assert_eq!((different.len(), different.contains(&2)), (drives.len(), false), "{drives:?}");
                targets.insert(state.column(one.set, one.column).drive);
            }
            assert!(targets.len() > 1, "all spares are on {targets:?}");
        });
    }

    #[test]
    fn what_is_lost_while_a_rebuild_goes_on_is_rebuilt_next() {
        with_pool(("raid6", 8, 4, 2), |rig| async move {
            rig.shard.holds_rebuilds.set(true);
            rig.lose(0).await;
            rig.sleep_s(1).await;
            rig.lose(1).await;
            rig.sleep_s(1).await;
            assert!(rig.control.repair.is_rebuilding(0));
            rig.release_rebuilds();
            rig.sleep_s(30).await;
            let state = rig.control.context.pool(0).metadata.state();
            assert_eq!((state.lost_columns().count(), state.rebuilds().count()), (0, 0));
            assert!(!rig.control.repair.is_rebuilding(0));
        });
    }
}
