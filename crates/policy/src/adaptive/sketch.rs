//! How often pages were asked for lately, roughly: counters of four bits that pages share, and that age.

use crate::frames::PageKey;
use crate::hash::{hash, place};

/// Words of a block: a page's counters are in one, which is one line of the processor's cache.
const BLOCK_WORDS: usize = 8;
/// A page has so many counters, each in two words of their own; the least of them is the estimate.
const ROWS: usize = 4;
/// Counters of a row in a block.
const ROW_COUNTERS: u64 = 32;
/// What a counter can hold.
pub(super) const COUNT_MAX: u8 = 15;
/// All counters are halved once in so many requests per frame.
const HALVED_AFTER: u64 = 10;
/// What is left of every counter when it is halved.
const HALVES: u64 = 0x7777_7777_7777_7777;

/// Counts of requests. A block is halved when it is next counted in, so that no request has to wait until all are.
pub(super) struct Sketch {
    words: Vec<u64>,
    /// How often each block was halved.
    ages: Vec<u32>,
    /// How often each is to have been.
    age: u32,
    requests_left: u64,
    requests_per_age: u64,
}

impl Sketch {
    /// A sketch for a cache of so many frames: one and a half times as many counters in each row.
    pub(super) fn new(frames: usize) -> Sketch {
        let blocks = (frames * 3 / 2).div_ceil(ROW_COUNTERS as usize).max(2);
        let requests_per_age = HALVED_AFTER * frames as u64;
        Sketch {
            words: vec![0; blocks * BLOCK_WORDS],
            ages: vec![0; blocks],
            age: 0,
            requests_left: requests_per_age,
            requests_per_age,
        }
    }

    /// A page's block, and where its counters stand: the word and the shift of each.
    #[inline]
    fn counters(&self, page: PageKey) -> (usize, [(usize, u32); ROWS]) {
        let hash = hash(page);
        let block = place(hash, self.ages.len());
        // The upper bits choose the block, five of the lower ones each counter.
        let counters = std::array::from_fn(|row| {
            let counter = hash >> (5 * row) & (ROW_COUNTERS - 1);
            (block * BLOCK_WORDS + 2 * row + (counter / 16) as usize, (counter % 16 * 4) as u32)
        });
        (block, counters)
    }

    /// How often a page was asked for lately, roughly.
    #[inline]
    pub(super) fn estimate(&self, page: PageKey) -> u8 {
        let (block, counters) = self.counters(page);
        let counts = counters.map(|(word, shift)| (self.words[word] >> shift) as u8 & COUNT_MAX);
        let least = counts.into_iter().min().expect("there are rows");
        least.checked_shr(self.age.wrapping_sub(self.ages[block])).unwrap_or(0)
    }

    /// A page was asked for. Only its least counters grow, so that others are told of less.
    #[inline]
    pub(super) fn count(&mut self, page: PageKey) {
        let (block, counters) = self.counters(page);
        if self.ages[block] != self.age {
            self.halve(block);
        }
        let least = self.estimate(page);
        if least < COUNT_MAX {
            for (word, shift) in counters {
                if (self.words[word] >> shift) as u8 & COUNT_MAX == least {
                    self.words[word] += 1 << shift;
                }
            }
        }
        self.requests_left -= 1;
        if self.requests_left == 0 {
            self.requests_left = self.requests_per_age;
            self.age = self.age.wrapping_add(1);
        }
    }

    /// Brings a block to the age that it is to have.
    #[cold]
    fn halve(&mut self, block: usize) {
        let times = self.age.wrapping_sub(self.ages[block]).min(u32::from(COUNT_MAX).ilog2() + 1);
        for word in &mut self.words[block * BLOCK_WORDS..][..BLOCK_WORDS] {
            (0..times).for_each(|_| *word = *word >> 1 & HALVES);
        }
        self.ages[block] = self.age;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words.len() * size_of::<u64>() + self.ages.len() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_grow_with_requests_and_fade_without() {
        let mut sketch = Sketch::new(1000);
        (0..100).for_each(|_| sketch.count(PageKey(7)));
        assert_eq!(sketch.estimate(PageKey(7)), COUNT_MAX);
        (0..3).for_each(|_| sketch.count(PageKey(8)));
        assert_eq!(sketch.estimate(PageKey(8)), 3);
        assert_eq!(sketch.estimate(PageKey(9)), 0);
        // Ten times as many requests as frames, all of other pages, each once.
        (0..10_000).for_each(|page| sketch.count(PageKey(1_000_000 + page)));
        assert!((7..=9).contains(&sketch.estimate(PageKey(7))), "{}", sketch.estimate(PageKey(7)));
    }

    #[test]
    fn pages_that_are_asked_for_once_hardly_seem_more_frequent() {
        let mut sketch = Sketch::new(10_000);
        (0..10_000).for_each(|page| sketch.count(PageKey(page)));
        let wrong = (0..10_000).filter(|page| sketch.estimate(PageKey(*page)) > 2).count();
        assert!(wrong < 300, "{wrong} of 10000");
    }
}
