//! Stamps what is written and judges what is read.

use tier0_units::{ByteCount, Lba, SectorCount};

use super::stamp::{STAMP_BYTES_MIN, stamp};
use super::{Allowed, Book, Effect, Found, Holds, Mismatch, ReadTicket, first_difference};
use crate::spec::SpecError;

/// The most memory that the versions of a range may take: four bytes per block, so 2 TiB of 8 KiB blocks.
pub const VERSION_MAP_MAX: ByteCount = ByteCount::gib(1);

/// A write under way. It can be used again for the next one.
#[derive(Debug, Default)]
pub struct WriteTicket {
    first: u64,
    versions: Vec<u32>,
}

/// Knows what every block of a range may hold.
#[derive(Debug)]
pub struct Verifier {
    seed: u64,
    /// Bytes per sector.
    width: usize,
    start: u64,
    block_sectors: u64,
    /// What this run has not written reads as zeros.
    fresh: bool,
    book: Book,
}

impl Verifier {
    /// A verifier of `length` sectors from `start`, in blocks of `block` sectors of `width` bytes (at least
    /// [`STAMP_BYTES_MIN`]). With `fresh`, what was not written must be zeros; otherwise it may be anything.
    ///
    /// # Errors
    /// [`SpecError::VersionMapTooLarge`] where the versions would take more than [`VERSION_MAP_MAX`].
    pub fn new(
        (start, length, block): (Lba, SectorCount, SectorCount),
        width: usize,
        seed: u64,
        fresh: bool,
    ) -> Result<Verifier, SpecError> {
        assert!(block.0 > 0 && width >= STAMP_BYTES_MIN, "a verified block has sectors of at least 16 bytes");
        let blocks = length.0.div_ceil(block.0);
        let needed = ByteCount(blocks.saturating_mul(4));
        if needed > VERSION_MAP_MAX {
            return Err(SpecError::VersionMapTooLarge { needed, allowed: VERSION_MAP_MAX });
        }
        let book = Book::new(blocks as usize, true);
        Ok(Verifier { seed, width, start: start.0, block_sectors: block.0, fresh, book })
    }

    /// The numbers of the blocks that a request covers, which must be whole ones.
    fn blocks(&self, lba: u64, bytes: usize) -> std::ops::Range<u64> {
        let sectors = (bytes / self.width) as u64;
        let offset = lba - self.start;
        let whole = offset.is_multiple_of(self.block_sectors) && sectors.is_multiple_of(self.block_sectors);
        assert!(whole, "{sectors} sectors at {lba} are no whole blocks of {} sectors", self.block_sectors);
        offset / self.block_sectors..(offset + sectors) / self.block_sectors
    }

    /// Bytes of a block.
    fn block_bytes(&self) -> usize {
        self.block_sectors as usize * self.width
    }

    /// Stamps `data`, which is about to be written at `lba`, with new versions.
    pub fn begin_write(&mut self, lba: Lba, data: &mut [u8], ticket: &mut WriteTicket) {
        let blocks = self.blocks(lba.0, data.len());
        ticket.first = blocks.start;
        ticket.versions.clear();
        let (width, mut sector_lba) = (self.width, lba.0);
        for (block, bytes) in blocks.zip(data.chunks_exact_mut(self.block_bytes())) {
            let version = self.book.issued(block).checked_add(1);
            let version = version.expect("a block is written fewer than 2^32 times in a run");
            self.book.begin_write(block, version, Effect::Stamp);
            ticket.versions.push(version);
            for sector in bytes.chunks_exact_mut(width) {
                stamp(sector, sector_lba, version, self.seed);
                sector_lba += 1;
            }
        }
    }

    /// The write was answered; after a failure (`answered` false) its data may be there or not.
    pub fn end_write(&mut self, ticket: &WriteTicket, answered: bool) {
        for (block, version) in (ticket.first..).zip(&ticket.versions) {
            self.book.end_write(block, *version, answered, false);
        }
    }

    /// Notes what a read of `sectors` at `lba` may find from now on.
    pub fn begin_read(&self, lba: Lba, sectors: SectorCount, ticket: &mut ReadTicket) {
        self.book.begin_read(self.blocks(lba.0, sectors.0 as usize * self.width), 0, ticket);
    }

