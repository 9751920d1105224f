//! What was found wrong on drives and what became of it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::layout::Column;
use crate::set::SetIndex;

/// What was wrong with a page of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// It was read and fails its checksum.
    Rot,
    /// Its drive could not read it.
    Unreadable,
    /// Its copies differ, and no checksum says which is right.
    CopiesDiffer,
    /// A parity contradicts data that passes.
    ParityDiffers,
}

/// Where the right content came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairSource {
    /// Another copy, of this column.
    Copy(Column),
    /// P and the other data units.
    P,
    /// Q and the other data units.
    Q,
    /// P, Q and the other data units but one more that was wrong or lost.
    PAndQ,
    /// All data units, of which the parity is made.
    Data,
    /// Nothing is stored of the page: it is zeros.
    Zeros,
    /// Nothing was needed: the page was about to be overwritten.
    Overwritten,
}

/// One page that was wrong on one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairEvent {
    /// The set.
    pub set: SetIndex,
    /// The column.
    pub column: Column,
    /// The page's address within the column in pages: for data and parity alike.
    pub column_page: u64,
    /// The page's number among the set's data, unless it is a parity's.
    pub page: Option<u64>,
    /// What was wrong.
    pub fault: PageFault,
    /// What was right and was written in its place; none if nothing was.
    pub source: Option<RepairSource>,
}

/// Is told of repairs and of pages lost for good. Called on the data path: must not wait.
pub trait RepairReport {
    /// A page was wrong.
    fn report(&self, event: &RepairEvent);

    /// No copy of a slot's table is right: all its pages are lost.
    fn table_lost(&self, slot: u64) {
        let _ = slot;
    }
}

/// Counts what is reported; shared by all shards.
#[derive(Debug, Default)]
pub struct RepairCounts {
    repaired: AtomicU64,
    lost: AtomicU64,
}

impl RepairCounts {
    /// Pages that were wrong and were made right.
    pub fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Pages that were wrong and that nothing could make right, as often as they were met.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl RepairReport for RepairCounts {
    fn report(&self, event: &RepairEvent) {
        let counter = if event.source.is_some() { &self.repaired } else { &self.lost };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
