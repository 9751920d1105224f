//! The profile of a target: how many I/Os per second it gives within a latency limit, measured in whatever world it
//! lives in.
//!
//! The same search as a study's, on anything that the load generator can drive: an NBD export, a file, a device, a
//! volume in virtual time. Each probe is a closed loop of its own; between probes nothing is under way. An array in virtual
//! time is settled before each as in a study.

use std::rc::Rc;

use serde::Serialize;
use tier0_array::Volume;
use tier0_block::BlockTarget;
use tier0_units::{Nanos, counted};
use tier0_workload::run::{LoadRun, RunError};
use tier0_workload::spec::{Arrival, LoadSpec, RunLimits, StreamSpec};
use tier0_workload::stats::LoadReport;
use tier0_world::World;

use crate::measure::sample;
use crate::search::{LimitSearch, SearchEnd, SearchPlan, SearchResult};
use crate::settle::{Course, Settled, measure, settle, writes_are_cached};

/// How to profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfilePlan {
    /// What is asked for; its arrival is replaced by closed loops.
    pub stream: StreamSpec,
    /// What is searched for.
    pub search: SearchPlan,
    /// Before each measurement. Where it is not given an array in virtual time is settled, and another target has a second.
    pub warm_up: Option<Nanos>,
    /// The length of each measurement at most. Where it is not given an array that was settled is measured for as many requests
    /// as in a study, and another target for 5 s.
    pub probe_time: Option<Nanos>,
    /// A measurement of a given length, or of a target that was not settled, ends early once the mean latencies are known this
    /// well; `None` for never.
    pub precision_percent: Option<f64>,
    /// The seed of the requests.
    pub seed: u64,
}

/// Before each measurement of a target that is not settled.
const WARM_UP: Nanos = Nanos::from_secs(1);
/// The length of its measurements.
const PROBE_TIME: Nanos = Nanos::from_secs(5);
/// The measurement of an array that was settled has at least as many requests as in a study,
const SETTLED_IOS_MIN: f64 = crate::study::IOS_DEFAULT as f64;
/// and lasts at least and at most so long.
const SETTLED_TIME: [Nanos; 2] = [Nanos::from_secs(2), Nanos::from_secs(60)];
/// Waves in which a write cache is destaged pass within this time,
const WAVES_TIME: Nanos = Nanos::from_secs(40);
/// or within so many requests, where these are many.
const WAVES_IOS: f64 = 150_000.0;

impl ProfilePlan {
    /// A search for `latency_limit_ms`, with what is usual for the target.
    pub fn new(stream: StreamSpec, latency_limit_ms: f64) -> ProfilePlan {
        ProfilePlan {
            stream,
            search: SearchPlan::new(latency_limit_ms),
            warm_up: None,
            probe_time: None,
            precision_percent: Some(2.0),
            seed: 1,
        }
    }

    /// The longest a probe of a target takes that is not settled.
    fn probe_time_max(&self) -> Nanos {
        self.warm_up.unwrap_or(WARM_UP).saturating_add(self.probe_time.unwrap_or(PROBE_TIME))
    }

    /// The load of a probe with so many requests under way. Each probe has requests of its own, over the same hot set: those of
    /// the probe before would be found in the buffers of drives and in caches.
    pub fn load(&self, outstanding: u32) -> LoadSpec {
        let stream = StreamSpec { arrival: Arrival::queue_depth(outstanding), ..self.stream.clone() };
        let time = self.probe_time.unwrap_or(PROBE_TIME);
        let limits = RunLimits { precision_percent: self.precision_percent, ..RunLimits::time(time) };
        let warm_up = self.warm_up.unwrap_or(WARM_UP);
        let seed = self.seed ^ u64::from(outstanding) << 32;
        LoadSpec { seed, placement_seed: Some(self.seed), warm_up, ..LoadSpec::single(stream, limits) }
    }

    /// The same on an array that was settled, and gave so many requests per second at last; `in_waves` says whether it writes into
    /// a write cache.
    fn load_when_settled(&self, load: &LoadSpec, iops: f64, in_waves: bool) -> LoadSpec {
        let [least, most] = SETTLED_TIME;
        let time_of = |ios: f64| Nanos::from_secs_f64(ios / iops.max(1.0));
        let waves = if in_waves { WAVES_TIME.min(time_of(WAVES_IOS)) } else { Nanos::ZERO };
        let time = time_of(SETTLED_IOS_MIN).max(waves).clamp(least, most);
        let limits = if self.probe_time.is_some() { load.limits } else { RunLimits::time(time) };
        LoadSpec { warm_up: Nanos::ZERO, limits, ..load.clone() }
    }
}

