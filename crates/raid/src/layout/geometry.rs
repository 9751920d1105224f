//! The address arithmetic of a RAID set: where each sector of data and each parity lies.
//!
//! Data units are numbered through the row in the order of addresses, so consecutive addresses walk a row
//! before the next. Parity rotates left-symmetrically (Linux md's name for it): in row r of a group of n
//! columns, P lies on column n-1 - r mod n, Q on the next, and the data units on those that follow, around
//! the end. So every column carries the same share of parity, and long reads keep all drives busy: any n
//! consecutive data units of a RAID 5 lie on n different columns, n-1 of a RAID 6. Levels without parity do
//! not rotate: unit u lies on column u, or its copies side by side from column u times copies on.

use tier0_units::{Lba, SectorCount};

use super::config::{ConfigError, RaidConfig};
use super::index::{Column, ColumnMask, Group, Row, Unit, UnitMask};
use super::level::RaidLevel;
use super::placement::{ParityColumns, Placement, wrap};

/// The layout of one RAID set: a few bytes, copied freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    level: RaidLevel,
    columns: u8,
    /// Data units per row.
    data_units: u8,
    /// Columns that hold the same data unit; 1 but for mirrors.
    copies: u8,
    groups: u8,
    /// Columns per group.
    group_columns: u8,
    /// Data units per group and row.
    group_units: u8,
    /// Parity columns per group: 0, 1 (P) or 2 (P and Q).
    parities: u8,
    /// log2 of the stripe unit in sectors.
    unit_shift: u8,
}

/// A sector of data, by its place in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The row.
    pub row: Row,
    /// The data unit of the row.
    pub unit: Unit,
    /// The sector within the unit, below the stripe unit.
    pub offset: SectorCount,
}

/// What a column holds in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The only copy of a data unit.
    Data(Unit),
    /// One of several copies of a data unit, counted from 0.
    Mirror(Unit, u8),
    /// The sum of a group's data units.
    P(Group),
    /// The weighted sum of a group's data units.
    Q(Group),
}

impl Layout {
    /// The layout of a set of this shape.
    ///
    /// # Errors
    /// What [`RaidConfig::validate`] refuses.
    pub fn new(config: &RaidConfig) -> Result<Layout, ConfigError> {
        config.validate()?;
        let columns = u8::try_from(config.set_size).expect("validated");
        let (copies, groups, parities) = match config.level {
            RaidLevel::Raid0 => (1, 1, 0),
            RaidLevel::Raid1 => (columns, 1, 0),
            RaidLevel::Raid10 => (2, 1, 0),
            RaidLevel::Raid5 => (1, 1, 1),
            RaidLevel::Raid50 => (1, u8::try_from(config.raid50_groups).expect("validated"), 1),
            RaidLevel::Raid6 => (1, 1, 2),
        };
        let group_columns = columns / groups;
        let group_units = group_columns / copies - parities;
        Ok(Layout {
            level: config.level,
            columns,
            data_units: group_units * groups,
            copies,
            groups,
            group_columns,
            group_units,
            parities,
            unit_shift: config.stripe_unit.0.trailing_zeros() as u8,
        })
    }

    /// The level.
    #[inline]
    pub const fn level(&self) -> RaidLevel {
        self.level
    }

    /// Columns of the set.
    #[inline]
    pub const fn columns(&self) -> usize {
        self.columns as usize
    }

    /// All columns of the set.
    #[inline]
    pub fn all_columns(&self) -> ColumnMask {
        ColumnMask::range(0, self.columns)
    }

    /// Data units in a row; mirrors count once.
    #[inline]
    pub const fn data_units_per_row(&self) -> usize {
        self.data_units as usize
    }

    /// Parity groups: 1, or more at RAID 50.
    #[inline]
    pub const fn groups(&self) -> usize {
        self.groups as usize
    }

    /// Parity columns per group: 0, 1 (P) or 2 (P and Q).
    #[inline]
    pub const fn parities(&self) -> usize {
        self.parities as usize
    }

    /// Columns that hold the same data unit; 1 but for mirrors.
    #[inline]
    pub const fn copies_per_unit(&self) -> usize {
        self.copies as usize
    }

    /// What one column holds of one row.
    #[inline]
    pub const fn stripe_unit(&self) -> SectorCount {
        SectorCount(1 << self.unit_shift)
    }

    /// The data of one row.
    #[inline]
    pub const fn row_sectors(&self) -> SectorCount {
        SectorCount((self.data_units as u64) << self.unit_shift)
    }

    /// Whole rows in columns of `column_sectors` each.
    #[inline]
    pub const fn rows(&self, column_sectors: SectorCount) -> u64 {
        column_sectors.0 >> self.unit_shift
    }

    /// The data that a set with columns of `column_sectors` holds; what is not a whole row is left out.
    #[inline]
    pub const fn data_sectors(&self, column_sectors: SectorCount) -> SectorCount {
        SectorCount(self.rows(column_sectors) * self.row_sectors().0)
    }

    /// How many columns may be lost, whichever they are, without loss of data.
    pub const fn tolerated_failures(&self) -> usize {
        (self.copies - 1 + self.parities) as usize
    }

