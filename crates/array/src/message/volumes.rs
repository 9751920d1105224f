//! Commands of the control task to a shard about volumes.

use tier0_pool::Volume as VolumeRecord;
use tier0_units::SlotRef;
use tier0_world::sync::oneshot;

/// A command about a volume; volumes are meant by their numbers in the array.
pub(crate) enum VolumesCommand {
    /// A volume was created.
    Add { number: u32, pool: usize, record: VolumeRecord, reply: oneshot::Sender<()> },
    /// Offer it to hosts.
    Offer { number: u32, reply: oneshot::Sender<Result<(), String>> },
    /// It has another size.
    Resize { number: u32, sectors: u64, reply: oneshot::Sender<()> },
    /// Offer it no more, unless it is used and must not be taken away: the number of its users then.
    Withdraw { number: u32, force: bool, reply: oneshot::Sender<Result<(), usize>> },
    /// Let no request in, and wait until none is inside.
    Close { number: u32, reply: oneshot::Sender<()> },
    /// Let requests in again.
    Open { number: u32, reply: oneshot::Sender<()> },
    /// It is gone from the metadata: drop what is dirty; its slots belong to no volume.
    Forget { number: u32, reply: oneshot::Sender<Vec<SlotRef>> },
}
