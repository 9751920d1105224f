//! The vocabulary every other crate speaks: times, addresses and sizes.
//!
//! Nothing here does anything but arithmetic, parsing and printing.

mod bytes;
mod extent;
mod lba;
mod size_rule;
mod time;
mod words;
mod write_cache;

pub use bytes::{ByteCount, ParseByteCountError};
pub use extent::{ExtentId, PAGE_SECTORS, SlotRef};
pub use lba::{Lba, SECTOR_BYTES, SectorCount};
pub use size_rule::SizeRule;
pub use time::Nanos;
pub use words::{counted, named};
pub use write_cache::{UnknownWriteCache, WriteCache};
