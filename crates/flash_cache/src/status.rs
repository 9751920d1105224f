//! What a flash cache has done, and how it stands.

/// What a flash cache has done since the start, and how it stands. Those of shards add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub devices_paused: u64,
    /// Devices that failed or were too slow, and serve no more.
    pub devices_off: u64,
    /// Lines that devices held when they were opened.
    pub loaded_lines: u64,
}

/// What a device of a flash cache can use of what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashRoom {
    /// Room for pages, bytes.
    pub used_bytes: u64,
    /// What is in no way, because there are as many ways as there may be, bytes.
    pub unused_bytes: u64,
}

impl FlashRoom {
    /// Whether a good part of it lies idle: more is lost by that than by making it anew, which empties it.
    pub fn is_outgrown(&self) -> bool {
        self.unused_bytes > self.used_bytes / 4
    }

    /// Adds that of another shard.
    #[must_use]
    pub fn with(self, other: FlashRoom) -> FlashRoom {
        FlashRoom {
            used_bytes: self.used_bytes + other.used_bytes,
            unused_bytes: self.unused_bytes + other.unused_bytes,
        }
    }
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

    /// How it stands.
    fn levels(&mut self) -> [&mut u64; 7] {
        [
            &mut self.bytes,
            &mut self.room_bytes,
            &mut self.unused_bytes,
            &mut self.memory_bytes,
            &mut self.devices,
            &mut self.devices_paused,
            &mut self.devices_off,
        ]
    }

    /// Adds that of another shard.
    pub fn merge(&mut self, other: &FlashCacheStatus) {
        let mut other = *other;
        self.counters().into_iter().zip(other.counters()).for_each(|(own, other)| *own += *other);
        self.levels().into_iter().zip(other.levels()).for_each(|(own, other)| *own += *other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up() {
        let earlier = FlashCacheStatus { hits: 2, bytes: 10, ..FlashCacheStatus::default() };
        let now = FlashCacheStatus { hits: 5, misses: 1, bytes: 8, ..FlashCacheStatus::default() };
        let mut sum = now;
        sum.merge(&earlier);
        assert_eq!((sum.hits, sum.bytes, sum.lookups()), (7, 18, 8));
    }
}
