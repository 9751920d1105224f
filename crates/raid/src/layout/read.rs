//! Planning reads: straight from the data where it is left, recovered from the rest of the row where not.
//!
//! A plan is data; carrying it out is: read [`ReadPlan::reads`]; per band, where `recover` is not empty, give
//! [`crate::parity::recover`] the group's units (`None` for those in `recover`) and the parities among
//! `reads`.

use tier0_units::SectorCount;

use super::geometry::{Layout, Role};
use super::index::{Column, ColumnMask, Group, Row, Unit, UnitMask};
use super::piece::{BANDS_MAX, Band, ColumnExtents, Piece};
use super::source::{Survey, Unrecoverable};

/// How to read a piece.
#[derive(Clone, Copy, Debug)]
pub struct ReadPlan {
    bands: [ReadBand; BANDS_MAX],
    count: usize,
}

/// How to read the same offsets of several units.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadBand {
    /// The first sector within each stripe unit.
    pub offset: SectorCount,
    /// The length.
    pub sectors: SectorCount,
    /// The units that are wanted.
    pub wanted: UnitMask,
    /// The lost units of the group, where one of them is wanted: all of these get recovered.
    pub recover: UnitMask,
    /// The columns to read.
    pub reads: ColumnMask,
}

impl ReadPlan {
    /// The bands by ascending offset.
    #[inline]
    pub fn bands(&self) -> &[ReadBand] {
        &self.bands[..self.count]
    }

    /// The drive reads, extents of neighbouring bands joined.
    #[inline]
    pub fn reads(&self) -> ColumnExtents {
        ColumnExtents::join(self.bands().iter().map(|band| (band.offset, band.sectors, band.reads)))
    }
}

/// How to rebuild one column of one row, from the same offsets of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildPlan {
    /// What the column holds.
    pub role: Role,
    /// The columns to read; for a mirror the copies that are left, one of which is enough.
    pub reads: ColumnMask,
    /// The data units that must be recovered first: the column's own, and others that are lost too.
    pub recover: UnitMask,
}

impl Layout {
    /// How to read `piece` without the `lost` columns. For a unit with several copies left, `choose` picks
    /// one of their columns.
    ///
    /// # Errors
    /// When a wanted unit can be neither read nor recovered.
    #[inline]
    pub fn plan_read(
        &self,
        piece: &Piece,
        lost: ColumnMask,
        mut choose: impl FnMut(ColumnMask) -> Column,
    ) -> Result<ReadPlan, Unrecoverable> {
        let survey = Survey::new(self, piece.row, piece.group, lost);
        let (bands, count) = self.bands(piece);
        let mut plan = ReadPlan { bands: [ReadBand::default(); BANDS_MAX], count };
        for (planned, band) in plan.bands.iter_mut().zip(&bands[..count]) {
            *planned = self.plan_read_band(piece, &survey, band, &mut choose)?;
        }
        Ok(plan)
    }

    #[inline]
    fn plan_read_band(
        &self,
        piece: &Piece,
        survey: &Survey,
        band: &Band,
        choose: &mut impl FnMut(ColumnMask) -> Column,
    ) -> Result<ReadBand, Unrecoverable> {
        let &Band { offset, sectors, units: wanted } = band;
        let mut planned = ReadBand { offset, sectors, wanted, ..ReadBand::default() };
        if !(wanted & survey.lost_units).is_empty() {
            let sources = survey.sources();
            planned.reads = sources.ok_or_else(|| survey.unrecoverable(self, piece.row))?;
            planned.recover = survey.lost_units;
        } else if self.copies_per_unit() == 1 {
            planned.reads = survey.placement.columns(wanted);
        } else {
            let one = |unit: Unit| {
                let left = self.copies(piece.row, unit) - survey.lost;
                let column = choose(left);
                debug_assert!(left.contains(column), "{column:?} is none of the copies {left:?}");
                column
            };
            planned.reads = wanted.iter().map(one).collect();
        }
        Ok(planned)
    }

    /// How to rebuild `column` in `row` without the `lost` columns, to which it is counted.
    ///
    /// # Errors
    /// When the others do not determine it.
    pub fn plan_rebuild(
        &self,
        row: Row,
        column: Column,
        lost: ColumnMask,
    ) -> Result<RebuildPlan, Unrecoverable> {
        let lost = lost.with(column);
        let role = self.role(row, column);
        let group = match role {
            Role::Data(unit) | Role::Mirror(unit, _) => self.group_of(unit),
            Role::P(group) | Role::Q(group) => group,
        };
        let survey = Survey::new(self, row, group, lost);
        if let Role::Mirror(unit, _) = role {
            let reads = self.copies(row, unit) - lost;
            let left = !reads.is_empty();
            let plan = RebuildPlan { role, reads, recover: UnitMask::EMPTY };
            return left.then_some(plan).ok_or_else(|| survey.unrecoverable(self, row));
        }
        let reads = survey.sources().ok_or_else(|| survey.unrecoverable(self, row))?;
        Ok(RebuildPlan { role, reads, recover: survey.lost_units })
    }

    /// The data units of `group` on these columns in `row`, with the column of each.
    pub fn units_of_columns(
        &self,
        row: Row,
        group: Group,
        columns: ColumnMask,
    ) -> impl Iterator<Item = (Unit, Column)> + '_ {
        (columns & self.group_column_mask(group)).iter().filter_map(move |column| {
            match self.role(row, column) {
                Role::Data(unit) | Role::Mirror(unit, _) => Some((unit, column)),
                Role::P(_) | Role::Q(_) => None,
            }
        })
    }
}
