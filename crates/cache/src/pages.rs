//! Dirty pages by extent and page: which record has the newest content of each.
//!
//! The key is logical, never where an extent lies at the moment: extents move, and several can have one slot. An entry
//! takes 20 bytes (12 of key, 8 of value), about 29 with the tree's usual slack; content and log position are the record's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use tier0_units::ExtentId;

/// A record's number, counted from the write cache's start and around at 2^32: fewer are alive at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordId(pub(crate) u32);

/// Where a page's newest content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The record.
    pub(crate) record: RecordId,
    /// Which of the record's data pages, or [`Page::ZERO`]; with [`Page::UNSETTLED`] and [`Page::READ`] where they hold.
    index: u32,
}

impl Page {
    /// A power cut may have caught the page on its way to its slot, and no batch has written it there since.
    const UNSETTLED: u32 = 1 << 31;
    /// It was read since it was written.
    const READ: u32 = 1 << 30;
    const ZERO: u32 = Self::READ - 1;

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
        let index = self.index & !(Self::UNSETTLED | Self::READ);
        (index != Self::ZERO).then_some(index)
    }

    /// Whether it was read since it was written.
    pub(crate) fn was_read(self) -> bool {
        self.index & Self::READ != 0
    }

    fn is_unsettled(self) -> bool {
        self.index & Self::UNSETTLED != 0
    }
}

/// A page of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    extent: ExtentId,
    page: u32,
}

impl Key {
    fn range(extent: ExtentId, pages: Range<u32>) -> Range<Key> {
        let key = |page| Key { extent, page };
        key(pages.start)..key(pages.end.max(pages.start))
    }
}

/// All dirty pages.
#[derive(Default)]
pub(crate) struct DirtyPages {
    pages: BTreeMap<Key, Page>,
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

