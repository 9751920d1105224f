//! The auditor: outside of the engine it knows what every sector of every volume may hold, and judges what is read.
//!
//! What a sector may hold follows from when its writes began and ended, and from what was made stable; what it does hold
//! follows from its content, which says address and version (both `tier0_workload::verify`). The auditor knows the volumes:
//! what a request does to each of their sectors, and what it puts there.
//!
//! Invariants: a read must return, sector by sector, something that was written there and not yet certainly overwritten.
//! A crash takes back what was neither acknowledged nor, where the volume's cache is volatile, made stable by a flush or
//! by forced unit access; each sector by itself. What was once read while no write was under way stays: a database that
//! recovers decides by what it reads.

mod clone;
mod finding;

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use tier0_units::{Lba, PAGE_SECTORS, SECTOR_BYTES, SectorCount};
use tier0_workload::verify::{self, Book, Effect, Holds, Moment, stamp};

pub use clone::CloneBook;
pub use finding::Finding;

/// Address bits of a volume's sectors; the volume's number stands above them.
const VOLUME_SHIFT: u32 = 40;

/// A write under way.
#[must_use = "tell the auditor how it ended"]
pub struct WriteTicket {
    volume: usize,
    sectors: Range<u64>,
    version: u32,
}

/// A read under way.
#[derive(Clone)]
#[must_use = "let the auditor judge what was read"]
pub struct ReadTicket {
    volume: usize,
    sectors: verify::ReadTicket,
}

/// A flush under way.
#[must_use = "tell the auditor that it succeeded"]
pub struct FlushTicket {
    volume: usize,
    began: Moment,
}

/// Knows what every sector may hold. A clone is for what is tried and taken back, or for another history.
#[derive(Clone)]
pub struct Auditor {
    seed: u64,
    volumes: Vec<Book>,
    /// The last version of all volumes. Clones share it: no two histories write the same, so the one is not taken for the
    /// other.
    version: Rc<Cell<u32>>,
    sectors_verified: u64,
}

impl Auditor {
    /// Volumes of these sizes, full of zeros; the flag says that acknowledged writes survive a crash.
    pub fn new(seed: u64, volumes: &[(SectorCount, bool)]) -> Auditor {
        let book = |(sectors, stable): &(SectorCount, bool)| Book::new(sectors.0 as usize, *stable);
        let volumes = volumes.iter().map(book).collect();
        Auditor { seed, volumes, version: Rc::default(), sectors_verified: 0 }
    }

    /// Sectors judged so far.
    pub fn sectors_verified(&self) -> u64 {
        self.sectors_verified
    }

    /// A write begins: fills `data`, with zeros in the pages that `is_zero_page` names by their number in the volume.
    pub fn begin_write(
        &mut self,
        volume: usize,
        lba: Lba,
        data: &mut [u8],
        mut is_zero_page: impl FnMut(u64) -> bool,
    ) -> WriteTicket {
        let sectors = data.len() as u64 / SECTOR_BYTES;
        let pages = lba.0 / PAGE_SECTORS..(lba.0 + sectors).div_ceil(PAGE_SECTORS);
        let zero_pages: Vec<u64> = pages.filter(|page| is_zero_page(*page)).collect();
        let is_zero = |sector: u64| zero_pages.contains(&(sector / PAGE_SECTORS));
        let effect = |sector| if is_zero(sector) { Effect::Zeros } else { Effect::Stamp };
        let ticket = self.begin(volume, lba.0..lba.0 + sectors, effect);
        for (sector, bytes) in (lba.0..).zip(data.chunks_exact_mut(SECTOR_BYTES as usize)) {
            if is_zero(sector) {
                bytes.fill(0);
            } else {
                stamp(bytes, address(volume, sector), ticket.version, self.seed);
            }
        }
        ticket
    }

    /// Writing of zeros begins.
    pub fn begin_zeroes(&mut self, volume: usize, lba: Lba, sectors: u64) -> WriteTicket {
        self.begin(volume, lba.0..lba.0 + sectors, |_| Effect::Zeros)
    }

    /// A discard begins; whole runs of `granule` sectors will read as zeros.
    pub fn begin_discard(&mut self, volume: usize, lba: Lba, sectors: u64, granule: u64) -> WriteTicket {
        let range = lba.0..lba.0 + sectors;
        self.begin(volume, range.clone(), |sector| Effect::of_discard(&range, granule, sector))
    }

    fn begin(&mut self, volume: usize, sectors: Range<u64>, effect: impl Fn(u64) -> Effect) -> WriteTicket {
        let version = self.version.get() + 1;
        self.version.set(version);
        for sector in sectors.clone() {
            self.volumes[volume].begin_write(sector, version, effect(sector));
        }
        WriteTicket { volume, sectors, version }
    }

    /// A write ended. After a failure it may have been done, in part, or not at all; `durable` says that it was to be
    /// stable when acknowledged.
    pub fn end_write(&mut self, ticket: WriteTicket, acknowledged: bool, durable: bool) {
        for sector in ticket.sectors {
            self.volumes[ticket.volume].end_write(sector, ticket.version, acknowledged, durable);
        }
    }

    /// A flush begins.
    pub fn begin_flush(&mut self, volume: usize) -> FlushTicket {
        FlushTicket { volume, began: self.volumes[volume].begin_flush() }
    }

    /// A flush was acknowledged. (One that failed promises nothing: drop its ticket.)
    pub fn end_flush(&mut self, ticket: FlushTicket) {
        self.volumes[ticket.volume].end_flush(ticket.began);
    }

    /// The array died; whatever was under way will not end.
    pub fn crash(&mut self) {
        self.volumes.iter_mut().for_each(Book::crash);
    }

    /// A read begins. (Nothing is learned from one that fails: drop its ticket.)
    pub fn begin_read(&self, volume: usize, lba: Lba, sectors: u64) -> ReadTicket {
        let mut ticket = ReadTicket { volume, sectors: verify::ReadTicket::default() };
        let range = lba.0..lba.0 + sectors;
        self.volumes[volume].begin_read(range, self.version.get(), &mut ticket.sectors);
        ticket
    }

    /// Judges what a read returned.
    ///
    /// # Errors
    /// The first sector that is wrong.
    pub fn end_read(&mut self, ticket: &ReadTicket, data: &[u8]) -> Result<(), Box<Finding>> {
        let ReadTicket { volume, sectors } = ticket;
        let book = &mut self.volumes[*volume];
        for (sector, bytes) in sectors.units().zip(data.chunks_exact(SECTOR_BYTES as usize)) {
            self.sectors_verified += 1;
            let (allowed, holds) = (book.allowed(sectors, sector), Holds::of(bytes, self.seed));
            let Some(version) = allowed.version_of(&holds, address(*volume, sector)) else {
                return Err(Box::new(Finding {
                    volume: *volume,
                    sector,
                    expected: allowed.into_owned(),
                    holds,
                }));
            };
            book.observe(sector, &allowed, version);
        }
        Ok(())
    }

    /// Size of a volume.
    pub fn sectors(&self, volume: usize) -> u64 {
        self.volumes[volume].units()
    }
}

/// What a sector of a volume says of its place.
fn address(volume: usize, sector: u64) -> u64 {
    (volume as u64) << VOLUME_SHIFT | sector
}

/// Volume and sector of an address.
fn place(address: u64) -> (u64, u64) {
    (address >> VOLUME_SHIFT, address & ((1 << VOLUME_SHIFT) - 1))
}

#[cfg(test)]
mod tests;
