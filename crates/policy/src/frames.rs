//! Frames, their pages and where to find them, and the lists that policies keep them in.

use crate::Part;
use crate::index::Index;

/// A page, by whatever number its cache gives it; no two pages have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageKey(pub u64);

/// A place in the cache for one page, from 0 to the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(pub u32);

/// Pages of a block at most: 64 KiB of a database, and no more steps than one request may take.
const BLOCK_MAX: u8 = 16;
/// Bits of a frame's mark for its list; above them is its place in its block, which is 0 for the first page.
const LIST_BITS: u32 = 2;

/// No frame.
const NONE: u32 = u32::MAX;

/// Frames in `LISTS` lists and a list of those that are free, each from the newest to the oldest.
pub(crate) struct Frames<const LISTS: usize> {
    pages: Vec<u64>,
    index: Index,
    links: Vec<Links>,
    /// The list of a frame that is in one, and its place in its block.
    marks: Vec<u8>,
    lists: [List; LISTS],
    /// Free frames are linked by `older`.
    free: u32,
    used: usize,
    /// How many may have a page.
    limit: usize,
    /// The frame that was put to a list last for a request.
    last: u32,
}

#[derive(Clone, Copy)]
struct Links {
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy)]
struct List {
    newest: u32,
    oldest: u32,
    len: usize,
}

impl<const LISTS: usize> Frames<LISTS> {
    /// Frames that are all free.
    ///
    /// # Panics
    /// Where there are none, or 2^32 - 1 or more.
    pub(crate) fn new(capacity: usize) -> Self {
        assert!((1..NONE as usize).contains(&capacity), "a cache has between 1 and 2^32 - 2 frames");
        let link = |frame: u32| Links { newer: NONE, older: frame + 1 };
        let mut links: Vec<Links> = (0..capacity as u32).map(link).collect();
        links[capacity - 1].older = NONE;
        let empty = List { newest: NONE, oldest: NONE, len: 0 };
        Frames {
            pages: vec![0; capacity],
            index: Index::new(capacity),
            links,
            marks: vec![0; capacity],
            last: NONE,
            lists: [empty; LISTS],
            free: 0,
            used: 0,
            limit: capacity,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.pages.len()
    }

    /// How many may have a page.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Changes that, to at least 1 and at most all; more may have one until they are freed.
    pub(crate) fn set_limit(&mut self, frames: usize) {
        self.limit = frames.clamp(1, self.capacity());
    }

    /// How many have a page.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn len(&self, list: usize) -> usize {
        self.lists[list].len
    }

    #[inline]
    pub(crate) fn page(&self, frame: Frame) -> PageKey {
        page_of(&self.pages, frame)
    }

    /// Where a page lies.
    #[inline]
    pub(crate) fn find(&self, page: PageKey) -> Option<Frame> {
        self.index.get(page, |frame| self.page(frame))
    }

    #[inline]
    pub(crate) fn list_of(&self, frame: Frame) -> usize {
        (self.marks[frame.0 as usize] & ((1 << LIST_BITS) - 1)).into()
    }

    pub(crate) fn oldest(&self, list: usize) -> Option<Frame> {
        some(self.lists[list].oldest)
    }

    /// Takes a free frame for a page that has none, if as many as may have pages have not; it is in no list yet.
    ///
    /// # Panics
    /// Where the page has one.
    pub(crate) fn take_free(&mut self, page: PageKey) -> Option<Frame> {
        let frame = some(self.free).filter(|_| self.used < self.limit)?;
        self.free = self.links[frame.0 as usize].older;
        self.used += 1;
        self.pages[frame.0 as usize] = page.0;
        self.index.insert(page, frame, |frame| page_of(&self.pages, frame));
        Some(frame)
    }

    /// Frees a frame, which is in a list.
    pub(crate) fn free(&mut self, frame: Frame) {
        self.index.remove(self.page(frame), |frame| page_of(&self.pages, frame));
        self.unlink(frame);
        self.links[frame.0 as usize].older = self.free;
        self.free = frame.0;
        self.used -= 1;
    }

    /// Puts a frame that is in no list to the newest of one, for a request whose part its page is.
    #[inline]
    pub(crate) fn push_asked(&mut self, list: usize, frame: Frame, part: Part) {
        let before = some(self.last).filter(|last| part == Part::Next && self.lists[list].newest == last.0);
        let place = before.map_or(0, |last| (self.place(last) + 1) % BLOCK_MAX);
        self.push_newest(list, frame, place);
        self.last = frame.0;
    }

