//! What a read cache has done, and how it stands.

/// What a read cache has done since the start, and how it stands. Those of shards add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

    /// Adds that of another shard.
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
}
