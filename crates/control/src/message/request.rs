//! Requests: what shards ask each other, and what the control task asks them.

use tier0_block::BlockStatus;
use tier0_world::sync::oneshot;
use tier0_world::{Buf, BufMut, IoError};

use super::command::ShardCommand;
use super::volumes::VolumesCommand;

/// A request for another shard's extent, or a command for its upkeep. Volumes are meant by their numbers in the array,
/// offsets and sizes are sectors.
pub enum ShardRequest {
    /// Read a part of an extent.
    Read {
        /// The volume.
        volume: u32,
        /// The extent's number in it.
        extent: u64,
        /// Where it begins in the extent.
        offset: u64,
        /// What takes the data, as large as the part.
        buf: BufMut,
        /// Told at the end, with the buffer.
        reply: oneshot::Sender<(Result<(), IoError>, BufMut)>,
    },
    /// Read a part of an extent into memory, for a reader that is expected there. Nobody waits.
    Prefetch {
        /// The volume.
        volume: u32,
        /// The extent's number in it.
        extent: u64,
        /// Where it begins in the extent.
        offset: u64,
        /// How long it is.
        sectors: u32,
    },
    /// Write a part of an extent.
    Write {
        /// The volume.
        volume: u32,
        /// The extent's number in it.
        extent: u64,
        /// Where it begins in the extent.
        offset: u64,
        /// The data.
        buf: Buf,
        /// Answer when it is stable.
        durable: bool,
        /// Told at the end.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Make a part of an extent zeros.
    Zero {
        /// The volume.
        volume: u32,
        /// The extent's number in it.
        extent: u64,
        /// Where it begins in the extent.
        offset: u64,
        /// How long it is.
        sectors: u64,
        /// Answer when it is stable.
        durable: bool,
        /// Told at the end.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Make stable what was acknowledged of a volume.
    Flush {
        /// The volume.
        volume: u32,
        /// Told at the end.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Say whether an extent has data.
    BlockStatus {
        /// The volume.
        volume: u32,
        /// The extent's number in it.
        extent: u64,
        /// The answer.
        reply: oneshot::Sender<Result<BlockStatus, IoError>>,
    },
    /// A command for a pool.
    Command(ShardCommand),
    /// A command for a volume.
    Volumes(VolumesCommand),
}
