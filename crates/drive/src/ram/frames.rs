//! The memory of a RAM drive in frames that can be lent.
//!
//! A reader that borrows a frame sees it as it is now, however long that takes: a client may leave its socket full for
//! minutes. So a write to a frame on loan goes to a copy, which takes its place, and the old one is free once the last
//! loan ends. Copies lie in spare places behind the drive's own; there are as many as there can be loans, so a write
//! always finds one.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::stream_copy::stream_copy;

/// Small enough to be copied now and then, large enough that what is known of 1 GiB (256 KiB) stays in a cache.
pub(super) const FRAME_BYTES: usize = 64 << 10;
/// Loans at a time, 16 MiB of frames. More are nothing but memory that the slowest clients hold.
const LOANS_MAX: usize = 256;
/// What the kernel gives and takes, bytes.
const PAGE_BYTES: usize = 4096;

/// What is known of a frame, and of a place; both in one cache line.
struct Entry {
    /// Where the frame with this number lies. Spare places have no frame of their number.
    place: Mutex<u32>,
    /// Who needs what lies in the place with this number: the frame that is there, and every loan of it.
    holds: AtomicU32,
}

/// The frames of a drive.
pub(super) struct Frames {
    memory: NonNull<u8>,
    /// What of the memory is the drive's own.
    pub(super) bytes: usize,
    entries: Box<[Entry]>,
    spares: Mutex<Vec<u32>>,
    loans_left: AtomicUsize,
}

