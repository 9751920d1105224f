//! What the shards and the control task know of a scrub that they all have a part in.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A scrub of a pool as all its shards and the control task see it.
#[derive(Debug)]
pub struct ScrubShared {
    stop: AtomicBool,
    /// By shard: the slot it looks at next.
    next: Box<[AtomicU64]>,
    from: u64,
    slots_done: AtomicU64,
    /// Slots that no extent had any more when their turn came: what they held was discarded, or copied from there.
    slots_vacated: AtomicU64,
    pages: AtomicU64,
    repaired: AtomicU64,
    unrecoverable: AtomicU64,
    /// Slots that could not be looked at.
    skipped: AtomicU64,
}

impl ScrubShared {
    /// A scrub of so many shards from slot `from` on.
    pub(crate) fn new(shards: usize, from: u64) -> ScrubShared {
        ScrubShared {
            stop: AtomicBool::new(false),
            next: (0..shards).map(|_| AtomicU64::new(from)).collect(),
            from,
            slots_done: AtomicU64::new(0),
            slots_vacated: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            repaired: AtomicU64::new(0),
            unrecoverable: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        }
    }

    /// The slot it begins at.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// A shard looks at this slot next; all are behind it at the end.
    pub fn look_at(&self, shard: usize, slot: u64) {
        self.next[shard].store(slot, Ordering::Relaxed);
    }

    /// So many pages were wrong and repaired, and so many nothing can make right.
    pub fn count_wrong(&self, repaired: u64, unrecoverable: u64) {
        self.repaired.fetch_add(repaired, Ordering::Relaxed);
        self.unrecoverable.fetch_add(unrecoverable, Ordering::Relaxed);
    }

    /// A slot of so many pages was looked at.
    pub fn count_slot(&self, pages: u64) {
        self.slots_done.fetch_add(1, Ordering::Relaxed);
        self.pages.fetch_add(pages, Ordering::Relaxed);
    }

    /// A slot had no extent any more when its turn came.
    pub fn count_vacated(&self) {
        self.slots_vacated.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks all shards to stop after the slot they look at.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether shards are to stop.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Everything before this slot has been looked at by all shards.
    pub(crate) fn next_slot(&self) -> u64 {
        self.next.iter().map(|next| next.load(Ordering::Relaxed)).min().unwrap_or(self.from)
    }

    /// Slots that are behind it, by all shards: looked at, or there was nothing to look at, or they could not be.
    pub(crate) fn slots_passed(&self) -> u64 {
        let counts = [&self.slots_done, &self.slots_vacated, &self.skipped];
        counts.into_iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Pages that were looked at.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Pages that were wrong and repaired.
    pub(crate) fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Whether it has seen everything, and everything was right.
    pub(crate) fn found_nothing(&self) -> bool {
        self.repaired() == 0 && self.unrecoverable() == 0 && self.skipped() == 0
    }

    /// Slots that could not be looked at.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// So many slots could not be looked at.
    pub fn skip(&self, slots: u64) {
        self.skipped.fetch_add(slots, Ordering::Relaxed);
    }

    /// Pages that nothing could make right.
    pub(crate) fn unrecoverable(&self) -> u64 {
        self.unrecoverable.load(Ordering::Relaxed)
    }
}
