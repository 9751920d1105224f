//! Whether file systems have room for the drive files that are to be made: told before the first of them is.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfs, access, statvfs};
use tier0_description::DriveDescription;
use tier0_units::ByteCount;

use crate::ArrayError;

/// Checks that these drives' files can be made, and that the file systems have room for them. Behind a model they are sparse
/// and take none.
///
/// # Errors
/// [`ArrayError::CreateFile`] of the first file that cannot be made, [`ArrayError::NoRoom`] of the first file system that has
/// no room.
pub(super) fn check_room<'a>(
    drives: impl Iterator<Item = &'a DriveDescription> + Clone,
) -> Result<(), ArrayError> {
    drives.clone().filter_map(|drive| drive.path.as_deref()).try_for_each(check_place)?;
    let mut needed: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
    for drive in drives.filter(|drive| drive.model.is_none()) {
        let (Some(path), Some(size)) = (&drive.path, drive.size) else { continue };
        let directory = directory_of(path);
        // It may go at any time; that is told when the file is made.
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

/// Whether a file could be made at a path.
fn check_place(path: &Path) -> Result<(), ArrayError> {
    let fault = |source| ArrayError::CreateFile { path: path.to_owned(), source };
    if std::fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink()) {
        return Err(fault(io::Error::new(io::ErrorKind::NotFound, "it is a link that leads nowhere")));
    }
    access(directory_of(path), Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| fault(errno.into()))
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
