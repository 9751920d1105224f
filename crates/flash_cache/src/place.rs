//! Where a device part lies on its drive, and what lies where in it.
//!
//! The part is a list of pieces of one size, taken as one space of pages. In front are two places of the header and
//! two copies of the ring, then come the ways, each with its map pages and its lines. A piece is a whole number of pages, so no page
//! straddles pieces; a line may, and is then two commands.

use tier0_drive::DriveHandle;
use tier0_journal::Region;
use tier0_units::{Lba, PAGE_SECTORS};

use crate::entry::Line;
use crate::error::FlashError;
use crate::line::LINE_PAGES;
use crate::map_page::ENTRIES;

/// Pages of the two places of the header.
pub(crate) const HEADER_PAGES: u64 = 2;
/// Copies of the ring: with one, a wrong block at its end would be taken for its end.
const RING_COPIES: u64 = 2;
/// Pages of a ring's own headers.
const RING_HEADER_PAGES: u64 = 2;
/// The fewest and the most blocks of a ring proper, and what share of the part it takes.
const RING_BLOCKS_MIN: u64 = 32;
const RING_BLOCKS_MAX: u64 = 16 << 10;
const RING_SHARE: u64 = 512;
/// Ways that a part has when it is formatted, about.
pub(crate) const WAYS_AT_FORMAT: u64 = 48;
/// The most ways.
pub(crate) const WAYS_MAX: u64 = 255;

/// A part of a drive for the cache of one shard.
#[derive(Clone)]
pub struct FlashPlace {
    /// The drive.
    pub drive: DriveHandle,
    /// First sectors of its pieces, in order; multiples of 8.
    pub pieces: Vec<Lba>,
    /// Sectors of each piece; a multiple of 8.
    pub piece_sectors: u64,
}

impl FlashPlace {
    /// Whether a part of so many sectors, of which so many at its front are neighbours, is large enough.
    pub fn is_enough(sectors: u64, front_run_sectors: u64) -> bool {
        Shape::of(sectors / PAGE_SECTORS, front_run_sectors / PAGE_SECTORS).is_some()
    }

    pub(crate) fn check(&self) -> Result<(), FlashError> {
        let end = self.drive.info().sectors.0;
        let is_aligned = |number: u64| number.is_multiple_of(PAGE_SECTORS);
        let fits = |piece: &Lba| {
            is_aligned(piece.0) && piece.0.checked_add(self.piece_sectors).is_some_and(|last| last <= end)
        };
        if self.piece_sectors == 0 || !is_aligned(self.piece_sectors) || !self.pieces.iter().all(fits) {
            return Err(FlashError::BadPieces);
        }
        Ok(())
    }

    fn piece_pages(&self) -> u64 {
        self.piece_sectors / PAGE_SECTORS
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pieces.len() as u64 * self.piece_pages()
    }

    /// Pages from its first one on that are neighbours on the drive.
    fn front_run_pages(&self) -> u64 {
        let run =
            self.pieces.windows(2).take_while(|pair| pair[0].0 + self.piece_sectors == pair[1].0).count();
        if self.pieces.is_empty() { 0 } else { (run as u64 + 1) * self.piece_pages() }
    }

    /// Where pages lie: first sector and sectors of each run of neighbours on the drive.
    pub(crate) fn runs(&self, page: u64, pages: u64) -> Vec<(Lba, u32)> {
        let mut runs: Vec<(Lba, u32)> = Vec::new();
        let (mut at, end) = (page, page + pages);
        while at < end {
            let (piece, inside) = (at / self.piece_pages(), at % self.piece_pages());
            let count = (self.piece_pages() - inside).min(end - at);
            let lba = Lba(self.pieces[piece as usize].0 + inside * PAGE_SECTORS);
            let sectors = (count * PAGE_SECTORS) as u32;
            match runs.last_mut() {
                Some((first, length)) if first.0 + u64::from(*length) == lba.0 => *length += sectors,
                _ => runs.push((lba, sectors)),
            }
            at += count;
        }
        runs
    }
}

/// What lies where in a device part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) sets: u32,
    pub(crate) ring_blocks: u64,
    pub(crate) ways: u64,
}

