//! Changes of the map of extents that become stable. Moves that come while the metadata journal is being written wait for each
//! other and are one transaction then.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_pool::{MetaRecord, SlotRun};
use tier0_units::{ExtentId, SlotRef};
use tier0_world::sync::Semaphore;
use tier0_world::{IoError, PlantedBug, planted};

use super::VolumesPool;

/// The most moves of a transaction: 44 KiB in the journal, and a short turn.
const MOVES_MAX: usize = 1024;

/// Moves that are not stable yet.
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

impl VolumesPool {
    /// Makes changes of the map stable; then unmapped slots are free. Of a volume that was deleted nothing is mapped any
    /// more: its shards will give the slots back. But a power cut may yet undo the deletion, so the answer comes only when
    /// that is stable: then no recovery needs what the log has of the volume.
    pub(crate) async fn commit_extents(
        &self,
        mut mapped: Vec<(ExtentId, SlotRef)>,
        unmapped: Vec<(ExtentId, SlotRef)>,
    ) -> Result<(), IoError> {
        let is_there = |extent: &ExtentId| self.metadata.state().volume(extent.volume).is_some();
        loop {
            let result = self.commit_extents_once(&mut mapped, &unmapped).await;
            // A volume may have been deleted while the change waited for its turn: the others' extents are mapped all the same.
            let overtaken = mapped.iter().any(|(extent, _)| !is_there(extent));
            if result.is_ok() || !overtaken {
                return result;
            }
        }
    }

    async fn commit_extents_once(
        &self,
        mapped: &mut Vec<(ExtentId, SlotRef)>,
        unmapped: &[(ExtentId, SlotRef)],
    ) -> Result<(), IoError> {
        let _still = self.column_places.acquire(1).await;
        let asked = mapped.len();
        mapped.retain(|(extent, _)| self.metadata.state().volume(extent.volume).is_some());
        let follows_deletion = mapped.len() < asked;
        let mut records = Vec::new();
        let mut never_mapped = Vec::new();
        if !mapped.is_empty() {
            records.push(MetaRecord::map(mapped.iter().copied()));
            records.extend(self.fresh_slots(mapped));
        }
        let mut unmap = Vec::new();
        for (extent, slot) in unmapped.iter().copied() {
            let known = self.metadata.state().slot(extent) == Some(slot);
            if known || mapped.contains(&(extent, slot)) {
                unmap.push(extent);
            } else {
                never_mapped.push(SlotRun { first: slot.slot, count: 1 });
            }
        }
        if !unmap.is_empty() {
            records.push(MetaRecord::unmap(unmap));
        }
        // Commits become stable in their order, one without records too.
        if follows_deletion || !records.is_empty() {
            self.commit(records).await?;
        }
        self.metadata.return_slots(&never_mapped);
        Ok(())
    }

    /// Makes stable that extents that have a slot have another one, or none; the old one stays allocated.
    pub(crate) async fn move_extents(
        &self,
        extents: Vec<ExtentId>,
        from: SlotRef,
        to: Option<SlotRef>,
    ) -> Result<Vec<ExtentId>, IoError> {
        let ended = Ended::default();
        self.extent_commits.waiting.borrow_mut().push(Waiting { extents, from, to, ended: ended.clone() });
        let _turn = self.extent_commits.turn.acquire(1).await;
        loop {
            if let Some(result) = ended.borrow_mut().take() {
                return result;
            }
            self.commit_moves().await;
        }
    }

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
        let committed = match planted(PlantedBug::FreeBeforeMoveStable) {
            true => self.metadata.commit(records).await,
            false => self.metadata.commit_keeping_slots(records).await,
        };
        let result = committed.map_err(|error| {
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
