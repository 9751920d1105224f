//! What can be wrong with a slot's table.

use thiserror::Error;
use tier0_raid::layout::ColumnMask;
use tier0_raid::set::SetIndex;
use tier0_units::SlotRef;
use tier0_world::IoError;

/// A slot's table cannot be had.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TableError {
    /// Every column that has a copy is lost.
    #[error("all copies of the table of slot {} lie on lost columns ({columns}) of set {}; bring the drives back", slot.slot, set.0)]
    ColumnsLost {
        /// The slot.
        slot: SlotRef,
        /// Its set.
        set: SetIndex,
        /// The columns.
        columns: ColumnMask,
    },
    /// Copies could be read, or should have been, and none is a table of this allocation.
    #[error(
        "no copy of the table of slot {} is valid for allocation {}; its extent is lost: restore it from a backup",
        slot.slot, slot.allocation
    )]
    Lost {
        /// The slot.
        slot: SlotRef,
        /// The columns that were looked at.
        columns: ColumnMask,
        /// Whether every copy could be read: what cannot be read now may be read later.
        read: bool,
    },
    /// A newer tier0 wrote it.
    #[error("the table of slot {} has format {version}, and this tier0 knows up to {}; use a newer tier0", slot.slot, super::TABLE_VERSION)]
    TooNew {
        /// The slot.
        slot: SlotRef,
        /// Its format.
        version: u32,
    },
}

impl TableError {
    /// As the I/O that needed the table fails.
    pub fn io_error(self) -> IoError {
        match self {
            TableError::ColumnsLost { .. } => IoError::RedundancyLost,
            TableError::Lost { .. } => IoError::DataLost,
            TableError::TooNew { .. } => IoError::Unsupported,
        }
    }
}