impl Shape {
    /// That of a part that is formatted now.
    pub(crate) fn new(place: &FlashPlace) -> Result<Shape, FlashError> {
        place.check()?;
        let pages = place.pages();
        Shape::of(pages, place.front_run_pages()).ok_or(FlashError::TooSmall { pages })?
    }

    /// That of a part of so many pages, of which so many at its front are neighbours; none where that is too small.
    fn of(pages: u64, run: u64) -> Option<Result<Shape, FlashError>> {
        let ring_blocks = (pages / RING_SHARE).clamp(RING_BLOCKS_MIN, RING_BLOCKS_MAX);
        let most = (run.saturating_sub(HEADER_PAGES) / RING_COPIES).saturating_sub(RING_HEADER_PAGES);
        let mut shape = Shape { sets: 1, ring_blocks: ring_blocks.min(most), ways: 0 };
        let lines = pages.saturating_sub(shape.front_pages()) / LINE_PAGES;
        let Ok(sets) = u32::try_from((lines / WAYS_AT_FORMAT).max(1)) else {
            return Some(Err(FlashError::BadPieces));
        };
        shape.sets = sets;
        shape.ways = shape.ways_of(pages).min(WAYS_MAX);
        (shape.ring_blocks >= RING_BLOCKS_MIN && shape.ways > 0).then_some(Ok(shape))
    }

    /// Whether the front is where a ring can be.
    pub(crate) fn fits(&self, place: &FlashPlace) -> bool {
        self.sets > 0
            && (RING_BLOCKS_MIN..=RING_BLOCKS_MAX).contains(&self.ring_blocks)
            && self.front_pages() <= place.front_run_pages()
    }

    /// The ways for which these pieces have room.
    pub(crate) fn ways_in(&self, place: &FlashPlace) -> u64 {
        self.all_ways_in(place).min(WAYS_MAX)
    }

    /// Pages of these pieces that are in no way, because there are as many ways as there may be.
    pub(crate) fn unused_pages(&self, place: &FlashPlace) -> u64 {
        self.all_ways_in(place).saturating_sub(WAYS_MAX) * self.way_pages()
    }

    fn all_ways_in(&self, place: &FlashPlace) -> u64 {
        self.ways_of(place.pages())
    }

    fn ways_of(&self, pages: u64) -> u64 {
        pages.saturating_sub(self.front_pages()) / self.way_pages()
    }

    pub(crate) fn front_pages(&self) -> u64 {
        HEADER_PAGES + RING_COPIES * self.ring_pages()
    }

    fn ring_pages(&self) -> u64 {
        RING_HEADER_PAGES + self.ring_blocks
    }

    /// Map pages of each way.
    pub(crate) fn map_pages(&self) -> u64 {
        u64::from(self.sets).div_ceil(ENTRIES as u64)
    }

    fn way_pages(&self) -> u64 {
        self.map_pages() + u64::from(self.sets) * LINE_PAGES
    }

    fn way_start(&self, way: u64) -> u64 {
        self.front_pages() + way * self.way_pages()
    }

    /// The page of the part in which a map page lies.
    pub(crate) fn map_at(&self, map: MapPage) -> u64 {
        self.way_start(u64::from(map.way)) + u64::from(map.index)
    }

    /// The page of the part in which a line begins.
    pub(crate) fn line_at(&self, line: Line) -> u64 {
        self.way_start(u64::from(line.way)) + self.map_pages() + u64::from(line.set) * LINE_PAGES
    }

    /// The map page that tells of a line.
    pub(crate) fn map_of(&self, line: Line) -> MapPage {
        MapPage { way: line.way, index: line.set / ENTRIES as u32 }
    }

    /// Lines of all ways.
    pub(crate) fn lines(&self) -> u64 {
        u64::from(self.sets) * self.ways
    }

    /// The regions of the ring, one for each copy.
    pub(crate) fn ring(&self, place: &FlashPlace) -> Vec<Region> {
        let sectors = self.ring_pages() * PAGE_SECTORS;
        let first = place.pieces[0].0 + HEADER_PAGES * PAGE_SECTORS;
        (0..RING_COPIES)
            .map(|copy| Region { drive: place.drive.clone(), first: Lba(first + copy * sectors), sectors })
            .collect()
    }
}

/// The name of a map page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MapPage {
    pub(crate) way: u8,
    pub(crate) index: u32,
}
