//! One slot's table in memory: 4 bytes per page, nothing at all while every page reads as zeros.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use tier0_raid::checksum::{GIVEN_UP, NOT_STORED, STAND_IN, page_checksum};
use tier0_raid::io::{Expect, Expected};
use tier0_raid::layout::{ColumnMask, Row};
use tier0_raid::set::SetIndex;
use tier0_units::SlotRef;
use tier0_world::{PlantedBug, planted, prefetch};

/// What stands for the checksum of every page where none are kept.
const UNCHECKED: u32 = 1;

/// Bytes of entries in memory, of all tables together.
pub(super) type Usage = Rc<Cell<usize>>;

/// Where a slot lies, for its table's sake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableHome {
    pub(crate) slot: SlotRef,
    pub(crate) set: SetIndex,
    /// The slot's number in its set.
    pub(crate) slot_in_set: u64,
    /// The first page among the set's data.
    pub(crate) first_page: u64,
    /// The slot's first row.
    pub(crate) first_row: Row,
}

/// The checksums of one slot's pages.
pub(crate) struct SlotTable {
    home: TableHome,
    pages: u32,
    /// What pages are where there are no entries.
    absent: u32,
    /// A checksum, or [`NOT_STORED`] or [`GIVEN_UP`]. Empty while no page is stored: then every row is unwritten, and what
    /// the drives hold of pages that were given up counts in no parity.
    entries: RefCell<Box<[u32]>>,
    /// Pages that are stored.
    stored: Cell<u32>,
    usage: Usage,
    /// The newest write of it; 0 if it was never written.
    pub(super) generation: Cell<u64>,
    /// Whether memory has what no write has taken along.
    pub(super) dirty: Cell<bool>,
    /// Whether the newest write may not be stable.
    pub(super) unflushed: Cell<bool>,
    /// Columns whose copy lacks the newest write.
    pub(super) lacking: Cell<ColumnMask>,
    /// Columns whose copy cannot be read where the write after the newest one goes.
    pub(super) spoiled: Cell<ColumnMask>,
    /// Asked for since eviction last came by.
    pub(super) referenced: Cell<bool>,
}

impl SlotTable {
    /// A table whose pages all read as zeros, never written.
    pub(super) fn zero(home: TableHome, pages: u32, usage: &Usage) -> SlotTable {
        SlotTable {
            home,
            pages,
            absent: NOT_STORED,
            entries: RefCell::default(),
            stored: Cell::new(0),
            usage: usage.clone(),
            generation: Cell::new(0),
            dirty: Cell::new(false),
            unflushed: Cell::new(false),
            lacking: Cell::new(ColumnMask::EMPTY),
            spoiled: Cell::new(ColumnMask::EMPTY),
            referenced: Cell::new(true),
        }
    }

    /// Stands for the table of a slot that has none: every page is stored, whatever the drives hold is right, and nothing
    /// is ever to be written.
    pub(super) fn untracked(home: TableHome, pages: u32, usage: &Usage) -> SlotTable {
        let mut table = SlotTable::zero(home, pages, usage);
        table.absent = UNCHECKED;
        table.stored.set(pages);
        table.generation.set(1);
        table
    }

    /// Whether it is a table at all.
    pub(crate) fn is_tracked(&self) -> bool {
        self.absent == NOT_STORED
    }

    /// Every page is stored, with this checksum.
    pub(super) fn load_full(&self, checksum: u32) {
        self.load(1, &vec![checksum; self.pages as usize]);
    }

    /// In the place of a table that is lost, or of which only a write `generation` can be read that may not be the newest:
    /// every page is stored, and none passes before it is written. What an older write has the checksum of may have been given
    /// up since, and still lie there.
    pub(super) fn load_lost(&self, generation: u64) {
        self.load(generation, &vec![STAND_IN; self.pages as usize]);
        self.dirty.set(true);
    }

    /// Whether there are pages of which nothing is known: none of them passes before it is written.
    pub(crate) fn has_unknown(&self) -> bool {
        self.entries.borrow().contains(&STAND_IN)
    }

    /// The table is what a copy says after all, in its write `generation`. Its own next write counts more than that copy.
    pub(crate) fn recall(&self, generation: u64, entries: &[u32]) {
        let newest = generation.max(self.generation.get());
        self.load(newest, entries);
        self.dirty.set(true);
    }

