//! Slot tables: the checksums of a slot's pages, their bytes, where their copies lie, and those in memory.

mod codec;
mod error;
mod placement;
mod slot_table;
mod tables;

pub use codec::{FoundTable, TABLE_VERSION, TableBlock, block_sectors, decode, encode};
pub use error::TableError;
pub use placement::{ColumnPlan, TableCopy, TablePlacement, table_sectors};
pub(crate) use slot_table::SlotTable;
pub use tables::TableLookups;
pub(crate) use tables::{Keeping, SlotTables};
