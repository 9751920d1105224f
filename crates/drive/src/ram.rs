//! The RAM drive: memory of this process, shared by all shards, gone with it.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::{MapFlags, ProtFlags};
use tier0_units::{ByteCount, Lba, SECTOR_BYTES, SectorCount};
use tier0_world::{Completion, IoError, Payload, World};

use crate::stream_copy::stream_copy;
use crate::{Command, Drive, DriveInfo};

/// The memory of a RAM drive; every shard opens its own drive on it.
pub struct RamMedium {
    name: String,
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is plain bytes for as long as the medium lives. Shards copy into and out of it by raw pointers;
// that no two of them touch the same sector at once is the array's invariant (an extent has one owner), as it is
// for a real drive, where the outcome of overlapping commands is undefined too.
unsafe impl Send for RamMedium {}
// SAFETY: as above.
unsafe impl Sync for RamMedium {}

impl RamMedium {
    /// Maps `size` bytes (rounded down to sectors); pages, huge ones where the system grants them, cost memory once they
    /// are written.
    pub fn new(name: &str, size: ByteCount) -> io::Result<Arc<RamMedium>> {
        let bytes = (size.0 - size.0 % SECTOR_BYTES) as usize;
        // SAFETY: a fresh private anonymous mapping overlaps nothing.
        let memory = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        // Random requests touch a new page each: with small pages every one of them misses the TLB, on a virtual machine
        // through two tables. Where the kernel refuses, small pages do.
        // SAFETY: advises on the mapping just made.
        let _ = unsafe { rustix::mm::madvise(memory, bytes, rustix::mm::Advice::LinuxHugepage) };
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        Ok(Arc::new(RamMedium { name: name.to_owned(), memory, bytes }))
    }

    /// Opens it in a world of full sectors.
    pub fn open(self: &Arc<Self>, world: &World) -> RamDrive {
        assert_eq!(world.width().bytes() as u64, SECTOR_BYTES, "a RAM drive holds whole sectors");
        let info = DriveInfo {
            name: self.name.clone(),
            sectors: SectorCount::in_bytes(ByteCount(self.bytes as u64)),
            block_sectors: 1,
            volatile_cache: false,
            discard_zeroes: true,
        };
        RamDrive { world: world.clone(), medium: self.clone(), info }
    }

    /// The address of a range that lies inside.
    fn at(&self, lba: Lba, bytes: usize) -> *mut u8 {
        let offset = lba.byte_offset() as usize;
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.bytes), "the command was checked");
        // SAFETY: the offset was compared with the length just now.
        unsafe { self.memory.as_ptr().add(offset) }
    }

    fn discard(&self, lba: Lba, bytes: usize) -> Result<(), IoError> {
        let address = self.at(lba, bytes);
        let page = 4096;
        let head = (address.align_offset(page)).min(bytes);
        let whole = (bytes - head) / page * page;
        // SAFETY: all three ranges lie inside the mapping; DONTNEED on private anonymous memory makes it zero.
        unsafe {
            address.write_bytes(0, head);
            if whole > 0 {
                rustix::mm::madvise(address.add(head).cast(), whole, rustix::mm::Advice::LinuxDontNeed)?;
            }
            address.add(head + whole).write_bytes(0, bytes - head - whole);
        }
        Ok(())
    }
}

impl Drop for RamMedium {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; the last drive on it is gone.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), self.bytes) };
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
        match command {
            Command::Read { lba, mut buf } => {
                let bytes = buf.as_mut_slice();
                let source = self.medium.at(lba, bytes.len());
                // SAFETY: both ranges are valid for the length; a buffer never lies in the medium.
                unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(source, bytes.len()) }
                completion.complete(Ok(()), Payload::Read(buf));
            }
            Command::Write { lba, buf, .. } => {
                let bytes = buf.as_slice();
                let sink = self.medium.at(lba, bytes.len());
                // SAFETY: as above.
                unsafe { stream_copy(bytes.as_ptr(), sink, bytes.len()) }
                completion.complete(Ok(()), Payload::None);
            }
            Command::Flush => completion.complete(Ok(()), Payload::None),
            Command::Discard { lba, sectors } => {
                let result = self.medium.discard(lba, (sectors * SECTOR_BYTES) as usize);
                completion.complete(result, Payload::None);
            }
        }
    }
}
