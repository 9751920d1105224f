//! The auditor: outside of the engine it knows what every sector of every volume may hold, and judges what is read.
//!
//! What a sector may hold follows from when its writes began and ended, and from what was made stable (`book`). What a
//! sector does hold follows from its content, which says address and version (`tier0_workload::verify`).
//!
//! Invariants: a read must return, sector by sector, something that was written there and not yet certainly overwritten.
//! A crash takes back what was neither acknowledged nor, where the volume's cache is volatile, made stable by a flush or
//! by forced unit access; each sector by itself. What was once read while no write was under way stays: a database that
//! recovers decides by what it reads.

mod book;
mod finding;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use tier0_units::{Lba, SECTOR_BYTES, SectorCount};
use tier0_workload::verify::stamp;

use book::{Book, Entry, Moment};
pub use finding::{Expected, Finding, Holds};

/// Sectors of a page that may be all zeros within a write.
const PAGE_SECTORS: u64 = 8;
/// Address bits of a volume's sectors; the volume's number stands above them.
const VOLUME_SHIFT: u32 = 40;

/// What one write put where.
#[derive(Debug)]
struct Shape {
    volume: usize,
    first: u64,
    sectors: u64,
    version: u32,
    content: Content,
    began: Moment,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// Stamps, but zeros in the pages (counted in volume pages) that are listed.
    Stamps { zero_pages: Vec<u64> },
    /// Zeros everywhere.
    Zeros,
    /// Zeros in the whole granules of this size; elsewhere zeros or what was there before.
    Discard { granule: u64 },
}

impl Shape {
    fn covers(&self, volume: usize, sector: u64) -> bool {
        self.volume == volume && sector >= self.first && sector < self.first + self.sectors
    }

    fn is_zero(&self, sector: u64) -> bool {
        match &self.content {
            Content::Stamps { zero_pages } => zero_pages.contains(&(sector / PAGE_SECTORS)),
            Content::Zeros | Content::Discard { .. } => true,
        }
    }

    /// Whether the write may leave the sector as it was, even once it is acknowledged.
    fn may_skip(&self, sector: u64) -> bool {
        let Content::Discard { granule } = self.content else { return false };
        let start = sector / granule * granule;
        start < self.first || start + granule > self.first + self.sectors
    }
}

/// A write under way.
#[derive(Clone)]
#[must_use = "tell the auditor how it ended"]
pub struct WriteTicket(Rc<Shape>);

/// A read under way.
#[must_use = "let the auditor judge what was read"]
pub struct ReadTicket {
    volume: usize,
    first: u64,
    began: Moment,
    /// What each sector may hold when the read begins, one sector's after the other's.
    known: Vec<(u32, bool)>,
    /// Where each sector's part of `known` ends, and whether no write was under way.
    sectors: Vec<(usize, bool)>,
}

/// A flush under way.
#[must_use = "tell the auditor that it succeeded"]
pub struct FlushTicket {
    volume: usize,
    began: Moment,
}

#[derive(Clone)]
struct Volume {
    book: Book,
    /// Acknowledged writes survive a crash.
    stable_when_acknowledged: bool,
}

/// Knows what every sector may hold. A clone is for what is tried and taken back.
#[derive(Clone)]
pub struct Auditor {
    seed: u64,
    volumes: Vec<Volume>,
    now: Moment,
    versions: u32,
    /// Writes that began since the oldest read under way did.
    recent: VecDeque<Rc<Shape>>,
    /// Beginnings of the reads under way, with how many began then.
    reading: BTreeMap<Moment, u32>,
    sectors_verified: u64,
}

impl Auditor {
    /// Volumes of these sizes, full of zeros; the flag says that acknowledged writes survive a crash.
    pub fn new(seed: u64, volumes: &[(SectorCount, bool)]) -> Auditor {
        let volumes = volumes.iter().map(|(sectors, stable)| Volume {
            book: Book::new(sectors.0 as usize),
            stable_when_acknowledged: *stable,
        });
        Auditor {
            seed,
            volumes: volumes.collect(),
            now: 0,
            versions: 0,
            recent: VecDeque::new(),
            reading: BTreeMap::new(),
            sectors_verified: 0,
        }
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
        let zero_pages = pages.filter(|page| is_zero_page(*page)).collect();
        let ticket = self.begin(volume, lba.0, sectors, Content::Stamps { zero_pages });
        for (sector, bytes) in (lba.0..).zip(data.chunks_exact_mut(SECTOR_BYTES as usize)) {
            if ticket.0.is_zero(sector) {
                bytes.fill(0);
            } else {
                stamp(bytes, address(volume, sector), ticket.0.version, self.seed);
            }
        }
        ticket
    }

    /// Writing of zeros begins.
    pub fn begin_zeroes(&mut self, volume: usize, lba: Lba, sectors: u64) -> WriteTicket {
        self.begin(volume, lba.0, sectors, Content::Zeros)
    }

    /// A discard begins; whole runs of `granule` sectors will read as zeros.
    pub fn begin_discard(&mut self, volume: usize, lba: Lba, sectors: u64, granule: u64) -> WriteTicket {
        self.begin(volume, lba.0, sectors, Content::Discard { granule })
    }

