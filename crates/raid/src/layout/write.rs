//! Planning writes: which columns to read first, if any, and which to write.
//!
//! Per band of a piece (see [`super::piece`]) a parity group can be brought up to date in several ways; the
//! plan takes the one with the fewest drive reads over all bands together. Carrying a plan out is: read
//! [`WritePlan::reads`]; per band compute the new parity as its [`WriteMethod`] says; write
//! [`WritePlan::writes`]. Whoever carries it out keeps other writes away from the row and group meanwhile.

use tier0_units::SectorCount;

use super::geometry::Layout;
use super::index::{ColumnMask, Group, Row, UnitMask};
use super::piece::{BANDS_MAX, Band, ColumnExtents, Piece};
use super::source::{Survey, Unrecoverable};

/// How a band's parity is brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMethod {
    /// There is no parity, or none is left: only data is written.
    #[default]
    DataOnly,
    /// All units are written: parity follows from the new data alone, nothing is read.
    FullStripe,
    /// The old contents of the written units and the old parity are read; each change is added to the parity.
    ReadModifyWrite,
    /// The units that are not written are read; parity is computed from all units.
    ReconstructWrite,
    /// All that is left is read and the lost units' old contents are recovered from it; then as
    /// [`WriteMethod::ReconstructWrite`].
    RecoverAndReconstruct,
}

/// How to write a piece.
#[derive(Clone, Copy, Debug)]
pub struct WritePlan {
    bands: [WriteBand; BANDS_MAX],
    count: usize,
}

/// How to write the same offsets of several units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteBand {
    /// The first sector within each stripe unit.
    pub offset: SectorCount,
    /// The length.
    pub sectors: SectorCount,
    /// The units that are written; those on lost columns live on in the parity alone.
    pub written: UnitMask,
    /// How parity is brought up to date.
    pub method: WriteMethod,
    /// The lost units to recover before anything else, at [`WriteMethod::RecoverAndReconstruct`].
    pub recover: UnitMask,
    /// The columns to read.
    pub reads: ColumnMask,
    /// The columns to write: data and parity that are not lost.
    pub writes: ColumnMask,
}

impl WritePlan {
    /// The bands by ascending offset.
    #[inline]
    pub fn bands(&self) -> &[WriteBand] {
        &self.bands[..self.count]
    }

    /// The drive reads, extents of neighbouring bands joined.
    #[inline]
    pub fn reads(&self) -> ColumnExtents {
        ColumnExtents::join(self.bands().iter().map(|band| (band.offset, band.sectors, band.reads)))
    }

    /// The drive writes, extents of neighbouring bands joined.
    #[inline]
    pub fn writes(&self) -> ColumnExtents {
        ColumnExtents::join(self.bands().iter().map(|band| (band.offset, band.sectors, band.writes)))
    }

    /// What the reads cost: how many, then how long together.
    fn cost(&self) -> (usize, u64) {
        self.reads().fold((0, 0), |(reads, sectors), extent| (reads + 1, sectors + extent.sectors.0))
    }
}

/// The ways that read something, in the order in which they are preferred at equal cost: reconstruct-write
/// reads other drives than it writes (but for parity), so no drive has to come around for a second visit.
const CHOICES: [WriteMethod; 3] =
    [WriteMethod::ReconstructWrite, WriteMethod::ReadModifyWrite, WriteMethod::RecoverAndReconstruct];

impl Layout {
    /// How to write `piece` without the `lost` columns.
    ///
    /// # Errors
    /// When what is written could not be read back: more columns of the group are lost than the level makes up
    /// for; or without parity, a unit has no copy left.
    #[inline]
    pub fn plan_write(&self, piece: &Piece, lost: ColumnMask) -> Result<WritePlan, Unrecoverable> {
        let survey = Survey::new(self, piece.row, piece.group, lost);
        let (bands, count) = self.bands(piece);
        let stripe = Stripe { layout: self, row: piece.row, group: piece.group, survey };
        if self.parities() == 0 {
            let written = bands[..count].iter().fold(UnitMask::EMPTY, |all, band| all | band.units);
            let kept = (written & survey.lost_units).is_empty();
            return if kept { Ok(stripe.data_only(&bands[..count])) } else { Err(stripe.unrecoverable()) };
        }
        if survey.lost.len() > self.parities() {
            return Err(stripe.unrecoverable());
        }
        if survey.parity.mask().is_empty() {
            return Ok(stripe.data_only(&bands[..count]));
        }
        Ok(stripe.cheapest(&bands[..count]))
    }
}

