//! A tally in the figures that people compare.

use serde::{Deserialize, Serialize};
use tier0_units::Nanos;

use super::Tally;

/// One step of a printed histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramBucket {
    /// The greatest latency of the step.
    pub latency_ns_max: u64,
    /// Requests above the step before and up to here.
    pub ios: u64,
}

/// Throughput and response times of some requests. Latencies are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Answered requests.
    pub ios: u64,
    /// Transferred bytes.
    pub bytes: u64,
    /// Answered requests per second.
    pub iops: f64,
    /// Millions of bytes per second.
    pub megabytes_per_s: f64,
    /// The mean, exact.
    pub latency_ns_mean: f64,
    /// The least, exact.
    pub latency_ns_min: u64,
    /// The median; percentiles are exact to 0.1 %.
    pub latency_ns_p50: u64,
    /// The 90th percentile.
    pub latency_ns_p90: u64,
    /// The 99th percentile.
    pub latency_ns_p99: u64,
    /// The 99.9th percentile.
    pub latency_ns_p99_9: u64,
    /// The 99.99th percentile.
    pub latency_ns_p99_99: u64,
    /// The greatest, exact.
    pub latency_ns_max: u64,
    /// Non-empty steps, ten to a decade: bounds at 10^(k/10) ns.
    pub histogram: Vec<HistogramBucket>,
}

impl Summary {
    /// Sums `tally` up over `measured` of time.
    pub fn of(tally: &Tally, measured: Nanos) -> Summary {
        let per_s = |count: f64| if measured == Nanos::ZERO { 0.0 } else { count / measured.as_secs_f64() };
        let at = |quantile| tally.latency_at(quantile).0;
        Summary {
            ios: tally.ios(),
            bytes: tally.bytes().0,
            iops: per_s(tally.ios() as f64),
            megabytes_per_s: per_s(tally.bytes().0 as f64 / 1e6),
            latency_ns_mean: tally.latency_ns_mean(),
            latency_ns_min: tally.latency_min().0,
            latency_ns_p50: at(0.5),
            latency_ns_p90: at(0.9),
            latency_ns_p99: at(0.99),
            latency_ns_p99_9: at(0.999),
            latency_ns_p99_99: at(0.9999),
            latency_ns_max: tally.latency_max().0,
            histogram: histogram(tally),
        }
    }

    /// The same, or nothing where nothing was counted.
    pub fn of_some(tally: &Tally, measured: Nanos) -> Option<Summary> {
        (tally.ios() > 0).then(|| Summary::of(tally, measured))
    }
}

fn histogram(tally: &Tally) -> Vec<HistogramBucket> {
    let mut buckets: Vec<HistogramBucket> = Vec::new();
    let (mut step, mut bound) = (0, 1);
    for (latency, ios) in tally.steps() {
        while latency.0 > bound {
            step += 1;
            bound = libm::exp10(f64::from(step) / 10.0).round() as u64;
        }
        match buckets.last_mut() {
            Some(bucket) if bucket.latency_ns_max == bound => bucket.ios += ios,
            _ => buckets.push(HistogramBucket { latency_ns_max: bound, ios }),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_out_in_their_units() {
        let mut tally = Tally::new();
        (0..1000).for_each(|_| tally.record(8192, Nanos::from_millis(2)));
        let summary = Summary::of(&tally, Nanos::from_secs(10));
        assert_eq!((summary.iops, summary.megabytes_per_s), (100.0, 0.8192));
        assert_eq!((summary.latency_ns_mean, summary.latency_ns_p99_99), (2e6, 2_000_000));
        assert_eq!(summary.histogram, [HistogramBucket { latency_ns_max: 2_511_886, ios: 1000 }]);
        assert_eq!(Summary::of_some(&Tally::new(), Nanos::from_secs(1)), None);
    }

    #[test]
    fn the_histogram_loses_nothing() {
        let mut tally = Tally::new();
        (0..10_000u64).for_each(|n| tally.record(0, Nanos(n * 977)));
        let buckets = histogram(&tally);
        assert_eq!(buckets.iter().map(|bucket| bucket.ios).sum::<u64>(), 10_000);
        assert!(buckets.windows(2).all(|pair| pair[0].latency_ns_max < pair[1].latency_ns_max));
    }
}
