//! Rows in pages of 4 KiB, the unit of checksums: which page of a row lies where.
//!
//! Stripe units are whole pages ([`super::STRIPE_UNIT_MIN`]), so a page lies on one column, and the pages at one offset
//! of a group's units make up a small row of their own, with their own P and Q.

use tier0_units::{Lba, PAGE_SECTORS, SectorCount};

use super::geometry::Layout;
use super::index::{Row, Unit};

/// A page's place in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// The data unit.
    pub unit: Unit,
    /// The page within the unit, below [`Layout::unit_pages`].
    pub offset: usize,
}

impl Layout {
    /// Pages of a stripe unit.
    #[inline]
    pub const fn unit_pages(&self) -> usize {
        (self.stripe_unit().0 / PAGE_SECTORS) as usize
    }

    /// Pages of a row's data.
    #[inline]
    pub const fn row_pages(&self) -> usize {
        self.unit_pages() * self.data_units_per_row()
    }

    /// Where the page `page` of a row's data lies.
    #[inline]
    pub const fn page_place(&self, page: usize) -> PagePlace {
        PagePlace { unit: Unit((page / self.unit_pages()) as u8), offset: page % self.unit_pages() }
    }

    /// The number of a page among the row's data: the inverse of [`Layout::page_place`].
    #[inline]
    pub const fn page_of_row(&self, place: PagePlace) -> usize {
        place.unit.index() * self.unit_pages() + place.offset
    }

    /// The number of a page among the set's data: its address in sectors, divided by [`PAGE_SECTORS`].
    #[inline]
    pub const fn page_of_set(&self, row: Row, place: PagePlace) -> u64 {
        row.0 * self.row_pages() as u64 + self.page_of_row(place) as u64
    }

    /// The address within a column of the page at `offset` of its stripe unit in `row`.
    #[inline]
    pub const fn page_column_lba(&self, row: Row, offset: usize) -> Lba {
        self.column_lba(row, SectorCount(offset as u64 * PAGE_SECTORS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{RaidConfig, RaidLevel};

    #[test]
    fn pages_count_like_addresses() {
        let layout = Layout::new(&RaidConfig::new(RaidLevel::Raid50, 8, SectorCount(32))).expect("valid");
        assert_eq!((layout.unit_pages(), layout.row_pages()), (4, 24));
        for page in 0..100 {
            let at = layout.map(Lba(page * PAGE_SECTORS));
            let place = layout.page_place((page % 24) as usize);
            assert_eq!((place.unit, place.offset as u64 * PAGE_SECTORS), (at.unit, at.offset.0));
            assert_eq!(layout.page_of_set(at.row, place), page);
            assert_eq!(layout.page_column_lba(at.row, place.offset), layout.column_lba(at.row, at.offset));
        }
    }
}
