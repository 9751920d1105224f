//! Slot tables: the checksums of a slot's pages, their bytes, and where their copies lie.

mod codec;
mod placement;

pub use codec::{FoundTable, TABLE_VERSION, TableBlock, block_sectors, decode, encode};
pub use placement::{ColumnPlan, TableCopy, TablePlacement, table_sectors};