    /// Judges the data of an answered read.
    ///
    /// # Errors
    /// The first wrong sector, and how many are wrong.
    pub fn end_read(&mut self, ticket: &ReadTicket, data: &[u8]) -> Result<(), (Mismatch, u64)> {
        let mut wrong: Option<(Mismatch, u64)> = None;
        let blocks = ticket.units().count();
        assert_eq!(data.len(), blocks * self.block_bytes(), "what is judged is what was asked for");
        for (block, bytes) in ticket.units().zip(data.chunks_exact(self.block_bytes())) {
            let allowed = self.book.allowed(ticket, block);
            match self.judge_block(block, bytes, &allowed) {
                Ok(Some(version)) => self.book.observe(block, &allowed, version),
                Ok(None) => {}
                Err((mismatch, count)) => wrong.get_or_insert((mismatch, 0)).1 += count,
            }
        }
        wrong.map_or(Ok(()), Err)
    }

    /// The version that all sectors of a block have in common, if they have.
    fn judge_block(
        &self,
        block: u64,
        bytes: &[u8],
        allowed: &Allowed<'_>,
    ) -> Result<Option<u32>, (Mismatch, u64)> {
        let block_lba = self.start + block * self.block_sectors;
        let mut wrong: Option<(Mismatch, u64)> = None;
        let (mut seen, mut is_one) = (None, true);
        for (lba, sector) in (block_lba..).zip(bytes.chunks_exact(self.width)) {
            match self.judge_sector(lba, sector, allowed) {
                Ok(version) => is_one &= *seen.get_or_insert(version) == version,
                Err(found) => {
                    let (lba, block) = (Lba(lba), Lba(block_lba));
                    let first = || Mismatch { lba, block, allowed: allowed.numbers(), found };
                    wrong.get_or_insert_with(|| (first(), 0)).1 += 1;
                }
            }
        }
        wrong.map_or(Ok(seen.flatten().filter(|_| is_one)), Err)
    }

    /// The version of a right sector; nothing where it may be what was there before the run and cannot be told.
    fn judge_sector(&self, lba: u64, sector: &[u8], allowed: &Allowed<'_>) -> Result<Option<u32>, Found> {
        let holds = Holds::of(sector, self.seed);
        let version = allowed.version_of(&holds, lba);
        if version.is_some_and(|version| version > 0 || self.fresh) {
            return Ok(version);
        }
        if !self.fresh && allowed.is_perhaps_unwritten() {
            return Ok(None);
        }
        let newest = allowed.newest();
        Err(match holds {
            Holds::Zeros => Found::Zeros,
            Holds::Noise => {
                let byte = first_difference(sector, lba, newest, self.seed);
                Found::Corrupt { byte: byte.unwrap_or(0) }
            }
            Holds::OtherSeed { address, version, seed } => {
                Found::OtherSeed { lba: Lba(address), version, seed }
            }
            Holds::Stamp { address, version } if address != lba => {
                Found::Misdirected { lba: Lba(address), version }
            }
            Holds::Stamp { version, .. } if version > newest => Found::Unissued { version },
            Holds::Stamp { version, .. } => Found::Stale { version },
        })
    }

    /// The next run of blocks that were written, from `from` on: its first sector and its sectors, at most
    /// `sectors_max` (or one block). For the sweep at the end.
    pub fn next_written(&self, from: Lba, sectors_max: SectorCount) -> Option<(Lba, SectorCount)> {
        let from = from.0.saturating_sub(self.start).div_ceil(self.block_sectors);
        let first = (from..self.book.units()).find(|block| self.book.is_written(*block))?;
        let blocks_max = (sectors_max.0 / self.block_sectors).max(1);
        let end = first.saturating_add(blocks_max).min(self.book.units());
        let run = (first..end).take_while(|block| self.book.is_written(*block)).count() as u64;
        Some((Lba(self.start + first * self.block_sectors), SectorCount(run * self.block_sectors)))
    }

    /// Sectors of a block.
    pub fn block_sectors(&self) -> SectorCount {
        SectorCount(self.block_sectors)
    }
}
