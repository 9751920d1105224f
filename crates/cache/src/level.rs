//! How full a write cache is, and what follows from it: pure arithmetic.
//!
//! The log is a ring, released from its oldest frame on, and destaging itself needs room in it: levels with parity log an
//! intent before they touch a row. So a log that is merely not full may be one that can never be emptied again. What must
//! hold at every instant, and after a crash at any instant, is that it can.
//!
//! *In turn* means: the W oldest pages alone, nothing else under way. Their intents share a frame and take I(W) blocks
//! at most; then the W pages' own blocks come back. All d pages with data, taken in turn, so need g = I(W) / W − 1 blocks
//! each. The sum **Φ = U + g·d** does not grow by it, where U is every block that is in use or promised: from the log's
//! first needed frame to its end, records on their way, room given to writers, and the intents of batches under way that
//! are not yet in the log. Three things Φ does not see:
//!
//! - a frame comes back as a whole, up to F blocks late;
//! - the last batch may be smaller than W and still needs a header: I(W) is enough for it;
//! - a batch may fail, and what it has logged stays: I(W) for another attempt.
//!
//! So the log can be emptied while Φ + S ≤ capacity, S = F + 2·I(W). Writers are admitted, and batches *out of turn*
//! begin, only while that holds afterwards; those batches are counted with twice their intents, because they may fail as
//! well, and with a sixteenth of the log more for writers, so that the former find room. Once there is none, pages are
//! destaged in turn, which is always allowed.
//!
//! What was destaged counts among the d until its record is released, because a crash would make it dirty again. What a
//! crash leaves is a prefix of the log, that is, the log as it was at some earlier instant, when all this held too.

use std::cmp::max;

/// What a write cache has of memory and log. Blocks and pages are 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// Data pages in memory.
    pub(crate) pages: u64,
    /// Blocks of the log.
    pub(crate) blocks: u64,
    /// Bytes that the intents of one page take, at worst; none where the level has no parity.
    pub(crate) intent_page_bytes: u64,
}

const BLOCK_BYTES: u64 = 4096;
/// Bytes of a frame of the log beside what it has for each record.
const FRAME_BYTES: u64 = 104;
/// Bytes of an intent beside its pages and parity: its header, and how the frame describes it.
const INTENT_BYTES: u64 = 48 + 8;
/// Bytes of an intent's header for each page, and for each piece of parity.
const ENTRY_BYTES: u64 = 16;
/// Bytes by which a frame describes a page of parity.
const CHECKSUM_BYTES: u64 = 4;

/// Bytes of log that the intents of one page take, at worst: it is alone in its row. Then either its parity is in the
/// intent, or the row was never written, and all its pages are named in it.
pub(crate) fn intent_page_bytes(parity_columns: u32, row_pages: u32) -> u64 {
    let (parity, row) = (u64::from(parity_columns), u64::from(row_pages));
    if parity == 0 {
        return 0;
    }
    let modified = ENTRY_BYTES + parity * (ENTRY_BYTES + CHECKSUM_BYTES + BLOCK_BYTES);
    INTENT_BYTES + max(modified, row * ENTRY_BYTES)
}

/// The most blocks of a frame with several records, in a log of `blocks`: a sixteenth, since a frame that is half
/// destaged gives nothing back; 256 KiB, because longer ones gain nothing; and room for one page.
pub(crate) fn frame_blocks_max(blocks: u64) -> u64 {
    (blocks / 16).clamp(2, 64)
}

/// What is in use, with what is about to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Data pages in memory.
    pub(crate) pages: u64,
    /// Blocks of the log from its first needed frame to its end, and of all that is promised room in it.
    pub(crate) used_blocks: u64,
    /// Pages with data that a crash now would make dirty.
    pub(crate) dirty_pages: u64,
}

impl Capacity {
    /// The part of the log that may be destaged before anything of it is released, in blocks: a quarter of the room
    /// kept for steps, since two windows may be under way and intents come on top.
    pub(crate) fn window_blocks(&self) -> u64 {
        let per_page = 1.0 + self.intent_page_bytes as f64 / BLOCK_BYTES as f64;
        ((self.step_blocks() as f64 / (4.0 * per_page)) as u64).max(8)
    }

    /// The most pages that one record takes: what fits into a frame, and no step by itself.
    pub(crate) fn record_pages_max(&self) -> u64 {
        (frame_blocks_max(self.blocks) - 1).min(self.pages / 16).max(1)
    }

    /// How full it is; 1 is full.
    pub(crate) fn level(&self, usage: &Usage) -> f64 {
        self.memory_utilisation(usage).max(self.log_utilisation(usage))
    }

    /// How full the memory is; 1 is full.
    pub(crate) fn memory_utilisation(&self, usage: &Usage) -> f64 {
        usage.pages as f64 / self.pages as f64
    }

    /// How full the log is, what it needs to be emptied included; 1 is full.
    pub(crate) fn log_utilisation(&self, usage: &Usage) -> f64 {
        self.log_blocks(usage) / self.blocks.saturating_sub(self.step_blocks()).max(1) as f64
    }

