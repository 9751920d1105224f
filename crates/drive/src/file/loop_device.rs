//! Loop devices, and the file behind one.
//!
//! A lock on a loop device keeps no process from the file behind it, nor from another loop device on that file: a
//! server that opens one takes a lock on the file too, the same as one that opens the file by its path. A whole device
//! takes it for itself. A part of the file (a partition, a device with an offset) shares it with other parts and locks
//! its bytes. Where no path leads to the file, a [claim](super::claim) on its number is all that there is.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::ioctl::Getter;
use tier0_units::SECTOR_BYTES;
use tier0_world::real::each_in_time;

use super::claim::{Claim, FileNumber};

/// What a loop device is on, as the system tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    /// The file or device behind it, as it was called when the loop device was made.
    pub file: PathBuf,
    /// Which bytes of it; nothing for all.
    pub part: Option<Range<u64>>,
}

/// How long the loop devices of the machine may take to say what they are on. The kernel asks the file system there: one that
/// hangs has not what answers.
const LIMIT: Duration = Duration::from_secs(2);
/// Where sysfs has the loop devices.
const BLOCK_DEVICES: &str = "/sys/block";
/// The request that asks a loop device what it is on (include/uapi/linux/loop.h).
const LOOP_GET_STATUS64: rustix::ioctl::Opcode = 0x4c05;

/// `struct loop_info64` of the same header, of which the first two numbers are used: file system and number of the file,
/// as stat tells them.
#[repr(C)]
struct Status {
    device: u64,
    inode: u64,
    rest: [u64; 27],
}

