//! Cutting a range of addresses into what lies in one parity group of one row, and that into extents.
//!
//! A contiguous range within a row covers its first unit from some offset on, units between in full, and its
//! last unit up to some offset. Sorted by offset it falls into at most three [`Band`]s, in each of which
//! every unit is either covered throughout or not at all. Parity is computed byte by byte across units,
//! so plans are made per band, and extents of neighbouring bands on one column are joined again into
//! one I/O.

use tier0_units::{Lba, SectorCount};

use super::geometry::{Layout, Location};
use super::index::{Column, ColumnMask, Group, MaskIter, Row, Unit, UnitMask};

/// A contiguous range of addresses within one group of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The row.
    pub row: Row,
    /// The group.
    pub group: Group,
    /// The address of the first sector in the set's data.
    pub lba: Lba,
    /// The first sector, counted from the start of the row's data.
    pub start: SectorCount,
    /// The length.
    pub sectors: SectorCount,
}

/// Part of a data unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitExtent {
    /// The data unit.
    pub unit: Unit,
    /// The first sector within the unit.
    pub offset: SectorCount,
    /// The length.
    pub sectors: SectorCount,
}

/// Part of a column's stripe unit in one row: one I/O to one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnExtent {
    /// The column.
    pub column: Column,
    /// The first sector within the stripe unit; [`Layout::column_lba`] makes an address of it.
    pub offset: SectorCount,
    /// The length.
    pub sectors: SectorCount,
}

/// The same offsets of several units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Band {
    pub(super) offset: SectorCount,
    pub(super) sectors: SectorCount,
    pub(super) units: UnitMask,
}

/// The most bands a piece falls into.
pub(super) const BANDS_MAX: usize = 3;

impl Layout {
    /// Cuts `sectors` of the set's data from `lba` on into pieces, in order of address. Levels without groups
    /// of their own give one piece per row, RAID 50 one per row and group.
    #[inline]
    pub fn pieces(&self, lba: Lba, sectors: SectorCount) -> Pieces<'_> {
        Pieces { layout: self, lba, left: sectors }
    }

    /// The parts of data units that make up a piece, in order of address.
    #[inline]
    pub fn extents(&self, piece: &Piece) -> UnitExtents {
        let end = piece.start + piece.sectors;
        UnitExtents { unit_shift: self.unit_shift(), at: piece.start.0, end: end.0 }
    }

    /// How far into a piece the sector `offset` of `unit` is; it must lie within the piece.
    #[inline]
    pub fn position_in(&self, piece: &Piece, unit: Unit, offset: SectorCount) -> SectorCount {
        SectorCount((u64::from(unit.0) << self.unit_shift()) + offset.0) - piece.start
    }

    /// The bands of a piece by ascending offset, and how many they are.
    #[inline]
    pub(super) fn bands(&self, piece: &Piece) -> ([Band; BANDS_MAX], usize) {
        let unit = self.stripe_unit().0;
        let last_sector = piece.start.0 + piece.sectors.0 - 1;
        let (first, last) = (piece.start.0 >> self.unit_shift(), last_sector >> self.unit_shift());
        // From offset `a` of the first unit up to, not including, offset `b` of the last.
        let (a, b) = (piece.start.0 & (unit - 1), (last_sector & (unit - 1)) + 1);
        let units = |from: u64, to: u64| UnitMask::range(from as u8, (to - from) as u8);
        let band = |from: u64, to: u64, units| Band {
            offset: SectorCount(from),
            sectors: SectorCount(to - from),
            units,
        };
        if first == last {
            let only = band(a, b, units(first, first + 1));
            return ([only; BANDS_MAX], 1);
        }
        let (low, high) = (a.min(b), a.max(b));
        let middle = if a < b { units(first, last + 1) } else { units(first + 1, last) };
        let all = [
            band(0, low, units(first + 1, last + 1)),
            band(low, high, middle),
            band(high, unit, units(first, last)),
        ];
        let mut kept = [all[0]; BANDS_MAX];
        let mut count = 0;
        for band in all {
            if band.sectors.0 > 0 && !band.units.is_empty() {
                kept[count] = band;
                count += 1;
            }
        }
        (kept, count)
    }
}

