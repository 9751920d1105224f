//! ExtentCommits of extents that become stable together: those that come while the metadata journal is being written wait for each
//! other and are one transaction then.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_pool::MetaRecord;
use tier0_units::{ExtentId, SlotRef};
use tier0_world::IoError;
use tier0_world::sync::Semaphore;

use crate::PoolCore;
use crate::pool::PoolControl;

/// The most moves of a transaction: 44 KiB in the journal, and a short turn.
const MOVES_MAX: usize = 1024;

/// ExtentCommits that are not stable yet.
pub(crate) struct ExtentCommits {
    waiting: RefCell<Vec<Waiting>>,
    /// The move that has it commits for all that wait.
    turn: Semaphore,
}

impl Default for ExtentCommits {
    fn default() -> ExtentCommits {
        ExtentCommits { waiting: RefCell::default(), turn: Semaphore::new(1) }
    }
}

/// What a move has ended with, the extents that have moved; none before.
type Ended = Rc<RefCell<Option<Result<Vec<ExtentId>, IoError>>>>;

struct Waiting {
    extents: Vec<ExtentId>,
    from: SlotRef,
    to: Option<SlotRef>,
    ended: Ended,
}

impl PoolControl {
    /// Makes stable that extents that have a slot have another one, or none; the old one stays allocated.
    pub(crate) async fn move_extents(
        &self,
        extents: Vec<ExtentId>,
        from: SlotRef,
        to: Option<SlotRef>,
    ) -> Result<Vec<ExtentId>, IoError> {
        let core = &self.core;
        let ended = Ended::default();
        core.extent_commits.waiting.borrow_mut().push(Waiting { extents, from, to, ended: ended.clone() });
        let _turn = core.extent_commits.turn.acquire(1).await;
        loop {
            if let Some(result) = ended.borrow_mut().take() {
                return result;
            }
            core.commit_moves().await;
        }
    }
}

impl PoolCore {
    /// Commits the moves that wait, as many as fit one transaction.
    async fn commit_moves(&self) {
        let mut moves: Vec<Waiting> = {
            let mut waiting = self.extent_commits.waiting.borrow_mut();
            let mut extents = 0;
            let fits = |one: &&Waiting| {
                extents += one.extents.len();
                extents <= MOVES_MAX
            };
            // A family has fewer volumes than that.
            let count = waiting.iter().take_while(fits).count();
            waiting.drain(..count).collect()
        };
        self.defer_repeated(&mut moves);
        // Extents may be gone, with their volume.
        let (is_there, gone) = {
            let state = self.metadata.state();
            moves
                .iter_mut()
                .for_each(|one| one.extents.retain(|extent| state.slot(*extent) == Some(one.from)));
            moves.into_iter().partition::<Vec<Waiting>, _>(|one| !one.extents.is_empty())
        };
        gone.iter().for_each(|one| *one.ended.borrow_mut() = Some(Err(IoError::Gone)));
        if is_there.is_empty() {
            return;
        }
        let mut records = MetaRecord::moves(is_there.iter().map(|one| (one.extents.as_slice(), one.to)));
        let pairs: Vec<(ExtentId, SlotRef)> =
            is_there.iter().filter_map(|one| Some((one.extents[0], one.to?))).collect();
        records.extend(self.fresh_slots(&pairs));
        self.discards.discard_early(&self.metadata, is_there.iter().map(|one| one.from.slot)).await;
        let result = self.metadata.commit_keeping_slots(records).await.map_err(|error| {
            tracing::error!("{error}");
            IoError::Gone
        });
        for one in is_there {
            *one.ended.borrow_mut() = Some(result.map(|()| one.extents));
        }
    }

    /// Of several moves of an extent all but the first wait for the next transaction.
    fn defer_repeated(&self, moves: &mut Vec<Waiting>) {
        let mut seen = BTreeSet::new();
        let (mut first, mut repeated) = (Vec::new(), Vec::new());
        for one in moves.drain(..) {
            let is_first = one.extents.iter().all(|extent| !seen.contains(extent));
            seen.extend(one.extents.iter().copied());
            if is_first { first.push(one) } else { repeated.push(one) }
        }
        *moves = first;
        self.extent_commits.waiting.borrow_mut().splice(0..0, repeated);
    }
}
