//! Commands of the control task to a shard.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tier0_cache::WriteBackStatus;
use tier0_pool::{ChunkletAddress, LogCopy};
use tier0_units::{ExtentId, SlotRef, WriteCache};
use tier0_world::IoError;
use tier0_world::sync::{MailSender, oneshot};

use super::control::ControlMessage;
use super::scrub::ScrubShared;
use crate::admin::TablesStatus;
use crate::open::medium::Medium;
use crate::stats::PoolStats;

/// A command.
pub(crate) enum ShardCommand {
    /// Rebuild this shard's slots of a column; ends when none is missing.
    Rebuild { pool: usize, column: RebuiltColumn, reply: oneshot::Sender<Result<(), IoError>> },
    /// Scrub this shard's slots.
    Scrub {
        pool: usize,
        /// Bytes per second at most.
        rate: Option<u64>,
        shared: Arc<ScrubShared>,
        reply: oneshot::Sender<()>,
    },
    /// Scrub the rows whose parity recovery has taken from this shard's log.
    ScrubReplayed { pool: usize, reply: oneshot::Sender<()> },
    /// Destage what recovery has found in this shard's log.
    Settle { pool: usize, reply: oneshot::Sender<Result<(), IoError>> },
    /// Move extents to other slots; how many of this shard's have moved.
    MoveExtents {
        pool: usize,
        moves: Arc<[Move]>,
        /// Bytes per second at most.
        rate: Option<u64>,
        /// Begin no more of them.
        halt: Arc<AtomicBool>,
        reply: oneshot::Sender<u64>,
    },
    /// Give hosts errors instead of letting them wait.
    Refuse {
        pool: usize,
        /// By lane.
        lanes: Vec<Refused>,
        reply: oneshot::Sender<()>,
    },
    /// Say how a pool does here.
    Report { pool: usize, reply: oneshot::Sender<ShardReport> },
    /// Say what hosts have asked of a pool's volumes here, and what its drives have done for that.
    Stats { pool: usize, reply: oneshot::Sender<PoolStats> },
    /// A volume's writes are acknowledged in another way from now on; what was acknowledged before is made stable
    /// first.
    SetMode {
        /// The volume's number in the array.
        volume: u32,
        mode: WriteCache,
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Give back the free slots that this shard has in stock.
    GiveBackStock { pool: usize, reply: oneshot::Sender<Vec<SlotRef>> },
    /// Give back the slots of extents that hosts have emptied and that wait to be destaged.
    Reclaim {
        pool: usize,
        /// Of this group alone.
        group: Option<u32>,
        reply: oneshot::Sender<()>,
    },
    /// A drive is lost: wait for it no longer.
    LetGo { pool: usize, member: usize, reply: oneshot::Sender<()> },
    /// Do without the copies of this shard's log that lie on a lost drive.
    DropLogCopies { pool: usize, member: usize, reply: oneshot::Sender<()> },
    /// Make one more copy of this shard's log equal to the others.
    AddLogCopy {
        pool: usize,
        /// By ring.
        places: Vec<LogCopy>,
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// The metadata name the copy on that drive: it counts.
    ConfirmLogCopy { pool: usize, member: usize, reply: oneshot::Sender<Result<(), IoError>> },
    /// A drive joins a pool.
    Join {
        pool: usize,
        /// Its place.
        member: usize,
        medium: Arc<Medium>,
        /// Whom its guard asks.
        control: MailSender<ControlMessage>,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

/// What hosts get an error for instead of waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Whatever waits for a drive.
    pub(crate) waiting: Option<IoError>,
    /// What does not fit into the log.
    pub(crate) full: bool,
}

/// How a pool does in one shard.
pub(crate) struct ShardReport {
    /// By lane.
    pub(crate) lanes: Vec<WriteBackStatus>,
    /// Copies of this shard's log that count.
    pub(crate) log_copies: u32,
    pub(crate) pages_repaired: u64,
    pub(crate) pages_unrecoverable: u64,
    /// Those that are lost now, and how many are not among them.
    pub(crate) lost: Vec<LostSectors>,
    pub(crate) lost_left_off: u64,
    pub(crate) tables: TablesStatus,
    /// By group: slots in stock that thin volumes have not used.
    pub(crate) stock_slots: BTreeMap<u32, u64>,
}

/// A column that is to be rebuilt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RebuiltColumn {
    pub(crate) set: u32,
    /// The set's.
    pub(crate) group: u32,
    pub(crate) column: u32,
    /// Where it was until its drive was lost, while this array ran, if it is rebuilt there.
    pub(crate) returned: Option<ChunkletAddress>,
}

/// An extent that is to move, and with it those that have its slot too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) extent: ExtentId,
    /// The family of its volume.
    pub(crate) family: u32,
    pub(crate) from: SlotRef,
    /// Lent for it.
    pub(crate) to: SlotRef,
}

/// Sectors of a volume, by its number, that no copy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostSectors {
    pub(crate) volume: u32,
    pub(crate) sectors: Range<u64>,
}
