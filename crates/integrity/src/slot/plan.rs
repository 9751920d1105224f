//! What a batch means row by row: which pages are stored, and which rows are written whole.

use tier0_raid::layout::Row;
use tier0_units::PAGE_SECTORS;
use tier0_world::Buf;

use super::request::{PageContent, SlotWrite};
use crate::intent::{IntentPage, LogPlace};
use crate::table::SlotTable;

/// A page that is stored.
pub(super) struct StoredPage {
    /// Its number in the slot.
    pub(super) page: u32,
    pub(super) buf: Buf,
    /// None where it is filled with zeros.
    pub(super) log: Option<LogPlace>,
    /// Whether no read of it is to pass.
    is_lost: bool,
}

/// What is stored in one row.
pub(super) struct RowPlan {
    pub(super) row: Row,
    /// The row's first page in the slot.
    first_page: u32,
    /// At least one, ascending.
    pub(super) pages: Vec<StoredPage>,
    /// Whether the row is written whole: the pages to be filled with zeros, ascending.
    fill: Option<Vec<u32>>,
}

impl RowPlan {
    /// What is written, zeros included, by place in the row.
    pub(super) fn row_pages(&self, zeros: &Buf) -> Vec<(u64, Buf)> {
        let place = |page: u32| u64::from(page - self.first_page);
        let stored = self.pages.iter().map(|page| (place(page.page), page.buf.clone()));
        stored.chain(self.fill.iter().flatten().map(|page| (place(*page), zeros.clone()))).collect()
    }

    /// Whether the row is written whole, so that its parity follows from what is written.
    pub(super) fn is_whole(&self) -> bool {
        self.fill.is_some()
    }

    /// The pages as the row's intent has them.
    pub(super) fn intent_pages(&self) -> Vec<(u32, IntentPage)> {
        let source = |log: Option<LogPlace>| log.map_or(IntentPage::ZeroFill, IntentPage::Log);
        let stored = self.pages.iter().map(|page| (page.page, source(page.log)));
        let filled = self.fill.iter().flatten().map(|page| (*page, IntentPage::ZeroFill));
        let mut pages: Vec<_> = stored.chain(filled).collect();
        pages.sort_by_key(|(page, _)| *page);
        pages
    }

    /// Brings the table up to date, now that the row is written.
    pub(super) fn settle(&self, table: &SlotTable) {
        for page in &self.pages {
            match page.is_lost {
                false => table.set_stored(page.page, page.buf.as_slice()),
                true => table.set_lost(page.page),
            }
        }
        self.fill.iter().flatten().for_each(|page| table.set_zero(*page));
    }
}

/// The shape of rows, for a plan.
#[derive(Clone, Copy)]
pub(super) struct RowShape<'a> {
    pub(super) pages: u32,
    /// What pages of zeros are written as where no table remembers them.
    pub(super) zeros: &'a Buf,
    /// Whether rows have parity, which depends on all their pages.
    pub(super) has_parity: bool,
}

/// The rows in which a write stores pages, ascending. A page that becomes zero changes no row where a table says so.
///
/// With parity a row of which nothing is stored is written whole, so that its parity never depends on what lay there
/// before. So is a row that the write completes together with zeros, if these are not more than the data: then nothing
/// need be read.
pub(super) fn plan_rows(write: &SlotWrite, table: &SlotTable, shape: RowShape<'_>) -> Vec<RowPlan> {
    let row_of = |page: u32| page / shape.pages;
    let chunks = write.pages.chunk_by(|a, b| row_of(a.0) == row_of(b.0));
    chunks.filter_map(|chunk| plan_row(chunk, row_of(chunk[0].0), table, shape)).collect()
}

fn plan_row(
    chunk: &[(u32, PageContent)],
    row: u32,
    table: &SlotTable,
    shape: RowShape<'_>,
) -> Option<RowPlan> {
    let zeros = (!table.is_tracked()).then_some(shape.zeros);
    let pages = chunk.iter().filter_map(|page| stored_page(page, zeros, shape.zeros));
    let pages: Vec<StoredPage> = pages.collect();
    if pages.is_empty() {
        return None;
    }
    let first_page = row * shape.pages;
    let fill = if shape.has_parity {
        fill(chunk, first_page..first_page + shape.pages, &pages, table)
    } else {
        None
    };
    Some(RowPlan { row: Row(table.home().first_row.0 + u64::from(row)), first_page, pages, fill })
}

fn stored_page(
    (page, content): &(u32, PageContent),
    zeros: Option<&Buf>,
    stand_in: &Buf,
) -> Option<StoredPage> {
    let (buf, log) = match content {
        PageContent::Data { buf, log } => (buf, Some(*log)),
        PageContent::Zero => (zeros?, None),
        PageContent::Lost => (stand_in, None),
    };
    assert_eq!(u64::from(buf.sectors()), PAGE_SECTORS, "page {page} is no whole page");
    let is_lost = matches!(content, PageContent::Lost);
    Some(StoredPage { page: *page, buf: buf.clone(), log, is_lost })
}

/// The pages to be filled with zeros, if the row is to be written whole.
fn fill(
    chunk: &[(u32, PageContent)],
    row: std::ops::Range<u32>,
    pages: &[StoredPage],
    table: &SlotTable,
) -> Option<Vec<u32>> {
    if !table.is_tracked() {
        return (pages.len() == row.len()).then(Vec::new);
    }
    let unwritten = row.clone().all(|page| !table.is_stored(page));
    let becomes_zero = |page: &u32| match chunk.binary_search_by_key(page, |(page, _)| *page) {
        Ok(at) => matches!(chunk[at].1, PageContent::Zero),
        Err(_) => !table.is_stored(*page),
    };
    let zeros: Vec<u32> = row.clone().filter(becomes_zero).collect();
    let completes = pages.len() + zeros.len() == row.len() && zeros.len() <= pages.len();
    (unwritten || completes).then_some(zeros)
}
