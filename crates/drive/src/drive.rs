//! The seam between the engine and its drives.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;

use tier0_units::{Lba, SectorCount};
use tier0_world::{Buf, BufMut, Completion, IoError, Payload, World};

use crate::guard::Guard;

/// What a drive says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveInfo {
    /// A name for messages: a path, or what the array's description calls it.
    pub name: String,
    /// Its size.
    pub sectors: SectorCount,
    /// Sectors per physical block: commands must be aligned to it (1 for 512-byte blocks, 8 for 4096).
    pub block_sectors: u32,
    /// Whether completed writes may be lost until a flush.
    pub volatile_cache: bool,
    /// Whether discarded sectors read as zeros afterwards; a drive that cannot discard refuses it.
    pub discard_zeroes: bool,
}

impl DriveInfo {
    /// Whether a command on these sectors is one the drive can take.
    pub fn check(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        let block = u64::from(self.block_sectors);
        if !lba.0.is_multiple_of(block) || !sectors.is_multiple_of(block) || sectors == 0 {
            return Err(IoError::Misaligned);
        }
        match lba.0.checked_add(sectors) {
            Some(end) if end <= self.sectors.0 => Ok(()),
            _ => Err(IoError::OutOfRange),
        }
    }
}

/// What a drive is asked to do.
#[derive(Debug)]
pub enum Command {
    /// Fill the buffer; it comes back as [`Payload::Read`], whatever the result.
    Read {
        /// First sector.
        lba: Lba,
        /// As many sectors as this holds.
        buf: BufMut,
    },
    /// Store the buffer.
    Write {
        /// First sector.
        lba: Lba,
        /// As many sectors as this holds.
        buf: Buf,
        /// Stable before it completes (forced unit access).
        durable: bool,
    },
    /// Make every write that has completed stable.
    Flush,
    /// The content of these sectors is no longer needed.
    Discard {
        /// First sector.
        lba: Lba,
        /// How many.
        sectors: u64,
    },
}

impl Command {
    /// First sector and number of sectors; a flush has none.
    pub fn range(&self) -> (Lba, u64) {
        match self {
            Command::Read { lba, buf } => (*lba, u64::from(buf.sectors())),
            Command::Write { lba, buf, .. } => (*lba, u64::from(buf.sectors())),
            Command::Flush => (Lba(0), 0),
            Command::Discard { lba, sectors } => (*lba, *sectors),
        }
    }

    /// Ends the command with an error at once, giving the buffer back.
    pub fn refuse(self, error: IoError, completion: Completion) {
        let payload = match self {
            Command::Read { buf, .. } => Payload::Read(buf),
            _ => Payload::None,
        };
        completion.complete(Err(error), payload);
    }

    /// A small number per kind of command, for event logs.
    fn kind(&self) -> u64 {
        match self {
            Command::Read { .. } => 1,
            Command::Write { durable: false, .. } => 2,
            Command::Write { durable: true, .. } => 3,
            Command::Flush => 4,
            Command::Discard { .. } => 5,
        }
    }
}

/// A drive in a world.
pub trait Drive {
    /// Its size, block and cache.
    fn info(&self) -> &DriveInfo;

    /// The world it lives in.
    fn world(&self) -> &World;

    /// Takes a command, already checked against [`DriveInfo::check`]; the completion ends it, now or later.
    fn submit(&self, command: Command, completion: Completion);

    /// The guard in front of it, if there is one.
    fn guard(&self) -> Option<&Guard> {
        None
    }

    /// Another handle of the same drive in the same world, which is revived by itself; none where this handle serves every user.
    fn another(&self) -> Option<DriveHandle> {
        None
    }

    /// Opens anew what lies below, after it was gone: the device may have come back under another node. Drives that need
    /// nothing of the kind are as they were.
    fn revive(&self) -> Pin<Box<dyn Future<Output = Result<(), IoError>>>> {
        Box::pin(async { Ok(()) })
    }

    /// Whether what lies below ends now before the size that it had when it was opened, as a device does that was pulled or
    /// made smaller: then a command that fails says nothing of itself, the drive is away.
    fn is_cut_short(&self) -> bool {
        false
    }

    /// Whether it was cut short since it was opened, so that what it held behind its end is lost even if it has its size again.
    fn was_cut(&self) -> bool {
        false
    }

    /// The sectors behind which it stores nothing up to its end: nothing was ever written there, or hosts have
    /// discarded it, or it was cut short and given its size again. All of them where the drive cannot tell.
    fn stored(&self) -> SectorCount {
        self.info().sectors
    }

    /// Whether it works better or lasts longer if it is told of sectors that hold nothing any more. A file is not: its space
    /// would be the file system's again.
    fn gains_by_discard(&self) -> bool {
        false
    }

    /// What was opened anew is the drive that it was: all its handles use it from now on. Until then only this handle does.
    fn accept(&self) {}

    /// It has left its pool: what lies below is closed and unlocked as soon as every handle of it was told so. It carries out
    /// nothing any more.
    fn close(&self) {}
}

/// A shared drive with the calls that the engine uses.
#[derive(Clone)]
pub struct DriveHandle(Rc<dyn Drive>);

impl DriveHandle {
    /// Wraps a drive.
    pub fn new(drive: impl Drive + 'static) -> DriveHandle {
        DriveHandle(Rc::new(drive))
    }

    /// Wraps a drive that others hold too.
    pub fn from_rc(drive: Rc<dyn Drive>) -> DriveHandle {
        DriveHandle(drive)
    }

    /// Whether both are the same drive.
    pub fn is_same(&self, other: &DriveHandle) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Reads as many sectors as `buf` holds. The buffer comes back in any case; after an error its content is
    /// arbitrary.
    pub async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        if let Err(error) = self.0.info().check(lba, u64::from(buf.sectors())) {
            return (Err(error), buf);
        }
        let (outcome, payload) = self.start(Command::Read { lba, buf }).await;
        (outcome.map(|_| ()), payload.into_read())
    }

    /// Writes `buf`; `durable` makes it stable before it ends.
    pub async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        self.0.info().check(lba, u64::from(buf.sectors()))?;
        self.start(Command::Write { lba, buf, durable }).await.0.map(|_| ())
    }

    /// Makes every completed write stable.
    pub async fn flush(&self) -> Result<(), IoError> {
        self.start(Command::Flush).await.0.map(|_| ())
    }

    /// Gives sectors back. [`IoError::Unsupported`] where the drive cannot.
    pub async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        self.0.info().check(lba, sectors)?;
        self.start(Command::Discard { lba, sectors }).await.0.map(|_| ())
    }

    fn start(&self, command: Command) -> tier0_world::Pending {
        let world = self.0.world();
        let (lba, sectors) = command.range();
        world.record(command.kind(), lba.0 << 20 ^ sectors);
        let (completion, pending) = world.completion();
        self.0.submit(command, completion);
        pending
    }
}

impl fmt::Debug for DriveHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DriveHandle({:?})", self.0.info().name)
    }
}

impl Deref for DriveHandle {
    type Target = dyn Drive;
    fn deref(&self) -> &(dyn Drive + 'static) {
        &*self.0
    }
}
