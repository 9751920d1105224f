//! Dirty pages by their place: which record has the newest content of each.
//!
//! One ordered map over all slots, so that a walk through it is a walk over the drives. An entry takes 16 bytes (8 of
//! key, 8 of value), about 23 with the tree's usual slack; content, extent and log position are the record's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

/// Bits of a key that are the page in its slot: slots have at most 2^20 pages (4 GiB).
const PAGE_BITS: u32 = 20;
/// Pages that a slot can have at most.
pub(crate) const SLOT_PAGES_MAX: u32 = 1 << PAGE_BITS;

/// A record's number, counted from the write cache's start and around at 2^32: fewer are alive at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordId(pub(crate) u32);

/// Where a page's newest content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The record.
    pub(crate) record: RecordId,
    /// Which of the record's data pages, or [`Page::ZERO`]; with [`Page::UNSETTLED`] where that holds.
    index: u32,
}

impl Page {
    /// A power cut may have caught the page on its way to its slot, and no batch has written it there since.
    const UNSETTLED: u32 = 1 << 31;
    const ZERO: u32 = Self::UNSETTLED - 1;

    /// The page has data: page `index` of the record.
    pub(crate) fn data(record: RecordId, index: u32) -> Page {
        debug_assert!(index < Self::ZERO, "a record has fewer pages");
        Page { record, index }
    }

    /// The page is all zeros.
    pub(crate) fn zero(record: RecordId) -> Page {
        Page { record, index: Self::ZERO }
    }

    /// Its number among the record's data pages, unless it is zeros.
    pub(crate) fn index(self) -> Option<u32> {
        let index = self.index & !Self::UNSETTLED;
        (index != Self::ZERO).then_some(index)
    }

    fn is_unsettled(self) -> bool {
        self.index & Self::UNSETTLED != 0
    }
}

/// All dirty pages.
#[derive(Default)]
pub(crate) struct DirtyPages {
    pages: BTreeMap<u64, Page>,
    /// How many of them have data.
    data: u64,
    /// How many of them are unsettled.
    unsettled: u64,
}

impl DirtyPages {
    /// How many.
    pub(crate) fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    /// How many of them are not zeros.
    pub(crate) fn data_len(&self) -> u64 {
        self.data
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The dirty pages in a range of a slot, ascending.
    pub(crate) fn range(&self, slot: u64, pages: Range<u32>) -> impl Iterator<Item = (u32, Page)> + '_ {
        debug_assert!(pages.end <= SLOT_PAGES_MAX, "a slot has at most 2^20 pages");
        let keys = key(slot, pages.start)..key(slot, 0) + u64::from(pages.end.max(pages.start));
        self.pages.range(keys).map(|(key, page)| (*key as u32 & (SLOT_PAGES_MAX - 1), *page))
    }

    /// Sets the newest content of a page; returns what it was before. An unsettled page stays so.
    pub(crate) fn insert(&mut self, slot: u64, page: u32, mut content: Page) -> Option<Page> {
        let place = self.pages.entry(key(slot, page));
        let old = match &place {
            Entry::Occupied(old) => Some(*old.get()),
            Entry::Vacant(_) => None,
        };
        content.index |= old.map_or(0, |old| old.index & Page::UNSETTLED);
        place.insert_entry(content);
        self.data += u64::from(content.index().is_some());
        self.data -= u64::from(old.is_some_and(|old| old.index().is_some()));
        old
    }

    /// Sets the newest content of a page that recovery has found in the log: unsettled until it is destaged.
    pub(crate) fn insert_recovered(&mut self, slot: u64, page: u32, content: Page) {
        self.insert(slot, page, content);
        let found = self.pages.get_mut(&key(slot, page)).expect("it was just inserted");
        self.unsettled += u64::from(!found.is_unsettled());
        found.index |= Page::UNSETTLED;
    }

    /// A page was destaged. It is forgotten if its newest content is still `record`'s; false if it has been written since.
    pub(crate) fn forget(&mut self, slot: u64, page: u32, record: RecordId) -> bool {
        let Entry::Occupied(mut place) = self.pages.entry(key(slot, page)) else { return false };
        let found = *place.get();
        self.unsettled -= u64::from(found.is_unsettled());
        if found.record != record {
            place.get_mut().index &= !Page::UNSETTLED;
            return false;
        }
        place.remove();
        self.data -= u64::from(found.index().is_some());
        true
    }

    /// What is dirty of a slot is another's from now on, of which nothing is dirty. No power cut has caught it there, so
    /// it is unsettled no more.
    pub(crate) fn change_slot(&mut self, from: u64, to: u64) {
        let pages: Vec<(u32, Page)> = self.range(from, 0..SLOT_PAGES_MAX).collect();
        for (number, mut page) in pages {
            self.forget(from, number, page.record);
            page.index &= !Page::UNSETTLED;
            let other = self.insert(to, number, page);
            debug_assert_eq!(other, None, "nothing is dirty of the new slot");
        }
    }

    /// How many pages recovery has loaded that were not destaged since.
    pub(crate) fn unsettled(&self) -> u64 {
        self.unsettled
    }

