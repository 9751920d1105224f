//! Which pages are destaged next.
//!
//! The log is given back from its oldest record on, and drives like the order of addresses. So a *pass* takes the
//! extents of the oldest records, a window of the log, and goes through them in the order of slots; with every row that
//! has a page of the window it takes all dirty pages of that row, because their parity is written anyway.
//!
//! An extent's block of checksums is written with every batch that has pages of the extent. So, where that costs no
//! room in the log for intents, the rows of such an extent come along whose pages are not in the youngest part of the log:
//! of scattered writes an extent's pages then share that block, and pages that are often written again are still left
//! alone, for their newest content is young.

use std::collections::BTreeMap;
use std::ops::Range;

use tier0_integrity::{LogPlace, PageContent, SlotWrite};
use tier0_units::{ExtentId, Nanos, SlotRef};

use super::Inner;
use super::state::{Pass, State};
use crate::flushing::FlushCause;
use crate::pages::{Page, RecordId};

/// One slot's part of a batch.
pub(crate) struct SlotBatch {
    pub(crate) extent: ExtentId,
    pub(crate) slot: SlotRef,
    /// The pages, and whose content of them is written.
    pub(crate) pages: Vec<(u32, Page)>,
}

impl SlotBatch {
    /// The numbers of its pages.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + Clone {
        self.pages.iter().map(|(number, _)| *number)
    }
}

/// Pages that are destaged together.
pub(crate) struct Batch {
    /// Its number.
    pub(crate) id: u64,
    pub(crate) slots: Vec<SlotBatch>,
    /// When it began.
    pub(crate) began: Nanos,
    /// Whether there was no need for it yet.
    pub(crate) aged: bool,
    /// Why it was begun.
    pub(crate) cause: FlushCause,
}

/// Which records are to be destaged, and how urgently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Those before a number, because they have aged.
    Aged(u64),
    /// All, oldest first.
    Space,
}

impl Inner {
    /// The next batch, if there is anything that can be destaged; its pages are its own until it ends. It has
    /// this cause, or is what a caller waits for.
    pub(crate) fn next_batch(&self, need: Need, cause: FlushCause) -> Option<Batch> {
        let mut state = self.state.borrow_mut();
        let limit = match need {
            Need::Aged(limit) => limit,
            Need::Space => state.records.end(),
        };
        let budget = self.capacity().pages_out_of_turn(&self.usage(&state));
        let taken = if budget < self.batch_pages_max() as u64 {
            // Beyond the limit only what failed is taken, or what a caller waits for.
            let is_early = |(sequence, extent)| sequence >= limit && !state.failed.contains_key(&extent);
            let is_urgent = state.oldest().is_some_and(is_early);
            self.take_in_turn(&mut state, limit).map(|slots| (slots, is_urgent))
        } else {
            self.take_any(&mut state, limit, usize::try_from(budget).unwrap_or(usize::MAX))
        };
        let (slots, is_urgent) = taken?;
        let cause = if is_urgent { FlushCause::Demanded } else { cause };
        let now = self.world.now();
        for taken in &slots {
            state.busy.insert(taken.extent);
            for (_, page) in &taken.pages {
                state.records.pin(page.record);
            }
        }
        let id = state.batches_begun;
        state.batches_begun += 1;
        let data = slots.iter().flat_map(|taken| &taken.pages).filter(|(_, page)| page.index().is_some());
        let intents_due = self.capacity().intent_blocks(data.count() as u64);
        state.intents_due.insert(id, intents_due);
        state.in_flight.insert(id);
        state.begin_rates(now);
        Some(Batch { id, slots, began: now, aged: matches!(need, Need::Aged(_)), cause })
    }

    /// What a batch asks of the slots.
    pub(crate) fn slot_writes(&self, batch: &Batch) -> Vec<SlotWrite> {
        let state = self.state.borrow();
        let content = |page: Page| match page.index() {
            None => PageContent::Zero,
            Some(index) => {
                let record = state.records.get(page.record);
                let log = LogPlace { position: record.position().0, page: index };
                PageContent::Data { buf: record.page(index), log }
            }
        };
        let write = |taken: &SlotBatch| SlotWrite {
            extent: taken.extent,
            slot: taken.slot,
            pages: taken.pages.iter().map(|(number, page)| (*number, content(*page))).collect(),
        };
        batch.slots.iter().map(write).collect()
    }

    /// Whatever is best, up to `budget` pages, and whether only a caller who waits wants it now.
    fn take_any(&self, state: &mut State, limit: u64, budget: usize) -> Option<(Vec<SlotBatch>, bool)> {
        let now = self.world.now();
        let due = state.failed.iter().filter(|(_, failure)| failure.due <= now);
        let due = due.map(|(extent, _)| *extent).filter(|extent| !state.is_taken(*extent));
        // All that are due: one that cannot be taken yet is due later, and must not hide the others.
        let due: Vec<ExtentId> = due.collect();
        if let Some(slots) = due.into_iter().find_map(|extent| self.take_failed(state, extent)) {
            return Some((slots, false));
        }
        if let Some(slots) = self.take_urgent(state, budget) {
            return Some((slots, true));
        }
        let slots = self.take_pass(state, budget).or_else(|| {
            self.begin_pass(state, limit);
            self.take_pass(state, budget)
        });
        Some((slots?, false))
    }

