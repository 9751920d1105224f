//! Making rows right: what is wrong is recovered from the redundancy, verified, and written in its place.
//!
//! Everything here runs under the row's lock, so what the columns hold and what is expected of it belong together.

use futures_util::future::join_all;
use tier0_world::Buf;

use crate::io::RaidIo;
use crate::io::expect::Expect;
use crate::io::grid::{Cell, ColumnRun, Grid};
use crate::io::patience::Stake;
use crate::io::report::{PageFault, RepairEvent, RepairSource};
use crate::io::solve::{DataPage, Resort, Slice, Solution};
use crate::layout::{Column, ColumnMask, Row};
use crate::set::SetIndex;

/// A page that nothing can make right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostPage {
    pub(crate) offset: usize,
    pub(crate) data: DataPage,
}

impl RaidIo {
    /// Makes all data pages of a group at these offsets known and right: reads what is not read yet and, where that is
    /// not there or fails its checksum, recovers it and repairs the columns. Gives the pages for which that fails, after
    /// the patience that is due to what is at stake; what the drive holds of them, if it can be read, stays in the grid.
    pub(crate) async fn complete(
        &self,
        grid: &mut Grid,
        offsets: &[usize],
        stake: Stake,
        expect: &dyn Expect,
    ) -> Vec<LostPage> {
        let open = self.try_to_complete(grid, offsets, stake, expect).await;
        self.give_up(grid, open, expect)
    }

    /// The same, and gives the offsets at which pages are wrong that nothing recovers, which are not reported yet.
    pub(crate) async fn try_to_complete(
        &self,
        grid: &mut Grid,
        offsets: &[usize],
        stake: Stake,
        expect: &dyn Expect,
    ) -> Vec<usize> {
        let at = grid.at();
        let parity = self.sets().layout(grid.at().set).parity_columns(at.row, at.group);
        let data = self.sets().layout(grid.at().set).group_column_mask(at.group) - parity.mask();
        let first = self.parities_surely_needed(grid, offsets, expect);
        self.read_live(grid, data | first, offsets).await;
        let mut open = self.solve_all(grid, offsets.to_vec(), Resort::Parity, expect).await;
        // P alone makes up for one page; Q is read only where that does not do.
        for more in [parity.p.map_or(ColumnMask::EMPTY, ColumnMask::only), parity.mask()] {
            if !open.is_empty() {
                self.read_live(grid, more, &open).await;
                open = self.solve_all(grid, open, Resort::Parity, expect).await;
            }
        }
        let open = self.wait_for(grid, open, stake, expect).await;
        self.solve_all(grid, open, Resort::Zeros, expect).await
    }

    /// Tells of the pages that are wrong at these offsets: nothing recovers them.
    pub(crate) fn give_up(&self, grid: &Grid, open: Vec<usize>, expect: &dyn Expect) -> Vec<LostPage> {
        let mut lost = Vec::new();
        for offset in open {
            let slice = Slice::new(self.sets().layout(grid.at().set), grid, offset, expect);
            for data in slice.wrong() {
                let fault = slice.fault(&data).expect("it is wrong");
                // No host misses a page of which nothing is stored.
                if !data.expected.reads_as_zeros() {
                    self.report_data(grid, offset, &data, fault, None);
                }
                lost.push(LostPage { offset, data });
            }
        }
        lost
    }

    /// The parities without which some offset cannot be solved, as far as that is known before anything is read:
    /// reading them together with the data saves waiting twice.
    fn parities_surely_needed(&self, grid: &Grid, offsets: &[usize], expect: &dyn Expect) -> ColumnMask {
        let at = grid.at();
        let layout = self.sets().layout(grid.at().set);
        let lost = self.lost_columns(at.set, at.row);
        let parity = layout.parity_columns(at.row, at.group);
        let surely_wrong = |offset: &usize| {
            let slice = Slice::new(layout, grid, *offset, expect);
            let unread = |data: &DataPage| matches!(grid.cell(data.column, *offset), Cell::Unread);
            slice.wrong().iter().filter(|data| lost.contains(data.column) || !unread(data)).count()
        };
        let only = |column: Option<Column>| column.map_or(ColumnMask::EMPTY, ColumnMask::only);
        match offsets.iter().map(surely_wrong).max() {
            None | Some(0) => ColumnMask::EMPTY,
            Some(1) if parity.p.is_some_and(|p| !lost.contains(p)) => only(parity.p),
            Some(_) => parity.mask(),
        }
    }

