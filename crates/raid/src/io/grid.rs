//! Pages of one parity group in one row, by column and by offset within the stripe unit, as far as they were read.

use std::ops::Range;

use futures_util::future::join_all;
use tier0_units::PAGE_SECTORS;
use tier0_world::{Buf, BufMut};

use crate::io::RaidIo;
use crate::layout::{Column, ColumnMask, Group, Row};
use crate::set::SetIndex;

/// A group in a row of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupRow {
    pub(crate) set: SetIndex,
    pub(crate) row: Row,
    pub(crate) group: Group,
}

/// What is known of one page on one column.
#[derive(Clone, Debug, Default)]
pub(crate) enum Cell {
    /// Not read yet.
    #[default]
    Unread,
    /// The drive could not read it, or is lost.
    Unreadable,
    /// What the drive holds, or what was recovered.
    Page(Buf),
}

/// The pages.
pub(crate) struct Grid {
    at: GroupRow,
    first_column: u8,
    unit_pages: usize,
    cells: Vec<Cell>,
}

/// Neighbouring pages of one column.
pub(crate) type ColumnRun = (Column, Range<usize>);

impl Grid {
    /// Nothing read yet.
    pub(crate) fn new(io: &RaidIo, at: GroupRow) -> Grid {
        let layout = io.sets().layout(at.set);
        let columns = layout.group_column_mask(at.group);
        let first_column = columns.first().expect("a group has columns").0;
        let unit_pages = layout.unit_pages();
        Grid { at, first_column, unit_pages, cells: vec![Cell::Unread; columns.len() * unit_pages] }
    }

    /// Where it lies.
    pub(crate) fn at(&self) -> GroupRow {
        self.at
    }

    fn index(&self, column: Column, offset: usize) -> usize {
        usize::from(column.0 - self.first_column) * self.unit_pages + offset
    }

    pub(crate) fn cell(&self, column: Column, offset: usize) -> &Cell {
        &self.cells[self.index(column, offset)]
    }

    /// The page, if it could be read or recovered.
    pub(crate) fn page(&self, column: Column, offset: usize) -> Option<&Buf> {
        match self.cell(column, offset) {
            Cell::Page(page) => Some(page),
            _ => None,
        }
    }

    pub(crate) fn set(&mut self, column: Column, offset: usize, cell: Cell) {
        let index = self.index(column, offset);
        self.cells[index] = cell;
    }

    /// What is unread of these columns at these offsets, in runs.
    pub(crate) fn unread(&self, columns: ColumnMask, offsets: &[usize]) -> Vec<ColumnRun> {
        self.runs(columns, offsets, |cell| matches!(cell, Cell::Unread))
    }

    /// What could not be read of these columns at these offsets, in runs.
    pub(crate) fn unreadable(&self, columns: ColumnMask, offsets: &[usize]) -> Vec<ColumnRun> {
        self.runs(columns, offsets, |cell| matches!(cell, Cell::Unreadable))
    }

    fn runs(
        &self,
        columns: ColumnMask,
        offsets: &[usize],
        is_wanted: impl Fn(&Cell) -> bool,
    ) -> Vec<ColumnRun> {
        let mut runs: Vec<ColumnRun> = Vec::new();
        for column in columns {
            for &offset in offsets {
                if !is_wanted(self.cell(column, offset)) {
                    continue;
                }
                match runs.last_mut() {
                    Some((last, run)) if *last == column && run.end == offset => run.end += 1,
                    _ => runs.push((column, offset..offset + 1)),
                }
            }
        }
        runs
    }

    /// Reads runs. A run that cannot be read is read page by page, and the pages that cannot be are unreadable.
    pub(crate) async fn read(&mut self, io: &RaidIo, runs: Vec<ColumnRun>) {
        let at = self.at;
        let read_one = |run: ColumnRun| async move {
            let pages = read_run(io, at, &run).await;
            (run, pages)
        };
        for ((column, run), pages) in join_all(runs.into_iter().map(read_one)).await {
            for (offset, cell) in run.zip(pages) {
                self.set(column, offset, cell);
            }
        }
    }
}

async fn read_run(io: &RaidIo, at: GroupRow, (column, run): &ColumnRun) -> Vec<Cell> {
    if let Some(buf) = read_pages(io, at, *column, run.clone()).await {
        let page = |n: usize| Cell::Page(buf.slice((n as u64 * PAGE_SECTORS) as u32, PAGE_SECTORS as u32));
        return (0..run.len()).map(page).collect();
    }
    if run.len() == 1 {
        return vec![Cell::Unreadable];
    }
    let single = |offset| async move {
        let page = read_pages(io, at, *column, offset..offset + 1).await;
        page.map_or(Cell::Unreadable, Cell::Page)
    };
    join_all(run.clone().map(single)).await
}

async fn read_pages(io: &RaidIo, at: GroupRow, column: Column, run: Range<usize>) -> Option<Buf> {
    let lba = io.sets().layout(at.set).page_column_lba(at.row, run.start);
    let buf = BufMut::new((run.len() as u64 * PAGE_SECTORS) as u32, io.members().width());
    let (result, buf) = io.read_column(at.set, column, lba, buf).await;
    result.ok().map(|()| buf.freeze())
}
