//! Volumes: from LUN addresses to extents, and from extents to slots of a pool.
//!
//! A volume here is thick: all its extents are allocated when it is created, one run of slots after the other, so
//! the map is a handful of numbers whatever the size. [`ExtentIo`] reads and writes extents in one shard.
//!
//! Invariants: an extent has exactly one slot and a slot at most one extent; sectors never written read as whatever
//! the drives hold there, which is why creation writes nothing and a new volume's content is unspecified only on
//! drives that were not blank.
//!
//! What it does not do: it knows no shards but its own, and no connections.

mod allocation;
mod extent;
mod io;
mod map;

pub use allocation::{FreeSlots, NoSpace};
pub use extent::{ExtentPiece, Extents, owner};
pub use io::ExtentIo;
pub use map::VolumeMap;
