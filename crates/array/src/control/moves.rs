//! Moves of extents that become stable together: those that come while the metadata journal is being written wait for each
//! other and are one transaction then.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_pool::MetaRecord;
use tier0_units::{ExtentId, SlotRef};
use tier0_world::IoError;
use tier0_world::sync::Semaphore;

use super::PoolCore;
use super::pool::PoolControl;

/// The most moves of a transaction: 44 KiB in the journal, and a short turn.
const MOVES_MAX: usize = 1024;

/// Moves that are not stable yet.
pub(super) struct Moves {
    waiting: RefCell<Vec<Waiting>>,
    /// The move that has it commits for all that wait.
    turn: Semaphore,
}

impl Default for Moves {
    fn default() -> Moves {
        Moves { waiting: RefCell::default(), turn: Semaphore::new(1) }
    }
}

/// What a move has ended with; none before.
type Ended = Rc<Cell<Option<Result<(), IoError>>>>;

struct Waiting {
    extent: ExtentId,
    from: SlotRef,
    to: SlotRef,
    ended: Ended,
}

impl PoolControl {
    /// Makes stable that an extent has another slot; the old one stays lent.
    pub(super) async fn move_extent(
        &self,
        extent: ExtentId,
        from: SlotRef,
        to: SlotRef,
    ) -> Result<(), IoError> {
        let core = &self.core;
        let ended = Ended::default();
        core.moves.waiting.borrow_mut().push(Waiting { extent, from, to, ended: ended.clone() });
        let _turn = core.moves.turn.acquire(1).await;
        loop {
            if let Some(result) = ended.get() {
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
            let mut waiting = self.moves.waiting.borrow_mut();
            let count = waiting.len().min(MOVES_MAX);
            waiting.drain(..count).collect()
        };
        // An extent may be gone, with its volume.
        let (is_there, gone) = {
            let state = self.metadata.state();
            moves.drain(..).partition::<Vec<Waiting>, _>(|one| state.slot(one.extent) == Some(one.from))
        };
        gone.iter().for_each(|one| one.ended.set(Some(Err(IoError::Gone))));
        if is_there.is_empty() {
            return;
        }
        let pairs: Vec<(ExtentId, SlotRef)> = is_there.iter().map(|one| (one.extent, one.to)).collect();
        let mut records = vec![
            MetaRecord::unmap(is_there.iter().map(|one| one.extent)),
            MetaRecord::map(pairs.iter().copied()),
        ];
        records.extend(self.fresh_slots(&pairs));
        let result = self.metadata.commit_keeping_slots(records).await.map_err(|error| {
            tracing::error!("{error}");
            IoError::Gone
        });
        is_there.iter().for_each(|one| one.ended.set(Some(result)));
    }
}
