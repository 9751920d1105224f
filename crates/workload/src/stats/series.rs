//! The run, interval by interval: what an average over the run would hide.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tier0_units::Nanos;

use crate::draw::IoKind;
use crate::spec::INTERVALS_MAX;

/// One kind of request in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalKind {
    /// Answered requests.
    pub ios: u64,
    /// Transferred bytes.
    pub bytes: u64,
    /// The mean latency.
    pub latency_ns_mean: f64,
    /// The 99th percentile, exact to 1 %.
    pub latency_ns_p99: u64,
    /// The greatest latency, exact.
    pub latency_ns_max: u64,
}

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// Where it begins, seconds from the start of the measurement.
    pub start_s: f64,
    /// How long it is; the last one may be shorter.
    pub length_s: f64,
    /// Its reads.
    pub read: IntervalKind,
    /// Its writes.
    pub write: IntervalKind,
}

impl IntervalRow {
    /// Answered requests per second.
    pub fn iops(&self) -> f64 {
        if self.length_s > 0.0 { (self.read.ios + self.write.ios) as f64 / self.length_s } else { 0.0 }
    }

    /// The mean latency of all requests in nanoseconds; nothing where none was answered.
    pub fn latency_ns_mean(&self) -> Option<f64> {
        let ios = (self.read.ios + self.write.ios) as f64;
        let sum = |kind: &IntervalKind| kind.latency_ns_mean * kind.ios as f64;
        (ios > 0.0).then(|| (sum(&self.read) + sum(&self.write)) / ios)
    }
}

/// Sorts answers into intervals by the time of the answer.
#[derive(Debug)]
pub struct Series {
    start: Nanos,
    interval: Nanos,
    /// Where the current interval begins and ends.
    from: Nanos,
    until: Nanos,
    read: Current,
    write: Current,
    rows: Vec<IntervalRow>,
}

/// The current interval of one kind.
#[derive(Debug)]
struct Current {
    histogram: Histogram<u32>,
    bytes: u64,
    latency_ns_sum: u64,
    latency_ns_max: u64,
}

impl Series {
    /// A series whose first interval begins at `start`.
    pub fn new(start: Nanos, interval: Nanos) -> Series {
        assert!(interval > Nanos::ZERO, "an interval has a length");
        let until = start.saturating_add(interval);
        Series {
            start,
            interval,
            from: start,
            until,
            read: Current::new(),
            write: Current::new(),
            rows: Vec::new(),
        }
    }

    /// Counts a request answered at `at`, which is not before the answers counted so far.
    #[inline]
    pub fn record(&mut self, kind: IoKind, bytes: u64, latency: Nanos, at: Nanos) {
        if at >= self.until {
            self.advance(at);
        }
        match kind {
            IoKind::Read => self.read.record(bytes, latency),
            IoKind::Write => self.write.record(bytes, latency),
        }
    }

    /// Closes the intervals that end by `at`. Beyond [`INTERVALS_MAX`] rows it keeps nothing more, which only
    /// a run without a time limit can reach.
    fn advance(&mut self, at: Nanos) {
        while at >= self.until && (self.rows.len() as u64) < INTERVALS_MAX {
            self.close(self.until);
            self.from = self.until;
            self.until = self.until.saturating_add(self.interval);
        }
    }

    fn close(&mut self, end: Nanos) {
        let row = IntervalRow {
            start_s: self.from.saturating_sub(self.start).as_secs_f64(),
            length_s: end.saturating_sub(self.from).as_secs_f64(),
            read: self.read.take(),
            write: self.write.take(),
        };
        self.rows.push(row);
    }

    /// The rows up to `end`; the last one may be a shorter one.
    pub fn finish(mut self, end: Nanos) -> Vec<IntervalRow> {
        self.advance(end);
        if end > self.from && (self.rows.len() as u64) < INTERVALS_MAX {
            self.close(end);
        }
        self.rows
    }
}

impl Current {
    fn new() -> Current {
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 2)
            .expect("1 ns to 1 h with 2 digits are bounds that a histogram accepts");
        Current { histogram, bytes: 0, latency_ns_sum: 0, latency_ns_max: 0 }
    }

    #[inline]
    fn record(&mut self, bytes: u64, latency: Nanos) {
        self.histogram.saturating_record(latency.0);
        self.bytes += bytes;
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(latency.0);
        self.latency_ns_max = self.latency_ns_max.max(latency.0);
    }

    fn take(&mut self) -> IntervalKind {
        let ios = self.histogram.len();
        if ios == 0 {
            return IntervalKind::default();
        }
        let kind = IntervalKind {
            ios,
            bytes: self.bytes,
            latency_ns_mean: self.latency_ns_sum as f64 / ios as f64,
            latency_ns_p99: self.histogram.value_at_quantile(0.99).min(self.latency_ns_max),
            latency_ns_max: self.latency_ns_max,
        };
        self.histogram.reset();
        (self.bytes, self.latency_ns_sum, self.latency_ns_max) = (0, 0, 0);
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_fall_into_their_intervals_and_silence_has_its_rows() {
        let second = Nanos::from_secs(1);
        let mut series = Series::new(Nanos::from_secs(10), second);
        series.record(IoKind::Read, 512, Nanos(100), Nanos::from_secs(10));
        series.record(IoKind::Read, 512, Nanos(300), Nanos(10_999_999_999));
        series.record(IoKind::Write, 1024, Nanos(50), Nanos::from_secs(13));
        let rows = series.finish(Nanos(13_500_000_000));
        let shape: Vec<_> = rows.iter().map(|r| (r.start_s, r.length_s, r.read.ios, r.write.ios)).collect();
        assert_eq!(shape, [(0.0, 1.0, 2, 0), (1.0, 1.0, 0, 0), (2.0, 1.0, 0, 0), (3.0, 0.5, 0, 1)]);
        assert_eq!((rows[0].read.latency_ns_mean, rows[0].read.latency_ns_max), (200.0, 300));
        assert_eq!(
            (rows[3].iops(), rows[3].latency_ns_mean(), rows[1].latency_ns_mean()),
            (2.0, Some(50.0), None)
        );
    }

    #[test]
    fn an_exact_end_leaves_no_empty_row() {
        let series = Series::new(Nanos::ZERO, Nanos(10));
        assert_eq!(series.finish(Nanos(20)).len(), 2);
    }
}
