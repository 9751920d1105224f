//! What must be read to compute the lost columns of a group: shared by degraded reads, writes and rebuild.

use thiserror::Error;

use super::geometry::Layout;
use super::index::{ColumnMask, Group, Row, UnitMask};
use super::level::RaidLevel;
use super::placement::Placement;

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
    /// Where everything lies.
    pub(super) placement: Placement,
    /// Data units of which no copy is left.
    pub(super) lost_units: UnitMask,
    /// The parities that are left.
    pub(super) parity: ColumnMask,
    /// P, if it is left.
    p: ColumnMask,
    /// The lost columns of the group.
    pub(super) lost: ColumnMask,
}

impl Survey {
    /// Looks at one group.
    #[inline]
    pub(super) fn new(layout: &Layout, row: Row, group: Group, lost: ColumnMask) -> Survey {
        let placement = layout.placement(row, group);
        let lost = lost & placement.all_columns();
        let parity = placement.parity();
        Survey {
            placement,
            lost_units: placement.units(lost),
            parity: parity.mask() - lost,
            p: parity.p.map_or(ColumnMask::EMPTY, ColumnMask::only) - lost,
            lost,
        }
    }

    /// The error of an operation that this group cannot carry out.
    #[cold]
    pub(super) fn unrecoverable(&self, layout: &Layout, row: Row) -> Unrecoverable {
        Unrecoverable { level: layout.level(), row, lost: self.lost }
    }

    /// The columns from which the lost data units are recovered: all data that is left, and as many
    /// parities as there are lost units, P before Q since it costs least. `None` where that is too few.
    #[inline]
    pub(super) fn sources(&self) -> Option<ColumnMask> {
        let needed = self.lost_units.len();
        if needed > self.parity.len() {
            return None;
        }
        let taken = match needed {
            0 => ColumnMask::EMPTY,
            1 if !self.p.is_empty() => self.p,
            _ => self.parity,
        };
        Some(self.placement.columns(self.placement.all_units() - self.lost_units) | taken)
    }
}