    /// Whether a log of this size ever takes a page.
    pub(crate) fn takes_a_page(&self) -> bool {
        self.level(&Usage { pages: 1, used_blocks: 2, dirty_pages: 1 }) <= 1.0
    }

    /// W: how many pages are destaged in turn.
    pub(crate) fn pages_in_turn(&self) -> u64 {
        match self.intent_page_bytes {
            0 => u64::MAX,
            bytes => max(1, (frame_blocks_max(self.blocks) * BLOCK_BYTES - FRAME_BYTES) / bytes),
        }
    }

    /// How many pages may be destaged out of turn.
    pub(crate) fn pages_out_of_turn(&self, usage: &Usage) -> u64 {
        if self.intent_page_bytes == 0 {
            return u64::MAX;
        }
        let room = (self.blocks - self.reserve_blocks().min(self.blocks)) as f64 - self.log_blocks(usage);
        let room = (room / 2.0).max(0.0) as u64;
        // As `intent_blocks`, the other way round.
        let one_by_one = room / self.intent_frame_blocks(1);
        let frame = frame_blocks_max(self.blocks);
        let together = room.saturating_sub(3) * BLOCK_BYTES * frame / (self.intent_page_bytes * (frame + 2));
        max(one_by_one, together)
    }

    /// Blocks of the intents of a batch with so many data pages, at worst.
    pub(crate) fn intent_blocks(&self, pages: u64) -> u64 {
        if pages == 0 || self.intent_page_bytes == 0 {
            return 0;
        }
        if pages <= self.pages_in_turn() {
            return self.intent_frame_blocks(pages);
        }
        // Two frames that follow each other have more than a frame's most between them, or they would be one.
        let content = (pages * self.intent_page_bytes).div_ceil(BLOCK_BYTES);
        let together = content + (2 * content).div_ceil(frame_blocks_max(self.blocks)) + 2;
        together.min(pages * self.intent_frame_blocks(1))
    }

    /// Whether another attempt at a batch that has failed finds room.
    pub(crate) fn has_room_for_retry(&self, usage: &Usage, pages: u64) -> bool {
        usage.used_blocks + self.intent_blocks(pages) <= self.blocks
    }

    /// Φ: the blocks that must be there to destage everything in turn.
    fn log_blocks(&self, usage: &Usage) -> f64 {
        usage.used_blocks as f64 + usage.dirty_pages as f64 * self.net_blocks_per_page()
    }

    /// g: blocks that a page destaged in turn needs beyond its own.
    fn net_blocks_per_page(&self) -> f64 {
        if self.intent_page_bytes == 0 {
            return 0.0;
        }
        let pages = self.pages_in_turn();
        (self.intent_frame_blocks(pages) as f64 / pages as f64 - 1.0).max(0.0)
    }

    /// Blocks of one frame with the intents of so many pages.
    fn intent_frame_blocks(&self, pages: u64) -> u64 {
        (FRAME_BYTES + pages * self.intent_page_bytes).div_ceil(BLOCK_BYTES)
    }

    /// S: what Φ does not see.
    fn reserve_blocks(&self) -> u64 {
        match self.intent_page_bytes {
            0 => 0,
            _ => frame_blocks_max(self.blocks) + 2 * self.intent_frame_blocks(self.pages_in_turn()),
        }
    }

    /// What is kept back from writers: at least an eighth, because the log shrinks in steps of a window.
    fn step_blocks(&self) -> u64 {
        max(self.blocks / 8, self.reserve_blocks() + self.blocks / 16)
    }
}

/// How fast writers are admitted, pages per second, where the log gets rid of `rate` pages per second; none while the level is
/// below `high`.
///
/// Between `high` and 1 it falls as (1 − x) ÷ x of the rate: unlimited at first, just the rate half way, nothing at 1.
/// So the level finds its balance in the middle whatever the rate is, and no writer meets a cliff.
pub(crate) fn admission_rate(level: f64, high: f64, rate: f64) -> Option<f64> {
    let x = (level - high) / (1.0 - high);
    (x > 0.0).then(|| rate * (1.0 - x).max(0.0) / x)
}

