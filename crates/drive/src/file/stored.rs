//! How much of a file has space on its file system.
//!
//! A file that was cut short and given its size again reads as zeros behind the cut, like one that was never written there:
//! nothing tells them apart, but both have no space there. Space that was set aside counts, written or not.

use std::os::fd::AsFd;

use rustix::ioctl::Updater;

/// The request that lists the extents of a file (include/uapi/linux/fiemap.h).
const FS_IOC_FIEMAP: rustix::ioctl::Opcode = 0xc020_660b;
/// What a file system hands out at least.
const STEP: u64 = 4096;

/// `struct fiemap` of the same header, without room for extents: they are counted.
#[repr(C)]
struct Extents {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
}

/// The first byte behind which, to the end at `size`, a regular file has no space. `size` where it has some at its end, or
/// its file system does not tell.
pub(super) fn stored_bytes(file: &impl AsFd, size: u64) -> u64 {
    let is_empty = |from: u64| extents_behind(file, from, size) == Some(0);
    let (mut stored, mut empty) = (0, size / STEP);
    if size == 0 || !is_empty(size - 1) {
        return size;
    }
    // Whatever is behind an empty rest is empty too.
    while stored < empty {
        let middle = stored + (empty - stored) / 2;
        if is_empty(middle * STEP) { empty = middle } else { stored = middle + 1 }
    }
    (stored * STEP).min(size)
}

fn extents_behind(file: &impl AsFd, from: u64, size: u64) -> Option<u32> {
    let mut extents = Extents { start: from, length: size - from, flags: 0, mapped: 0, room: 0, reserved: 0 };
    // SAFETY: with room for no extent, the request reads and writes a `struct fiemap` and nothing behind it.
    unsafe { rustix::ioctl::ioctl(file, Updater::<FS_IOC_FIEMAP, Extents>::new(&mut extents)) }.ok()?;
    Some(extents.mapped)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::FallocateFlags;

    use super::*;

    #[test]
    fn a_file_that_was_cut_has_no_space_behind_the_cut() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        let size = 8 << 20;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size).expect("space");
        if extents_behind(&file, 0, size).is_none() {
            // This file system does not tell.
            return;
        }
        assert_eq!(stored_bytes(&file, size), size, "space that was set aside counts");
        file.set_len(3 << 20).expect("a shorter file");
        file.set_len(size).expect("its size again");
        assert_eq!(stored_bytes(&file, size), 3 << 20);
        file.write_all_at(&[1; 4096], size - 4096).expect("a write");
        file.sync_all().expect("space is given");
        assert_eq!(stored_bytes(&file, size), size);
    }
}
