//! Planning the update of a row from scattered pages: as [`super::write`], for any number of bands.
//!
//! A destager writes what is dirty in a row, wherever it lies. The offsets at which the same units are written make up
//! a band; a band may also forbid read-modify-write, where the old content is known to be wrong and its difference
//! would carry the wrong into the parity.

use tier0_units::SectorCount;

use super::geometry::Layout;
use super::index::{ColumnMask, Group, Row, UnitMask};
use super::piece::Band;
use super::source::{Survey, Unrecoverable};
use super::write::{CHOICES, WriteBand, WriteMethod};

/// The same offsets of several units, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateBand {
    /// The first sector within each stripe unit.
    pub offset: SectorCount,
    /// The length.
    pub sectors: SectorCount,
    /// The units that are written.
    pub written: UnitMask,
    /// Whether the old contents may be used: [`WriteMethod::ReadModifyWrite`] needs them.
    pub old_is_good: bool,
}

impl Layout {
    /// How to write these bands of a parity group, given by ascending offset, without the `lost` columns: the plan with
    /// the fewest drive reads over all bands together.
    ///
    /// # Errors
    /// When more columns of the group are lost than the level makes up for.
    pub fn plan_update(
        &self,
        row: Row,
        group: Group,
        bands: &[UpdateBand],
        lost: ColumnMask,
    ) -> Result<Vec<WriteBand>, Unrecoverable> {
        let survey = Survey::new(self, row, group, lost);
        if survey.lost.len() > self.parities() {
            return Err(survey.unrecoverable(self, row));
        }
        if let [band] = bands {
            return Ok(vec![survey.update_band(band, None)]);
        }
        let plan = |preferred| -> Vec<WriteBand> {
            bands.iter().map(|band| survey.update_band(band, Some(preferred))).collect()
        };
        Ok(CHOICES.map(plan).into_iter().min_by_key(|plan| cost(plan)).expect("three plans"))
    }
}

impl Survey {
    /// A band by the preferred method where there is a choice and it is open, else by the cheapest.
    fn update_band(&self, update: &UpdateBand, preferred: Option<WriteMethod>) -> WriteBand {
        let &UpdateBand { offset, sectors, written: units, old_is_good } = update;
        let band = Band { offset, sectors, units };
        let open = |method: &WriteMethod| {
            let allowed = old_is_good || *method != WriteMethod::ReadModifyWrite;
            allowed && self.read_count(&band, *method).is_some()
        };
        let cheapest =
            || CHOICES.into_iter().filter(open).min_by_key(|method| self.read_count(&band, *method));
        let method = self.settled_method(&band).or(preferred.filter(open)).or_else(cheapest);
        self.band(&band, method.expect("no more is lost than parity makes up for"))
    }
}

/// What the reads cost: how many, those of touching bands on one column joined, then how long together.
fn cost(plan: &[WriteBand]) -> (usize, u64) {
    let mut cost = (0, 0);
    let mut before: Option<&WriteBand> = None;
    for band in plan {
        let touching = before.filter(|before| before.offset + before.sectors == band.offset);
        let begun = touching.map_or(ColumnMask::EMPTY, |before| before.reads);
        cost.0 += (band.reads - begun).len();
        cost.1 += band.reads.len() as u64 * band.sectors.0;
        before = Some(band);
    }
    cost
}

#[cfg(test)]
mod tests {
    use tier0_units::Lba;

    use super::*;
    use crate::layout::{RaidConfig, RaidLevel, Unit};

    const UNIT: u64 = 64;

    fn layout(level: RaidLevel, columns: usize) -> Layout {
        Layout::new(&RaidConfig::new(level, columns, SectorCount(UNIT))).expect("valid")
    }

    /// The bands of a contiguous range of pages in one group, as a destager would cut them.
    fn bands_of(layout: &Layout, first: u64, pages: u64) -> Vec<UpdateBand> {
        let unit_pages = layout.unit_pages() as u64;
        let mut bands: Vec<UpdateBand> = Vec::new();
        for offset in 0..unit_pages {
            let written: UnitMask = (first..first + pages)
                .filter(|p| p % unit_pages == offset)
                .map(|p| Unit((p / unit_pages) as u8))
                .collect();
            if written.is_empty() {
                continue;
            }
            let at = SectorCount(offset * 8);
            match bands.last_mut() {
                Some(last) if last.written == written && last.offset + last.sectors == at => {
                    last.sectors = last.sectors + SectorCount(8);
                }
                _ => {
                    bands.push(UpdateBand { offset: at, sectors: SectorCount(8), written, old_is_good: true })
                }
            }
        }
        bands
    }

    #[test]
    fn a_contiguous_range_reads_and_writes_what_the_direct_path_does() {
        for (level, columns) in
            [(RaidLevel::Raid5, 3), (RaidLevel::Raid5, 6), (RaidLevel::Raid6, 4), (RaidLevel::Raid6, 7)]
        {
            let layout = layout(level, columns);
            for lost in 0..=layout.parities() as u8 {
                let lost = ColumnMask::range(1, lost);
                for first in 0..layout.row_pages() as u64 {
                    for pages in 1..=layout.row_pages() as u64 - first {
                        let piece =
                            layout.pieces(Lba(first * 8), SectorCount(pages * 8)).next().expect("a piece");
                        let direct = layout.plan_write(&piece, lost).expect("survivable");
                        let update =
                            layout.plan_update(Row(0), Group(0), &bands_of(&layout, first, pages), lost);
                        let update = update.expect("survivable");
                        assert_eq!(
                            update,
                            direct.bands(),
                            "{level} {columns} {first}+{pages} without {lost}"
                        );
                        let joined =
                            direct.reads().fold((0, 0), |(n, s), extent| (n + 1, s + extent.sectors.0));
                        assert_eq!(cost(&update), joined);
                    }
                }
            }
        }
    }

    #[test]
    fn old_content_that_is_wrong_is_not_modified() {
        let layout = layout(RaidLevel::Raid5, 6);
        let band = |old_is_good| UpdateBand {
            offset: SectorCount(0),
            sectors: SectorCount(8),
            written: UnitMask::only(Unit(2)),
            old_is_good,
        };
        let method = |old_is_good, lost| {
            let plan = layout.plan_update(Row(0), Group(0), &[band(old_is_good)], lost).expect("survivable");
            (plan[0].method, plan[0].reads.len())
        };
        assert_eq!(method(true, ColumnMask::EMPTY), (WriteMethod::ReadModifyWrite, 2));
        assert_eq!(method(false, ColumnMask::EMPTY), (WriteMethod::ReconstructWrite, 4));
        let other = ColumnMask::only(layout.data_column(Row(0), Unit(0)));
        assert_eq!(method(false, other), (WriteMethod::RecoverAndReconstruct, 5));
    }
}
