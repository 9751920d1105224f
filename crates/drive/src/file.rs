//! Real drives: regular files and block devices.
//!
//! Opened with O_DIRECT, so that the page cache neither hides the device nor doubles the data; buffered where the
//! file system refuses. Locked, so that two arrays never share a drive. A flush is fdatasync, which flushes the
//! device's own cache too.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::FlockOperation;
use thiserror::Error;
use tier0_units::{SECTOR_BYTES, SectorCount};
use tier0_world::real::{Fd, deallocate, outlast, read_at, sync_data, write_at};
use tier0_world::{BufMut, Completion, PayloadWidth, World};

use crate::{Command, Drive, DriveInfo};

/// Why a file or device cannot be a drive.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is nothing of that name.
    #[error("drive {path:?} does not exist; create the file at its full size or correct the path")]
    Missing {
        /// What was asked for.
        path: PathBuf,
    },
    /// It is neither a regular file nor a block device.
    #[error("{path:?} is neither a regular file nor a block device; name a drive")]
    NotADrive {
        /// What was asked for.
        path: PathBuf,
    },
    /// Another process holds it.
    #[error("drive {path:?} is in use by another process; stop that process first")]
    Busy {
        /// What was asked for.
        path: PathBuf,
    },
    /// The system refuses it.
    #[error("drive {path:?} cannot be opened: {source}; check its permissions")]
    System {
        /// What was asked for.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// An open, locked file or device; every shard opens its own drive on it.
pub struct FileMedium {
    file: OwnedFd,
    info: DriveInfo,
    direct: bool,
}

impl FileMedium {
    /// Opens and locks `path`.
    pub fn open(path: &Path) -> Result<Arc<FileMedium>, OpenError> {
        let system = |source| OpenError::System { path: path.to_owned(), source };
        let (file, direct) = open_direct(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing { path: path.to_owned() },
            io::ErrorKind::ResourceBusy => OpenError::Busy { path: path.to_owned() },
            io::ErrorKind::IsADirectory => OpenError::NotADrive { path: path.to_owned() },
            _ => system(error),
        })?;
        let kind = file.metadata().map_err(system)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(OpenError::NotADrive { path: path.to_owned() });
        }
        lock(&file).map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => OpenError::Busy { path: path.to_owned() },
            errno => system(errno.into()),
        })?;
        let bytes =
            rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(|errno| system(errno.into()))?;
        let block_sectors = if direct { direct_block_sectors(&file) } else { 1 };
        let sectors = bytes / SECTOR_BYTES / u64::from(block_sectors) * u64::from(block_sectors);
        let info = DriveInfo {
            name: path.display().to_string(),
            sectors: SectorCount(sectors),
            block_sectors,
            volatile_cache: true,
            discard_zeroes: true,
        };
        Ok(Arc::new(FileMedium { file: file.into(), info, direct }))
    }

    /// Size, block and cache.
    pub fn info(&self) -> &DriveInfo {
        &self.info
    }

    /// Whether the page cache is bypassed.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Opens a drive on it in a world of full sectors.
    pub fn drive(self: &Arc<Self>, world: &World) -> io::Result<FileDrive> {
        assert_eq!(world.width().bytes() as u64, SECTOR_BYTES, "a file holds whole sectors");
        let file = self.file.as_fd().try_clone_to_owned()?;
        Ok(FileDrive { world: world.clone(), file: Rc::new(file), info: self.info.clone() })
    }
}

/// How often a lock that is held is tried: for 5 s.
const LOCK_TRIES: u32 = 500;

/// Locks a file for this process alone.
fn lock(file: &File) -> rustix::io::Result<()> {
    let attempt = || rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
    outlast(LOCK_TRIES, attempt, |error| *error == rustix::io::Errno::WOULDBLOCK)
}

/// Opens with O_DIRECT, or without where the file system refuses that; block devices exclusively.
fn open_direct(path: &Path) -> io::Result<(File, bool)> {
    let exclusive = match std::fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_block_device() => libc::O_EXCL,
        Ok(metadata) if !metadata.is_file() => return Err(io::ErrorKind::IsADirectory.into()),
        _ => 0,
    };
    let open = |flags| OpenOptions::new().read(true).write(true).custom_flags(flags | exclusive).open(path);
    match open(libc::O_DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(0).map(|file| (file, false)),
        Err(error) => Err(error),
    }
}

/// The alignment that direct reads need, found by trying 512 bytes before settling for 4096.
fn direct_block_sectors(file: &File) -> u32 {
    let mut probe = BufMut::new(1, PayloadWidth::REAL);
    match file.read_at(probe.as_mut_slice(), SECTOR_BYTES) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => 8,
        _ => 1,
    }
}

/// A file or block device in a world.
pub struct FileDrive {
    world: World,
    file: Fd,
    info: DriveInfo,
}

impl Drive for FileDrive {
    fn info(&self) -> &DriveInfo {
        &self.info
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn submit(&self, command: Command, completion: Completion) {
        let file = &self.file;
        match command {
            Command::Read { lba, buf } => read_at(file, lba.byte_offset(), buf, completion),
            Command::Write { lba, buf, durable } => {
                write_at(file, lba.byte_offset(), buf, durable, completion)
            }
            Command::Flush => sync_data(file, completion),
            Command::Discard { lba, sectors } => {
                deallocate(file, lba.byte_offset(), sectors * SECTOR_BYTES, completion)
            }
        }
    }
}