impl LoopDevice {
    /// The loop device that has this number, or a partition of which has it.
    pub fn of(device: u64) -> Option<LoopDevice> {
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let own = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let is_partition = own.join("partition").exists();
        let whole = if is_partition { own.join("..") } else { own.clone() };
        let text = std::fs::read_to_string(whole.join("loop/backing_file")).ok()?;
        let number = |path: PathBuf| {
            std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let (offset, limit) = (number(whole.join("loop/offset")), number(whole.join("loop/sizelimit")));
        let part = (is_partition || offset > 0 || limit > 0).then(|| {
            let start = offset + number(own.join("start")) * SECTOR_BYTES;
            start..start + number(own.join("size")) * SECTOR_BYTES
        });
        Some(LoopDevice { file: text.trim_end_matches('\n').into(), part })
    }

    /// The loop devices on a file or device that lies at `path`, as they tell themselves; where one may not be asked, as far
    /// as it knows the file by its own name. No other file is looked at: it may be on a file system that hangs.
    pub(super) fn on(wanted: &Metadata, path: &Path) -> Vec<PathBuf> {
        let names =
            std::fs::read_dir(BLOCK_DEVICES).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let (wanted, called) = (number_of(wanted), path.file_name().map(ToOwned::to_owned));
        let asked = names.filter_map(|name| {
            let told = Path::new(BLOCK_DEVICES).join(&name).join("loop/backing_file");
            let behind = PathBuf::from(std::fs::read_to_string(told).ok()?.trim_end_matches('\n'));
            let (device, called) = (Path::new("/dev").join(name), called.clone());
            Some(move || is_on(&device, &behind, called.as_deref(), wanted).then_some(device))
        });
        let mut devices: Vec<PathBuf> =
            each_in_time(LIMIT, asked).into_iter().filter_map(Result::ok).flatten().collect();
        devices.sort();
        devices
    }
}

/// Whether a loop device is on the file or device of this number, which is `called` so; `behind` is what the system calls what
/// it is on.
fn is_on(device: &Path, behind: &Path, called: Option<&OsStr>, wanted: FileNumber) -> bool {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(device);
    if let Some(number) = opened.ok().as_ref().and_then(bound_to) {
        return number == wanted;
    }
    let there = (behind.file_name() == called).then(|| std::fs::metadata(behind).ok()).flatten();
    there.is_some_and(|there| number_of(&there) == wanted)
}

/// A lock on what is behind a loop device, which lasts until this is dropped.
pub(super) struct Hold {
    number: FileNumber,
    part: Option<Range<u64>>,
    _claim: Option<Claim>,
    /// The lock that others see who do not claim; none where no path leads to the file, or it cannot be locked.
    _file: Option<File>,
    /// What that is on, if it is a loop device too.
    _behind: Option<Arc<Hold>>,
}

impl Hold {
    /// Locks what is behind a device that is open; nothing where there is nothing behind it. What `known` holds is held
    /// already: a drive may come back by another loop device.
    ///
    /// # Errors
    /// The file that another process holds.
    pub(super) fn behind(device: &File, known: Option<&Arc<Hold>>) -> Result<Option<Arc<Hold>>, PathBuf> {
        let number = device.metadata().ok().filter(|about| about.file_type().is_block_device());
        let Some(LoopDevice { file: path, part }) = number.and_then(|about| LoopDevice::of(about.rdev()))
        else {
            return Ok(None);
        };
        let Some(number) = bound_to(device) else {
            tracing::warn!(
                "cannot find the backing file of a loop device, which was {path:?}, so it is not locked; \
                 make sure that no other process uses it"
            );
            return Ok(None);
        };
        if let Some(known) = known.filter(|known| known.number == number && known.part == part) {
            return Ok(Some(known.clone()));
        }
        let claim = claimed(number, part.as_ref()).map_err(|Claimed| path.clone())?;
        let file = match std::fs::metadata(&path) {
            Ok(there) if number_of(&there) == number => locked(&path, part.as_ref())?,
            _ => None,
        };
        let file = file.filter(|file| file.metadata().is_ok_and(|there| number_of(&there) == number));
        let behind = file.as_ref().map_or(Ok(None), |file| Hold::behind(file, None))?;
        Ok(Some(Arc::new(Hold { number, part, _claim: claim, _file: file, _behind: behind })))
    }
}

/// Another process has claimed a file.
pub(super) struct Claimed;

/// Claims bytes of a file, or all of it; nothing where the system has no sockets for that.
pub(super) fn claimed(number: FileNumber, part: Option<&Range<u64>>) -> Result<Option<Claim>, Claimed> {
    match Claim::on(number, part) {
        Ok(claim) => Ok(Some(claim)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(Claimed),
        Err(error) => {
            tracing::warn!(
                "cannot lock a file by its number: {error}; make sure that no other process uses it through \
                 a loop device"
            );
            Ok(None)
        }
    }
}

/// The file at a path, locked; nothing where that cannot be.
fn locked(path: &Path, part: Option<&Range<u64>>) -> Result<Option<File>, PathBuf> {
    match open(path).and_then(|file| lock(&file, part).map(|()| file)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::WouldBlock) => {
            Err(path.to_owned())
        }
        Err(error) => {
            tracing::warn!(
                "cannot lock {path:?}, the backing file of a loop device: {error}; make sure that no other \
                 process uses it"
            );
            Ok(None)
        }
    }
}

/// File system and number of the file that a loop device is on.
fn bound_to(device: &File) -> Option<FileNumber> {
    // SAFETY: the request fills a `struct loop_info64`, which is as large as `Status`, and any bytes are one.
    let told = unsafe { rustix::ioctl::ioctl(device, Getter::<LOOP_GET_STATUS64, Status>::new()) };
    told.ok().map(|status| FileNumber { device: status.device, inode: status.inode })
}

/// File system and number of a file.
pub(super) fn number_of(file: &Metadata) -> FileNumber {
    FileNumber { device: file.dev(), inode: file.ino() }
}

/// Opens a file to lock it: for writing where that may be, as some file systems lock nothing else. A device is locked by
/// that.
fn open(path: &Path) -> io::Result<File> {
    let is_device = std::fs::metadata(path)?.file_type().is_block_device();
    let flags = libc::O_NONBLOCK | if is_device { libc::O_EXCL } else { 0 };
    let open = |writes| OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path);
    match open(true) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            open(false)
        }
        result => result,
    }
}

/// Locks a file, or a part of it, for this process.
fn lock(file: &File, part: Option<&Range<u64>>) -> io::Result<()> {
    let Some(part) = part else {
        return Ok(rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)?);
    };
    rustix::fs::flock(file, FlockOperation::NonBlockingLockShared)?;
    // SAFETY: zeros are a valid `struct flock`.
    let mut bytes: libc::flock = unsafe { std::mem::zeroed() };
    bytes.l_type = libc::F_WRLCK as libc::c_short;
    bytes.l_whence = libc::SEEK_SET as libc::c_short;
    bytes.l_start = part.start as libc::off_t;
    bytes.l_len = (part.end - part.start) as libc::off_t;
    // SAFETY: the descriptor is open, and the request only reads the structure.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
