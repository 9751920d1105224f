//! Extents move to another slot, while they are read and written: all that have a slot together, or one of them, which is to
//! be written, to a slot of its own.
//!
//! 1. No batch touches the extents from now on: what is written meanwhile stays dirty, in memory and log.
//! 2. What is not dirty is copied, verified, into whole rows of the new slot, and made stable, its table even where
//!    nothing was copied. No extent has that slot yet, so it needs no intents.
//! 3. What was dirty, and therefore not copied, must be stable in the log: the new slot has not even its older content.
//! 4. The mapping changes, durably. The log knows extents, not slots, so a crash finds its pages' place either way.
//! 5. Writers that have looked up the old slot are waited for. Then the mapping in memory changes.
//! 6. Where no extent has the old slot any more, and no read of it is under way, nothing of it is remembered, and it is free.
//!
//! A page that is dirty is never read from the old slot: a power cut may have torn it there. A slot that several extents have
//! is not written to, so nothing can be torn there, and all of them that move need all of it.

use std::ops::Range;

use tier0_integrity::{Intent, IntentLog, LogPlace, PageContent, SlotWrite, split_zero_pages};
use tier0_units::{ExtentId, PAGE_SECTORS, SlotRef};
use tier0_world::{BufMut, IoError, PlantedBug, planted};

use super::state::State;
use super::{Inner, WriteBack};
use crate::locks::{PageGuard, WHOLE};
use crate::{LocalFuture, Relocation};

/// Pages that are copied at once, if a row has not more: 1 MiB.
const PAGES_AT_ONCE: u32 = 256;

/// What becomes of a move that meets a page of which no copy is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The extents keep their slot.
    Fails,
    /// It is lost in the new slot too: what was acknowledged waits for the move.
    StaysLost,
}

/// What is copied into a slot that no extent has needs no intents.
struct NoIntents;

impl IntentLog for NoIntents {
    fn append(&self, _: Vec<Intent>) -> LocalFuture<'_, Result<(), IoError>> {
        Box::pin(async { Ok(()) })
    }
}

impl WriteBack {
    /// Moves all extents that have a slot to another one, which no extent has; true when they have moved and the old slot is
    /// free. False where they cannot move now: a batch is on one of them, it has failed, is held, or is about to get a slot of
    /// its own, or `extent` has another slot; then nothing has changed.
    ///
    /// # Errors
    /// When they could not be copied, or the change did not become durable: they keep their slot.
    pub async fn relocate(&self, extent: ExtentId, from: SlotRef, to: SlotRef) -> Result<bool, IoError> {
        if self.0.mapping.slot(extent) != Some(from) {
            return Ok(false);
        }
        let extents = self.0.mapping.owners(extent);
        // A slot that was handed out and is not committed is no extent's yet.
        let is_claimed = self.0.state.borrow_mut().claim(&extents);
        if is_claimed && planted(PlantedBug::WriteOldPlaceDuringMove) {
            self.0.state.borrow_mut().unclaim(&extents);
        }
        if !extents.contains(&extent) || !is_claimed {
            return Ok(false);
        }
        let relocation = Relocation { extents, from, to };
        // Without a log what is written meanwhile has no other place: it waits until the extents have moved.
        let held =
            if self.has_log() { None } else { Some(self.0.hold_writers(&relocation.extents, from).await) };
        let moved = self.0.relocate_claimed(&relocation, held, Lost::Fails).await;
        self.0.state.borrow_mut().unclaim(&relocation.extents);
        self.0.progress.notify_all();
        self.0.work.notify_all();
        if moved? {
            self.0.until_free(from).await;
        }
        Ok(true)
    }
}

impl Inner {
    /// Moves extents that no batch is on; whether no extent has the old slot any more. `held` keeps writers away.
    pub(super) async fn relocate_claimed(
        &self,
        relocation: &Relocation,
        held: Option<Vec<PageGuard>>,
        lost: Lost,
    ) -> Result<bool, IoError> {
        self.allocate_slot(relocation.to);
        let extents = match self.commit_copy(relocation, lost).await {
            Ok(extents) => extents,
            Err(error) => {
                self.free_slot(relocation.to);
                return Err(error);
            }
        };
        let _guards = match held {
            Some(held) => held,
            None => self.lock_all(&relocation.extents).await,
        };
        let mut state = self.state.borrow_mut();
        extents.iter().for_each(|extent| state.pages.settle(*extent));
        Ok(self.mapping.moved(&Relocation { extents, ..relocation.clone() }))
    }

