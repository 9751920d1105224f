//! What was verified, what was found wrong, and what became of it, in one shard.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use tier0_raid::io::{RepairEvent, RepairReport, RepairSource};
use tier0_raid::set::SlotMap;
use tier0_units::Lba;

use crate::lost::LostPages;

/// A page by its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotPage {
    /// The slot.
    pub slot: u64,
    /// The page's number in the slot.
    pub page: u32,
}

/// What was wrong with a copy of a slot's table, which is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFault {
    /// Its drive could not read it.
    Unreadable,
    /// It is damaged.
    Damaged,
    /// It is older than the others, as a crash between their writes leaves it.
    Stale,
}

/// A copy of a slot's table that was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEvent {
    /// The member whose drive has it.
    pub member: usize,
    /// Where it lies there.
    pub lba: Lba,
    /// What was wrong.
    pub fault: TableFault,
}

/// Who is told of tables; called on the data path, and must not wait.
type TableReport = Box<dyn Fn(&TableEvent)>;

/// The counts of one shard and pool.
pub struct IntegrityCounts {
    slots: Arc<SlotMap>,
    pages_verified: Cell<u64>,
    repaired_by_copy: Cell<u64>,
    repaired_by_parity: Cell<u64>,
    repaired_parity: Cell<u64>,
    overwritten: Cell<u64>,
    repaired_tables: Cell<u64>,
    unrecoverable: Cell<u64>,
    lost: RefCell<LostPages>,
    left_off: Cell<u64>,
    tables_told: RefCell<Option<TableReport>>,
}

fn add(counter: &Cell<u64>, count: u64) {
    counter.set(counter.get() + count);
}

impl IntegrityCounts {
    /// Nothing counted yet, in the slots of `slots`.
    pub fn new(slots: Arc<SlotMap>) -> IntegrityCounts {
        IntegrityCounts {
            slots,
            pages_verified: Cell::default(),
            repaired_by_copy: Cell::default(),
            repaired_by_parity: Cell::default(),
            repaired_parity: Cell::default(),
            overwritten: Cell::default(),
            repaired_tables: Cell::default(),
            unrecoverable: Cell::default(),
            lost: RefCell::default(),
            left_off: Cell::default(),
            tables_told: RefCell::default(),
        }
    }

    /// Has `report` be told of every copy of a table that was wrong.
    pub fn tell_tables(&self, report: impl Fn(&TableEvent) + 'static) {
        *self.tables_told.borrow_mut() = Some(Box::new(report));
    }

    pub(crate) fn table_found(&self, event: &TableEvent) {
        if let Some(report) = &*self.tables_told.borrow() {
            report(event);
        }
    }

    /// Pages that were read and pass.
    pub fn pages_verified(&self) -> u64 {
        self.pages_verified.get()
    }

    /// Data pages that were replaced by what a mirror has.
    pub fn repaired_by_copy(&self) -> u64 {
        self.repaired_by_copy.get()
    }

    /// Data pages that were replaced by what P or Q or both say.
    pub fn repaired_by_parity(&self) -> u64 {
        self.repaired_by_parity.get()
    }

    /// Parity pages that contradicted data which passes, and were made anew.
    pub fn repaired_parity(&self) -> u64 {
        self.repaired_parity.get()
    }

    /// Data pages that were wrong when new content was about to be written over them.
    pub fn overwritten(&self) -> u64 {
        self.overwritten.get()
    }

    /// Copies of slot tables that were stale or damaged, and were written again.
    pub fn repaired_tables(&self) -> u64 {
        self.repaired_tables.get()
    }

    /// Pages that were met and that nothing could make right. One that is remembered counts again only after it was written.
    pub fn unrecoverable(&self) -> u64 {
        self.unrecoverable.get()
    }

    /// The pages that nothing could make right, each once, as far as they are remembered: 4096 ranges at most.
    pub fn unrecoverable_pages(&self) -> Vec<SlotPage> {
        let pages = |(slot, range): (u64, Range<u32>)| range.map(move |page| SlotPage { slot, page });
        self.lost.borrow().ranges().flat_map(pages).collect()
    }

    /// The same as ranges of slots, ascending.
    pub fn unrecoverable_ranges(&self) -> Vec<(u64, Range<u32>)> {
        self.lost.borrow().ranges().collect()
    }

    /// Pages that are in no range, because there are too many; each counts as often as it is met.
    pub fn unrecoverable_left_off(&self) -> u64 {
        self.left_off.get()
    }

    pub(crate) fn count_verified(&self, pages: u64) {
        add(&self.pages_verified, pages);
    }

    pub(crate) fn count_table_copies(&self, copies: u64) {
        add(&self.repaired_tables, copies);
    }

    /// Whether it was not known yet.
    fn count_unrecoverable(&self, page: SlotPage) -> bool {
        let mut lost = self.lost.borrow_mut();
        if lost.contains(page.slot, page.page) {
            return false;
        }
        add(&self.unrecoverable, 1);
        if !lost.insert(page.slot, page.page) {
            add(&self.left_off, 1);
        }
        true
    }

    /// No copy of a slot's table is right, so none of its pages is. Whether that was not known yet.
    pub fn note_table_lost(&self, slot: u64) -> bool {
        let pages = self.slots.slot_sectors(slot) / tier0_units::PAGE_SECTORS;
        (0..pages as u32).filter(|page| self.count_unrecoverable(SlotPage { slot, page: *page })).count() > 0
    }

    /// These pages were written anew: they are no longer lost.
    pub(crate) fn forget_unrecoverable(&self, slot: u64, pages: impl Iterator<Item = u32>) {
        let mut lost = self.lost.borrow_mut();
        if lost.is_empty() {
            return;
        }
        pages.for_each(|page| lost.remove(slot, page));
    }

    /// The slot has no extent any more.
    pub(crate) fn forget_unrecoverable_slot(&self, slot: u64) {
        self.lost.borrow_mut().remove_slot(slot);
    }
}

impl RepairReport for IntegrityCounts {
    fn report(&self, event: &RepairEvent) {
        tracing::debug!(?event, "a page is wrong");
        match (event.source, event.page) {
            (Some(RepairSource::Copy(_)), _) => add(&self.repaired_by_copy, 1),
            (Some(RepairSource::Data), _) => add(&self.repaired_parity, 1),
            (Some(RepairSource::P | RepairSource::Q | RepairSource::PAndQ | RepairSource::Zeros), _) => {
                add(&self.repaired_by_parity, 1)
            }
            (Some(RepairSource::Overwritten), _) => add(&self.overwritten, 1),
            (None, page) => {
                let pages_per_slot = self.slots.slot_sectors_of(event.set) / tier0_units::PAGE_SECTORS;
                let of_slot = |page: u64| {
                    let slot = self.slots.slots_of(event.set).nth((page / pages_per_slot) as usize)?;
                    Some(SlotPage { slot, page: (page % pages_per_slot) as u32 })
                };
                match page.and_then(of_slot) {
                    Some(page) => {
                        self.count_unrecoverable(page);
                    }
                    None => add(&self.unrecoverable, 1),
                }
            }
        }
    }

    fn table_lost(&self, slot: u64) {
        self.note_table_lost(slot);
    }
}
