//! The extents of one volume as the shard that owns them reads and writes them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_block::BlockStatus;
use tier0_cache::{ReadAhead, WriteBack};
use tier0_pool::{Caching, Volume as VolumeRecord};
use tier0_stats::IoRecorder;
use tier0_units::{ExtentId, WriteCache};
use tier0_world::{Buf, BufMut, IoError};

use crate::gate::Gate;
use crate::pool_shard::PoolShard;
use crate::throttle::Throttle;

/// A volume in one shard.
pub(crate) struct VolumeIo {
    pub(crate) pool: Rc<PoolShard>,
    /// Of the lane of its group of sets.
    write_back: RefCell<WriteBack>,
    name: RefCell<Rc<str>>,
    /// Its number in the pool.
    pub(crate) number: u32,
    /// The number of its family, which decides whose its extents are.
    pub(crate) family: u32,
    pub(crate) sectors: Cell<u64>,
    /// When its writes are acknowledged.
    mode: Cell<WriteCache>,
    reads_cached: Cell<bool>,
    /// Whether hosts that connect are told that only a flush makes stable what has completed.
    told_volatile: Cell<bool>,
    pub(crate) gate: Gate,
    /// Where requests of hosts of this shard wait for the volume's ceilings.
    pub(crate) throttle: Throttle,
    /// What hosts of this shard have asked of the volume.
    pub(crate) stats: IoRecorder,
    /// Those of them that go through it in order.
    pub(crate) read_ahead: RefCell<ReadAhead>,
}

impl VolumeIo {
    /// A volume of a pool as its record has it, which uses the caches so.
    pub(crate) fn new(pool: &Rc<PoolShard>, volume: &VolumeRecord, caching: Caching) -> VolumeIo {
        VolumeIo {
            pool: pool.clone(),
            write_back: RefCell::new(pool.lane(volume.group).write_back.clone()),
            name: RefCell::new(volume.name.as_str().into()),
            number: volume.number,
            family: volume.family(),
            sectors: Cell::new(volume.sectors),
            mode: Cell::new(caching.write),
            reads_cached: Cell::new(caching.read),
            told_volatile: Cell::new(caching.write == WriteCache::Volatile),
            gate: Gate::default(),
            throttle: Throttle::default(),
            stats: IoRecorder::default(),
            read_ahead: RefCell::default(),
        }
    }

    /// The write cache that its requests pass: that of the lane of its group of sets.
    #[inline]
    pub(crate) fn write_back(&self) -> WriteBack {
        self.write_back.borrow().clone()
    }

    /// Its requests pass the lane of another group from now on. None is inside, the lane of before has nothing of the volume, and
    /// none of its slots is read through it.
    pub(crate) fn change_lane(&self, group: u32) {
        let now = self.pool.lane(group).write_back.clone();
        let before = self.write_back.replace(now);
        before.release(self.number);
    }

    /// Where writers are delayed, it gets so much in comparison with other volumes: in whatever lane it is.
    pub(crate) fn set_weight(&self, weight: u32) {
        self.pool.lanes().iter().for_each(|lane| lane.write_back.set_weight(self.number, weight));
    }

    /// Its name now.
    pub(crate) fn name(&self) -> Rc<str> {
        self.name.borrow().clone()
    }

    /// From now on it has this name.
    pub(crate) fn rename(&self, name: &str) {
        *self.name.borrow_mut() = name.into();
    }

    fn extent(&self, extent: u64) -> ExtentId {
        let index = u32::try_from(extent).expect("a volume has fewer than 2^32 extents");
        ExtentId { volume: self.number, index }
    }

