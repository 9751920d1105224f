//! Real drives: regular files and block devices.
//!
//! Opened with O_DIRECT, so that the page cache neither hides the device nor doubles the data; buffered where the
//! file system refuses. Locked, so that two arrays never share a drive, not by another name of it either
//! ([`loop_device`], [`claim`]). A flush is fdatasync, which flushes the device's own cache too.

mod claim;
mod in_use;
mod loop_device;
mod partitions;
mod queue;
mod reopen;
mod stored;

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::FlockOperation;
use thiserror::Error;
use tier0_units::{SECTOR_BYTES, SectorCount};
use tier0_world::real::{BlockFile, Submission, retry_while_busy};
use tier0_world::{BufMut, Completion, IoError, PayloadWidth, World};

use crate::{Command, Drive, DriveInfo};
use claim::Claim;
pub use in_use::SystemUse;
pub use loop_device::LoopDevice;
use loop_device::{Claimed, Hold};
pub use queue::is_rotational;
use queue::takes_discards;
use reopen::{Opening, Openings};
use stored::stored_bytes;

/// Why a file or device cannot be a drive.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is nothing of that name.
    #[error("drive {path:?} does not exist; {}", remedy_of_missing(path))]
    Missing {
        /// What was asked for.
        path: PathBuf,
    },
    /// It is neither a regular file nor a block device.
    #[error("{path:?} is neither a regular file nor a block device; name one of these")]
    NotADrive {
        /// What was asked for.
        path: PathBuf,
    },
    /// Another process holds it.
    #[error(
        "drive {path:?} is in use by another process{held}; stop that process first (\"fuser -v\" and \
         \"lsblk\" show it)"
    )]
    Busy {
        /// What was asked for.
        path: PathBuf,
        /// Under which name.
        held: HeldAs,
    },
    /// The device takes no writes.
    #[error("drive {path:?} is read-only; make it writable (\"blockdev --setrw\"), then try again")]
    ReadOnly {
        /// What was asked for.
        path: PathBuf,
    },
    /// The system refuses it.
    #[error("drive {path:?} cannot be opened: {source}; {}", remedy(source))]
    System {
        /// What was asked for.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// What to do about a drive that is not there.
fn remedy_of_missing(path: &Path) -> &'static str {
    match path.starts_with("/dev") {
        true => "attach or activate the device, or correct the path",
        false => "create the file at its full size or correct the path",
    }
}

/// What to do about a file that the system refuses to open.
fn remedy(refusal: &io::Error) -> &'static str {
    match refusal.raw_os_error() {
        Some(libc::EMFILE) => {
            "raise the open file limit of this process (\"ulimit -n\", or LimitNOFILE of its service)"
        }
        Some(libc::ENFILE) => "raise the open file limit of the system (sysctl fs.file-max)",
        Some(libc::EACCES | libc::EPERM) => "check its permissions",
        _ => "check the system log",
    }
}

/// Under which name another process holds a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldAs {
    /// The same.
    Itself,
    /// It is a loop device, and the process holds this file behind it.
    FileBehind(PathBuf),
    /// It is a file, and the process may hold it by this loop device on it.
    LoopDevice(PathBuf),
    /// It is a file, and the process has a loop device on it that was made elsewhere, or by another name.
    Elsewhere,
}

impl std::fmt::Display for HeldAs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeldAs::Itself => Ok(()),
            HeldAs::FileBehind(file) => {
                write!(f, ", which holds {file:?}, the backing file of this loop device")
            }
            HeldAs::LoopDevice(device) => {
                write!(f, ", perhaps through the loop device {device:?}")
            }
            HeldAs::Elsewhere => {
                write!(f, ", through a loop device (\"losetup --list\", also in other mount namespaces)")
            }
        }
    }
}

