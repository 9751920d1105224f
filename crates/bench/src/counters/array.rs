//! What an array's volumes did, from two answers of its control socket.

use serde::{Deserialize, Serialize};
use tier0_api::IoReport;
use tier0_stats::{IoStats, OpStats};

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct ArraySample(IoReport);

/// What a volume did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeUse {
    /// The volume.
    pub name: String,
    /// Reads.
    pub reads: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// 95th percentile of the read latency at the array, milliseconds; `None` without reads.
    pub read_p95_ms: Option<f64>,
    /// Writes.
    pub writes: u64,
    /// Bytes that they wrote.
    pub write_bytes: u64,
    /// As for reads.
    pub write_p95_ms: Option<f64>,
    /// Flushes.
    pub flushes: u64,
    /// Requests that failed.
    pub errors: u64,
}

/// What an array did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrayUse {
    /// By volume, of those that did anything.
    pub volumes: Vec<VolumeUse>,
    /// Why it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

impl ArrayUse {
    /// It could not be asked.
    pub(crate) fn unknown(why: String) -> ArrayUse {
        ArrayUse { volumes: Vec::new(), not_measured: Some(why) }
    }

    /// All volumes together: reads, bytes read, writes, bytes written; none where it was not measured.
    pub fn total(&self) -> Option<[u64; 4]> {
        let sum = |of: fn(&VolumeUse) -> u64| self.volumes.iter().map(of).sum();
        self.not_measured.is_none().then(|| {
            [
                sum(|volume| volume.reads),
                sum(|volume| volume.read_bytes),
                sum(|volume| volume.writes),
                sum(|volume| volume.write_bytes),
            ]
        })
    }
}

impl ArraySample {
    pub(crate) fn new(report: IoReport) -> ArraySample {
        ArraySample(report)
    }

    /// What was done until `later`.
    pub(crate) fn since(&self, later: &ArraySample) -> ArrayUse {
        if later.0.at_ns < self.0.at_ns {
            return ArrayUse::unknown("the array was restarted in the meantime".to_owned());
        }
        let earlier: Vec<_> = self
            .0
            .pools
            .iter()
            .flat_map(|pool| pool.volumes.iter().map(|volume| (&pool.name, volume)))
            .collect();
        let volumes =
            later.0.pools.iter().flat_map(|pool| pool.volumes.iter().map(|volume| (&pool.name, volume)));
        let used = volumes.map(|(pool, volume)| {
            let same = earlier.iter().find(|(of, one)| *of == pool && one.name == volume.name);
            let io = same.map_or_else(|| volume.io.clone(), |(_, one)| volume.io.since(&one.io));
            VolumeUse::of(&volume.name, &io)
        });
        ArrayUse { volumes: used.filter(VolumeUse::is_busy).collect(), not_measured: None }
    }
}

impl VolumeUse {
    fn of(name: &str, io: &IoStats) -> VolumeUse {
        let p95 = |op: &OpStats| op.latencies.quantile(0.95).map(|latency| latency.as_millis_f64());
        VolumeUse {
            name: name.to_owned(),
            reads: io.read.count,
            read_bytes: io.read.bytes,
            read_p95_ms: p95(&io.read),
            writes: io.write.count,
            write_bytes: io.write.bytes,
            write_p95_ms: p95(&io.write),
            flushes: io.flush.count,
            errors: io.errors(),
        }
    }

    fn is_busy(&self) -> bool {
        self.reads + self.writes + self.flushes + self.errors > 0
    }
}

#[cfg(test)]
mod tests {
    use tier0_api::{NamedIo, PoolIo};
    use tier0_stats::{IoRecorder, Op};
    use tier0_units::Nanos;

    use super::*;

    fn sample(at_ns: u64, volumes: &[(&str, &IoRecorder)]) -> ArraySample {
        let named = |(name, recorder): &(&str, &IoRecorder)| NamedIo {
            name: (*name).into(),
            io: recorder.snapshot(),
        };
        let pool = PoolIo {
            name: "pool0".into(),
            volumes: volumes.iter().map(named).collect(),
            ..PoolIo::default()
        };
        ArraySample::new(IoReport { at_ns, pools: vec![pool] })
    }

    #[test]
    fn volumes_are_differences_of_two_answers() {
        let (data, idle) = (IoRecorder::default(), IoRecorder::default());
        data.ended(Op::Read, 8192, || Nanos::from_millis(1), true);
        let before = sample(1, &[("data", &data), ("idle", &idle)]);
        data.ended(Op::Read, 8192, || Nanos::from_millis(4), true);
        data.ended(Op::Write, 4096, || Nanos::from_millis(2), true);
        let after = sample(2, &[("data", &data), ("idle", &idle)]);
        let used = before.since(&after);
        assert_eq!(used.total(), Some([1, 8192, 1, 4096]));
        assert_eq!(used.volumes.len(), 1, "idle volumes are left out");
        let p95 = used.volumes[0].read_p95_ms.expect("there was a read");
        assert!((3.9..4.1).contains(&p95), "{p95}");
    }

    #[test]
    fn an_array_that_was_restarted_was_not_measured() {
        let data = IoRecorder::default();
        let used = sample(9, &[("data", &data)]).since(&sample(5, &[("data", &data)]));
        assert_eq!(used.total(), None);
        assert!(used.not_measured.is_some_and(|why| why.contains("restarted")));
    }
}
