//! Planning writes: which columns to read first, if any, and which to write.
//!
//! Per band of a piece (see [`super::piece`]) a parity group can be brought up to date in several ways; the
//! plan takes the one with the fewest drive reads over all bands together. Carrying a plan out is: read
//! [`WritePlan::reads`]; per band compute the new parity as its [`WriteMethod`] says; write [`WritePlan::writes`]. The
//! caller that carries it out keeps other writes away from the row and group meanwhile.

use tier0_units::SectorCount;

use super::geometry::Layout;
use super::index::{ColumnMask, UnitMask};
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
pub(super) const CHOICES: [WriteMethod; 3] =
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
        let bands = &bands[..count];
        let kept = if self.parities() > 0 {
            survey.lost.len() <= self.parities()
        } else {
            bands.iter().all(|band| (band.units & survey.lost_units).is_empty())
        };
        if !kept {
            return Err(survey.unrecoverable(self, piece.row));
        }
        Ok(survey.plan_write(bands))
    }
}

impl Survey {
    /// The cheapest of the plans that take one way wherever it is open, and in other bands the cheapest
    /// open way. One band has no other band to share reads with: its cheapest way is the cheapest plan.
    #[inline]
    fn plan_write(&self, bands: &[Band]) -> WritePlan {
        if let [band] = bands {
            return self.assemble(bands, |_| self.cheapest_method(band));
        }
        self.plan_bands(bands)
    }

    fn plan_bands(&self, bands: &[Band]) -> WritePlan {
        let plan = |preferred| self.assemble(bands, |band| self.method_of(band, preferred));
        CHOICES.map(plan).into_iter().min_by_key(WritePlan::cost).expect("three plans")
    }

    #[inline]
    fn assemble(&self, bands: &[Band], method: impl Fn(&Band) -> WriteMethod) -> WritePlan {
        let mut plan = WritePlan { bands: [WriteBand::default(); BANDS_MAX], count: bands.len() };
        for (planned, band) in plan.bands.iter_mut().zip(bands) {
            *planned = self.band(band, method(band));
        }
        plan
    }

    /// The method where there is nothing to choose.
    #[inline]
    pub(super) fn settled_method(&self, band: &Band) -> Option<WriteMethod> {
        if self.parity.is_empty() {
            Some(WriteMethod::DataOnly)
        } else if band.units == self.placement.all_units() {
            Some(WriteMethod::FullStripe)
        } else {
            None
        }
    }

    /// `preferred` where it is open and there is a choice.
    fn method_of(&self, band: &Band, preferred: WriteMethod) -> WriteMethod {
        let settled = self.settled_method(band);
        let preferred = || self.read_count(band, preferred).map(|_| preferred);
        settled.or_else(preferred).unwrap_or_else(|| self.cheapest_method(band))
    }

    /// The method that reads the fewest columns.
    #[inline]
    fn cheapest_method(&self, band: &Band) -> WriteMethod {
        self.settled_method(band).unwrap_or_else(|| {
            let open =
                CHOICES.into_iter().filter_map(|method| Some((self.read_count(band, method)?, method)));
            let cheapest = open.min_by_key(|(reads, _)| *reads);
            cheapest.expect("no more is lost than parity makes up for").1
        })
    }

    /// How many columns a method reads; `None` where it needs a lost one.
    #[inline]
    pub(super) fn read_count(&self, band: &Band, method: WriteMethod) -> Option<usize> {
        let rest = self.placement.all_units() - band.units;
        match method {
            WriteMethod::DataOnly | WriteMethod::FullStripe => Some(0),
            WriteMethod::ReconstructWrite => (rest & self.lost_units).is_empty().then_some(rest.len()),
            WriteMethod::ReadModifyWrite => {
                let open = (band.units & self.lost_units).is_empty();
                open.then_some(band.units.len() + self.parity.len())
            }
            WriteMethod::RecoverAndReconstruct if self.lost_units.is_empty() => None,
            // A parity stands in for each lost unit.
            WriteMethod::RecoverAndReconstruct => {
                let enough = self.lost_units.len() <= self.parity.len();
                enough.then_some(self.placement.all_units().len())
            }
        }
    }

    /// A band by a method that is open.
    #[inline]
    pub(super) fn band(
        &self,
        &Band { offset, sectors, units: written }: &Band,
        method: WriteMethod,
    ) -> WriteBand {
        let written_columns = self.placement.columns(written) - self.lost;
        let (reads, recover) = match method {
            WriteMethod::DataOnly | WriteMethod::FullStripe => (ColumnMask::EMPTY, UnitMask::EMPTY),
            WriteMethod::ReconstructWrite => {
                (self.placement.columns(self.placement.all_units() - written), UnitMask::EMPTY)
            }
            WriteMethod::ReadModifyWrite => (written_columns | self.parity, UnitMask::EMPTY),
            WriteMethod::RecoverAndReconstruct => (self.sources().expect("an open method"), self.lost_units),
        };
        let writes = written_columns | self.parity;
        WriteBand { offset, sectors, written, method, recover, reads, writes }
    }
}
