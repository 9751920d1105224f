//! A small array that is correct by construction, to prove the simulator with, and ways to make it wrong.
//!
//! Every drive holds a copy of everything. Each sector of a volume has two places on a drive, written in turn, each with
//! a header that carries sequence number, address and checksum; so what was stable is never overwritten by what is not
//! yet. Opening takes the newest valid place of any copy and brings all copies to it before anything is served. A drive
//! that fails is struck off the members in the superblocks of the others before anything is acknowledged without it.

mod layout;
mod members;
mod store;

use std::rc::Rc;

use tier0_block::{BlockTarget, TargetInfo, write_zeros};
use tier0_drive::DriveHandle;
use tier0_raid::layout::RaidLevel;
use tier0_sim::{Abilities, Admin, ArrayConfig, Running, Status, System, SystemError};
use tier0_units::{Lba, SectorCount, WriteCache};
use tier0_world::{Buf, BufMut, IoError, World};

use store::Store;

/// What can be made wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A write is acknowledged when one copy has it.
    AckBeforeMirror,
    /// A durable write is not made stable.
    SkipFlush,
    /// A flush is acknowledged at once.
    IgnoreFlush,
    /// A discard is acknowledged and not done.
    LoseDiscard,
    /// Opening believes a drive that is no member any more.
    BelieveStale,
    /// The checksum of a sector is not looked at.
    IgnoreChecksum,
    /// A sector has one place, overwritten in place.
    OverwriteInPlace,
    /// Opening does not bring the copies to the same content.
    ServeUnrepaired,
    /// A rebuild leaves a part out.
    IncompleteRebuild,
    /// A drive's loss is not written down: neither before the next acknowledgement nor at opening without it.
    ForgetLoss,
    /// A hanging drive is waited for.
    WaitForEver,
    /// Overlapping writes take no turns.
    NoLocks,
}

impl Bug {
    /// All of them.
    pub(crate) const ALL: [Bug; 12] = [
        Bug::AckBeforeMirror,
        Bug::SkipFlush,
        Bug::IgnoreFlush,
        Bug::LoseDiscard,
        Bug::BelieveStale,
        Bug::IgnoreChecksum,
        Bug::OverwriteInPlace,
        Bug::ServeUnrepaired,
        Bug::IncompleteRebuild,
        Bug::ForgetLoss,
        Bug::WaitForEver,
        Bug::NoLocks,
    ];
}

/// The array, correct or with a bug.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mirror(pub(crate) Option<Bug>);

impl System for Mirror {
    type Running = Mirrored;

    fn abilities(&self) -> Abilities {
        Abilities {
            levels: vec![RaidLevel::Raid1],
            drives: 2..=3,
            drive_sectors: vec![1 << 13],
            block_sectors: vec![1],
            write_caches: vec![WriteCache::Durable, WriteCache::Volatile],
            volumes: 1..=2,
            volume_sectors: 64..=512,
            chunklet_sectors: vec![128],
            stripe_unit_sectors: vec![8],
            log_sectors: Vec::new(),
            shards_max: 1,
            thin: false,
            integrity: true,
            scrub: true,
            discard_granule_sectors: 1,
        }
    }

    async fn create(
        &self,
        world: &World,
        _config: &ArrayConfig,
        drives: Vec<DriveHandle>,
    ) -> Result<(), SystemError> {
        members::create(world, &drives).await
    }

    async fn open(
        &self,
        world: &World,
        config: &ArrayConfig,
        drives: Vec<DriveHandle>,
        _without: Vec<String>,
    ) -> Result<Mirrored, SystemError> {
        Store::open(world, self.0, config, drives).await.map(Mirrored)
    }
}

/// The running array.
#[derive(Clone)]
pub(crate) struct Mirrored(Rc<Store>);

impl Running for Mirrored {
    type Volume = Volume;

    fn volumes(&self) -> Vec<Volume> {
        (0..self.0.volumes.len()).map(|number| Volume { store: self.0.clone(), number }).collect()
    }

    async fn status(&self) -> Status {
        self.0.describe()
    }

    async fn admin(&self, request: Admin) -> Result<(), SystemError> {
        self.0.administer(request).await
    }

    async fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("mirror: sectors brought up to date at opening", self.0.recovered.get())]
    }
}

/// A volume of it.
#[derive(Clone)]
pub(crate) struct Volume {
    store: Rc<Store>,
    number: usize,
}

impl Volume {
    /// The first of these sectors, counted through all volumes.
    fn first(&self, lba: Lba, sectors: u64) -> Result<u64, IoError> {
        let volume = &self.store.volumes[self.number];
        match lba.0.checked_add(sectors) {
            Some(end) if end <= volume.sectors => Ok(volume.first + lba.0),
            _ => Err(IoError::OutOfRange),
        }
    }
}

impl BlockTarget for Volume {
    fn info(&self) -> TargetInfo {
        let volume = &self.store.volumes[self.number];
        TargetInfo { sectors: SectorCount(volume.sectors), block_sectors: 1, volatile_cache: !volume.durable }
    }

    async fn read(&self, lba: Lba, mut buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let result = match self.first(lba, u64::from(buf.sectors())) {
            Ok(first) => self.store.read(first, buf.as_mut_slice()).await,
            Err(error) => Err(error),
        };
        (result, buf)
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        let first = self.first(lba, u64::from(buf.sectors()))?;
        let durable = durable || self.store.volumes[self.number].durable;
        self.store.write(first, &buf, durable).await
    }

    async fn flush(&self) -> Result<(), IoError> {
        self.store.flush().await
    }

    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        if self.store.bug == Some(Bug::LoseDiscard) {
            return Ok(());
        }
        self.write_zeroes(lba, sectors, true, false).await
    }

    async fn write_zeroes(&self, lba: Lba, sectors: u64, _: bool, durable: bool) -> Result<(), IoError> {
        write_zeros(self, self.store.world.width(), lba, sectors, durable).await
    }
}
