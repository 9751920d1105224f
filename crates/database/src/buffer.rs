//! A database's page buffer: which pages are in memory, and which of them are dirty.
//!
//! It knows no time and does no I/O: its user reads what is missing, and writes what it hands out. One of the product's own policies
//! decides which page gives way.

use std::collections::BTreeMap;

use tier0_policy::{PageKey, Part, Policy, PolicyKind};

/// Pages in memory.
pub struct Buffer {
    policy: Box<dyn Policy>,
    /// Dirty pages, with the end of the log record of their newest change.
    dirty: BTreeMap<u64, u64>,
    /// The same of dirty pages that gave way and are not written yet: they still have their memory.
    leaving: BTreeMap<u64, u64>,
}

/// What a page that was asked for did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It was in memory.
    Hit,
    /// It was on its way out, is back, and need not be read.
    Back {
        /// The page that gave way, and must be written before its memory is free.
        evicted: Option<u64>,
    },
    /// It has to be read.
    Miss {
        /// The page that gave way, and must be written before its memory is free.
        evicted: Option<u64>,
    },
}

impl Buffer {
    /// An empty buffer of so many pages, at least one.
    pub fn new(pages: u64, policy: PolicyKind) -> Buffer {
        let frames = pages.clamp(1, u64::from(u32::MAX) - 2) as usize;
        Buffer { policy: policy.of(frames), dirty: BTreeMap::new(), leaving: BTreeMap::new() }
    }

    /// Asks for a page, and makes room for it where it is not there.
    pub fn access(&mut self, page: u64) -> Access {
        if self.policy.get(PageKey(page), Part::First).is_some() {
            return Access::Hit;
        }
        let evicted = self.policy.insert(PageKey(page), Part::First).evicted.map(|key| key.0);
        let evicted = evicted.filter(|gone| match self.dirty.remove(gone) {
            Some(state) => {
                self.leaving.insert(*gone, state);
                true
            }
            None => false,
        });
        match self.leaving.remove(&page) {
            Some(state) => {
                self.dirty.insert(page, state);
                Access::Back { evicted }
            }
            None => Access::Miss { evicted },
        }
    }

    /// A page in memory is changed by a log record that ends at `log`.
    pub fn change(&mut self, page: u64, log: u64) {
        // It can be on its way out already, where memory is very short.
        if let Some(newest) = self.leaving.get_mut(&page) {
            *newest = log.max(*newest);
            return;
        }
        let newest = self.dirty.entry(page).or_insert(log);
        *newest = log.max(*newest);
    }

    /// Takes the dirty pages around a page that lie side by side with it, itself among them, at most `most`: they are about to be
    /// written and count as clean. The first page, how many, and up to where the log must be written before.
    pub fn gather(&mut self, page: u64, most: u64, bounds: std::ops::Range<u64>) -> Option<Gathered> {
        let mut newest = self.take(page)?;
        let (mut first, mut end) = (page, page + 1);
        while end - first < most
            && end < bounds.end
            && let Some(log) = self.take(end)
        {
            newest = newest.max(log);
            end += 1;
        }
        while end - first < most
            && first > bounds.start
            && let Some(log) = self.take(first - 1)
        {
            newest = newest.max(log);
            first -= 1;
        }
        Some(Gathered { first, pages: end - first, newest })
    }

    fn take(&mut self, page: u64) -> Option<u64> {
        self.leaving.remove(&page).or_else(|| self.dirty.remove(&page))
    }

    /// Whether a page is in memory, and not on its way out.
    pub fn holds(&self, page: u64) -> bool {
        self.policy.peek(PageKey(page)).is_some()
    }

    /// The first dirty page at or behind `page`.
    pub fn next_dirty(&self, page: u64) -> Option<u64> {
        self.dirty.range(page..).next().map(|(page, _)| *page)
    }

    /// Dirty pages in memory, without those on their way out.
    pub fn dirty(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// Pages in memory.
    pub fn pages(&self) -> u64 {
        self.policy.len() as u64
    }

    /// Pages that it can hold.
    pub fn capacity(&self) -> u64 {
        self.policy.capacity() as u64
    }
}

/// Pages that are written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// The first.
    pub first: u64,
    /// How many.
    pub pages: u64,
    /// The log must be written up to here before.
    pub newest: u64,
}