    /// The slots of these pages, each as often as it has some.
    pub(crate) fn unsettled_slots(&self) -> impl Iterator<Item = u64> + '_ {
        let unsettled = self.pages.iter().filter(|(_, page)| page.is_unsettled());
        unsettled.map(|(key, _)| key >> PAGE_BITS)
    }
}

fn key(slot: u64, page: u32) -> u64 {
    debug_assert!(page < SLOT_PAGES_MAX && slot < 1 << (64 - PAGE_BITS), "slot and page fit into a key");
    slot << PAGE_BITS | u64::from(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stay_within_their_slot() {
        let mut pages = DirtyPages::default();
        for (slot, page) in [(1, SLOT_PAGES_MAX - 1), (2, 0), (2, 5), (2, SLOT_PAGES_MAX - 1), (3, 0)] {
            assert_eq!(pages.insert(slot, page, Page::zero(RecordId(9))), None);
        }
        let of = |range: Range<u32>| pages.range(2, range).map(|(page, _)| page).collect::<Vec<_>>();
        assert_eq!(of(0..SLOT_PAGES_MAX), [0, 5, SLOT_PAGES_MAX - 1]);
        assert_eq!(of(1..6), [5]);
        assert!(of(6..6).is_empty());
    }

    #[test]
    fn only_the_version_that_was_destaged_is_forgotten() {
        let mut pages = DirtyPages::default();
        pages.insert(4, 7, Page::data(RecordId(1), 0));
        assert_eq!(pages.insert(4, 7, Page::data(RecordId(2), 3)), Some(Page::data(RecordId(1), 0)));
        assert!(!pages.forget(4, 7, RecordId(1)));
        assert_eq!(pages.range(4, 7..8).map(|(_, page)| page.index()).collect::<Vec<_>>(), [Some(3)]);
        pages.insert(4, 8, Page::zero(RecordId(2)));
        assert_eq!((pages.len(), pages.data_len()), (2, 1));
        assert!(pages.forget(4, 7, RecordId(2)));
        assert_eq!((pages.len(), pages.data_len()), (1, 0));
        pages.insert(4, 8, Page::data(RecordId(3), 0));
        pages.insert(4, 8, Page::zero(RecordId(4)));
        assert_eq!(pages.data_len(), 0);
        assert!(pages.forget(4, 8, RecordId(4)) && pages.is_empty());
    }

    #[test]
    fn a_recovered_page_is_unsettled_until_it_is_destaged_whatever_is_written_to_it() {
        let mut pages = DirtyPages::default();
        pages.insert_recovered(4, 7, Page::data(RecordId(1), 0));
        pages.insert_recovered(4, 7, Page::zero(RecordId(2)));
        pages.insert_recovered(5, 0, Page::data(RecordId(2), 1));
        pages.insert(4, 7, Page::data(RecordId(3), 9));
        assert_eq!(pages.range(4, 7..8).map(|(_, page)| page.index()).collect::<Vec<_>>(), [Some(9)]);
        assert_eq!((pages.unsettled(), pages.unsettled_slots().collect::<Vec<_>>()), (2, vec![4, 5]));
        assert!(!pages.forget(4, 7, RecordId(2)), "the second version was destaged, the third is newer");
        assert_eq!((pages.unsettled(), pages.len()), (1, 2));
        assert!(pages.forget(5, 0, RecordId(2)));
        assert_eq!((pages.unsettled(), pages.data_len()), (0, 1));
        pages.insert(4, 7, Page::zero(RecordId(4)));
        assert_eq!((pages.unsettled(), pages.data_len()), (0, 0));
    }

    #[test]
    fn pages_that_change_their_slot_are_settled_there() {
        let mut pages = DirtyPages::default();
        pages.insert_recovered(4, 7, Page::data(RecordId(1), 0));
        pages.insert_recovered(4, 9, Page::zero(RecordId(2)));
        pages.insert(4, 11, Page::data(RecordId(3), 5));
        pages.insert_recovered(5, 0, Page::data(RecordId(2), 1));
        pages.change_slot(4, 8);
        assert_eq!(pages.range(4, 0..SLOT_PAGES_MAX).count(), 0);
        let moved: Vec<_> =
            pages.range(8, 0..SLOT_PAGES_MAX).map(|(number, page)| (number, page.index())).collect();
        assert_eq!(moved, [(7, Some(0)), (9, None), (11, Some(5))]);
        assert_eq!((pages.unsettled(), pages.len(), pages.data_len()), (1, 4, 3));
        assert_eq!(pages.unsettled_slots().collect::<Vec<_>>(), [5]);
        assert!(pages.forget(8, 7, RecordId(1)) && pages.forget(8, 9, RecordId(2)));
        assert!(pages.forget(8, 11, RecordId(3)) && pages.forget(5, 0, RecordId(2)));
        assert_eq!((pages.unsettled(), pages.len(), pages.data_len()), (0, 0, 0));
    }

    #[test]
    fn an_entry_takes_sixteen_bytes() {
        assert_eq!(size_of::<u64>() + size_of::<Page>(), 16);
    }
}
