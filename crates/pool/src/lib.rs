//! The pool: which drives belong together, how they are cut into chunklets, and what the drives themselves
//! remember of it.
//!
//! Every member carries a superblock ([`superblock`]) with the whole [`PoolRecord`], so that the pool is found again by
//! identity, whatever the paths are. [`Chunklets`] cuts members into pieces of one size and hands them out.
//!
//! What it does not do: it forms no RAID sets and moves no data.

mod chunklet;
mod error;
mod member;
mod record;
pub mod superblock;

pub use chunklet::{ChunkletAddress, Chunklets, DATA_START_SECTORS};
pub use error::PoolError;
pub use member::{Found, identify, is_blank};
pub use record::{MemberRecord, PoolRecord, RaidRecord, SlotRun, VolumeRecord};
