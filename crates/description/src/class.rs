//! What kind of drive a drive is: what is said of it, what its model is, or what the device says.

use std::path::Path;

use tier0_catalog::{Catalog, DriveSpec};
use tier0_pool::DriveClass;

use crate::DriveDescription;

/// As far as a description tells it.
pub fn described(drive: &DriveDescription) -> Option<DriveClass> {
    let model = || of_model(drive.model.as_deref()?);
    let ram = || drive.ram.map(|_| DriveClass::Ram);
    drive.class.or_else(model).or_else(ram)
}

/// As a description tells it, or else the device at the drive's path, or the one that a file will lie on.
pub fn of_place(drive: &DriveDescription) -> Option<DriveClass> {
    let device = || of_device(drive.path.as_deref()?);
    described(drive).or_else(device)
}

/// Of a drive of the built-in catalogue.
pub(crate) fn of_model(model: &str) -> Option<DriveClass> {
    Catalog::built_in().drive_by_reference(model).ok().map(|spec| of_spec(&spec))
}

/// Of a catalogue's drive.
pub(crate) fn of_spec(spec: &DriveSpec) -> DriveClass {
    match spec {
        DriveSpec::Disk(_) => DriveClass::Disk,
        DriveSpec::Flash(_) | DriveSpec::Nvram(_) => DriveClass::Flash,
    }
}

fn of_device(path: &Path) -> Option<DriveClass> {
    let nearest = std::path::absolute(path).ok()?;
    let there = nearest.ancestors().find(|place| place.exists())?;
    let is_disk = tier0_drive::is_rotational(there)?;
    Some(if is_disk { DriveClass::Disk } else { DriveClass::Flash })
}
