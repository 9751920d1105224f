//! Counters and levels of the caches of a pool.

use serde::{Deserialize, Serialize};

/// The switches of a pool over the caches of its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheSwitches {
    /// Whether volumes may use the read cache.
    pub read: bool,
    /// Whether volumes may use the write cache. If not, every volume acknowledges as with
    /// [`WriteCache::Off`](tier0_units::WriteCache::Off).
    pub write: bool,
}

impl Default for CacheSwitches {
    /// Both on.
    fn default() -> CacheSwitches {
        CacheSwitches { read: true, write: true }
    }
}

/// Batches that were destaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Flushed {
    /// Their pages of 4 KiB, those of zeros included.
    pub pages: u64,
    /// How many.
    pub batches: u64,
}

/// What was destaged since the start, by cause, and the writes that were delayed. The counters of lanes and shards add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
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
    #[serde(flatten)]
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
    /// Adds those of another lane or array.
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

    /// How long a delayed write waited, on average, in milliseconds; none where none was delayed.
    pub fn delay_ms_mean(&self) -> Option<f64> {
        (self.delayed_writes > 0).then(|| self.delayed_ns as f64 / self.delayed_writes as f64 / 1e6)
    }
}

/// What a read cache has done since the start, and how it stands. Those of shards add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReadCacheStatus {
    /// Reads that were answered from pages that had been read.
    pub read_hits: u64,
    /// Reads that were answered from pages that had been written, dirty ones among them.
    pub write_hits: u64,
    /// Read-ahead hits: reads that were answered from pages that the cache had read ahead, at their first use.
    pub prefetch_hits: u64,
    /// Reads that needed a drive.
    pub misses: u64,
    /// Reads that went past the cache, because they are large.
    pub bypassed: u64,
    /// Pages that came in.
    pub inserted: u64,
    /// Pages of these that were read ahead.
    pub prefetched: u64,
    /// Pages that gave way to others.
    pub evicted: u64,
    /// What its pages hold, bytes.
    pub bytes: u64,
    /// What they may hold now, bytes.
    pub room_bytes: u64,
}

impl ReadCacheStatus {
    /// Reads that found their pages.
    pub fn hits(&self) -> u64 {
        self.read_hits + self.write_hits + self.prefetch_hits
    }

    /// Lookups: reads that the cache was asked for.
    pub fn lookups(&self) -> u64 {
        self.hits() + self.misses
    }

    /// Adds that of another array.
    pub fn merge(&mut self, other: &ReadCacheStatus) {
        self.read_hits += other.read_hits;
        self.write_hits += other.write_hits;
        self.prefetch_hits += other.prefetch_hits;
        self.misses += other.misses;
        self.bypassed += other.bypassed;
        self.inserted += other.inserted;
        self.prefetched += other.prefetched;
        self.evicted += other.evicted;
        self.bytes += other.bytes;
        self.room_bytes += other.room_bytes;
    }

    /// What has been done since `earlier`, which is an older state of the same cache, and how it stands now.
    #[must_use]
    pub fn since(&self, earlier: &ReadCacheStatus) -> ReadCacheStatus {
        ReadCacheStatus {
            read_hits: self.read_hits.saturating_sub(earlier.read_hits),
            write_hits: self.write_hits.saturating_sub(earlier.write_hits),
            prefetch_hits: self.prefetch_hits.saturating_sub(earlier.prefetch_hits),
            misses: self.misses.saturating_sub(earlier.misses),
            bypassed: self.bypassed.saturating_sub(earlier.bypassed),
            inserted: self.inserted.saturating_sub(earlier.inserted),
            prefetched: self.prefetched.saturating_sub(earlier.prefetched),
            evicted: self.evicted.saturating_sub(earlier.evicted),
            bytes: self.bytes,
            room_bytes: self.room_bytes,
        }
    }
}

/// What a flash cache has done since the start, and how it stands. Those of shards add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FlashCacheStatus {
    /// Reads that were answered.
    pub hits: u64,
    /// Reads that found not all of their pages.
    pub misses: u64,
    /// Lines whose content failed the check, or could not be read.
    pub read_errors: u64,
    /// Reads that took too long, and counted as misses.
    pub slow_reads: u64,
    /// Lines that were offered and not yet there.
    pub offered: u64,
    /// Lines of these that were taken in.
    pub admitted: u64,
    /// Lines that were refused because too much was written.
    pub refused_budget: u64,
    /// Lines that were dropped because too many waited.
    pub dropped_queue: u64,
    /// What was written of lines and of maps, bytes.
    pub written_bytes: u64,
    /// Lines that gave way to others.
    pub evicted: u64,
    /// Lines that were struck out.
    pub struck: u64,
    /// What its pages hold, bytes.
    pub bytes: u64,
    /// What they may hold, bytes.
    pub room_bytes: u64,
    /// What the devices have for which there is no use, because they have as many ways as there may be, bytes.
    pub unused_bytes: u64,
    /// What its tables take in memory, bytes.
    pub memory_bytes: u64,
    /// Devices that serve.
    pub devices: u64,
    /// Those of them that are not asked at the moment, because several reads in a row took too long.
    #[serde(default)]
    pub devices_paused: u64,
    /// Devices that failed or were too slow, and serve no more.
    pub devices_off: u64,
    /// Lines that devices held when they were opened.
    pub loaded_lines: u64,
}

impl FlashCacheStatus {
    /// Lookups: reads that the flash cache was asked for.
    pub fn lookups(&self) -> u64 {
        self.hits + self.misses
    }

    /// What is counted.
    fn counters(&mut self) -> [&mut u64; 12] {
        [
            &mut self.hits,
            &mut self.misses,
            &mut self.read_errors,
            &mut self.slow_reads,
            &mut self.offered,
            &mut self.admitted,
            &mut self.refused_budget,
            &mut self.dropped_queue,
            &mut self.written_bytes,
            &mut self.evicted,
            &mut self.struck,
            &mut self.loaded_lines,
        ]
    }

    /// What has been done since `earlier`, which is an older state of the same cache, and how it stands now.
    #[must_use]
    pub fn since(&self, earlier: &FlashCacheStatus) -> FlashCacheStatus {
        let (mut since, mut earlier) = (*self, *earlier);
        let pairs = since.counters().into_iter().zip(earlier.counters());
        pairs.for_each(|(now, then)| *now = now.saturating_sub(*then));
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_since_a_time() {
        let earlier = FlashCacheStatus { hits: 2, bytes: 10, ..FlashCacheStatus::default() };
        let now = FlashCacheStatus { hits: 5, misses: 1, bytes: 8, ..FlashCacheStatus::default() };
        let since = now.since(&earlier);
        assert_eq!((since.hits, since.misses, since.bytes), (3, 1, 8));
        let counts = |pages, delayed_writes| FlushCounts {
            idle: Flushed { pages, batches: 1 },
            forced: Flushed { pages: 1, batches: 1 },
            delayed_writes,
            delayed_ns: delayed_writes * 2_500_000,
            ..FlushCounts::default()
        };
        assert_eq!(counts(3, 2).all(), Flushed { pages: 4, batches: 2 });
        assert_eq!(counts(5, 2).since(&counts(3, 1)).all(), Flushed { pages: 2, batches: 0 });
        assert_eq!(counts(3, 2).delay_ms_mean(), Some(2.5));
        assert_eq!(FlushCounts::default().delay_ms_mean(), None);
    }
}
