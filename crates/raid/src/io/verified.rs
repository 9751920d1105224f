//! Verified reads: every page is what it must be, or the read fails.
//!
//! A read goes straight to the drives, without a lock. Only what then fails its checksum, or could not be read, is
//! looked at again under the row's lock, since a write of the row may have been under way; what still fails is made
//! right from the redundancy.

use std::ops::Range;

use futures_util::future::join_all;
use tier0_units::{Lba, PAGE_SECTORS, SectorCount};
use tier0_world::{BufMut, IoError};

use crate::io::RaidIo;
use crate::io::expect::{Expect, Expected};
use crate::io::grid::{Cell, Grid, GroupRow};
use crate::io::patience::Stake;
use crate::io::read::join_reads;
use crate::layout::{ColumnMask, Group, PagePlace, Piece, Row, UnitExtent};
use crate::set::SetIndex;

/// Part of a read: an extent of a unit, and its first page among the set's data.
#[derive(Clone, Copy)]
struct Part {
    set: SetIndex,
    row: Row,
    extent: UnitExtent,
    page: u64,
}

impl Part {
    fn pages(&self) -> Range<u64> {
        self.page..self.page + self.extent.sectors.0 / PAGE_SECTORS
    }
}

impl RaidIo {
    /// Reads whole pages of a set's data and verifies each. Pages that read as zeros are filled in without a drive;
    /// pages that are wrong are recovered, and repaired where they lie. The buffer comes back in any case; after an
    /// error its content is arbitrary.
    ///
    /// # Errors
    /// [`IoError::DataLost`] when a page fails its checksum and nothing makes it right; [`IoError::Medium`] when a page
    /// without a checksum cannot be had; [`IoError::RedundancyLost`] when more drives are lost than the level makes up
    /// for and a page without a checksum was on them.
    ///
    /// # Panics
    /// Unless `first` and the buffer are whole pages.
    pub async fn read_verified(
        &self,
        set: SetIndex,
        first: Lba,
        buf: BufMut,
        expect: &dyn Expect,
    ) -> (Result<(), IoError>, BufMut) {
        let sectors = u64::from(buf.sectors());
        assert!(
            first.0.is_multiple_of(PAGE_SECTORS) && sectors.is_multiple_of(PAGE_SECTORS),
            "a verified read of {sectors} sectors from {first:?} is not of whole pages"
        );
        let layout = self.sets().layout(set);
        let at = layout.map(first);
        if at.offset.0 + sectors <= layout.stripe_unit().0 {
            let extent = UnitExtent { unit: at.unit, offset: at.offset, sectors: SectorCount(sectors) };
            let part = Part { set, row: at.row, extent, page: first.0 / PAGE_SECTORS };
            return self.read_part(part, buf, expect).await;
        }
        let mut rest = buf;
        let mut pieces = Vec::new();
        for piece in layout.pieces(first, SectorCount(sectors)) {
            let own = rest.split_to(piece.sectors.0 as u32);
            pieces.push(self.read_verified_piece(set, piece, own, expect));
        }
        join_reads(join_all(pieces).await)
    }

    async fn read_verified_piece(
        &self,
        set: SetIndex,
        piece: Piece,
        mut buf: BufMut,
        expect: &dyn Expect,
    ) -> (Result<(), IoError>, BufMut) {
        let layout = self.sets().layout(set);
        let lost = self.lost_columns(set, piece.row);
        let lost_units = layout.units_on(piece.row, piece.group, lost);
        let parts: Vec<Part> = layout
            .extents(&piece)
            .map(|extent| {
                let at = piece.lba + layout.position_in(&piece, extent.unit, extent.offset);
                Part { set, row: piece.row, extent, page: at.0 / PAGE_SECTORS }
            })
            .collect();
        // What a lost unit is recovered from is most of what is wanted anyway: it is read once for both.
        let shared = parts.len() > 1 && parts.iter().any(|part| lost_units.contains(part.extent.unit));
        let mut there = false;
        if shared {
            let result;
            (result, buf) = Box::pin(self.read_piece_without(set, piece, buf, lost)).await;
            there = result.is_ok();
        }
        let mut rest = buf;
        let reads = parts.into_iter().map(|part| {
            let mut own = rest.split_to(part.extent.sectors.0 as u32);
            async move {
                if there && self.settle(&part, &mut own, expect) {
                    return (Ok(()), own);
                }
                self.read_part(part, own, expect).await
            }
        });
        join_reads(join_all(reads.collect::<Vec<_>>()).await)
    }

