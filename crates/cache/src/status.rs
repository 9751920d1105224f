//! How a write cache stands.

use tier0_units::Nanos;
use tier0_world::IoError;

use crate::Flushing;

/// What the destager is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Nothing is dirty.
    Idle,
    /// There is room: pages wait for overwrites and neighbours until they have aged.
    Coalescing,
    /// Destages by need, harder the fuller it is; writers do not notice.
    Pressing,
    /// Writers are admitted as fast as destaging makes room.
    Throttling,
}

impl Stage {
    /// Its name in a status report.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Idle => "idle",
            Stage::Coalescing => "coalescing",
            Stage::Pressing => "pressing",
            Stage::Throttling => "throttling",
        }
    }
}

/// The state of a write cache at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteBackStatus {
    /// What the destager is doing.
    pub stage: Stage,
    /// Dirty pages, those of zeros included.
    pub dirty_pages: u64,
    /// Memory that the data of dirty pages takes, with what lies beside it in the same buffers.
    pub dirty_bytes: u64,
    /// Bytes of the log from the first record that is needed to its end.
    pub log_used_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Share of memory or log in use, whichever is more, the room for destaging included; 1 is full.
    pub level: f64,
    /// How full memory and log are, each by itself, the watermarks, and what was destaged why.
    pub flushing: Flushing,
    /// Pages destaged per second while there was something to destage, lately.
    pub destage_pages_per_s: f64,
    /// Pages written by hosts so far, zeros included.
    pub written_pages: u64,
    /// Pages destaged so far.
    pub destaged_pages: u64,
    /// Batches destaged so far.
    pub batches: u64,
    /// Time that writers spent being delayed so far, summed over writers.
    pub delayed: Nanos,
    /// Batches that failed so far; their pages stay dirty and are tried again.
    pub failures: u64,
    /// Why the last batch failed, until one succeeds.
    pub last_failure: Option<IoError>,
    /// Extents whose pages could not be destaged and are tried again alone.
    pub failed_extents: u64,
    /// Why nothing can be written any more, if the log has failed.
    pub log_failure: Option<IoError>,
}
