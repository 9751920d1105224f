//! Drives of the catalogue, as the advisor needs them.

use serde::Serialize;
use tier0_catalog::{Catalog, DriveSpec, FlashSpec};

use crate::gain::FlashTimes;

/// The limit of latency at which disks are sized, milliseconds.
pub const SIZED_AT_MS: f64 = 20.0;

/// A flash drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlashDrive {
    /// Its id in the catalogue.
    pub id: String,
    /// Maker and model.
    pub name: String,
    /// Capacity, bytes.
    pub bytes: f64,
    /// Latencies of an idle drive.
    pub times: FlashTimes,
    /// Rated random reads per second.
    pub read_iops: f64,
    /// Rated random writes per second.
    pub write_iops: f64,
    /// Watts under load.
    pub active_w: f64,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disk {
    /// Its id in the catalogue.
    pub id: String,
    /// Maker and model.
    pub name: String,
    /// Capacity, bytes.
    pub bytes: f64,
    /// Random I/Os per second at [`SIZED_AT_MS`], without the help of command queueing.
    pub iops: f64,
    /// Watts under random reads.
    pub active_w: f64,
}

impl FlashDrive {
    /// The flash drive of an id, with or without a calibration.
    ///
    /// # Errors
    /// What is wrong with the id, and the remedy.
    pub fn of(catalog: &Catalog, id: &str) -> Result<FlashDrive, String> {
        match catalog.drive_by_reference(id) {
            Ok(DriveSpec::Flash(spec)) => Ok(FlashDrive::of_spec(id, &spec)),
            Ok(_) => Err(format!("{id:?} is no flash drive; \"tier0 catalog list\" shows which are")),
            Err(error) => Err(format!("{error}; \"tier0 catalog list\" shows all")),
        }
    }

    fn of_spec(id: &str, spec: &FlashSpec) -> FlashDrive {
        let of = &spec.parameters;
        let kib = of.rated_block_kib.value;
        let transfer_us = kib * 1024.0 / of.interface_mb_s.value;
        // A read waits for the controller, the die, the channel and the interface; a write for the buffer only.
        let read_us = of.rated_read_latency_us.as_ref().map_or_else(
            || {
                let channel_us = kib * 1024.0 / of.channel_mb_s.value;
                of.controller_read_us.value + of.read_us.value + channel_us + transfer_us
            },
            |rated| rated.value,
        );
        let write_us = of
            .rated_write_latency_us
            .as_ref()
            .map_or_else(|| of.controller_write_us.value + transfer_us, |rated| rated.value);
        FlashDrive {
            id: id.to_owned(),
            name: spec.name.clone(),
            bytes: of.capacity_gb.value * 1e9,
            times: FlashTimes { read_ms: read_us / 1e3, write_ms: write_us / 1e3 },
            read_iops: of.rated_read_iops.value,
            write_iops: of.rated_write_iops.value,
            active_w: of.active_w.value,
        }
    }
}

impl Disk {
    /// The disk of an id.
    ///
    /// # Errors
    /// As of [`FlashDrive::of`].
    pub fn of(catalog: &Catalog, id: &str) -> Result<Disk, String> {
        let spec = match catalog.drive_by_reference(id) {
            Ok(DriveSpec::Disk(spec)) => spec,
            Ok(_) => return Err(format!("{id:?} is no disk; \"tier0 catalog list\" shows which are")),
            Err(error) => return Err(format!("{error}; \"tier0 catalog list\" shows all")),
        };
        let of = &spec.parameters;
        let service_ms =
            of.controller_overhead_ms.value + of.seek_average_read_ms.value + 0.5 * of.revolution_ms();
        // A queue at which the mean time is 20 ms: service ÷ (1 − busy share).
        let busy = (1.0 - service_ms / SIZED_AT_MS).clamp(0.05, 1.0);
        Ok(Disk {
            id: id.to_owned(),
            name: spec.name.clone(),
            bytes: of.capacity_gb.value * 1e9,
            iops: busy / service_ms * 1e3,
            active_w: of.active_w.value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_of_the_catalogue_have_plausible_figures() {
        let catalog = Catalog::embedded();
        let flash = FlashDrive::of(&catalog, "ssd-sata").expect("it is there");
        assert!(flash.times.read_ms > 0.05 && flash.times.read_ms < 0.5, "{flash:?}");
        let disk = Disk::of(&catalog, "sas-15k-146gb-sff").expect("it is there");
        assert!(disk.iops > 100.0 && disk.iops < 250.0, "{disk:?}");
        for id in ["nvme", "ssd-sata", "ssd-sas-400gb"] {
            assert!(Disk::of(&catalog, id).expect_err("no disk").contains("catalog list"));
        }
        assert!(FlashDrive::of(&catalog, "floppy").is_err());
    }
}