impl OpenError {
    /// What the system says of opening `path`.
    fn of(path: &Path, error: io::Error) -> OpenError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing { path },
            io::ErrorKind::ResourceBusy => OpenError::Busy { path, held: HeldAs::Itself },
            io::ErrorKind::IsADirectory => OpenError::NotADrive { path },
            _ => OpenError::System { path, source: error },
        }
    }
}

/// An open, locked file or device; every shard opens its own drive on it.
pub struct FileMedium {
    path: PathBuf,
    openings: Openings,
    info: DriveInfo,
    direct: bool,
    submission: Submission,
    /// Where the kernel has the file, as it was opened; none of devices, which come and go under other names.
    opened_at: Option<PathBuf>,
    /// It is a device that discards, and says that what it has discarded reads as zeros.
    gains_by_discard: bool,
    /// It is a regular file, and was cut short since it was opened.
    was_cut: AtomicBool,
}

/// How often what another process holds is tried: for 5 s.
const HELD_TRIES: u32 = 500;

impl FileMedium {
    /// Opens and locks `path`. What another process holds is waited for, for at most 5 s: the kernel takes its time to
    /// close what a killed process had.
    pub fn open(path: &Path) -> Result<Arc<FileMedium>, OpenError> {
        Ok(FileMedium::of(path, open_locked(path, None, HELD_TRIES)?))
    }

    /// Opens `path` for reading only. It is not locked, so others may use it at the same time.
    pub fn open_to_read(path: &Path) -> Result<Arc<FileMedium>, OpenError> {
        let (file, direct) = open_direct(path, Purpose::Read).map_err(|error| OpenError::of(path, error))?;
        let kind = file.metadata().map_err(|error| OpenError::of(path, error))?.file_type();
        let measured = OpenFile::measured(file, kind.is_block_device(), direct, Claims::default());
        Ok(FileMedium::of(path, measured.map_err(|error| OpenError::of(path, error))?))
    }

    fn of(path: &Path, opened: OpenFile) -> Arc<FileMedium> {
        let info = DriveInfo {
            name: path.display().to_string(),
            sectors: opened.sectors,
            block_sectors: opened.block_sectors,
            volatile_cache: true,
            discard_zeroes: true,
        };
        // The working directory may be another one when it is opened anew.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_file = opened.file.metadata().is_ok_and(|about| about.is_file());
        let gains_by_discard = !is_file && takes_discards(&path);
        let opened_at = if is_file { place_of(&opened.file) } else { None };
        let openings = Openings::new(opened.file.into(), opened.claims);
        Arc::new(FileMedium {
            path,
            openings,
            info,
            direct: opened.direct,
            submission: opened.submission,
            opened_at,
            gains_by_discard,
            was_cut: AtomicBool::new(false),
        })
    }

    /// Opens `path` to look at what another process holds: for reading, and not locked.
    ///
    /// # Errors
    /// It cannot be read either.
    pub fn peek(path: &Path) -> io::Result<Arc<FileMedium>> {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let info = DriveInfo {
            name: path.display().to_string(),
            sectors: SectorCount(file.seek(io::SeekFrom::End(0))? / SECTOR_BYTES),
            block_sectors: 1,
            volatile_cache: false,
            discard_zeroes: false,
        };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (openings, submission) = (Openings::new(file.into(), Claims::default()), Submission::Direct);
        Ok(Arc::new(FileMedium {
            path,
            openings,
            info,
            direct: false,
            submission,
            opened_at: None,
            gains_by_discard: false,
            was_cut: AtomicBool::new(false),
        }))
    }

    /// Size, block and cache.
    pub fn info(&self) -> &DriveInfo {
        &self.info
    }

