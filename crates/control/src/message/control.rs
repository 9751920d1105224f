//! What shards tell the control task. Pools are meant by their numbers in the array, members by their places in the pool.

use tier0_api::{AdminReply, AdminRequest};
use tier0_drive::guard::Verdict;
use tier0_integrity::TableEvent;
use tier0_pool::metadata::Seen;
use tier0_pool::{ChunkletAddress, Claim};
use tier0_raid::io::RepairEvent;
use tier0_units::{ExtentId, SlotRef};
use tier0_world::IoError;
use tier0_world::sync::oneshot;
use uuid::Uuid;

/// A message to the control task.
pub enum ControlMessage {
    /// A drive is lost.
    Loss(Loss),
    /// A drive has failed for longer than its guard's patience: is it lost?
    Arbitrate {
        /// The pool.
        pool: usize,
        /// The drive.
        member: usize,
        /// How it fails.
        error: IoError,
        /// The answer.
        reply: oneshot::Sender<Verdict>,
    },
    /// A drive that was away says who it is.
    Recognise {
        /// The pool.
        pool: usize,
        /// The drive that it should be.
        member: usize,
        /// What it says.
        seen: Seen,
        /// The answer; a sentence where it is not that drive any more.
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// The metadata have found a drive of a pool lost.
    Lost {
        /// The pool.
        pool: usize,
        /// The drive.
        member: usize,
    },
    /// A shard needs free slots.
    Replenish(Replenish),
    /// The map has changed.
    Commit(Commit),
    /// Extents move to another slot.
    ExtentsMoved(MovedNote),
    /// A slot that was allocated, or that an extent has left, is free.
    GiveBack {
        /// The pool.
        pool: usize,
        /// The slot.
        slot: SlotRef,
    },
    /// No copy of a slot's table is right.
    TableLost {
        /// The pool.
        pool: usize,
        /// The slot's number in the pool.
        slot: u64,
    },
    /// A copy of a slot's table was wrong.
    TableError {
        /// The pool.
        pool: usize,
        /// What was found.
        event: TableEvent,
    },
    /// A device of the flash cache has missed something and is not to be believed.
    DisownFlashCache {
        /// The pool.
        pool: usize,
        /// The drive that it lies on.
        member: u32,
        /// The device's identity.
        id: Uuid,
        /// Why, in a sentence, where it is known.
        why: Option<String>,
        /// Told when no opening believes it any more.
        reply: oneshot::Sender<()>,
    },
    /// A page was wrong.
    PageError {
        /// The pool.
        pool: usize,
        /// What was found.
        event: RepairEvent,
    },
    /// A slot of a column is rebuilt.
    SlotRebuilt(SlotRebuiltNote),
    /// An administrator asks.
    Admin {
        /// What for.
        request: AdminRequest,
        /// The answer.
        reply: oneshot::Sender<AdminReply>,
    },
}

/// A drive is lost.
pub struct Loss {
    /// The pool.
    pub pool: usize,
    /// The drive.
    pub member: usize,
    /// How it failed.
    pub error: IoError,
    /// Told when every other drive remembers it.
    pub done: oneshot::Sender<()>,
}

/// A shard needs free slots.
pub struct Replenish {
    /// The pool.
    pub pool: usize,
    /// What for.
    pub claim: Claim,
    /// Empty where there are none.
    pub reply: oneshot::Sender<Vec<SlotRef>>,
}

/// Extents have moved to another slot, if that becomes stable; the old one, if no other has it, stays allocated until it is given
/// back.
pub struct MovedNote {
    /// The pool.
    pub pool: usize,
    /// Those that have the old slot and move.
    pub extents: Vec<ExtentId>,
    /// The old slot.
    pub from: SlotRef,
    /// `None` if they have no slot any more.
    pub to: Option<SlotRef>,
    /// Told which have moved when that is stable.
    pub reply: oneshot::Sender<Result<Vec<ExtentId>, IoError>>,
}

/// The map of a pool has changed in a shard.
pub struct Commit {
    /// The pool.
    pub pool: usize,
    /// Extents that have a slot now.
    pub mapped: Vec<(ExtentId, SlotRef)>,
    /// Extents that have it no more.
    pub unmapped: Vec<(ExtentId, SlotRef)>,
    /// Told when the change is stable.
    pub reply: oneshot::Sender<Result<(), IoError>>,
}

/// A slot of a column is rebuilt and stable.
pub struct SlotRebuiltNote {
    /// The pool.
    pub pool: usize,
    /// The set.
    pub set: u32,
    /// The column's number in the set.
    pub column: u32,
    /// Where the column was rebuilt to.
    pub target: ChunkletAddress,
    /// The slot's number in the pool.
    pub slot: u64,
    /// Whether pages of its rows are lost.
    pub has_lost_pages: bool,
    /// Told when the metadata remember it.
    pub reply: oneshot::Sender<Result<(), IoError>>,
}
