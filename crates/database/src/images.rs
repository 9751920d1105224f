//! Full images of pages in the log: after a checkpoint began, the first change of a page writes the whole page into the log, so that
//! a torn page can be repaired.

use std::cell::RefCell;

/// Which pages have an image since the last checkpoint began.
pub(crate) struct Images {
    /// A bit for each page.
    logged: RefCell<Vec<u64>>,
    /// Bytes of an image; 0 for an engine that writes none.
    bytes: u64,
}

impl Images {
    /// Of so many pages. An image of 0 bytes is none.
    pub(crate) fn new(pages: u64, bytes: u64) -> Images {
        let words = if bytes == 0 { 0 } else { pages.div_ceil(64) };
        Images { logged: RefCell::new(vec![0; words as usize]), bytes }
    }

    /// A page is changed: bytes of its image, 0 if the log has one.
    pub(crate) fn change(&self, page: u64) -> u64 {
        if self.bytes == 0 {
            return 0;
        }
        let mut logged = self.logged.borrow_mut();
        let (word, bit) = (&mut logged[(page / 64) as usize], 1 << (page % 64));
        let is_logged = *word & bit != 0;
        *word |= bit;
        if is_logged { 0 } else { self.bytes }
    }

    /// A checkpoint begins.
    pub(crate) fn checkpoint(&self) {
        self.logged.borrow_mut().fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_one_image_between_two_checkpoints() {
        let images = Images::new(100, 8192);
        assert_eq!([7, 7, 99].map(|page| images.change(page)), [8192, 0, 8192]);
        images.checkpoint();
        assert_eq!([7, 7].map(|page| images.change(page)), [8192, 0]);
        assert_eq!(Images::new(100, 0).change(7), 0);
    }
}
