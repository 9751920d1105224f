//! The latencies, operations and bytes of one kind of request.

use hdrhistogram::Histogram;
use tier0_units::{ByteCount, Nanos};

use crate::draw::IoKind;

/// Latencies above one hour are counted as one hour in the histogram (the exact maximum is kept beside it).
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Significant decimal digits of the histogram: a percentile is exact to 0.1 %.
const DIGITS: u8 = 3;

/// Counts of one kind of request: about 270 KiB, of which a run touches a few pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    histogram: Histogram<u64>,
    bytes: u64,
    latency_ns_sum: u128,
    latency_ns_min: u64,
    latency_ns_max: u64,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Tally {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS)
            .expect("1 ns to 1 h with 3 digits are bounds that a histogram accepts");
        Tally { histogram, bytes: 0, latency_ns_sum: 0, latency_ns_min: u64::MAX, latency_ns_max: 0 }
    }

    /// Counts an answered request.
    #[inline]
    pub fn record(&mut self, bytes: u64, latency: Nanos) {
        self.histogram.saturating_record(latency.0);
        self.bytes += bytes;
        self.latency_ns_sum += u128::from(latency.0);
        self.latency_ns_min = self.latency_ns_min.min(latency.0);
        self.latency_ns_max = self.latency_ns_max.max(latency.0);
    }

    /// Adds what another shard counted.
    pub fn merge(&mut self, other: &Tally) {
        self.histogram.add(&other.histogram).expect("all tallies have the same bounds");
        self.bytes += other.bytes;
        self.latency_ns_sum += other.latency_ns_sum;
        self.latency_ns_min = self.latency_ns_min.min(other.latency_ns_min);
        self.latency_ns_max = self.latency_ns_max.max(other.latency_ns_max);
    }

    /// Answered requests.
    pub fn ios(&self) -> u64 {
        self.histogram.len()
    }

    /// Transferred bytes.
    pub fn bytes(&self) -> ByteCount {
        ByteCount(self.bytes)
    }

    /// The mean latency in nanoseconds, exact; zero where nothing was counted.
    pub fn latency_ns_mean(&self) -> f64 {
        if self.ios() == 0 { 0.0 } else { self.latency_ns_sum as f64 / self.ios() as f64 }
    }

    /// The least latency; zero where nothing was counted.
    pub fn latency_min(&self) -> Nanos {
        Nanos(if self.ios() == 0 { 0 } else { self.latency_ns_min })
    }

    /// The greatest latency, exact.
    pub fn latency_max(&self) -> Nanos {
        Nanos(self.latency_ns_max)
    }

    /// The latency that a share `quantile` (0 to 1) of the requests does not exceed, exact to 0.1 %; zero where
    /// nothing was counted.
    pub fn latency_at(&self, quantile: f64) -> Nanos {
        Nanos(self.histogram.value_at_quantile(quantile).min(self.latency_ns_max))
    }

    /// Non-empty steps of the histogram: the greatest latency of the step, and its requests.
    pub fn steps(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.histogram.iter_recorded().map(|step| (Nanos(step.value_iterated_to()), step.count_at_value()))
    }
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
}

/// Reads and writes, counted apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindTally {
    /// Reads.
    pub read: Tally,
    /// Writes.
    pub write: Tally,
}

impl KindTally {
    /// The tally of that kind.
    #[inline]
    pub fn kind_mut(&mut self, kind: IoKind) -> &mut Tally {
        match kind {
            IoKind::Read => &mut self.read,
            IoKind::Write => &mut self.write,
        }
    }

    /// Adds what another shard or stream counted.
    pub fn merge(&mut self, other: &KindTally) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
    }

    /// Both kinds in one.
    pub fn both(&self) -> Tally {
        let mut both = self.read.clone();
        both.merge(&self.write);
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_shards_equal_one() {
        let (mut one, mut left, mut right) = (Tally::new(), Tally::new(), Tally::new());
        for n in 1..=10_000u64 {
            let latency = Nanos(n * n % 7_919_000 + 1);
            one.record(512, latency);
            let shard = if n % 3 == 0 { &mut left } else { &mut right };
            shard.record(512, latency);
        }
        left.merge(&right);
        assert_eq!(left.ios(), 10_000);
        assert_eq!(left, one);
    }

    #[test]
    fn percentiles_are_exact_to_a_thousandth() {
        let mut tally = Tally::new();
        (1..=100_000u64).for_each(|us| tally.record(0, Nanos::from_micros(us)));
        for (quantile, exact) in [(0.5, 50_000), (0.9, 90_000), (0.99, 99_000), (0.9999, 99_990)] {
            let found = tally.latency_at(quantile).0 as f64 / 1e3;
            assert!((found / f64::from(exact) - 1.0).abs() <= 0.001, "{quantile}: {found}");
        }
        assert_eq!(tally.latency_max(), Nanos::from_millis(100));
        assert_eq!(tally.latency_ns_mean(), 50_000_500.0);
    }

    #[test]
    fn extremes_are_kept() {
        let mut tally = Tally::new();
        assert_eq!((tally.latency_min(), tally.latency_at(0.99)), (Nanos(0), Nanos(0)));
        tally.record(0, Nanos(0));
        tally.record(0, Nanos::from_secs(100_000));
        assert_eq!((tally.latency_min(), tally.latency_max()), (Nanos(0), Nanos::from_secs(100_000)));
        assert_eq!(tally.ios(), 2);
    }
}