    /// A table as it was read, in its write `generation`.
    pub(super) fn load(&self, generation: u64, entries: &[u32]) {
        assert_eq!(entries.len(), self.pages as usize, "a table has one entry per page");
        self.generation.set(generation);
        // Pages that are stored first: without any nothing else is kept.
        for wanted in [true, false] {
            for (page, entry) in entries.iter().enumerate().filter(|(_, entry)| is_data(**entry) == wanted) {
                self.put(page as u32, *entry);
            }
        }
    }

    pub(crate) fn home(&self) -> &TableHome {
        &self.home
    }

    /// Whether it was never written: its slot is newly allocated.
    pub(crate) fn is_fresh(&self) -> bool {
        self.generation.get() == 0
    }

    /// Whether its newest write may not be stable.
    pub(crate) fn is_unflushed(&self) -> bool {
        self.unflushed.get()
    }

    /// Whether memory has what was not written.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.get()
    }

    /// Whether every page reads as zeros.
    pub(crate) fn is_all_zero(&self) -> bool {
        self.stored.get() == 0
    }

    /// Whether page `page` of the slot is stored; else it reads as zeros.
    #[inline]
    pub(crate) fn is_stored(&self, page: u32) -> bool {
        is_data(self.entry(page))
    }

    #[inline]
    fn entry(&self, page: u32) -> u32 {
        debug_assert!(page < self.pages, "page {page} is behind the slot's {}", self.pages);
        self.entries.borrow().get(page as usize).copied().unwrap_or(self.absent)
    }

    /// All entries.
    pub(super) fn snapshot(&self) -> Vec<u32> {
        let entries = self.entries.borrow();
        if entries.is_empty() { vec![NOT_STORED; self.pages as usize] } else { entries.to_vec() }
    }

    /// Page `page` of the slot holds data with this checksum from now on.
    pub(crate) fn set_stored(&self, page: u32, bytes: &[u8]) {
        if !self.is_tracked() {
            return;
        }
        let entry = page_checksum(bytes);
        // Without payload every write changes something, as it would with it.
        // What has no bytes looks like what was there before, but is new.
        if self.entry(page) != entry || bytes.is_empty() {
            self.put(page, entry);
            self.dirty.set(true);
        }
    }

    /// Page `page` of the slot, whose place was filled with zeros, passes no more before it is written: zeros have another
    /// checksum.
    pub(crate) fn set_lost(&self, page: u32) {
        if self.is_tracked() && self.entry(page) != STAND_IN {
            self.put(page, STAND_IN);
            self.dirty.set(true);
        }
    }

    /// Page `page` of the slot reads as zeros from now on; its place was left as it is.
    pub(crate) fn give_up(&self, page: u32) {
        if self.is_tracked() && self.is_stored(page) {
            self.put(page, GIVEN_UP);
            self.dirty.set(true);
        }
    }

    /// Page `page` of the slot was filled with zeros.
    pub(crate) fn set_zero(&self, page: u32) {
        if self.is_tracked() && self.entry(page) != NOT_STORED {
            self.put(page, NOT_STORED);
            self.dirty.set(true);
        }
    }

    fn put(&self, page: u32, entry: u32) {
        let mut entries = self.entries.borrow_mut();
        if entries.is_empty() {
            if !is_data(entry) {
                return;
            }
            *entries = vec![NOT_STORED; self.pages as usize].into_boxed_slice();
            self.usage.set(self.usage.get() + self.bytes());
        }
        let old = std::mem::replace(&mut entries[page as usize], entry);
        self.stored.set(self.stored.get() - u32::from(is_data(old)) + u32::from(is_data(entry)));
        if self.stored.get() == 0 {
            *entries = Box::default();
            self.usage.set(self.usage.get() - self.bytes());
        }
    }

    fn bytes(&self) -> usize {
        self.pages as usize * size_of::<u32>()
    }
}

/// Whether an entry stands for a page that is stored.
#[inline]
fn is_data(entry: u32) -> bool {
    !matches!(entry, NOT_STORED | GIVEN_UP)
}

/// Whether two tables say the same of every page. What a page that is not stored leaves in its place is no difference: memory
/// does not keep it where no page is stored.
pub(super) fn is_same(one: &[u32], other: &[u32]) -> bool {
    let agrees = |(one, other): (&u32, &u32)| one == other || !(is_data(*one) || is_data(*other));
    one.len() == other.len() && one.iter().zip(other).all(agrees)
}

