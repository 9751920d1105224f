//! The load of what is measured, and those of its neighbours, which last as long.

use std::rc::Rc;

use futures_util::future::{join, join_all};
use tier0_array::Volume;
use tier0_units::Nanos;
use tier0_workload::run::{LoadRun, RunError};
use tier0_workload::spec::{Arrival, ClosedLoop, LoadSpec, RunLimits, StreamSpec, ThinkTime};
use tier0_workload::stats::{EndedBy, LoadReport};
use tier0_world::World;

use crate::path::Group;
use crate::settle::other_requests;
use crate::study::{Goal, Neighbour, Requests, Setup};

/// A neighbour's load is ended when what is measured has ended, long before this.
const NEIGHBOUR_LASTS: Nanos = Nanos::from_secs(300_000);
/// Neighbours draw other requests than what is measured.
const NEIGHBOUR_SEED: u64 = 0x0e16_0000;
/// So does what only warms caches.
const WARMING_SEED: u64 = 0x3a71;

/// Loads on the groups of sets of an array.
#[derive(Clone)]
pub(super) struct Loads {
    pub(super) measured: LoadSpec,
    pub(super) neighbours: Vec<LoadSpec>,
}

/// What they gave.
pub(super) struct Reports {
    pub(super) measured: LoadReport,
    pub(super) neighbours: Vec<LoadReport>,
}

impl Loads {
    /// The loads of a setup with so many requests of the measured one under way, measured for so much of its effort.
    pub(super) fn of(setup: &Setup, seed: u64, outstanding: u32, effort: f64) -> Loads {
        let arrival = match setup.goal {
            Goal::LatencyLimit { .. } => Arrival::queue_depth(outstanding),
            Goal::Users { think, .. } => users(outstanding, think),
        };
        let ios = (setup.effort.ios as f64 * effort).max(1.0) as u64;
        let warm_up = Nanos((setup.effort.warm_up.0 as f64 * effort) as u64);
        let load = |requests: &Requests, arrival: Arrival, limits: RunLimits, seed: u64| {
            let stream = StreamSpec {
                block: requests.block.clone(),
                read_percent: requests.read_percent,
                pattern: requests.pattern,
                alignment: requests.alignment,
                arrival,
                ..StreamSpec::default()
            };
            LoadSpec { seed, warm_up, ..LoadSpec::single(stream, limits) }
        };
        let neighbour = |(number, neighbour): (u64, &Neighbour)| {
            let arrival = users(neighbour.users, neighbour.think);
            let limits = RunLimits::time(NEIGHBOUR_LASTS);
            load(&neighbour.sets.requests, arrival, limits, seed ^ NEIGHBOUR_SEED ^ number)
        };
        Loads {
            measured: load(&setup.measured_group().requests, arrival, RunLimits::ios(ios), seed),
            neighbours: (0..).zip(&setup.neighbours).map(neighbour).collect(),
        }
    }

    /// The same with other requests to the same hot sets, for so long.
    pub(super) fn for_time(&self, time: Nanos, other_seed: u64) -> Loads {
        let neighbours = self.neighbours.iter();
        Loads {
            measured: other_requests(&self.measured, time, None, other_seed),
            neighbours: neighbours
                .map(|load| other_requests(load, NEIGHBOUR_LASTS, None, other_seed))
                .collect(),
        }
    }

    /// The warm-up as loads of its own, and the loads without: what fills a read cache is not to count with its hits.
    pub(super) fn warm_up_apart(self) -> (Loads, Loads) {
        let warming = self.for_time(self.measured.warm_up, WARMING_SEED);
        let warm = |load: LoadSpec| LoadSpec { warm_up: Nanos::ZERO, ..load };
        let neighbours = self.neighbours.into_iter().map(warm).collect();
        (warming, Loads { measured: warm(self.measured), neighbours })
    }

    /// Plans them for their targets.
    ///
    /// # Errors
    /// One does not fit.
    pub(super) fn plan(
        self,
        world: &World,
        group: &Rc<Group<Volume>>,
        neighbours: &[Rc<Group<Volume>>],
    ) -> Result<LoadRuns, RunError> {
        let run = |target: &Rc<Group<Volume>>, load| LoadRun::new(world, target.clone(), load);
        let neighbours = neighbours.iter().zip(self.neighbours).map(|(target, load)| run(target, load));
        Ok(LoadRuns {
            measured: run(group, self.measured)?,
            neighbours: neighbours.collect::<Result<_, _>>()?,
        })
    }
}

/// Loads that are about to run.
pub(super) struct LoadRuns {
    pub(super) measured: LoadRun<Group<Volume>>,
    neighbours: Vec<LoadRun<Group<Volume>>>,
}

impl LoadRuns {
    /// Runs them until the measured one ends.
    pub(super) async fn run(self) -> Reports {
        let stops: Vec<_> = self.neighbours.iter().map(LoadRun::stop_handle).collect();
        let measured = async {
            let report = self.measured.run().await;
            stops.iter().for_each(|stop| stop.stop());
            report
        };
        let neighbours = join_all(self.neighbours.into_iter().map(LoadRun::run));
        let (measured, neighbours) = join(measured, neighbours).await;
        Reports { measured, neighbours }
    }
}

impl Reports {
    /// What went wrong, in words.
    pub(super) fn failure(&self) -> Option<String> {
        let is_clean = |report: &&LoadReport| report.errors.reads == 0 && report.errors.writes == 0;
        let lasted = |report: &&LoadReport| is_clean(report) && report.ended_by == EndedBy::Stopped;
        let failed = (!self.measured.is_clean()).then_some(&self.measured);
        let failed = failed.or_else(|| self.neighbours.iter().find(|report| !lasted(report)))?;
        Some(failed.errors.first.clone().unwrap_or_else(|| format!("{:?}", failed.ended_by)))
    }
}

/// A closed loop of users who each wait for an answer.
pub(crate) fn users(users: u32, think: Nanos) -> Arrival {
    let think_time = if think == Nanos::ZERO { ThinkTime::None } else { ThinkTime::Exponential(think) };
    Arrival::ClosedLoop(ClosedLoop { users, queue_depth: 1, think_time })
}
