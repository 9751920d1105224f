//! Why a pool cannot be planned.

use thiserror::Error;
use tier0_pool::{MetaError, PoolError};
use tier0_units::ByteCount;

/// A pool cannot be as it is described, or is not what its record says.
#[derive(Debug, Error)]
pub enum PlanError {
    /// A drive, or the pool's record, does not do.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A pool's state refuses something.
    #[error(transparent)]
    Meta(#[from] MetaError),
    /// A set of such chunklets holds no extent.
    #[error(
        "pool {pool:?}: a RAID set with chunklets of {chunklet:#} cannot hold one extent of {extent:#} with its \
         checksums; increase pool.chunklet to {least:#} or more, or reduce pool.extent"
    )]
    ChunkletTooSmall {
        /// The pool.
        pool: String,
        /// The size of its chunklets.
        chunklet: ByteCount,
        /// The size of its extents.
        extent: ByteCount,
        /// A chunklet that is large enough.
        least: ByteCount,
    },
    /// The chunklets do not even make one set.
    #[error("pool {pool:?} has no space for a RAID set; use larger drives or a smaller chunklet")]
    NoSet {
        /// The pool.
        pool: String,
    },
    /// The slots of a group would have much more than an extent.
    #[error(
        "pool {pool:?}: an extent of {extent:#} takes a slot of {slot:#} in group {group:?}, whose rows hold \
         {row:#}, which wastes {percent} % of the slot; use {remedy}another set_size, or a smaller stripe_unit in the group"
    )]
    Waste {
        /// The pool.
        pool: String,
        /// The group.
        group: String,
        /// An extent.
        extent: ByteCount,
        /// What it would take.
        slot: ByteCount,
        /// How much of that would lie idle.
        percent: u64,
        /// Extents that fit all groups, if there are any: "extents of 3MiB (pool.extent), ".
        remedy: String,
        /// Data of a row.
        row: ByteCount,
    },
    /// The rings of the write log are too small for what destaging to a group needs.
    #[error(
        "pool {pool:?}: each part of its write log has {has:#}, and group {group:?} needs {needed:#}; use a smaller set_size or \
         stripe_unit for the group, or create the pool anew with a larger pool.log"
    )]
    LogTooSmall {
        /// The pool.
        pool: String,
        /// The group.
        group: String,
        /// What each part has.
        has: ByteCount,
        /// What the group needs.
        needed: ByteCount,
    },
    /// A volume is to lie on a group of sets that the pool does not have.
    #[error("volume {volume:?}: pool {pool:?} has no group {group:?}; its groups are {known}")]
    NoGroup {
        /// The volume.
        volume: String,
        /// What was named.
        group: String,
        /// The pool.
        pool: String,
        /// The groups that it has.
        known: String,
    },
    /// A volume does not fit.
    #[error(
        "volume {volume:?} ({size:#}) does not fit in {place}, which has {free:#} free; make it smaller, remove \
         it from the file if it was deleted, or add drives"
    )]
    NoSpace {
        /// The volume.
        volume: String,
        /// Its size.
        size: ByteCount,
        /// The pool, or the group of it, in words.
        place: String,
        /// What is free.
        free: ByteCount,
    },
    /// A drive has no room for its copy of the write log.
    #[error("drive {drive:?} is too small for a write log of {log:#} in addition to its data; {remedy}")]
    NoRoomForLog {
        /// Its name.
        drive: String,
        /// What the log takes of it.
        log: ByteCount,
        /// What to do.
        remedy: String,
    },
    /// A drive has no room for its part of the flash cache.
    #[error(
        "drive {drive:?} has no space for {cache:#} of the flash cache {beside}; reduce pool.flash_cache, or \
         name larger flash_cache_drives"
    )]
    NoRoomForFlashCache {
        /// Its name.
        drive: String,
        /// What the cache takes of it.
        cache: ByteCount,
        /// "beside its data", "beside the write log".
        beside: &'static str,
    },
    /// No drive can hold the flash cache.
    #[error(
        "pool {pool:?} has no flash drive for the flash cache; name one in pool.flash_cache_drives, and set \
         class = \"flash\" if the kernel does not report it as flash"
    )]
    NoFlash {
        /// The pool.
        pool: String,
    },
    /// The record on the drives makes no sense.
    #[error("the record of pool {pool:?} is inconsistent: {fact}; restore it from a backup")]
    Record {
        /// The pool.
        pool: String,
        /// What is wrong.
        fact: String,
    },
}