impl Drop for SlotTable {
    fn drop(&mut self) {
        if !self.entries.get_mut().is_empty() {
            self.usage.set(self.usage.get() - self.bytes());
        }
    }
}

impl Expect for SlotTable {
    fn expect(&self, set: SetIndex, page: u64) -> Expected {
        debug_assert!(set == self.home.set && page >= self.home.first_page, "a page of another slot");
        match self.entry((page - self.home.first_page) as u32) {
            NOT_STORED => Expected::Zero,
            GIVEN_UP => Expected::GivenUp,
            _ if !self.is_tracked() || planted(PlantedBug::IgnoreChecksum) => Expected::Unknown,
            checksum => Expected::Crc(checksum),
        }
    }

    fn all_zero(&self, set: SetIndex, mut pages: Range<u64>) -> bool {
        if self.stored.get() < self.pages {
            return pages.all(|page| self.expect(set, page).reads_as_zeros());
        }
        let entries = self.entries.borrow();
        if let Some(entry) = entries.get((pages.start - self.home.first_page) as usize) {
            // An array has more checksums than the processor's caches hold, and a drive's time is enough to fetch one.
            prefetch(entry);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(usage: &Usage) -> SlotTable {
        let home = TableHome {
            slot: SlotRef { slot: 4, allocation: 2 },
            set: SetIndex(1),
            slot_in_set: 1,
            first_page: 32,
            first_row: Row(8),
        };
        SlotTable::zero(home, 32, usage)
    }

    #[test]
    fn zeros_take_no_memory() {
        let usage = Usage::default();
        let one = table(&usage);
        assert_eq!((one.expect(SetIndex(1), 35), usage.get()), (Expected::Zero, 0));
        one.set_stored(3, &[7; 4096]);
        assert_eq!(one.expect(SetIndex(1), 35), Expected::Crc(page_checksum(&[7; 4096])));
        assert_eq!((one.is_all_zero(), one.is_dirty(), usage.get()), (false, true, 128));
        one.give_up(3);
        assert_eq!((one.is_all_zero(), usage.get()), (true, 0));
        one.set_stored(0, &[1]);
        drop(one);
        assert_eq!(usage.get(), 0);
    }

    #[test]
    fn only_pages_that_are_not_stored_are_zeros() {
        let one = table(&Usage::default());
        assert!(one.all_zero(SetIndex(1), 32..64));
        (0..31).for_each(|page| one.set_stored(page, &[7; 4096]));
        assert!(one.all_zero(SetIndex(1), 63..64));
        assert!(!one.all_zero(SetIndex(1), 62..64));
        one.set_stored(31, &[7; 4096]);
        assert!(!one.all_zero(SetIndex(1), 63..64));
    }

    #[test]
    fn without_checksums_all_is_stored_and_nothing_known() {
        let usage = Usage::default();
        let one = SlotTable::untracked(*table(&usage).home(), 32, &usage);
        one.set_zero(1);
        one.give_up(2);
        one.set_stored(3, &[7; 4096]);
        let expected: Vec<Expected> = (32..36).map(|page| one.expect(SetIndex(1), page)).collect();
        assert_eq!(expected, [Expected::Unknown; 4]);
        assert_eq!(
            (one.is_all_zero(), one.is_dirty(), one.is_fresh(), usage.get()),
            (false, false, false, 0)
        );
    }

    #[test]
    fn what_was_given_up_is_known_as_that_until_it_is_written() {
        let (one, other) = (table(&Usage::default()), table(&Usage::default()));
        (1..4).for_each(|page| one.set_stored(page, &[7; 4096]));
        [1, 2].into_iter().for_each(|page| one.give_up(page));
        one.give_up(0);
        one.set_zero(2);
        other.load(1, &one.snapshot());
        for table in [one, other] {
            let expected: Vec<Expected> = (32..35).map(|page| table.expect(SetIndex(1), page)).collect();
            assert_eq!(expected, [Expected::Zero, Expected::GivenUp, Expected::Zero]);
            assert!(table.all_zero(SetIndex(1), 32..35) && !table.is_stored(1) && table.is_stored(3));
            table.give_up(3);
            assert!(table.is_all_zero());
            assert_eq!(table.expect(SetIndex(1), 33), Expected::Zero, "its row is unwritten");
            assert_eq!(table.usage.get(), 0);
        }
    }
}
