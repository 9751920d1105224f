//! What the control task asks shards about the heat of extents, and what they answer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tier0_policy::tier::{Accesses, Histogram, Latencies};
use tier0_units::{ExtentId, SlotRef};
use tier0_world::sync::oneshot;

/// A request about the tier of a pool.
pub enum TierQuery {
    /// Which extents may move, and how hot all are. Shards count accesses from the first of these on.
    Report {
        /// What counts.
        rules: Arc<TierRules>,
        /// The answer.
        reply: oneshot::Sender<TierReport>,
    },
    /// How long hosts have waited for drives.
    Latencies {
        /// By group of sets, since the start.
        reply: oneshot::Sender<Vec<Latencies>>,
    },
    /// How often an extent of this shard was accessed.
    HeatOf {
        /// Which.
        extent: ExtentId,
        /// The answer.
        reply: oneshot::Sender<Accesses>,
    },
}

/// By which rules a shard reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TierRules {
    /// The fast group, where there is one.
    pub fast: Option<u32>,
    /// By volume: what counts of it. Others are left out.
    pub volumes: BTreeMap<u32, VolumeRule>,
    /// How many candidates are told of each kind.
    pub most: usize,
    /// What extents that lie in the fast group when a shard begins to count are worth.
    pub value_of_residents: f64,
}

/// What counts of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeRule {
    /// Whether its extents may be candidates.
    pub is_auto: bool,
    /// Those that may not, ascending.
    pub pinned: Vec<Range<u32>>,
    /// What a small write costs in its group, in I/Os of drives.
    pub small_write: f64,
}

/// What a shard knows of heat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TierReport {
    /// The hottest extents outside the fast group that may move, the hottest first.
    pub hot: Vec<HotExtent>,
    /// The coldest extents of the fast group that may move, the coldest first.
    pub cold: Vec<HotExtent>,
    /// All extents outside the fast group.
    pub slow: Histogram,
    /// All extents of the fast group.
    pub fast: Histogram,
    /// Requests that hosts have begun here since the start.
    pub requests: u64,
    /// Memory of the heat, bytes.
    pub memory_bytes: u64,
}

/// An extent and its heat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotExtent {
    /// Which.
    pub extent: ExtentId,
    /// Where it lies.
    pub slot: SlotRef,
    /// How often it was accessed.
    pub accesses: Accesses,
    /// What that has cost its volume's group, or would have cost it, in I/Os of drives.
    pub value: f64,
}

impl VolumeRule {
    /// Whether an extent of the volume may be a candidate.
    pub fn lets_move(&self, index: u32) -> bool {
        self.is_auto && !self.pinned.iter().any(|range| range.contains(&index))
    }

    /// The value of an extent.
    pub fn value(&self, accesses: Accesses) -> f64 {
        f64::from(accesses.reads) + f64::from(accesses.writes) * self.small_write
    }
}