    /// The volume's size in sectors.
    #[inline]
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors.get()
    }

    /// Sectors of an extent.
    #[inline]
    pub(crate) fn extent_sectors(&self) -> u64 {
        self.pool.extent_sectors
    }

    /// Whether hosts are told that a flush is needed to make completed writes stable.
    pub(crate) fn is_volatile(&self) -> bool {
        !self.write_back().has_log() || self.told_volatile.get()
    }

    /// From now on hosts that connect are told so.
    pub(crate) fn tell_volatile(&self, volatile: bool) {
        self.told_volatile.set(volatile);
    }

    /// When its writes are acknowledged.
    pub(crate) fn mode(&self) -> WriteCache {
        self.mode.get()
    }

    /// Whether its reads use the read cache.
    #[inline]
    pub(crate) fn reads_cached(&self) -> bool {
        self.reads_cached.get()
    }

    /// Requests use the caches so from now on. What was acknowledged before is as it was.
    pub(crate) fn set_caching(&self, caching: Caching) {
        self.mode.set(caching.write);
        self.reads_cached.set(caching.read);
    }

    /// Reads from sector `offset` of an extent of this shard; `buf` must not reach beyond it.
    #[inline]
    pub(crate) async fn read(&self, extent: u64, offset: u64, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let _inside = match self.gate.enter_to_read().await {
            Ok(inside) => inside,
            Err(error) => return (Err(error), buf),
        };
        // It takes twice as much room as the other way. Apart from it, a request's task and this are both small enough for
        // what an allocator has at hand (glibc: 1,032 bytes).
        let write_back = self.write_back();
        let read = write_back.read(self.extent(extent), offset, buf, self.reads_cached());
        let (result, buf) = Box::pin(read).await;
        if let Err(error @ (IoError::DataLost | IoError::Medium)) = result {
            tracing::error!(
                volume = &*self.name(),
                sector = extent * self.pool.extent_sectors + offset,
                "a read fails: {error}"
            );
        }
        (result, buf)
    }

    /// Has sectors of an extent of this shard count as read before.
    pub(crate) fn bring_in(&self, extent: u64, offset: u64, sectors: u32, in_memory: bool) {
        self.write_back().bring_in(self.extent(extent), offset, sectors, in_memory);
    }

    /// Reads sectors of an extent of this shard into memory, for a reader that is expected there.
    pub(crate) async fn prefetch(&self, extent: u64, offset: u64, sectors: u32) {
        if let Ok(_inside) = self.gate.enter_to_read().await {
            self.write_back().prefetch(self.extent(extent), offset, sectors).await;
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
        let _inside = self.gate.enter_to_write().await?;
        let mode = self.mode.get();
        self.write_back().write(self.extent(extent), offset, buf, durable, mode).await?;
        self.keep_up_with(mode).await
    }

    /// Makes a part of an extent of this shard read as zeros, and gives its space back where that is possible.
    pub(crate) async fn zero(
        &self,
        extent: u64,
        offset: u64,
        sectors: u64,
        durable: bool,
    ) -> Result<(), IoError> {
        let _inside = self.gate.enter_to_write().await?;
        // Behind a volume's end there are zeros already: so the last extent becomes zeros as a whole, too.
        let ends = extent * self.extent_sectors() + offset + sectors == self.sectors();
        let sectors = if ends { self.extent_sectors() - offset } else { sectors };
        let mode = self.mode.get();
        self.write_back().zero(self.extent(extent), offset, sectors, durable, mode).await?;
        self.keep_up_with(mode).await
    }

    /// The extents of this shard that reach beyond the first `sectors` of the volume and have slots.
    pub(crate) fn tail(&self, sectors: u64) -> Vec<ExtentId> {
        let indices = self.pool.mapping.indices_from(self.number, sectors / self.extent_sectors());
        indices.into_iter().map(|index| ExtentId { volume: self.number, index }).collect()
    }

    /// Discards what an extent holds beyond the first `sectors` of the volume, in the log. The volume must be closed and held.
    pub(crate) async fn discard_behind(&self, extent: ExtentId, sectors: u64) -> Result<(), IoError> {
        let size = self.extent_sectors();
        let offset = sectors.saturating_sub(u64::from(extent.index) * size);
        self.write_back().zero(extent, offset, size - offset, false, WriteCache::Volatile).await
    }

    /// A write that has ended under `mode` is acknowledged as the mode promises that has come in its stead meanwhile.
    #[inline]
    async fn keep_up_with(&self, mode: WriteCache) -> Result<(), IoError> {
        let now = self.mode.get();
        if now == mode {
            return Ok(());
        }
        // Out of line: seldom needed.
        Box::pin(settle(&self.write_back(), now)).await
    }

    /// Lets requests in again that were kept out.
    pub(crate) fn open(&self) {
        self.write_back().release(self.number);
        self.gate.open();
    }

    /// Makes every write to this shard's extents that has completed stable.
    pub(crate) async fn flush(&self) -> Result<(), IoError> {
        self.write_back().flush().await
    }

    /// Whether an extent of this shard takes space.
    pub(crate) fn block_status(&self, extent: u64) -> BlockStatus {
        let allocated = self.pool.mapping.slot_of(self.extent(extent)).is_some();
        BlockStatus { sectors: self.extent_sectors(), allocated, zero: !allocated }
    }
}

/// Waits until what has been written is as stable as `mode` promises of every write: in the log, or in its place.
pub(crate) async fn settle(write_back: &WriteBack, mode: WriteCache) -> Result<(), IoError> {
    match mode {
        WriteCache::Volatile => Ok(()),
        WriteCache::Durable => write_back.flush().await,
        WriteCache::Off => write_back.drain().await,
    }
}
