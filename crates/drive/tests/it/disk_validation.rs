//! The disk model against measured drives.
//!
//! The measurements are not part of the project; where they are absent the test says so and passes.

use std::path::Path;

use tier0_drive::disk::validation::{self, ValidationReport};

/// The demerit that the model must reach on every drive.
const DEMERIT_MAX: f64 = 0.08;

fn report(name: &str) -> Option<ValidationReport> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/disksim");
    if !dir.is_dir() {
        println!("skipped: no measured drives in {}", dir.display());
        return None;
    }
    Some(validation::validate(&dir, name).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn check(name: &str) {
    let Some(report) = report(name) else { return };
    let all = &report.all;
    println!(
        "{name}: demerit {:.2} % (RMS {:.3} ms), mean {:.3} ms measured, {:.3} ms simulated",
        all.demerit * 100.0,
        all.rms_ms,
        all.mean_measured_ms,
        all.mean_simulated_ms
    );
    assert!(all.demerit <= DEMERIT_MAX, "{name}: demerit {:.2} %", all.demerit * 100.0);
    assert_eq!(all.count, 10_000);
    assert_eq!(report.reads.map_or(0, |c| c.count) + report.writes.map_or(0, |c| c.count), all.count);
}

#[test]
fn cheetah_9lp() {
    check("cheetah9LP");
}

#[test]
fn ibm_18es() {
    check("ibm18es");
}

#[test]
fn atlas_10k() {
    check("atlas10k");
}

#[test]
fn a_missing_drive_is_named() {
    let error = validation::validate(Path::new("nowhere"), "no-such-drive").unwrap_err().to_string();
    assert!(error.contains("no-such-drive.diskspecs") && error.contains("nowhere"), "{error}");
}
