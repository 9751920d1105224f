//! A volume as its users see it in one shard: each request goes to the owners of its extents.

use std::rc::Rc;

use futures_util::future::join_all;
use tier0_block::{BlockStatus, BlockTarget, TargetInfo};
use tier0_cache::{Ahead, ReadCacheStatus, WriteBackStatus};
use tier0_control::message::request::ShardRequest;
use tier0_flash_cache::FlashCacheStatus;
use tier0_stats::{IoRecorder, Op};
use tier0_units::{Lba, Nanos, PAGE_SECTORS, SECTOR_BYTES, SectorCount, WriteCache};
use tier0_volume::{ExtentPiece, Extents, owner};
use tier0_world::sync::oneshot;
use tier0_world::{Buf, BufMut, IoError};

use crate::shard::Shard;
use crate::volume_io::VolumeIo;

/// Extents of one request that are made zero at the same time.
const ZERO_EXTENTS_AT_ONCE: usize = 64;

/// A volume in one shard; clones share it.
#[derive(Clone)]
pub struct Volume {
    shard: Rc<Shard>,
    number: u32,
    /// Its extents in this shard.
    io: Rc<VolumeIo>,
}

impl Volume {
    /// A volume by its number in the array; none where it was deleted.
    pub(crate) fn of(shard: &Rc<Shard>, number: u32) -> Option<Volume> {
        let volumes = shard.volumes.borrow();
        let io = volumes.get(number as usize)?.clone()?;
        Some(Volume { shard: shard.clone(), number, io })
    }

    /// All that there are, by their numbers.
    pub(crate) fn all(shard: &Rc<Shard>) -> Vec<Volume> {
        let count = shard.volumes.borrow().len() as u32;
        (0..count).filter_map(|number| Volume::of(shard, number)).collect()
    }

    /// Its name now.
    pub fn name(&self) -> Rc<str> {
        self.io.name()
    }

    /// From now on it has this name in this shard.
    pub(crate) fn rename(&self, name: &str) {
        self.io.rename(name);
    }

    /// Its ceilings hold nothing back any more.
    pub(crate) fn let_through(&self) {
        self.io.throttle.let_through();
    }

    /// How its write cache stands in this shard; volumes of a group of sets share it.
    pub fn write_cache(&self) -> WriteBackStatus {
        self.io.write_back().status()
    }

    /// Whether its reads look for their pages in memory and keep them there, by its switch and its pool's.
    pub fn reads_cached(&self) -> bool {
        self.io.reads_cached()
    }

    /// How the memory cache for reads of its pool stands in this shard; none where nothing is kept of what it reads.
    pub fn read_cache(&self) -> Option<ReadCacheStatus> {
        let cache = self.io.pool.read_cache.as_ref().filter(|_| self.reads_cached());
        cache.map(|cache| cache.status())
    }

    /// How the flash cache of its pool stands in this shard; `None` if the pool has no flash cache or the volume does not use it.
    pub fn flash_cache(&self) -> Option<FlashCacheStatus> {
        let flash = self.io.pool.flash_cache.as_ref().filter(|_| self.reads_cached());
        flash.map(|flash| flash.cache.status()).filter(|status| status.devices > 0)
    }

    /// Whether writes of this shard are acknowledged before they are in their slots.
    pub fn writes_cached(&self) -> bool {
        self.io.write_back().has_log() && self.io.mode() != WriteCache::Off
    }

    /// Destages everything that its write cache holds in this shard.
    ///
    /// # Errors
    /// What of it cannot be written.
    pub async fn drain_write_cache(&self) -> Result<(), IoError> {
        self.io.write_back().drain().await
    }

    /// Has a range count as read before, in the flash cache and with `in_memory` in memory, without I/O: how a simulated array of
    /// a single shard gets warm caches in no time. What goes beyond the volume is left out.
    ///
    /// # Panics
    /// In a world that keeps content.
    pub fn bring_in(&self, lba: Lba, sectors: u64, in_memory: bool) {
        if self.check(lba, sectors).is_ok() {
            for piece in self.extents(lba, sectors) {
                self.io.bring_in(piece.extent, piece.offset, piece.sectors as u32, in_memory);
            }
        }
    }

    /// The flash cache may take no more writes than a day allows, as one that has been in use for long.
    pub fn use_up_flash_budget(&self) {
        self.io.write_back().use_up_flash_budget();
    }

    fn check(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        match lba.0.checked_add(sectors) {
            Some(end) if end <= self.sectors() => Ok(()),
            _ => Err(IoError::OutOfRange),
        }
    }

    #[inline]
    fn sectors(&self) -> u64 {
        self.io.sectors()
    }

    #[inline]
    fn extents(&self, lba: Lba, sectors: u64) -> Extents {
        Extents::new(lba, sectors, self.io.extent_sectors())
    }

