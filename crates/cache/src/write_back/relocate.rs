//! An extent moves to another slot, while it is read and written.
//!
//! 1. No batch touches the extent from now on: what is written meanwhile stays dirty, in memory and log.
//! 2. What is not dirty is copied, verified, into whole rows of the new slot, and made stable, its table even where
//!    nothing was copied. No extent has that slot yet, so it needs no intents.
//! 3. What was dirty, and therefore not copied, must be stable in the log: the new slot has not even its older content.
//! 4. The mapping changes, durably. The log knows extents, not slots, so a crash finds its pages' place either way.
//! 5. Writers that have looked up the old slot are waited for. Then the mapping in memory changes.
//! 6. When no read of the old slot is under way any more, nothing of it is remembered, and it is free.
//!
//! A page that is dirty is never read from the old slot: a power cut may have torn it there.

use std::ops::Range;

use tier0_integrity::{Intent, IntentLog, LogPlace, PageContent, SlotWrite, split_zero_pages};
use tier0_units::{ExtentId, PAGE_SECTORS, SlotRef};
use tier0_world::IoError;

use super::state::State;
use super::{Inner, WriteBack};
use crate::locks::WHOLE;
use crate::{LocalFuture, Mapping};

/// Pages that are copied at once, if a row has not more: 1 MiB.
const PAGES_AT_ONCE: u32 = 256;

/// Where an extent is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The extent.
    pub extent: ExtentId,
    /// The slot it has.
    pub from: SlotRef,
    /// A slot that no extent has.
    pub to: SlotRef,
    /// Pages of an extent.
    pub pages: u32,
}

/// A map whose extents can move.
pub trait Relocate: Mapping {
    /// Makes durable that the extent has the new slot and not the old one, which is not lent again yet.
    ///
    /// # Errors
    /// When it has not changed, or nothing can become durable any more.
    fn commit_move(&self, relocation: Relocation) -> LocalFuture<'_, Result<(), IoError>>;

    /// From now on [`Mapping::slot`] says the new slot.
    fn moved(&self, relocation: Relocation);
}

/// What is copied into a slot that no extent has needs no intents.
struct NoIntents;

impl IntentLog for NoIntents {
    fn append(&self, _: Vec<Intent>) -> LocalFuture<'_, Result<(), IoError>> {
        Box::pin(async { Ok(()) })
    }
}

impl WriteBack {
    /// Moves an extent to another slot; true when it has moved and the old slot is free. False where it cannot move
    /// now: a batch is on it, it has failed, or has that slot no more; then nothing has changed.
    ///
    /// # Errors
    /// When it could not be copied, or the change did not become durable: it keeps its slot.
    pub async fn relocate(&self, relocation: Relocation, map: &impl Relocate) -> Result<bool, IoError> {
        let Relocation { extent, from, to, .. } = relocation;
        if self.0.mapping.slot(extent) != Some(from) || !self.0.state.borrow_mut().claim(extent) {
            return Ok(false);
        }
        // Without a log what is written meanwhile has no other place: it waits until the extent has moved.
        let held = match self.has_log() {
            true => None,
            false => Some(self.0.hold_writers(extent, from).await),
        };
        self.0.slots.allocate(to);
        let committed = self.commit_copy(relocation, map).await;
        if committed.is_ok() {
            let _guard = match held {
                Some(held) => held,
                None => self.0.locks.lock(extent, WHOLE).await,
            };
            map.moved(relocation);
            self.0.state.borrow_mut().pages.settle(extent);
        } else {
            self.0.slots.free(to);
        }
        self.0.state.borrow_mut().busy.remove(&extent);
        self.0.progress.notify_all();
        self.0.work.notify_all();
        committed?;
        self.0.readers.wait(from.slot).await;
        self.0.slots.free(from);
        Ok(true)
    }

    /// Steps 2 to 4.
    async fn commit_copy(&self, relocation: Relocation, map: &impl Relocate) -> Result<(), IoError> {
        let copied = self.0.copy(relocation).await?;
        tracing::trace!(?relocation, copied, "an extent is copied");
        self.flush().await?;
        map.commit_move(relocation).await
    }
}

impl Inner {
    /// Copies whatever is not dirty; how many pages.
    async fn copy(&self, relocation: Relocation) -> Result<usize, IoError> {
        let row = self.slots.row_pages(relocation.to.slot);
        let step = PAGES_AT_ONCE.next_multiple_of(row);
        let (mut first, mut copied) = (0, 0);
        while first < relocation.pages {
            let end = (first + step).min(relocation.pages);
            let mut pages = Vec::new();
            for clean in self.clean_runs(relocation.extent, first..end) {
                pages.extend(self.read_run(relocation.from, clean).await?);
            }
            copied += pages.len();
            if !pages.is_empty() {
                let write = SlotWrite { extent: relocation.extent, slot: relocation.to, pages };
                self.slots.write_batch(vec![write], &NoIntents).await?;
            }
            first = end;
        }
        self.slots.make_known(relocation.to).await?;
        Ok(copied)
    }

    /// The runs of pages that are not dirty.
    fn clean_runs(&self, extent: ExtentId, pages: Range<u32>) -> Vec<Range<u32>> {
        let state = self.state.borrow();
        let mut runs = Vec::new();
        let mut from = pages.start;
        for (dirty, _) in state.pages.range(extent, pages.clone()) {
            runs.push(from..dirty);
            from = dirty + 1;
        }
        runs.push(from..pages.end);
        runs.retain(|run| !run.is_empty());
        runs
    }

    /// The pages of a run that are not zeros.
    async fn read_run(&self, slot: SlotRef, run: Range<u32>) -> Result<Vec<(u32, PageContent)>, IoError> {
        let buf = self.world.buffer((run.end - run.start) * PAGE_SECTORS as u32);
        let (result, buf) = self.slots.read(slot, u64::from(run.start) * PAGE_SECTORS, buf).await;
        result?;
        let buf = buf.freeze();
        let zeros = split_zero_pages(&buf);
        let content = |(place, page): (u32, u32)| {
            let sector = place * PAGE_SECTORS as u32;
            // No intent says where in the log it lies.
            let log = LogPlace { position: 0, page: place };
            (page, PageContent::Data { buf: buf.slice(sector, PAGE_SECTORS as u32), log })
        };
        let stored = (0u32..).zip(run).zip(zeros).filter(|(_, zero)| !zero);
        Ok(stored.map(|(page, _)| content(page)).collect())
    }
}

impl State {
    /// Takes an extent that no batch is on and that has nothing unfinished; false where that is not so.
    fn claim(&mut self, extent: ExtentId) -> bool {
        let free = !self.busy.contains(&extent)
            && !self.failed.contains_key(&extent)
            && !self.fresh.contains_key(&extent)
            && !self.emptied.contains(&extent);
        free && self.busy.insert(extent)
    }
}
