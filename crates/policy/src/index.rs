//! From a page to its frame: a hash table of frames alone, whose keys are the frames' pages.

use crate::frames::{Frame, PageKey};
use crate::hash::{hash, place};

/// No frame.
const NONE: u32 = u32::MAX;

/// Linear probing; what is behind a removed entry moves up, so there are no tombstones.
pub(crate) struct Index(Vec<u32>);

impl Index {
    /// An index for so many frames: two thirds full at most.
    pub(crate) fn new(capacity: usize) -> Index {
        Index(vec![NONE; capacity + capacity / 2 + 1])
    }

    /// The place of a page's entry, or the free one where it would stand.
    #[inline]
    fn find(&self, page: PageKey, page_of: impl Fn(Frame) -> PageKey) -> (usize, Option<Frame>) {
        let mut at = place(hash(page), self.0.len());
        loop {
            let frame = Frame(self.0[at]);
            if frame.0 == NONE {
                return (at, None);
            }
            if page_of(frame) == page {
                return (at, Some(frame));
            }
            at = self.after(at);
        }
    }

    #[inline]
    pub(crate) fn get(&self, page: PageKey, page_of: impl Fn(Frame) -> PageKey) -> Option<Frame> {
        self.find(page, page_of).1
    }

    /// Says where a page lies that has no entry yet.
    pub(crate) fn insert(&mut self, page: PageKey, frame: Frame, page_of: impl Fn(Frame) -> PageKey) {
        let (at, known) = self.find(page, page_of);
        assert!(known.is_none(), "page {} is in the cache already", page.0);
        self.0[at] = frame.0;
    }

    /// Forgets where a page lies.
    pub(crate) fn remove(&mut self, page: PageKey, page_of: impl Fn(Frame) -> PageKey) {
        let (mut hole, known) = self.find(page, &page_of);
        debug_assert!(known.is_some(), "page {} has an entry", page.0);
        let mut at = self.after(hole);
        while self.0[at] != NONE {
            let home = place(hash(page_of(Frame(self.0[at]))), self.0.len());
            // It may move into the hole if that is not before its home, going round.
            if self.distance(home, at) >= self.distance(hole, at) {
                self.0[hole] = self.0[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.0[hole] = NONE;
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.0.len() { 0 } else { at + 1 }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.0.len() - from }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.len() * size_of::<u32>()
    }
}