    /// Whether the page cache is bypassed.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Has the file system set space aside for the first `sectors`, so that writes there never want for it. Nothing happens
    /// on a block device, and where the file system cannot do that.
    ///
    /// # Errors
    /// The file system is full, or fails.
    pub fn allocate(&self, sectors: SectorCount) -> io::Result<()> {
        let file = self.openings.accepted().file;
        if !rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_file() {
            return Ok(());
        }
        let bytes = sectors.min(self.info.sectors).bytes().0;
        if bytes == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Has the kernel forget partitions of a device whose partition table was erased. Nothing happens on a file.
    pub fn reread_partitions(&self) {
        let device = self.openings.accepted().file;
        let about = rustix::fs::fstat(&device).ok();
        let about =
            about.filter(|about| rustix::fs::FileType::from_raw_mode(about.st_mode).is_block_device());
        if about.is_some_and(|about| !in_use::partitions_of(about.st_rdev).is_empty()) {
            partitions::reread(&device, &self.path);
        }
    }

    /// Whether a path leads to it: a file that was deleted, moved away or replaced is still open.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(path, &self.openings.accepted().file).unwrap_or(false)
    }

    /// The same, as it is open and locked here, known by another path that leads to it.
    pub fn known_as(&self, path: &Path) -> Arc<FileMedium> {
        let opening = self.openings.accepted();
        let file = opening.file.clone();
        // It may have shrunk, or have its size again.
        let bytes = self.file(&opening).ok().and_then(|file| file.size());
        let block = u64::from(self.info.block_sectors);
        let sectors =
            bytes.map_or(self.info.sectors, |bytes| SectorCount(bytes / SECTOR_BYTES / block * block));
        let was_cut = self.was_cut.load(Ordering::Relaxed);
        Arc::new(FileMedium {
            was_cut: AtomicBool::new(was_cut),
            path: path.to_owned(),
            info: DriveInfo { name: path.display().to_string(), sectors, ..self.info.clone() },
            opened_at: self.opened_at.as_ref().and_then(|_| place_of(&*file)),
            openings: opening.alone(),
            direct: self.direct,
            submission: self.submission,
            gains_by_discard: self.gains_by_discard,
        })
    }

    /// Whether it is a file that no directory has any more: it is there as long as a process has it open. A file system
    /// with a server is not asked, because it might not answer.
    pub fn is_deleted(&self) -> bool {
        let is_file = |mode| rustix::fs::FileType::from_raw_mode(mode).is_file();
        self.submission == Submission::Direct
            && rustix::fs::fstat(&*self.openings.accepted().file)
                .is_ok_and(|about| is_file(about.st_mode) && about.st_nlink == 0)
    }

    /// Whether it ends now before the size that it had when it was opened.
    pub fn is_cut_short(&self) -> bool {
        self.file(&self.openings.accepted()).is_ok_and(|file| self.is_too_small(&file))
    }

    /// How much of it there is: a file may end in a hole, where it was never written, or was cut short. A file system
    /// with a server is not asked, because it might not answer.
    pub fn stored(&self) -> SectorCount {
        let size = self.info.sectors;
        match self.opened_at.is_some() && self.submission == Submission::Direct {
            true => SectorCount(stored_bytes(&*self.openings.accepted().file, size.bytes().0) / SECTOR_BYTES),
            false => size,
        }
    }

    /// Where a file lies that was moved since it was opened, alone or with its directory. The kernel is asked, and no file
    /// system, which might not answer.
    pub fn moved_to(&self) -> Option<PathBuf> {
        let before = self.opened_at.as_deref()?;
        place_of(&*self.openings.accepted().file).filter(|now| now != before)
    }

    /// Whether something else lies where it was opened, a link that leads nowhere included. A file system with a server is not
    /// asked, because it might not answer.
    pub fn is_replaced(&self) -> bool {
        self.submission == Submission::Direct && !self.is_in_place() && self.is_place_taken()
    }

    /// Whether the path at which it was opened leads to it. File systems are asked, and may not answer; what one answers with an
    /// error is taken for it.
    pub fn is_in_place(&self) -> bool {
        is_at(&self.path, &self.openings.accepted().file).unwrap_or(true)
    }

