//! Scrubbing: reading everything a row has, on every drive, and making right what is wrong.
//!
//! A data page that fails its checksum is what is wrong, and is recovered. Where all data passes, parity that says
//! something else is what is wrong, and is made anew. Where there are no checksums, unequal copies are made equal to
//! the first that can be read; which of them was right cannot be known.

use std::ops::Range;

use tier0_world::{IoError, PlantedBug, planted};

use crate::io::RaidIo;
use crate::io::expect::{Expect, Expected};
use crate::io::grid::{Cell, Grid, GroupRow};
use crate::io::patience::Stake;
use crate::io::report::{PageFault, RepairSource};
use crate::io::solve::Slice;
use crate::layout::{Column, ColumnMask, Group, PagePlace, Row, Unit};
use crate::parity;
use crate::set::SetIndex;

/// What a scrub found; counts are of pages on drives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubOutcome {
    /// Rows read.
    pub rows: u64,
    /// Rows that are unwritten and were skipped.
    pub rows_unwritten: u64,
    /// Data pages that were read and fail their checksum.
    pub rotten: u64,
    /// Pages, data or parity, that a drive could not read.
    pub unreadable: u64,
    /// Copies that differed from the one that was taken.
    pub copies_different: u64,
    /// Parity pages that contradicted the data.
    pub parity_different: u64,
    /// Pages, data or parity, that were written again.
    pub repaired: u64,
    /// The pages of the set's data that nothing could make right.
    pub lost_pages: Vec<u64>,
}

impl ScrubOutcome {
    /// Adds what was found elsewhere.
    pub fn add(&mut self, other: ScrubOutcome) {
        self.rows += other.rows;
        self.rows_unwritten += other.rows_unwritten;
        self.rotten += other.rotten;
        self.unreadable += other.unreadable;
        self.copies_different += other.copies_different;
        self.parity_different += other.parity_different;
        self.repaired += other.repaired;
        self.lost_pages.extend(other.lost_pages);
    }

    fn count(&mut self, fault: PageFault) {
        match fault {
            PageFault::Rot => self.rotten += 1,
            PageFault::Unreadable => self.unreadable += 1,
            PageFault::CopiesDiffer => self.copies_different += 1,
            PageFault::ParityDiffers => self.parity_different += 1,
        }
    }
}

impl RaidIo {
    /// Scrubs rows of a set, one after the other, each under its lock.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when too many drives are lost for any of it to make sense.
    pub async fn scrub_rows(
        &self,
        set: SetIndex,
        rows: Range<Row>,
        expect: &dyn Expect,
    ) -> Result<ScrubOutcome, IoError> {
        let layout = self.sets().layout(set);
        let mut outcome = ScrubOutcome::default();
        for row in (rows.start.0..rows.end.0).map(Row) {
            let _guard = self.lock_row(set, row).await;
            if self.is_unwritten(set, row, expect) {
                outcome.rows_unwritten += 1;
                continue;
            }
            if !layout.survives(self.lost_columns(set, row)) {
                return Err(IoError::RedundancyLost);
            }
            outcome.rows += 1;
            for group in (0..layout.groups() as u8).map(Group) {
                let mut grid = Grid::new(self, GroupRow { set, row, group });
                let offsets: Vec<usize> = (0..layout.unit_pages()).collect();
                self.read_live(&mut grid, layout.group_column_mask(group), &offsets).await;
                if layout.parities() > 0 {
                    self.scrub_parity(&mut grid, &offsets, expect, &mut outcome).await;
                } else {
                    self.scrub_copies(&mut grid, &offsets, expect, &mut outcome).await;
                }
            }
        }
        Ok(outcome)
    }

    async fn scrub_parity(
        &self,
        grid: &mut Grid,
        offsets: &[usize],
        expect: &dyn Expect,
        outcome: &mut ScrubOutcome,
    ) {
        let at = grid.at();
        let layout = self.sets().layout(grid.at().set);
        let live = layout.all_columns() - self.lost_columns(at.set, at.row);
        let mut wrong = 0;
        let mut lies = Vec::new();
        for &offset in offsets {
            let slice = Slice::new(layout, grid, offset, expect);
            let there = slice.lies().into_iter().filter(|data| live.contains(data.column));
            lies.extend(there.map(|data| (data.column, offset)));
            for data in slice.data.iter().filter(|data| live.contains(data.column)) {
                if let Some(fault) = slice.fault(data) {
                    outcome.count(fault);
                    wrong += 1;
                }
            }
        }
        // Kept before it is made right: a recovery by Q puts P right by the way, and that counts too.
        let parities = layout.parity_columns(at.row, at.group).mask() & live;
        let stored = |column: Column, grid: &Grid| -> Vec<Cell> {
            offsets.iter().map(|offset| grid.cell(column, *offset).clone()).collect()
        };
        let before: Vec<(Column, Vec<Cell>)> =
            parities.iter().map(|column| (column, stored(column, grid))).collect();
        let lost = self.complete(grid, offsets, Stake::Answer, expect).await;
        // A page beside them was recovered with zeros in their place.
        let is_zero = |(column, offset): &&(Column, usize)| {
            grid.page(*column, *offset).is_some_and(|page| parity::is_zero(page.as_slice()))
        };
        for _ in lies.iter().filter(is_zero) {
            outcome.count(PageFault::Rot);
            outcome.repaired += 1;
        }
        let hopeless = |offset: usize| lost.iter().any(|page| page.offset == offset);
        outcome.repaired += wrong - lost.iter().filter(|page| live.contains(page.data.column)).count() as u64;
        let with_checksum = lost.iter().filter(|page| !page.data.expected.reads_as_zeros());
        outcome.lost_pages.extend(with_checksum.map(|page| page.data.page));
        // A drive that holds something where zeros were written lied: it gets them when the parities count them. Were they made
        // to count what lies there, a drive that then forgets that as well would be believed to hold what was written.
        let mut zeros = Vec::new();
        for &offset in offsets.iter().filter(|offset| !hopeless(**offset)) {
            let lies = Slice::new(layout, grid, offset, expect).lies();
            zeros.push((offset, self.take_for_zeros(grid, offset, lies, RepairSource::Zeros)));
        }
        for _ in zeros.iter().flat_map(|(_, pages)| pages) {
            outcome.count(PageFault::Rot);
            outcome.repaired += 1;
        }
        for (column, cells) in before {
            let repaired = outcome.repaired;
            for (&offset, cell) in offsets.iter().zip(cells) {
                if !hopeless(offset) {
                    self.scrub_parity_page(grid, column, offset, &cell, expect, outcome).await;
                }
            }
            // A power cut tears one parity at most.
            if outcome.repaired > repaired && !self.flush_column(grid, column).await {
                return;
            }
        }
        for (offset, pages) in zeros {
            self.repair_pages(grid, offset, pages).await;
        }
    }

