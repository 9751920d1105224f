#![doc = include_str!("README.md")]

mod ghost;
mod sketch;

use self::ghost::Ghost;
use self::sketch::Sketch;
use crate::frames::{Frame, Frames, PageKey};
use crate::hash::hash;
use crate::lru::Lru;
use crate::{Inserted, Part, Policy};

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// The window is never less than this part of the frames, nor is the main part.
const PART_MIN: usize = 100;
/// A ghost remembers this part of the frames.
const GHOST_PART: usize = 16;
/// LRU is tried on this part of the pages, in as small a part of the frames.
const SAMPLE_PART: usize = 16;
/// Frames by which the window follows one of these pages, which stands for others.
const SAMPLE_STEP: usize = 8;
/// A page that is asked for more often than this, and still not more often than the victim, comes in now and then: who knows
/// the hashes could otherwise keep pages in for ever.
const STUBBORN: u8 = 5;
/// One of so many does.
const STUBBORN_ADMITTED: u64 = 128;

/// Recency and frequency, each with a share of the frames that follows the load.
pub struct Adaptive {
    frames: Frames<3>,
    sketch: Sketch,
    left_window: Ghost,
    left_main: Ghost,
    /// What LRU would keep of one of so many pages.
    sample: Lru,
    /// Frames that the window is to have.
    window: usize,
    evictions: u64,
    rest: Option<Rest>,
}

/// What is left of the block of which a page gave way last.
#[derive(Clone, Copy)]
struct Rest {
    first: Frame,
    list: usize,
    /// So many pages give way next.
    pages: usize,
}

impl Adaptive {
    /// A policy over so many frames, all of them free.
    ///
    /// # Panics
    /// Where there are none, or 2^32 - 1 or more.
    pub fn new(capacity: usize) -> Adaptive {
        Adaptive {
            frames: Frames::new(capacity),
            sketch: Sketch::new(capacity),
            left_window: Ghost::new(capacity / GHOST_PART),
            left_main: Ghost::new(capacity / GHOST_PART),
            sample: Lru::new((capacity / SAMPLE_PART).max(1)),
            window: part_min(capacity),
            evictions: 0,
            rest: None,
        }
    }

    /// The share of the frames that the window is to have, from 0 to 1.
    pub fn window_share(&self) -> f64 {
        self.window as f64 / self.limit() as f64
    }

    /// Compares with what LRU would have done, on a part of the pages.
    fn compare(&mut self, page: PageKey, is_hit: bool) {
        if !hash(PageKey(!page.0)).is_multiple_of(SAMPLE_PART as u64) {
            return;
        }
        let would_be_hit = self.sample.get(page, Part::First).is_some();
        if !would_be_hit {
            self.sample.insert(page, Part::First);
        }
        match (is_hit, would_be_hit) {
            (false, true) => self.grow_window(SAMPLE_STEP),
            (true, false) => self.shrink_window(SAMPLE_STEP),
            _ => {}
        }
    }

    fn grow_window(&mut self, frames: usize) {
        let most = self.limit().saturating_sub(part_min(self.limit())).max(1);
        self.window = (self.window + frames).min(most);
    }

    fn shrink_window(&mut self, frames: usize) {
        self.window = self.window.saturating_sub(frames).max(part_min(self.limit()));
    }

    /// A page that is not there was asked for: had it left a moment later, it would have been.
    fn adapt(&mut self, page: PageKey) {
        if self.left_window.has(page) {
            self.grow_window(1);
        } else if self.left_main.has(page) {
            self.shrink_window(1);
        }
    }

    /// A page gives way: which, and its frame, which is free.
    fn evict(&mut self) -> (PageKey, Frame) {
        let rest = self.rest.take().filter(|rest| self.frames.list_of(rest.first) == rest.list);
        let (out, winner) = rest.map_or_else(|| self.judge(), |rest| (rest.first, None));
        let page = self.frames.page(out);
        let list = self.frames.list_of(out);
        match list {
            WINDOW => self.left_window.add(page),
            _ => self.left_main.add(page),
        }
        // A block that has lost to a smaller one is judged again.
        let pages = match (rest, winner) {
            (Some(rest), _) => rest.pages - 1,
            (None, Some(winner)) => self.frames.block(winner).count() - 1,
            (None, None) => self.frames.block(out).count() - 1,
        };
        let next = self.frames.next_of_block(out).filter(|_| pages > 0);
        self.rest = next.map(|first| Rest { first, list, pages });
        self.frames.free(out);
        if let Some(winner) = winner {
            self.frames.move_block_newest(PROBATION, winner);
        }
        (page, out)
    }

