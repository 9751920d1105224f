//! Measuring a configuration: its array is put together in a world of its own in virtual time, and a closed loop drives
//! it.
//!
//! | file | concept |
//! |---|---|
//! | `assemble` | the engine's array with the path around it |
//! | `settling` | the load until the write cache neither fills nor empties |
//! | `warm_cache` | a write cache with something in it, without the time that takes |
//!
//! Invariants: a measurement depends on the setup and the seed alone, not on threads or on other measurements; every
//! measurement starts on a fresh array.

mod assemble;
mod settling;
mod warm_cache;

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tier0_array::simulated::ModelShelf;
use tier0_catalog::Catalog;
use tier0_units::Nanos;
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{Arrival, ClosedLoop, LoadSpec, RunLimits, StreamSpec, ThinkTime};
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, VirtualRuntime};

use self::assemble::Assembled;
use self::settling::Settling;
use crate::LabError;
use crate::path::Usage;
use crate::search::{Sample, SearchEnd, SearchPlan, search};
use crate::study::{Configuration, Goal, Metric, Setup};

/// Samples at these shares of the result's outstanding requests are taken for the curve alone. A search adds its own
/// probes between them.
const CURVE_SHARES_SEARCHED: [f64; 3] = [0.05, 0.15, 1.4];
/// The same around a given number of users.
const CURVE_SHARES_GIVEN: [f64; 6] = [0.05, 0.15, 0.3, 0.5, 0.75, 1.5];
/// A curve's samples need not be as precise as the result: this share of its requests, and of its warm-up.
const CURVE_EFFORT: f64 = 0.3;

/// What a configuration gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The figures at the latency limit, or with the given users.
    pub result: Sample,
    /// Why a search ended; nothing where users were given.
    pub end: Option<SearchEnd>,
    /// All samples, by outstanding requests or users.
    pub curve: Vec<Sample>,
    /// How busy the resources were in the sample nearest to the result.
    pub usage: Usage,
    /// Answered requests simulated in all.
    pub simulated_ios: u64,
}

impl Measurement {
    /// A figure of the result; nothing where there were no such requests, or where the limit could not be kept.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        if self.end == Some(SearchEnd::AboveFromTheStart) {
            return None;
        }
        match metric {
            Metric::Iops => Some(self.result.iops),
            Metric::LatencyMs => Some(self.result.latency_ms),
            Metric::ReadLatencyMs => self.result.read_latency_ms,
            Metric::WriteLatencyMs => self.result.write_latency_ms,
            Metric::MegabytesPerS => Some(self.result.megabytes_per_s),
        }
    }
}

/// The catalogue and the drives' models, made once for all measurements of a study.
pub struct Bench {
    catalog: Catalog,
    shelf: ModelShelf,
}

/// One sample with what only the nearest to the result keeps.
struct Probe {
    sample: Sample,
    usage: Usage,
    ios: u64,
}

impl Bench {
    /// The models that `configurations` need.
    ///
    /// # Errors
    /// [`LabError`] where one cannot be made.
    pub fn new(configurations: &[Configuration]) -> Result<Bench, LabError> {
        let mut bench = Bench { catalog: Catalog::embedded(), shelf: ModelShelf::default() };
        for configuration in configurations {
            let description = bench.describe(configuration)?;
            let prepared = bench.shelf.prepare(&bench.catalog, &description);
            prepared.map_err(|source| LabError::Array {
                configuration: configuration.id.clone(),
                source: Box::new(source),
            })?;
        }
        Ok(bench)
    }

    /// The catalogue it takes its parameters from.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Measures a configuration. With `curve`, also at fewer and more requests than the result's.
    ///
    /// # Errors
    /// [`LabError`] where the array or the load is impossible.
    pub fn measure(
        &self,
        configuration: &Configuration,
        seed: u64,
        curve: bool,
    ) -> Result<Measurement, LabError> {
        let setup = &configuration.setup;
        let probe = |outstanding: u32, effort: f64| self.probe(configuration, seed, outstanding, effort);
        let mut probes: Vec<Probe> = Vec::new();
        let (result, end) = match setup.goal {
            Goal::Users { users, .. } => {
                let only = probe(users, 1.0)?;
                let sample = only.sample;
                probes.push(only);
                (sample, None)
            }
            Goal::LatencyLimit { limit_ms } => {
                let plan =
                    SearchPlan { outstanding_start: setup.drives_in_all(), ..SearchPlan::new(limit_ms) };
                let found = search(plan, |outstanding| {
                    let taken = probe(outstanding, 1.0)?;
                    let sample = taken.sample;
                    probes.push(taken);
                    Ok::<_, LabError>(sample)
                })?;
                (found.at_limit, Some(found.end))
            }
        };
        let away = |probe: &&Probe| probe.sample.outstanding.abs_diff(result.outstanding);
        let usage = probes.iter().min_by_key(away).map(|probe| probe.usage.clone()).unwrap_or_default();
        if curve {
            for outstanding in curve_points(&result, &probes, end.is_some()) {
                probes.push(probe(outstanding, CURVE_EFFORT)?);
            }
        }
        let mut samples: Vec<Sample> = probes.iter().map(|probe| probe.sample).collect();
        samples.sort_by_key(|sample| sample.outstanding);
        let simulated_ios = probes.iter().map(|probe| probe.ios).sum();
        Ok(Measurement { result, end, curve: samples, usage, simulated_ios })
    }