    /// The dirty pages of an extent, ascending.
    pub(crate) fn of(&self, extent: ExtentId) -> impl Iterator<Item = (u32, Page)> + '_ {
        self.range(extent, 0..u32::MAX)
    }

    /// The dirty pages in a range of an extent, ascending.
    pub(crate) fn range(
        &self,
        extent: ExtentId,
        pages: Range<u32>,
    ) -> impl Iterator<Item = (u32, Page)> + '_ {
        self.pages.range(Key::range(extent, pages)).map(|(key, page)| (key.page, *page))
    }

    /// A page, if it is dirty.
    pub(crate) fn get(&self, extent: ExtentId, page: u32) -> Option<Page> {
        self.pages.get(&Key { extent, page }).copied()
    }

    /// The dirty pages in a range of an extent are read.
    pub(crate) fn note_read(&mut self, extent: ExtentId, pages: Range<u32>) {
        self.pages.range_mut(Key::range(extent, pages)).for_each(|(_, page)| page.index |= Page::READ);
    }

    /// Sets the newest content of a page; returns what it was before. An unsettled page stays so.
    pub(crate) fn insert(&mut self, extent: ExtentId, page: u32, mut content: Page) -> Option<Page> {
        let place = self.pages.entry(Key { extent, page });
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
    pub(crate) fn insert_recovered(&mut self, extent: ExtentId, page: u32, content: Page) {
        self.insert(extent, page, content);
        let found = self.pages.get_mut(&Key { extent, page }).expect("it was just inserted");
        self.unsettled += u64::from(!found.is_unsettled());
        found.index |= Page::UNSETTLED;
    }

    /// A page was destaged. It is forgotten if its newest content is still `record`'s; false if it has been written since.
    pub(crate) fn forget(&mut self, extent: ExtentId, page: u32, record: RecordId) -> bool {
        let Entry::Occupied(mut place) = self.pages.entry(Key { extent, page }) else { return false };
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

    /// An extent has another slot: no power cut has caught what is dirty of it there, so it is unsettled no more.
    pub(crate) fn settle(&mut self, extent: ExtentId) {
        let key = |page| Key { extent, page };
        for (_, page) in self.pages.range_mut(key(0)..=key(u32::MAX)) {
            self.unsettled -= u64::from(page.is_unsettled());
            page.index &= !Page::UNSETTLED;
        }
    }

    /// How many pages recovery has loaded that were not destaged since.
    pub(crate) fn unsettled(&self) -> u64 {
        self.unsettled
    }

    /// The extents of these pages, each as often as it has some.
    pub(crate) fn unsettled_extents(&self) -> impl Iterator<Item = ExtentId> + '_ {
        let unsettled = self.pages.iter().filter(|(_, page)| page.is_unsettled());
        unsettled.map(|(key, _)| key.extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: u32 = u32::MAX - 1;

    fn extent(index: u32) -> ExtentId {
        ExtentId { volume: 1, index }
    }

    #[test]
    fn ranges_stay_within_their_extent() {
        let mut pages = DirtyPages::default();
        for (index, page) in [(1, LAST), (2, 0), (2, 5), (2, LAST), (3, 0)] {
            assert_eq!(pages.insert(extent(index), page, Page::zero(RecordId(9))), None);
        }
        let of = |range: Range<u32>| pages.range(extent(2), range).map(|(page, _)| page).collect::<Vec<_>>();
        assert_eq!(of(0..u32::MAX), [0, 5, LAST]);
        assert_eq!(of(1..6), [5]);
        assert!(of(6..6).is_empty());
        assert_eq!(pages.of(extent(2)).count(), 3);
        assert_eq!(pages.of(ExtentId { volume: 2, index: 2 }).count(), 0);
    }

    #[test]
    fn only_the_version_that_was_destaged_is_forgotten() {
        let (mut pages, four) = (DirtyPages::default(), extent(4));
        pages.insert(four, 7, Page::data(RecordId(1), 0));
        assert_eq!(pages.insert(four, 7, Page::data(RecordId(2), 3)), Some(Page::data(RecordId(1), 0)));
        assert!(!pages.forget(four, 7, RecordId(1)));
        assert_eq!(pages.range(four, 7..8).map(|(_, page)| page.index()).collect::<Vec<_>>(), [Some(3)]);
        pages.insert(four, 8, Page::zero(RecordId(2)));
        assert_eq!((pages.len(), pages.data_len()), (2, 1));
        assert!(pages.forget(four, 7, RecordId(2)));
        assert_eq!((pages.len(), pages.data_len()), (1, 0));
        pages.insert(four, 8, Page::data(RecordId(3), 0));
        pages.insert(four, 8, Page::zero(RecordId(4)));
        assert_eq!(pages.data_len(), 0);
        assert!(pages.forget(four, 8, RecordId(4)) && pages.is_empty());
    }

    #[test]
    fn a_page_that_is_read_says_so_until_it_is_written_again() {
        let (mut pages, four) = (DirtyPages::default(), extent(4));
        pages.insert_recovered(four, 7, Page::data(RecordId(1), 3));
        pages.insert(four, 8, Page::zero(RecordId(1)));
        pages.note_read(four, 0..8);
        let was_read = |pages: &DirtyPages, page| pages.get(four, page).is_some_and(Page::was_read);
        assert!(was_read(&pages, 7) && !was_read(&pages, 8) && pages.get(four, 9).is_none());
        assert_eq!((pages.get(four, 7).and_then(Page::index), pages.unsettled()), (Some(3), 1));
        pages.insert(four, 7, Page::data(RecordId(2), 0));
        assert!(!was_read(&pages, 7));
        assert_eq!(pages.unsettled(), 1);
    }

    #[test]
    fn a_recovered_page_is_unsettled_until_it_is_destaged_whatever_is_written_to_it() {
        let (mut pages, four, five) = (DirtyPages::default(), extent(4), extent(5));
        pages.insert_recovered(four, 7, Page::data(RecordId(1), 0));
        pages.insert_recovered(four, 7, Page::zero(RecordId(2)));
        pages.insert_recovered(five, 0, Page::data(RecordId(2), 1));
        pages.insert(four, 7, Page::data(RecordId(3), 9));
        assert_eq!(pages.range(four, 7..8).map(|(_, page)| page.index()).collect::<Vec<_>>(), [Some(9)]);
        let unsettled: Vec<ExtentId> = pages.unsettled_extents().collect();
        assert_eq!((pages.unsettled(), unsettled), (2, vec![four, five]));
        assert!(!pages.forget(four, 7, RecordId(2)), "the second version was destaged, the third is newer");
        assert_eq!((pages.unsettled(), pages.len()), (1, 2));
        assert!(pages.forget(five, 0, RecordId(2)));
        assert_eq!((pages.unsettled(), pages.data_len()), (0, 1));
        pages.insert(four, 7, Page::zero(RecordId(4)));
        assert_eq!((pages.unsettled(), pages.data_len()), (0, 0));
    }

    #[test]
    fn pages_of_an_extent_that_has_another_slot_are_settled() {
        let (mut pages, four, five) = (DirtyPages::default(), extent(4), extent(5));
        pages.insert_recovered(four, 7, Page::data(RecordId(1), 0));
        pages.insert_recovered(four, 9, Page::zero(RecordId(2)));
        pages.insert(four, 11, Page::data(RecordId(3), 5));
        pages.insert_recovered(five, 0, Page::data(RecordId(2), 1));
        pages.settle(four);
        let kept: Vec<_> = pages.of(four).map(|(number, page)| (number, page.index())).collect();
        assert_eq!(kept, [(7, Some(0)), (9, None), (11, Some(5))]);
        assert_eq!((pages.unsettled(), pages.len(), pages.data_len()), (1, 4, 3));
        assert_eq!(pages.unsettled_extents().collect::<Vec<_>>(), [five]);
        assert!(pages.forget(four, 7, RecordId(1)) && pages.forget(four, 9, RecordId(2)));
        assert!(pages.forget(four, 11, RecordId(3)) && pages.forget(five, 0, RecordId(2)));
        assert_eq!((pages.unsettled(), pages.len(), pages.data_len()), (0, 0, 0));
    }

    #[test]
    fn an_entry_takes_twenty_bytes() {
        assert_eq!(size_of::<Key>() + size_of::<Page>(), 20);
    }
}
