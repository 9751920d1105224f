//! What is to be written to a row: scattered pages, and whether the rest of the row is kept or becomes zeros.

use std::ops::Range;

use tier0_units::{PAGE_SECTORS, SectorCount};
use tier0_world::{Buf, BufMut, PayloadWidth};

use crate::layout::{Group, Layout, PagePlace, Unit, UnitMask, UpdateBand};

/// What becomes of the pages of a row that a write does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They stay as they are.
    Kept,
    /// The row is unwritten: none of its pages has any content yet. At levels with parity the whole row is written, with
    /// zeros where no page is given, so that parity never depends on what lay there before.
    Zeros,
}

/// The pages.
pub(crate) struct NewPages {
    unit_pages: usize,
    width: PayloadWidth,
    sources: Vec<Buf>,
    /// By page of the row: which source has it, and as its which page.
    pages: Vec<Option<(u32, u32)>>,
}

impl NewPages {
    /// `pages` by their place in the row's data, each buffer a run of whole pages; no page twice.
    pub(crate) fn new(layout: &Layout, width: PayloadWidth, pages: &[(u64, Buf)], rest: Rest) -> NewPages {
        let mut new = NewPages {
            unit_pages: layout.unit_pages(),
            width,
            sources: pages.iter().map(|(_, buf)| buf.clone()).collect(),
            pages: vec![None; layout.row_pages()],
        };
        for (source, (first, buf)) in pages.iter().enumerate() {
            let sectors = u64::from(buf.sectors());
            assert!(sectors.is_multiple_of(PAGE_SECTORS), "{sectors} sectors are not whole pages");
            for page in 0..sectors / PAGE_SECTORS {
                let place = &mut new.pages[(first + page) as usize];
                assert!(place.is_none(), "page {} of the row is given twice", first + page);
                *place = Some((source as u32, page as u32));
            }
        }
        if rest == Rest::Zeros && layout.parities() > 0 {
            let zeros = new.sources.len() as u32;
            new.sources.push(BufMut::zeroed(PAGE_SECTORS as u32, width).freeze());
            new.pages.iter_mut().for_each(|page| *page = page.or(Some((zeros, 0))));
        }
        new
    }

    fn place(&self, unit: Unit, offset: usize) -> Option<(u32, u32)> {
        self.pages[unit.index() * self.unit_pages + offset]
    }

    /// The bytes of a page that is written.
    pub(crate) fn bytes(&self, place: PagePlace) -> Option<&[u8]> {
        let (source, page) = self.place(place.unit, place.offset)?;
        let bytes = PAGE_SECTORS as usize * self.width.bytes();
        Some(&self.sources[source as usize].as_slice()[page as usize * bytes..][..bytes])
    }

    /// The units of a group that are written at an offset.
    pub(crate) fn written(&self, layout: &Layout, group: Group, offset: usize) -> UnitMask {
        layout.group_unit_mask(group).iter().filter(|unit| self.place(*unit, offset).is_some()).collect()
    }

    /// Whether a group has anything to be written.
    pub(crate) fn touches(&self, layout: &Layout, group: Group) -> bool {
        (0..self.unit_pages).any(|offset| !self.written(layout, group, offset).is_empty())
    }