    /// Whether all data can be had without the `lost` columns.
    pub fn survives(&self, lost: ColumnMask) -> bool {
        if self.parities > 0 {
            let few = |g| (self.group_column_mask(Group(g)) & lost).len() <= self.parities();
            return (0..self.groups).all(few);
        }
        (0..self.data_units).all(|u| !self.copies(Row(0), Unit(u)).is_subset(lost))
    }

    /// Where the sector `lba` of the set's data lies.
    #[inline]
    pub fn map(&self, lba: Lba) -> Location {
        let unit_index = lba.0 >> self.unit_shift;
        let row = unit_index / u64::from(self.data_units);
        Location {
            row: Row(row),
            unit: Unit((unit_index - row * u64::from(self.data_units)) as u8),
            offset: SectorCount(lba.0 & (self.stripe_unit().0 - 1)),
        }
    }

    /// The address in the set's data of a location: the inverse of [`Layout::map`].
    #[inline]
    pub fn lba(&self, at: Location) -> Lba {
        let unit_index = at.row.0 * u64::from(self.data_units) + u64::from(at.unit.0);
        Lba((unit_index << self.unit_shift) + at.offset.0)
    }

    /// The address within a column, the same in every column, of sector `offset` of its stripe unit in `row`.
    #[inline]
    pub const fn column_lba(&self, row: Row, offset: SectorCount) -> Lba {
        Lba((row.0 << self.unit_shift) + offset.0)
    }

    /// The row of an address within a column.
    #[inline]
    pub const fn column_row(&self, lba: Lba) -> Row {
        Row(lba.0 >> self.unit_shift)
    }

    /// The column of a data unit; for mirrors that of copy 0.
    #[inline]
    pub fn data_column(&self, row: Row, unit: Unit) -> Column {
        debug_assert!(unit.0 < self.data_units, "{unit:?} is beyond the row");
        if self.parities == 0 {
            return Column(unit.0 * self.copies);
        }
        let group = self.group_of(unit);
        let inner = unit.0 - group.0 * self.group_units;
        Column(group.0 * self.group_columns + self.wrap(self.p_place(row) + self.parities + inner))
    }

    /// All columns that hold a data unit.
    #[inline]
    pub fn copies(&self, row: Row, unit: Unit) -> ColumnMask {
        ColumnMask::range(self.data_column(row, unit).0, self.copies)
    }

    /// The columns of a group's parities.
    #[inline]
    pub fn parity_columns(&self, row: Row, group: Group) -> ParityColumns {
        self.placement(row, group).parity()
    }

    /// What `column` holds in `row`.
    #[inline]
    pub fn role(&self, row: Row, column: Column) -> Role {
        debug_assert!(column.0 < self.columns, "{column:?} is beyond the set");
        if self.parities == 0 {
            let (unit, copy) = (Unit(column.0 / self.copies), column.0 % self.copies);
            return if self.copies == 1 { Role::Data(unit) } else { Role::Mirror(unit, copy) };
        }
        let group = column.0 / self.group_columns;
        let place = column.0 - group * self.group_columns;
        match self.wrap(place + self.group_columns - self.p_place(row)) {
            0 => Role::P(Group(group)),
            1 if self.parities == 2 => Role::Q(Group(group)),
            steps => Role::Data(Unit(group * self.group_units + steps - self.parities)),
        }
    }

    /// The group of a data unit.
    #[inline]
    pub fn group_of(&self, unit: Unit) -> Group {
        if self.groups == 1 { Group(0) } else { Group(unit.0 / self.group_units) }
    }

    /// The data units of a group.
    #[inline]
    pub fn group_unit_mask(&self, group: Group) -> UnitMask {
        UnitMask::range(group.0 * self.group_units, self.group_units)
    }

    /// The columns of a group.
    #[inline]
    pub fn group_column_mask(&self, group: Group) -> ColumnMask {
        ColumnMask::range(group.0 * self.group_columns, self.group_columns)
    }

    /// The columns of several data units of one group, all copies of each.
    #[inline]
    pub fn unit_columns(&self, row: Row, group: Group, units: UnitMask) -> ColumnMask {
        self.placement(row, group).columns(units)
    }

    /// The data units of a group whose every copy is among `columns`.
    #[inline]
    pub fn units_on(&self, row: Row, group: Group, columns: ColumnMask) -> UnitMask {
        self.placement(row, group).units(columns)
    }

    /// log2 of the stripe unit in sectors.
    #[inline]
    pub(super) const fn unit_shift(&self) -> u8 {
        self.unit_shift
    }

    /// Where a group's units and parities lie in one row.
    #[inline]
    pub(super) fn placement(&self, row: Row, group: Group) -> Placement {
        Placement {
            copies: self.copies,
            parities: self.parities,
            columns: self.group_columns,
            first_column: group.0 * self.group_columns,
            units: self.group_units,
            first_unit: group.0 * self.group_units,
            p: if self.parities > 0 { self.p_place(row) } else { 0 },
        }
    }

    /// The place of P within a group.
    #[inline]
    fn p_place(&self, row: Row) -> u8 {
        self.group_columns - 1 - (row.0 % u64::from(self.group_columns)) as u8
    }

    /// `place` modulo the columns of a group, for places below twice that.
    #[inline]
    const fn wrap(&self, place: u8) -> u8 {
        wrap(place, self.group_columns)
    }
}
