//! The pool: which drives belong together, how they are cut into chunklets, and what the drives themselves
//! remember of it.
//!
//! - [`PoolState`] is everything a pool's metadata says, in memory; it changes only by [`MetaRecord`]s.
//! - [`record`] and [`checkpoint`] are its bytes: what changed, and the whole.
//! - [`Metadata`] keeps it on the pool's drives: superblocks on all of them, a mirrored journal and checkpoints on up to
//!   three; [`survey`] finds pools again by identity, whatever the paths are.
//! - [`Space`] says what an administrator should know about free space.
//!
//! What it does not do: it forms no RAID sets, moves no data, and does not decide when to rebuild.

mod area;
pub mod checkpoint;
mod chunklet;
mod codec;
mod error;
mod features;
#[cfg(test)]
mod fixtures;
pub mod foreign;
pub mod metadata;
mod raid_record;
pub mod record;
#[cfg(test)]
mod samples;
mod slot_run;
mod space;
mod state;

pub use area::MetadataArea;
pub use chunklet::{ChunkletAddress, Chunklets, DATA_START_SECTORS};
pub use error::{History, PoolError};
pub use features::Features;
pub use raid_record::RaidRecord;
pub use record::{ExtentRun, MappedRun, MetaRecord, ScrubCursor, SharedRun};
pub use slot_run::SlotRun;
pub use space::{Reserve, Space, SpaceRules, SpaceWarning};
pub use state::{
    BitSet, Branch, CacheSwitches, Caching, Ceilings, CeilingsChange, Claim, ColumnMove, DriveClass,
    DriveRole, ExtentMap, FAMILY_VOLUMES_MAX, FlashCacheDevice, FlashCachePlacement, GROUPS_MAX, Geometry,
    GroupStage, LogCopy, LogPlacement, LogRing, Member, MemberState, MetaError, PATH_BYTES_MAX, PINS_MAX,
    Pin, Place, Placement, PoolState, Rebuild, RebuildSource, Run, SetBatch, SetGroup, SetsToCome, SlotHome,
    TEXT_BYTES_MAX, TierSettings, UnknownPlace, Volume, WEIGHT_DEFAULT, WEIGHT_MAX, is_weight,
};
