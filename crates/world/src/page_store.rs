//! Memory for many pages of one size, each of which can be given back to the system by itself.

use std::io;
use std::ptr::NonNull;

use crate::PayloadWidth;

/// What the system gives and takes, bytes.
const SYSTEM_PAGE_BYTES: usize = 4096;

/// Pages of so many sectors, numbered from 0. What is in one is arbitrary until it is written; a page costs memory from its
/// first write until it is released.
pub struct PageStore {
    /// None where pages have no bytes.
    memory: Option<NonNull<u8>>,
    pages: usize,
    page_bytes: usize,
}

// SAFETY: the memory is plain bytes that this owns, reached through `&self` and `&mut self` as a slice would be.
unsafe impl Send for PageStore {}

impl PageStore {
    /// Address space for pages of `sectors` sectors as wide as a world's.
    ///
    /// # Errors
    /// When there is no such address space.
    pub fn map(pages: usize, sectors: usize, width: PayloadWidth) -> io::Result<PageStore> {
        let page_bytes = sectors * width.bytes();
        let bytes = pages.checked_mul(page_bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes == 0 {
            return Ok(PageStore { memory: None, pages, page_bytes });
        }
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a fresh mapping at an address that the kernel chooses touches no other memory.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(PageStore { memory: NonNull::new(address.cast()), pages, page_bytes })
    }

    /// What a page holds.
    ///
    /// # Panics
    /// Where there is no such page.
    #[inline]
    pub fn page(&self, page: usize) -> &[u8] {
        let Some(address) = self.address(page) else { return &[] };
        // SAFETY: the page lies in the mapping, which is readable and lives as long as this; it changes under `&mut self` only.
        unsafe { std::slice::from_raw_parts(address.as_ptr(), self.page_bytes) }
    }

    /// The same, to be written.
    ///
    /// # Panics
    /// Where there is no such page.
    #[inline]
    pub fn page_mut(&mut self, page: usize) -> &mut [u8] {
        let Some(address) = self.address(page) else { return &mut [] };
        // SAFETY: as in `page`, and nobody else has any of it.
        unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), self.page_bytes) }
    }

    /// Gives a page's memory back to the system. Pages that are no whole pages of the system keep theirs.
    ///
    /// # Panics
    /// Where there is no such page.
    pub fn release(&mut self, page: usize) {
        let Some(address) = self.address(page).filter(|_| self.page_bytes.is_multiple_of(SYSTEM_PAGE_BYTES))
        else {
            return;
        };
        // SAFETY: the page lies in the mapping, begins and ends with pages of the system, and no reference to it is alive.
        // Where the system refuses it keeps what it has.
        unsafe { libc::madvise(address.as_ptr().cast(), self.page_bytes, libc::MADV_DONTNEED) };
    }

    fn address(&self, page: usize) -> Option<NonNull<u8>> {
        assert!(page < self.pages, "there are {} pages, and no page {page}", self.pages);
        // SAFETY: the page lies in the mapping.
        self.memory.map(|memory| unsafe { memory.add(page * self.page_bytes) })
    }
}

impl Drop for PageStore {
    fn drop(&mut self) {
        let Some(memory) = self.memory else { return };
        // SAFETY: it is this mapping, and nothing refers to it any more.
        unsafe { libc::munmap(memory.as_ptr().cast(), self.pages * self.page_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_what_was_written_until_it_is_released() {
        let mut store = PageStore::map(3, 8, PayloadWidth::REAL).expect("12 KiB");
        store.page_mut(1).fill(7);
        store.page_mut(2).fill(9);
        assert!(store.page(1).len() == 4096 && store.page(1).iter().all(|byte| *byte == 7));
        store.release(1);
        assert!(store.page(1).iter().all(|byte| *byte == 0) && store.page(2)[4095] == 9);
        store.page_mut(1)[0] = 1;
        assert_eq!(store.page(1)[..2], [1, 0]);
    }

    #[test]
    fn pages_are_as_wide_as_the_world() {
        let mut none = PageStore::map(1 << 40, 8, PayloadWidth::NONE).expect("nothing");
        assert!(none.page((1 << 40) - 1).is_empty());
        none.release(0);
        let mut few = PageStore::map(100, 8, PayloadWidth::new(3)).expect("2,400 bytes");
        few.page_mut(99).copy_from_slice(&[5; 24]);
        few.release(99);
        assert_eq!(few.page(99), [5; 24]);
    }

    #[test]
    #[should_panic(expected = "no page 2")]
    fn there_are_no_others() {
        PageStore::map(2, 8, PayloadWidth::REAL).expect("8 KiB").page(2);
    }
}
