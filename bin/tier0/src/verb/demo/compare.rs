//! The demo's array on drives of the catalogue, in virtual time.

use indicatif::ProgressBar;
use serde::Serialize;
use tier0_catalog::{Catalog, DriveSpec};
use tier0_description::Description;
use tier0_units::{Nanos, SectorCount};
use tier0_workload::spec::{LoadSpec, RunLimits};
use tier0_workload::stats::LoadReport;

use crate::driving::Shown;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::twin::{Settling, Simulated, Twin};

/// From slow to fast: a nearline disk, the fastest disk, a SATA and an NVMe SSD.
const DRIVES: [&str; 4] = ["nl-7k2", "sas-15k-146gb-sff", "ssd-sata", "nvme"];
/// The volume fills this share of the pool, in percent: an array in use, whose disks seek over most of their tracks.
const FILL_PERCENT: u64 = 80;
/// Enough requests for a 99th percentile to three digits; a fast drive needs not all of the simulated time.
const IOS_MAX: u64 = 300_000;
/// A demo is to answer within its minute. Fast drives reach their steady rate within twice as many requests.
const SETTLING: Settling = Settling::UpTo(60_000);
/// Sizes of volumes are multiples of 4 KiB; a whole MiB is.
const MIB_SECTORS: u64 = 2048;

/// The demo's load on one kind of drive.
#[derive(Serialize)]
pub(super) struct Prediction {
    /// The drive's id in the catalogue.
    pub(super) drive: String,
    /// What it is.
    pub(super) class: String,
    /// The simulated volume.
    pub(super) volume_bytes: u64,
    /// The result.
    pub(super) report: LoadReport,
}

/// Predicts `description` under `load` on each of [`DRIVES`].
///
/// # Errors
/// What goes wrong; [`Failure::Interrupted`] where a signal came.
pub(super) fn predict(
    description: &Description,
    load: LoadSpec,
    signals: &Signals,
    bar: &ProgressBar,
) -> Result<Vec<Prediction>, Failure> {
    let catalog = Catalog::embedded();
    let limits = RunLimits { ios: Some(IOS_MAX), ..load.limits };
    let load = LoadSpec { limits, warm_up: Nanos::ZERO, ..load };
    let go_on = || if signals.raised() { Err(Failure::Interrupted) } else { Ok(()) };
    let mut predictions = Vec::new();
    for id in DRIVES {
        // Making a twin takes seconds, and no time of its world.
        go_on()?;
        bar.set_message(format!("predicting {id}"));
        let drive = catalog.drive(id).map_err(Failure::input)?;
        let twin = on_drives(description, drive);
        let volume_bytes = twin.volumes[0].sectors.bytes().0;
        let twin = Twin::new(&catalog, twin, None)?;
        go_on()?;
        let Simulated { report, .. } = twin.load(None, load.clone(), SETTLING, signals, Shown::on(bar))?;
        go_on()?;
        crate::driving::verdict(&report)?;
        let class = drive.class().to_owned();
        predictions.push(Prediction { drive: id.to_owned(), class, volume_bytes, report });
    }
    Ok(predictions)
}

/// The same array, its files replaced by modelled drives and its volume grown with them.
fn on_drives(description: &Description, model: &DriveSpec) -> Description {
    let mut twin = description.clone();
    for drive in &mut twin.drives {
        (drive.path, drive.size, drive.ram) = (None, None, None);
        drive.model = Some(model.id().to_owned());
    }
    // Mirrored: half of the drives' space holds data.
    let data = model.capacity().0 * twin.drives.len() as u64 / 2;
    let sectors = data * FILL_PERCENT / 100 / MIB_SECTORS * MIB_SECTORS;
    twin.volumes[0].sectors = SectorCount(sectors);
    twin
}
