//! Rebuilding a lost column on its spare chunklet, or evacuating one, some rows at a time.
//!
//! Who rebuilds: moves the column ([`RaidSets::start_rebuild`](crate::set::RaidSets::start_rebuild)); then for one slot
//! after the other has its rows rebuilt, flushes, makes it known to the metadata, declares the rows present, and only
//! then drops [`Rebuilt`] and with it the rows' locks. Until then the column counts as lost in these rows; one that is
//! evacuated ([`RaidSets::start_evacuation`](crate::set::RaidSets::start_evacuation)) is at its old place in them.

use std::ops::Range;

use futures_util::future::join_all;
use tier0_units::{PAGE_SECTORS, SectorCount};
use tier0_world::{Buf, BufMut, IoError};

use crate::io::RaidIo;
use crate::io::expect::{Expect, Expected};
use crate::io::grid::{Cell, Grid, GroupRow};
use crate::io::locks::RowGuard;
use crate::io::patience::Stake;
use crate::io::solve::{DataPage, Resort, Slice};
use crate::layout::{Column, ColumnMask, Group, PagePlace, Role, Row, Unit};
use crate::set::SetIndex;

/// Rows under work at once: a few, to keep the drives busy, and not so many that memory matters.
const ROWS_AT_ONCE: usize = 8;

/// Rows of a column that were rebuilt and are still locked.
#[must_use = "the rows stay locked until this is dropped: flush and declare them present first"]
pub struct Rebuilt {
    _guard: RowGuard,
    /// Rows written; the others are unwritten and have nothing to rebuild.
    pub rows_written: u64,
    /// Pages of the set's data that were met and are lost for good.
    pub lost_pages: Vec<u64>,
}

/// What was met in one row.
#[derive(Default)]
struct RowOutcome {
    written: bool,
    lost_pages: Vec<u64>,
}

impl RaidIo {
    /// Recovers rows of a column that is being rebuilt and writes them to the chunklet it was moved to; not stable before
    /// a flush. A page that is lost for good does not stop it: what is written in its place goes on failing the
    /// checksum.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when too many drives are lost; [`IoError::Medium`] when a page without a checksum
    /// cannot be had; what the target's drive fails with.
    ///
    /// # Panics
    /// Unless the column is being rebuilt.
    pub async fn rebuild_rows(
        &self,
        set: SetIndex,
        column: Column,
        rows: Range<Row>,
        expect: &dyn Expect,
    ) -> Result<Rebuilt, IoError> {
        assert!(
            self.sets().rebuilding_columns(set).contains(column),
            "{column:?} of set {} has no chunklet to be rebuilt to",
            set.0
        );
        let sectors = self.sets().layout(set).row_sectors().0;
        let guard = self.0.locks.lock(set, rows.start.0 * sectors, rows.end.0 * sectors).await;
        let mut rebuilt = Rebuilt { _guard: guard, rows_written: 0, lost_pages: Vec::new() };
        let all: Vec<Row> = (rows.start.0..rows.end.0).map(Row).collect();
        for some in all.chunks(ROWS_AT_ONCE) {
            let outcomes = some.iter().map(|row| self.rebuild_row(set, column, *row, expect));
            for outcome in join_all(outcomes).await {
                let outcome = outcome?;
                rebuilt.rows_written += u64::from(outcome.written);
                rebuilt.lost_pages.extend(outcome.lost_pages);
            }
        }
        Ok(rebuilt)
    }

    /// Locks rows that the target of a column which is being rebuilt has already, as if they had been rebuilt.
    pub async fn keep_rows(&self, set: SetIndex, rows: Range<Row>) -> Rebuilt {
        let sectors = self.sets().layout(set).row_sectors().0;
        let guard = self.0.locks.lock(set, rows.start.0 * sectors, rows.end.0 * sectors).await;
        Rebuilt { _guard: guard, rows_written: 0, lost_pages: Vec::new() }
    }

