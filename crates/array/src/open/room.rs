//! Whether file systems have room for the drive files that are to be made: told before the first of them is.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfs, statvfs};
use tier0_description::DriveDescription;
use tier0_units::ByteCount;

use crate::ArrayError;

/// Checks that the file systems have room for these drives' files. Behind a model they are sparse and take none.
///
/// # Errors
/// [`ArrayError::NoRoom`] of the first file system that has not.
pub(super) fn check_room<'a>(drives: impl Iterator<Item = &'a DriveDescription>) -> Result<(), ArrayError> {
    let mut needed: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
    for drive in drives.filter(|drive| drive.model.is_none()) {
        let (Some(path), Some(size)) = (&drive.path, drive.size) else { continue };
        let directory = directory_of(path);
        // A directory that is not there is told when the file is made.
        let Ok(about) = std::fs::metadata(directory) else { continue };
        let (_, bytes) = needed.entry(about.dev()).or_insert_with(|| (directory.to_owned(), 0));
        *bytes = bytes.saturating_add(size.0);
    }
    for (directory, bytes) in needed.into_values() {
        // What the file system keeps for its superuser is not to be used up.
        let has_room = |about: &StatVfs| about.f_bavail.saturating_mul(about.f_frsize) >= bytes;
        if statvfs(&directory).is_ok_and(|about| !has_room(&about)) {
            return Err(no_room(&directory, bytes));
        }
    }
    Ok(())
}

/// The file system of a directory has not so many bytes.
pub(super) fn no_room(directory: &Path, needed: u64) -> ArrayError {
    let free = statvfs(directory).map_or(0, |about| about.f_bavail.saturating_mul(about.f_frsize));
    ArrayError::NoRoom { directory: directory.to_owned(), needed: ByteCount(needed), free: ByteCount(free) }
}

/// Where a file that is to be made will lie.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
