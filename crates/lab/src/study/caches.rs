//! Which caches the volumes of a study's array use: switches of the array over those of each volume, as in the product, and
//! presets by the class of the drives.
//!
//! The switches themselves are the product's: they go into the array's description, and its engine obeys them. Here stands
//! what a study says of them, and what holds where it says nothing.

use serde::Deserialize;
use tier0_catalog::{ArraySpec, Catalog, DriveSpec, UnknownEntry};
use tier0_units::ByteCount;

use super::setup::Setup;

/// Presets: a name, and the catalogue's array whose delivered settings it stands for.
const PRESETS: [(&str, &str); 1] = [("cx4", "cx4-960")];

/// What is said of two switches; nothing where it is left to a preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidSwitches {
    /// Of the read cache.
    pub read: Option<bool>,
    /// Of the write cache.
    pub write: Option<bool>,
}

/// A read cache and a write cache, on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Of the read cache.
    pub read: bool,
    /// Of the write cache.
    pub write: bool,
}

impl Switches {
    /// What both leave on.
    pub fn and(self, other: Switches) -> Switches {
        Switches { read: self.read && other.read, write: self.write && other.write }
    }
}

impl SaidSwitches {
    fn or(self, others: Switches) -> Switches {
        Switches { read: self.read.unwrap_or(others.read), write: self.write.unwrap_or(others.write) }
    }
}

/// A flash read cache of an array in a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashCacheSetup {
    /// Its size over all of its drives.
    pub size: ByteCount,
    /// The catalogue's drive, `id` or `id@calibration`.
    pub drive: String,
    /// How many such drives it lies on, which hold nothing else.
    pub drives: u32,
    /// How many times a day it may be written over, at the most; what is usual where nothing is said.
    pub writes_per_day: Option<u32>,
}

/// The caches of an array in a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Caches {
    /// What the storage processors have for pages that were read, without which nothing is kept.
    pub read: Option<ByteCount>,
    /// What the array's write cache has for writes that are not yet on the drives: the size of the write log. None where
    /// writes go through.
    pub write: Option<ByteCount>,
    /// Whether all groups of sets share one write cache, which volumes that do not use it write past: an array with a cache in
    /// its storage processors. Otherwise each has a lane of its own, as in the product.
    pub write_is_shared: bool,
    /// Pages that were read, on SSDs.
    pub flash: Option<FlashCacheSetup>,
    /// The array's switches: both on where nothing is said.
    pub switches: SaidSwitches,
    /// The preset that says what the volumes' switches are.
    pub preset: Option<CachePreset>,
}

/// The delivered settings of an array, by the class of the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePreset {
    /// The catalogue's array.
    pub array: &'static str,
}

impl CachePreset {
    /// The preset of a name; the error is the fact and the remedy.
    pub(super) fn named(name: &str) -> Result<CachePreset, String> {
        let found = PRESETS.iter().find(|(known, _)| *known == name);
        let known: Vec<&str> = PRESETS.iter().map(|(known, _)| *known).collect();
        found
            .map(|(_, array)| CachePreset { array })
            .ok_or_else(|| format!("names unknown caches {name:?}; there are {}", known.join(", ")))
    }
}

/// The delivered settings of volumes on such drives.
fn delivered(array: &ArraySpec, drive: &DriveSpec) -> Switches {
    let array = &array.parameters;
    match drive {
        DriveSpec::Flash(_) => {
            Switches { read: array.flash_lun_read_cache.value, write: array.flash_lun_write_cache.value }
        }
        _ => Switches { read: array.disk_lun_read_cache.value, write: array.disk_lun_write_cache.value },
    }
}

impl Setup {
    /// The array's switches.
    pub fn array_switches(&self) -> Switches {
        self.caches.switches.or(Switches { read: true, write: true })
    }

    /// The switches of volumes on such drives, of which `said` is said: else the preset's; without one, on where the array has the
    /// cache. A read cache of no given size is not modelled, but its lookups are where the array is delivered with it.
    ///
    /// # Errors
    /// The catalogue lacks the array.
    pub fn volume_switches(
        &self,
        said: SaidSwitches,
        drive: &DriveSpec,
        catalog: &Catalog,
    ) -> Result<Switches, UnknownEntry> {
        let others = match self.caches.preset {
            Some(preset) => delivered(catalog.array(preset.array)?, drive),
            None => {
                let as_delivered = delivered(catalog.array(&self.array)?, drive);
                let has_cache = self.caches.read.is_some() || self.caches.flash.is_some();
                Switches { read: has_cache || as_delivered.read, write: true }
            }
        };
        Ok(said.or(others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Switches = Switches { read: true, write: true };
    const OFF: Switches = Switches { read: false, write: false };

    #[test]
    fn the_preset_goes_by_the_class_of_the_drives() {
        let catalog = Catalog::embedded();
        let array = catalog.array(CachePreset::named("cx4").expect("a preset").array).expect("an array");
        let of = |drive: &str| delivered(array, &catalog.drive_by_reference(drive).expect("a drive"));
        assert_eq!(of("fc-15k-300gb"), ON);
        assert_eq!(of("nl-7k2"), ON);
        assert_eq!(of("efd-73gb"), OFF);
        let unknown = CachePreset::named("cx5").expect_err("there is none");
        assert_eq!(unknown, "names unknown caches \"cx5\"; there are cx4");
    }

    #[test]
    fn what_is_said_of_a_volume_goes_before_its_preset_and_the_array_over_both() {
        let said = SaidSwitches { read: None, write: Some(true) };
        assert_eq!(said.or(OFF), Switches { read: false, write: true });
        assert_eq!(ON.and(Switches { read: false, write: true }), Switches { read: false, write: true });
        assert_eq!(OFF.and(ON), OFF);
    }
}
