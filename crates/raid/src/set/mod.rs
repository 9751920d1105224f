//! RAID sets of a pool: which chunklets they consist of, how extents lie in them, and where lost columns move.

mod formation;
mod rebuilding;
mod slots;
mod table;

pub use slots::{SlotMap, SlotPlace};
pub use table::{RaidSets, SetIndex, TableError};
