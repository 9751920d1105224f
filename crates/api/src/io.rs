//! What an array's volumes, groups of sets, log, tables and drives have done, with the distributions of their latencies.

use serde::{Deserialize, Serialize};
use tier0_stats::IoStats;

use crate::{FlashCacheStatus, Flushing, ReadCacheStatus, Throttling, TierIo};

/// Counters since the array started. For rates, the caller asks twice and subtracts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IoReport {
    /// When they were read, in nanoseconds since the array started.
    pub at_ns: u64,
    /// By pool.
    pub pools: Vec<PoolIo>,
}

/// A pool's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PoolIo {
    /// The pool.
    pub name: String,
    /// What hosts have asked of its volumes.
    pub volumes: Vec<NamedIo>,
    /// Connections of hosts to its volumes, those that have asked for most first; no more than [`CONNECTIONS_MAX`], the first
    /// [`CONNECTIONS_WITH_LATENCIES`] with distributions of their latencies.
    #[serde(default)]
    pub connections: Vec<ConnectionIo>,
    /// By volume: what connections asked of it that have ended.
    #[serde(default)]
    pub ended_connections: Vec<NamedIo>,
    /// Connections beyond those.
    #[serde(default)]
    pub connections_left_out: usize,
    /// What hosts have asked of the volumes of each group of sets, where groups have names.
    #[serde(default)]
    pub groups: Vec<NamedIo>,
    /// Records that went into the write log, as writes, by group where each has a lane: from the record's making until it was
    /// stable in every copy.
    #[serde(default)]
    pub log: Vec<NamedIo>,
    /// Batches of pages that went from memory to their sets, as writes, by group where each has a lane.
    #[serde(default)]
    pub destage: Vec<NamedIo>,
    /// What the read cache in memory has done; none where there is none.
    #[serde(default)]
    pub read_cache: Option<ReadCacheStatus>,
    /// What the read cache on flash has done; none where there is none.
    #[serde(default)]
    pub flash_cache: Option<FlashCacheStatus>,
    /// What the performance tier has done; none where nothing is placed and no plan was asked for.
    #[serde(default)]
    pub tier: Option<TierIo>,
    /// How full the write caches are, and why they destaged what they did, by group where each has a lane.
    #[serde(default)]
    pub flushing: Vec<NamedFlushing>,
    /// What the ceilings of volumes have held back, of volumes that have some.
    #[serde(default)]
    pub throttling: Vec<Throttling>,
    /// Slots' tables of checksums that memory did not have, as reads.
    #[serde(default)]
    pub tables: Vec<NamedIo>,
    /// What its drives have done: for hosts, destaging, metadata, rebuilds and scrubs.
    pub drives: Vec<NamedIo>,
}

/// The write caches of a lane, in all shards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedFlushing {
    /// Its name.
    pub name: String,
    /// How full they are, and what they have flushed.
    #[serde(flatten)]
    pub flushing: Flushing,
}

/// Connections that a report has of a pool.
pub const CONNECTIONS_MAX: usize = 4096;
/// Connections of which it has distributions of latencies, which are long.
pub const CONNECTIONS_WITH_LATENCIES: usize = 64;

/// A connection of a host to a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConnectionIo {
    /// The shard that serves it and its number there, such as `0.17`; never given twice while the array serves.
    pub id: String,
    /// The volume.
    pub volume: String,
    /// Who is at its other end: an address, or a process of this machine.
    pub peer: String,
    /// What it has asked, as long as it was connected. A long request counts as several.
    #[cfg_attr(test, schemars(with = "crate::schema::IoStats"))]
    pub io: IoStats,
}

/// A volume, a drive, or something else that is named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedIo {
    /// Its name.
    pub name: String,
    /// What it has done.
    #[cfg_attr(test, schemars(with = "crate::schema::IoStats"))]
    pub io: IoStats,
}
