//! RAID sets of a pool: which chunklets they consist of, and how extents lie in them.

mod formation;
mod slots;

pub use formation::{RaidSets, SetIndex};
pub use slots::{SlotMap, SlotPlace};
