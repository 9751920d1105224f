//! The profile of a target: how many I/Os per second it gives within a latency limit, measured in whatever world it
//! lives in.
//!
//! The same search as a study's, on anything that the load generator can drive: an NBD export, a file, a device, a
//! volume in virtual time. Each probe is a closed loop of its own; between probes nothing is under way.

use std::rc::Rc;

use serde::Serialize;
use tier0_block::BlockTarget;
use tier0_units::Nanos;
use tier0_workload::run::{LoadRun, RunError};
use tier0_workload::spec::{Arrival, LoadSpec, RunLimits, StreamSpec};
use tier0_workload::stats::LoadReport;
use tier0_world::World;

use crate::measure::sample;
use crate::search::{LimitSearch, SearchEnd, SearchPlan, SearchResult};

/// How to profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfilePlan {
    /// What is asked for; its arrival is replaced by closed loops.
    pub stream: StreamSpec,
    /// What is searched for.
    pub search: SearchPlan,
    /// Before each measurement.
    pub warm_up: Nanos,
    /// The length of each measurement at most.
    pub probe_time: Nanos,
    /// A measurement ends early once the mean latencies are known this well; `None` for never.
    pub precision_percent: Option<f64>,
    /// The seed of the requests.
    pub seed: u64,
}

impl ProfilePlan {
    /// A search for `latency_limit_ms` with probes of 5 s after 1 s of warm-up, ended early at 2 %.
    pub fn new(stream: StreamSpec, latency_limit_ms: f64) -> ProfilePlan {
        ProfilePlan {
            stream,
            search: SearchPlan::new(latency_limit_ms),
            warm_up: Nanos::from_secs(1),
            probe_time: Nanos::from_secs(5),
            precision_percent: Some(2.0),
            seed: 1,
        }
    }

    /// The longest a probe takes.
    pub fn probe_time_max(&self) -> Nanos {
        self.warm_up.saturating_add(self.probe_time)
    }

    fn load(&self, outstanding: u32) -> LoadSpec {
        let stream = StreamSpec { arrival: Arrival::queue_depth(outstanding), ..self.stream.clone() };
        let limits =
            RunLimits { precision_percent: self.precision_percent, ..RunLimits::time(self.probe_time) };
        LoadSpec { seed: self.seed, warm_up: self.warm_up, ..LoadSpec::single(stream, limits) }
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
    /// An estimate of what is left: the time of the probes that searches usually need beyond those done.
    pub left: Nanos,
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
    mut progress: impl FnMut(&ProfileProgress),
) -> Result<ProfileReport, ProfileError> {
    let mut search = LimitSearch::new(plan.search);
    let (mut done, mut last) = (0, None);
    while let Some(outstanding) = search.next() {
        let left = PROBES_USUAL.saturating_sub(done).max(1) as u64 * plan.probe_time_max().0;
        progress(&ProfileProgress { done, outstanding, last, left: Nanos(left) });
        let report = LoadRun::new(world, target.clone(), plan.load(outstanding))?.run().await;
        check(&report, outstanding)?;
        let measured = sample(&report, outstanding);
        search.record(measured);
        (done, last) = (done + 1, Some(measured));
    }
    Ok(ProfileReport {
        latency_limit_ms: plan.search.latency_limit_ms,
        target_bytes: target.info().sectors.bytes().0,
        found: search.result().expect("a search measures at least once"),
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
    /// The result in a sentence.
    pub fn sentence(&self) -> String {
        let number = crate::record::format_number;
        let at = &self.found.at_limit;
        let limit = number(self.latency_limit_ms);
        match self.found.end {
            SearchEnd::Limit => format!(
                "{} IOPS ({} MB/s) at a mean latency of {limit} ms, with {} requests under way",
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
                probe_time: Nanos::from_secs(60),
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
