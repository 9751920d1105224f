//! Why pages are destaged, and how often writers had to wait for it, counted under the names that storage arrays have for
//! it: idle, high-watermark and forced flushing, and beside them what callers demand.
//!
//! A batch has the cause that held when it was begun, however full the cache is when it ends; it is counted when it has
//! ended well, so that the causes add up to all that was destaged. Where several hold, the last of [`FlushCause`] counts.

/// Why a batch was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushCause {
    Idle,
    HighWatermark,
    Forced,
    Demanded,
}

/// Batches that were destaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Their pages of 4 KiB, those of zeros included.
    pub pages: u64,
    /// How many.
    pub batches: u64,
}

/// What was destaged since the start, by cause, and the writes that were delayed. The counters of lanes and shards add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushCounts {
    /// The level was below the low watermark: pages had aged, or what had failed before was tried again. One batch at a time,
    /// for half of the time at most.
    pub idle: Flushed,
    /// The level was at the low watermark or above, below the high one, and no writer waited for room. The fuller, the more
    /// batches at once.
    pub high_watermark: Flushed,
    /// Writers were being delayed: the level was at the high watermark or above, or a writer waited for room.
    pub forced: Flushed,
    /// A caller waited for it, however full the cache was: all was to be destaged (for a drain, a clone, a scrub, another log,
    /// or after a crash), or these extents were (a volume's write cache is off, or space was to be reclaimed). Where there
    /// is no room in the log but for its oldest pages in turn, those that are destaged for want of space are no demand.
    pub demanded: Flushed,
    /// Writes that were delayed because memory or log was short of room, and wait no more. One that is longer than a record
    /// of the log takes counts once for each record that was delayed.
    pub delayed_writes: u64,
    /// For how long, in nanoseconds, summed over them.
    pub delayed_ns: u64,
}

/// How full a write cache is, and what it has flushed: that of a lane in a shard, or several together.
///
/// Utilisation is a share of what writers get, and 1 is full. Of several caches it is that of the fullest, for each delays
/// its own writers. The level of a cache is the greater of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flushing {
    /// Share of the memory for dirty pages that is in use.
    pub memory_utilisation: f64,
    /// Share of the log that is in use, the room that destaging its pages needs counted as used.
    pub log_utilisation: f64,
    /// The level from which on pages are destaged by need.
    pub watermark_low: f64,
    /// The level from which on writers are delayed.
    pub watermark_high: f64,
    /// Counters since the start.
    pub counts: FlushCounts,
}

impl Flushed {
    fn merge(&mut self, other: Flushed) {
        self.pages += other.pages;
        self.batches += other.batches;
    }

    fn since(self, earlier: Flushed) -> Flushed {
        Flushed {
            pages: self.pages.saturating_sub(earlier.pages),
            batches: self.batches.saturating_sub(earlier.batches),
        }
    }
}

impl FlushCounts {
    /// Adds those of another lane or shard.
    pub fn merge(&mut self, other: &FlushCounts) {
        self.idle.merge(other.idle);
        self.high_watermark.merge(other.high_watermark);
        self.forced.merge(other.forced);
        self.demanded.merge(other.demanded);
        self.delayed_writes += other.delayed_writes;
        self.delayed_ns += other.delayed_ns;
    }

    /// What has come since `earlier`, which is an older state of the same counters. Where something is less now than then,
    /// it is nothing.
    #[must_use]
    pub fn since(&self, earlier: &FlushCounts) -> FlushCounts {
        FlushCounts {
            idle: self.idle.since(earlier.idle),
            high_watermark: self.high_watermark.since(earlier.high_watermark),
            forced: self.forced.since(earlier.forced),
            demanded: self.demanded.since(earlier.demanded),
            delayed_writes: self.delayed_writes.saturating_sub(earlier.delayed_writes),
            delayed_ns: self.delayed_ns.saturating_sub(earlier.delayed_ns),
        }
    }

    /// All that was destaged, whatever for.
    pub fn all(&self) -> Flushed {
        let mut all = self.idle;
        [self.high_watermark, self.forced, self.demanded].into_iter().for_each(|cause| all.merge(cause));
        all
    }

    /// A batch with so many pages has ended well.
    pub(crate) fn add_batch(&mut self, cause: FlushCause, pages: u64) {
        let of_cause = match cause {
            FlushCause::Idle => &mut self.idle,
            FlushCause::HighWatermark => &mut self.high_watermark,
            FlushCause::Forced => &mut self.forced,
            FlushCause::Demanded => &mut self.demanded,
        };
        of_cause.merge(Flushed { pages, batches: 1 });
    }
}

impl Flushing {
    /// Adds another lane or shard.
    pub fn merge(&mut self, other: &Flushing) {
        self.memory_utilisation = self.memory_utilisation.max(other.memory_utilisation);
        self.log_utilisation = self.log_utilisation.max(other.log_utilisation);
        // All caches of an array have the same.
        self.watermark_low = self.watermark_low.max(other.watermark_low);
        self.watermark_high = self.watermark_high.max(other.watermark_high);
        self.counts.merge(&other.counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_shards_add_up_and_the_fullest_is_told() {
        let mut counts = FlushCounts { delayed_writes: 2, delayed_ns: 5_000_000, ..FlushCounts::default() };
        counts.add_batch(FlushCause::Idle, 3);
        counts.add_batch(FlushCause::HighWatermark, 10);
        counts.add_batch(FlushCause::Forced, 20);
        counts.add_batch(FlushCause::Demanded, 1);
        let cache = |memory: f64, log: f64| Flushing {
            memory_utilisation: memory,
            log_utilisation: log,
            watermark_low: 0.3,
            watermark_high: 0.7,
            counts,
        };
        let mut all = Flushing::default();
        [cache(0.5, 0.1), cache(0.2, 0.4)].iter().for_each(|one| all.merge(one));
        assert_eq!((all.memory_utilisation, all.log_utilisation), (0.5, 0.4));
        assert_eq!((all.watermark_low, all.watermark_high), (0.3, 0.7));
        assert_eq!(all.counts.all(), Flushed { pages: 68, batches: 8 });
        assert_eq!(all.counts.high_watermark, Flushed { pages: 20, batches: 2 });
        assert_eq!(all.counts.since(&counts), counts);
    }
}