    /// Reads what is unread of these columns, as far as they are not lost.
    pub(crate) async fn read_live(&self, grid: &mut Grid, columns: ColumnMask, offsets: &[usize]) {
        let at = grid.at();
        let live = columns - self.lost_columns(at.set, at.row);
        let runs = grid.unread(live, offsets);
        grid.read(self, runs).await;
    }

    /// Solves what can be solved of these offsets; gives the others.
    pub(crate) async fn solve_all(
        &self,
        grid: &mut Grid,
        offsets: Vec<usize>,
        resort: Resort,
        expect: &dyn Expect,
    ) -> Vec<usize> {
        let mut open = Vec::new();
        for offset in offsets {
            let slice = Slice::new(self.sets().layout(grid.at().set), grid, offset, expect);
            if slice.wrong().is_empty() {
                continue;
            }
            match slice.solve(resort) {
                Some(solution) => self.apply(grid, offset, solution, expect).await,
                None => open.push(offset),
            }
        }
        open
    }

    /// Solves what all that can be read does not say by itself, and tries again where pages that are missed cannot be
    /// read, for as long as patience lasts; gives the offsets that stay unsolved.
    async fn wait_for(
        &self,
        grid: &mut Grid,
        mut open: Vec<usize>,
        stake: Stake,
        expect: &dyn Expect,
    ) -> Vec<usize> {
        let layout = self.sets().layout(grid.at().set);
        let at = grid.at();
        let group = layout.group_column_mask(at.group);
        let mut wait = self.wait(stake);
        loop {
            let live = group - self.lost_columns(at.set, at.row);
            open = self.solve_all(grid, open, Resort::Zeros, expect).await;
            // Parity counts what pages hold of which nothing is stored any more, so it must not be made without them.
            let is_missed = |offset: &usize| {
                let wrong = Slice::new(layout, grid, *offset, expect).wrong();
                stake == Stake::Content || wrong.iter().any(|data| !data.expected.reads_as_zeros())
            };
            let waited: Vec<usize> = open.iter().copied().filter(is_missed).collect();
            let unreadable: Vec<ColumnRun> = grid.unreadable(live, &waited);
            if unreadable.is_empty() {
                break;
            }
            if !wait.again().await {
                return open;
            }
            grid.read(self, unreadable).await;
            open = self.solve_all(grid, open, Resort::Parity, expect).await;
        }
        wait.succeeded();
        open
    }

    /// Takes a solution into the grid and to the columns that are not lost. Parities come first, and are stable before
    /// anything else: until then they count what a drive holds that lied, and the row is whole by that.
    async fn apply(&self, grid: &mut Grid, offset: usize, solution: Solution, expect: &dyn Expect) {
        let at = grid.at();
        let live = self.sets().layout(grid.at().set).all_columns() - self.lost_columns(at.set, at.row);
        let mut repairs = Vec::new();
        for (data, page) in solution.pages {
            let fault = match grid.cell(data.column, offset) {
                Cell::Page(_) => PageFault::Rot,
                _ => PageFault::Unreadable,
            };
            if live.contains(data.column) {
                self.report_data(grid, offset, &data, fault, Some(solution.source));
                repairs.push((data.column, page.clone()));
            }
            grid.set(data.column, offset, Cell::Page(page));
        }
        if solution.contradicts_parity && !self.make_parities_anew(grid, offset, live, expect).await {
            return;
        }
        self.repair_pages(grid, offset, repairs).await;
    }

    /// Writes the parities that say something else than the data, which are all in the grid, and makes them stable.
    /// Whether they are.
    async fn make_parities_anew(
        &self,
        grid: &mut Grid,
        offset: usize,
        live: ColumnMask,
        expect: &dyn Expect,
    ) -> bool {
        let made = Slice::new(self.sets().layout(grid.at().set), grid, offset, expect).parities();
        let mut repairs = Vec::new();
        for (column, right) in made.into_iter().filter(|(column, _)| live.contains(*column)) {
            let fault = match grid.cell(column, offset) {
                Cell::Page(page) if page.as_slice() == right.as_slice() => continue,
                Cell::Page(_) => PageFault::ParityDiffers,
                _ => PageFault::Unreadable,
            };
            self.report_parity(grid, offset, column, fault, Some(RepairSource::Data));
            grid.set(column, offset, Cell::Page(right.clone()));
            repairs.push((column, right));
        }
        // One after the other: a power cut tears one of them at most.
        for (column, page) in repairs {
            self.repair_pages(grid, offset, vec![(column, page)]).await;
            if !self.flush_column(grid, column).await {
                return false;
            }
        }
        true
    }

