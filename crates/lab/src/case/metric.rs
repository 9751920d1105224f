//! The figures of a case's report by the names that studies use.

use tier0_workload::stats::Tally;

use super::CaseReport;
use crate::study::Metric;

impl CaseReport {
    /// A figure; nothing where a database has none of that name, or had no such I/O. I/Os are those of the counted volumes.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        let (reads, writes) = (Sums::of(&self.io.reads), Sums::of(&self.io.writes));
        let all = reads.and(&writes);
        let seconds = self.database.measured.as_secs_f64();
        match metric {
            Metric::Tps => Some(self.per_s),
            Metric::Tpm => Some(self.counted_per_s * 60.0),
            Metric::ResponseMs => Some(self.database.response_ms),
            Metric::CpuPercent => Some(self.database.cpu * 100.0),
            Metric::Iops => Some(all.ios / seconds),
            Metric::MegabytesPerS => Some(all.bytes / seconds / 1e6),
            Metric::LatencyMs => ratio(all.waited_ms, all.ios),
            Metric::ReadLatencyMs => ratio(reads.waited_ms, reads.ios),
            Metric::WriteLatencyMs => ratio(writes.waited_ms, writes.ios),
            Metric::P99Ms => {
                let mut merged = self.io.reads.clone();
                merged.merge(&self.io.writes);
                (all.ios > 0.0).then(|| merged.latency_at(0.99).0 as f64 / 1e6)
            }
            Metric::ReadPercent => ratio(reads.ios * 100.0, all.ios),
            Metric::ReadBytesPercent => ratio(reads.bytes * 100.0, all.bytes),
            Metric::ReadKib => ratio(reads.bytes / 1024.0, reads.ios),
            Metric::WriteKib => ratio(writes.bytes / 1024.0, writes.ios),
            Metric::ReadHitPercent => self.work.read_hits.map(|share| share * 100.0),
            Metric::FlashHitPercent => self.work.flash_hits.map(|share| share * 100.0),
            Metric::DelayedWritesPercent
            | Metric::ForcedFlushPercent
            | Metric::HighWatermarkFlushPercent
            | Metric::IdleFlushPercent => None,
        }
    }

    /// Half the width of the 95 % interval that the simulation leaves a figure, as a share of it, where that is known.
    pub fn half_width(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Tps | Metric::Tpm if self.per_s == self.database.per_s => Some(self.database.half_width),
            _ => None,
        }
    }
}

/// Some I/Os in sum.
struct Sums {
    ios: f64,
    bytes: f64,
    waited_ms: f64,
}

impl Sums {
    fn of(tally: &Tally) -> Sums {
        let ios = tally.ios() as f64;
        Sums { ios, bytes: tally.bytes().0 as f64, waited_ms: tally.latency_ns_mean() * ios / 1e6 }
    }

    fn and(&self, other: &Sums) -> Sums {
        Sums {
            ios: self.ios + other.ios,
            bytes: self.bytes + other.bytes,
            waited_ms: self.waited_ms + other.waited_ms,
        }
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