/// What a profile found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileReport {
    /// The limit, in milliseconds.
    pub latency_limit_ms: f64,
    /// Size of the target in bytes.
    pub target_bytes: u64,
    /// The target at the limit, and every probe.
    pub found: SearchResult,
    /// The array before and during each probe, in the order in which they were measured; nothing of a target that is not in virtual
    /// time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub array: Vec<ProbedArray>,
}

/// An array in virtual time at a probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbedArray {
    /// Outstanding requests.
    pub outstanding: u32,
    /// How it was settled; nothing where a given warm-up came before.
    pub settled: Option<Settled>,
    /// How the measurement went.
    pub course: Course,
}

/// Why a target could not be profiled.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The load does not fit it.
    #[error(transparent)]
    Load(#[from] RunError),
    /// It failed requests, or a probe was stopped.
    #[error("the probe with {outstanding} requests under way ended early ({fact}); check the target")]
    Ended {
        /// Outstanding requests.
        outstanding: u32,
        /// What ended it.
        fact: String,
    },
}

/// How far a profile is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileProgress {
    /// Probes done.
    pub done: usize,
    /// Outstanding requests of the probe that begins now.
    pub outstanding: u32,
    /// The last probe.
    pub last: Option<crate::search::Sample>,
    /// An estimate of what is left: the time of the probes that searches usually need beyond those done. Nothing in virtual time.
    pub left: Option<Nanos>,
}

/// Probes that most searches need.
const PROBES_USUAL: usize = 9;

/// Profiles `target`. `progress` is told before each probe.
///
/// # Errors
/// [`ProfileError`] where the load does not fit the target or the target fails.
pub async fn profile<T: BlockTarget + 'static>(
    world: &World,
    target: Rc<T>,
    plan: &ProfilePlan,
    progress: impl FnMut(&ProfileProgress),
) -> Result<ProfileReport, ProfileError> {
    let bytes = target.info().sectors.bytes().0;
    let time = (!world.is_virtual()).then(|| plan.probe_time_max());
    let probe = async |outstanding| {
        Ok((LoadRun::new(world, target.clone(), plan.load(outstanding))?.run().await, None))
    };
    search(plan, bytes, time, progress, probe).await
}

/// Profiles a volume of an array in virtual time, which is settled for each probe unless the plan gives a warm-up. `look` is told
/// what is done, and says whether to go on.
///
/// # Errors
/// As [`profile`].
pub async fn profile_array(
    world: &World,
    volume: &Volume,
    plan: &ProfilePlan,
    progress: impl FnMut(&ProfileProgress),
    look: impl Fn(&str) -> bool + Clone + 'static,
) -> Result<ProfileReport, ProfileError> {
    let mut is_fresh = true;
    let probe = async |outstanding| {
        let mut load = plan.load(outstanding);
        let mut settled = None;
        if plan.warm_up.is_none() {
            let done = settle(world, volume, &load, is_fresh, None, Box::new(look.clone())).await?;
            load = plan.load_when_settled(&load, done.iops, writes_are_cached(volume, &load));
            settled = Some(done);
        }
        is_fresh = false;
        let (report, course) = measure(world, volume, load, look.clone(), |_| {}).await?;
        Ok((report, Some(ProbedArray { outstanding, settled, course })))
    };
    search(plan, volume.info().sectors.bytes().0, None, progress, probe).await
}

/// Probes as the search asks for it.
async fn search(
    plan: &ProfilePlan,
    target_bytes: u64,
    probe_time: Option<Nanos>,
    mut progress: impl FnMut(&ProfileProgress),
    mut probe: impl AsyncFnMut(u32) -> Result<(LoadReport, Option<ProbedArray>), ProfileError>,
) -> Result<ProfileReport, ProfileError> {
    let mut search = LimitSearch::new(plan.search);
    let (mut done, mut last, mut array) = (0, None, Vec::new());
    while let Some(outstanding) = search.next() {
        let left = probe_time.map(|time| Nanos(PROBES_USUAL.saturating_sub(done).max(1) as u64 * time.0));
        progress(&ProfileProgress { done, outstanding, last, left });
        let (report, probed) = probe(outstanding).await?;
        check(&report, outstanding)?;
        let measured = sample(&report, outstanding);
        search.record(measured);
        array.extend(probed);
        (done, last) = (done + 1, Some(measured));
    }
    Ok(ProfileReport {
        latency_limit_ms: plan.search.latency_limit_ms,
        target_bytes,
        found: search.result().expect("a search measures at least once"),
        array,
    })
}

fn check(report: &LoadReport, outstanding: u32) -> Result<(), ProfileError> {
    if report.is_clean() {
        return Ok(());
    }
    let fact = report.errors.first.clone().unwrap_or_else(|| format!("{:?}", report.ended_by));
    Err(ProfileError::Ended { outstanding, fact })
}