    fn probe(
        &self,
        configuration: &Configuration,
        seed: u64,
        outstanding: u32,
        effort: f64,
    ) -> Result<Probe, LabError> {
        let setup = &configuration.setup;
        let description = self.describe(configuration)?;
        let runtime = VirtualRuntime::new(seed, PayloadWidth::NONE);
        let world = runtime.world();
        let Assembled { group, engines } = self.assemble(&runtime, &description, configuration)?;
        let group = Rc::new(group);
        let name = || configuration.id.clone();
        let refused = |source| LabError::Load { configuration: name(), source: Box::new(source) };
        let load = load(setup, seed, outstanding, effort);
        if setup.write_cache.is_some() && setup.read_percent < 100.0 {
            let settling = Settling::new(world, setup, &group, engines);
            let settling = settling.run(&load).map_err(refused)?;
            runtime.run(settling);
        }
        let run = LoadRun::new(world, group.clone(), load).map_err(refused)?;
        let report = runtime.run(run.run());
        if !report.is_clean() {
            let failed = report.errors.first.clone().unwrap_or_else(|| format!("{:?}", report.ended_by));
            return Err(LabError::Ended { configuration: name(), fact: failed });
        }
        let usage = Usage::of(&group, runtime.world().now());
        Ok(Probe { sample: sample(&report, outstanding), usage, ios: report.all.ios })
    }
}

fn load(setup: &Setup, seed: u64, outstanding: u32, effort: f64) -> LoadSpec {
    let arrival = match setup.goal {
        Goal::LatencyLimit { .. } => Arrival::queue_depth(outstanding),
        Goal::Users { think, .. } => {
            let think_time =
                if think == Nanos::ZERO { ThinkTime::None } else { ThinkTime::Exponential(think) };
            Arrival::ClosedLoop(ClosedLoop { users: outstanding, queue_depth: 1, think_time })
        }
    };
    let stream = StreamSpec {
        block: setup.block.clone(),
        read_percent: setup.read_percent,
        pattern: setup.pattern,
        alignment: setup.alignment,
        arrival,
        ..StreamSpec::default()
    };
    let ios = (setup.effort.ios as f64 * effort).max(1.0) as u64;
    let warm_up = Nanos((setup.effort.warm_up.0 as f64 * effort) as u64);
    LoadSpec { seed, warm_up, ..LoadSpec::single(stream, RunLimits::ios(ios)) }
}

/// What a load's report says of one number of outstanding requests.
pub fn sample(report: &LoadReport, outstanding: u32) -> Sample {
    let ms = |nanos: f64| nanos / 1e6;
    Sample {
        outstanding,
        iops: report.all.iops,
        megabytes_per_s: report.all.megabytes_per_s,
        latency_ms: ms(report.all.latency_ns_mean),
        read_latency_ms: report.read.as_ref().map(|read| ms(read.latency_ns_mean)),
        write_latency_ms: report.write.as_ref().map(|write| ms(write.latency_ns_mean)),
    }
}

/// Further numbers of requests for a curve, none of them known.
fn curve_points(result: &Sample, probes: &[Probe], searched: bool) -> Vec<u32> {
    let shares: &[f64] = if searched { &CURVE_SHARES_SEARCHED } else { &CURVE_SHARES_GIVEN };
    let mut points: Vec<u32> = shares
        .iter()
        .map(|share| (f64::from(result.outstanding) * share).round().max(1.0) as u32)
        .filter(|point| probes.iter().all(|probe| probe.sample.outstanding != *point))
        .collect();
    points.dedup();
    points
}