    /// Whether it is a block device: when that is gone, so is its path, and its commands tell.
    pub fn is_device(&self) -> bool {
        let about = rustix::fs::fstat(&*self.openings.accepted().file);
        about.is_ok_and(|about| rustix::fs::FileType::from_raw_mode(about.st_mode).is_block_device())
    }

    /// Whether anything lies where it was opened, a link that leads nowhere included. The file system is asked, and may not
    /// answer.
    pub fn is_place_taken(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok()
    }

    /// A path that leads to a file: where the kernel has it now. File systems are asked, and may not answer.
    pub fn reached_at(&self) -> Option<PathBuf> {
        self.opened_at.as_ref()?;
        place_of(&*self.openings.accepted().file).filter(|place| self.is_at(place))
    }

    /// Whether a file ends before the size that this one had when it was opened. What a regular file held behind its end is
    /// lost then, whatever size it is given later.
    fn is_too_small(&self, file: &BlockFile) -> bool {
        let is_too_small = file.size().is_some_and(|bytes| bytes < self.info.sectors.bytes().0);
        if is_too_small && self.opened_at.is_some() {
            self.was_cut.store(true, Ordering::Relaxed);
        }
        is_too_small
    }

    /// An opening of it, for one shard's use.
    fn file(&self, opening: &Opening) -> io::Result<BlockFile> {
        Ok(BlockFile::new(opening.file.as_fd().try_clone_to_owned()?, self.submission))
    }

    /// Opens a drive on it in a world of full sectors.
    pub fn drive(self: &Arc<Self>, world: &World) -> io::Result<FileDrive> {
        assert_eq!(world.width().bytes() as u64, SECTOR_BYTES, "a file holds whole sectors");
        let opening = self.openings.accepted();
        let file = self.file(&opening)?;
        Ok(FileDrive(Rc::new(Inner {
            world: world.clone(),
            medium: self.clone(),
            file: RefCell::new(file),
            opening: Cell::new(opening.number),
        })))
    }
}

/// What keeps others from a file or device by another name of it.
#[derive(Clone, Default)]
struct Claims {
    /// Of a regular file.
    _own: Option<Arc<Claim>>,
    /// The lock on what is behind it, if it is a loop device.
    behind: Option<Arc<Hold>>,
}

/// A file or device as it was opened.
struct OpenFile {
    file: File,
    claims: Claims,
    direct: bool,
    sectors: SectorCount,
    block_sectors: u32,
    submission: Submission,
}

/// Opens and locks `path`, and what is behind it unless `known` is the lock on that; what another process holds is
/// tried so often, 10 ms apart.
fn open_locked(path: &Path, known: Option<&Arc<Hold>>, tries: u32) -> Result<OpenFile, OpenError> {
    let system = |source| OpenError::System { path: path.to_owned(), source };
    let busy = |held| OpenError::Busy { path: path.to_owned(), held };
    let is_held = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
    let (file, direct) = retry_while_busy(tries, || open_direct(path, Purpose::Use), is_held)
        .map_err(|error| OpenError::of(path, error))?;
    let kind = file.metadata().map_err(system)?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(OpenError::NotADrive { path: path.to_owned() });
    }
    if kind.is_block_device() && is_read_only(&file) {
        return Err(OpenError::ReadOnly { path: path.to_owned() });
    }
    lock(&file, tries).map_err(|errno| match errno {
        rustix::io::Errno::WOULDBLOCK => {
            let about = file.metadata();
            let device = about.ok().and_then(|about| LoopDevice::on(&about, path).into_iter().next());
            busy(device.map_or(HeldAs::Itself, HeldAs::LoopDevice))
        }
        errno => system(errno.into()),
    })?;
    let own = match kind.is_file() {
        true => {
            let number = loop_device::number_of(&file.metadata().map_err(system)?);
            retry_while_busy(tries, || loop_device::claimed(number, None), |Claimed| true)
                .map_err(|Claimed| busy(HeldAs::Elsewhere))?
        }
        false => None,
    };
    let behind = retry_while_busy(tries, || Hold::behind(&file, known), |_| true)
        .map_err(|file| busy(HeldAs::FileBehind(file)))?;
    let claims = Claims { _own: own.map(Arc::new), behind };
    // The process that had the lock may have removed the file meanwhile: no server would find what is written to it.
    if kind.is_file() && !is_at(path, &file).map_err(system)? {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    OpenFile::measured(file, kind.is_block_device(), direct, claims).map_err(system)
}

