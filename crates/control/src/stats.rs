//! What a pool has done since it started: what hosts asked of its volumes, and what log, tables and drives did for that.
//!
//! Each shard counts its own work; the control task adds them up for the status.

use std::collections::BTreeMap;

use tier0_api::ConnectionIo;
use tier0_cache::{Flushing, ReadCacheStatus};
use tier0_drive::DriveHandle;
use tier0_flash_cache::FlashCacheStatus;
use tier0_stats::IoStats;

/// Counters of a pool.
#[derive(Default)]
pub struct PoolStats {
    /// By the volume's number in the pool.
    pub volumes: BTreeMap<u32, IoStats>,
    /// By the volume's number in the pool: what its ceilings held back.
    pub held_back: BTreeMap<u32, HeldBack>,
    /// Connections to its volumes.
    pub connections: Vec<ConnectionIo>,
    /// By volume: what connections to it have asked that have ended.
    pub ended_connections: BTreeMap<String, IoStats>,
    /// By the drive's place and the guard that counts, of which most drives have one in each shard, and some share one; drives
    /// without are left out.
    drives: BTreeMap<(u32, usize), IoStats>,
    /// By lane of the write log: records that went into it, and batches that were destaged.
    pub lanes: BTreeMap<usize, LaneStats>,
    /// Slots' tables that were read.
    pub tables: IoStats,
    /// The read cache, where there is one.
    pub read_cache: Option<ReadCacheStatus>,
    /// The flash cache, where there may be one.
    pub flash_cache: Option<FlashCacheStatus>,
}

/// What the ceilings of a volume held back.
#[derive(Clone, Copy, Default)]
pub struct HeldBack {
    /// Requests that waited.
    pub requests: u64,
    /// How long they waited together, in nanoseconds.
    pub wait_ns: u64,
}

/// Counters of a lane.
#[derive(Default)]
pub struct LaneStats {
    /// Records that went into the log.
    pub log: IoStats,
    /// Batches that were destaged.
    pub destage: IoStats,
    /// How full its write cache is, and what was destaged why.
    pub flushing: Flushing,
}

impl PoolStats {
    /// Adds those of another shard.
    pub(crate) fn merge(&mut self, other: PoolStats) {
        for (number, stats) in &other.volumes {
            self.volumes.entry(*number).or_default().merge(stats);
        }
        for (number, held_back) in &other.held_back {
            let all = self.held_back.entry(*number).or_default();
            all.requests += held_back.requests;
            all.wait_ns += held_back.wait_ns;
        }
        self.connections.extend(other.connections);
        for (volume, stats) in &other.ended_connections {
            self.ended_connections.entry(volume.clone()).or_default().merge(stats);
        }
        self.drives.extend(other.drives);
        for (number, stats) in &other.lanes {
            let lane = self.lanes.entry(*number).or_default();
            lane.log.merge(&stats.log);
            lane.destage.merge(&stats.destage);
            lane.flushing.merge(&stats.flushing);
        }
        self.tables.merge(&other.tables);
        if let Some(other) = other.read_cache {
            self.read_cache.get_or_insert_default().merge(&other);
        }
        if let Some(other) = other.flash_cache {
            self.flash_cache.get_or_insert_default().merge(&other);
        }
    }

    /// Adds what a drive did through this handle.
    pub fn add_drive(&mut self, place: u32, drive: Option<&DriveHandle>) {
        if let Some(guard) = drive.and_then(|drive| drive.guard()) {
            self.drives.insert((place, guard.id()), guard.stats());
        }
    }

    /// What the drive of a place has done.
    pub(crate) fn of_drive(&self, place: u32) -> IoStats {
        let mut all = IoStats::default();
        self.drives.range((place, 0)..=(place, usize::MAX)).for_each(|(_, stats)| all.merge(stats));
        all
    }
}
