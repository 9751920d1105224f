//! Commands of the control task to a shard.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tier0_api::TablesStatus;
use tier0_cache::WriteBackStatus;
use tier0_flash_cache::FlashRoom;
use tier0_pool::{Caching, ChunkletAddress, FlashCacheDevice, FlashCachePlacement, LogCopy};
use tier0_units::{ExtentId, SlotRef};
use tier0_world::IoError;
use tier0_world::sync::{MailSender, oneshot};

use super::control::ControlMessage;
use super::scrub::ScrubShared;
use super::tier::TierQuery;
use crate::membership::opener::DriveSource;
use crate::stats::PoolStats;

/// A command.
pub enum ShardCommand {
    /// Rebuild this shard's slots of a column; ends when none is missing.
    Rebuild {
        /// The pool's number in the array.
        pool: usize,
        /// The column.
        column: RebuiltColumn,
        /// Told at the end.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Scrub this shard's slots.
    Scrub {
        /// The pool's number in the array.
        pool: usize,
        /// Bytes per second at most.
        rate: Option<u64>,
        /// What all shards have counted.
        shared: Arc<ScrubShared>,
        /// Told at the end.
        reply: oneshot::Sender<()>,
    },
    /// Scrub the rows whose parity recovery has taken from this shard's log.
    ScrubReplayed {
        /// The pool's number in the array.
        pool: usize,
        /// Told at the end.
        reply: oneshot::Sender<()>,
    },
    /// Destage what recovery has found in this shard's log.
    Settle {
        /// The pool's number in the array.
        pool: usize,
        /// Told at the end.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Move an extent of this shard's to another slot.
    MoveExtent {
        /// The pool's number in the array.
        pool: usize,
        /// Which.
        one: Move,
        /// How fast.
        pacing: Pacing,
        /// Told at the end: whether it has moved. If not, the slot that was allocated for it was given back.
        reply: oneshot::Sender<bool>,
    },
    /// Say how hot extents are.
    Tier {
        /// The pool's number in the array.
        pool: usize,
        /// What is asked.
        query: TierQuery,
    },
    /// Give hosts errors instead of letting them wait.
    Refuse {
        /// The pool's number in the array.
        pool: usize,
        /// By lane.
        lanes: Vec<Refused>,
        /// Told when it holds.
        reply: oneshot::Sender<()>,
    },
    /// Say how a pool does here.
    Report {
        /// The pool's number in the array.
        pool: usize,
        /// The answer.
        reply: oneshot::Sender<ShardReport>,
    },
    /// Say what hosts have asked of a pool's volumes here, and what its drives have done for that.
    Stats {
        /// The pool's number in the array.
        pool: usize,
        /// The answer.
        reply: oneshot::Sender<PoolStats>,
    },
    /// Volumes use the caches in another way from now on.
    SetCaching {
        /// The pool's number in the array.
        pool: usize,
        /// Which volumes, and how.
        changes: Arc<[CachingChange]>,
        /// Told when it holds.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Give back the free slots of this shard's slot reserves.
    ReturnSlotReserve {
        /// The pool's number in the array.
        pool: usize,
        /// The slots.
        reply: oneshot::Sender<Vec<SlotRef>>,
    },
    /// Give back the slots of extents that hosts have emptied and that wait to be destaged.
    Reclaim {
        /// The pool's number in the array.
        pool: usize,
        /// Of this group alone.
        group: Option<u32>,
        /// Told at the end.
        reply: oneshot::Sender<()>,
    },
    /// A drive is lost: wait for it no longer.
    GiveUpDrive {
        /// The pool's number in the array.
        pool: usize,
        /// The drive's place in the pool.
        member: usize,
        /// Told when nothing waits.
        reply: oneshot::Sender<()>,
    },
    /// Do without the copies of this shard's log that lie on a lost drive.
    DropLogCopies {
        /// The pool's number in the array.
        pool: usize,
        /// The drive's place in the pool.
        member: usize,
        /// Told when they do not count any more.
        reply: oneshot::Sender<()>,
    },
    /// Make one more copy of this shard's log equal to the others.
    AddLogCopy {
        /// The pool's number in the array.
        pool: usize,
        /// By ring.
        places: Vec<LogCopy>,
        /// Told when it is equal.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// The metadata name the copy on that drive: it counts.
    ConfirmLogCopy {
        /// The pool's number in the array.
        pool: usize,
        /// The drive's place in the pool.
        member: usize,
        /// Told when it counts.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Whether there is memory for the tables of a flash cache.
    CheckFlashCache {
        /// The pool's number in the array.
        pool: usize,
        /// Where it would lie.
        placement: FlashCachePlacement,
        /// Told whether it is so; a sentence where it is not.
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// Use a device of the flash cache as it lies now: one that is new here is made empty.
    PlaceFlashCache {
        /// The pool's number in the array.
        pool: usize,
        /// The device.
        device: FlashCacheDevice,
        /// Told when it is in use; a sentence where it cannot be.
        reply: oneshot::Sender<Result<FlashRoom, String>>,
    },
    /// Do without the part of the flash cache on a drive.
    DropFlashCache {
        /// The pool's number in the array.
        pool: usize,
        /// The drive's place in the pool.
        member: usize,
        /// Told when nothing of it is read or written any more.
        reply: oneshot::Sender<()>,
    },
    /// A drive joins a pool.
    Join {
        /// The pool's number in the array.
        pool: usize,
        /// Its place.
        member: usize,
        /// From what the shard makes its own.
        source: Arc<dyn DriveSource>,
        /// Whom its guard asks.
        control: MailSender<ControlMessage>,
        /// Told when the shard has it; a sentence where it cannot be used.
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// Close a drive that is no member any more.
    CloseDrive {
        /// The pool's number in the array.
        pool: usize,
        /// The place that it had.
        member: usize,
        /// Told when the shard has it no more.
        reply: oneshot::Sender<()>,
    },
}

/// How a volume uses the caches from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingChange {
    /// The volume's number in the array.
    pub volume: u32,
    /// How.
    pub caching: Caching,
    /// What was acknowledged before is first made as stable as the mode promises of what comes: in the log, or in its place.
    pub settles: bool,
}

/// What hosts get an error for instead of waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Whatever waits for a drive.
    pub waiting: Option<IoError>,
    /// What does not fit into the log.
    pub full: bool,
}

/// How a pool does in one shard.
pub struct ShardReport {
    /// By lane.
    pub lanes: Vec<WriteBackStatus>,
    /// Copies of this shard's log that count.
    pub log_copies: u32,
    /// Pages that were wrong and are right again.
    pub pages_repaired: u64,
    /// Pages that nothing could make right.
    pub pages_unrecoverable: u64,
    /// Those that are lost now.
    pub lost: Vec<LostSectors>,
    /// How many are not among them.
    pub lost_left_off: u64,
    /// Slots' tables in memory.
    pub tables: TablesStatus,
    /// By group: slots that the slot reserve for thin volumes has.
    pub slot_reserve_slots: BTreeMap<u32, u64>,
}

/// A column that is to be rebuilt.
#[derive(Clone, Copy, Debug)]
pub struct RebuiltColumn {
    /// Its set.
    pub set: u32,
    /// Its number in the set.
    pub column: u32,
    /// Where it was until its drive was lost, while this array ran, if it is rebuilt there.
    pub returned: Option<ChunkletAddress>,
}

/// An extent that is to move, and with it those that have its slot too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The extent.
    pub extent: ExtentId,
    /// The family of its volume.
    pub family: u32,
    /// The slot that it has.
    pub from: SlotRef,
    /// Allocated for it.
    pub to: SlotRef,
}

/// How fast an extent moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// As hosts of the shard let it, and at most so many bytes per second of all such moves of the shard.
    Yielding {
        /// The limit, if there is one.
        rate: Option<u64>,
    },
    /// At once: the control task begins moves as slowly as hosts need it.
    Free,
}

/// Sectors of a volume, by its number, that no copy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostSectors {
    /// The volume's number in its pool.
    pub volume: u32,
    /// The sectors.
    pub sectors: Range<u64>,
}
