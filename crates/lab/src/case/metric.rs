//! The figures of a case's report by the names that studies use.

use tier0_workload::stats::Tally;

use super::CaseReport;
use crate::study::Metric;

impl CaseReport {
    /// A figure; nothing where a database has none of that name, or had no such I/O. I/Os are those of the counted volumes.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        let (reads, writes) = (&self.io.reads, &self.io.writes);
        let seconds = self.database.measured.as_secs_f64();
        let (ios, bytes) = (both(reads, writes, ios), both(reads, writes, bytes));
        match metric {
            Metric::Tps => Some(self.database.per_s),
            Metric::Tpm => Some(self.counted_per_s * 60.0),
            Metric::ResponseMs => Some(self.database.response_ms),
            Metric::CpuPercent => Some(self.database.cpu * 100.0),
            Metric::Iops => Some(ios / seconds),
            Metric::MegabytesPerS => Some(bytes / seconds / 1e6),
            Metric::LatencyMs => ratio(both(reads, writes, waited_ms), ios),
            Metric::ReadLatencyMs => ratio(waited_ms(reads), self::ios(reads)),
            Metric::WriteLatencyMs => ratio(waited_ms(writes), self::ios(writes)),
            Metric::P99Ms => {
                let mut all = reads.clone();
                all.merge(writes);
                (ios > 0.0).then(|| all.latency_at(0.99).0 as f64 / 1e6)
            }
            Metric::ReadPercent => ratio(self::ios(reads) * 100.0, ios),
            Metric::ReadBytesPercent => ratio(self::bytes(reads) * 100.0, bytes),
            Metric::ReadKib => ratio(self::bytes(reads) / 1024.0, self::ios(reads)),
            Metric::WriteKib => ratio(self::bytes(writes) / 1024.0, self::ios(writes)),
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
            Metric::Tps | Metric::Tpm => Some(self.database.half_width),
            _ => None,
        }
    }
}

fn ios(tally: &Tally) -> f64 {
    tally.ios() as f64
}

fn bytes(tally: &Tally) -> f64 {
    tally.bytes().0 as f64
}

fn waited_ms(tally: &Tally) -> f64 {
    tally.latency_ns_mean() * ios(tally) / 1e6
}

fn both(reads: &Tally, writes: &Tally, of: fn(&Tally) -> f64) -> f64 {
    of(reads) + of(writes)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
