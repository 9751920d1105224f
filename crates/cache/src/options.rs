//! How much a write cache may use, and when it destages.

use tier0_units::{ByteCount, Nanos};

/// The limits of one write cache. Nothing of it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBackOptions {
    /// Memory for the data of dirty pages.
    pub memory_max: ByteCount,
    /// How long a page may stay dirty without need, so that overwrites and neighbours meet.
    pub age_max: Nanos,
    /// Up to this share of memory or log in use, in percent, only what has aged is destaged.
    pub low_percent: u8,
    /// From this share on, in percent, writers are delayed. Above `low_percent`.
    pub high_percent: u8,
    /// Batches under way at once, at least 1.
    pub batches_max: usize,
    /// Pages of a batch, at least 1; less where log or memory are small.
    pub batch_pages_max: usize,
}

impl Default for WriteBackOptions {
    /// 256 MiB; 10 s; from 30 % on by need, from 70 % on with delays; 4 batches of up to 512 pages (2 MiB).
    fn default() -> WriteBackOptions {
        WriteBackOptions {
            memory_max: ByteCount::mib(256),
            age_max: Nanos::from_secs(10),
            low_percent: 30,
            high_percent: 70,
            batches_max: 4,
            batch_pages_max: 512,
        }
    }
}