    /// Compares one parity page with what the data, all right by now, say.
    async fn scrub_parity_page(
        &self,
        grid: &mut Grid,
        column: Column,
        offset: usize,
        before: &Cell,
        expect: &dyn Expect,
        outcome: &mut ScrubOutcome,
    ) {
        let made = Slice::new(self.sets().layout(grid.at().set), grid, offset, expect).parities();
        let right = made.into_iter().find(|(parity, _)| *parity == column).expect("its own parity").1;
        let fault = match before {
            Cell::Page(page) if page.as_slice() == right.as_slice() => return,
            Cell::Page(_) => PageFault::ParityDiffers,
            _ => PageFault::Unreadable,
        };
        outcome.count(fault);
        outcome.repaired += 1;
        let now_right = grid.page(column, offset).is_some_and(|page| page.as_slice() == right.as_slice());
        if now_right {
            return;
        }
        self.report_parity(grid, offset, column, fault, Some(RepairSource::Data));
        let at = grid.at();
        grid.set(column, offset, Cell::Page(right.clone()));
        self.repair_page(at.set, at.row, offset, column, right).await;
    }

    async fn scrub_copies(
        &self,
        grid: &mut Grid,
        offsets: &[usize],
        expect: &dyn Expect,
        outcome: &mut ScrubOutcome,
    ) {
        let at = grid.at();
        let layout = self.sets().layout(grid.at().set);
        for unit in (0..layout.data_units_per_row() as u8).map(Unit) {
            for &offset in offsets {
                let place = PagePlace { unit, offset };
                let page = layout.page_of_set(at.row, place);
                match expect.expect(at.set, page) {
                    expected if expected.reads_as_zeros() => {}
                    expected => self.scrub_copies_of(grid, place, page, expected, outcome).await,
                }
            }
        }
    }

    /// Makes all copies of one page right and equal.
    async fn scrub_copies_of(
        &self,
        grid: &mut Grid,
        place: PagePlace,
        page: u64,
        expected: Expected,
        outcome: &mut ScrubOutcome,
    ) {
        let at = grid.at();
        let copies =
            self.sets().layout(grid.at().set).copies(at.row, place.unit) - self.lost_columns(at.set, at.row);
        let fault_of = |copy: Column, grid: &Grid| match grid.page(copy, place.offset) {
            None => Some(PageFault::Unreadable),
            Some(content) if expected.admits(content.as_slice()) => None,
            Some(_) if planted(PlantedBug::ScrubBelievesFirstCopy) => None,
            Some(_) => Some(PageFault::Rot),
        };
        if copies.iter().all(|copy| fault_of(copy, grid).is_some()) {
            // Those that cannot be read may be in a moment.
            self.find_copy(grid, place, expected, Stake::Answer).await;
        }
        let right = copies.iter().find(|copy| fault_of(*copy, grid).is_none());
        let content = right.and_then(|copy| grid.page(copy, place.offset).cloned());
        let differs = |copy: Column, grid: &Grid| {
            let differs = content.as_ref().zip(grid.page(copy, place.offset));
            differs.filter(|(a, b)| a.as_slice() != b.as_slice()).map(|_| PageFault::CopiesDiffer)
        };
        let mut wrong = ColumnMask::EMPTY;
        for copy in copies {
            if let Some(fault) = fault_of(copy, grid).or_else(|| differs(copy, grid)) {
                outcome.count(fault);
                wrong = wrong.with(copy);
                let source = right.map(RepairSource::Copy);
                self.report(grid, place.offset, copy, Some(page), fault, source);
            }
        }
        let Some(content) = content else {
            outcome.lost_pages.push(page);
            return;
        };
        for copy in wrong {
            outcome.repaired += 1;
            grid.set(copy, place.offset, Cell::Page(content.clone()));
            self.repair_page(at.set, at.row, place.offset, copy, content.clone()).await;
        }
    }
}
