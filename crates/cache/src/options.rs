//! How much a write cache may use, when it destages, and how its ring must be.

use tier0_journal::{Region, Settings};
use tier0_units::{ByteCount, Nanos, PAGE_SECTORS};

use crate::level::{Capacity, frame_blocks_max, intent_page_bytes};

/// Blocks of a region in front of the ring proper.
const HEADER_BLOCKS: u64 = 2;

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

/// How the ring of a write cache is to be set up, in regions of this many sectors: its frames are so short that none of
/// them keeps the log from being emptied. Nothing of it is stored.
pub fn ring_settings(region_sectors: u64) -> Settings {
    let blocks = (region_sectors / PAGE_SECTORS).saturating_sub(HEADER_BLOCKS);
    Settings { frame_sectors_max: frame_blocks_max(blocks) * PAGE_SECTORS, ..Settings::default() }
}

/// The smallest regions for the ring of a write cache, in sectors, where rows have so many parity columns and data pages:
/// the log takes a page, and destages it even if that fails once.
pub fn ring_sectors_min(parity_columns: u32, row_pages: u32) -> u64 {
    let intent_page_bytes = intent_page_bytes(parity_columns, row_pages);
    let works = |sectors: &u64| {
        let blocks = sectors / PAGE_SECTORS - HEADER_BLOCKS;
        Capacity { pages: u64::MAX, blocks, intent_page_bytes }.takes_a_page()
    };
    let mut sizes = (Region::SECTORS_MIN..).step_by(PAGE_SECTORS as usize);
    sizes.find(works).expect("a log that is large enough takes a page")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_a_few_blocks_is_enough() {
        assert_eq!(ring_sectors_min(0, 1), Region::SECTORS_MIN);
        // Beside two blocks of headers. One page with its frame 2, F 2, I(1) 2 or 3, g = I(1) − 1, a sixteenth.
        assert_eq!(ring_sectors_min(1, 16), (2 + 2 + 1 + 2 + 2 * 2) * PAGE_SECTORS);
        assert_eq!(ring_sectors_min(2, 96), (2 + 2 + 2 + 2 + 2 * 3) * PAGE_SECTORS);
    }

    #[test]
    fn large_logs_have_frames_of_256_kib() {
        assert_eq!(ring_settings(1 << 20).frame_sectors_max, 512);
        assert_eq!(ring_settings(80).frame_sectors_max, 16);
    }
}
