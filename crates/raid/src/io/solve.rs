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

/// What is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resort {
    /// A parity that says of a page of which nothing is stored that it is zeros.
    Parity,
    /// All that can be read was, and does not go together: that such a page is zeros, whatever a parity says.
    Zeros,
}

/// Whether a page can have been what a parity says.
type Admits = fn(Expected, &[u8]) -> bool;

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
    /// A parity may say something else: it is to be made anew.
    pub(crate) contradicts_parity: bool,
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
    pub(crate) fn solve(&self, resort: Resort) -> Option<Solution> {
        match resort {
            Resort::Parity => self.solve_by(Expected::admits_recovered),
            Resort::Zeros => self.solve_past_zeros(),
        }
    }

    /// The same where the parities contradict a page of which nothing is stored: it is zeros, unless what else is missed
    /// follows only if it is not.
    fn solve_past_zeros(&self) -> Option<Solution> {
        let (mut zeros, others): (Vec<DataPage>, Vec<DataPage>) =
            self.wrong().into_iter().partition(|page| page.expected == Expected::Zero);
        let solution = if others.is_empty() {
            zeros.extend(self.lies());
            self.zeros(&zeros)
        } else {
            self.with_zeros(&others, &zeros).or_else(|| self.solve_past_lies(&others, zeros))
        };
        Some(Solution { contradicts_parity: true, ..solution? })
    }

    /// What is known to be zeros may be there and lie, while the parities count zeros; or they count what a drive holds that
    /// lied. Only a checksum tells.
    fn solve_past_lies(&self, others: &[DataPage], mut zeros: Vec<DataPage>) -> Option<Solution> {
        if !others.iter().any(|page| matches!(page.expected, Expected::Crc(_))) {
            return None;
        }
        let lies = self.lies();
        zeros.extend(&lies);
        let past_lies = (!lies.is_empty()).then(|| self.with_zeros(others, &zeros)).flatten();
        past_lies.or_else(|| self.solve_by(Expected::admits))
    }

    /// What is wrong besides pages that are zeros, whatever the drives and one of the parities say of these.
    fn with_zeros(&self, others: &[DataPage], zeros: &[DataPage]) -> Option<Solution> {
        let by = |source| self.candidate(source, others, zeros, Expected::admits_recovered);
        match others {
            [_] => by(RepairSource::P).or_else(|| by(RepairSource::Q)),
            [_, _] => by(RepairSource::PAndQ),
            _ => None,
        }
    }

    /// The pages of which nothing is stored, and which are there and are not zeros.
    pub(crate) fn lies(&self) -> Vec<DataPage> {
        let holds_something = |page: &&DataPage| {
            let content = self.grid.page(page.column, self.offset);
            page.expected == Expected::Zero
                && content.is_some_and(|content| !parity::is_zero(content.as_slice()))
        };
        self.data.iter().filter(holds_something).copied().collect()
    }

    fn solve_by(&self, admits: Admits) -> Option<Solution> {
        let mut wrong = self.wrong();
        let lies = self.lies();
        if !lies.is_empty() && wrong.iter().all(|page| page.expected == Expected::GivenUp) {
            // Nothing vouches for what a parity says of them, and it would take the lies along.
            wrong.extend(lies);
            return self.zeros(&wrong);
        }
        let by = |source| self.candidate(source, &wrong, &[], admits);
        match wrong.as_slice() {
            [only] => by(RepairSource::P)
                .or_else(|| by(RepairSource::Q))
                .or_else(|| self.with_a_suspect(*only, admits)),
            [_, _] => by(RepairSource::PAndQ),
            _ => None,
        }
    }

    /// Zeros for pages of which nothing is stored.
    fn zeros(&self, pages: &[DataPage]) -> Option<Solution> {
        let like = self.data.iter().find_map(|page| self.grid.page(page.column, self.offset));
        let like = like.or_else(|| self.parity(self.p)).or_else(|| self.parity(self.q))?;
        let blank = BufMut::zeroed(like.sectors(), like.width()).freeze();
        let pages = pages.iter().map(|page| (*page, blank.clone())).collect();
        Some(Solution { source: RepairSource::Zeros, pages, contradicts_parity: true })
    }

    /// One page is known to be wrong, and each parity alone says something that fails: a page without a checksum may
    /// have rotted too.
    fn with_a_suspect(&self, wrong: DataPage, admits: Admits) -> Option<Solution> {
        let suspects = self
            .data
            .iter()
            .filter(|page| page.unit != wrong.unit && !matches!(page.expected, Expected::Crc(_)));
        let pair = |suspect: &DataPage| {
            let mut pair = [wrong, *suspect];
            pair.sort_by_key(|page| page.unit);
            self.candidate(RepairSource::PAndQ, &pair, &[], admits)
        };
        suspects.map(pair).find_map(|solution| solution)
    }

    /// The pages of `wrong`, ascending by unit, by these parities, and zeros for those of `zeros`; none where one of them
    /// was not read or a result is not admitted.
    fn candidate(
        &self,
        source: RepairSource,
        wrong: &[DataPage],
        zeros: &[DataPage],
        admits: Admits,
    ) -> Option<Solution> {
        let (p, q) = match source {
            RepairSource::P => (Some(self.parity(self.p)?), None),
            RepairSource::Q => (None, Some(self.parity(self.q)?)),
            _ => (Some(self.parity(self.p)?), Some(self.parity(self.q)?)),
        };
        let any = p.or(q).expect("a source is a parity");
        let blank = BufMut::zeroed(any.sectors(), any.width()).freeze();
        let is_of = |pages: &[DataPage], page: &DataPage| pages.iter().any(|other| other.unit == page.unit);
        let content = |page: &DataPage| match (is_of(wrong, page), is_of(zeros, page)) {
            (true, _) => None,
            (_, true) => Some(blank.as_slice()),
            _ => self.grid.page(page.column, self.offset).map(Buf::as_slice),
        };
        let data: Vec<Option<&[u8]>> = self.data.iter().map(content).collect();
        let mut pages: Vec<BufMut> = wrong.iter().map(|_| BufMut::new(any.sectors(), any.width())).collect();
        let mut outputs: Vec<&mut [u8]> = pages.iter_mut().map(BufMut::as_mut_slice).collect();
        parity::recover(&mut outputs, &data, p.map(Buf::as_slice), q.map(Buf::as_slice));
        let passes =
            wrong.iter().zip(&pages).all(|(page, content)| admits(page.expected, content.as_slice()));
        let recovered = wrong.iter().copied().zip(pages.into_iter().map(BufMut::freeze));
        let pages = recovered.chain(zeros.iter().map(|page| (*page, blank.clone()))).collect();
        // Q is asked where what P says fails, or P cannot be read.
        let contradicts_parity = source == RepairSource::Q && self.parity(self.p).is_some();
        passes.then_some(Solution { source, pages, contradicts_parity })
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
