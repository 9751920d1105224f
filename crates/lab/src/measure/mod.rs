//! Measuring a configuration: its array is put together in a world of its own in virtual time, and a closed loop drives
//! it.
//!
//! | file | concept |
//! |---|---|
//! | `describe` | the array's description, with its groups of sets and their switches |
//! | `assemble` | the engine's array with the path around it |
//! | `load` | the load of what is measured, and those of its neighbours |
//! | `settling` | which write caches are settled before, by [`crate::settle`] |
//!
//! Invariants: a measurement depends on the setup and the seed alone, not on threads or on other measurements; every
//! measurement starts on a fresh array.

mod assemble;
mod describe;
mod load;
mod settling;

use serde::{Deserialize, Serialize};
use tier0_array::simulated::ModelShelf;
use tier0_catalog::Catalog;
use tier0_units::Nanos;
use tier0_workload::run::RunError;
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, VirtualRuntime};

use self::assemble::Assembled;
use self::load::Loads;
pub(crate) use self::load::users;
use self::settling::write_caches;
use crate::LabError;
use crate::path::Usage;
use crate::search::{Sample, SearchEnd, SearchPlan, search};
use crate::settle::{Look, Modelled, RUN_IN_MAX, RUN_IN_SEED, RunIn, SETTLING_MAX, SETTLING_SEED, bring_in};
use crate::study::{Configuration, Goal, Metric};
use crate::work::Work;

/// Samples at these shares of the result's outstanding requests are taken for the curve alone. A search adds its own
/// probes between them.
const CURVE_SHARES_SEARCHED: [f64; 3] = [0.05, 0.15, 1.4];
/// The same around a given number of users.
const CURVE_SHARES_GIVEN: [f64; 6] = [0.05, 0.15, 0.3, 0.5, 0.75, 1.5];
/// A curve's samples need not be as precise as the result: this share of its requests, and of its warm-up.
const CURVE_EFFORT: f64 = 0.3;

/// Where more than this share of a latency is unknown, so is the whole.
const UNKNOWN_SHARE_MAX: f64 = 0.2;
/// Runs under other seeds, where one run does not tell how far it may be off.
const REPETITIONS: u64 = 5;
/// The 97.5th percentile of Student's t with one degree of freedom less.
const STUDENT_975: f64 = 2.776;
/// A flatter curve of the latency is a scatter of the samples.
const SLOPE_MIN: f64 = 0.2;

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
    /// What the array did in that sample.
    pub work: Work,
    /// What its neighbours got in that sample.
    #[serde(default)]
    pub neighbours: Vec<NeighbourSample>,
    /// Answered requests simulated in all.
    pub simulated_ios: u64,
}

