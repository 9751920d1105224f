//! Extents of `base:allocation` ("Metadata contexts").

use super::super::constants::state;

/// A run of bytes of one allocation status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes, not zero.
    pub length: u32,
    /// Nothing is allocated for it: a write may run out of space.
    pub hole: bool,
    /// It reads as zeroes. Clear means unknown.
    pub zero: bool,
}

impl Extent {
    /// Allocated bytes of unknown content: what may always be said.
    pub fn allocated(length: u32) -> Extent {
        Extent { length, hole: false, zero: false }
    }

    /// Unallocated bytes that read as zeroes.
    pub fn unallocated(length: u32) -> Extent {
        Extent { length, hole: true, zero: true }
    }

    pub(super) fn flags(self) -> u32 {
        (u32::from(self.hole) * state::HOLE) | (u32::from(self.zero) * state::ZERO)
    }

    /// Unknown flags are ignored, as they must.
    pub(super) fn from_wire(length: u32, flags: u32) -> Extent {
        Extent { length, hole: flags & state::HOLE != 0, zero: flags & state::ZERO != 0 }
    }
}