    async fn read_part(
        &self,
        part: Part,
        mut buf: BufMut,
        expect: &dyn Expect,
    ) -> (Result<(), IoError>, BufMut) {
        if expect.all_zero(part.set, part.pages()) {
            buf.set_zero();
            return (Ok(()), buf);
        }
        let layout = self.sets().layout(part.set);
        let copies = layout.copies(part.row, part.extent.unit) - self.lost_columns(part.set, part.row);
        let mut readable = false;
        if !copies.is_empty() {
            let column = self.choose(part.set, part.row, copies);
            let lba = layout.column_lba(part.row, part.extent.offset);
            let result;
            (result, buf) = self.read_column(part.set, column, lba, buf).await;
            readable = result.is_ok();
        }
        if readable && self.settle(&part, &mut buf, expect) {
            return (Ok(()), buf);
        }
        // Out of line: seldom taken, and its future is large.
        Box::pin(self.read_again(part, buf, expect)).await
    }

    /// Fills in the pages that read as zeros; whether all others are what they must be.
    fn settle(&self, part: &Part, buf: &mut BufMut, expect: &dyn Expect) -> bool {
        let mut settled = true;
        for (page, content) in part.pages().zip(pages_of(buf)) {
            match expect.expect(part.set, page) {
                expected if expected.reads_as_zeros() => content.fill(0),
                expected => settled &= expected.admits(content),
            }
        }
        settled
    }

    /// Reads under the row's lock, page by page right.
    async fn read_again(
        &self,
        part: Part,
        mut buf: BufMut,
        expect: &dyn Expect,
    ) -> (Result<(), IoError>, BufMut) {
        let _guard = self.lock_row(part.set, part.row).await;
        let layout = self.sets().layout(part.set);
        let group = if layout.parities() > 0 { layout.group_of(part.extent.unit) } else { Group(0) };
        let mut grid = Grid::new(self, GroupRow { set: part.set, row: part.row, group });
        let first = (part.extent.offset.0 / PAGE_SECTORS) as usize;
        let count = (part.extent.sectors.0 / PAGE_SECTORS) as usize;
        let stored = |n: &usize| !expect.expect(part.set, part.page + *n as u64).reads_as_zeros();
        let wanted: Vec<usize> = (0..count).filter(stored).collect();
        let result = self.fetch(&mut grid, &part, first, &wanted, expect).await;
        if let Err(error) = result {
            return (Err(error), buf);
        }
        let column = layout.data_column(part.row, part.extent.unit);
        for (n, content) in pages_of(&mut buf).enumerate() {
            match wanted.binary_search(&n) {
                Ok(_) => content.copy_from_slice(
                    grid.page(column, first + n).expect("a page that was fetched").as_slice(),
                ),
                Err(_) => content.fill(0),
            }
        }
        (Ok(()), buf)
    }

    /// Brings the pages `first + wanted` of a part's unit into the grid, in the place of its (first) column.
    async fn fetch(
        &self,
        grid: &mut Grid,
        part: &Part,
        first: usize,
        wanted: &[usize],
        expect: &dyn Expect,
    ) -> Result<(), IoError> {
        let layout = self.sets().layout(grid.at().set);
        let column = layout.data_column(part.row, part.extent.unit);
        let offsets: Vec<usize> = wanted.iter().map(|n| first + n).collect();
        let copies = layout.copies(part.row, part.extent.unit) - self.lost_columns(part.set, part.row);
        if let Some(copy) = copies.first() {
            self.read_live(grid, ColumnMask::only(copy), &offsets).await;
        }
        let expected = |offset: usize| expect.expect(part.set, part.page + (offset - first) as u64);
        if layout.parities() == 0 {
            for &offset in &offsets {
                let place = PagePlace { unit: part.extent.unit, offset };
                let expected = expected(offset);
                match self.best_copy(grid, place, expected, Stake::Answer).await {
                    Ok(page) => grid.set(column, offset, Cell::Page(page)),
                    Err(_) => return Err(self.loss(part, expected)),
                }
            }
            return Ok(());
        }
        let right = |offset: &usize| {
            grid.page(column, *offset).is_some_and(|page| expected(*offset).admits(page.as_slice()))
        };
        let wrong: Vec<usize> = offsets.iter().copied().filter(|offset| !right(offset)).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let lost = self.complete(grid, &wrong, Stake::Answer, expect).await;
        let own = lost.iter().find(|page| page.data.unit == part.extent.unit);
        own.map_or(Ok(()), |page| Err(self.loss(part, page.data.expected)))
    }

    /// Why a page cannot be had.
    fn loss(&self, part: &Part, expected: Expected) -> IoError {
        let survives = self.sets().layout(part.set).survives(self.lost_columns(part.set, part.row));
        match expected {
            Expected::Crc(_) if survives => IoError::DataLost,
            _ if survives => IoError::Medium,
            _ => IoError::RedundancyLost,
        }
    }
}

/// The bytes of each page of a buffer.
fn pages_of(buf: &mut BufMut) -> impl Iterator<Item = &mut [u8]> {
    let bytes = PAGE_SECTORS as usize * buf.width().bytes();
    let count = buf.sectors() as usize / PAGE_SECTORS as usize;
    let mut rest = buf.as_mut_slice();
    (0..count).map(move |_| {
        let (page, behind) = std::mem::take(&mut rest).split_at_mut(bytes);
        rest = behind;
        page
    })
}