/// The group of the row that is written to.
struct Stripe<'a> {
    layout: &'a Layout,
    row: Row,
    group: Group,
    survey: Survey,
}

impl Stripe<'_> {
    fn unrecoverable(&self) -> Unrecoverable {
        self.survey.unrecoverable(self.layout, self.row)
    }

    fn columns(&self, units: UnitMask) -> ColumnMask {
        self.layout.unit_columns(self.row, self.group, units)
    }

    fn plan(&self, bands: &[Band], mut of_band: impl FnMut(&Band) -> WriteBand) -> WritePlan {
        let mut plan = WritePlan { bands: [WriteBand::default(); BANDS_MAX], count: bands.len() };
        for (planned, band) in plan.bands.iter_mut().zip(bands) {
            *planned = of_band(band);
        }
        plan
    }

    /// The band without its reads.
    fn band(&self, &Band { offset, sectors, units: written }: &Band, method: WriteMethod) -> WriteBand {
        let writes = (self.columns(written) - self.survey.lost) | self.survey.parity.mask();
        WriteBand { offset, sectors, written, method, writes, ..WriteBand::default() }
    }

    fn data_only(&self, bands: &[Band]) -> WritePlan {
        self.plan(bands, |band| self.band(band, WriteMethod::DataOnly))
    }

    /// The cheapest of the plans that take one way wherever it is open, and in other bands the cheapest
    /// open way. At least one way is open in every band, since no more is lost than parity makes up for.
    fn cheapest(&self, bands: &[Band]) -> WritePlan {
        if bands.iter().all(|band| band.units == self.survey.units) {
            return self.plan(bands, |band| self.band(band, WriteMethod::FullStripe));
        }
        if let [band] = bands {
            return self.plan(bands, |_| self.cheapest_band(band));
        }
        let plans = CHOICES.map(|preferred| self.plan(bands, |band| self.band_by(band, preferred)));
        plans.into_iter().min_by_key(WritePlan::cost).expect("three plans")
    }

    fn band_by(&self, band: &Band, preferred: WriteMethod) -> WriteBand {
        if band.units == self.survey.units {
            return self.band(band, WriteMethod::FullStripe);
        }
        self.attempt(band, preferred).unwrap_or_else(|| self.cheapest_band(band))
    }

    fn cheapest_band(&self, band: &Band) -> WriteBand {
        let open = CHOICES.into_iter().filter_map(|method| self.attempt(band, method));
        open.min_by_key(|band| band.reads.len()).expect("no more is lost than parity makes up for")
    }

    /// The band by one way, if that way needs no lost column.
    fn attempt(&self, band: &Band, method: WriteMethod) -> Option<WriteBand> {
        let Survey { units, lost_units, parity, .. } = self.survey;
        let reads = match method {
            WriteMethod::DataOnly | WriteMethod::FullStripe => return None,
            WriteMethod::ReconstructWrite => {
                let rest = units - band.units;
                (rest & lost_units).is_empty().then(|| self.columns(rest))?
            }
            WriteMethod::ReadModifyWrite => {
                let open = (band.units & lost_units).is_empty();
                open.then(|| self.columns(band.units) | parity.mask())?
            }
            WriteMethod::RecoverAndReconstruct if lost_units.is_empty() => return None,
            WriteMethod::RecoverAndReconstruct => self.survey.sources(self.layout, self.row, self.group)?,
        };
        let recover = if method == WriteMethod::RecoverAndReconstruct { lost_units } else { UnitMask::EMPTY };
        Some(WriteBand { reads, recover, ..self.band(band, method) })
    }
}
