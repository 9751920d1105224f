//! A batch on its way from memory to its slots.
//!
//! 1. Wait for reads of these slots that are under way; later ones find the pages in memory.
//! 2. Slots: intents into the log, writes in place, tables, flush.
//! 3. What a cache on flash held of these pages is believed by no opening any more.
//! 4. Mapping: slots that hold data for the first time become durable.
//! 5. The pages are forgotten, unless they were written again meanwhile. What is read much stays in the caches.
//! 6. Extents of which nothing is left are unmapped.
//! 7. The log is released.
//!
//! After a failure everything stays as it was, and the extents of the batch are tried again one by one.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_integrity::{Intent, IntentLog, SlotOutcome};
use tier0_journal::{Append, Position, Record};
use tier0_stats::Op;
use tier0_units::{ExtentId, Nanos, SlotRef};
use tier0_world::{Buf, IoError, PlantedBug, planted};

use super::select::{Batch, SlotBatch};
use super::state::{DestageFailure, State};
use super::{Inner, PAGE_BYTES, io_error};
use crate::locks::PageGuard;
use crate::pages::Page;

/// The first wait before a failed extent is tried again; it doubles with each failure.
const RETRY_MIN: Nanos = Nanos::from_millis(100);
/// The longest wait.
const RETRY_MAX: Nanos = Nanos::from_secs(30);

/// The intents of one batch.
struct BatchIntents<'a> {
    inner: &'a Inner,
    batch: u64,
    begun: Cell<bool>,
}

impl IntentLog for BatchIntents<'_> {
    fn append(&self, intents: Vec<Intent>) -> Pin<Box<dyn Future<Output = Result<(), IoError>> + '_>> {
        if !self.begun.replace(true) {
            // No intent can come before what is not acknowledged now.
            let floor = self.inner.ring().stable();
            self.inner.state.borrow_mut().floors.insert(self.batch, floor);
        }
        let append = |intent: Intent| {
            self.inner
                .ring()
                .append_urgent(Record { header: intent.encode_header(), pages: intent.buffers() })
        };
        // All at once, so that they share frames; from here on the ring counts them.
        let appends: Vec<_> = intents.into_iter().map(append).collect();
        self.inner.state.borrow_mut().intents_due.remove(&self.batch);
        Box::pin(until_stable(appends))
    }
}

/// A batch that is in its slots.
struct Written {
    outcomes: Vec<SlotOutcome>,
    /// By slot of the batch, the pages that were read lately on flash, where there is a cache.
    read_on_flash: Vec<Vec<u32>>,
}

async fn until_stable(appends: Vec<Append>) -> Result<(), IoError> {
    for appended in join_all(appends).await {
        appended.map_err(|error| io_error(&error))?;
    }
    Ok(())
}

impl Inner {
    /// Carries a batch out and books its end.
    pub(crate) async fn destage(self: &Rc<Self>, batch: Batch) {
        let pages = batch.page_count();
        tracing::trace!(id = batch.id, pages, cause = ?batch.cause, "a batch is destaged");
        let written = self.write_batch(&batch).await;
        let is_ok = written.is_ok();
        match written {
            Ok(written) => self.complete_batch(&batch, written).await,
            Err(error) => self.fail_batch(&batch, error),
        }
        tracing::trace!(id = batch.id, "the batch has ended");
        let now = self.world.now();
        self.destaged.ended(Op::Write, pages * PAGE_BYTES, || now.saturating_sub(batch.began), is_ok);
        let mut state = self.state.borrow_mut();
        for taken in &batch.slots {
            state.busy.remove(&taken.extent);
        }
        state.in_flight.remove(&batch.id);
        state.intents_due.remove(&batch.id);
        if batch.aged {
            // Half of the drives' time at most; but what took long because a drive was away says nothing of the next.
            let took = now.saturating_sub(batch.began);
            state.next_aged = now + took.min(self.options.age_max);
        }
        drop(state);
        self.release();
        self.state.borrow_mut().end_rates(now, batch.page_count());
        self.leave_memory();
        self.progress.notify_all();
        self.work.notify_all();
    }