impl OpenFile {
    fn measured(file: File, is_device: bool, direct: bool, claims: Claims) -> io::Result<OpenFile> {
        let bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))?;
        let magic = rustix::fs::fstatfs(&file).ok().filter(|_| !is_device).map(|about| about.f_type as u64);
        let block_sectors = if direct { direct_block_sectors(&file, magic) } else { 1 };
        let is_served = magic.is_some_and(|magic| SERVED_MAGICS.contains(&magic));
        let submission = if is_served { Submission::Apart } else { Submission::Direct };
        let sectors = bytes / SECTOR_BYTES / u64::from(block_sectors) * u64::from(block_sectors);
        Ok(OpenFile { file, claims, direct, sectors: SectorCount(sectors), block_sectors, submission })
    }
}

/// Whether the system takes no writes for a device, although it lets one open it for them.
fn is_read_only(device: &File) -> bool {
    let Ok(about) = rustix::fs::fstat(device) else { return false };
    let (major, minor) = (rustix::fs::major(about.st_rdev), rustix::fs::minor(about.st_rdev));
    let told = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"));
    told.is_ok_and(|told| told.trim() == "1")
}

/// Whether a path still leads to an open file.
fn is_at(path: &Path, file: &impl AsFd) -> io::Result<bool> {
    let own = rustix::fs::fstat(file)?;
    let is_device = rustix::fs::FileType::from_raw_mode(own.st_mode).is_block_device();
    match std::fs::metadata(path) {
        // A device may have several nodes.
        Ok(there) if is_device => Ok(there.file_type().is_block_device() && there.rdev() == own.st_rdev),
        Ok(there) => Ok((there.dev(), there.ino()) == (own.st_dev, own.st_ino)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where the kernel has an open file; none where no directory has it any more.
fn place_of(file: &impl AsRawFd) -> Option<PathBuf> {
    let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let is_gone = place.as_os_str().as_encoded_bytes().ends_with(b" (deleted)");
    (place.is_absolute() && !is_gone).then_some(place)
}

/// Locks a file for this process alone.
fn lock(file: &File, tries: u32) -> rustix::io::Result<()> {
    let attempt = || rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
    retry_while_busy(tries, attempt, |error| *error == rustix::io::Errno::WOULDBLOCK)
}

/// For what a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// To read and write it, with an exclusive lock.
    Use,
    Read,
}

/// Opens with O_DIRECT, or without where the file system refuses that; block devices that are to be used exclusively.
fn open_direct(path: &Path, purpose: Purpose) -> io::Result<(File, bool)> {
    let writes = purpose == Purpose::Use;
    let exclusive = match std::fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_block_device() && writes => libc::O_EXCL,
        Ok(metadata) if metadata.file_type().is_block_device() => 0,
        Ok(metadata) if !metadata.is_file() => return Err(io::ErrorKind::IsADirectory.into()),
        _ => 0,
    };
    let open = |flags| OpenOptions::new().read(true).write(writes).custom_flags(flags | exclusive).open(path);
    match open(libc::O_DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(0).map(|file| (file, false)),
        Err(error) => Err(error),
    }
}

/// What statfs says of a FUSE file system (fs/fuse/inode.c).
const FUSE_SUPER_MAGIC: u64 = 0x6573_5546;
/// The same of file systems that ask a server, which may not answer: FUSE, NFS, CIFS, SMB2, 9p, Ceph
/// (include/uapi/linux/magic.h).
const SERVED_MAGICS: [u64; 6] =
    [FUSE_SUPER_MAGIC, 0x6969, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400];

/// The alignment that direct reads need. A block device tells it, and FUSE has none: those two may hang, and a thread
/// that waits in a read of theirs cannot be ended, nor can its process. Elsewhere it is found by trying 512 bytes before
/// settling for 4096.
fn direct_block_sectors(file: &File, magic: Option<u64>) -> u32 {
    if let Ok(bytes) = rustix::fs::ioctl_blksszget(file) {
        return (bytes / SECTOR_BYTES as u32).max(1);
    }
    if magic == Some(FUSE_SUPER_MAGIC) {
        return 1;
    }
    let mut probe = BufMut::new(1, PayloadWidth::REAL);
    match file.read_at(probe.as_mut_slice(), SECTOR_BYTES) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => 8,
        _ => 1,
    }
}

