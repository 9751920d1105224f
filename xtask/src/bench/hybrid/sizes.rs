//! What is how large, and where it lies: the same for every stack.

/// The disks' model.
pub(super) const DISK: &str = "nl-7k2";
/// Of the SSD.
pub(super) const SSD: &str = "ssd-sas-400gb";
/// Disks in RAID 0.
pub(super) const DISKS: u64 = 2;

const MIB_SECTORS: u64 = 2048;
/// What tier0 has in memory, its least: its share of an array's least of 64 MiB.
pub(super) const MEMORY_MIB: u64 = 16;
/// Pools of an array of the least memory that have such a share.
pub(super) const POOLS: u64 = 4;
/// tier0's log is this part of the cache.
const LOG_PART: u64 = 8;
/// The cache is this part of the working set. The metadata of dm-cache (5 MiB) and of bcache lie in it as well.
const CACHE_PART: u64 = 8;

/// Sizes by the working set.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) working_set_mib: u64,
}

impl Sizes {
    pub(super) fn of(working_set_mib: u64) -> Sizes {
        Sizes { working_set_mib }
    }

    /// What each stack has of the SSD; tier0 less, by what it has in memory.
    pub(super) fn cache_mib(self) -> u64 {
        self.working_set_mib / CACHE_PART
    }

    pub(super) fn log_mib(self) -> u64 {
        self.cache_mib() / LOG_PART
    }

    pub(super) fn flash_cache_mib(self) -> u64 {
        self.cache_mib() - self.log_mib() - MEMORY_MIB
    }

    pub(super) fn disk_sectors(self) -> u64 {
        self.working_set_mib * MIB_SECTORS / DISKS
    }

    pub(super) fn ssd_sectors(self) -> u64 {
        self.cache_mib() * MIB_SECTORS
    }
}