    async fn write_batch(&self, batch: &Batch) -> Result<Written, IoError> {
        join_all(batch.slots.iter().map(|taken| self.readers.wait(taken.slot.slot))).await;
        let read_on_flash = match planted(PlantedBug::KeepOldPageOnDestage) {
            true => Vec::new(),
            false => self.strike(batch),
        };
        let intents = BatchIntents { inner: self, batch: batch.id, begun: Cell::new(false) };
        let outcomes = self.slots.write_batch(self.slot_writes(batch), &intents).await?;
        self.settle_flash().await;
        let mapped: Vec<(ExtentId, SlotRef)> = {
            let state = self.state.borrow();
            let fresh = outcomes.iter().filter(|outcome| !outcome.all_zero);
            fresh
                .filter_map(|outcome| state.fresh.get_key_value(&outcome.extent))
                .map(|(e, s)| (*e, *s))
                .collect()
        };
        if !mapped.is_empty() {
            if !planted(PlantedBug::ForgetMapping) {
                self.mapping.commit(mapped.clone(), Vec::new()).await?;
            }
            let mut state = self.state.borrow_mut();
            for (extent, _) in &mapped {
                state.fresh.remove(extent);
            }
        }
        Ok(Written { outcomes, read_on_flash })
    }

    /// What the slots of a batch hold is about to change. By slot of the batch, the pages that were read lately on flash.
    fn strike(&self, batch: &Batch) -> Vec<Vec<u32>> {
        if let Some(clean) = self.clean.get() {
            batch.slots.iter().for_each(|taken| clean.strike(taken.slot.slot, taken.numbers()));
        }
        let Some(flash) = self.flash.get() else { return Vec::new() };
        batch.slots.iter().map(|taken| flash.cache.strike(taken.slot.slot, taken.numbers())).collect()
    }

    async fn complete_batch(self: &Rc<Self>, batch: &Batch, written: Written) {
        let Written { outcomes, read_on_flash } = written;
        {
            let mut state = self.state.borrow_mut();
            for (place, taken) in batch.slots.iter().enumerate() {
                if let Some(clean) = self.clean.get() {
                    clean.keep_written(taken.slot.slot, &state.unchanged(taken, |_, page| page.was_read()));
                }
                if let (Some(flash), Some(read)) = (self.flash.get(), read_on_flash.get(place))
                    && !read.is_empty()
                {
                    for (number, content) in state.unchanged(taken, |number, _| read.contains(&number)) {
                        flash.cache.offer_written(taken.slot.slot, number, content.as_slice());
                    }
                }
                if let Some(counter) = self.counter() {
                    counter.written(taken.extent, &mut taken.numbers());
                }
                state.forget(taken);
            }
            state.floors.remove(&batch.id);
            state.counts.flushed.add_batch(batch.cause, batch.page_count());
            state.last_failure = None;
        }
        let emptied: Vec<(ExtentId, SlotRef, PageGuard)> = outcomes
            .iter()
            .filter(|outcome| outcome.all_zero)
            .filter_map(|outcome| self.begin_unmap(outcome))
            .collect();
        if !emptied.is_empty() {
            self.unmap(emptied).await;
        }
    }

    /// Closes an extent of which nothing is left, unless a write to it is about to begin.
    fn begin_unmap(&self, outcome: &SlotOutcome) -> Option<(ExtentId, SlotRef, PageGuard)> {
        let SlotOutcome { extent, slot, .. } = *outcome;
        let dirty = self.state.borrow().pages.of(extent).next().is_some();
        if dirty || self.mapping.slot(extent) != Some(slot) {
            return None;
        }
        let guard = self.locks.try_lock_whole(extent)?;
        self.state.borrow_mut().emptied.insert(extent);
        Some((extent, slot, guard))
    }

    /// Gives slots back. Waits for the reads of them; their extents are locked, and read as zeros meanwhile.
    async fn unmap(&self, emptied: Vec<(ExtentId, SlotRef, PageGuard)>) {
        join_all(emptied.iter().map(|(_, slot, _)| self.readers.wait(slot.slot))).await;
        emptied.iter().for_each(|(_, slot, _)| self.free_slot(*slot));
        let unmapped = emptied.iter().map(|(extent, slot, _)| (*extent, *slot)).collect();
        let result = self.mapping.commit(Vec::new(), unmapped).await;
        let mut state = self.state.borrow_mut();
        for (extent, slot, _guard) in emptied {
            state.emptied.remove(&extent);
            match result {
                Ok(()) => {
                    state.fresh.remove(&extent);
                }
                // Its table is not on the drives if it was never committed.
                Err(_) if state.fresh.contains_key(&extent) => self.allocate_slot(slot),
                Err(_) => {}
            }
        }
        if let Err(error) = result {
            tracing::warn!("extents that are empty keep their slots: {error}");
        }
    }

