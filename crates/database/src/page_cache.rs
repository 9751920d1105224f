//! The operating system's page cache between a database and its volumes, by recency.
//!
//! A page that the database asks for and the cache holds costs no I/O. A page that was read or written is in it, as with buffered
//! files: so it also holds pages that the database's own buffer has, and helps less than as much buffer would.
//!
//! It does not delay writes: a page is written to the volume at once, and not later together with other changes of it. The log and
//! the file system's own blocks take no part of it.

use tier0_policy::{PageKey, Part, Policy, PolicyKind};

/// Pages of the database's files in memory.
pub(crate) struct PageCache {
    /// None where the operating system keeps no page.
    pages: Option<Box<dyn Policy>>,
}

impl PageCache {
    /// One of so many pages.
    pub(crate) fn new(pages: u64) -> PageCache {
        let frames = pages.min(u64::from(u32::MAX) - 2) as usize;
        PageCache { pages: (frames > 0).then(|| PolicyKind::Lru.of(frames)) }
    }

    /// Pages that it can hold.
    pub(crate) fn capacity(&self) -> u64 {
        self.pages.as_ref().map_or(0, |pages| pages.capacity() as u64)
    }

    /// The database reads or writes a page: whether it was there. It is there afterwards.
    pub(crate) fn access(&mut self, page: u64) -> bool {
        let Some(pages) = &mut self.pages else { return false };
        let is_there = pages.get(PageKey(page), Part::First).is_some();
        if !is_there {
            pages.insert(PageKey(page), Part::First);
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_was_used_longest_ago_gives_way() {
        let mut cache = PageCache::new(2);
        assert_eq!([1, 2, 1, 3].map(|page| cache.access(page)), [false, false, true, false]);
        assert_eq!([1, 2].map(|page| cache.access(page)), [true, false]);
        let mut none = PageCache::new(0);
        assert_eq!((none.access(1), none.access(1), none.capacity()), (false, false, 0));
    }
}
