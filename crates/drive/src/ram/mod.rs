//! The RAM drive: memory of this process, shared by all shards, gone with it.
//!
//! It lends what is read instead of copying it ([`frames`]).

mod frames;

use std::io;
use std::sync::Arc;

use tier0_units::{ByteCount, SECTOR_BYTES, SectorCount};
use tier0_world::{BufMut, Completion, Lender, Payload, World};

use self::frames::{FRAME_BYTES, Frames};
use crate::{Command, Drive, DriveInfo};

/// Shorter reads are copied: that costs no more, and keeps no frame. A loan is aligned to this, as buffers are.
const LOAN_BYTES_MIN: usize = 4096;

/// The memory of a RAM drive; every shard opens its own drive on it.
pub struct RamMedium {
    name: String,
    frames: Frames,
}

impl RamMedium {
    /// Maps `size` bytes (rounded down to sectors); pages, huge ones where the system grants them, cost memory once they
    /// are written.
    pub fn new(name: &str, size: ByteCount) -> io::Result<Arc<RamMedium>> {
        let frames = Frames::map(SectorCount::in_bytes(size).bytes().0 as usize)?;
        Ok(Arc::new(RamMedium { name: name.to_owned(), frames }))
    }

    /// Opens it in a world of full sectors.
    pub fn open(self: &Arc<Self>, world: &World) -> RamDrive {
        assert_eq!(world.width().bytes() as u64, SECTOR_BYTES, "a RAM drive holds whole sectors");
        let info = DriveInfo {
            name: self.name.clone(),
            sectors: SectorCount::in_bytes(ByteCount(self.frames.bytes as u64)),
            block_sectors: 1,
            volatile_cache: false,
            discard_zeroes: true,
        };
        RamDrive { world: world.clone(), medium: self.clone(), info }
    }

    /// Fills the buffer from `offset` on, or lends it what lies there.
    fn read(self: &Arc<Self>, offset: usize, buf: &mut BufMut) {
        let bytes = buf.as_slice().len();
        let suits = bytes >= LOAN_BYTES_MIN && offset.is_multiple_of(LOAN_BYTES_MIN) && buf.is_alone();
        match suits.then(|| self.frames.lend(offset, bytes)).flatten() {
            // SAFETY: mapped memory is initialised, the frames keep what is on loan, and the loan keeps them.
            Some((memory, loan)) => unsafe { buf.borrow(memory, self.clone(), loan) },
            None => self.frames.read(offset, buf.as_mut_slice()),
        }
    }
}

impl Lender for RamMedium {
    fn take_back(&self, loan: u32) {
        self.frames.take_back(loan);
    }

    fn loan_bytes(&self) -> usize {
        FRAME_BYTES
    }
}

/// A RAM drive in a world.
pub struct RamDrive {
    world: World,
    medium: Arc<RamMedium>,
    info: DriveInfo,
}

impl Drive for RamDrive {
    fn info(&self) -> &DriveInfo {
        &self.info
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn submit(&self, command: Command, completion: Completion) {
        let offset = command.range().0.byte_offset() as usize;
        match command {
            Command::Read { mut buf, .. } => {
                self.medium.read(offset, &mut buf);
                completion.complete(Ok(()), Payload::Read(buf));
            }
            Command::Write { buf, .. } => {
                self.medium.frames.write(offset, buf.as_slice());
                completion.complete(Ok(()), Payload::None);
            }
            Command::Flush => completion.complete(Ok(()), Payload::None),
            Command::Discard { sectors, .. } => {
                let result = self.medium.frames.discard(offset, (sectors * SECTOR_BYTES) as usize);
                completion.complete(result.map_err(Into::into), Payload::None);
            }
        }
    }
}
