//! Running a study: fit, measure every configuration, work out the figures.
//!
//! Invariants: the fit sees calibration figures only and ends before any prediction is measured; equal setups are
//! measured once; the result depends on study and seed, not on the number of threads.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;

use tier0_catalog::Catalog;
use tier0_units::ByteCount;

use crate::LabError;
use crate::calibrate::{Fit, evaluations_max, fit};
use crate::clock::Clock;
use crate::grid::each;
use crate::measure::{Bench, Measurement};
use crate::outcome::{figure, half_width};
use crate::record::{Record, Tolerance};
use crate::study::{Configuration, Measure, Study};

/// How to run a study.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOptions {
    /// Threads; as many as the machine has cores where absent.
    pub threads: Option<usize>,
    /// Another seed than the study's.
    pub seed: Option<u64>,
    /// Whether curves are measured beyond what the searches need.
    pub curves: bool,
    /// Whether runs are repeated under other seeds for the intervals that one run does not give.
    pub repeats: bool,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { threads: None, seed: None, curves: true, repeats: true }
    }
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// Free parameters are fitted; how many evaluations it takes is known only at its end.
    Fitting,
    /// Configurations are measured.
    Measuring,
    /// Assumptions are varied.
    Varying,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub struct RunProgress {
    /// What is being done.
    pub phase: RunPhase,
    /// Evaluations or configurations done.
    pub done: usize,
    /// Of how many; of how many at most while fitting.
    pub of: usize,
    /// The last one.
    pub what: String,
    /// Since the run began.
    pub elapsed: Duration,
    /// An estimate of what is left of this phase, where there is one.
    pub left: Option<Duration>,
}

impl fmt::Display for RunProgress {
    /// A line without colour.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phase {
            RunPhase::Fitting => {
                write!(f, "fitting, evaluation {} of {} at most: {}", self.done, self.of, self.what)?
            }
            RunPhase::Measuring => write!(f, "measuring, {} of {}: {}", self.done, self.of, self.what)?,
            RunPhase::Varying => write!(f, "varying, {} of {}: {}", self.done, self.of, self.what)?,
        }
        match self.left {
            Some(left) => write!(f, ", {} s left", left.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}

/// A configuration with what it gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The configuration, fitted parameters set.
    pub configuration: Configuration,
    /// What it gave.
    pub measurement: Measurement,
    /// What it can hold.
    pub usable: ByteCount,
    /// What its drives draw meanwhile, in watts.
    pub drive_watts: f64,
}

/// A record with the tolerance it is judged by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedRecord {
    /// The record.
    pub record: Record,
    /// Its tolerance, where there is one.
    pub tolerance: Option<Tolerance>,
    /// Half the width of the 95 % interval that the simulation leaves the value, as a share of it.
    pub half_width: Option<f64>,
}

/// A study that was run.
#[derive(Clone, Debug)]
pub struct StudyOutcome {
    /// The study.
    pub study: Study,
    /// The seed in use.
    pub seed: u64,
    /// The fit, where there was something to fit.
    pub fit: Option<Fit>,
    /// Every configuration, in the study's order.
    pub measured: Vec<Measured>,
    /// Every figure: calibration first, then predictions.
    pub records: Vec<JudgedRecord>,
    /// Host I/Os simulated after the fit, warm-ups not counted.
    pub simulated_ios: u64,
    /// Real time that it took.
    pub elapsed: Duration,
}

impl StudyOutcome {
    /// The configurations that are no points of a grid.
    pub fn outside_grid(&self) -> impl Iterator<Item = &Measured> {
        let grid = self.study.grid.as_ref();
        let is_point =
            move |id: &str| grid.is_some_and(|grid| grid.points.iter().any(|point| point.id == id));
        self.measured.iter().filter(move |measured| !is_point(&measured.configuration.id))
    }

    /// The records as `--json` prints them: one JSON array.
    pub fn json(&self) -> String {
        let records: Vec<&Record> = self.records.iter().map(|judged| &judged.record).collect();
        serde_json::to_string_pretty(&records).expect("records have no keys but texts")
    }
}

/// Runs a study.
///
/// # Errors
/// [`LabError`] where a configuration is impossible.
pub fn run(
    study: &Study,
    options: &RunOptions,
    progress: &(dyn Fn(&RunProgress) + Sync),
) -> Result<StudyOutcome, LabError> {
    let runner = Runner::new(study, options, progress)?;
    let fit = runner.fit(study)?;
    let configurations = fitted(study, fit.as_ref());
    let measurements = runner.measure_all(&configurations)?;
    let value = |measure: &Measure| figure(measure, &configurations, &measurements);
    let records = study.figures.reported().map(|reported| JudgedRecord {
        record: Record::new(
            format!("{}.{}", study.id, reported.id),
            value(reported.measure),
            reported.unit.to_owned(),
            reported.role,
            reported.published,
        ),
        tolerance: reported.tolerance,
        half_width: half_width(reported.measure, &|place| measurements.get(place)),
    });
    let records = records.collect();
    let simulated_ios = measurements.iter().map(|measurement| measurement.simulated_ios).sum();
    let measured = configurations.into_iter().zip(measurements).map(|(configuration, measurement)| {
        let usable = runner.bench.usable(&configuration)?;
        let drive_watts = runner.bench.drive_watts(&configuration, &measurement.usage)?;
        Ok(Measured { configuration, measurement, usable, drive_watts })
    });
    let measured: Vec<Measured> = measured.collect::<Result<_, LabError>>()?;
    Ok(StudyOutcome {
        study: study.clone(),
        seed: runner.seed,
        fit,
        measured,
        records,
        simulated_ios,
        elapsed: runner.clock.elapsed(),
    })
}