impl ProfileReport {
    /// Whether the probes were of a steady state, in sentences of a line each; nothing of a target that is not in virtual time.
    pub fn steadiness(&self) -> Vec<String> {
        let Some(last) = self.array.last() else { return Vec::new() };
        let moved: Vec<&ProbedArray> =
            self.array.iter().filter(|probed| !probed.course.moved.is_empty()).collect();
        let mut lines = Vec::new();
        let rates = last.course.hit_rates().map_or(String::new(), |rates| format!("; {rates}"));
        lines.push(match &last.settled {
            Some(settled) => {
                format!("the array was settled for each probe; for the last {}{rates}", settled.words())
            }
            None => format!("the array had the given warm-up before each probe{rates}"),
        });
        if moved.is_empty() {
            return lines;
        }
        let all = counted(self.array.len() as u64, "probe");
        lines.push(format!("{} of {all} not in a steady state:", moved.len()));
        let of = |probed: &&ProbedArray| {
            format!("  {} outstanding: {}", probed.outstanding, probed.course.moved.join("; "))
        };
        lines.extend(moved.iter().map(of));
        lines
    }

    /// The result in a sentence.
    pub fn sentence(&self) -> String {
        let number = crate::record::format_number;
        let at = &self.found.at_limit;
        let limit = number(self.latency_limit_ms);
        match self.found.end {
            SearchEnd::Limit => format!(
                "{} IOPS ({} MB/s) at a mean latency of {limit} ms, interpolated between the probes with {} and more requests \
                 under way",
                number(at.iops),
                number(at.megabytes_per_s),
                at.outstanding
            ),
            SearchEnd::AboveFromTheStart => format!(
                "a single request takes {} ms, more than the limit of {limit} ms; raise the limit",
                number(at.worse_latency_ms())
            ),
            SearchEnd::NeverPassed => format!(
                "{} IOPS ({} MB/s) with {} requests under way, and still only {} ms; the limit of {limit} ms is out of \
                 reach",
                number(at.iops),
                number(at.megabytes_per_s),
                at.outstanding,
                number(at.worse_latency_ms())
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use tier0_drive::disk::{Datasheet, DiskModel, Geometry, SeekPoints};
    use tier0_drive::{Content, DiskDrive, DriveHandle};
    use tier0_units::SectorCount;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    fn disk(world: &World) -> DriveHandle {
        let seek = SeekPoints { single_track_ms: 0.2, average_ms: 3.0, full_stroke_ms: 6.0 };
        let parameters = Datasheet {
            name: "disk".into(),
            capacity: SectorCount(200_000_000),
            rpm: 15_000.0,
            surfaces: 4,
            outer_sectors_per_track: 1200,
            inner_sectors_per_track: 900,
            zones: 8,
            cylinders: None,
            seek_read: seek,
            seek_write: seek,
            head_switch: Nanos::from_micros(500),
            write_settle: Nanos::ZERO,
            controller_overhead: Nanos::from_micros(100),
            interface_bytes_per_s: 300e6,
            buffer: SectorCount(16_384),
            buffer_segments: 16,
            read_ahead: SectorCount(0),
            write_cache: false,
            queue_depth: 64,
        };
        let geometry = Geometry::new(parameters.parameters().expect("a disk")).expect("a disk");
        DriveHandle::new(DiskDrive::new(
            world,
            "disk",
            DiskModel::new(geometry, Nanos::ZERO),
            SectorCount(200_000_000),
            Content::memory(world),
        ))
    }

    fn found(limit_ms: f64) -> ProfileReport {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let plan = ProfilePlan {
                probe_time: Some(Nanos::from_secs(60)),
                ..ProfilePlan::new(StreamSpec { read_percent: 100.0, ..StreamSpec::default() }, limit_ms)
            };
            profile(&world, Rc::new(disk(&world)), &plan, |_| {}).await.expect("a disk can be profiled")
        })
    }

    #[test]
    fn a_disk_has_its_rate_at_the_limit() {
        let report = found(20.0);
        assert_eq!(report.found.end, SearchEnd::Limit);
        // Some 5 ms per request alone, less with reordering: 20 ms hold about four to eight requests.
        assert!((4..=12).contains(&report.found.at_limit.outstanding), "{report:?}");
        assert!((190.0..400.0).contains(&report.found.at_limit.iops), "{report:?}");
        let text = crate::report::profile(&report, None);
        assert!(text.contains("at a mean latency of 20 ms") && text.contains("beyond the limit"), "{text}");
    }

    #[test]
    fn a_limit_that_cannot_be_kept_is_said() {
        let report = found(1.0);
        assert_eq!(report.found.end, SearchEnd::AboveFromTheStart);
        assert!(report.sentence().contains("raise the limit"), "{}", report.sentence());
    }
}
