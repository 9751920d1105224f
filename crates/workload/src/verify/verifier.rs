//! Stamps what is written and judges what is read.

use tier0_units::{ByteCount, Lba, SectorCount};

use super::book::{Book, Seen};
use super::stamp::{STAMP_BYTES_MIN, claim, stamp};
use super::{Found, Mismatch};
use crate::spec::SpecError;

/// The most memory that the versions of a range may take: four bytes per block, so 2 TiB of 8 KiB blocks.
pub const VERSION_MAP_MAX: ByteCount = ByteCount::gib(1);

/// A write under way. It can be used again for the next one.
#[derive(Debug, Default)]
pub struct WriteTicket {
    first: u64,
    versions: Vec<u32>,
}

/// A read under way. It can be used again for the next one.
#[derive(Debug, Default)]
pub struct ReadTicket {
    lba: u64,
    blocks: Vec<BlockTicket>,
    /// The candidates of all blocks, one block's after the other's.
    versions: Vec<u32>,
}

/// What was known of a block when the read began.
#[derive(Debug)]
struct BlockTicket {
    seen: Seen,
    /// Where its candidates end in the list of all.
    versions_end: usize,
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
        let book = Book::new(blocks as usize);
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
            let version = self.book.begin_write(block);
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
            self.book.end_write(block, *version, answered);
        }
    }

    /// Notes what a read of `sectors` at `lba` may find from now on.
    pub fn begin_read(&self, lba: Lba, sectors: SectorCount, ticket: &mut ReadTicket) {
        ticket.lba = lba.0;
        ticket.blocks.clear();
        ticket.versions.clear();
        for block in self.blocks(lba.0, sectors.0 as usize * self.width) {
            self.book.candidates(block, &mut ticket.versions);
            ticket
                .blocks
                .push(BlockTicket { seen: self.book.seen(block), versions_end: ticket.versions.len() });
        }
    }

    /// Judges the data of an answered read.
    ///
    /// # Errors
    /// The first wrong sector, and how many are wrong.
    pub fn end_read(&mut self, ticket: &ReadTicket, data: &[u8]) -> Result<(), (Mismatch, u64)> {
        let mut wrong: Option<(Mismatch, u64)> = None;
        let mut versions_start = 0;
        let first = self.blocks(ticket.lba, data.len()).start;
        for ((block, noted), bytes) in
            (first..).zip(&ticket.blocks).zip(data.chunks_exact(self.block_bytes()))
        {
            let known = &ticket.versions[versions_start..noted.versions_end];
            versions_start = noted.versions_end;
            let allowed = Allowed {
                known,
                above: noted.seen.issued,
                up_to: self.book.seen(block).issued,
                fresh: self.fresh,
            };
            match self.judge_block(block, bytes, &allowed) {
                Ok(Some(version)) => self.book.resolve(block, version, noted.seen),
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
        let mut common: Option<Option<u32>> = None;
        for (lba, sector) in (block_lba..).zip(bytes.chunks_exact(self.width)) {
            match self.judge_sector(lba, sector, allowed) {
                Ok(version) => {
                    common = Some(version.filter(|v| common.is_none_or(|common| common == Some(*v))))
                }
                Err(found) => {
                    let first =
                        || Mismatch { lba: Lba(lba), block: Lba(block_lba), allowed: allowed.list(), found };
                    wrong.get_or_insert_with(|| (first(), 0)).1 += 1;
                }
            }
        }
        wrong.map_or(Ok(common.flatten()), Err)
    }

    /// The version of a right sector; nothing where it is what was there before the run and cannot be told.
    fn judge_sector(&self, lba: u64, sector: &[u8], allowed: &Allowed<'_>) -> Result<Option<u32>, Found> {
        let (claimed_lba, version, seed) = claim(sector);
        if version > 0 && allowed.contains(version) && self.is_stamp(sector, lba, version, self.seed) {
            return Ok(Some(version));
        }
        let zeros = sector.iter().all(|byte| *byte == 0);
        if allowed.contains(0) && (zeros || !allowed.fresh) {
            return Ok(allowed.fresh.then_some(0));
        }
        if zeros {
            return Err(Found::Zeros);
        }
        let seed = seed.unwrap_or(self.seed);
        if !self.is_stamp(sector, claimed_lba, version, seed) {
            return Err(Found::Corrupt { byte: self.first_difference(lba, sector, allowed.newest()) });
        }
        Err(if seed != self.seed {
            Found::OtherSeed { lba: Lba(claimed_lba), version, seed }
        } else if claimed_lba != lba {
            Found::Misdirected { lba: Lba(claimed_lba), version }
        } else if version > allowed.newest() {
            Found::Unissued { version }
        } else {
            Found::Stale { version }
        })
    }

    fn is_stamp(&self, sector: &[u8], lba: u64, version: u32, seed: u64) -> bool {
        let mut expected = [0; 512];
        let expected = &mut expected[..self.width];
        stamp(expected, lba, version, seed);
        sector == expected
    }

    fn first_difference(&self, lba: u64, sector: &[u8], version: u32) -> usize {
        let mut expected = [0; 512];
        let expected = &mut expected[..self.width];
        if version > 0 {
            stamp(expected, lba, version, self.seed);
        }
        sector.iter().zip(expected.iter()).position(|(found, expected)| found != expected).unwrap_or(0)
    }

    /// The next run of blocks that were written, from `from` on: its first sector and its sectors, at most
    /// `sectors_max` (or one block). For the sweep at the end.
    pub fn next_written(&self, from: Lba, sectors_max: SectorCount) -> Option<(Lba, SectorCount)> {
        let from = from.0.saturating_sub(self.start).div_ceil(self.block_sectors);
        let first = (from..self.book.blocks()).find(|block| self.book.is_written(*block))?;
        let blocks_max = (sectors_max.0 / self.block_sectors).max(1);
        let end = first.saturating_add(blocks_max).min(self.book.blocks());
        let run = (first..end).take_while(|block| self.book.is_written(*block)).count() as u64;
        Some((Lba(self.start + first * self.block_sectors), SectorCount(run * self.block_sectors)))
    }

    /// Sectors of a block.
    pub fn block_sectors(&self) -> SectorCount {
        SectorCount(self.block_sectors)
    }
}

/// The versions that a block may hold when a read ends: those it might hold when the read began, and all
/// issued since.
struct Allowed<'a> {
    known: &'a [u32],
    above: u32,
    up_to: u32,
    fresh: bool,
}

impl Allowed<'_> {
    fn contains(&self, version: u32) -> bool {
        self.known.contains(&version) || (version > self.above && version <= self.up_to)
    }

    fn newest(&self) -> u32 {
        self.known.iter().copied().max().unwrap_or(0).max(self.up_to)
    }

    fn list(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.known.iter().copied().chain(self.above + 1..=self.up_to).collect();
        all.sort_unstable();
        all
    }
}