    #[inline]
    fn owner(&self, extent: u64) -> usize {
        owner(self.io.family, extent, self.shard.peers.len())
    }

    async fn read_piece(&self, piece: ExtentPiece, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let owner = self.owner(piece.extent);
        if owner == self.shard.index {
            return self.io.read(piece.extent, piece.offset, buf).await;
        }
        let (reply, answer) = oneshot::channel();
        let (sectors, width) = (buf.sectors(), buf.width());
        self.shard.peers[owner].send(ShardRequest::Read {
            volume: self.number,
            extent: piece.extent,
            offset: piece.offset,
            buf,
            reply,
        });
        // A shard that is gone has taken the buffer with it.
        answer.await.unwrap_or_else(|_| (Err(IoError::Gone), BufMut::zeroed(sectors, width)))
    }

    async fn write_piece(&self, piece: ExtentPiece, buf: Buf, durable: bool) -> Result<(), IoError> {
        let owner = self.owner(piece.extent);
        if owner == self.shard.index {
            return self.io.write(piece.extent, piece.offset, buf, durable).await;
        }
        let (reply, answer) = oneshot::channel();
        self.shard.peers[owner].send(ShardRequest::Write {
            volume: self.number,
            extent: piece.extent,
            offset: piece.offset,
            buf,
            durable,
            reply,
        });
        answer.await.unwrap_or(Err(IoError::Gone))
    }

    async fn zero_piece(&self, piece: ExtentPiece, durable: bool) -> Result<(), IoError> {
        let ExtentPiece { extent, offset, sectors } = piece;
        let owner = self.owner(extent);
        if owner == self.shard.index {
            return self.io.zero(extent, offset, sectors, durable).await;
        }
        let (reply, answer) = oneshot::channel();
        let volume = self.number;
        self.shard.peers[owner].send(ShardRequest::Zero { volume, extent, offset, sectors, durable, reply });
        answer.await.unwrap_or(Err(IoError::Gone))
    }

    async fn read_range(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let sectors = u64::from(buf.sectors());
        if let Err(error) = self.check(lba, sectors) {
            return (Err(error), buf);
        }
        let mut pieces = self.extents(lba, sectors);
        match pieces.next() {
            None => return (Ok(()), buf),
            Some(only) if only.sectors == sectors => return self.read_piece(only, buf).await,
            Some(_) => {}
        }
        let mut rest = buf;
        let parts = self.extents(lba, sectors).map(|piece| {
            let part = rest.split_to(piece.sectors as u32);
            self.read_piece(piece, part)
        });
        let mut parts = join_all(parts.collect::<Vec<_>>()).await.into_iter();
        let (mut result, mut buf) = parts.next().expect("more than one piece");
        for (other, part) in parts {
            result = result.and(other);
            buf.append(part);
        }
        (result, buf)
    }

    /// Has what a reader will ask for next read into memory, where it goes through the volume in order.
    #[inline]
    fn read_ahead(&self, lba: Lba, sectors: u64) {
        let Some(cache) = self.io.pool.read_cache.as_ref().filter(|_| self.io.reads_cached()) else { return };
        let ahead = self.io.read_ahead.borrow_mut().asked(lba.0, sectors, self.sectors(), cache.window_max());
        if let Some(ahead) = ahead {
            self.begin_prefetch(ahead);
        }
    }

    #[cold]
    fn begin_prefetch(&self, Ahead { from, sectors, piece }: Ahead) {
        // Only whole pages come in.
        let page = |sector: u64| sector.next_multiple_of(PAGE_SECTORS);
        let (from, end) = (from / PAGE_SECTORS * PAGE_SECTORS, page(from + sectors).min(self.sectors()));
        let piece = page(piece);
        for start in (from..end).step_by(piece as usize) {
            let length = piece.min(end - start);
            for ExtentPiece { extent, offset, sectors } in self.extents(Lba(start), length) {
                let (volume, sectors) = (self.number, sectors as u32);
                // To the own shard too: the reader's own request goes first.
                let request = ShardRequest::Prefetch { volume, extent, offset, sectors };
                self.shard.peers[self.owner(extent)].send(request);
            }
        }
    }

    async fn write_range(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        let sectors = u64::from(buf.sectors());
        self.check(lba, sectors)?;
        let mut pieces = self.extents(lba, sectors);
        match pieces.next() {
            None => return Ok(()),
            Some(only) if only.sectors == sectors => return self.write_piece(only, buf, durable).await,
            Some(_) => {}
        }
        let mut done = 0;
        let parts = self.extents(lba, sectors).map(|piece| {
            let part = buf.slice(done, piece.sectors as u32);
            done += piece.sectors as u32;
            self.write_piece(piece, part, durable)
        });
        join_all(parts.collect::<Vec<_>>()).await.into_iter().collect()
    }

