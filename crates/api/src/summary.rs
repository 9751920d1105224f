//! Counters in a few figures, for people and for JSON.

use serde::{Deserialize, Serialize};
use tier0_stats::{IoStats, OpStats};
use tier0_units::Nanos;

/// Requests of one kind in a few figures. Latencies are in nanoseconds; none where no request has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OpSummary {
    /// How many have ended, with an error or without.
    pub count: u64,
    /// Bytes of those that have ended well.
    pub bytes: u64,
    /// How many have ended with an error.
    pub errors: u64,
    /// The sum of their latencies: per second of time it is the mean number of requests under way.
    pub time_ns: u64,
    /// The mean latency.
    pub mean_ns: Option<u64>,
    /// The median.
    pub p50_ns: Option<u64>,
    /// What 99 % did not exceed.
    pub p99_ns: Option<u64>,
    /// What 99.9 % did not exceed.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// Requests by kind in a few figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IoSummary {
    /// Reads.
    pub read: OpSummary,
    /// Writes with payload.
    pub write: OpSummary,
    /// Discards and writes of zeros.
    pub discard: OpSummary,
    /// Flushes.
    pub flush: OpSummary,
}

impl From<&OpStats> for OpSummary {
    fn from(stats: &OpStats) -> OpSummary {
        let nanos = |latency: Option<Nanos>| latency.map(|latency| latency.0);
        let quantile = |share| nanos(stats.latencies.quantile(share));
        OpSummary {
            count: stats.count,
            bytes: stats.bytes,
            errors: stats.errors,
            time_ns: stats.time_ns,
            mean_ns: nanos(stats.mean()),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: nanos(stats.latencies.max()),
        }
    }
}

impl From<&IoStats> for IoSummary {
    fn from(stats: &IoStats) -> IoSummary {
        IoSummary {
            read: (&stats.read).into(),
            write: (&stats.write).into(),
            discard: (&stats.discard).into(),
            flush: (&stats.flush).into(),
        }
    }
}
