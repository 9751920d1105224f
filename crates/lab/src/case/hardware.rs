//! What the drives of a case draw and how much of a rack they take.

use tier0_catalog::{Catalog, DriveSpec};

use super::{Case, drives_of};
use crate::LabError;
use crate::path::Usage;
use crate::power::watts;

/// The drives of a case, as a buyer sees them. Memory of a write cache is part of a controller and not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hardware {
    /// Disks and flash drives.
    pub drives: u32,
    /// What they draw at work, in watts. Controllers and enclosures are not included.
    pub drive_watts: f64,
    /// Rack units of the enclosures that hold them; nothing if the case names no array of the catalogue.
    pub rack_units: Option<u32>,
}

impl Case {
    /// Its drives, as busy as `usage` says.
    pub(super) fn hardware(&self, catalog: &Catalog, usage: &Usage) -> Result<Hardware, LabError> {
        let mut hardware = Hardware::default();
        for model in self.system.drives.iter().filter_map(|drive| drive.model.as_deref()) {
            let drive = catalog.drive_by_reference(model)?;
            if matches!(drive, DriveSpec::Nvram(_)) {
                continue;
            }
            let row = usage.rows.iter().find(|row| row.resource == drives_of(model));
            hardware.drives += 1;
            hardware.drive_watts += watts(&drive, row.map_or(0.0, |row| row.busy));
        }
        let Some(front_end) = &self.front_end else { return Ok(hardware) };
        let array = &catalog.array(&front_end.model)?.parameters;
        if let (Some(drives), Some(units)) = (&array.enclosure_drives, &array.enclosure_units) {
            hardware.rack_units = Some(hardware.drives.div_ceil(drives.value) * units.value);
        }
        Ok(hardware)
    }
}