    /// Every shard has its own log.
    async fn flush_shards(&self) -> Result<(), IoError> {
        let flush_one = async |shard: usize| {
            if shard == self.shard.index {
                return self.io.flush().await;
            }
            let (reply, answer) = oneshot::channel();
            self.shard.peers[shard].send(ShardRequest::Flush { volume: self.number, reply });
            answer.await.unwrap_or(Err(IoError::Gone))
        };
        join_all((0..self.shard.peers.len()).map(flush_one)).await.into_iter().collect()
    }

    fn began(&self) -> Nanos {
        IoRecorder::began(|| self.shard.world.now())
    }

    fn count(&self, op: Op, sectors: u64, began: Nanos, is_ok: bool) {
        let latency = || self.shard.world.now().saturating_sub(began);
        self.io.stats.ended(op, sectors * SECTOR_BYTES, latency, is_ok);
    }

    /// Makes a range read as zeros without storing them.
    async fn zero_range(&self, lba: Lba, sectors: u64, durable: bool) -> Result<(), IoError> {
        let began = self.began();
        let result = self.zero_extents(lba, sectors, durable).await;
        self.count(Op::Discard, sectors, began, result.is_ok());
        result
    }

    /// A few extents at a time, so that a whole volume takes no more memory than a small part.
    async fn zero_extents(&self, lba: Lba, sectors: u64, durable: bool) -> Result<(), IoError> {
        let mut pieces = self.extents(lba, sectors).peekable();
        while pieces.peek().is_some() {
            let some = pieces.by_ref().take(ZERO_EXTENTS_AT_ONCE);
            let all = join_all(some.map(|piece| self.zero_piece(piece, durable)).collect::<Vec<_>>()).await;
            all.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(())
    }

    async fn extent_status(&self, extent: u64) -> Result<BlockStatus, IoError> {
        let owner = self.owner(extent);
        if owner == self.shard.index {
            return Ok(self.io.block_status(extent));
        }
        let (reply, answer) = oneshot::channel();
        self.shard.peers[owner].send(ShardRequest::BlockStatus { volume: self.number, extent, reply });
        answer.await.unwrap_or(Err(IoError::Gone))
    }
}

impl BlockTarget for Volume {
    fn info(&self) -> TargetInfo {
        TargetInfo {
            sectors: SectorCount(self.sectors()),
            block_sectors: 1,
            volatile_cache: self.io.is_volatile(),
        }
    }

    /// By the ceilings of the volume. Reads and writes do not wait for them by themselves.
    async fn admit(&self, sectors: u64, is_gone: &dyn Fn() -> bool) -> bool {
        self.io.throttle.enter(&self.shard.world, sectors * SECTOR_BYTES, is_gone).await
    }

    async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        self.shard.activity.count_one();
        let (began, sectors) = (self.began(), u64::from(buf.sectors()));
        self.read_ahead(lba, sectors);
        let (result, buf) = self.read_range(lba, buf).await;
        self.count(Op::Read, sectors, began, result.is_ok());
        (result, buf)
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        self.shard.activity.count_one();
        let (began, sectors) = (self.began(), u64::from(buf.sectors()));
        let result = self.write_range(lba, buf, durable).await;
        self.count(Op::Write, sectors, began, result.is_ok());
        result
    }

    async fn flush(&self) -> Result<(), IoError> {
        let began = self.began();
        let result = self.flush_shards().await;
        self.count(Op::Flush, 0, began, result.is_ok());
        result
    }

    /// Afterwards whole pages of the range read as zeros, where there is a log; elsewhere a volume keeps its space and its
    /// content.
    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        self.check(lba, sectors)?;
        if !self.io.write_back().has_log() {
            return Ok(());
        }
        self.zero_range(lba, sectors, false).await
    }

    async fn write_zeroes(
        &self,
        lba: Lba,
        sectors: u64,
        _may_discard: bool,
        durable: bool,
    ) -> Result<(), IoError> {
        self.check(lba, sectors)?;
        self.zero_range(lba, sectors, durable).await
    }

    async fn block_status(
        &self,
        lba: Lba,
        sectors: u64,
        runs_max: usize,
    ) -> Result<Vec<BlockStatus>, IoError> {
        self.check(lba, sectors)?;
        let mut runs: Vec<BlockStatus> = Vec::new();
        for piece in self.extents(lba, sectors) {
            let own = BlockStatus { sectors: piece.sectors, ..self.extent_status(piece.extent).await? };
            let is_full = runs.len() == runs_max;
            match runs.last_mut() {
                Some(last) if (last.allocated, last.zero) == (own.allocated, own.zero) => {
                    last.sectors += own.sectors;
                }
                _ if is_full => break,
                _ => runs.push(own),
            }
        }
        Ok(runs)
    }
}
