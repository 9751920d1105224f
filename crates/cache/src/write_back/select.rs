//! Which pages are destaged next.
//!
//! The log is given back from its oldest record on, and drives like the order of addresses. So a *pass* takes the
//! extents of the oldest records, a window of the log, and goes through them in the order of slots; with every row that
//! has a page of the window it takes all dirty pages of that row, because their parity is written anyway.

use tier0_integrity::{LogPlace, PageContent, SlotWrite};
use tier0_units::{ExtentId, Nanos, SlotRef};

use super::Inner;
use super::state::{Pass, State};
use crate::SlotStore;
use crate::pages::{Page, RecordId, SLOT_PAGES_MAX};

/// One slot's part of a batch.
pub(crate) struct SlotBatch {
    pub(crate) extent: ExtentId,
    pub(crate) slot: SlotRef,
    /// The pages, and whose content of them is written.
    pub(crate) pages: Vec<(u32, Page)>,
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
}

/// Which records are to be destaged, and how urgently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Those before a number, because they have aged.
    Aged(u64),
    /// All, oldest first.
    Space,
}

impl<S: SlotStore> Inner<S> {
    /// The next batch, if there is anything that can be destaged; its pages are its own until it ends.
    pub(crate) fn next_batch(&self, need: Need) -> Option<Batch> {
        let mut state = self.state.borrow_mut();
        let limit = match need {
            Need::Aged(limit) => limit,
            Need::Space => state.records.end(),
        };
        let slots = if self.capacity.is_tight(&self.usage(&state), self.batch_pages_max() as u64) {
            self.take_oldest(&mut state)
        } else {
            self.take_any(&mut state, limit)
        };
        let slots = slots?;
        let now = self.world.now();
        for taken in &slots {
            state.busy.insert(taken.extent);
            for (_, page) in &taken.pages {
                state.records.pin(page.record);
            }
        }
        let id = state.batches_begun;
        state.batches_begun += 1;
        state.flying_pages += slots.iter().map(|taken| taken.pages.len() as u64).sum::<u64>();
        state.in_flight.insert(id);
        state.rate.begin(now);
        Some(Batch { id, slots, began: now, aged: matches!(need, Need::Aged(_)) })
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

    fn take_any(&self, state: &mut State, limit: u64) -> Option<Vec<SlotBatch>> {
        let now = self.world.now();
        let mut due = state.troubled.iter().filter(|(_, trouble)| trouble.due <= now);
        let due = due.find(|(extent, _)| !state.busy.contains(extent)).map(|(extent, _)| *extent);
        let slots = due.and_then(|extent| self.take_troubled(state, extent));
        let slots = slots.or_else(|| self.take_urgent(state)).or_else(|| self.take_pass(state));
        slots.or_else(|| {
            self.begin_pass(state, limit);
            self.take_pass(state)
        })
    }

    /// The rows of the oldest record alone: nothing else may use the log's last room.
    fn take_oldest(&self, state: &mut State) -> Option<Vec<SlotBatch>> {
        let (sequence, extent) = state.oldest().filter(|(_, extent)| !state.busy.contains(extent))?;
        match state.troubled.get(&extent) {
            Some(trouble) if trouble.due <= self.world.now() => self.take_troubled(state, extent),
            Some(_) => None,
            None => {
                let mut taken = self.take_extent(state, extent, sequence + 1, usize::MAX)?;
                taken.pages.retain(|(_, page)| state.records.is_before(page.record, sequence + 1));
                // Its newest pages may still be on their way into the log; then it is about to be superseded.
                (!taken.pages.is_empty()).then(|| vec![taken])
            }
        }
    }

    /// An extent that failed, alone. Whatever the failed batch left half done must be covered, so all its pages are
    /// taken or none.
    fn take_troubled(&self, state: &mut State, extent: ExtentId) -> Option<Vec<SlotBatch>> {
        let all = |taken: &SlotBatch| {
            taken.pages.len() == state.pages.range(taken.slot.slot, 0..SLOT_PAGES_MAX).count()
        };
        let taken = self.take_extent(state, extent, u64::MAX, usize::MAX).filter(all);
        let pages = taken.as_ref().map_or(0, |taken| taken.pages.len() as u64);
        let has_room = self.capacity.has_room_for_retry(&self.usage(state), pages);
        let taken = taken.filter(|_| has_room);
        if taken.is_none() {
            // Some of it is on its way into the log, or the log is full of failed attempts: look again a little later.
            let trouble = state.troubled.get_mut(&extent).expect("it is troubled");
            trouble.due = self.world.now() + if has_room { RETRY_SOON } else { RETRY_LATE };
        }
        taken.map(|taken| vec![taken])
    }

    /// Extents that somebody waits for.
    fn take_urgent(&self, state: &mut State) -> Option<Vec<SlotBatch>> {
        let mut slots = Vec::new();
        let mut room = self.batch_pages_max();
        let urgent: Vec<(u64, ExtentId)> = state.urgent.iter().copied().collect();
        for (slot, extent) in urgent {
            if room == 0 {
                break;
            }
            if state.busy.contains(&extent) || state.troubled.contains_key(&extent) {
                continue;
            }
            state.urgent.remove(&(slot, extent));
            if let Some(taken) = self.take_extent(state, extent, u64::MAX, room) {
                room = room.saturating_sub(taken.pages.len());
                slots.push(taken);
            }
        }
        (!slots.is_empty()).then_some(slots)
    }

    /// The next extents of the pass.
    fn take_pass(&self, state: &mut State) -> Option<Vec<SlotBatch>> {
        let mut slots = Vec::new();
        let mut room = self.batch_pages_max();
        while room > 0 {
            let Some((_, extent)) = state.pass.extents.pop_front() else { break };
            if state.busy.contains(&extent) || state.troubled.contains_key(&extent) {
                continue;
            }
            let cutoff = state.pass.cutoff;
            if let Some(taken) = self.take_extent(state, extent, cutoff, room) {
                room = room.saturating_sub(taken.pages.len());
                slots.push(taken);
            }
        }
        (!slots.is_empty()).then_some(slots)
    }

    /// The rows of an extent that have a page of a record before `cutoff`, up to about `room` pages.
    fn take_extent(&self, state: &State, extent: ExtentId, cutoff: u64, room: usize) -> Option<SlotBatch> {
        let slot = self.mapping.slot(extent)?;
        let row_pages = self.slots.row_pages();
        let stable = |page: &(u32, Page)| state.records.get(page.1.record).is_stable();
        let dirty: Vec<(u32, Page)> =
            state.pages.range(slot.slot, 0..SLOT_PAGES_MAX).filter(stable).collect();
        let mut pages = Vec::new();
        for row in dirty.chunk_by(|a, b| a.0 / row_pages == b.0 / row_pages) {
            let wanted = row.iter().any(|(_, page)| state.records.is_before(page.record, cutoff));
            if wanted && (pages.is_empty() || pages.len() + row.len() <= room) {
                pages.extend_from_slice(row);
            }
        }
        (!pages.is_empty()).then_some(SlotBatch { extent, slot, pages })
    }

    /// Collects the extents of the oldest records before `limit`.
    fn begin_pass(&self, state: &mut State, limit: u64) {
        let window = self.capacity.window_blocks();
        let mut pass = Pass::default();
        let mut extents = Vec::new();
        let mut blocks = 0;
        for (sequence, record) in state.records.iter_from(state.records.first()) {
            if sequence >= limit || !record.is_stable() || (blocks >= window && !extents.is_empty()) {
                break;
            }
            pass.cutoff = sequence + 1;
            blocks += record.blocks();
            let free = !state.busy.contains(&record.extent) && !state.troubled.contains_key(&record.extent);
            if record.is_needed() && free {
                extents.push(record.extent);
            }
        }
        let slot_of = |extent: ExtentId| self.mapping.slot(extent).map(|slot| (slot.slot, extent));
        let mut slots: Vec<(u64, ExtentId)> = extents.into_iter().filter_map(slot_of).collect();
        slots.sort_unstable();
        slots.dedup();
        pass.extents = slots.into();
        state.pass = pass;
    }

    /// Pages of a batch: no more than a window of the log.
    fn batch_pages_max(&self) -> usize {
        self.options.batch_pages_max.min(self.capacity.window_blocks() as usize)
    }
}

/// When a troubled extent that has nothing to destage right now is looked at again.
const RETRY_SOON: Nanos = Nanos::from_millis(10);
/// When one is looked at again for which the log has no room.
const RETRY_LATE: Nanos = Nanos::from_secs(1);

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
