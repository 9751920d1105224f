//! The volumes of one array, or of a group of arrays that share the load, as one range of sectors for the load
//! generator.
//!
//! A member's volumes lie one behind the other. Over several members the range is dealt out in pages, so that every
//! volume spreads over all members.

use std::rc::Rc;

use futures_util::future::join_all;
use tier0_block::{BlockTarget, TargetInfo};
use tier0_units::{Lba, SectorCount};
use tier0_world::{Buf, BufMut, IoError};

use super::{BackEnd, FrontEnd};

/// A page of a group: the unit in which volumes spread over members, 15 MiB (assumed: remembered of the scale-out
/// array of the reference systems; anything far larger than an I/O and far smaller than a volume does the same).
const PAGE_SECTORS: u64 = 15 * 2048;

/// One array with its path.
pub struct Member<T> {
    /// Ports and processors, which the array's other volumes use too.
    pub front_end: Rc<FrontEnd>,
    /// Buses, all of the array's.
    pub back_end: BackEnd,
    /// Volumes, all of one size.
    pub volumes: Rc<[T]>,
    /// The number of the first of them in the array, by which volumes take turns on the controllers.
    pub first_volume: usize,
    /// Whether their reads look into the read cache.
    pub reads_cached: bool,
}

/// Members behind one address space.
pub struct Group<T> {
    members: Vec<Member<T>>,
    volume_sectors: u64,
    member_sectors: u64,
}

/// A stretch of a request that lies in one volume of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    member: usize,
    volume: usize,
    lba: Lba,
    sectors: u64,
}

impl<T: BlockTarget + 'static> Group<T> {
    /// A group of `members` that are all alike.
    pub fn new(members: Vec<Member<T>>) -> Group<T> {
        let first = &members[0].volumes;
        let volume_sectors = first[0].info().sectors.0;
        let whole = volume_sectors * first.len() as u64;
        // What is left of the last page is not used where pages are dealt out.
        let member_sectors = if members.len() > 1 { whole / PAGE_SECTORS * PAGE_SECTORS } else { whole };
        Group { members, volume_sectors, member_sectors }
    }

    /// The members.
    pub fn members(&self) -> &[Member<T>] {
        &self.members
    }

    /// The member and the place in it of a sector, and how many sectors follow it there.
    fn place(&self, lba: u64) -> (usize, u64, u64) {
        let count = self.members.len() as u64;
        if count == 1 {
            return (0, lba, u64::MAX);
        }
        let (page, inside) = (lba / PAGE_SECTORS, lba % PAGE_SECTORS);
        ((page % count) as usize, page / count * PAGE_SECTORS + inside, PAGE_SECTORS - inside)
    }

    fn piece(&self, lba: u64, sectors: u64) -> Piece {
        let (member, at, together) = self.place(lba);
        let (volume, inside) = (at / self.volume_sectors, at % self.volume_sectors);
        let sectors = sectors.min(together).min(self.volume_sectors - inside);
        Piece { member, volume: volume as usize, lba: Lba(inside), sectors }
    }

    fn pieces(&self, lba: Lba, sectors: u64) -> Vec<Piece> {
        let (mut at, end) = (lba.0, lba.0 + sectors);
        let mut pieces = Vec::new();
        while at < end {
            let piece = self.piece(at, end - at);
            at += piece.sectors;
            pieces.push(piece);
        }
        pieces
    }

    /// Calls `on` with each volume that a range lies in, and where in it.
    pub(crate) fn each_piece(&self, lba: Lba, sectors: u64, on: impl Fn(&T, Lba, u64)) {
        for piece in self.pieces(lba, sectors) {
            on(&self.members[piece.member].volumes[piece.volume], piece.lba, piece.sectors);
        }
    }

    async fn read_piece(&self, piece: Piece, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let member = &self.members[piece.member];
        let bytes = SectorCount(piece.sectors).bytes().0;
        let port = member.front_end.take_port();
        let volume = member.first_volume + piece.volume;
        member.front_end.admit_read(volume, bytes, member.reads_cached).await;
        let (result, buf) = member.volumes[piece.volume].read(piece.lba, buf).await;
        if result.is_ok() {
            member.front_end.send(port, bytes).await;
        }
        (result, buf)
    }

    async fn write_piece(&self, piece: Piece, buf: Buf, durable: bool) -> Result<(), IoError> {
        let member = &self.members[piece.member];
        let port = member.front_end.take_port();
        let volume = member.first_volume + piece.volume;
        member.front_end.admit_write(port, volume, SectorCount(piece.sectors).bytes().0).await;
        member.volumes[piece.volume].write(piece.lba, buf, durable).await
    }

    fn check(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        match lba.0.checked_add(sectors) {
            Some(end) if end <= self.info().sectors.0 => Ok(()),
            _ => Err(IoError::OutOfRange),
        }
    }
}

impl<T: BlockTarget + 'static> BlockTarget for Group<T> {
    fn info(&self) -> TargetInfo {
        let sectors = SectorCount(self.member_sectors * self.members.len() as u64);
        TargetInfo { sectors, block_sectors: 1, volatile_cache: true }
    }

    async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let sectors = u64::from(buf.sectors());
        if let Err(error) = self.check(lba, sectors) {
            return (Err(error), buf);
        }
        let first = self.piece(lba.0, sectors);
        if first.sectors == sectors {
            return self.read_piece(first, buf).await;
        }
        let mut rest = buf;
        let parts = self.pieces(lba, sectors).into_iter().map(|piece| {
            let part = rest.split_to(piece.sectors as u32);
            self.read_piece(piece, part)
        });
        let mut parts = join_all(parts.collect::<Vec<_>>()).await.into_iter();
        let (mut result, mut buf) = parts.next().expect("a request has pieces");
        for (other, part) in parts {
            result = result.and(other);
            buf.join(part);
        }
        (result, buf)
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        let sectors = u64::from(buf.sectors());
        self.check(lba, sectors)?;
        let first = self.piece(lba.0, sectors);
        if first.sectors == sectors {
            return self.write_piece(first, buf, durable).await;
        }
        let mut done = 0;
        let parts = self.pieces(lba, sectors).into_iter().map(|piece| {
            let part = buf.slice(done, piece.sectors as u32);
            done += piece.sectors as u32;
            self.write_piece(piece, part, durable)
        });
        join_all(parts.collect::<Vec<_>>()).await.into_iter().collect()
    }

    async fn flush(&self) -> Result<(), IoError> {
        for volume in self.members.iter().flat_map(|member| member.volumes.iter()) {
            volume.flush().await?;
        }
        Ok(())
    }

    /// Nothing is held, so nothing is given back.
    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        self.check(lba, sectors)
    }

    /// Zeros are written as any other data.
    async fn write_zeroes(
        &self,
        lba: Lba,
        sectors: u64,
        _may_discard: bool,
        durable: bool,
    ) -> Result<(), IoError> {
        self.check(lba, sectors)?;
        for piece in self.pieces(lba, sectors) {
            let volume = &self.members[piece.member].volumes[piece.volume];
            volume.write_zeroes(piece.lba, piece.sectors, false, durable).await?;
        }
        Ok(())
    }
}
