//! Commits: records that become true together, and durable in the order of the calls.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tier0_journal::{Record, Ring};
use tier0_units::SECTOR_BYTES;
use tier0_world::sync::oneshot;
use tier0_world::{PlantedBug, planted};

use super::core::{Core, Metadata};
use crate::state::PoolState;
use crate::{MetaRecord, PoolError, SlotRun, record};

/// A change may take this share of the journal: several fit before a checkpoint is due.
const CHANGE_SHARE: u64 = 16;
/// A checkpoint is due when this share of the journal is taken.
const CHECKPOINT_LEVEL: f64 = 0.5;

pub(super) type CommitResult = Result<(), PoolError>;

/// A commit that waits for a journal.
pub(super) struct Waiting {
    pub(super) records: Vec<MetaRecord>,
    /// Slots that it frees are allocated again only when they are returned.
    pub(super) keeps_slots: bool,
    pub(super) done: oneshot::Sender<CommitResult>,
}

/// The future of [`Metadata::commit`]. The commit goes on whether or not this is polled or dropped.
#[must_use = "whether the records are durable is known only to this future"]
pub struct Commit(oneshot::Receiver<CommitResult>);

impl Future for Commit {
    type Output = CommitResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CommitResult> {
        Pin::new(&mut self.0).poll(context).map(|result| result.unwrap_or(Err(PoolError::Closed)))
    }
}

impl Metadata {
    /// Makes `records` true, all or none, and durable. Ends when they are stable on every carrier of the metadata that is
    /// left, or with what they contradict. Commits take effect in the order of the calls.
    pub fn commit(&self, records: Vec<MetaRecord>) -> Commit {
        self.0.enqueue(records)
    }

    /// As [`Metadata::commit`], but slots that it frees are allocated again only when they come back by
    /// [`Metadata::return_slots`], or after the next opening: shards may still be reading or writing them.
    pub fn commit_keeping_slots(&self, records: Vec<MetaRecord>) -> Commit {
        self.0.enqueue_with(records, true)
    }

    /// The most bytes that a change may take in the journal; [`record::encode`] tells what it takes.
    pub fn change_bytes_max(&self) -> usize {
        self.0.change_bytes_max()
    }
}

impl Core {
    pub(super) fn enqueue(self: &Rc<Self>, records: Vec<MetaRecord>) -> Commit {
        self.enqueue_with(records, false)
    }

    fn enqueue_with(self: &Rc<Self>, records: Vec<MetaRecord>, keeps_slots: bool) -> Commit {
        let (done, receiver) = oneshot::channel();
        self.begin(Waiting { records, keeps_slots, done });
        Commit(receiver)
    }

    fn begin(self: &Rc<Self>, waiting: Waiting) {
        if let Some(error) = self.failure() {
            let _ = waiting.done.send(Err(error));
            return;
        }
        let ring = self.journal.borrow().ring.clone();
        match ring {
            None if self.persistent => self.journal.borrow_mut().waiting.push_back(waiting),
            None => {
                let result = self.accept(&waiting).map(|freed| self.free(&freed));
                let _ = waiting.done.send(result);
            }
            Some(ring) => self.append(&ring, waiting),
        }
    }

    /// Commits what waited for a journal.
    pub(super) fn begin_waiting(self: &Rc<Self>) {
        let waiting = std::mem::take(&mut self.journal.borrow_mut().waiting);
        waiting.into_iter().for_each(|waiting| self.begin(waiting));
    }

    pub(super) fn change_bytes_max(&self) -> usize {
        (self.state.borrow().geometry().area.journal_sectors * SECTOR_BYTES / CHANGE_SHARE) as usize
    }

    /// Makes records true in memory; the slots that they free, to be allocated.
    fn accept(&self, waiting: &Waiting) -> Result<Vec<SlotRun>, PoolError> {
        let records = &waiting.records;
        let mut state = self.state.borrow_mut();
        self.allocator.borrow().check(&state, records)?;
        let mut left = if waiting.keeps_slots { Vec::new() } else { left_slots(&state, records) };
        if self.persistent {
            // Pages that did not change after all, because the records are refused, do no harm.
            self.pages.borrow_mut().note(&state, records);
        }
        state.apply_all(records)?;
        if records.iter().any(|record| matches!(record, MetaRecord::SetsAdded { .. })) {
            if self.persistent {
                self.pages.borrow_mut().note(&state, records);
            }
            if let Some(hook) = &*self.on_sets.borrow() {
                hook(&state);
            }
        }
        self.allocator.borrow_mut().follow(&state, records);
        // Other extents may have them still.
        left.retain(|slot| !state.used_slots().contains(*slot));
        Ok(left.into_iter().map(|slot| SlotRun { first: slot, count: 1 }).collect())
    }

    fn append(self: &Rc<Self>, ring: &Ring, waiting: Waiting) {
        let header = record::encode(&waiting.records);
        let max = self.change_bytes_max();
        if header.len() > max {
            let _ = waiting.done.send(Err(PoolError::ChangeTooLarge { bytes: header.len(), max }));
            return;
        }
        let freed = match self.accept(&waiting) {
            Ok(freed) => freed,
            Err(error) => {
                let _ = waiting.done.send(Err(error));
                return;
            }
        };
        let done = waiting.done;
        let appended = ring.append(Record { header, pages: Vec::new() });
        {
            let mut journal = self.journal.borrow_mut();
            journal.position += 1;
            journal.under_way += 1;
        }
        if planted(PlantedBug::FreeWhileMapped) {
            self.free(&freed);
        }
        let core = self.clone();
        self.world
            .spawn(async move {
                if planted(PlantedBug::MetadataBeforeStable) {
                    let _ = done.send(Ok(()));
                    let _ = appended.await;
                    return core.ended();
                }
                let result = match appended.await {
                    Ok(_) => {
                        core.free(&freed);
                        Ok(())
                    }
                    Err(_) => Err(core.fail()),
                };
                core.ended();
                let _ = done.send(result);
            })
            .detach();
        self.checkpoint_if_due(ring);
    }

    fn ended(&self) {
        self.journal.borrow_mut().under_way -= 1;
        self.changed.notify_all();
    }

    fn checkpoint_if_due(self: &Rc<Self>, ring: &Ring) {
        if ring.space().level() < CHECKPOINT_LEVEL || self.journal.borrow().checkpoint_is_due.replace(true) {
            return;
        }
        let core = self.clone();
        self.world
            .spawn(async move {
                // A failure is in the core's state, and ends the commits.
                let _ = core.checkpoint(&[]).await;
                core.journal.borrow().checkpoint_is_due.set(false);
                core.replenish_carriers();
            })
            .detach();
    }
}

/// The slots that extents will have no more.
fn left_slots(state: &PoolState, records: &[MetaRecord]) -> Vec<u64> {
    let mut left = BTreeSet::new();
    let mut push = |slot: u64| _ = left.insert(slot);
    for record in records {
        match record {
            MetaRecord::UnmapExtents(runs) => {
                for run in runs {
                    let end = u64::from(run.first.index) + u64::from(run.count);
                    let Some(map) = state.map(run.first.volume) else { continue };
                    let extents = map.iter_from(run.first.index);
                    let extents = extents.take_while(|(index, _)| u64::from(*index) < end);
                    extents.for_each(|(_, slot)| push(slot.slot));
                }
            }
            MetaRecord::VolumeDeleted { volume } => {
                if let Some(map) = state.map(*volume) {
                    map.iter().for_each(|(_, slot)| push(slot.slot));
                }
            }
            _ => {}
        }
    }
    left.into_iter().collect()
}