    /// A page was asked for that is not there: what comes next is not of one block with what was before.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        self.last = NONE;
    }

    /// Moves a frame from its list to the newest of one, for a request whose part its page is.
    #[inline]
    pub(crate) fn move_asked(&mut self, list: usize, frame: Frame, part: Part) {
        self.unlink(frame);
        self.push_asked(list, frame, part);
    }

    /// The next newer frame, where it is of the same block.
    #[inline]
    pub(crate) fn next_of_block(&self, frame: Frame) -> Option<Frame> {
        some(self.links[frame.0 as usize].newer).filter(|newer| self.place(*newer) > 0)
    }

    /// The place in its block.
    #[inline]
    fn place(&self, frame: Frame) -> u8 {
        self.marks[frame.0 as usize] >> LIST_BITS
    }

    #[inline]
    fn push_newest(&mut self, list: usize, frame: Frame, place: u8) {
        let List { newest, .. } = self.lists[list];
        self.links[frame.0 as usize] = Links { newer: NONE, older: newest };
        match newest {
            NONE => self.lists[list].oldest = frame.0,
            newest => self.links[newest as usize].newer = frame.0,
        }
        self.lists[list].newest = frame.0;
        self.entered(list, frame, place);
    }

    /// The frames of the block that begins with one.
    pub(crate) fn block(&self, first: Frame) -> impl Iterator<Item = Frame> + '_ {
        std::iter::successors(Some(first), |frame| self.next_of_block(*frame))
    }

    /// Moves the block that begins with a frame from its list to the newest of one.
    pub(crate) fn move_block_newest(&mut self, list: usize, first: Frame) {
        let mut next = Some(first);
        for place in 0.. {
            let Some(frame) = next else { break };
            next = self.next_of_block(frame);
            self.unlink(frame);
            self.push_newest(list, frame, place);
        }
    }

    fn entered(&mut self, list: usize, frame: Frame, place: u8) {
        self.lists[list].len += 1;
        self.marks[frame.0 as usize] = list as u8 | place << LIST_BITS;
    }

    #[inline]
    fn unlink(&mut self, frame: Frame) {
        let list = self.list_of(frame);
        let Links { newer, older } = self.links[frame.0 as usize];
        match newer {
            NONE => self.lists[list].newest = older,
            newer => {
                self.links[newer as usize].older = older;
                // The rest of a block begins with its next page where the first leaves.
                if self.place(frame) == 0 {
                    self.marks[newer as usize] &= (1 << LIST_BITS) - 1;
                }
            }
        }
        match older {
            NONE => self.lists[list].oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        self.lists[list].len -= 1;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let each = size_of::<u64>() + size_of::<Links>() + size_of::<u8>();
        self.pages.len() * each + self.index.memory_bytes()
    }
}

#[inline]
fn page_of(pages: &[u64], frame: Frame) -> PageKey {
    PageKey(pages[frame.0 as usize])
}

fn some(frame: u32) -> Option<Frame> {
    (frame != NONE).then_some(Frame(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_goes_from_the_newest_to_the_oldest() {
        let mut frames = Frames::<2>::new(3);
        let taken: Vec<Frame> =
            (0..3).map(|page| frames.take_free(PageKey(page)).expect("it is free")).collect();
        assert_eq!(frames.take_free(PageKey(3)), None, "all are taken");
        taken.iter().for_each(|frame| frames.push_asked(0, *frame, Part::First));
        assert_eq!(frames.oldest(0), Some(taken[0]));
        frames.move_asked(0, taken[0], Part::First);
        assert_eq!(frames.oldest(0), Some(taken[1]));
        frames.move_block_newest(1, taken[2]);
        frames.move_block_newest(1, taken[0]);
        assert_eq!((frames.len(0), frames.len(1), frames.oldest(1)), (1, 2, Some(taken[2])));
        frames.free(taken[2]);
        assert_eq!((frames.used(), frames.oldest(1)), (2, Some(taken[0])));
        assert_eq!(frames.take_free(PageKey(9)), Some(taken[2]));
        assert_eq!(frames.page(taken[2]), PageKey(9));
    }

    #[test]
    fn a_block_stays_one_until_some_of_it_leaves() {
        let mut frames = Frames::<2>::new(100);
        let ask = |frames: &mut Frames<2>, page: u64, part| {
            let frame = frames.take_free(PageKey(page)).expect("it is free");
            frames.push_asked(0, frame, part);
            frame
        };
        let block = |frames: &Frames<2>, first: Frame| -> Vec<u64> {
            frames.block(first).map(|frame| frames.page(frame).0).collect()
        };
        let alone = ask(&mut frames, 0, Part::First);
        let first = ask(&mut frames, 1, Part::First);
        let second = ask(&mut frames, 2, Part::Next);
        let third = ask(&mut frames, 3, Part::Next);
        ask(&mut frames, 4, Part::First);
        assert_eq!((block(&frames, alone), block(&frames, first)), (vec![0], vec![1, 2, 3]));
        frames.move_block_newest(1, first);
        assert_eq!((frames.oldest(1), block(&frames, first)), (Some(first), vec![1, 2, 3]));
        frames.move_block_newest(0, first);
        assert_eq!((frames.oldest(0), block(&frames, first)), (Some(alone), vec![1, 2, 3]));
        frames.free(second);
        assert_eq!(block(&frames, first), [1, 3]);
        frames.free(first);
        assert_eq!(block(&frames, third), [3]);
        // What another list has got since was not asked for together.
        frames.move_asked(1, third, Part::First);
        frames.move_asked(0, alone, Part::Next);
        assert_eq!((block(&frames, third), block(&frames, alone)), (vec![3], vec![0]));
        frames.interrupt();
        let begins = ask(&mut frames, 10, Part::Next);
        (11..60).for_each(|page| {
            ask(&mut frames, page, Part::Next);
        });
        assert_eq!((block(&frames, alone), block(&frames, begins)), (vec![0], (10..26).collect()));
    }
}