// SAFETY: the memory is plain bytes for as long as this lives, copied into and out of by raw pointers, frame by frame
// under the frame's lock. Loans are read without it, from places that no thread writes to while they are held.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// Maps `bytes` bytes, all zero; pages, huge ones where the system grants them, cost memory once they are written.
    pub(super) fn map(bytes: usize) -> io::Result<Frames> {
        let count = bytes.div_ceil(FRAME_BYTES);
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let places = u32::try_from(count + LOANS_MAX).map_err(too_large)?;
        let own = |number: u32| (number as usize) < count;
        let mut entries = Vec::new();
        entries.try_reserve_exact(places as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
        entries.extend(
            (0..places).map(|n| Entry { place: Mutex::new(n), holds: AtomicU32::new(u32::from(own(n))) }),
        );
        let mapped = places as usize * FRAME_BYTES;
        // SAFETY: a fresh private anonymous mapping overlaps nothing.
        let memory = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        // Random requests touch a new page each: with small pages every one of them misses the TLB, on a virtual machine
        // through two tables. Where the kernel refuses, small pages do.
        // SAFETY: advises on the mapping just made.
        let _ = unsafe { rustix::mm::madvise(memory, mapped, Advice::LinuxHugepage) };
        Ok(Frames {
            memory: NonNull::new(memory.cast()).expect("a mapping is not at address zero"),
            bytes,
            entries: entries.into_boxed_slice(),
            spares: Mutex::new((0..places).rev().filter(|&n| !own(n)).collect()),
            loans_left: AtomicUsize::new(LOANS_MAX),
        })
    }

    /// Copies what lies from `offset` on.
    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) {
        for (frame, inside, part) in self.parts(offset, bytes.len()) {
            let place = self.lock(frame);
            // SAFETY: the part lies in the place, which the lock keeps as it is, and a buffer never lies in the frames.
            unsafe {
                let source = self.address(*place).add(inside);
                bytes[part.clone()].as_mut_ptr().copy_from_nonoverlapping(source, part.len());
            }
        }
    }

    /// Stores `bytes` from `offset` on.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        for (frame, inside, part) in self.parts(offset, bytes.len()) {
            let mut place = self.lock(frame);
            self.leave_to_loans(&mut place, inside..inside + part.len());
            // SAFETY: as in `read`; the place is on loan to no reader.
            unsafe {
                let sink = self.address(*place).add(inside);
                stream_copy(bytes[part.clone()].as_ptr(), sink, part.len());
            }
        }
    }

    /// Makes `bytes` bytes from `offset` on zero, and gives whole pages back to the system.
    pub(super) fn discard(&self, offset: usize, bytes: usize) -> io::Result<()> {
        // Whole frames are given back together where they lie together. Their locks need not be held meanwhile: all
        // their bytes are the caller's, so no other thread moves them.
        let mut together: Range<*mut u8> = std::ptr::null_mut()..std::ptr::null_mut();
        for (frame, inside, part) in self.parts(offset, bytes) {
            let mut place = self.lock(frame);
            self.leave_to_loans(&mut place, inside..inside + part.len());
            let start = self.address(*place).wrapping_add(inside);
            let end = start.wrapping_add(part.len());
            if part.len() < FRAME_BYTES {
                // SAFETY: the part lies in the place, which is on loan to no reader.
                unsafe { make_zero(start, part.len())? };
            } else if together.end == start {
                together.end = end;
            } else {
                let before = std::mem::replace(&mut together, start..end);
                // SAFETY: these frames are the caller's.
                unsafe { make_zero(before.start, before.end.addr() - before.start.addr())? };
            }
        }
        // SAFETY: as above.
        unsafe { make_zero(together.start, together.end.addr() - together.start.addr()) }
    }

    /// Lends what lies from `offset` on: its address, and the number of the loan. None where it is not in one frame, or
    /// enough is on loan.
    pub(super) fn lend(&self, offset: usize, bytes: usize) -> Option<(NonNull<u8>, u32)> {
        self.check(offset, bytes);
        let inside = offset % FRAME_BYTES;
        if inside + bytes > FRAME_BYTES {
            return None;
        }
        self.loans_left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).ok()?;
        let place = self.lock(offset / FRAME_BYTES);
        self.entries[*place as usize].holds.fetch_add(1, Ordering::Relaxed);
        NonNull::new(self.address(*place).wrapping_add(inside)).map(|address| (address, *place))
    }

    /// A loan has ended.
    pub(super) fn take_back(&self, loan: u32) {
        self.release(loan);
        // Only now may another loan need a spare place.
        self.loans_left.fetch_add(1, Ordering::AcqRel);
    }

    /// Moves a frame that is about to be changed out of a place that is on loan, with all its bytes but the
    /// `overwritten` ones.
    fn leave_to_loans(&self, place: &mut u32, overwritten: Range<usize>) {
        // There are no new loans while the frame is locked, so this only falls.
        while self.entries[*place as usize].holds.load(Ordering::Acquire) > 1 {
            // A loan has a spare place, unless it has just ended or one before it is just being released.
            let Some(spare) = self.spares().pop() else {
                std::hint::spin_loop();
                continue;
            };
            self.entries[spare as usize].holds.store(1, Ordering::Relaxed);
            for kept in [0..overwritten.start, overwritten.end..FRAME_BYTES] {
                // SAFETY: both places are whole frames; the old one is only read while it is on loan, and the spare one
                // no other thread knows yet.
                unsafe {
                    let (old, new) = (self.address(*place), self.address(spare));
                    new.add(kept.start).copy_from_nonoverlapping(old.add(kept.start), kept.len());
                }
            }
            self.release(std::mem::replace(place, spare));
        }
    }

    fn release(&self, place: u32) {
        if self.entries[place as usize].holds.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            self.spares().push(place);
        }
    }

    /// The parts of a range by frame: its number, where the part begins in it, and which of the range's bytes it is.
    fn parts(&self, offset: usize, bytes: usize) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
        self.check(offset, bytes);
        let mut done = 0;
        std::iter::from_fn(move || {
            let at = offset + done;
            let inside = at % FRAME_BYTES;
            let part = done..bytes.min(done + FRAME_BYTES - inside);
            done = part.end;
            (!part.is_empty()).then_some((at / FRAME_BYTES, inside, part))
        })
    }

    /// What lies behind the drive's own bytes may be another drive's.
    fn check(&self, offset: usize, bytes: usize) {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(inside, "{bytes} bytes from {offset} on are not on a drive of {}", self.bytes);
    }

    fn lock(&self, frame: usize) -> MutexGuard<'_, u32> {
        self.entries[frame].place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spares(&self) -> MutexGuard<'_, Vec<u32>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self, place: u32) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(place as usize * FRAME_BYTES)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, a frame for each entry; loans keep the drive, so none is left.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), self.entries.len() * FRAME_BYTES) };
    }
}