/// What a neighbour of what is measured got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourSample {
    /// The name of its group of sets.
    pub name: String,
    /// The figures of its load.
    pub sample: Sample,
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
            Metric::P99Ms => Some(self.result.p99_ms),
            Metric::ReadHitPercent => self.work.read_hits.map(|share| share * 100.0),
            Metric::FlashHitPercent => self.work.flash_hits.map(|share| share * 100.0),
            Metric::DelayedWritesPercent => {
                self.work.measured_cache().map(|cache| cache.delayed_writes * 100.0)
            }
            Metric::ForcedFlushPercent => {
                self.work.measured_cache()?.flushed.map(|shares| shares.forced * 100.0)
            }
            Metric::HighWatermarkFlushPercent => {
                self.work.measured_cache()?.flushed.map(|shares| shares.high_watermark * 100.0)
            }
            Metric::IdleFlushPercent => self.work.measured_cache()?.flushed.map(|shares| shares.idle * 100.0),
            Metric::Tps
            | Metric::Tpm
            | Metric::ResponseMs
            | Metric::CpuPercent
            | Metric::ReadPercent
            | Metric::ReadBytesPercent
            | Metric::ReadKib
            | Metric::WriteKib => None,
        }
    }

    /// Half the width of the 95 % interval that the simulation leaves a figure, as a share of it. What the model and its
    /// assumptions are wrong by is not in it.
    pub fn half_width(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::LatencyMs => self.all_half_width(),
            Metric::ReadLatencyMs => self.result.read_half_width,
            Metric::WriteLatencyMs => self.result.write_half_width,
            Metric::Iops | Metric::MegabytesPerS => {
                let latency = match self.end {
                    None => self.all_half_width(),
                    Some(_) => self.result.worse_half_width(),
                };
                Some(latency? * self.rate_over_latency())
            }
            _ => None,
        }
    }

    /// Of the mean latency of all requests. Of a class of too few requests to know, all of its share counts as unknown.
    fn all_half_width(&self) -> Option<f64> {
        let (all, result) = (self.result.latency_ms, &self.result);
        let (read, write) = match (result.read_latency_ms, result.write_latency_ms) {
            (Some(read), Some(write)) if read != write => {
                let writes = ((all - read) / (write - read)).clamp(0.0, 1.0);
                ((1.0 - writes) * read / all, writes * write / all)
            }
            (None, _) => (0.0, 1.0),
            _ => (1.0, 0.0),
        };
        let of = |share: f64, half_width: Option<f64>| share * half_width.unwrap_or(1.0);
        let known = of(read, result.read_half_width).hypot(of(write, result.write_half_width));
        (known < UNKNOWN_SHARE_MAX).then_some(known)
    }

    /// By how many percent the rate is off where the latency is off by one.
    fn rate_over_latency(&self) -> f64 {
        match self.end {
            // Each user waits for an answer, then thinks: of the cycle only the wait is uncertain.
            None => {
                let waiting = self.result.iops * self.result.latency_ms / 1e3;
                (waiting / f64::from(self.result.outstanding)).min(1.0)
            }
            // The requests at which the limit is met are off by as much as the latency, over its slope there.
            Some(SearchEnd::Limit) => 1.0 / self.slope().max(SLOPE_MIN),
            Some(_) => 1.0,
        }
    }

    /// How many percent the latency grows by for one percent more requests, across the result.
    fn slope(&self) -> f64 {
        let at = self.curve.partition_point(|sample| sample.outstanding <= self.result.outstanding);
        let pair = at.checked_sub(1).and_then(|below| Some((self.curve.get(below)?, self.curve.get(at)?)));
        pair.map_or(1.0, |(below, above)| {
            let requests = (f64::from(above.outstanding) / f64::from(below.outstanding)).ln();
            (above.worse_latency_ms() / below.worse_latency_ms()).ln() / requests
        })
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
    work: Work,
    neighbours: Vec<NeighbourSample>,
    ios: u64,
}