    /// Waits until no read of a slot is under way that no extent has any more: nothing of it is remembered then.
    pub(super) async fn until_free(&self, slot: SlotRef) {
        self.readers.wait(slot.slot).await;
        self.free_slot(slot);
    }

    /// Locks extents, in the order in which every task locks several.
    pub(super) async fn lock_all(&self, extents: &[ExtentId]) -> Vec<PageGuard> {
        let mut guards = Vec::with_capacity(extents.len());
        for extent in extents {
            guards.push(self.locks.lock(*extent, WHOLE).await);
        }
        guards
    }

    /// Steps 2 to 4.
    async fn commit_copy(&self, relocation: &Relocation, lost: Lost) -> Result<Vec<ExtentId>, IoError> {
        let copied = self.copy(relocation, lost).await?;
        tracing::trace!(?relocation, copied, "extents are copied");
        self.until_stable().await?;
        self.settle_flash().await;
        self.mapping.commit_move(relocation.clone()).await
    }

    /// Copies whatever is not dirty; how many pages.
    async fn copy(&self, relocation: &Relocation, lost: Lost) -> Result<usize, IoError> {
        let Relocation { extents, from, to } = relocation;
        let pages = self.slots.pages_per_slot(from.slot).min(self.slots.pages_per_slot(to.slot));
        let step = PAGES_AT_ONCE.next_multiple_of(self.slots.row_pages(to.slot));
        let (mut first, mut copied) = (0, 0);
        while first < pages {
            let end = (first + step).min(pages);
            let runs = match extents.as_slice() {
                [only] => self.clean_runs(*only, first..end),
                _ => vec![first..end],
            };
            let mut pages = Vec::new();
            for run in runs {
                pages.extend(self.read_run(*from, run, lost).await?);
            }
            copied += pages.len();
            if !pages.is_empty() {
                let write = SlotWrite { extent: extents[0], slot: *to, pages };
                self.slots.write_batch(vec![write], &NoIntents).await?;
            }
            first = end;
        }
        self.slots.make_known(*to).await?;
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
    async fn read_run(
        &self,
        slot: SlotRef,
        run: Range<u32>,
        lost: Lost,
    ) -> Result<Vec<(u32, PageContent)>, IoError> {
        match self.read_whole(slot, run.clone()).await {
            Ok(buf) => Ok(stored_pages(run.start, buf)),
            Err(IoError::DataLost) if lost == Lost::StaysLost => {
                let mut pages = Vec::new();
                for page in run {
                    match self.read_whole(slot, page..page + 1).await {
                        Ok(buf) => pages.extend(stored_pages(page, buf)),
                        Err(IoError::DataLost) => pages.push((page, PageContent::Lost)),
                        Err(error) => return Err(error),
                    }
                }
                Ok(pages)
            }
            Err(error) => Err(error),
        }
    }

    async fn read_whole(&self, slot: SlotRef, run: Range<u32>) -> Result<BufMut, IoError> {
        let buf = self.world.buffer((run.end - run.start) * PAGE_SECTORS as u32);
        let (result, buf) = self.slots.read(slot, u64::from(run.start) * PAGE_SECTORS, buf).await;
        result.map(|()| buf)
    }
}

/// What was read from page `first` on, without the pages that are zeros.
fn stored_pages(first: u32, buf: BufMut) -> Vec<(u32, PageContent)> {
    let buf = buf.freeze();
    let zeros = split_zero_pages(&buf);
    let content = |place: u32| {
        let sector = place * PAGE_SECTORS as u32;
        // No intent says where in the log it lies.
        let log = LogPlace { position: 0, page: place };
        (first + place, PageContent::Data { buf: buf.slice(sector, PAGE_SECTORS as u32), log })
    };
    (0u32..).zip(zeros).filter(|(_, zero)| !zero).map(|(place, _)| content(place)).collect()
}

impl State {
    /// Takes extents that no batch is on and that have nothing unfinished; false where that is not so of one of them.
    fn claim(&mut self, extents: &[ExtentId]) -> bool {
        let is_free = |extent: &ExtentId| {
            !self.busy.contains(extent)
                && !self.failed.contains_key(extent)
                && !self.fresh.contains_key(extent)
                && !self.emptied.contains(extent)
                && !self.copies.contains_key(extent)
                && !self.held.contains(&extent.volume)
        };
        let are_free = extents.iter().all(is_free);
        if are_free {
            self.busy.extend(extents);
        }
        are_free
    }

    fn unclaim(&mut self, extents: &[ExtentId]) {
        extents.iter().for_each(|extent| _ = self.busy.remove(extent));
    }
}
