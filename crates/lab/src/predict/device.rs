//! Storage of which only a profile is known (`tier0 lab profile`): latency by how many requests are under way.
//!
//! A request makes progress at a rate of 1 ÷ latency, by the latency that the profile has for the requests that are under way at
//! the moment. So at a constant number it takes that latency, and the storage answers as many requests as the profile says: the
//! flow-equivalent server of queueing theory (Chandy, Herzog and Woo, IBM J. Res. Dev. 19(1), 1975). Between two probes latency is
//! interpolated; beyond the last one the rate is that of the last. Times scatter around the mean as the profile's 99th percentile
//! at its first probe says.
//!
//! It has no places: neighbouring sectors are as far apart as others. Sizes of requests do not count either.

use std::cell::{Cell, RefCell};
use std::pin::pin;

use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use tier0_block::{BlockTarget, TargetInfo};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::sync::Notify;
use tier0_world::{Buf, BufMut, IoError, Random, World};

use crate::search::{Sample, SearchResult};

/// The stream of random numbers of a storage.
const STREAM: u64 = 0x0070_726F_6669_6C65;
/// The 99th percentile of an exponential distribution with mean 1: ln 100.
const P99_EXPONENTIAL: f64 = 4.605;

/// What `tier0 lab profile --json` prints, as far as it is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageProfile {
    /// What was profiled.
    pub target: String,
    /// Its size.
    pub target_bytes: u64,
    /// What was asked for, such as "8KiB, 70 % reads, durable writes"; none where an older version has written the profile.
    #[serde(default)]
    pub requests: Option<String>,
    /// The probes.
    pub found: SearchResult,
}

impl StorageProfile {
    /// Whether it says enough; the error is the fact and the remedy.
    pub(super) fn check(&self) -> Result<(), String> {
        let probes = &self.found.probes;
        let good = |ms: f64| ms.is_finite() && ms > 0.0;
        if let Some(requests) = self.requests.as_ref().filter(|requests| !requests.contains("durable writes"))
        {
            return Err(format!(
                "the profile has {requests}: the log waits for durable writes; run \"tier0 lab profile\" with --durable"
            ));
        }
        match probes.first() {
            None => Err("the profile has no probes; run \"tier0 lab profile\" again".into()),
            Some(first) if first.outstanding != 1 => {
                Err("the profile has no probe with one request; run \"tier0 lab profile\" again".into())
            }
            Some(_) if probes.iter().any(|probe| !probe.read_latency_ms.is_some_and(good)) => {
                Err("the profile has no reads; run \"tier0 lab profile\" with --read 70".into())
            }
            Some(_) if probes.iter().any(|probe| !probe.write_latency_ms.is_some_and(good)) => Err(
                "the profile has no writes; run \"tier0 lab profile\" with --read 70 --durable --overwrite"
                    .into(),
            ),
            Some(_) => Ok(()),
        }
    }
}

/// A kind of request.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
}

impl Kind {
    fn of(self, sample: &Sample) -> f64 {
        let latency = match self {
            Kind::Read => sample.read_latency_ms,
            Kind::Write => sample.write_latency_ms,
        };
        latency.unwrap_or(sample.latency_ms)
    }
}

/// The storage, in a world.
pub(super) struct ProfiledStorage {
    world: World,
    sectors: SectorCount,
    probes: Vec<Sample>,
    /// The share of a request's work that is the same for all.
    constant: f64,
    under_way: Cell<u32>,
    changed: Notify,
    random: RefCell<Random>,
}

impl ProfiledStorage {
    /// The storage of a checked profile, with room for so many sectors.
    pub(super) fn new(world: &World, profile: &StorageProfile, sectors: SectorCount) -> ProfiledStorage {
        let mut probes = profile.found.probes.clone();
        probes.sort_by_key(|probe| probe.outstanding);
        let spread = probes[0].p99_ms / probes[0].latency_ms;
        ProfiledStorage {
            world: world.clone(),
            sectors,
            constant: ((P99_EXPONENTIAL - spread) / (P99_EXPONENTIAL - 1.0)).clamp(0.0, 1.0),
            probes,
            under_way: Cell::new(0),
            changed: Notify::new(),
            random: RefCell::new(world.random(STREAM)),
        }
    }

    /// Mean latency with so many requests under way, milliseconds.
    fn latency_ms(&self, kind: Kind, under_way: u32) -> f64 {
        let at = self.probes.partition_point(|probe| probe.outstanding < under_way);
        let Some(above) = self.probes.get(at) else {
            let last = self.probes.last().expect("a checked profile has probes");
            return kind.of(last) * f64::from(under_way) / f64::from(last.outstanding);
        };
        let Some(below) = at.checked_sub(1).map(|below| &self.probes[below]) else { return kind.of(above) };
        let share =
            f64::from(under_way - below.outstanding) / f64::from(above.outstanding - below.outstanding);
        kind.of(below) + (kind.of(above) - kind.of(below)) * share
    }

