//! The keys of pages that gave way lately.

use crate::frames::PageKey;
use crate::hash::{hash, place};

/// Keys that share a place.
const WAYS: usize = 4;

/// The last so many keys, roughly: one is forgotten early where its place has more than four younger ones.
pub(super) struct Ghost {
    entries: Vec<Entry>,
    /// How many were added, modulo 2^32.
    added: u32,
    capacity: u32,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    /// A part of the key's hash, never 0.
    print: u32,
    /// How many had been added before.
    stamp: u32,
}

impl Ghost {
    /// Remembers the last `capacity` keys.
    pub(super) fn new(capacity: usize) -> Ghost {
        let sets = (2 * capacity).div_ceil(WAYS).max(1);
        Ghost { entries: vec![Entry::default(); sets * WAYS], added: 0, capacity: capacity.max(1) as u32 }
    }

    fn set(&self, hash: u64) -> std::ops::Range<usize> {
        let set = place(hash, self.entries.len() / WAYS) * WAYS;
        set..set + WAYS
    }

    /// How many keys ago an entry was added; more than are remembered where it is empty.
    fn age(&self, entry: &Entry) -> u32 {
        if entry.print == 0 { u32::MAX } else { self.added.wrapping_sub(entry.stamp) }
    }

    /// Whether a page is among them.
    pub(super) fn has(&self, page: PageKey) -> bool {
        let hash = hash(page);
        let entries = &self.entries[self.set(hash)];
        entries.iter().any(|entry| entry.print == print(hash) && self.age(entry) <= self.capacity)
    }

    /// A page gave way.
    pub(super) fn add(&mut self, page: PageKey) {
        let hash = hash(page);
        let (stamp, set) = (self.added, self.set(hash));
        let rank = |at: &usize| {
            let entry = &self.entries[*at];
            if entry.print == print(hash) { u64::MAX } else { self.age(entry).into() }
        };
        let oldest = set.max_by_key(rank).expect("a set has ways");
        self.entries[oldest] = Entry { print: print(hash), stamp };
        self.added = self.added.wrapping_add(1);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
    }
}

/// The lower bits: the upper ones choose the set.
fn print(hash: u64) -> u32 {
    (hash as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_keys_are_remembered_and_older_ones_are_not() {
        let mut ghost = Ghost::new(1000);
        (0..5000).for_each(|page| ghost.add(PageKey(page)));
        let of = |pages: std::ops::Range<u64>| pages.filter(|page| ghost.has(PageKey(*page))).count();
        assert_eq!(of(0..4000), 0);
        assert!(of(4000..5000) > 940, "{}", of(4000..5000));
        assert_eq!(of(5000..9000), 0);
    }
}
