//! `tier0 lab`.

use std::path::Path;

use crate::support::{json, refuse, text};

/// The measured drives, which are no part of the project.
const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/disksim");

#[test]
fn the_disk_model_is_near_measured_drives() {
    let measured = Path::new(MEASURED);
    if !measured.is_dir() {
        return eprintln!("skipped: there are no measured drives in ../shared/data/disksim");
    }
    let drives = ["atlas10k", "cheetah9LP", "ibm18es"];
    let validated = json(&[&["lab", "validate-drive", "--disksim", text(measured)][..], &drives].concat());
    for (drive, report) in drives.iter().zip(validated.as_array().expect("a list")) {
        assert_eq!(report["drive"], *drive);
        let demerit = report["demerit_percent"].as_f64().expect("a figure");
        assert!(demerit <= 8.0, "the demerit of {drive} is {demerit} %");
    }
}

#[test]
fn a_drive_without_files_is_named() {
    refuse(&["lab", "validate-drive", "--disksim", "/nowhere", "disk1"], 2, &["disk1", "/nowhere"]);
}
