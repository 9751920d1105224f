//! An entry of the catalogue: identity, parameters in effect, and the calibrations it can take.
//!
//! A calibration is a named set of parameters that replaces some of the entry's own. Every entry has the
//! calibration [`DATASHEET`], which replaces none; one of them is in effect by default, and where figures
//! for the same device differ, that is the conservative one.

use std::collections::BTreeMap;

use crate::array::ArrayParameters;
use crate::disk::DiskParameters;
use crate::error::UnknownCalibration;
use crate::flash::FlashParameters;
use crate::link::LinkParameters;
use crate::nvram::NvramParameters;
use crate::parameter_set::ParameterSet;

/// The name of the calibration that leaves an entry's own parameters as they are.
pub const DATASHEET: &str = "datasheet";

/// A disk.
pub type DiskSpec = Spec<DiskParameters>;
/// A flash drive.
pub type FlashSpec = Spec<FlashParameters>;
/// A protected write cache.
pub type NvramSpec = Spec<NvramParameters>;
/// A link.
pub type LinkSpec = Spec<LinkParameters>;
/// An array.
pub type ArraySpec = Spec<ArrayParameters>;

/// A named set of parameters that replaces some of an entry's own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calibration<O> {
    pub(crate) description: String,
    pub(crate) overrides: O,
}

/// An entry that has passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec<P: ParameterSet> {
    /// The id, in kebab-case.
    pub id: String,
    /// Maker and model that the figures are of.
    pub name: String,
    /// Class of device, such as "15k disk" or "flash".
    pub class: String,
    /// One sentence for lists.
    pub description: String,
    /// The calibration in effect.
    pub calibration: String,
    /// The parameters in effect.
    pub parameters: P,
    /// The entry's own parameters, without any calibration.
    pub(crate) own: P,
    pub(crate) calibrations: BTreeMap<String, Calibration<P::Overrides>>,
}

impl<P: ParameterSet> Spec<P> {
    /// All calibrations, with what they stand for.
    pub fn calibrations(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = (DATASHEET, "the entry's own parameters");
        std::iter::once(own)
            .chain(self.calibrations.iter().map(|(name, c)| (name.as_str(), c.description.as_str())))
    }

    /// This entry under another calibration.
    pub fn calibrated(&self, calibration: &str) -> Result<Spec<P>, UnknownCalibration> {
        let parameters = if calibration == DATASHEET {
            self.own.clone()
        } else {
            let found = self.calibrations.get(calibration).ok_or_else(|| UnknownCalibration {
                id: self.id.clone(),
                calibration: calibration.to_owned(),
                known: self.calibrations().map(|(name, _)| name.to_owned()).collect(),
            })?;
            self.own.overridden(&found.overrides)
        };
        Ok(Spec { parameters, calibration: calibration.to_owned(), ..self.clone() })
    }
}

/// A drive of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum DriveSpec {
    /// A disk.
    Disk(Box<DiskSpec>),
    /// A flash drive.
    Flash(Box<FlashSpec>),
    /// A protected write cache, which holds the write log of a modelled array and nothing else.
    Nvram(Box<NvramSpec>),
}

impl DriveSpec {
    /// The id.
    pub fn id(&self) -> &str {
        match self {
            DriveSpec::Disk(spec) => &spec.id,
            DriveSpec::Flash(spec) => &spec.id,
            DriveSpec::Nvram(spec) => &spec.id,
        }
    }

    /// The class of device.
    pub fn class(&self) -> &str {
        match self {
            DriveSpec::Disk(spec) => &spec.class,
            DriveSpec::Flash(spec) => &spec.class,
            DriveSpec::Nvram(spec) => &spec.class,
        }
    }

    /// The capacity that the host sees, in whole sectors.
    pub fn capacity(&self) -> tier0_units::SectorCount {
        let bytes = match self {
            DriveSpec::Disk(spec) => spec.parameters.capacity_gb.value * 1e9,
            DriveSpec::Flash(spec) => spec.parameters.capacity_gb.value * 1e9,
            DriveSpec::Nvram(spec) => spec.parameters.capacity_mib.value * f64::from(1 << 20),
        };
        tier0_units::SectorCount(bytes as u64 / tier0_units::SECTOR_BYTES)
    }

    /// This drive under another calibration.
    pub fn calibrated(&self, calibration: &str) -> Result<DriveSpec, UnknownCalibration> {
        Ok(match self {
            DriveSpec::Disk(spec) => DriveSpec::Disk(Box::new(spec.calibrated(calibration)?)),
            DriveSpec::Flash(spec) => DriveSpec::Flash(Box::new(spec.calibrated(calibration)?)),
            DriveSpec::Nvram(spec) => DriveSpec::Nvram(Box::new(spec.calibrated(calibration)?)),
        })
    }
}