impl Bench {
    /// The models that `configurations` need.
    ///
    /// # Errors
    /// [`LabError`] where one cannot be made.
    pub fn new<'a>(
        catalog: Catalog,
        configurations: impl IntoIterator<Item = &'a Configuration>,
    ) -> Result<Bench, LabError> {
        let mut bench = Bench { catalog, shelf: ModelShelf::default() };
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
        let nearest = probes.iter().min_by_key(away);
        let of = |probe: &Probe| (probe.usage.clone(), probe.work.clone(), probe.neighbours.clone());
        let (usage, work, neighbours) = nearest.map(of).unwrap_or_default();
        if curve {
            for outstanding in curve_points(&result, &probes, end.is_some()) {
                probes.push(probe(outstanding, CURVE_EFFORT)?);
            }
        }
        let mut samples: Vec<Sample> = probes.iter().map(|probe| probe.sample).collect();
        samples.sort_by_key(|sample| sample.outstanding);
        let simulated_ios = probes.iter().map(|probe| probe.ios).sum();
        Ok(Measurement { result, end, curve: samples, usage, work, neighbours, simulated_ios })
    }

    /// Finds the intervals that a measurement under `seed` lacks, from repetitions under other seeds: latencies that come in
    /// waves, as those of writes do that wait for the destager, tell nothing of their mean within one run.
    ///
    /// # Errors
    /// As [`Bench::measure`].
    pub fn repeat(
        &self,
        configuration: &Configuration,
        seed: u64,
        measurement: &mut Measurement,
    ) -> Result<(), LabError> {
        let lacks = |latency: Option<f64>, width: Option<f64>| latency.is_some() && width.is_none();
        let result = measurement.result;
        let lacks_some = lacks(result.read_latency_ms, result.read_half_width)
            || lacks(result.write_latency_ms, result.write_half_width);
        if !lacks_some || measurement.end == Some(SearchEnd::AboveFromTheStart) {
            return Ok(());
        }
        let mut samples = Vec::new();
        for number in 1..=REPETITIONS {
            let probe = self.probe(configuration, seed ^ number << 48, result.outstanding, 1.0)?;
            measurement.simulated_ios += probe.ios;
            samples.push(probe.sample);
        }
        let own = &mut measurement.result;
        own.read_half_width =
            own.read_half_width.or(scatter(samples.iter().map(|sample| sample.read_latency_ms)));
        own.write_half_width =
            own.write_half_width.or(scatter(samples.iter().map(|sample| sample.write_latency_ms)));
        Ok(())
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
        let assembled = self.assemble(&runtime, &description, configuration)?;
        let name = || configuration.id.clone();
        let refused = |source| LabError::Load { configuration: name(), source: Box::new(source) };
        let mut loads = Loads::of(setup, seed, outstanding, effort);
        if let Some(caches) = write_caches(world, setup, &assembled) {
            let settling = loads.for_time(SETTLING_MAX, SETTLING_SEED);
            let mut runs = settling.plan(world, &assembled.group, &assembled.neighbours).map_err(refused)?;
            (runs.measured, _) = caches.judge(runs.measured, Box::new(|_| true));
            runtime.run(runs.run());
        }
        if setup.caches.flash.is_some() {
            let mut look: Look = Box::new(|_| true);
            let warm = bring_in(&*assembled.group, &loads.measured, &mut look).map_err(RunError::from);
            warm.and_then(|_| run_in(&runtime, &loads, &assembled)).map_err(refused)?;
        }
        if setup.caches.read.is_some() && loads.measured.warm_up > Nanos::ZERO {
            let (warming, warm) = loads.warm_up_apart();
            let warming = warming.plan(world, &assembled.group, &assembled.neighbours).map_err(refused)?;
            runtime.run(warming.run());
            loads = warm;
        }
        // What filled the caches before is no part of the load.
        let counters_before = runtime.run(assembled.counters());
        let (began, before) = (world.now(), assembled.usage(world.now()));
        let runs = loads.plan(world, &assembled.group, &assembled.neighbours).map_err(refused)?;
        let reports = runtime.run(runs.run());
        if let Some(fact) = reports.failure() {
            return Err(LabError::Ended { configuration: name(), fact });
        }
        let usage = assembled.usage(world.now()).since(world.now(), &before, began);
        let counters = runtime.run(assembled.counters());
        let is_cached = assembled.writes_are_cached.first() == Some(&true);
        let work = Work { measured_is_cached: is_cached, ..Work::between(&counters_before, &counters) };
        let neighbours = setup.neighbours.iter().zip(&reports.neighbours).map(|(neighbour, report)| {
            NeighbourSample { name: neighbour.sets.name.clone(), sample: sample(report, neighbour.users) }
        });
        let neighbours = neighbours.collect();
        let measured = &reports.measured;
        let ios = measured.all.ios;
        Ok(Probe { sample: sample(measured, outstanding), usage, work, neighbours, ios })
    }
}

/// The loads until hit rates and latencies stay where they are.
fn run_in(runtime: &VirtualRuntime, loads: &Loads, assembled: &Assembled) -> Result<(), RunError> {
    let warming = loads.for_time(RUN_IN_MAX, RUN_IN_SEED);
    let mut runs = warming.plan(runtime.world(), &assembled.group, &assembled.neighbours)?;
    let writes =
        assembled.writes_are_cached.first() == Some(&true) && loads.measured.streams[0].read_percent < 100.0;
    let run_in = RunIn::new(assembled.group.arrays(), writes);
    (runs.measured, _) = run_in.judge(runs.measured, Box::new(|_| true));
    runtime.run(runs.run());
    Ok(())
}

