//! A volume as its users see it in one shard: each request goes to the owners of its extents.

use std::rc::Rc;

use futures_util::future::join_all;
use tier0_drive::{BlockTarget, TargetInfo, write_zeros};
use tier0_units::{Lba, SectorCount};
use tier0_volume::{ExtentPiece, Extents, owner};
use tier0_world::sync::oneshot;
use tier0_world::{Buf, BufMut, IoError};

use crate::shard::{Ask, Shard};

/// A volume in one shard; clones share it.
#[derive(Clone)]
pub struct Volume {
    shard: Rc<Shard>,
    number: u32,
    name: Rc<str>,
}

impl Volume {
    pub(crate) fn new(shard: &Rc<Shard>, number: u32, name: &str) -> Volume {
        Volume { shard: shard.clone(), number, name: name.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        match lba.0.checked_add(sectors) {
            Some(end) if end <= self.sectors() => Ok(()),
            _ => Err(IoError::OutOfRange),
        }
    }

    #[inline]
    fn sectors(&self) -> u64 {
        self.shard.volumes[self.number as usize].map().sectors()
    }

    #[inline]
    fn extents(&self, lba: Lba, sectors: u64) -> Extents {
        Extents::new(lba, sectors, self.shard.volumes[self.number as usize].map().extent_sectors())
    }

    #[inline]
    fn owner(&self, extent: u64) -> usize {
        owner(self.number, extent, self.shard.peers.len())
    }

    async fn read_piece(&self, piece: ExtentPiece, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let owner = self.owner(piece.extent);
        if owner == self.shard.index {
            return self.shard.volumes[self.number as usize].read(piece.extent, piece.offset, buf).await;
        }
        let (reply, answer) = oneshot::channel();
        let (sectors, width) = (buf.sectors(), buf.width());
        self.shard.peers[owner].send(Ask::Read {
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
            return self.shard.volumes[self.number as usize]
                .write(piece.extent, piece.offset, buf, durable)
                .await;
        }
        let (reply, answer) = oneshot::channel();
        self.shard.peers[owner].send(Ask::Write {
            volume: self.number,
            extent: piece.extent,
            offset: piece.offset,
            buf,
            durable,
            reply,
        });
        answer.await.unwrap_or(Err(IoError::Gone))
    }
}

impl BlockTarget for Volume {
    fn info(&self) -> TargetInfo {
        TargetInfo { sectors: SectorCount(self.sectors()), block_sectors: 1, volatile_cache: true }
    }

    async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
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
            match buf.try_join(part) {
                Ok(()) => {}
                // A lost shard's part is not the caller's memory any more; the read has failed anyway.
                Err(_) => return (Err(IoError::Gone), BufMut::zeroed(sectors as u32, buf.width())),
            }
        }
        (result, buf)
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
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

    /// All shards' drives are the same files and devices, so one shard's flush makes every shard's completed writes
    /// stable.
    async fn flush(&self) -> Result<(), IoError> {
        self.shard.volumes[self.number as usize].flush().await
    }

    /// A thick volume keeps its space and its content.
    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        self.check(lba, sectors)
    }

    async fn write_zeroes(
        &self,
        lba: Lba,
        sectors: u64,
        _may_discard: bool,
        durable: bool,
    ) -> Result<(), IoError> {
        self.check(lba, sectors)?;
        write_zeros(self, self.shard.world.width(), lba, sectors, durable).await
    }
}