/// How many batches are to be under way at a level.
pub(crate) fn batches_wanted(level: f64, low: f64, high: f64, batches_max: usize) -> usize {
    if level < low {
        return 1;
    }
    let share = ((level - low) / (high - low)).min(1.0);
    1 + ((batches_max - 1) as f64 * share).ceil() as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: Capacity = Capacity { pages: 1000, blocks: 8000, intent_page_bytes: 8304 };

    fn usage(pages: u64, used_blocks: u64, dirty_pages: u64) -> Usage {
        Usage { pages, used_blocks, dirty_pages }
    }

    #[test]
    fn the_fuller_of_memory_and_log_counts() {
        // 31 pages in turn, 63 blocks of intents.
        assert_eq!((CAPACITY.pages_in_turn(), CAPACITY.intent_frame_blocks(31)), (31, 63));
        assert_eq!(CAPACITY.level(&usage(0, 0, 0)), 0.0);
        assert_eq!(CAPACITY.level(&usage(500, 600, 500)), 0.5);
        assert_eq!(CAPACITY.level(&usage(100, 6840, 155)), 1.0);
        // Mirrors need no room for intents.
        let mirrors = Capacity { intent_page_bytes: 0, ..CAPACITY };
        assert_eq!(mirrors.level(&usage(100, 3500, 100)), 0.5);
        assert_eq!(mirrors.pages_out_of_turn(&usage(100, 7999, 100)), u64::MAX);
    }

    #[test]
    fn an_intent_takes_what_its_format_says() {
        // One page at level 6: its header with one page and two pieces, and two pages of parity.
        assert_eq!(intent_page_bytes(2, 6), 56 + 16 + 2 * (16 + 4 + 4096));
        // A row of 1000 pages that was never written.
        assert_eq!(intent_page_bytes(1, 1000), 56 + 16_000);
        assert_eq!(intent_page_bytes(0, 6), 0);
    }

    /// A log as a list of frames, worst in every respect: intents take all they may.
    struct Log {
        capacity: Capacity,
        /// Blocks, and pages with data that are not stable in their places.
        frames: std::collections::VecDeque<(u64, u64)>,
        /// Pages that count.
        dirty: u64,
        /// By frame, pages that a crash makes dirty again.
        pages: std::collections::VecDeque<u64>,
    }

    impl Log {
        fn used(&self) -> u64 {
            self.frames.iter().map(|frame| frame.0).sum()
        }

        fn usage(&self) -> Usage {
            usage(0, self.used(), self.dirty)
        }

        fn append(&mut self, blocks: u64, pages: u64) {
            self.frames.push_back((blocks, pages));
            self.pages.push_back(pages);
            self.dirty += pages;
            assert!(self.used() <= self.capacity.blocks, "{} of {:?}", self.used(), self.capacity);
        }

        /// Destages so many pages of the frames from `first` on.
        fn destage(&mut self, first: usize, pages: u64) {
            let mut left = pages;
            for frame in self.frames.iter_mut().skip(first) {
                let some = frame.1.min(left);
                (frame.1, left) = (frame.1 - some, left - some);
            }
            let blocks = self.capacity.intent_blocks(pages - left);
            if blocks > 0 {
                self.append(blocks, 0);
            }
        }

        fn release(&mut self) {
            while self.frames.pop_front_if(|frame| frame.1 == 0).is_some() {
                self.dirty -= self.pages.pop_front().expect("one for each frame");
            }
        }

        fn crash(&mut self) {
            for (frame, pages) in self.frames.iter_mut().zip(&self.pages) {
                frame.1 = *pages;
            }
        }
    }

    proptest! {
        #[test]
        fn a_log_can_always_be_emptied(
            blocks in 8_u64..3000,
            parity in 1_u32..3,
            row_pages in 1_u32..600,
            steps in proptest::collection::vec((0_u8..5, 1_u64..64, 0_usize..8), 0..400),
        ) {
            let bytes = intent_page_bytes(parity, row_pages);
            let capacity = Capacity { pages: u64::MAX, blocks, intent_page_bytes: bytes };
            if !capacity.takes_a_page() {
                return Ok(());
            }
            let (frames, pages) = Default::default();
            let mut log = Log { capacity, frames, dirty: 0, pages };
            for (kind, size, place) in steps {
                match kind {
                    0..3 => {
                        let pages = size.min(capacity.record_pages_max());
                        let after = usage(0, log.used() + pages + 1, log.dirty + pages);
                        if capacity.level(&after) <= 1.0 {
                            log.append(pages + 1, pages);
                        }
                    }
                    3 => {
                        let pages = capacity.pages_out_of_turn(&log.usage()).min(size);
                        log.destage(place, pages);
                        log.release();
                    }
                    _ => {
                        // An attempt that fails, and the power with it.
                        let pages = capacity.pages_out_of_turn(&log.usage()).min(size);
                        log.destage(place, pages);
                        log.crash();
                    }
                }
            }
            log.crash();
            // One attempt in turn fails.
            log.append(capacity.intent_blocks(capacity.pages_in_turn().min(log.dirty)), 0);
            while log.dirty > 0 {
                log.destage(0, capacity.pages_in_turn());
                log.release();
            }
        }
    }

    #[test]
    fn admission_falls_without_a_step() {
        assert_eq!(admission_rate(0.7, 0.7, 100.0), None);
        let rates: Vec<f64> = (1..=100)
            .map(|i| admission_rate(0.7 + 0.003 * f64::from(i), 0.7, 100.0).expect("delayed"))
            .collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]));
        assert!(rates[0] > 5000.0 && (rates[49] - 100.0).abs() < 1e-6 && rates[99] < 1e-6);
    }

    #[test]
    fn more_batches_as_it_fills() {
        let wanted = [0.0, 0.29, 0.3, 0.31, 0.5, 0.7, 2.0].map(|level| batches_wanted(level, 0.3, 0.7, 4));
        assert_eq!(wanted, [1, 1, 1, 2, 3, 4, 4]);
    }
}
