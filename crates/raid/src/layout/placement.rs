//! One group in one row: its rotation worked out once, then masks of units and of columns turned into each
//! other by rotating bits.

use super::index::{Column, ColumnMask, Unit, UnitMask};

/// Where the parities of one group lie in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityColumns {
    /// The column of P; levels without parity have none.
    pub p: Option<Column>,
    /// The column of Q, at RAID 6 alone.
    pub q: Option<Column>,
}

impl ParityColumns {
    /// Both as a set.
    #[inline]
    pub fn mask(self) -> ColumnMask {
        let only = |column: Option<Column>| column.map_or(ColumnMask::EMPTY, ColumnMask::only);
        only(self.p) | only(self.q)
    }
}

/// `place` modulo `columns`, for places below twice that.
#[inline]
pub(super) const fn wrap(place: u8, columns: u8) -> u8 {
    if place >= columns { place - columns } else { place }
}

/// Where a group's units and parities lie in one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    /// Columns that hold the same data unit.
    pub(super) copies: u8,
    /// Parity columns: 0, 1 or 2.
    pub(super) parities: u8,
    /// Columns of the group.
    pub(super) columns: u8,
    /// The group's first column.
    pub(super) first_column: u8,
    /// Data units of the group.
    pub(super) units: u8,
    /// The group's first data unit.
    pub(super) first_unit: u8,
    /// The place of P within the group; meaningless without parity.
    pub(super) p: u8,
}

impl Placement {
    /// All data units of the group.
    #[inline]
    pub(super) const fn all_units(&self) -> UnitMask {
        UnitMask::range(self.first_unit, self.units)
    }

    /// All columns of the group.
    #[inline]
    pub(super) const fn all_columns(&self) -> ColumnMask {
        ColumnMask::range(self.first_column, self.columns)
    }

    /// The columns of the parities.
    #[inline]
    pub(super) fn parity(&self) -> ParityColumns {
        let q = wrap(self.p + 1, self.columns);
        ParityColumns {
            p: (self.parities > 0).then_some(Column(self.first_column + self.p)),
            q: (self.parities > 1).then_some(Column(self.first_column + q)),
        }
    }

    /// The columns of some of the group's data units, all copies of each.
    #[inline]
    pub(super) fn columns(&self, units: UnitMask) -> ColumnMask {
        debug_assert!(units.is_subset(self.all_units()), "{units:?} reaches beyond {self:?}");
        if self.copies > 1 {
            let copies = |unit: Unit| ColumnMask::range(unit.0 * self.copies, self.copies);
            return units.iter().map(copies).fold(ColumnMask::EMPTY, |all, columns| all | columns);
        }
        let inner = units.bits() >> self.first_unit;
        ColumnMask::from_bits(self.rotate(inner, self.first_data()) << self.first_column)
    }

    /// The data units of the group whose every copy is among `columns`.
    #[inline]
    pub(super) fn units(&self, columns: ColumnMask) -> UnitMask {
        let columns = columns & self.all_columns();
        if columns.is_empty() {
            return UnitMask::EMPTY;
        }
        if self.copies > 1 {
            let inside =
                |unit: &Unit| ColumnMask::range(unit.0 * self.copies, self.copies).is_subset(columns);
            return self.all_units().iter().filter(inside).collect();
        }
        let inner = columns.bits() >> self.first_column;
        let back = wrap(self.columns - self.first_data(), self.columns);
        UnitMask::from_bits(self.rotate(inner, back) << self.first_unit) & self.all_units()
    }

    /// The place of the first data unit within the group.
    #[inline]
    const fn first_data(&self) -> u8 {
        if self.parities == 0 { 0 } else { wrap(self.p + self.parities, self.columns) }
    }

    /// Moves each of the group's bits up by `by` places, around the end; `by` is below the columns.
    #[inline]
    const fn rotate(&self, bits: u64, by: u8) -> u64 {
        // In two steps, since a shift by all 64 bits of a word is none.
        let wrapped = bits >> (self.columns - by - 1) >> 1;
        (bits << by | wrapped) & ColumnMask::range(0, self.columns).bits()
    }
}
