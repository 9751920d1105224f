//! Commands of the control task to a shard about volumes.

use std::sync::Arc;

use tier0_pool::Volume as VolumeRecord;
use tier0_units::SlotRef;
use tier0_world::IoError;
use tier0_world::sync::oneshot;

/// A command about a volume; volumes are meant by their numbers in the array.
pub(crate) enum VolumesCommand {
    /// A volume was created.
    Add { number: u32, pool: usize, record: VolumeRecord, reply: oneshot::Sender<()> },
    /// Extents of a volume that will be added have the slots of others of its family.
    Share { pool: usize, extents: Arc<SharedExtents>, reply: oneshot::Sender<()> },
    /// Bring into place what the log has of it, while hosts go on.
    Settle { number: u32, reply: oneshot::Sender<Result<(), IoError>> },
    /// Let wait what writes to it, until it is opened again, and bring into place what was written before.
    Hold { number: u32, reply: oneshot::Sender<Result<(), IoError>> },
    /// Offer it to hosts.
    Offer { number: u32, reply: oneshot::Sender<Result<(), String>> },
    /// It has another size.
    Resize { number: u32, sectors: u64, reply: oneshot::Sender<()> },
    /// Offer it no more, unless it is used and must not be taken away: the number of its users then.
    Withdraw { number: u32, force: bool, reply: oneshot::Sender<Result<(), usize>> },
    /// Let no request in, and wait until none is inside.
    Close { number: u32, reply: oneshot::Sender<()> },
    /// Let requests in again, and what writes.
    Open { number: u32, reply: oneshot::Sender<()> },
    /// It is gone from the metadata: drop what is dirty. The slots that belong to no volume now.
    Forget { number: u32, reply: oneshot::Sender<Vec<SlotRef>> },
}

/// Extents of one volume that have the slots of others.
pub(crate) struct SharedExtents {
    /// The volume's number in its pool, and its family.
    pub(crate) volume: u32,
    pub(crate) family: u32,
    pub(crate) extents: Vec<(u32, SlotRef)>,
}
