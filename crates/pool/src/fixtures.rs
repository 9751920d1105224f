//! Frozen images of every version of the format, in `tests/fixtures`. A test reads them and writes the same bytes; a
//! format that changes gets a new version and a new image, and the old one stays.
//!
//! `TIER0_FREEZE=1 cargo test -p tier0-pool frozen` writes images that are missing.

use std::path::Path;

/// Passes the image to `read`, and checks that `written`, today's bytes, are the same.
pub(crate) fn check(name: &str, written: &[u8], read: impl FnOnce(&[u8])) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    if !path.exists() && std::env::var_os("TIER0_FREEZE").is_some() {
        std::fs::write(&path, written).expect("the image can be written");
    }
    let frozen = std::fs::read(&path).expect("the image is there");
    read(&frozen);
    assert!(frozen == written, "today's bytes differ from {name}: a changed format needs a new version");
}

/// An image of an earlier version, which is only read.
pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(path).expect("the image is there")
}
