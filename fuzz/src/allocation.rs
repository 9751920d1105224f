//! How much memory an input makes a parser take.
//!
//! The allocator counts what each thread holds. Memory that one thread takes and another gives back is counted in both,
//! which does not matter here: a target runs in one thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counting.
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Counts `bytes` more, or fewer; a thread that is ending has no counters any more.
fn count(bytes: isize) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        PEAK.try_with(|peak| peak.set(peak.get().max(held.get())))
    });
}

// SAFETY: every call is passed on to the system's allocator, unchanged; the counters are plain cells of this thread,
// which neither allocate nor run destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Runs `work`; also the most that it held at once beyond what was held before, bytes.
pub fn peak_of<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, PEAK.get().saturating_sub(before).max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_what_was_held_at_once() {
        let (_, peak) = peak_of(|| {
            drop(std::hint::black_box(vec![0u8; 1 << 20]));
            drop(std::hint::black_box(vec![1u8; 3 << 20]));
        });
        assert!((3 << 20..4 << 20).contains(&peak), "{peak}");
        let mut grown = Vec::new();
        let ((), peak) = peak_of(|| grown.resize(1 << 16, 0u8));
        assert!((1 << 16..1 << 18).contains(&peak), "{peak}");
    }
}