    /// Makes stable what was repaired on a column; whether it is.
    pub(crate) async fn flush_column(&self, grid: &Grid, column: Column) -> bool {
        let at = grid.at();
        let member = self.sets().place_of_row(at.set, column, at.row).0;
        let flushed = self.members().flush_these(vec![member]).await;
        if let Err(error) = flushed {
            tracing::warn!("a repaired parity of set {} cannot be made stable: {error}", at.set.0);
        }
        flushed.is_ok()
    }

    /// Has offsets at which all data are known agree with the parities that are left, before a parity is made of what the
    /// drives hold: what lies where nothing is stored, and what was given up, no checksum vouches for. A drive that holds
    /// something where zeros were written lied: it gets them, and a parity that says something else is made anew before.
    pub(crate) async fn agree_on_zeros(&self, grid: &mut Grid, offsets: &[usize], expect: &dyn Expect) {
        let at = grid.at();
        let layout = self.sets().layout(grid.at().set);
        let live = layout.all_columns() - self.lost_columns(at.set, at.row);
        let parities = layout.parity_columns(at.row, at.group).mask() & live;
        let is_unvouched = |offset: &usize| {
            let slice = Slice::new(layout, grid, *offset, expect);
            slice.data.iter().any(|page| page.expected.reads_as_zeros())
        };
        let unvouched: Vec<usize> = offsets.iter().copied().filter(is_unvouched).collect();
        self.read_live(grid, parities, &unvouched).await;
        for offset in unvouched {
            let lies = Slice::new(layout, grid, offset, expect).lies();
            let zeros = self.take_for_zeros(grid, offset, lies, RepairSource::Zeros);
            let are_readable = grid.unreadable(parities, &[offset]).is_empty();
            if !are_readable || self.make_parities_anew(grid, offset, live, expect).await {
                self.repair_pages(grid, offset, zeros).await;
            }
        }
    }

    /// Takes pages that are there for zeros, and tells of them; what is to be written to the columns that are not lost.
    pub(crate) fn take_for_zeros(
        &self,
        grid: &mut Grid,
        offset: usize,
        pages: Vec<DataPage>,
        source: RepairSource,
    ) -> Vec<(Column, Buf)> {
        let at = grid.at();
        let lost = self.lost_columns(at.set, at.row);
        let mut zeros = Vec::new();
        for data in pages {
            if !lost.contains(data.column) {
                self.report_data(grid, offset, &data, PageFault::Rot, Some(source));
                zeros.push((data.column, self.blank_page()));
            }
            grid.set(data.column, offset, Cell::Page(self.blank_page()));
        }
        zeros
    }

    pub(crate) async fn repair_pages(&self, grid: &Grid, offset: usize, repairs: Vec<(Column, Buf)>) {
        let at = grid.at();
        let writes =
            repairs.into_iter().map(|(column, page)| self.repair_page(at.set, at.row, offset, column, page));
        join_all(writes).await;
    }

    /// Writes a right page in the place of a wrong one. A drive that cannot is lost, and then nothing wrong is left
    /// either.
    pub(crate) async fn repair_page(
        &self,
        set: SetIndex,
        row: Row,
        offset: usize,
        column: Column,
        page: Buf,
    ) {
        let lba = self.sets().layout(set).page_column_lba(row, offset);
        if let Err(error) = self.write_column(set, column, lba, page, false).await {
            tracing::warn!("a repair of set {} cannot be written: {error}", set.0);
        }
    }

    /// Reports a data page that was wrong on its column.
    pub(crate) fn report_data(
        &self,
        grid: &Grid,
        offset: usize,
        data: &DataPage,
        fault: PageFault,
        source: Option<RepairSource>,
    ) {
        self.report(grid, offset, data.column, Some(data.page), fault, source);
    }

    /// Reports a parity page that was wrong.
    pub(crate) fn report_parity(
        &self,
        grid: &Grid,
        offset: usize,
        column: Column,
        fault: PageFault,
        source: Option<RepairSource>,
    ) {
        self.report(grid, offset, column, None, fault, source);
    }

    pub(crate) fn report(
        &self,
        grid: &Grid,
        offset: usize,
        column: Column,
        page: Option<u64>,
        fault: PageFault,
        source: Option<RepairSource>,
    ) {
        let at = grid.at();
        let column_page = at.row.0 * self.sets().layout(grid.at().set).unit_pages() as u64 + offset as u64;
        let event = RepairEvent { set: at.set, column, column_page, page, fault, source };
        self.0.report.report(&event);
    }
}