    /// The offsets of a unit that are written, in runs.
    pub(crate) fn runs(&self, unit: Unit) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for offset in (0..self.unit_pages).filter(|offset| self.place(unit, *offset).is_some()) {
            match runs.last_mut() {
                Some(run) if run.end == offset => run.end += 1,
                _ => runs.push(offset..offset + 1),
            }
        }
        runs
    }

    /// A run of a unit's pages in one buffer: shared where it lies in one already, else put together.
    pub(crate) fn gather(&self, unit: Unit, run: Range<usize>) -> Buf {
        let of = |offset| self.place(unit, offset).expect("a page that is written");
        let (source, first) = of(run.start);
        let in_one = run.clone().zip(first..).all(|(offset, page)| of(offset) == (source, page));
        let sectors = (run.len() as u64 * PAGE_SECTORS) as u32;
        if in_one {
            return self.sources[source as usize].slice(first * PAGE_SECTORS as u32, sectors);
        }
        let mut buf = BufMut::new(sectors, self.width);
        let bytes = PAGE_SECTORS as usize * self.width.bytes();
        for (n, offset) in run.enumerate() {
            let page = self.bytes(PagePlace { unit, offset }).expect("a page that is written");
            buf.as_mut_slice()[n * bytes..(n + 1) * bytes].copy_from_slice(page);
        }
        buf.freeze()
    }

    /// The offsets of a group at which something is written, joined where the same units are written and the old
    /// contents are as good.
    pub(crate) fn bands(&self, layout: &Layout, group: Group, distrusted: &[bool]) -> Vec<UpdateBand> {
        let page = SectorCount(PAGE_SECTORS);
        let mut bands: Vec<UpdateBand> = Vec::new();
        for (offset, distrusted) in distrusted.iter().enumerate() {
            let (written, old_is_good) = (self.written(layout, group, offset), !distrusted);
            if written.is_empty() {
                continue;
            }
            let at = SectorCount(offset as u64 * PAGE_SECTORS);
            match bands.last_mut() {
                Some(last)
                    if (last.written, last.old_is_good) == (written, old_is_good)
                        && last.offset + last.sectors == at =>
                {
                    last.sectors = last.sectors + page;
                }
                _ => bands.push(UpdateBand { offset: at, sectors: page, written, old_is_good }),
            }
        }
        bands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{RaidConfig, RaidLevel};

    const WIDTH: PayloadWidth = PayloadWidth::new(1);

    fn layout() -> Layout {
        Layout::new(&RaidConfig::new(RaidLevel::Raid5, 3, SectorCount(32))).expect("valid")
    }

    fn pages(values: &[u8]) -> Buf {
        let bytes: Vec<u8> = values.iter().flat_map(|value| [*value; 8]).collect();
        BufMut::copy_from(&bytes, WIDTH).freeze()
    }

    #[test]
    fn neighbours_become_one_buffer() {
        let layout = layout();
        let given = [(1, pages(&[1, 2, 3, 4])), (6, pages(&[6])), (0, pages(&[9]))];
        let new = NewPages::new(&layout, WIDTH, &given, Rest::Kept);
        assert_eq!(new.runs(Unit(0)), [0..4; 1]);
        assert_eq!(new.runs(Unit(1)), [0..1, 2..3]);
        assert_eq!(new.gather(Unit(0), 0..4).as_slice(), pages(&[9, 1, 2, 3]).as_slice());
        let shared = new.gather(Unit(0), 1..4);
        assert_eq!(
            shared.as_slice().as_ptr(),
            given[0].1.as_slice().as_ptr(),
            "no copy where none is needed"
        );
        let bands = new.bands(&layout, Group(0), &[false; 4]);
        let masks: Vec<(u64, u64, u64)> =
            bands.iter().map(|band| (band.offset.0, band.sectors.0, band.written.bits())).collect();
        assert_eq!(masks, [(0, 8, 0b11), (8, 8, 0b01), (16, 8, 0b11), (24, 8, 0b01)]);
    }

    #[test]
    fn an_unwritten_row_is_written_whole() {
        let layout = layout();
        let new = NewPages::new(&layout, WIDTH, &[(5, pages(&[5]))], Rest::Zeros);
        let bands = new.bands(&layout, Group(0), &[false; 4]);
        assert_eq!((bands.len(), bands[0].sectors.0, bands[0].written.len()), (1, 32, 2));
        assert_eq!(new.gather(Unit(1), 0..4).as_slice(), pages(&[0, 5, 0, 0]).as_slice());
    }

    #[test]
    #[should_panic(expected = "given twice")]
    fn no_page_has_two_contents() {
        let _ = NewPages::new(&layout(), WIDTH, &[(1, pages(&[1, 2])), (2, pages(&[3]))], Rest::Kept);
    }
}