    async fn rebuild_row(
        &self,
        set: SetIndex,
        column: Column,
        row: Row,
        expect: &dyn Expect,
    ) -> Result<RowOutcome, IoError> {
        let layout = self.sets().layout(set);
        // A row that is given up counts as unwritten, but a write of it that was logged may yet be replayed.
        if self.was_never_written(set, row, expect) {
            return Ok(RowOutcome::default());
        }
        let mut outcome = RowOutcome { written: true, lost_pages: Vec::new() };
        let group = match layout.role(row, column) {
            Role::Mirror(unit, _) | Role::Data(unit) if layout.parities() > 0 => layout.group_of(unit),
            Role::P(group) | Role::Q(group) => group,
            Role::Mirror(..) | Role::Data(_) => Group(0),
        };
        let at = GroupRow { set, row, group };
        let pages = match layout.role(row, column) {
            Role::Mirror(..) | Role::Data(_) if layout.parities() == 0 => {
                self.copy_unit(at, column, expect, &mut outcome).await?
            }
            Role::Data(unit) if !self.lost_columns(set, row).contains(column) => {
                match self.move_unit(at, unit, expect).await {
                    Some(pages) => pages,
                    None => self.recover_unit(at, column, expect, &mut outcome).await?,
                }
            }
            _ => self.recover_unit(at, column, expect, &mut outcome).await?,
        };
        let mut unit = BufMut::new(layout.stripe_unit().0 as u32, self.members().width());
        let bytes = PAGE_SECTORS as usize * self.members().width().bytes();
        for (n, page) in pages.iter().enumerate() {
            unit.as_mut_slice()[n * bytes..(n + 1) * bytes].copy_from_slice(page.as_slice());
        }
        let (member, start) = self.sets().place(set, column);
        let lba = start + SectorCount(layout.page_column_lba(row, 0).0);
        self.members().write(member, lba, unit.freeze(), false).await?;
        Ok(outcome)
    }

    /// The pages of a data column that is there, if every one of them is as it should be.
    async fn move_unit(&self, at: GroupRow, unit: Unit, expect: &dyn Expect) -> Option<Vec<Buf>> {
        let layout = self.sets().layout(at.set);
        let column = layout.copies(at.row, unit).first()?;
        let mut grid = Grid::new(self, at);
        let offsets: Vec<usize> = (0..layout.unit_pages()).collect();
        self.read_live(&mut grid, ColumnMask::only(column), &offsets).await;
        // Whatever the drive holds of a page that reads as zeros, parity counts it.
        let page = |offset| {
            let expected = expect.expect(at.set, layout.page_of_set(at.row, PagePlace { unit, offset }));
            grid.page(column, offset).filter(|page| expected.vouches_for(page.as_slice())).cloned()
        };
        offsets.into_iter().map(page).collect()
    }

    /// Whether no page of a row has any content.
    pub(crate) fn is_unwritten(&self, set: SetIndex, row: Row, expect: &dyn Expect) -> bool {
        self.pages_of_row(set, row).all(|page| expect.expect(set, page).reads_as_zeros())
    }

    /// Whether nothing is known to have been in any page of a row.
    fn was_never_written(&self, set: SetIndex, row: Row, expect: &dyn Expect) -> bool {
        self.pages_of_row(set, row).all(|page| expect.expect(set, page) == Expected::Zero)
    }

    fn pages_of_row(&self, set: SetIndex, row: Row) -> Range<u64> {
        let pages = self.sets().layout(set).row_pages() as u64;
        row.0 * pages..(row.0 + 1) * pages
    }

    /// The pages of a mirrored column in a row, from the copies that are left.
    async fn copy_unit(
        &self,
        at: GroupRow,
        column: Column,
        expect: &dyn Expect,
        outcome: &mut RowOutcome,
    ) -> Result<Vec<Buf>, IoError> {
        let layout = self.sets().layout(at.set);
        let (Role::Mirror(unit, _) | Role::Data(unit)) = layout.role(at.row, column) else {
            unreachable!("a level without parity holds data alone")
        };
        let copies = layout.copies(at.row, unit) - self.lost_columns(at.set, at.row);
        if copies.is_empty() {
            return Err(IoError::RedundancyLost);
        }
        let mut grid = Grid::new(self, at);
        let offsets: Vec<usize> = (0..layout.unit_pages()).collect();
        self.read_live(&mut grid, ColumnMask::only(self.choose(at.set, at.row, copies)), &offsets).await;
        let mut pages = Vec::new();
        for offset in offsets {
            let place = PagePlace { unit, offset };
            let page = layout.page_of_set(at.row, place);
            let expected = expect.expect(at.set, page);
            if expected.reads_as_zeros() {
                // Nothing is stored there, so it does not matter whether it can be read.
                pages.push(self.blank_page());
                continue;
            }
            let (mut found, wrong) = self.find_copy(&mut grid, place, expected, Stake::Content).await;
            if found.is_none() && matches!(expected, Expected::Crc(_)) {
                // A drive that was taken back may have it, and be the only one.
                let own = self.held_by_target(at, column, offset).await;
                found = own.filter(|own| expected.vouches_for(own.as_slice())).map(|own| (column, own));
            }
            pages.push(match self.heal_copies(&mut grid, place, found, wrong).await {
                Ok(copy) => copy,
                Err(_) if expected == Expected::Unknown => return Err(IoError::Medium),
                Err(wrong) => {
                    if matches!(expected, Expected::Crc(_)) {
                        outcome.lost_pages.push(page);
                    }
                    wrong.unwrap_or_else(|| self.blank_page())
                }
            });
        }
        Ok(pages)
    }

