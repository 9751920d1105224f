//! Whether two drives of a description are one thing under two names: a link, or a loop device and the file behind it.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use tier0_description::DriveDescription;
use tier0_drive::LoopDevice;

use crate::ArrayError;

/// What lies behind a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    /// A file: its file system and its number there.
    File(u64, u64),
    /// A block device by its number.
    Device(u64),
}

/// Checks that no two drives are one.
///
/// # Errors
/// The first two that are.
pub(super) fn check_distinct(drives: &[DriveDescription]) -> Result<(), ArrayError> {
    let mut known: BTreeMap<Identity, &str> = BTreeMap::new();
    for drive in drives {
        let Some(identity) = drive.path.as_deref().and_then(identity) else { continue };
        if let Some(other) = known.insert(identity, &drive.name) {
            return Err(ArrayError::SameDrive { first: other.to_owned(), second: drive.name.clone() });
        }
    }
    Ok(())
}

/// What lies behind a path; nothing where it is not there, which opening it tells.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.file_type().is_block_device() {
        return Some(Identity::File(metadata.dev(), metadata.ino()));
    }
    // Parts of one file are as many drives.
    let behind = LoopDevice::of(metadata.rdev()).filter(|device| device.part.is_none());
    Some(match behind.and_then(|device| std::fs::metadata(device.file).ok()) {
        Some(file) if !file.file_type().is_block_device() => Identity::File(file.dev(), file.ino()),
        Some(device) => Identity::Device(device.rdev()),
        None => Identity::Device(metadata.rdev()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(name: &str, path: &Path) -> DriveDescription {
        DriveDescription {
            name: name.to_owned(),
            path: Some(path.to_owned()),
            size: None,
            ram: None,
            model: None,
            class: None,
        }
    }

    #[test]
    fn one_file_under_two_names_is_one_drive() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["a", "b"] {
            std::fs::write(at(name), [0; 512]).expect("a file");
        }
        std::os::unix::fs::symlink(at("a"), at("link")).expect("a link");
        std::fs::hard_link(at("b"), at("second")).expect("a second name");
        let check = |names: &[&str]| {
            check_distinct(&names.iter().map(|name| drive(name, &at(name))).collect::<Vec<_>>())
        };
        assert!(check(&["a", "b", "absent", "gone"]).is_ok());
        for pair in [["a", "link"], ["b", "second"]] {
            let told = check(&pair).expect_err("refused").to_string();
            assert!(pair.iter().all(|name| told.contains(&format!("{name:?}"))), "{told}");
        }
    }
}
