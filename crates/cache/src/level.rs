//! How full a write cache is, and what follows from it: pure arithmetic.
//!
//! The log is a ring, released from its oldest record on, and destaging itself needs room in it for intents. With `used`
//! blocks in use, d pages with data in it and k blocks of intents per page, destaging all of them in the order of the log
//! needs used + k·d − d blocks: each page's block comes back as its intents come. A page that is destaged before its turn
//! gives nothing back before the older ones are done, and until then a crash would make it dirty again. So pages count
//! among the d until their record is released, and those of batches under way (f) are not counted on for giving blocks
//! back: used + k·d − (d − f) is what must stay below the capacity.
//!
//! Writers are admitted against that sum, with an eighth of the log kept back, because the log shrinks in steps of a
//! window. Batches out of turn begin only while they leave a sixteenth; otherwise the oldest record is destaged alone,
//! which does not change the sum. So it always finds room for its intents, however long it takes and whatever crashes,
//! and the log can always be emptied.

use tier0_units::Nanos;

/// What a write cache has of memory and log. Blocks and pages are 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// Data pages in memory.
    pub(crate) pages: u64,
    /// Blocks of the log.
    pub(crate) blocks: u64,
    /// Blocks of intents per page, at worst.
    pub(crate) intent_blocks_per_page: f64,
}

/// Bytes of an intent beside what it has per page: its head, and how the frame describes it.
const INTENT_BYTES: u32 = 64;
/// Bytes of an intent's head per page.
const INTENT_PAGE_BYTES: u32 = 16;

/// Blocks of intents per page of a level with `parity_columns`, at worst: the page is alone in its row. Then either its
/// parity is in the intent, or all pages of the row are named in it.
pub(crate) fn intent_blocks_per_page(parity_columns: u32, row_pages: u32) -> f64 {
    if parity_columns == 0 {
        return 0.0;
    }
    f64::from(parity_columns) + f64::from(INTENT_BYTES + INTENT_PAGE_BYTES * row_pages) / 4096.0
}

/// What is in use, with what is about to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Data pages in memory.
    pub(crate) pages: u64,
    /// Blocks of the log from its first needed record to its end, and of records that are on their way into it.
    pub(crate) used_blocks: u64,
    /// Pages with data that a crash now would make dirty.
    pub(crate) dirty_pages: u64,
    /// Of those, pages of batches under way.
    pub(crate) flying_pages: u64,
}

impl Capacity {
    /// The part of the log that may be destaged before anything of it is released, in blocks: a quarter of the room
    /// kept for steps, since two windows may be under way and intents come on top.
    pub(crate) fn window_blocks(&self) -> u64 {
        ((self.step_blocks() as f64 / (4.0 * (1.0 + self.intent_blocks_per_page))) as u64).max(8)
    }

    /// The most pages that one record takes, so that no record is a step by itself.
    pub(crate) fn record_pages_max(&self) -> u64 {
        (self.blocks / 16).min(self.pages / 16).clamp(1, 256)
    }

    /// How full it is; 1 is full.
    pub(crate) fn level(&self, usage: &Usage) -> f64 {
        let memory = usage.pages as f64 / self.pages as f64;
        memory.max(self.log_blocks(usage) / (self.blocks - self.step_blocks()).max(1) as f64)
    }

    /// Whether only the oldest record may be destaged, because a batch of `pages` pages out of turn could leave it no
    /// room. The intents of batches under way are counted as if none were in the log yet.
    pub(crate) fn is_tight(&self, usage: &Usage, pages: u64) -> bool {
        let k = self.intent_blocks_per_page;
        let coming = k * usage.flying_pages as f64 + (1.0 + k) * pages as f64;
        k > 0.0 && self.log_blocks(usage) + coming > (self.blocks - self.blocks / 16) as f64
    }

    /// Whether there is room for the intents of `pages` pages that have failed before, and for another attempt.
    pub(crate) fn has_room_for_retry(&self, usage: &Usage, pages: u64) -> bool {
        usage.used_blocks as f64 + 2.0 * self.intent_blocks_per_page * pages as f64 <= self.blocks as f64
    }

    /// The blocks that must be there to destage everything.
    fn log_blocks(&self, usage: &Usage) -> f64 {
        let intents = usage.dirty_pages as f64 * self.intent_blocks_per_page;
        let back = usage.dirty_pages.saturating_sub(usage.flying_pages) as f64;
        usage.used_blocks as f64 + (intents - back).max(0.0)
    }

    fn step_blocks(&self) -> u64 {
        self.blocks / 8
    }
}

/// How fast writers are admitted, pages per second, where `rate` pages per second are destaged; none while the level is
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