/// Measures, and tells how far it is.
pub(crate) struct Runner<'a> {
    pub(crate) bench: Bench,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
    pub(crate) curves: bool,
    pub(crate) repeats: bool,
    progress: &'a (dyn Fn(&RunProgress) + Sync),
    clock: Clock,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(
        study: &Study,
        options: &RunOptions,
        progress: &'a (dyn Fn(&RunProgress) + Sync),
    ) -> Result<Runner<'a>, LabError> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let clock = Clock::start();
        Ok(Runner {
            bench: Bench::new(Catalog::embedded(), &study.configurations)?,
            threads: options.threads.unwrap_or_else(cores),
            seed: options.seed.unwrap_or(study.seed),
            curves: options.curves,
            repeats: options.repeats,
            progress,
            clock,
        })
    }

    /// The wall-clock time since it was made.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    pub(crate) fn fit(&self, study: &Study) -> Result<Option<Fit>, LabError> {
        if study.parameters.is_empty() {
            return Ok(None);
        }
        let figures = study.figures.calibration();
        let mut needed: Vec<usize> =
            figures.iter().flat_map(|figure| figure.measure().configurations()).collect();
        needed.sort_unstable();
        needed.dedup();
        let most = evaluations_max(study.parameters.len());
        let mut evaluations = 0;
        let found = fit(&study.parameters, figures, |values| {
            let configurations = with_values(study, values);
            let measure = |place: &usize| self.bench.measure(&configurations[*place], self.seed, false);
            let measured = each(&needed, self.threads, measure, |_| {})?;
            evaluations += 1;
            let named = study.parameters.iter().zip(values);
            let named: Vec<String> = named
                .map(|(p, value)| format!("{} {} {}", p.name, crate::record::format_number(*value), p.unit))
                .collect();
            self.tell(RunPhase::Fitting, evaluations, most, named.join(", "), None);
            let value = |measure: &Measure| {
                let of = |place: usize| needed.binary_search(&place).ok().map(|at| &measured[at]);
                crate::outcome::number(measure, &configurations, &of)
            };
            // A configuration without a result is as far away as can be.
            Ok::<_, LabError>(figures.iter().map(|figure| value(figure.measure()).unwrap_or(0.0)).collect())
        })?;
        Ok(Some(found))
    }

    /// Measures every configuration, equal setups once.
    fn measure_all(&self, configurations: &[Configuration]) -> Result<Vec<Measurement>, LabError> {
        let done = AtomicUsize::new(0);
        let began = self.clock.elapsed();
        let told = Mutex::new(());
        self.measure_distinct(configurations, |at, distinct| {
            // One at a time, so that the counts reach the listener in order.
            let _in_order = told.lock();
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            let spent = self.clock.elapsed().saturating_sub(began);
            let left = spent.mul_f64((distinct.len() - count) as f64 / count as f64);
            self.tell(RunPhase::Measuring, count, distinct.len(), distinct[at].id.clone(), Some(left));
        })
    }

    /// The same, and tells nothing.
    pub(crate) fn measure_quietly(
        &self,
        configurations: &[Configuration],
    ) -> Result<Vec<Measurement>, LabError> {
        self.measure_distinct(configurations, |_, _| {})
    }

    fn measure_distinct(
        &self,
        configurations: &[Configuration],
        finished: impl Fn(usize, &[&Configuration]) + Sync,
    ) -> Result<Vec<Measurement>, LabError> {
        let mut distinct: Vec<&Configuration> = Vec::new();
        let mut places = Vec::new();
        for configuration in configurations {
            let same = distinct.iter().position(|other| other.setup == configuration.setup);
            let at = same.unwrap_or(distinct.len());
            if same.is_none() {
                distinct.push(configuration);
            }
            places.push(at);
        }
        let measure = |configuration: &&Configuration| {
            let mut measured = self.bench.measure(configuration, self.seed, self.curves)?;
            if self.repeats {
                self.bench.repeat(configuration, self.seed, &mut measured)?;
            }
            Ok::<_, LabError>(measured)
        };
        let measured = each(&distinct, self.threads, measure, |at| finished(at, &distinct))?;
        Ok(places.into_iter().map(|at| measured[at].clone()).collect())
    }

    /// The same runner with other models.
    pub(crate) fn with_bench(&self, bench: Bench) -> Runner<'a> {
        Runner { bench, clock: self.clock, ..*self }
    }

    pub(crate) fn tell(&self, phase: RunPhase, done: usize, of: usize, what: String, left: Option<Duration>) {
        (self.progress)(&RunProgress { phase, done, of, what, elapsed: self.clock.elapsed(), left });
    }
}

/// The configurations with the fit's values set.
pub(crate) fn fitted(study: &Study, fit: Option<&Fit>) -> Vec<Configuration> {
    let values: Option<Vec<f64>> = fit.map(|fit| fit.parameters.iter().map(|fitted| fitted.value).collect());
    values.map_or_else(|| study.configurations.clone(), |values| with_values(study, &values))
}

fn with_values(study: &Study, values: &[f64]) -> Vec<Configuration> {
    let mut configurations = study.configurations.clone();
    set_values(study, values, &mut configurations);
    configurations
}

/// Sets the free fields of a study's configurations.
pub(crate) fn set_values(study: &Study, values: &[f64], configurations: &mut [Configuration]) {
    for (parameter, value) in study.parameters.iter().zip(values) {
        for place in &parameter.configurations {
            configurations[*place].setup.set(parameter.field, *value);
        }
    }
}
