//! Names of extents and of the slots that hold them.

use std::fmt;

/// Sectors of a page: 4 KiB, the unit of checksums, of the write log and of caching.
pub const PAGE_SECTORS: u64 = 8;

/// An extent: which volume, and which piece of it, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentId {
    /// The volume's number in its pool; never used again for another volume.
    pub volume: u32,
    /// The extent's number in the volume.
    pub index: u32,
}

/// A slot as one extent has it: the same slot given to an extent later has another allocation number, so whatever
/// was said of an earlier tenant is never mistaken for this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotRef {
    /// The slot's number in the pool.
    pub slot: u64,
    /// The allocation, counted from 1 over the pool's life.
    pub allocation: u64,
}

impl fmt::Display for ExtentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extent {} of volume {}", self.index, self.volume)
    }
}
