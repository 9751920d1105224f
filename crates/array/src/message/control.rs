//! What shards tell the control task.

use tier0_drive::guard::Verdict;
use tier0_integrity::TableEvent;
use tier0_pool::metadata::Seen;
use tier0_pool::{ChunkletAddress, Claim};
use tier0_raid::io::RepairEvent;
use tier0_units::{ExtentId, SlotRef};
use tier0_world::IoError;
use tier0_world::sync::oneshot;

use crate::admin::{AdminReply, AdminRequest};

/// A message to the control task.
pub(crate) enum ControlMessage {
    /// A drive is lost.
    Loss(Loss),
    /// A drive has failed for longer than its guard's patience: is it lost?
    Judge { pool: usize, member: usize, error: IoError, reply: oneshot::Sender<Verdict> },
    /// A drive that was away says who it is.
    Recognise { pool: usize, member: usize, seen: Seen, reply: oneshot::Sender<Result<(), String>> },
    /// The metadata have found a drive of a pool lost.
    Lost { pool: usize, member: usize },
    /// A shard needs free slots.
    Refill(Refill),
    /// The map has changed.
    Commit(Commit),
    /// Extents move to another slot.
    Moved(MovedNote),
    /// A slot that was lent, or that an extent has left, is free.
    GiveBack { pool: usize, slot: SlotRef },
    /// No copy of a slot's table is right.
    TableLost { pool: usize, slot: u64 },
    /// A copy of a slot's table was wrong.
    TableFound { pool: usize, event: TableEvent },
    /// A page was wrong.
    Found { pool: usize, event: RepairEvent },
    /// A slot of a column is rebuilt.
    SlotRebuilt(SlotRebuiltNote),
    /// An administrator asks.
    Admin { request: AdminRequest, reply: oneshot::Sender<AdminReply> },
}

/// A drive is lost.
pub(crate) struct Loss {
    pub(crate) pool: usize,
    pub(crate) member: usize,
    pub(crate) error: IoError,
    /// Told when every other drive remembers it.
    pub(crate) done: oneshot::Sender<()>,
}

/// A shard needs free slots.
pub(crate) struct Refill {
    pub(crate) pool: usize,
    /// What for.
    pub(crate) claim: Claim,
    /// Empty where there are none.
    pub(crate) reply: oneshot::Sender<Vec<SlotRef>>,
}

/// Extents have moved to another slot, if that becomes stable; the old one, if no other has it, is lent when it comes back.
pub(crate) struct MovedNote {
    pub(crate) pool: usize,
    /// Those that have the old slot and move.
    pub(crate) extents: Vec<ExtentId>,
    pub(crate) from: SlotRef,
    /// None where they have no slot any more.
    pub(crate) to: Option<SlotRef>,
    /// Told which have moved when that is stable.
    pub(crate) reply: oneshot::Sender<Result<Vec<ExtentId>, IoError>>,
}

/// The map of a pool has changed in a shard.
pub(crate) struct Commit {
    pub(crate) pool: usize,
    pub(crate) mapped: Vec<(ExtentId, SlotRef)>,
    pub(crate) unmapped: Vec<(ExtentId, SlotRef)>,
    /// Told when the change is stable.
    pub(crate) reply: oneshot::Sender<Result<(), IoError>>,
}

/// A slot of a column is rebuilt and stable.
pub(crate) struct SlotRebuiltNote {
    pub(crate) pool: usize,
    pub(crate) set: u32,
    pub(crate) column: u32,
    /// Where the column was rebuilt to.
    pub(crate) target: ChunkletAddress,
    /// The slot's number in the pool.
    pub(crate) slot: u64,
    /// Whether pages of its rows are lost.
    pub(crate) has_lost_pages: bool,
    /// Told when the metadata remember it.
    pub(crate) reply: oneshot::Sender<Result<(), IoError>>,
}
