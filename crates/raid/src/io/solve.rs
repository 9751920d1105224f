//! One offset of a parity group: which of its pages are wrong, and what the parity says they were.
//!
//! Pure: it looks at what was read and at the checksums. Candidates are tried in the order of what they cost; the first
//! whose every page with a checksum passes it is taken. Without any checksum to pass, a candidate is taken as it is.

use tier0_world::{Buf, BufMut};

use crate::io::expect::{Expect, Expected};
use crate::io::grid::Grid;
use crate::io::report::{PageFault, RepairSource};
use crate::layout::{Column, ColumnMask, Layout, PagePlace, Unit};
use crate::parity;

/// A data page of the offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataPage {
    pub(crate) unit: Unit,
    pub(crate) column: Column,
    /// Its number among the set's data.
    pub(crate) page: u64,
    pub(crate) expected: Expected,
}

/// The pages of a group's units at one offset.
pub(crate) struct Slice<'a> {
    layout: &'a Layout,
    pub(crate) grid: &'a Grid,
    pub(crate) offset: usize,
    pub(crate) data: Vec<DataPage>,
    p: Option<Column>,
    q: Option<Column>,
}

/// How an offset is made right.
pub(crate) struct Solution {
    pub(crate) source: RepairSource,
    /// The right content of what was wrong, by unit.
    pub(crate) pages: Vec<(DataPage, Buf)>,
}

impl<'a> Slice<'a> {
    /// The offset `offset` of what was read.
    pub(crate) fn new(layout: &'a Layout, grid: &'a Grid, offset: usize, expect: &dyn Expect) -> Slice<'a> {
        let at = grid.at();
        let data_page = |unit| {
            let page = layout.page_of_set(at.row, PagePlace { unit, offset });
            let column = layout.data_column(at.row, unit);
            DataPage { unit, column, page, expected: expect.expect(at.set, page) }
        };
        let data = layout.group_unit_mask(at.group).iter().map(data_page).collect();
        let parities = layout.parity_columns(at.row, at.group);
        Slice { layout, grid, offset, data, p: parities.p, q: parities.q }
    }

    /// What is wrong with a data page: nothing, or it is rotten, or it is not there.
    pub(crate) fn fault(&self, page: &DataPage) -> Option<PageFault> {
        match self.grid.page(page.column, self.offset) {
            None => Some(PageFault::Unreadable),
            Some(content) if page.expected.admits(content.as_slice()) => None,
            Some(_) => Some(PageFault::Rot),
        }
    }

    /// Whether a checksum says that a data page is as it should be.
    pub(crate) fn is_vouched_for(&self, page: &DataPage) -> bool {
        matches!(page.expected, Expected::Crc(_)) && self.fault(page).is_none()
    }

    /// The data pages that are wrong or not there.
    pub(crate) fn wrong(&self) -> Vec<DataPage> {
        self.data.iter().filter(|page| self.fault(page).is_some()).copied().collect()
    }

    /// The right content of the data pages that are wrong or not there, as far as what was read says it.
    pub(crate) fn solve(&self) -> Option<Solution> {
        let wrong = self.wrong();
        match wrong.as_slice() {
            [_] => self
                .candidate(RepairSource::P, &wrong)
                .or_else(|| self.candidate(RepairSource::Q, &wrong))
                .or_else(|| self.with_a_suspect(wrong[0])),
            [_, _] => self.candidate(RepairSource::PAndQ, &wrong),
            _ => None,
        }
    }

    /// One page is known to be wrong, and each parity alone says something that fails: a page without a checksum may
    /// have rotted too.
    fn with_a_suspect(&self, wrong: DataPage) -> Option<Solution> {
        let suspects = self
            .data
            .iter()
            .filter(|page| page.unit != wrong.unit && !matches!(page.expected, Expected::Crc(_)));
        let pair = |suspect: &DataPage| {
            let mut pair = [wrong, *suspect];
            pair.sort_by_key(|page| page.unit);
            self.candidate(RepairSource::PAndQ, &pair)
        };
        suspects.map(pair).find_map(|solution| solution)
    }

    /// The pages of `wrong`, ascending by unit, by these parities; none where one of them was not read or a result
    /// fails its checksum.
    fn candidate(&self, source: RepairSource, wrong: &[DataPage]) -> Option<Solution> {
        let (p, q) = match source {
            RepairSource::P => (Some(self.parity(self.p)?), None),
            RepairSource::Q => (None, Some(self.parity(self.q)?)),
            _ => (Some(self.parity(self.p)?), Some(self.parity(self.q)?)),
        };
        let is_wrong = |page: &DataPage| wrong.iter().any(|other| other.unit == page.unit);
        let content = |page: &DataPage| match is_wrong(page) {
            true => None,
            false => self.grid.page(page.column, self.offset).map(Buf::as_slice),
        };
        let data: Vec<Option<&[u8]>> = self.data.iter().map(content).collect();
        let any = p.or(q).expect("a source is a parity");
        let mut pages: Vec<BufMut> = wrong.iter().map(|_| BufMut::new(any.sectors(), any.width())).collect();
        let mut outputs: Vec<&mut [u8]> = pages.iter_mut().map(BufMut::as_mut_slice).collect();
        parity::recover(&mut outputs, &data, p.map(Buf::as_slice), q.map(Buf::as_slice));
        let passes = wrong.iter().zip(&pages).all(|(page, content)| page.expected.admits(content.as_slice()));
        let pages = wrong.iter().copied().zip(pages.into_iter().map(BufMut::freeze)).collect();
        passes.then_some(Solution { source, pages })
    }

    fn parity(&self, column: Option<Column>) -> Option<&Buf> {
        self.grid.page(column?, self.offset)
    }

    /// What the parities must be, by column, computed from all data. Every data page must be there.
    pub(crate) fn parities(&self) -> Vec<(Column, Buf)> {
        let page = |page: &DataPage| self.grid.page(page.column, self.offset).expect("all data is there");
        let data: Vec<&[u8]> = self.data.iter().map(|data| page(data).as_slice()).collect();
        let fresh = || {
            let like = page(&self.data[0]);
            BufMut::new(like.sectors(), like.width())
        };
        let mut made = Vec::new();
        match (self.p, self.q) {
            (Some(p), Some(q)) => {
                let (mut p_page, mut q_page) = (fresh(), fresh());
                parity::pq(p_page.as_mut_slice(), q_page.as_mut_slice(), &data);
                made.extend([(p, p_page.freeze()), (q, q_page.freeze())]);
            }
            (Some(p), None) => {
                let mut p_page = fresh();
                parity::xor_many(p_page.as_mut_slice(), &data);
                made.push((p, p_page.freeze()));
            }
            _ => {}
        }
        made
    }

    /// The columns of the parities.
    pub(crate) fn parity_columns(&self) -> ColumnMask {
        self.layout.parity_columns(self.grid.at().row, self.grid.at().group).mask()
    }
}
