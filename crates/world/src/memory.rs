//! The memory of buffers: aligned blocks whose sizes are powers of two.
//!
//! Blocks come from a cache of the thread, so the data path takes no lock and, once warm, asks no allocator for memory.
//! Those of up to 128 KiB lie in a region of huge pages, as long as that has room and the kernel gives it such pages: a
//! block is then one piece for the device too, and costs a copy to it one address translation. Larger blocks, and more
//! of them than the region holds, come from the allocator.
//!
//! A block may be dropped by another thread than made it, and stays in that one's cache. A thread that ends leaves its
//! blocks to the others.
//!
//! A block may also be on loan ([`Lender`]): memory of a drive that has the data already. It is only read.

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::Lender;

/// Alignment of every block, bytes: the page, which satisfies O_DIRECT on all devices in use.
pub(crate) const ALIGNMENT: usize = 4096;
/// The smallest class, bytes, as a power of two.
const CLASS_MIN_SHIFT: u32 = 12;
/// Classes: 4 KiB, 8 KiB, … 8 MiB; larger blocks are not cached.
const CLASSES: usize = 12;
/// The first classes, of up to 128 KiB, which come from the region.
const REGION_CLASSES: usize = 6;
/// What one thread keeps of one class, bytes.
const CLASS_BYTES_MAX: usize = 8 << 20;
/// A huge page of x86-64, and of AArch64 with pages of 4 KiB.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Address space of the region; it is backed as far as blocks were ever taken from it.
const REGION_BYTES: usize = 64 << 20;

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache([const { Vec::new() }; CLASSES])) };
}

/// A block: exclusively owned, or on loan and then only read.
pub(crate) struct Block {
    memory: NonNull<u8>,
    owner: Owner,
}

enum Owner {
    /// This module; the block is of this class.
    Cache { class: u32 },
    /// A lender, who knows the loan by this number.
    Lender { lender: Arc<dyn Lender>, loan: u32 },
}

// SAFETY: a block is plain memory, owned by its holder; which bytes may be read or written is decided by `Buf` and
// `BufMut`, whose ranges never overlap in a way that Rust forbids. What is on loan does not change, and its lender may
// be reached from every thread.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// A block of at least `bytes` bytes, which hold zeros or old data of this process.
    pub(crate) fn new(bytes: usize) -> Block {
        let class = bytes.next_power_of_two().trailing_zeros().saturating_sub(CLASS_MIN_SHIFT);
        let cached = CACHE.with_borrow_mut(|cache| cache.0.get_mut(class as usize).and_then(Vec::pop));
        let memory = cached.or_else(|| Region::get().take(class)).unwrap_or_else(|| {
            let layout = layout(class);
            // SAFETY: the layout's size is at least 4096.
            let memory = unsafe { std::alloc::alloc_zeroed(layout) };
            NonNull::new(memory).unwrap_or_else(|| std::alloc::handle_alloc_error(layout))
        });
        Block { memory, owner: Owner::Cache { class } }
    }

    /// Memory on loan, which is only read.
    pub(crate) fn on_loan(memory: NonNull<u8>, lender: Arc<dyn Lender>, loan: u32) -> Block {
        Block { memory, owner: Owner::Lender { lender, loan } }
    }

    pub(crate) fn is_on_loan(&self) -> bool {
        matches!(self.owner, Owner::Lender { .. })
    }

    pub(crate) fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    /// What it takes, or keeps its lender from using, bytes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.owner {
            Owner::Cache { class } => layout(*class).size(),
            Owner::Lender { lender, .. } => lender.loan_bytes(),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let class = match &self.owner {
            Owner::Cache { class } => *class,
            Owner::Lender { lender, loan } => return lender.take_back(*loan),
        };
        let kept = CACHE.try_with(|cache| {
            let mut cache = cache.borrow_mut();
            let Some(list) = cache.0.get_mut(class as usize) else { return false };
            let room = list.len() < (CLASS_BYTES_MAX >> (CLASS_MIN_SHIFT + class)).max(1);
            if room {
                list.push(self.memory);
            }
            room
        });
        if !kept.unwrap_or(false) {
            give_back(self.memory, class);
        }
    }
}

fn layout(class: u32) -> Layout {
    let bytes = 1usize << (CLASS_MIN_SHIFT + class);
    Layout::from_size_align(bytes, ALIGNMENT).expect("a power of two of at most 2^52 is a valid layout")
}

/// Gives a block that is no longer in use back to where it came from.
fn give_back(memory: NonNull<u8>, class: u32) {
    let region = Region::get();
    if region.contains(memory) {
        region.put(memory, class);
    } else {
        // SAFETY: allocated in `Block::new` with this very layout, and nothing refers to it.
        unsafe { std::alloc::dealloc(memory.as_ptr(), layout(class)) }
    }
}

