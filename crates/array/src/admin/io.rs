//! What an array's volumes and drives have done, with the distributions of their latencies.

use serde::{Deserialize, Serialize};
use tier0_stats::IoStats;

/// Counters since the array started. For rates, the caller asks twice and subtracts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoReport {
    /// When they were read, in nanoseconds since the array started.
    pub at_ns: u64,
    /// By pool.
    pub pools: Vec<PoolIo>,
}

/// A pool's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolIo {
    /// The pool.
    pub name: String,
    /// What hosts have asked of its volumes.
    pub volumes: Vec<NamedIo>,
    /// What its drives have done: for hosts, destaging, metadata, rebuilds and scrubs.
    pub drives: Vec<NamedIo>,
}

/// A volume or drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedIo {
    /// Its name.
    pub name: String,
    /// What it has done.
    pub io: IoStats,
}