    fn fail_batch(&self, batch: &Batch, error: IoError) {
        let mut state = self.state.borrow_mut();
        let floor = state.floors.remove(&batch.id);
        state.counts.failures += 1;
        state.last_failure = Some(error);
        let first = batch.slots.first().map(|taken| taken.extent).expect("a batch has slots");
        tracing::error!(
            "destaging {} pages of {} extents, {first} among them, failed: {error}; the pages stay in the log and \
             are tried again",
            batch.page_count(),
            batch.slots.len(),
        );
        let now = self.world.now();
        for taken in &batch.slots {
            state.note_failure(taken, error, floor, now);
        }
    }

    /// Waits until record number `sequence` is destaged, or superseded.
    pub(crate) async fn wait_destaged(&self, sequence: u64) -> Result<(), IoError> {
        self.unless_refused(self.until_destaged(sequence)).await?
    }

    async fn until_destaged(&self, sequence: u64) -> Result<(), IoError> {
        loop {
            {
                let mut state = self.state.borrow_mut();
                let record = state.records.by_sequence(sequence).filter(|record| record.is_needed());
                let Some(extent) = record.map(|record| record.extent) else { return Ok(()) };
                if let Some(failure) = state.failed.get(&extent) {
                    return Err(failure.error);
                }
                state.urgent.insert(extent);
            }
            self.check_log()?;
            self.work.notify_all();
            self.progress.wait().await;
        }
    }
}

impl State {
    /// The pages of a batch, of those that are wanted, that are not written again since.
    fn unchanged(&self, taken: &SlotBatch, is_wanted: impl Fn(u32, Page) -> bool) -> Vec<(u32, Buf)> {
        let content = |(number, page): &(u32, Page)| {
            let (index, newest) = (page.index()?, self.pages.get(taken.extent, *number)?);
            let is_wanted = newest.record == page.record && is_wanted(*number, newest);
            is_wanted.then(|| (*number, self.records.get(page.record).page(index)))
        };
        taken.pages.iter().filter_map(content).collect()
    }

    /// The pages of a slot are destaged.
    fn forget(&mut self, taken: &SlotBatch) {
        if let Some(failure) = self.failed.remove(&taken.extent) {
            self.unpin_all(failure.pins);
        }
        for (number, page) in &taken.pages {
            if self.pages.forget(taken.extent, *number, page.record) {
                self.records.unpin(page.record);
                if page.index().is_some() {
                    self.records.count_destaged(page.record);
                }
            }
            // The batch's own need.
            self.records.unpin(page.record);
        }
    }

    /// An extent could not be destaged once more: it waits longer each time.
    pub(super) fn fail_extent(
        &mut self,
        extent: ExtentId,
        error: IoError,
        now: Nanos,
    ) -> &mut DestageFailure {
        let failure = self.failed.entry(extent).or_insert_with(|| DestageFailure {
            due: now,
            failures: 0,
            error,
            floor: None,
            pages: BTreeSet::new(),
            pins: Vec::new(),
        });
        failure.failures += 1;
        failure.error = error;
        let wait = RETRY_MIN.0.saturating_mul(1 << failure.failures.min(20)).min(RETRY_MAX.0);
        failure.due = now + Nanos(wait);
        failure
    }

    /// The pages of a slot may be half destaged. The batch's needs of its records become the extent's.
    fn note_failure(&mut self, taken: &SlotBatch, error: IoError, floor: Option<Position>, now: Nanos) {
        let failure = self.fail_extent(taken.extent, error, now);
        failure.pages.extend(taken.numbers());
        failure.floor = [failure.floor, floor].into_iter().flatten().min();
        if failure.pins.is_empty() || floor.is_some() {
            failure.pins.extend(taken.records());
        } else {
            self.unpin_all(taken.records());
        }
    }
}
