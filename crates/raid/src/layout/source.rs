//! What must be read to compute the lost columns of a group: shared by degraded reads, writes and rebuild.

use thiserror::Error;

use super::geometry::{Layout, ParityColumns};
use super::index::{ColumnMask, Group, Row, UnitMask};
use super::level::RaidLevel;

/// More columns are lost than the level makes up for.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "row {} needs data of lost columns that {level} cannot make up for (lost: {lost}); \
     bring back a drive that holds one of them, or restore from a backup", row.0
)]
pub struct Unrecoverable {
    /// The level.
    pub level: RaidLevel,
    /// The row.
    pub row: Row,
    /// The lost columns of the group.
    pub lost: ColumnMask,
}

/// A group in a row with some columns lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// All data units of the group.
    pub(super) units: UnitMask,
    /// Data units of which no copy is left.
    pub(super) lost_units: UnitMask,
    /// The parities that are left.
    pub(super) parity: ParityColumns,
    /// The lost columns of the group.
    pub(super) lost: ColumnMask,
}

impl Survey {
    /// Looks at one group.
    #[inline]
    pub(super) fn new(layout: &Layout, row: Row, group: Group, lost: ColumnMask) -> Survey {
        let lost = lost & layout.group_column_mask(group);
        let ParityColumns { p, q } = layout.parity_columns(row, group);
        let left = |column: &_| !lost.contains(*column);
        Survey {
            units: layout.group_unit_mask(group),
            lost_units: layout.units_on(row, group, lost),
            parity: ParityColumns { p: p.filter(left), q: q.filter(left) },
            lost,
        }
    }

    /// The error of an operation that this group cannot carry out.
    pub(super) fn unrecoverable(&self, layout: &Layout, row: Row) -> Unrecoverable {
        Unrecoverable { level: layout.level(), row, lost: self.lost }
    }

    /// The columns from which the lost data units are recovered: all data that is left, and as many
    /// parities as there are lost units, P before Q since it costs least. `None` where that is too few.
    #[inline]
    pub(super) fn sources(&self, layout: &Layout, row: Row, group: Group) -> Option<ColumnMask> {
        let parities = self.parity.p.into_iter().chain(self.parity.q);
        let taken: ColumnMask = parities.take(self.lost_units.len()).collect();
        let enough = taken.len() == self.lost_units.len();
        enough.then(|| layout.unit_columns(row, group, self.units - self.lost_units) | taken)
    }
}
