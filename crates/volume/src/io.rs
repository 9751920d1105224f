//! Reading and writing extents in the shard that owns them.

use std::sync::Arc;

use tier0_raid::io::RaidIo;
use tier0_raid::set::SlotMap;
use tier0_units::Lba;
use tier0_world::{Buf, BufMut, IoError};

use crate::VolumeMap;

/// The extents of one volume as one shard reaches them.
#[derive(Clone)]
pub struct ExtentIo {
    map: Arc<VolumeMap>,
    slots: Arc<SlotMap>,
    raid: RaidIo,
}

impl ExtentIo {
    /// The volume of `map`, in the slots of a pool that `raid` reads and writes.
    pub fn new(map: Arc<VolumeMap>, slots: Arc<SlotMap>, raid: RaidIo) -> ExtentIo {
        ExtentIo { map, slots, raid }
    }

    /// The volume's map.
    #[inline]
    pub fn map(&self) -> &VolumeMap {
        &self.map
    }

    /// Reads from sector `offset` of an extent; `buf` must not reach beyond it.
    pub async fn read(&self, extent: u64, offset: u64, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let place = self.slots.place(self.map.slot(extent));
        self.raid.read(place.set, Lba(place.first_sector + offset), buf).await
    }

    /// Writes at sector `offset` of an extent; `buf` must not reach beyond it.
    pub async fn write(&self, extent: u64, offset: u64, buf: Buf, durable: bool) -> Result<(), IoError> {
        let place = self.slots.place(self.map.slot(extent));
        self.raid.write(place.set, Lba(place.first_sector + offset), buf, durable).await
    }

    /// Makes every completed write of the pool stable.
    pub async fn flush(&self) -> Result<(), IoError> {
        self.raid.flush().await
    }
}