/// A file or block device in a world.
pub struct FileDrive(Rc<Inner>);

struct Inner {
    world: World,
    medium: Arc<FileMedium>,
    file: RefCell<BlockFile>,
    /// Which opening of the medium `file` is.
    opening: Cell<u64>,
}

impl Inner {
    /// Uses another opening, where a descriptor can be had for it.
    fn adopt(&self, opening: &Opening) -> io::Result<()> {
        *self.file.borrow_mut() = self.medium.file(opening)?;
        self.opening.set(opening.number);
        Ok(())
    }
}

impl Drive for FileDrive {
    fn info(&self) -> &DriveInfo {
        &self.0.medium.info
    }

    fn world(&self) -> &World {
        &self.0.world
    }

    fn submit(&self, command: Command, completion: Completion) {
        let openings = &self.0.medium.openings;
        if openings.accepted_number() > self.0.opening.get()
            && let Err(error) = self.0.adopt(&openings.accepted())
        {
            return command.refuse(IoError::Os(error.raw_os_error().unwrap_or(libc::EMFILE)), completion);
        }
        let file = self.0.file.borrow().clone();
        match command {
            Command::Read { lba, buf } => file.read_at(lba.byte_offset(), buf, completion),
            Command::Write { lba, buf, durable } => {
                file.write_at(lba.byte_offset(), buf, durable, completion);
            }
            Command::Flush => file.sync_data(completion),
            Command::Discard { lba, sectors } => {
                file.deallocate(lba.byte_offset(), sectors * SECTOR_BYTES, completion);
            }
        }
    }

    fn revive(&self) -> Pin<Box<dyn Future<Output = Result<(), IoError>>>> {
        let drive = self.0.clone();
        Box::pin(async move {
            let newer = reopen::newer_than(drive.medium.clone(), drive.opening.get()).await?;
            if let Some(opening) = newer {
                drive.adopt(&opening).map_err(|_| IoError::Gone)?;
            }
            // What is behind its path is still the device that shrank.
            match drive.medium.is_too_small(&drive.file.borrow()) {
                true => Err(IoError::Gone),
                false => Ok(()),
            }
        })
    }

    fn is_cut_short(&self) -> bool {
        self.0.medium.is_too_small(&self.0.file.borrow())
    }

    fn stored(&self) -> SectorCount {
        self.0.medium.stored()
    }

    fn gains_by_discard(&self) -> bool {
        self.0.medium.gains_by_discard
    }

    fn was_cut(&self) -> bool {
        self.0.medium.was_cut.load(Ordering::Relaxed)
    }

    fn accept(&self) {
        self.0.medium.openings.accept(self.0.opening.get());
    }

    fn close(&self) {
        let closed = self.0.medium.openings.close().and_then(|opening| self.0.adopt(&opening));
        if let Err(error) = closed {
            tracing::warn!(drive = self.info().name, "it stays open until the server ends: {error}");
        }
    }
}