/// By how much one run may be off, at 95 %, as a share: how far runs lie apart that differ in their seeds. The figure is that
/// of one run, so its interval does not get narrower with their number.
fn scatter(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    let degrees = values.len() as f64 - 1.0;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean > 0.0).then(|| STUDENT_975 * (squares / degrees).sqrt() / mean)
}

/// What a load's report says of one number of outstanding requests.
pub fn sample(report: &LoadReport, outstanding: u32) -> Sample {
    let ms = |nanos: f64| nanos / 1e6;
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
    Sample {
        outstanding,
        iops: report.all.iops,
        megabytes_per_s: report.all.megabytes_per_s,
        latency_ms: ms(report.all.latency_ns_mean),
        read_latency_ms: report.read.as_ref().map(|read| ms(read.latency_ns_mean)),
        write_latency_ms: report.write.as_ref().map(|write| ms(write.latency_ns_mean)),
        p99_ms: ms(report.all.latency_ns_p99 as f64),
        read_half_width: share(report.precision.read_percent),
        write_half_width: share(report.precision.write_percent),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(outstanding: u32, latency_ms: f64) -> Sample {
        Sample {
            outstanding,
            iops: f64::from(outstanding) / latency_ms * 1e3,
            megabytes_per_s: 0.0,
            latency_ms,
            read_latency_ms: Some(latency_ms),
            write_latency_ms: None,
            p99_ms: latency_ms,
            read_half_width: Some(0.02),
            write_half_width: None,
        }
    }

    fn measurement(result: Sample, end: Option<SearchEnd>, curve: Vec<Sample>) -> Measurement {
        Measurement {
            result,
            end,
            curve,
            usage: Usage::default(),
            work: Work::default(),
            neighbours: Vec::new(),
            simulated_ios: 0,
        }
    }

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-4)
    }

    #[test]
    fn runs_that_lie_apart_may_each_be_as_far_off() {
        let of = |values: &[f64]| scatter(values.iter().copied().map(Some));
        assert_eq!(of(&[5.0; 5]), Some(0.0));
        // A deviation of 1 around 10.
        let apart = of(&[9.0, 11.0, 10.0, 9.0, 11.0]);
        assert!(close(apart, 0.2776), "{apart:?}");
        assert_eq!(scatter([Some(1.0), None].into_iter()), None, "no such requests in one of them");
    }

    #[test]
    fn the_rate_of_users_who_think_is_known_better_than_their_latency() {
        let busy = measurement(sample(10, 5.0), None, Vec::new());
        assert!(close(busy.half_width(Metric::Iops), 0.02), "they wait all the time");
        let mut thinking = sample(10, 5.0);
        thinking.iops /= 4.0;
        let thinking = measurement(thinking, None, Vec::new());
        assert!(close(thinking.half_width(Metric::Iops), 0.005), "a quarter of the time");
        assert!(close(thinking.half_width(Metric::ReadLatencyMs), 0.02));
    }

    #[test]
    fn the_rate_at_a_limit_is_known_as_well_as_the_latency_rises_steeply() {
        // Saturated: twice the requests, twice the latency. Below that, half of it for each percent.
        let at = |below: Sample, above: Sample| {
            let found = measurement(sample(150, 20.0), Some(SearchEnd::Limit), vec![below, above]);
            found.half_width(Metric::Iops)
        };
        assert!(close(at(sample(100, 15.0), sample(200, 30.0)), 0.02));
        assert!(close(at(sample(100, 20.0), sample(400, 40.0)), 0.04));
    }

    #[test]
    fn a_few_writes_do_not_make_the_whole_unknown() {
        let mut few = sample(100, 1.002);
        (few.read_latency_ms, few.write_latency_ms) = (Some(1.0), Some(3.0));
        let few = measurement(few, None, Vec::new());
        assert!(few.half_width(Metric::LatencyMs).is_some_and(|known| (0.02..0.021).contains(&known)));
        assert_eq!(few.half_width(Metric::WriteLatencyMs), None);
        let mut half = sample(100, 2.0);
        (half.read_latency_ms, half.write_latency_ms) = (Some(1.0), Some(3.0));
        assert_eq!(measurement(half, None, Vec::new()).half_width(Metric::LatencyMs), None);
    }
}