    async fn serve(&self, kind: Kind) {
        let scatter = self.random.borrow_mut().exponential(1.0 - self.constant);
        let mut left = self.constant + scatter;
        self.under_way.set(self.under_way.get() + 1);
        self.changed.notify_all();
        while left > 0.0 {
            let latency_s = self.latency_ms(kind, self.under_way.get()) / 1e3;
            let began = self.world.now();
            // At least a nanosecond, so that time goes on.
            let end = began.saturating_add(Nanos::from_secs_f64(left * latency_s).max(Nanos(1)));
            let (end, changed) = (pin!(self.world.sleep_until(end)), pin!(self.changed.wait()));
            match select(end, changed).await {
                Either::Left(_) => break,
                Either::Right(_) => {
                    left -= self.world.now().saturating_sub(began).as_secs_f64() / latency_s;
                }
            }
        }
        self.under_way.set(self.under_way.get() - 1);
        self.changed.notify_all();
    }
}

impl BlockTarget for ProfiledStorage {
    fn info(&self) -> TargetInfo {
        TargetInfo { sectors: self.sectors, block_sectors: 1, volatile_cache: false }
    }

    async fn read(&self, _: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        self.serve(Kind::Read).await;
        (Ok(()), buf)
    }

    async fn write(&self, _: Lba, _: Buf, _: bool) -> Result<(), IoError> {
        self.serve(Kind::Write).await;
        Ok(())
    }

    async fn flush(&self) -> Result<(), IoError> {
        Ok(())
    }

    async fn discard(&self, _: Lba, _: u64) -> Result<(), IoError> {
        Ok(())
    }

    async fn write_zeroes(&self, _: Lba, _: u64, _: bool, _: bool) -> Result<(), IoError> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::rc::Rc;

    use tier0_workload::run::LoadRun;
    use tier0_workload::spec::{Arrival, LoadSpec, RunLimits, StreamSpec};
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    /// A storage that serves four requests at once: 1 ms up to four, and a thousand more for each above.
    pub(crate) fn profile() -> StorageProfile {
        let sample = |outstanding: u32, read_ms: f64| {
            serde_json::json!({ "outstanding": outstanding, "iops": 0.0, "megabytes_per_s": 0.0, "latency_ms": read_ms,
                "read_latency_ms": read_ms, "write_latency_ms": 2.0 * read_ms, "p99_ms": 2.0 * read_ms })
        };
        let text = serde_json::json!({ "target": "disk.img", "latency_limit_ms": 20.0, "target_bytes": 1u64 << 30,
            "found": { "at_limit": sample(8, 2.0), "end": "limit",
                "probes": [sample(1, 1.0), sample(4, 1.0), sample(8, 2.0), sample(16, 4.0)] } });
        serde_json::from_value(text).expect("the form of a profile")
    }

    /// Requests per second and their mean latency in ms with so many under way.
    fn measured(outstanding: u32, read_percent: f64) -> (f64, f64) {
        let runtime = VirtualRuntime::new(3, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let storage = Rc::new(ProfiledStorage::new(&world, &profile(), SectorCount(1 << 21)));
        let stream =
            StreamSpec { arrival: Arrival::queue_depth(outstanding), read_percent, ..StreamSpec::default() };
        let load = LoadSpec::single(stream, RunLimits::time(Nanos::from_secs(20)));
        let report = runtime
            .run(async move { LoadRun::new(&world, storage, load).expect("a load that fits").run().await });
        (report.all.iops, report.all.latency_ns_mean / 1e6)
    }

    #[test]
    fn a_profile_gives_back_what_it_was_made_of() {
        // Also between probes and beyond the last.
        for (outstanding, ms) in [(1, 1.0), (3, 1.0), (6, 1.5), (16, 4.0), (64, 16.0)] {
            let (iops, latency_ms) = measured(outstanding, 100.0);
            assert!((latency_ms / ms - 1.0).abs() < 0.03, "{outstanding}: {latency_ms} ms instead of {ms}");
            let rate = f64::from(outstanding) / ms * 1e3;
            assert!((iops / rate - 1.0).abs() < 0.03, "{outstanding}: {iops} instead of {rate}");
        }
        let (_, writes_ms) = measured(1, 0.0);
        assert!((writes_ms - 2.0).abs() < 0.06, "{writes_ms}");
    }

    #[test]
    fn a_profile_that_says_too_little_is_refused() {
        let wrong = |change: &dyn Fn(&mut StorageProfile)| {
            let mut profile = profile();
            change(&mut profile);
            profile.check().expect_err("it says too little")
        };
        assert!(wrong(&|profile| profile.found.probes.clear()).contains("no probes"));
        assert!(wrong(&|profile| _ = profile.found.probes.remove(0)).contains("one request"));
        assert!(wrong(&|profile| profile.found.probes[1].write_latency_ms = None).contains("--durable"));
        assert!(wrong(&|profile| profile.found.probes[0].read_latency_ms = None).contains("no reads"));
    }
}
