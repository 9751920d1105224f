//! Counters of requests: what a volume or a drive has done since the array started.

use serde::{Deserialize, Serialize};
use tier0_units::Nanos;

use crate::Latencies;

/// Requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpStats {
    /// How many have ended, with an error or without.
    pub count: u64,
    /// Bytes of those that have ended well.
    pub bytes: u64,
    /// How many have ended with an error.
    pub errors: u64,
    /// The sum of their latencies, in nanoseconds: per second of time it is the mean number of requests under way.
    pub time_ns: u64,
    /// How long they took.
    pub latencies: Latencies,
}

/// Requests by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoStats {
    /// Reads.
    pub read: OpStats,
    /// Writes with payload.
    pub write: OpStats,
    /// Discards and writes of zeros.
    pub discard: OpStats,
    /// Flushes.
    pub flush: OpStats,
}

impl OpStats {
    fn merge(&mut self, other: &OpStats) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.time_ns += other.time_ns;
        self.latencies.merge(&other.latencies);
    }

    fn since(&self, earlier: &OpStats) -> OpStats {
        OpStats {
            count: self.count.saturating_sub(earlier.count),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            errors: self.errors.saturating_sub(earlier.errors),
            time_ns: self.time_ns.saturating_sub(earlier.time_ns),
            latencies: self.latencies.since(&earlier.latencies),
        }
    }

    /// The mean latency; none where nothing has ended.
    pub fn mean(&self) -> Option<Nanos> {
        self.time_ns.checked_div(self.count).map(Nanos)
    }
}

impl IoStats {
    /// Adds those of another shard.
    pub fn merge(&mut self, other: &IoStats) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.discard.merge(&other.discard);
        self.flush.merge(&other.flush);
    }

    /// What has come since `earlier`, which is an older state of the same counters. Where they are smaller now than then,
    /// they began anew in between, and all of them is new.
    #[must_use]
    pub fn since(&self, earlier: &IoStats) -> IoStats {
        if self.count() < earlier.count() {
            return self.clone();
        }
        IoStats {
            read: self.read.since(&earlier.read),
            write: self.write.since(&earlier.write),
            discard: self.discard.since(&earlier.discard),
            flush: self.flush.since(&earlier.flush),
        }
    }

    /// Forgets the distributions: the counts stay.
    pub fn drop_latencies(&mut self) {
        self.all_mut().for_each(|op| op.latencies = Latencies::default());
    }

    /// Forgets distributions that are not of all requests that were counted.
    pub fn drop_partial_latencies(&mut self) {
        let partial = self.all_mut().filter(|op| op.latencies.count() != op.count);
        partial.for_each(|op| op.latencies = Latencies::default());
    }

    /// Requests of all kinds.
    pub fn count(&self) -> u64 {
        self.all().map(|op| op.count).sum()
    }

    /// Requests of all kinds that ended with an error.
    pub fn errors(&self) -> u64 {
        self.all().map(|op| op.errors).sum()
    }

    /// The sum of all latencies, in nanoseconds.
    pub fn time_ns(&self) -> u64 {
        self.all().map(|op| op.time_ns).sum()
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut OpStats> {
        [&mut self.read, &mut self.write, &mut self.discard, &mut self.flush].into_iter()
    }

    fn all(&self) -> impl Iterator<Item = &OpStats> {
        [&self.read, &self.write, &self.discard, &self.flush].into_iter()
    }
}