    /// The oldest pages alone, as `level` counts on them: nothing else may use the log's last room.
    fn take_in_turn(&self, state: &mut State, limit: u64) -> Option<Vec<SlotBatch>> {
        if !state.in_flight.is_empty() {
            return None;
        }
        // Who waits for an extent is served in turn as well.
        let pages = &state.pages;
        state.urgent.retain(|extent| pages.of(*extent).next().is_some());
        let limit = if state.urgent.is_empty() { limit } else { u64::MAX };
        let (sequence, extent) = state.oldest()?;
        match state.failed.get(&extent) {
            Some(failure) if failure.due <= self.world.now() => return self.take_failed(state, extent),
            Some(_) => return None,
            None if sequence >= limit => return None,
            None => {}
        }
        let mut room = self.capacity().pages_in_turn();
        let mut slots: BTreeMap<ExtentId, SlotBatch> = BTreeMap::new();
        for (sequence, record) in state.records.iter_from(state.records.first()) {
            // The move of an extent needs nothing of the destager.
            let moves = state.is_taken(record.extent) && record.is_needed();
            if !record.is_stable() || moves {
                // Fewer are worth their header only with what is on its way into the log, which gets there without
                // destaging.
                return (room == 0).then(|| sorted(slots));
            }
            let Some(slot) = self.mapping.slot(record.extent) else { continue };
            if !record.is_needed() || state.failed.contains_key(&record.extent) {
                continue;
            }
            let id = RecordId(sequence as u32);
            let newest = state.pages.of(record.extent).filter(|(_, page)| page.record == id);
            for (number, page) in newest {
                let is_data = u64::from(page.index().is_some());
                if room < is_data {
                    return Some(sorted(slots));
                }
                room -= is_data;
                let empty = || SlotBatch { extent: record.extent, slot, pages: Vec::new() };
                slots.entry(record.extent).or_insert_with(empty).pages.push((number, page));
            }
        }
        (!slots.is_empty()).then(|| sorted(slots))
    }

    /// An extent that failed, alone: all pages that the failed batches may have left half done, or none.
    fn take_failed(&self, state: &mut State, extent: ExtentId) -> Option<Vec<SlotBatch>> {
        let slot = self.mapping.slot(extent);
        let failure = &state.failed[&extent];
        let pages: Vec<(u32, Page)> =
            state.pages.of(extent).filter(|(number, _)| failure.pages.contains(number)).collect();
        let stable = pages.iter().all(|(_, page)| state.records.get(page.record).is_stable());
        let data = pages.iter().filter(|(_, page)| page.index().is_some()).count() as u64;
        let has_room = self.capacity().has_room_for_retry(&self.usage(state), data);
        if let Some(slot) = slot.filter(|_| stable && has_room && !pages.is_empty()) {
            return Some(vec![SlotBatch { extent, slot, pages }]);
        }
        // Some of it is on its way into the log, or the log is full of failed attempts: look again a little later.
        let due = self.world.now() + if has_room { RETRY_SOON } else { RETRY_LATE };
        state.failed.get_mut(&extent).expect("it has failed").due = due;
        None
    }

    /// Extents that a caller waits for, in the order of the slots they have now.
    fn take_urgent(&self, state: &mut State, budget: usize) -> Option<Vec<SlotBatch>> {
        let mut slots = Vec::new();
        let mut room = self.batch_pages_max();
        // No caller waits any more for an extent that has lost its slot.
        state.urgent.retain(|extent| self.mapping.slot(*extent).is_some());
        for (_, extent) in self.by_slot(state.urgent.iter().copied()) {
            if room == 0 {
                break;
            }
            if state.is_taken(extent) || state.failed.contains_key(&extent) {
                continue;
            }
            state.urgent.remove(&extent);
            let most = budget - taken_pages(&slots);
            if let Some(taken) = self.take_extent(state, extent, u64::MAX..u64::MAX, room, most) {
                room = room.saturating_sub(taken.pages.len());
                slots.push(taken);
            }
        }
        (!slots.is_empty()).then_some(slots)
    }

    /// The next extents of the pass.
    fn take_pass(&self, state: &mut State, budget: usize) -> Option<Vec<SlotBatch>> {
        let mut slots = Vec::new();
        let mut room = self.batch_pages_max();
        while room > 0 {
            let Some((_, extent)) = state.pass.extents.pop_front() else { break };
            if state.is_taken(extent) || state.failed.contains_key(&extent) {
                continue;
            }
            let cutoffs = state.pass.cutoff..state.pass.along;
            let most = budget - taken_pages(&slots);
            if let Some(taken) = self.take_extent(state, extent, cutoffs, room, most) {
                room = room.saturating_sub(taken.pages.len());
                slots.push(taken);
            }
        }
        (!slots.is_empty()).then_some(slots)
    }