/// The pages destaged per second while there was something to destage, smoothed.
#[derive(Debug)]
pub(crate) struct DestageRate {
    pages_per_s: f64,
    measured: bool,
    pages: u64,
    busy: Nanos,
    /// When it began to be busy, or was last looked at.
    since: Option<Nanos>,
}

/// How long a measurement lasts at least.
const MEASURE_MIN: Nanos = Nanos::from_millis(50);
/// The weight of the newest measurement: about half a second is remembered.
const NEWEST_WEIGHT: f64 = 0.1;
/// What is believed until something was measured: 1 MiB/s, below any drive.
const UNKNOWN_PAGES_PER_S: f64 = 256.0;

impl Default for DestageRate {
    fn default() -> DestageRate {
        DestageRate {
            pages_per_s: UNKNOWN_PAGES_PER_S,
            measured: false,
            pages: 0,
            busy: Nanos::ZERO,
            since: None,
        }
    }
}

impl DestageRate {
    /// The rate, pages per second.
    pub(crate) fn pages_per_s(&self) -> f64 {
        self.pages_per_s
    }

    /// A batch begins.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.since.get_or_insert(now);
    }

    /// A batch of `pages` pages has ended; `busy` says whether others are under way.
    pub(crate) fn end(&mut self, now: Nanos, pages: u64, busy: bool) {
        let since = self.since.expect("a batch that ends has begun");
        self.busy += now.saturating_sub(since);
        self.since = busy.then_some(now);
        self.pages += pages;
        if self.busy >= MEASURE_MIN && self.pages > 0 {
            let newest = self.pages as f64 / self.busy.as_secs_f64();
            let weight = if self.measured { NEWEST_WEIGHT } else { 1.0 };
            self.pages_per_s += weight * (newest - self.pages_per_s);
            (self.measured, self.pages, self.busy) = (true, 0, Nanos::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Capacity = Capacity { pages: 1000, blocks: 8000, intent_blocks_per_page: 2.0 };

    #[test]
    fn the_fuller_of_memory_and_log_counts() {
        let usage = |pages, used_blocks, dirty_pages, flying_pages| Usage {
            pages,
            used_blocks,
            dirty_pages,
            flying_pages,
        };
        assert_eq!(CAPACITY.level(&usage(0, 0, 0, 0)), 0.0);
        assert_eq!(CAPACITY.level(&usage(500, 600, 500, 0)), 0.5);
        assert_eq!(CAPACITY.level(&usage(100, 7000, 100, 0)), 7100.0 / 7000.0);
        assert_eq!(CAPACITY.level(&usage(100, 7000, 100, 60)), 7160.0 / 7000.0);
        // Mirrors need no room for intents.
        let mirrors = Capacity { intent_blocks_per_page: 0.0, ..CAPACITY };
        assert_eq!(mirrors.level(&usage(100, 3500, 100, 100)), 0.5);
        assert!(!mirrors.is_tight(&usage(100, 7999, 100, 100), 100));
    }

    #[test]
    fn the_oldest_finds_room_whatever_is_destaged_out_of_turn() {
        // Pages are admitted up to the limit, then destaged out of turn as far as that is allowed; nothing is released.
        // Then power fails, and all of them are dirty again: in the order of the log there is room for everything.
        let (k, batch) = (CAPACITY.intent_blocks_per_page as u64, CAPACITY.window_blocks());
        let mut usage = Usage::default();
        while CAPACITY.level(&usage) < 1.0 {
            usage.dirty_pages += 1;
            usage.used_blocks += 2;
        }
        let mut out_of_turn = 0;
        while !CAPACITY.is_tight(&usage, batch) {
            usage.used_blocks += k * batch;
            out_of_turn += batch;
        }
        assert!(out_of_turn > 0 && out_of_turn < usage.dirty_pages);
        while usage.dirty_pages > 0 {
            assert!(usage.used_blocks + k <= CAPACITY.blocks, "{usage:?}");
            usage.used_blocks = usage.used_blocks + k - 2;
            usage.dirty_pages -= 1;
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

    #[test]
    fn idle_time_does_not_count_as_slowness() {
        let mut rate = DestageRate::default();
        rate.begin(Nanos::from_secs(1));
        rate.begin(Nanos::from_secs(2));
        rate.end(Nanos::from_secs(2), 1000, true);
        assert_eq!(rate.pages_per_s(), 1000.0);
        rate.end(Nanos::from_secs(3), 1000, false);
        rate.begin(Nanos::from_secs(100));
        rate.end(Nanos::from_secs(101), 1000, false);
        assert!((rate.pages_per_s() - 1000.0).abs() < 1e-9);
    }
}