/// Free blocks of one thread, by class.
struct Cache([Vec<NonNull<u8>>; CLASSES]);

impl Drop for Cache {
    fn drop(&mut self) {
        for (class, list) in self.0.iter_mut().enumerate() {
            list.drain(..).for_each(|memory| give_back(memory, class as u32));
        }
    }
}

/// The region of huge pages, one of the process.
struct Region {
    /// Address of the first huge page; 0 where the kernel gave no address space.
    start: usize,
    /// Offset of what no block was ever taken from.
    untouched: AtomicUsize,
    /// Free blocks that no thread keeps, by class, as addresses.
    free: Mutex<[Vec<usize>; REGION_CLASSES]>,
}

impl Region {
    fn get() -> &'static Region {
        static REGION: OnceLock<Region> = OnceLock::new();
        REGION.get_or_init(Region::map)
    }

    fn map() -> Region {
        let bytes = REGION_BYTES + HUGE_PAGE_BYTES;
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a fresh mapping at an address that the kernel chooses touches no other memory.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        let start = if address == libc::MAP_FAILED {
            0
        } else {
            (address as usize).next_multiple_of(HUGE_PAGE_BYTES)
        };
        if start != 0 {
            // SAFETY: the range lies in the mapping. The advice may be refused, and then pages are small.
            unsafe { libc::madvise(start as *mut libc::c_void, REGION_BYTES, libc::MADV_HUGEPAGE) };
        }
        let untouched = AtomicUsize::new(if start == 0 { REGION_BYTES } else { 0 });
        Region { start, untouched, free: Mutex::new([const { Vec::new() }; REGION_CLASSES]) }
    }

    fn contains(&self, memory: NonNull<u8>) -> bool {
        self.start != 0 && (self.start..self.start + REGION_BYTES).contains(&memory.addr().get())
    }

    /// A free block, if there is one. It never crosses a huge page's end: blocks are aligned to their size.
    fn take(&self, class: u32) -> Option<NonNull<u8>> {
        if class as usize >= REGION_CLASSES {
            return None;
        }
        let bytes = layout(class).size();
        let address = self.lists()[class as usize].pop().or_else(|| {
            let next = |offset: usize| {
                Some(offset.next_multiple_of(bytes) + bytes).filter(|&end| end <= REGION_BYTES)
            };
            let offset = self.untouched.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
            Some(self.start + offset.next_multiple_of(bytes))
        })?;
        NonNull::new(address as *mut u8)
    }

    fn put(&self, memory: NonNull<u8>, class: u32) {
        self.lists()[class as usize].push(memory.addr().get());
    }

    fn lists(&self) -> std::sync::MutexGuard<'_, [Vec<usize>; REGION_CLASSES]> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held by tests that take large blocks of the region: one of them looks for a certain one.
    static LARGE_BLOCKS: Mutex<()> = Mutex::new(());

    #[test]
    fn blocks_are_aligned_and_come_back_from_the_cache() {
        let _alone = LARGE_BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        for bytes in [1, 4096, 8192, 100_000, 1 << 20, 16 << 20] {
            let block = Block::new(bytes);
            assert_eq!(block.memory().addr().get() % ALIGNMENT, 0);
            // SAFETY: the block has at least so many bytes, and is ours.
            unsafe { block.memory().write_bytes(7, bytes) };
        }
        let first = Block::new(8192);
        let address = first.memory();
        drop(first);
        assert_eq!(Block::new(8192).memory(), address);
    }

    #[test]
    fn blocks_of_the_region_do_not_overlap_nor_cross_huge_pages() {
        let _alone = LARGE_BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks: Vec<(usize, Block)> =
            (0..300).map(|k| (4096usize << (k % 6), Block::new(4096 << (k % 6)))).collect();
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for (bytes, block) in &blocks {
            let start = block.memory().addr().get();
            if Region::get().contains(block.memory()) {
                assert_eq!(start / HUGE_PAGE_BYTES, (start + bytes - 1) / HUGE_PAGE_BYTES);
            }
            ranges.push((start, start + bytes));
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "nothing of a world runs in it")]
    fn a_thread_that_ends_leaves_its_blocks_to_others() {
        let _alone = LARGE_BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        let address = || Block::new(128 << 10).memory().addr().get();
        let of_thread = std::thread::spawn(move || (0..4).map(|_| address()).collect::<Vec<_>>());
        let left = of_thread.join().expect("the thread ends").pop().expect("it took some");
        let taken: Vec<Block> = (0..600).map(|_| Block::new(128 << 10)).collect();
        assert!(
            taken.iter().any(|block| block.memory().addr().get() == left),
            "the region is used up, and it is in it"
        );
    }
}