    /// The pages of a column of a parity group in a row, from the others.
    async fn recover_unit(
        &self,
        at: GroupRow,
        column: Column,
        expect: &dyn Expect,
        outcome: &mut RowOutcome,
    ) -> Result<Vec<Buf>, IoError> {
        let layout = self.sets().layout(at.set);
        if !layout.survives(self.lost_columns(at.set, at.row)) {
            return Err(IoError::RedundancyLost);
        }
        let mut grid = Grid::new(self, at);
        let offsets: Vec<usize> = (0..layout.unit_pages()).collect();
        let open = self.try_to_complete(&mut grid, &offsets, Stake::Content, expect).await;
        let open = self.try_with_target(&mut grid, column, open, expect).await;
        let whole: Vec<usize> = offsets.iter().copied().filter(|offset| !open.contains(offset)).collect();
        self.agree_on_zeros(&mut grid, &whole, expect).await;
        for lost in self.give_up(&grid, open, expect) {
            match lost.data.expected {
                Expected::Unknown => return Err(IoError::Medium),
                Expected::Crc(_) => outcome.lost_pages.push(lost.data.page),
                Expected::Zero | Expected::GivenUp => {}
            }
            if grid.page(lost.data.column, lost.offset).is_none() {
                grid.set(lost.data.column, lost.offset, Cell::Page(self.blank_page()));
            }
        }
        let page = |offset| match layout.role(at.row, column) {
            Role::P(_) | Role::Q(_) => {
                let made = Slice::new(layout, &grid, offset, expect).parities();
                made.into_iter().find(|(parity, _)| *parity == column).expect("its own parity").1
            }
            _ => grid.page(column, offset).expect("all data is known").clone(),
        };
        Ok(offsets.into_iter().map(page).collect())
    }

    /// Recovers what it can of these offsets with what the target holds, which may be a drive that was taken back; gives the
    /// others. Only a checksum tells that what lies there, or what follows from it, is right.
    async fn try_with_target(
        &self,
        grid: &mut Grid,
        column: Column,
        open: Vec<usize>,
        expect: &dyn Expect,
    ) -> Vec<usize> {
        let at = grid.at();
        let layout = self.sets().layout(grid.at().set);
        let mut left = Vec::new();
        for offset in open {
            let before = grid.cell(column, offset).clone();
            let Some(own) = self.held_by_target(at, column, offset).await else {
                left.push(offset);
                continue;
            };
            grid.set(column, offset, Cell::Page(own));
            let slice = Slice::new(layout, grid, offset, expect);
            let is_right = slice.data.iter().any(|page| page.column == column && slice.is_vouched_for(page));
            // What else lies there counts if what follows from it passes.
            let wrong = slice.wrong();
            let has_checksum = |page: &DataPage| matches!(page.expected, Expected::Crc(_));
            let is_known = |page: &DataPage| has_checksum(page) || page.expected == Expected::Zero;
            let is_checked = is_right || wrong.iter().any(has_checksum);
            if is_checked && wrong.iter().all(is_known) {
                let mut open = self.solve_all(grid, vec![offset], Resort::Parity, expect).await;
                // A page of which nothing is stored is zeros, whatever lies there, if what has a checksum follows from that.
                if wrong.iter().any(has_checksum) {
                    open = self.solve_all(grid, open, Resort::Zeros, expect).await;
                }
                if open.is_empty() {
                    continue;
                }
            }
            // What is right is kept, whatever becomes of the others.
            if !is_right {
                grid.set(column, offset, before);
            }
            left.push(offset);
        }
        left
    }

    /// What the chunklet to which a column is being rebuilt holds of a page.
    async fn held_by_target(&self, at: GroupRow, column: Column, offset: usize) -> Option<Buf> {
        let (member, start) = self.sets().place(at.set, column);
        let lba = start + SectorCount(self.sets().layout(at.set).page_column_lba(at.row, offset).0);
        let buf = BufMut::new(PAGE_SECTORS as u32, self.members().width());
        let (read, page) = self.members().read(member, lba, buf).await;
        read.is_ok().then(|| page.freeze())
    }

    /// Zeros in the place of a page that cannot be had.
    pub(crate) fn blank_page(&self) -> Buf {
        BufMut::zeroed(PAGE_SECTORS as u32, self.members().width()).freeze()
    }
}
