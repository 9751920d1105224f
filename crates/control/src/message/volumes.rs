//! Commands of the control task to a shard about volumes.

use std::sync::Arc;

use tier0_pool::{Caching, Claim, Volume as VolumeRecord};
use tier0_units::SlotRef;
use tier0_volume::Budget;
use tier0_world::IoError;
use tier0_world::sync::oneshot;

/// A command about a volume; volumes are meant by their numbers in the array.
pub enum VolumesCommand {
    /// A volume was created.
    Add {
        /// The volume.
        number: u32,
        /// The number of its pool in the array.
        pool: usize,
        /// What the metadata say of it.
        record: VolumeRecord,
        /// How it uses the caches.
        caching: Caching,
        /// Told when the shard has it.
        reply: oneshot::Sender<()>,
    },
    /// Extents of a volume that will be added have the slots of others of its family.
    Share {
        /// The number of its pool in the array.
        pool: usize,
        /// Which have which.
        extents: Arc<SharedExtents>,
        /// Told when the shard knows it.
        reply: oneshot::Sender<()>,
    },
    /// Bring into place what the log has of it, while hosts go on.
    Settle {
        /// The volume.
        number: u32,
        /// Told at the end.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Let wait what writes to it, until it is opened again, and bring into place what was written before.
    Hold {
        /// The volume.
        number: u32,
        /// Told when all is in place.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Let wait all that reads or writes volumes of one family, until they are opened again, and bring into place what was written
    /// before.
    HoldFamily {
        /// The volumes.
        numbers: Arc<[u32]>,
        /// Told when all is in place and nothing of them is read. After an error none of them is held.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Volumes of one family are of another group. They must be held.
    Regroup {
        /// The volumes, with what they claim from now on.
        volumes: Arc<[(u32, Claim)]>,
        /// Told when their requests pass the lane of that group.
        reply: oneshot::Sender<()>,
    },
    /// Offer it to hosts.
    Offer {
        /// The volume.
        number: u32,
        /// What they are told: whether only a flush makes stable what has completed.
        volatile: bool,
        /// Told when it is offered; a sentence where it cannot be.
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// It has another size.
    Resize {
        /// The volume.
        number: u32,
        /// Its sectors from now on.
        sectors: u64,
        /// Told when the shard knows it.
        reply: oneshot::Sender<()>,
    },
    /// Let no request in, wait until none is inside, and discard what it holds beyond a size that it is to have, unless its
    /// drives keep that waiting for too long; then requests are let in again.
    DiscardTail {
        /// The volume.
        number: u32,
        /// Its sectors from then on.
        sectors: u64,
        /// Told when the discard is stable and the log has nothing of the volume.
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Hosts may ask so much of it.
    SetBudget {
        /// The volume.
        number: u32,
        /// What all shards take from; none where it has no ceilings.
        budget: Option<Arc<Budget>>,
        /// Told when the shard takes from it.
        reply: oneshot::Sender<()>,
    },
    /// It gets so much in comparison with the others where writers are delayed.
    SetWeight {
        /// The volume.
        number: u32,
        /// 1 to 100.
        weight: u32,
        /// Told when that counts in the shard.
        reply: oneshot::Sender<()>,
    },
    /// It has another name. Hosts that use it stay connected.
    Rename {
        /// The volume.
        number: u32,
        /// Its name from now on.
        name: Arc<str>,
        /// Told when it is offered under that name; a sentence where it cannot be.
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// Offer it no more, unless it is used and must not be taken away: the number of its users then.
    Withdraw {
        /// The volume.
        number: u32,
        /// Take it away although it is used.
        force: bool,
        /// Told when it is not offered any more.
        reply: oneshot::Sender<Result<(), usize>>,
    },
    /// Let no request in, and wait until none is inside.
    Close {
        /// The volume.
        number: u32,
        /// Told when none is inside.
        reply: oneshot::Sender<()>,
    },
    /// Let requests in again, and what writes.
    Open {
        /// The volume.
        number: u32,
        /// Told when they are let in.
        reply: oneshot::Sender<()>,
    },
    /// It is gone from the metadata: drop what is dirty. The slots that belong to no volume now.
    Forget {
        /// The volume.
        number: u32,
        /// The slots.
        reply: oneshot::Sender<Vec<SlotRef>>,
    },
}

/// Extents of one volume that have the slots of others.
pub struct SharedExtents {
    /// The volume's number in its pool.
    pub volume: u32,
    /// Its family.
    pub family: u32,
    /// Each extent's number in the volume, and its slot.
    pub extents: Vec<(u32, SlotRef)>,
}