/// The pieces of a range; see [`Layout::pieces`].
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    layout: &'a Layout,
    lba: Lba,
    left: SectorCount,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.left.0 == 0 {
            return None;
        }
        let Location { row, unit, offset } = self.layout.map(self.lba);
        let group = self.layout.group_of(unit);
        let start = (u64::from(unit.0) << self.layout.unit_shift()) + offset.0;
        let group_sectors = self.layout.row_sectors().0 / self.layout.groups() as u64;
        let group_end = (u64::from(group.0) + 1) * group_sectors;
        let sectors = SectorCount(self.left.0.min(group_end - start));
        let piece = Piece { row, group, lba: self.lba, start: SectorCount(start), sectors };
        self.lba += sectors;
        self.left = self.left - sectors;
        Some(piece)
    }
}

/// The unit extents of a piece; see [`Layout::extents`].
#[derive(Clone, Debug)]
pub struct UnitExtents {
    unit_shift: u8,
    at: u64,
    end: u64,
}

impl Iterator for UnitExtents {
    type Item = UnitExtent;

    #[inline]
    fn next(&mut self) -> Option<UnitExtent> {
        if self.at == self.end {
            return None;
        }
        let unit_sectors = 1 << self.unit_shift;
        let offset = self.at & (unit_sectors - 1);
        let sectors = (unit_sectors - offset).min(self.end - self.at);
        let unit = Unit((self.at >> self.unit_shift) as u8);
        self.at += sectors;
        Some(UnitExtent { unit, offset: SectorCount(offset), sectors: SectorCount(sectors) })
    }
}

/// What columns do at the offsets of one band.
#[derive(Clone, Copy, Debug, Default)]
struct Strip {
    offset: SectorCount,
    sectors: SectorCount,
    columns: ColumnMask,
}

/// One extent per column, or more where its bands do not touch; by column, then offset.
#[derive(Clone, Debug)]
pub struct ColumnExtents {
    strips: [Strip; BANDS_MAX],
    columns: MaskIter<Column>,
    column: Option<Column>,
    /// How many strips there are.
    count: usize,
    /// The first strip of `column` that is not yet handed out.
    next_strip: usize,
}

impl ColumnExtents {
    /// Joins the extents of up to [`BANDS_MAX`] bands, given by ascending offset.
    #[inline]
    pub(super) fn join(bands: impl Iterator<Item = (SectorCount, SectorCount, ColumnMask)>) -> ColumnExtents {
        let mut strips = [Strip::default(); BANDS_MAX];
        let mut all = ColumnMask::EMPTY;
        let mut count = 0;
        for (offset, sectors, columns) in bands {
            strips[count] = Strip { offset, sectors, columns };
            all = all | columns;
            count += 1;
        }
        let mut columns = all.iter();
        let column = columns.next();
        ColumnExtents { strips, columns, column, count, next_strip: 0 }
    }

    /// The next run of touching strips of the current column, or `None` at its end.
    fn next_of_column(&mut self, column: Column) -> Option<ColumnExtent> {
        let mut extent: Option<ColumnExtent> = None;
        while self.next_strip < self.count {
            let Strip { offset, sectors, columns } = self.strips[self.next_strip];
            let holds = columns.contains(column);
            match &mut extent {
                None if holds => extent = Some(ColumnExtent { column, offset, sectors }),
                None => {}
                Some(begun) if holds && begun.offset + begun.sectors == offset => {
                    begun.sectors = begun.sectors + sectors;
                }
                Some(_) => break,
            }
            self.next_strip += 1;
        }
        extent
    }
}

impl Iterator for ColumnExtents {
    type Item = ColumnExtent;

    #[inline]
    fn next(&mut self) -> Option<ColumnExtent> {
        if self.count == 1 {
            // Most plans have one band, whose columns are those of its only strip.
            let column = self.column?;
            self.column = self.columns.next();
            let Strip { offset, sectors, .. } = self.strips[0];
            return Some(ColumnExtent { column, offset, sectors });
        }
        loop {
            let column = self.column?;
            if let Some(extent) = self.next_of_column(column) {
                return Some(extent);
            }
            self.column = self.columns.next();
            self.next_strip = 0;
        }
    }
}
