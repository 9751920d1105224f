//! Requests: what shards ask each other, and what the control task asks them.

use tier0_block::BlockStatus;
use tier0_world::sync::oneshot;
use tier0_world::{Buf, BufMut, IoError};

use super::command::ShardCommand;
use super::volumes::VolumesCommand;

/// A request for another shard's extent, or a command for its upkeep.
pub(crate) enum ShardRequest {
    Read {
        volume: u32,
        extent: u64,
        offset: u64,
        buf: BufMut,
        reply: oneshot::Sender<(Result<(), IoError>, BufMut)>,
    },
    Write {
        volume: u32,
        extent: u64,
        offset: u64,
        buf: Buf,
        durable: bool,
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    Zero {
        volume: u32,
        extent: u64,
        offset: u64,
        sectors: u64,
        durable: bool,
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    Flush {
        volume: u32,
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    BlockStatus {
        volume: u32,
        extent: u64,
        reply: oneshot::Sender<Result<BlockStatus, IoError>>,
    },
    Command(ShardCommand),
    Volumes(VolumesCommand),
}