    /// The rows of an extent that have a page of a record before the first of `cutoffs`, and with them those that have
    /// one before the second: up to `room` pages, or a row that has more of them, but never more than `most`.
    fn take_extent(
        &self,
        state: &State,
        extent: ExtentId,
        cutoffs: Range<u64>,
        room: usize,
        most: usize,
    ) -> Option<SlotBatch> {
        let slot = self.mapping.slot(extent)?;
        let row_pages = self.slots.row_pages(slot.slot);
        let stable = |page: &(u32, Page)| state.records.get(page.1.record).is_stable();
        let dirty: Vec<(u32, Page)> = state.pages.of(extent).filter(stable).collect();
        let is_before = |row: &[(u32, Page)], cutoff| {
            row.iter().any(|(_, page)| state.records.is_before(page.record, cutoff))
        };
        let rows = dirty.chunk_by(|a, b| a.0 / row_pages == b.0 / row_pages);
        let (wanted, others): (Vec<_>, Vec<_>) = rows.partition(|row| is_before(row, cutoffs.start));
        if wanted.is_empty() {
            return None;
        }
        let along = others.into_iter().filter(|row| is_before(row, cutoffs.end));
        let mut pages = Vec::new();
        for row in wanted.into_iter().chain(along) {
            if pages.is_empty() || pages.len() + row.len() <= room {
                pages.extend_from_slice(&row[..row.len().min(most)]);
            }
        }
        pages.sort_unstable_by_key(|(number, _)| *number);
        (!pages.is_empty()).then_some(SlotBatch { extent, slot, pages })
    }

    /// Collects the extents of the oldest records before `limit`.
    fn begin_pass(&self, state: &mut State, limit: u64) {
        let window = self.capacity().window_blocks();
        let mut pass = Pass::default();
        let mut extents = Vec::new();
        let mut blocks = 0;
        for (sequence, record) in state.records.iter_from(state.records.first()) {
            if sequence >= limit || !record.is_stable() || (blocks >= window && !extents.is_empty()) {
                break;
            }
            pass.cutoff = sequence + 1;
            blocks += record.blocks();
            let free = !state.is_taken(record.extent) && !state.failed.contains_key(&record.extent);
            if record.is_needed() && free {
                extents.push(record.extent);
            }
        }
        pass.extents = self.by_slot(extents).into();
        pass.along = pass.cutoff;
        if limit == state.records.end() && self.capacity().intent_blocks(1) == 0 {
            pass.along = pass.cutoff.max(limit - (limit - state.records.first()) / YOUNG_PART);
        }
        state.pass = pass;
    }

    /// Extents in the order of their slots, each once; those that have none are left out.
    fn by_slot(&self, extents: impl IntoIterator<Item = ExtentId>) -> Vec<(u64, ExtentId)> {
        let slot_of = |extent: ExtentId| self.mapping.slot(extent).map(|slot| (slot.slot, extent));
        let mut slots: Vec<(u64, ExtentId)> = extents.into_iter().filter_map(slot_of).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Pages of a batch: no more than a window of the log.
    fn batch_pages_max(&self) -> usize {
        self.options.batch_pages_max.min(self.capacity().window_blocks() as usize)
    }
}

/// The youngest part of the log whose pages do not come along. With a quarter, slow mirrors take 1.7 times as many uniform
/// writes as where nothing comes along, with none 2 times; but then what is soon written again would not meet in memory.
const YOUNG_PART: u64 = 4;
/// When a failed extent that has nothing to destage right now is looked at again.
const RETRY_SOON: Nanos = Nanos::from_millis(10);
/// When one is looked at again for which the log has no room.
const RETRY_LATE: Nanos = Nanos::from_secs(1);

/// A batch's slots, their pages ascending.
fn sorted(slots: BTreeMap<ExtentId, SlotBatch>) -> Vec<SlotBatch> {
    let mut slots: Vec<SlotBatch> = slots.into_values().collect();
    slots.iter_mut().for_each(|taken| taken.pages.sort_unstable_by_key(|(number, _)| *number));
    slots
}

fn taken_pages(slots: &[SlotBatch]) -> usize {
    slots.iter().map(|taken| taken.pages.len()).sum()
}

impl Batch {
    /// How many pages it has.
    pub(crate) fn page_count(&self) -> u64 {
        self.slots.iter().map(|taken| taken.pages.len() as u64).sum()
    }
}

impl SlotBatch {
    /// The records of its pages, once per page.
    pub(crate) fn records(&self) -> impl Iterator<Item = RecordId> + '_ {
        self.pages.iter().map(|(_, page)| page.record)
    }
}