    fn begin(&mut self, volume: usize, first: u64, sectors: u64, content: Content) -> WriteTicket {
        self.now += 1;
        self.versions += 1;
        let (version, began) = (self.versions, self.now);
        let shape = Rc::new(Shape { volume, first, sectors, version, content, began });
        for sector in first..first + sectors {
            let entry = Entry::begun(version, shape.is_zero(sector), shape.may_skip(sector), began);
            self.volumes[volume].book.begin(sector, entry);
        }
        if !self.reading.is_empty() {
            self.recent.push_back(shape.clone());
        }
        WriteTicket(shape)
    }

    /// A write ended. After a failure it may have been done, in part, or not at all; `durable` says that it was to be
    /// stable when acknowledged.
    pub fn end_write(&mut self, ticket: WriteTicket, acknowledged: bool, durable: bool) {
        self.now += 1;
        let shape = ticket.0;
        let volume = &mut self.volumes[shape.volume];
        let stable = durable || volume.stable_when_acknowledged;
        for sector in shape.first..shape.first + shape.sectors {
            volume.book.end(sector, shape.version, self.now, acknowledged, stable);
        }
    }

    /// A flush begins.
    pub fn begin_flush(&mut self, volume: usize) -> FlushTicket {
        self.now += 1;
        FlushTicket { volume, began: self.now }
    }

    /// A flush was acknowledged. (One that failed promises nothing: drop its ticket.)
    pub fn end_flush(&mut self, ticket: FlushTicket) {
        self.volumes[ticket.volume].book.flush(ticket.began);
    }

    /// The array died; whatever was under way will not end.
    pub fn crash(&mut self) {
        self.now += 1;
        self.recent.clear();
        self.reading.clear();
        for volume in &mut self.volumes {
            volume.book.crash(self.now);
        }
    }

    /// A read begins.
    pub fn begin_read(&mut self, volume: usize, lba: Lba, sectors: u64) -> ReadTicket {
        self.now += 1;
        *self.reading.entry(self.now).or_default() += 1;
        let mut ticket = ReadTicket {
            volume,
            first: lba.0,
            began: self.now,
            known: Vec::with_capacity(sectors as usize),
            sectors: Vec::with_capacity(sectors as usize),
        };
        for sector in lba.0..lba.0 + sectors {
            let quiet = self.volumes[volume].book.readable(sector, &mut ticket.known);
            ticket.sectors.push((ticket.known.len(), quiet));
        }
        ticket
    }

    /// A read failed: nothing is learned from it.
    pub fn abandon_read(&mut self, ticket: &ReadTicket) {
        let Some(count) = self.reading.get_mut(&ticket.began) else { return };
        *count -= 1;
        if *count == 0 {
            self.reading.remove(&ticket.began);
        }
        match self.reading.keys().next() {
            None => self.recent.clear(),
            Some(oldest) => {
                let past = self.recent.iter().take_while(|shape| shape.began < *oldest).count();
                self.recent.drain(..past);
            }
        }
    }

    /// Judges what a read returned.
    ///
    /// # Errors
    /// The first sector that is wrong.
    pub fn end_read(&mut self, ticket: ReadTicket, data: &[u8]) -> Result<(), Box<Finding>> {
        self.now += 1;
        let mut verdict = Ok(());
        let mut start = 0;
        for (index, bytes) in data.chunks_exact(SECTOR_BYTES as usize).enumerate() {
            let (end, quiet) = ticket.sectors[index];
            let known = &ticket.known[start..end];
            start = end;
            verdict = self.judge(&ticket, ticket.first + index as u64, known, quiet, bytes);
            if verdict.is_err() {
                break;
            }
        }
        self.abandon_read(&ticket);
        verdict
    }

    fn judge(
        &mut self,
        ticket: &ReadTicket,
        sector: u64,
        known: &[(u32, bool)],
        quiet: bool,
        bytes: &[u8],
    ) -> Result<(), Box<Finding>> {
        self.sectors_verified += 1;
        let volume = ticket.volume;
        let begun = self.recent.iter().filter(|shape| shape.began > ticket.began);
        let begun: Vec<(u32, bool)> = begun
            .filter(|shape| shape.covers(volume, sector))
            .map(|shape| (shape.version, shape.is_zero(sector)))
            .collect();
        let holds = Holds::of(bytes, self.seed);
        // The newest that fits: of several zeros one cannot tell which it was.
        let fits = |(version, zero): &(u32, bool)| match holds {
            Holds::Zeros => *zero,
            Holds::Stamp { address: at, version: found } => {
                !zero && found == *version && at == address(volume, sector)
            }
            Holds::OtherSeed { .. } | Holds::Noise => false,
        };
        let Some((version, _)) = known.iter().chain(&begun).rev().find(|candidate| fits(candidate)) else {
            let expected =
                known.iter().chain(&begun).map(|(version, zero)| Expected { version: *version, zero: *zero });
            let expected = expected.collect();
            return Err(Box::new(Finding { volume, sector, expected, holds }));
        };
        if quiet && begun.is_empty() && known.len() > 1 {
            let Volume { book, stable_when_acknowledged } = &mut self.volumes[volume];
            book.observe(sector, *version, self.now, *stable_when_acknowledged);
        }
        Ok(())
    }

    /// How many sectors may hold something other than zeros.
    pub fn sectors_in_use(&self, volume: usize) -> u64 {
        self.volumes[volume].book.in_use()
    }

    /// Size of a volume.
    pub fn sectors(&self, volume: usize) -> u64 {
        self.volumes[volume].book.sectors()
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
