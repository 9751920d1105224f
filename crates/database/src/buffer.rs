//! A database's page buffer: which pages are in memory, and which of them are dirty.
//!
//! It knows no time: whoever uses it reads what is missing, and writes what it hands out. Which page gives way is decided by one
//! of the product's own policies.

use std::collections::BTreeMap;

use tier0_policy::{PageKey, Part, Policy, PolicyKind};

/// A page's first change since it was last written, and the newest, as positions in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// The log up to here must be written before the page.
    pub newest: u64,
}

/// Pages in memory.
pub struct Buffer {
    policy: Box<dyn Policy>,
    dirty: BTreeMap<u64, Dirty>,
    /// Dirty pages that gave way and are not written yet: they still have their memory.
    leaving: BTreeMap<u64, Dirty>,
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

    /// A page in memory is changed by a log record that ends at `log`. True where it was clean.
    pub fn change(&mut self, page: u64, log: u64) -> bool {
        // It can be on its way out already, where memory is very short.
        if let Some(state) = self.leaving.get_mut(&page) {
            state.newest = state.newest.max(log);
            return false;
        }
        let mut was_clean = false;
        let state = self.dirty.entry(page).or_insert_with(|| {
            was_clean = true;
            Dirty { newest: log }
        });
        state.newest = state.newest.max(log);
        was_clean
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
        let state = self.leaving.remove(&page).or_else(|| self.dirty.remove(&page));
        state.map(|state| state.newest)
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
