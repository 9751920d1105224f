#![doc = include_str!("README.md")]

use crate::frames::{Frame, Frames, PageKey};
use crate::{Inserted, Part, Policy};

/// The only list.
const ALL: usize = 0;

/// Least recently used.
pub struct Lru {
    frames: Frames<1>,
}

impl Lru {
    /// A policy over so many frames, all of them free.
    ///
    /// # Panics
    /// Where there are none, or 2^32 - 1 or more.
    pub fn new(capacity: usize) -> Lru {
        Lru { frames: Frames::new(capacity) }
    }

    /// The page that was asked for longest ago gives way.
    fn evict(&mut self) -> (PageKey, Frame) {
        let oldest = self.frames.oldest(ALL).expect("a frame that is not free has a page");
        let page = self.frames.page(oldest);
        self.frames.free(oldest);
        (page, oldest)
    }
}

impl Policy for Lru {
    fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    fn limit(&self) -> usize {
        self.frames.limit()
    }

    fn set_limit(&mut self, frames: usize, gone: &mut dyn FnMut(PageKey, Frame)) {
        self.frames.set_limit(frames);
        while self.len() > self.limit() {
            let (page, frame) = self.evict();
            gone(page, frame);
        }
    }

    fn len(&self) -> usize {
        self.frames.used()
    }

    fn get(&mut self, page: PageKey, _: Part) -> Option<Frame> {
        let frame = self.peek(page)?;
        self.frames.move_asked(ALL, frame, Part::First);
        Some(frame)
    }

    fn peek(&self, page: PageKey) -> Option<Frame> {
        self.frames.find(page)
    }

    fn insert(&mut self, page: PageKey, _: Part) -> Inserted {
        let mut evicted = None;
        let frame = self.frames.take_free(page).unwrap_or_else(|| {
            evicted = Some(self.evict().0);
            self.frames.take_free(page).expect("one was freed")
        });
        self.frames.push_asked(ALL, frame, Part::First);
        Inserted { frame, evicted }
    }

    fn remove(&mut self, page: PageKey) -> Option<Frame> {
        let frame = self.peek(page)?;
        self.frames.free(frame);
        Some(frame)
    }

    fn memory_bytes(&self) -> usize {
        self.frames.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_was_asked_for_longest_ago_gives_way() {
        let mut lru = Lru::new(2);
        lru.insert(PageKey(1), Part::First);
        lru.insert(PageKey(2), Part::First);
        assert!(lru.get(PageKey(1), Part::First).is_some());
        assert_eq!(lru.insert(PageKey(3), Part::First).evicted, Some(PageKey(2)));
        assert_eq!((lru.get(PageKey(2), Part::First), lru.len()), (None, 2));
    }
}
