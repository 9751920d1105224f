//! Counters of one thread.

use std::cell::RefCell;

use hdrhistogram::Histogram;
use tier0_units::Nanos;

use crate::io::{IoStats, OpStats};
use crate::latencies::Latencies;

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A read.
    Read,
    /// A write with payload.
    Write,
    /// A discard, or a write of zeros.
    Discard,
    /// A flush.
    Flush,
}

/// Counts the requests of one volume or drive in one shard. A distribution takes its memory (about 20 KiB) when the first
/// request of its kind ends.
#[derive(Debug, Default)]
pub struct IoRecorder([RefCell<Counts>; 4]);

#[derive(Debug, Default)]
struct Counts {
    count: u64,
    bytes: u64,
    errors: u64,
    time_ns: u64,
    latencies: Option<Box<Histogram<u64>>>,
}

/// Significant decimal digits of a latency: buckets are at most 1 % wide.
const DIGITS: u8 = 2;
/// What takes longer counts as this long.
const LATENCY_MAX: Nanos = Nanos::from_secs(3600);

impl IoRecorder {
    /// When a request begins, by this clock.
    #[inline]
    pub fn began(clock: impl FnOnce() -> Nanos) -> Nanos {
        if cfg!(feature = "silent") { Nanos::ZERO } else { clock() }
    }

    /// A request has ended: how many bytes it was to move, how long it took, and whether it did.
    #[inline]
    pub fn ended(&self, op: Op, bytes: u64, latency: impl FnOnce() -> Nanos, is_ok: bool) {
        if !cfg!(feature = "silent") {
            self.count(op, bytes, latency(), is_ok);
        }
    }

    fn count(&self, op: Op, bytes: u64, latency: Nanos, is_ok: bool) {
        let mut counts = self.0[op as usize].borrow_mut();
        counts.count += 1;
        match is_ok {
            true => counts.bytes += bytes,
            false => counts.errors += 1,
        }
        counts.time_ns += latency.0;
        let latencies = counts.latencies.get_or_insert_with(|| {
            let mut fresh = Histogram::new(DIGITS).expect("two digits are allowed");
            fresh.auto(true);
            Box::new(fresh)
        });
        latencies.record(latency.min(LATENCY_MAX).0).expect("it grows to what it is given");
    }

    /// What it has come to.
    pub fn snapshot(&self) -> IoStats {
        let of = |op: Op| self.0[op as usize].borrow().snapshot();
        IoStats { read: of(Op::Read), write: of(Op::Write), discard: of(Op::Discard), flush: of(Op::Flush) }
    }
}

impl Counts {
    fn snapshot(&self) -> OpStats {
        let recorded = self.latencies.iter().flat_map(|latencies| latencies.iter_recorded());
        let latencies: Vec<(u64, u64)> =
            recorded.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect();
        OpStats {
            count: self.count,
            bytes: self.bytes,
            errors: self.errors,
            time_ns: self.time_ns,
            latencies: Latencies::from(latencies),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shards_have_counted_adds_up_and_travels() {
        let (one, other) = (IoRecorder::default(), IoRecorder::default());
        for latency in 1..=1000 {
            one.ended(Op::Read, 4096, || Nanos::from_micros(latency), true);
            other.ended(Op::Read, 8192, || Nanos::from_micros(1000 + latency), latency % 10 != 0);
        }
        other.ended(Op::Flush, 0, || Nanos::from_secs(5000), true);
        let mut all = one.snapshot();
        all.merge(&other.snapshot());
        assert_eq!((all.read.count, all.read.errors, all.read.bytes), (2000, 100, 1000 * 4096 + 900 * 8192));
        assert_eq!((all.count(), all.errors(), all.write.count), (2001, 100, 0));
        for (share, exact) in [(0.001, 2.0), (0.5, 1000.0), (0.99, 1980.0), (1.0, 2000.0)] {
            let told = all.read.latencies.quantile(share).expect("there are some").0 as f64 / 1000.0;
            assert!((0.0..0.011).contains(&((told - exact) / exact)), "{share}: {told} us");
        }
        assert_eq!(all.read.mean(), Some(Nanos(1_000_500)));
        let longest = all.flush.latencies.max().expect("one").0 as f64;
        assert!((longest / LATENCY_MAX.0 as f64 - 1.0).abs() < 0.01);
        let text = serde_json::to_string(&all).expect("JSON");
        assert_eq!(serde_json::from_str::<IoStats>(&text).expect("the same"), all);
    }

    #[test]
    fn an_interval_is_a_difference() {
        let recorder = IoRecorder::default();
        recorder.ended(Op::Write, 512, || Nanos(7_000), true);
        let before = recorder.snapshot();
        recorder.ended(Op::Write, 1024, || Nanos(90_000), true);
        let since = recorder.snapshot().since(&before);
        assert_eq!((since.write.count, since.write.bytes, since.time_ns()), (1, 1024, 90_000));
        assert_eq!(since.write.latencies.count(), 1);
        // A server that was started anew counts from zero.
        assert_eq!(before.since(&recorder.snapshot()), before);
    }
}