/// Makes bytes zero, whole pages by giving them back.
///
/// # Safety
/// They lie in the mapping, and no other thread reads or writes them now.
unsafe fn make_zero(start: *mut u8, bytes: usize) -> io::Result<()> {
    let head = start.align_offset(PAGE_BYTES).min(bytes);
    let whole = (bytes - head) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: all three ranges lie in the caller's; DONTNEED on private anonymous memory makes it zero.
    unsafe {
        start.write_bytes(0, head);
        if whole > 0 {
            rustix::mm::madvise(start.add(head).cast(), whole, Advice::LinuxDontNeed)?;
        }
        start.add(head + whole).write_bytes(0, bytes - head - whole);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tier0_world::Random;

    use super::*;

    /// What a loan shows now.
    fn shown(loan: &(NonNull<u8>, u32), bytes: usize) -> &[u8] {
        // SAFETY: the test takes the loan back after it has looked.
        unsafe { std::slice::from_raw_parts(loan.0.as_ptr(), bytes) }
    }

    fn content(frames: &Frames, offset: usize, bytes: usize) -> Vec<u8> {
        let mut content = vec![0xee; bytes];
        frames.read(offset, &mut content);
        content
    }

    fn assert_all_is_back(frames: &Frames) {
        assert_eq!(frames.loans_left.load(Ordering::Relaxed), LOANS_MAX);
        assert_eq!(frames.spares().len(), LOANS_MAX);
        let mut places: Vec<u32> = frames.spares().clone();
        places.extend((0..frames.bytes.div_ceil(FRAME_BYTES)).map(|frame| *frames.lock(frame)));
        places.sort_unstable();
        assert!(places.iter().copied().eq(0..frames.entries.len() as u32), "each place is used once");
    }

    #[test]
    fn behaves_as_flat_memory_and_loans_stay_as_they_were() {
        const BYTES: usize = 5 * FRAME_BYTES + 12 * 512;
        let frames = Frames::map(BYTES).expect("memory");
        let mut flat = vec![0u8; BYTES];
        let mut loans = Vec::new();
        let (mut random, mut lent, mut refused) = (Random::new(11, 0), 0, 0);
        for round in 0..20_000_u32 {
            let most = if random.chance(0.2) { BYTES } else { 20_000 };
            let offset = random.below(BYTES as u64 / 512) as usize * 512;
            let bytes = (1 + random.below(most as u64 / 512) as usize) * 512;
            let bytes = bytes.min(BYTES - offset);
            let range = offset..offset + bytes;
            match random.below(10) {
                0..3 => {
                    flat[range.clone()].fill(round as u8);
                    frames.write(offset, &flat[range]);
                }
                3 => {
                    flat[range].fill(0);
                    frames.discard(offset, bytes).expect("memory can be given back");
                }
                4 => assert!(content(&frames, offset, bytes) == flat[range], "round {round}"),
                5..8 => match frames.lend(offset, bytes) {
                    Some(loan) => {
                        lent += 1;
                        loans.push((loan, flat[range].to_vec()));
                    }
                    None => {
                        let one_frame = offset / FRAME_BYTES == (offset + bytes - 1) / FRAME_BYTES;
                        refused += u32::from(one_frame);
                        assert!(!one_frame || loans.len() == LOANS_MAX);
                    }
                },
                _ if loans.is_empty() => {}
                _ => {
                    let ((address, number), then) =
                        loans.swap_remove(random.below(loans.len() as u64) as usize);
                    assert!(shown(&(address, number), then.len()) == then, "round {round}");
                    frames.take_back(number);
                }
            }
        }
        assert!(lent > 1_000 && refused > 0, "{lent} lent, {refused} refused");
        assert!(content(&frames, 0, BYTES) == flat);
        for (loan, then) in loans {
            assert!(shown(&loan, then.len()) == then);
            frames.take_back(loan.1);
        }
        assert_all_is_back(&frames);
    }

    #[test]
    fn every_loan_has_a_spare_place() {
        let frames = Frames::map((LOANS_MAX + 9) * FRAME_BYTES).expect("memory");
        let loans: Vec<_> =
            (0..LOANS_MAX).map(|frame| frames.lend(frame * FRAME_BYTES, 512).expect("one is left")).collect();
        assert!(frames.lend(0, 512).is_none(), "no more than there are spare places");
        for frame in 0..LOANS_MAX + 9 {
            frames.write(frame * FRAME_BYTES, &[1; 512]);
        }
        assert!(loans.iter().all(|loan| shown(loan, 512) == [0; 512]));
        loans.into_iter().for_each(|(_, loan)| frames.take_back(loan));
        assert_all_is_back(&frames);
    }

    #[test]
    #[should_panic(expected = "not on a drive of 512")]
    fn what_is_behind_the_end_is_refused() {
        Frames::map(512).expect("memory").read(512, &mut [0; 512]);
    }

    /// Shards share frames, never sectors: what one writes must survive that another one's write moves the frame.
    #[test]
    fn shards_do_not_disturb_each_other() {
        const SHARDS: usize = 4;
        const SECTORS: usize = 3 * FRAME_BYTES / 512;
        let frames = Frames::map(SECTORS * 512).expect("memory");
        let shard = |number: usize| {
            let mut random = Random::new(5, number as u64);
            let mut mine = [0u8; SECTORS];
            let mut loans: Vec<((NonNull<u8>, u32), u8)> = Vec::new();
            for round in 0..20_000_u32 {
                let sector = random.below((SECTORS / SHARDS) as u64) as usize * SHARDS + number;
                match random.below(3) {
                    0 => {
                        mine[sector] = round as u8;
                        frames.write(sector * 512, &[round as u8; 512]);
                    }
                    1 => {
                        // Long enough for the frame to be moved meanwhile.
                        let first = sector * 512 / FRAME_BYTES * (FRAME_BYTES / 512);
                        let whole = content(&frames, first * 512, FRAME_BYTES);
                        let own = (first..first + FRAME_BYTES / 512).skip(number).step_by(SHARDS);
                        for sector in own {
                            assert_eq!(whole[(sector - first) * 512..][..512], [mine[sector]; 512]);
                        }
                    }
                    _ => loans.extend(frames.lend(sector * 512, 512).map(|loan| (loan, mine[sector]))),
                }
                if loans.len() > random.below(150) as usize {
                    let (loan, then) = loans.swap_remove(random.below(loans.len() as u64) as usize);
                    assert_eq!(shown(&loan, 512), [then; 512]);
                    frames.take_back(loan.1);
                }
            }
            loans.into_iter().for_each(|((_, loan), _)| frames.take_back(loan));
            mine
        };
        std::thread::scope(|scope| {
            let shards: Vec<_> = (0..SHARDS).map(|number| scope.spawn(move || shard(number))).collect();
            for (number, thread) in shards.into_iter().enumerate() {
                let mine = thread.join().expect("a shard finds what it wrote");
                for sector in (number..SECTORS).step_by(SHARDS) {
                    assert_eq!(content(&frames, sector * 512, 512), [mine[sector]; 512]);
                }
            }
        });
        assert_all_is_back(&frames);
    }
}
