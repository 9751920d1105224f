//! Columns that move between drives that serve: off drives that are to leave, back to the drive that replaces theirs, off drives
//! that are not for data, back from the chunklets that drives keep for rebuilding, and to where a pool that grows needs them. Nothing is less redundant meanwhile, and what has begun to move
//! goes on after a restart.

use std::rc::Rc;

use futures_util::stream::{self, StreamExt};
use tier0_pool::{ChunkletAddress, ColumnMove, MetaRecord, PoolState};
use tier0_world::IoError;

use super::Balance;
use crate::pool::ALL_PLACES;
use crate::pool::Pool;
use crate::repair::placement::Placement;
use crate::repair::rebuild::COLUMNS_AT_ONCE_MIN;

/// Why columns move to other drives that serve, the most urgent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MoveReason {
    /// Their drives are to leave.
    #[default]
    Leaving,
    /// They lie on drives that are not for data, or belong to a drive that replaces theirs.
    CopyBack,
    /// Drives have less free than they keep for rebuilding.
    Spares,
    /// The pool is to grow.
    Growth,
}

impl Balance {
    /// The columns that should move next, and why.
    pub(crate) fn next_column_moves(&self, number: usize) -> (MoveReason, Vec<ColumnMove>) {
        let core = self.core(number);
        let state = core.metadata.state();
        let growth = || match core.growing.get() {
            true => state.groups_that_stay().flat_map(|group| state.sets_to_come(group).moves).collect(),
            false => Vec::new(),
        };
        let some = |reason, moves: Vec<ColumnMove>| (!moves.is_empty()).then_some((reason, moves));
        some(MoveReason::Leaving, moves_off(&state))
            .or_else(|| some(MoveReason::CopyBack, moves_back(&state)))
            .or_else(|| some(MoveReason::Spares, state.moves_for_spares()))
            .unwrap_or_else(|| (MoveReason::Growth, growth()))
    }

    /// Moves columns, a few at a time; how many have begun.
    pub(crate) async fn move_columns(
        self: &Rc<Self>,
        number: usize,
        moves: Vec<ColumnMove>,
    ) -> Result<u64, IoError> {
        stream::iter(moves.into_iter().map(|one| self.move_column(number, one)))
            .buffer_unordered(COLUMNS_AT_ONCE_MIN)
            .fold(Ok(0), async |all, one| Ok(all? + u64::from(one?)))
            .await
    }

    /// Moves a column, if it is still to move; whether it was.
    async fn move_column(self: &Rc<Self>, number: usize, one: ColumnMove) -> Result<bool, IoError> {
        let core = self.core(number);
        {
            let _alone = core.column_places.acquire(ALL_PLACES).await;
            let target = self.target_of(number, one);
            let Some(target) = target else { return Ok(false) };
            let ColumnMove { set, column, .. } = one;
            let (index, place) = Pool::column(set, column);
            let placing = Placement::Column { set: index, column: place, to: target.drive };
            let _under_way = self.repair.core(number).place(placing)?;
            core.commit(vec![MetaRecord::ColumnEvacuating { set, column, target }]).await?;
            core.shape.sets.start_evacuation(index, place, target);
        }
        self.repair.rebuild_column(number, one.set, one.column).await?;
        Ok(true)
    }

    /// Where a column goes; `None` if it is not to move any more, or not there. The choice is made again, because others have
    /// taken chunklets since.
    fn target_of(&self, number: usize, one: ColumnMove) -> Option<ChunkletAddress> {
        let core = self.core(number);
        let state = core.metadata.state();
        let source = state.column(one.set, one.column).drive;
        if state.rebuild(one.set, one.column).is_some() || !state.is_active(source) {
            return None;
        }
        if state.member(source)?.leaving {
            return state.choose_spare(one.set, one.column);
        }
        if state.home_of(one.set, one.column) == Some(one.to)
            && let Some(home) = state.place_at_home(one.set, one.column)
        {
            return Some(home);
        }
        let wanted = !state.is_for_data(source) || state.spares_are_short(source) || core.growing.get();
        let free = state.free_chunklet(one.to, 0).filter(|_| wanted)?;
        let record = MetaRecord::ColumnEvacuating { set: one.set, column: one.column, target: free };
        state.check(&record).is_ok().then_some(free)
    }
}

/// The columns that could go to the drive that replaces theirs, or else those that could go back to drives of data.
fn moves_back(state: &PoolState) -> Vec<ColumnMove> {
    let home = state.moves_home();
    if home.is_empty() { state.moves_to_data_drives() } else { home }
}

/// The columns on drives that are to leave which do not move yet and could.
fn moves_off(state: &PoolState) -> Vec<ColumnMove> {
    let could = |(set, column): (u32, u32)| {
        let idle = state.rebuild(set, column).is_none();
        let to = idle.then(|| state.choose_spare(set, column)).flatten()?.drive;
        Some(ColumnMove { set, column, to })
    };
    state.leaving_columns().filter_map(could).collect()
}
