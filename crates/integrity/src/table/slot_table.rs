//! One slot's table in memory: 4 bytes per page, nothing at all while every page reads as zeros.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use tier0_raid::checksum::page_checksum;
use tier0_raid::io::{Expect, Expected};
use tier0_raid::layout::{ColumnMask, Row};
use tier0_raid::set::SetIndex;
use tier0_units::SlotRef;
use tier0_world::{PlantedBug, planted};

/// What a page that is stored has for a checksum where nothing is checked.
const STORED: u32 = 1;

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
    verified: bool,
    /// Empty while every entry is 0.
    entries: RefCell<Box<[u32]>>,
    /// Entries that are not 0.
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
    pub(super) fn zero(home: TableHome, pages: u32, verified: bool, usage: &Usage) -> SlotTable {
        SlotTable {
            home,
            pages,
            verified,
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

    /// A table as it was read, in its write `generation`.
    pub(super) fn load(&self, generation: u64, entries: &[u32]) {
        assert_eq!(entries.len(), self.pages as usize, "a table has one entry per page");
        self.generation.set(generation);
        for (page, entry) in entries.iter().enumerate().filter(|(_, entry)| **entry != 0) {
            self.put(page as u32, *entry);
        }
    }

    /// Every page is stored, and nothing is known of it.
    pub(super) fn load_unchecked(&self) {
        self.generation.set(1);
        (0..self.pages).for_each(|page| self.put(page, STORED));
    }

    pub(crate) fn home(&self) -> &TableHome {
        &self.home
    }

    /// Whether it was never written: its slot is newly allocated.
    pub(crate) fn is_fresh(&self) -> bool {
        self.generation.get() == 0
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
        self.entry(page) != 0
    }

    #[inline]
    fn entry(&self, page: u32) -> u32 {
        debug_assert!(page < self.pages, "page {page} is behind the slot's {}", self.pages);
        self.entries.borrow().get(page as usize).copied().unwrap_or(0)
    }

    /// All entries.
    pub(super) fn snapshot(&self) -> Vec<u32> {
        let entries = self.entries.borrow();
        if entries.is_empty() { vec![0; self.pages as usize] } else { entries.to_vec() }
    }

    /// Page `page` of the slot holds data with this checksum from now on.
    pub(crate) fn set_stored(&self, page: u32, bytes: &[u8]) {
        let entry = if self.verified { page_checksum(bytes).get() } else { STORED };
        // Without payload every write changes something, as it would with it.
        if self.entry(page) != entry || !self.verified {
            self.put(page, entry);
            self.dirty.set(true);
        }
    }

    /// Page `page` of the slot reads as zeros from now on.
    pub(crate) fn set_zero(&self, page: u32) {
        if self.is_stored(page) {
            self.put(page, 0);
            self.dirty.set(true);
        }
    }

    fn put(&self, page: u32, entry: u32) {
        let mut entries = self.entries.borrow_mut();
        if entries.is_empty() {
            if entry == 0 {
                return;
            }
            *entries = vec![0; self.pages as usize].into_boxed_slice();
            self.usage.set(self.usage.get() + self.bytes());
        }
        let old = std::mem::replace(&mut entries[page as usize], entry);
        match (old, entry) {
            (0, 1..) => self.stored.set(self.stored.get() + 1),
            (1.., 0) => self.stored.set(self.stored.get() - 1),
            _ => {}
        }
        if self.stored.get() == 0 {
            *entries = Box::default();
            self.usage.set(self.usage.get() - self.bytes());
        }
    }

    fn bytes(&self) -> usize {
        self.pages as usize * size_of::<u32>()
    }
}

/// Asks the processor to have it at hand soon. An array has more checksums than its caches hold, and a drive's time is
/// enough to fetch one.
#[inline]
fn prefetch(entry: &u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing, and the address is valid anyway.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = entry;
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
            0 => Expected::Zero,
            _ if !self.verified || planted(PlantedBug::IgnoreChecksum) => Expected::Unknown,
            checksum => Expected::Crc(checksum),
        }
    }

    fn all_zero(&self, set: SetIndex, mut pages: Range<u64>) -> bool {
        if self.stored.get() < self.pages {
            return pages.all(|page| self.expect(set, page) == Expected::Zero);
        }
        let entries = self.entries.borrow();
        if let Some(entry) = entries.get((pages.start - self.home.first_page) as usize) {
            prefetch(entry);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(verified: bool, usage: &Usage) -> SlotTable {
        let home = TableHome {
            slot: SlotRef { slot: 4, allocation: 2 },
            set: SetIndex(1),
            slot_in_set: 1,
            first_page: 32,
            first_row: Row(8),
        };
        SlotTable::zero(home, 32, verified, usage)
    }

    #[test]
    fn zeros_take_no_memory() {
        let usage = Usage::default();
        let one = table(true, &usage);
        assert_eq!((one.expect(SetIndex(1), 35), usage.get()), (Expected::Zero, 0));
        one.set_stored(3, &[7; 4096]);
        assert_eq!(one.expect(SetIndex(1), 35), Expected::Crc(page_checksum(&[7; 4096]).get()));
        assert_eq!((one.is_all_zero(), one.is_dirty(), usage.get()), (false, true, 128));
        one.set_zero(3);
        assert_eq!((one.is_all_zero(), usage.get()), (true, 0));
        one.set_stored(0, &[1]);
        drop(one);
        assert_eq!(usage.get(), 0);
    }

    #[test]
    fn only_pages_that_are_not_stored_are_zeros() {
        let one = table(true, &Usage::default());
        assert!(one.all_zero(SetIndex(1), 32..64));
        (0..31).for_each(|page| one.set_stored(page, &[7; 4096]));
        assert!(one.all_zero(SetIndex(1), 63..64));
        assert!(!one.all_zero(SetIndex(1), 62..64));
        one.set_stored(31, &[7; 4096]);
        assert!(!one.all_zero(SetIndex(1), 63..64));
    }

    #[test]
    fn without_checks_only_zeros_are_known() {
        let usage = Usage::default();
        let one = table(false, &usage);
        one.load_unchecked();
        one.set_zero(1);
        assert_eq!(one.expect(SetIndex(1), 32), Expected::Unknown);
        assert_eq!(one.expect(SetIndex(1), 33), Expected::Zero);
    }
}