    /// Which page has to give way, and which one goes from the window to the main part for that.
    fn judge(&mut self) -> (Frame, Option<Frame>) {
        let frames = &self.frames;
        let is_window_full = frames.len(WINDOW) >= self.window;
        let candidate = frames.oldest(WINDOW);
        let victim = frames.oldest(PROBATION).or(frames.oldest(PROTECTED));
        match (candidate, victim) {
            (Some(candidate), None) => (candidate, None),
            (Some(candidate), Some(victim)) if is_window_full => match self.beats(candidate, victim) {
                true => (victim, Some(candidate)),
                false => (candidate, None),
            },
            (_, victim) => (victim.expect("a frame that is not free has a page"), None),
        }
    }

    /// Whether what leaves the window is to have the victim's place in the main part.
    fn beats(&mut self, candidate: Frame, victim: Frame) -> bool {
        self.evictions += 1;
        let (mine, others) = (self.estimate(candidate), self.estimate(victim));
        mine > others || (mine > STUBBORN && hash(PageKey(self.evictions)).is_multiple_of(STUBBORN_ADMITTED))
    }

    /// How often the block that begins with a page is asked for. The sketch errs upwards alone, so the least of what it says of
    /// the pages is nearest to the truth.
    fn estimate(&self, first: Frame) -> u8 {
        let counts = self.frames.block(first).map(|frame| self.sketch.estimate(self.frames.page(frame)));
        counts.min().expect("a block has pages")
    }

    /// Brings the lists nearer to the lengths that they are to have, by one block each. A window that is to be longer grows by
    /// what comes in.
    fn balance(&mut self) {
        // What is about to give way goes nowhere else.
        if self.rest.is_some() {
            return;
        }
        self.shorten(WINDOW, self.window);
        self.shorten(PROTECTED, (self.limit() - self.window) * 4 / 5);
    }

    /// Moves the oldest block of a list to probation, if the list is long enough without.
    fn shorten(&mut self, list: usize, most: usize) {
        let excess = self.frames.len(list).saturating_sub(most);
        if let Some(oldest) = self.frames.oldest(list).filter(|_| excess > 0)
            && self.frames.block(oldest).count() <= excess
        {
            self.frames.move_block_newest(PROBATION, oldest);
        }
    }
}

impl Policy for Adaptive {
    fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    fn limit(&self) -> usize {
        self.frames.limit()
    }

    fn set_limit(&mut self, frames: usize, gone: &mut dyn FnMut(PageKey, Frame)) {
        let before = self.limit();
        self.frames.set_limit(frames);
        self.rest = None;
        self.window = (self.window as u64 * self.limit() as u64 / before as u64) as usize;
        self.shrink_window(0);
        self.grow_window(0);
        self.sample.set_limit(self.limit() / SAMPLE_PART, &mut |_, _| {});
        while self.len() > self.limit() {
            let (page, frame) = self.evict();
            gone(page, frame);
        }
        self.balance();
    }

    fn len(&self) -> usize {
        self.frames.used()
    }

    fn get(&mut self, page: PageKey, part: Part) -> Option<Frame> {
        self.sketch.count(page);
        let found = self.peek(page);
        self.compare(page, found.is_some());
        let Some(frame) = found else {
            self.frames.interrupt();
            self.adapt(page);
            return None;
        };
        self.rest.take_if(|rest| rest.first == frame);
        match self.frames.list_of(frame) {
            WINDOW => self.frames.move_asked(WINDOW, frame, part),
            _ => self.frames.move_asked(PROTECTED, frame, part),
        }
        self.balance();
        Some(frame)
    }

    fn peek(&self, page: PageKey) -> Option<Frame> {
        self.frames.find(page)
    }

    fn insert(&mut self, page: PageKey, part: Part) -> Inserted {
        let mut evicted = None;
        let frame = self.frames.take_free(page).unwrap_or_else(|| {
            evicted = Some(self.evict().0);
            self.frames.take_free(page).expect("one was freed")
        });
        self.frames.push_asked(WINDOW, frame, part);
        self.balance();
        Inserted { frame, evicted }
    }

    fn remove(&mut self, page: PageKey) -> Option<Frame> {
        let frame = self.peek(page)?;
        self.rest.take_if(|rest| rest.first == frame);
        self.frames.free(frame);
        Some(frame)
    }

    fn memory_bytes(&self) -> usize {
        let ghosts = self.left_window.memory_bytes() + self.left_main.memory_bytes();
        self.frames.memory_bytes() + self.sketch.memory_bytes() + ghosts + self.sample.memory_bytes()
    }
}

/// The least that each part has.
fn part_min(capacity: usize) -> usize {
    (capacity / PART_MIN).max(1)
}
