//! What a drive draws.

use tier0_catalog::DriveSpec;

/// Watts of a drive that is busy for this share of the time. Memory of a write cache draws nothing of its own here.
pub(crate) fn watts(drive: &DriveSpec, busy: f64) -> f64 {
    let (idle, active) = match drive {
        DriveSpec::Disk(disk) => (disk.parameters.idle_w.value, disk.parameters.active_w.value),
        DriveSpec::Flash(flash) => (flash.parameters.idle_w.value, flash.parameters.active_w.value),
        DriveSpec::Nvram(_) => return 0.0,
    };
    idle + (active - idle) * busy.clamp(0.0, 1.0)
}
