//! The extents of one volume as the shard that owns them reads and writes them: straight on the RAID sets, or through
//! the write cache.

use std::cell::Cell;
use std::rc::Rc;

use tier0_drive::BlockStatus;
use tier0_pool::Volume as VolumeRecord;
use tier0_units::{ExtentId, WriteCache};
use tier0_volume::ExtentIo;
use tier0_world::{Buf, BufMut, IoError};

use crate::gate::Gate;
use crate::pool_shard::PoolShard;

/// A volume in one shard.
pub(crate) enum VolumeIo {
    /// Thick, write through, nothing remembered.
    Direct(ExtentIo),
    /// Through write cache, log and checksums.
    Cached(CachedVolume),
}

/// A volume of a protected pool.
pub(crate) struct CachedVolume {
    pub(crate) pool: Rc<PoolShard>,
    /// Its number in the pool.
    pub(crate) number: u32,
    pub(crate) sectors: Cell<u64>,
    pub(crate) mode: Cell<WriteCache>,
    pub(crate) gate: Gate,
}

impl CachedVolume {
    /// A volume of a pool as its record has it.
    pub(crate) fn new(pool: &Rc<PoolShard>, volume: &VolumeRecord) -> CachedVolume {
        CachedVolume {
            pool: pool.clone(),
            number: volume.number,
            sectors: Cell::new(volume.sectors),
            mode: Cell::new(volume.write_cache),
            gate: Gate::default(),
        }
    }

    fn extent(&self, extent: u64) -> ExtentId {
        let index = u32::try_from(extent).expect("a volume has fewer than 2^32 extents");
        ExtentId { volume: self.number, index }
    }
}

impl VolumeIo {
    /// The volume, if it is one of a protected pool.
    pub(crate) fn cached(&self) -> Option<&CachedVolume> {
        match self {
            VolumeIo::Direct(_) => None,
            VolumeIo::Cached(volume) => Some(volume),
        }
    }

    /// The volume's size in sectors.
    #[inline]
    pub(crate) fn sectors(&self) -> u64 {
        match self {
            VolumeIo::Direct(extents) => extents.map().sectors(),
            VolumeIo::Cached(volume) => volume.sectors.get(),
        }
    }

    /// Sectors of an extent.
    #[inline]
    pub(crate) fn extent_sectors(&self) -> u64 {
        match self {
            VolumeIo::Direct(extents) => extents.map().extent_sectors(),
            VolumeIo::Cached(volume) => volume.pool.extent_sectors,
        }
    }

    /// The volume's name when the owners of its extents are looked for; `number` is its number in the array. A log that
    /// outlives the process is found by the same owners again, so there the number in the pool counts.
    #[inline]
    pub(crate) fn owner_key(&self, number: u32) -> u32 {
        match self {
            VolumeIo::Direct(_) => number,
            VolumeIo::Cached(volume) => volume.number,
        }
    }

    /// Whether a flush is needed to make completed writes stable.
    pub(crate) fn is_volatile(&self) -> bool {
        match self {
            VolumeIo::Direct(_) => true,
            VolumeIo::Cached(volume) => volume.mode.get() == WriteCache::Volatile,
        }
    }

    /// Reads from sector `offset` of an extent of this shard; `buf` must not reach beyond it.
    #[inline]
    pub(crate) async fn read(&self, extent: u64, offset: u64, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        match self {
            VolumeIo::Direct(extents) => extents.read(extent, offset, buf).await,
            VolumeIo::Cached(volume) => {
                let _inside = match volume.gate.enter() {
                    Ok(inside) => inside,
                    Err(error) => return (Err(error), buf),
                };
                let id = volume.extent(extent);
                // It takes twice as much room as the other way. Apart from it, a request's task and this are both small
                // enough for what an allocator has at hand (glibc: 1,032 bytes), for either kind of volume.
                let reading = Box::pin(volume.pool.write_back.read(id, offset, buf));
                let (result, buf) = reading.await;
                if let Err(error @ (IoError::DataLost | IoError::Medium)) = result {
                    tracing::error!(
                        volume = volume.number,
                        sector = extent * volume.pool.extent_sectors + offset,
                        "a read fails: {error}"
                    );
                }
                (result, buf)
            }
        }
    }

    /// Writes at sector `offset` of an extent of this shard; `buf` must not reach beyond it.
    #[inline]
    pub(crate) async fn write(
        &self,
        extent: u64,
        offset: u64,
        buf: Buf,
        durable: bool,
    ) -> Result<(), IoError> {
        match self {
            VolumeIo::Direct(extents) => extents.write(extent, offset, buf, durable).await,
            VolumeIo::Cached(volume) => {
                let _inside = volume.gate.enter()?;
                let mode = volume.mode.get();
                volume.pool.write_back.write(volume.extent(extent), offset, buf, durable, mode).await
            }
        }
    }

    /// Makes a part of an extent of this shard read as zeros, and gives its space back where that is possible. A
    /// direct volume keeps both.
    pub(crate) async fn zero(
        &self,
        extent: u64,
        offset: u64,
        sectors: u64,
        durable: bool,
    ) -> Result<(), IoError> {
        match self {
            VolumeIo::Direct(_) => Ok(()),
            VolumeIo::Cached(volume) => {
                let _inside = volume.gate.enter()?;
                let mode = volume.mode.get();
                volume.pool.write_back.zero(volume.extent(extent), offset, sectors, durable, mode).await
            }
        }
    }

    /// Acknowledges writes in another way from now on, after everything acknowledged so far was made stable.
    pub(crate) async fn set_mode(&self, mode: WriteCache) -> Result<(), IoError> {
        let VolumeIo::Cached(volume) = self else { return Err(IoError::Unsupported) };
        volume.mode.set(mode);
        volume.pool.write_back.flush().await
    }

    /// Makes every write to this shard's extents that has completed stable.
    pub(crate) async fn flush(&self) -> Result<(), IoError> {
        match self {
            VolumeIo::Direct(extents) => extents.flush().await,
            VolumeIo::Cached(volume) => volume.pool.write_back.flush().await,
        }
    }

    /// Whether an extent of this shard takes space.
    pub(crate) fn block_status(&self, extent: u64) -> BlockStatus {
        let sectors = self.extent_sectors();
        match self {
            VolumeIo::Direct(_) => BlockStatus { sectors, allocated: true, zero: false },
            VolumeIo::Cached(volume) => {
                let allocated = volume.pool.mapping.slot_of(volume.extent(extent)).is_some();
                BlockStatus { sectors, allocated, zero: !allocated }
            }
        }
    }
}
