//! Running a study: fit, measure every configuration, work out the figures.
//!
//! Invariants: the fit sees calibration figures only and ends before any prediction is measured; equal setups are
//! measured once; the result depends on study and seed, not on the number of threads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;

use tier0_catalog::Catalog;
use tier0_units::ByteCount;

use crate::LabError;
use crate::calibrate::{Fit, evaluations_max, fit};
use crate::case::CaseReport;
use crate::clock::Clock;
use crate::grid::each;
use crate::measure::{Bench, Measurement};
use crate::outcome::{Finding, figure, half_width, number};
use crate::record::{Figure, Record, Tolerance};
use crate::study::{
    Assumption, CalibrationFigure, CaseConfiguration, Configuration, FitPart, FreeParameter, Measure, Study,
    Variation,
};

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

/// A database on an array with what it gave.
#[derive(Clone, Debug)]
pub struct MeasuredCase {
    /// The configuration, fitted parameters set.
    pub configuration: CaseConfiguration,
    /// What it gave.
    pub report: CaseReport,
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
    /// Every load on an array, in the study's order.
    pub measured: Vec<Measured>,
    /// Every database on an array, in the study's order.
    pub cases: Vec<MeasuredCase>,
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
    let set = fitted(study, fit.as_ref())?;
    let mut found = runner.find_all(&set)?;
    let bands = bands(study, fit.as_ref(), &runner)?;
    let of = |place: usize| found.get(&place);
    let records = study.figures.reported().map(|reported| {
        let id = format!("{}.{}", study.id, reported.id);
        let value = figure(reported.measure, &set, &of);
        let mut record = Record::new(id, value, reported.unit.to_owned(), reported.role, reported.published);
        record.band = band(&record, bands.iter().filter_map(|band| band.get(reported.id).copied()));
        record.straight_line = reported.straight_line;
        JudgedRecord { record, tolerance: reported.tolerance, half_width: half_width(reported.measure, &of) }
    });
    let records = records.collect();
    let (mut measured, mut cases, mut simulated_ios) = (Vec::new(), Vec::new(), 0);
    for (place, configuration) in set.configurations.into_iter().enumerate() {
        let Some(Finding::Load(measurement)) = found.remove(&place) else { continue };
        let usable = runner.bench.usable(&configuration)?;
        let drive_watts = runner.bench.drive_watts(&configuration, &measurement.usage)?;
        simulated_ios += measurement.simulated_ios;
        measured.push(Measured { configuration, measurement: *measurement, usable, drive_watts });
    }
    for (configuration, (_, finding)) in set.cases.into_iter().zip(found) {
        let Finding::Case(report) = finding else { continue };
        simulated_ios += report.io.reads.ios() + report.io.writes.ios();
        cases.push(MeasuredCase { configuration, report: *report });
    }
    Ok(StudyOutcome {
        study: study.clone(),
        seed: runner.seed,
        fit,
        measured,
        cases,
        records,
        simulated_ios,
        elapsed: runner.clock.elapsed(),
    })
}

/// The figures that each alternative value of a band changes, by id. Parameters whose calibration figures it changes are fitted
/// again.
fn bands(
    study: &Study,
    fit: Option<&Fit>,
    runner: &Runner<'_>,
) -> Result<Vec<BTreeMap<String, f64>>, LabError> {
    let assumptions = study.assumptions.iter().filter(|assumption| assumption.is_band);
    let all: Vec<(&Assumption, &Variation)> =
        assumptions.flat_map(|one| one.variations.iter().map(move |variation| (one, variation))).collect();
    // Several at once, each on one thread.
    let find = |(_, variation): &(&Assumption, &Variation)| {
        let varied = study.varied(variation);
        let (moved, parts) = study.moved(variation);
        let measures: Vec<(&str, &Measure)> = study
            .figures
            .reported()
            .map(|reported| (reported.id, reported.measure))
            .filter(|(_, measure)| measure.needs_any(&moved))
            .collect();
        let needed = places(measures.iter().map(|(_, measure)| *measure));
        let runner = runner.varied(variation, &varied, &needed)?;
        let runner = Runner { threads: 1, curves: false, repeats: false, ..runner };
        let mut set = fitted(&varied, fit)?;
        for part in &parts {
            let again = runner.fit_part(&varied, part, false)?;
            set = set.with_values(part.values(&again))?;
        }
        let found = runner.find_quietly(&set, &needed)?;
        let value = |(id, measure): &(&str, &Measure)| {
            Some(((*id).to_owned(), number(measure, &set, &|place| found.get(&place))?))
        };
        Ok(measures.iter().filter_map(value).collect())
    };
    let done = AtomicUsize::new(0);
    each(&all, runner.threads, find, |at| {
        let what = format!("{}: {}", all[at].0.what, all[at].1.to);
        runner.tell(RunPhase::Varying, done.fetch_add(1, Ordering::Relaxed) + 1, all.len(), what, None);
    })
}

/// The least and the greatest value of a figure, its own among them; nothing where there are no others.
fn band(record: &Record, others: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let own = record.value.as_ref().and_then(Figure::number)?;
    let wider = |band: Option<[f64; 2]>, other: f64| {
        let [low, high] = band.unwrap_or([own, own]);
        Some([low.min(other), high.max(other)])
    };
    others.fold(None, wider).filter(|[low, high]| low < high)
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

    /// Fits a study's parameters. Those that move no figure in common are fitted apart from each other.
    pub(crate) fn fit(&self, study: &Study) -> Result<Option<Fit>, LabError> {
        let mut fits = Vec::new();
        for part in study.fit_parts() {
            let fit = self.fit_part(study, &part, true)?;
            fits.push((part.parameters, fit));
        }
        Ok(Fit::joined(fits))
    }

    /// Fits parameters that share figures. Without `profiles`, how far each can be moved is not determined.
    fn fit_part(&self, study: &Study, part: &FitPart, profiles: bool) -> Result<Fit, LabError> {
        let pick = |place: &usize| study.parameters[*place].clone();
        let parameters: Vec<FreeParameter> = part.parameters.iter().map(pick).collect();
        let figures: Vec<CalibrationFigure> =
            part.figures.iter().map(|place| study.figures.calibration()[*place].clone()).collect();
        let needed = places(figures.iter().map(CalibrationFigure::measure));
        let most = evaluations_max(parameters.len());
        let mut evaluations = 0;
        fit(&parameters, &figures, profiles, |values| {
            let set = study.with_values(part.parameters.iter().copied().zip(values.iter().copied()))?;
            let found = each(&needed, self.threads, |place| self.find(&set, *place, false), |_| {})?;
            evaluations += 1;
            let named = parameters.iter().zip(values);
            let named: Vec<String> = named
                .map(|(p, value)| format!("{} {} {}", p.name, crate::record::format_number(*value), p.unit))
                .collect();
            if profiles {
                self.tell(RunPhase::Fitting, evaluations, most, named.join(", "), None);
            }
            let value = |measure: &Measure| {
                let of = |place: usize| needed.binary_search(&place).ok().map(|at| &found[at]);
                crate::outcome::number(measure, &set, &of)
            };
            // A configuration without a result is as far away as can be.
            Ok(figures.iter().map(|figure| value(figure.measure()).unwrap_or(0.0)).collect())
        })
    }

    /// What a place of a study gives. With `whole`, also its curve and the intervals, where they are asked for.
    fn find(&self, study: &Study, place: usize, whole: bool) -> Result<Finding, LabError> {
        let Some(case) = place.checked_sub(study.configurations.len()) else {
            let configuration = &study.configurations[place];
            let mut measured = self.bench.measure(configuration, self.seed, whole && self.curves)?;
            if whole && self.repeats {
                self.bench.repeat(configuration, self.seed, &mut measured)?;
            }
            return Ok(Finding::Load(Box::new(measured)));
        };
        Ok(Finding::Case(Box::new(study.cases[case].case.measure(self.bench.catalog(), self.seed)?)))
    }

    /// Finds what every place gives.
    fn find_all(&self, study: &Study) -> Result<BTreeMap<usize, Finding>, LabError> {
        let all: Vec<usize> = (0..study.configurations.len() + study.cases.len()).collect();
        let done = AtomicUsize::new(0);
        let began = self.clock.elapsed();
        let told = Mutex::new(());
        self.find_distinct(study, &all, |place, of| {
            // One at a time, so that the counts reach the listener in order.
            let _in_order = told.lock();
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            let spent = self.clock.elapsed().saturating_sub(began);
            let left = spent.mul_f64((of - count) as f64 / count as f64);
            self.tell(RunPhase::Measuring, count, of, study.id_at(place).to_owned(), Some(left));
        })
    }

    /// Finds what some places give, and tells nothing.
    pub(crate) fn find_quietly(
        &self,
        study: &Study,
        places: &[usize],
    ) -> Result<BTreeMap<usize, Finding>, LabError> {
        self.find_distinct(study, places, |_, _| {})
    }

    /// Finds what places give, equal ones once; `finished` is told each of these, and how many they are.
    fn find_distinct(
        &self,
        study: &Study,
        places: &[usize],
        finished: impl Fn(usize, usize) + Sync,
    ) -> Result<BTreeMap<usize, Finding>, LabError> {
        let mut distinct: Vec<usize> = Vec::new();
        let mut known = Vec::new();
        for place in places {
            let same = distinct.iter().position(|other| study.are_same(*place, *other));
            known.push(same.unwrap_or(distinct.len()));
            if same.is_none() {
                distinct.push(*place);
            }
        }
        let find = |place: &usize| self.find(study, *place, true);
        let found = each(&distinct, self.threads, find, |at| finished(distinct[at], distinct.len()))?;
        Ok(places.iter().zip(known).map(|(place, at)| (*place, found[at].clone())).collect())
    }

    /// A runner with the catalogue of a variation, for some places of a study.
    pub(crate) fn varied(
        &self,
        variation: &Variation,
        study: &Study,
        places: &[usize],
    ) -> Result<Runner<'a>, LabError> {
        let catalog = match &variation.catalog {
            None => self.bench.catalog().clone(),
            Some(varied) => {
                let catalog = Catalog::embedded().varied(&varied.entry, &varied.parameter, varied.value);
                catalog.expect("it was checked with the study")
            }
        };
        // What no figure needs may be impossible then.
        let needed = places.iter().filter_map(|place| study.configurations.get(*place));
        let bench = Bench::new(catalog, needed)?;
        Ok(Runner { bench, clock: self.clock, ..*self })
    }

    pub(crate) fn tell(&self, phase: RunPhase, done: usize, of: usize, what: String, left: Option<Duration>) {
        (self.progress)(&RunProgress { phase, done, of, what, elapsed: self.clock.elapsed(), left });
    }
}

/// The study with the fit's values set.
pub(crate) fn fitted(study: &Study, fit: Option<&Fit>) -> Result<Study, LabError> {
    let values = fit.iter().flat_map(|fit| &fit.parameters).map(|fitted| fitted.value);
    Ok(study.with_values(values.enumerate())?)
}

/// The places that measures need, in order.
pub(crate) fn places<'a>(measures: impl Iterator<Item = &'a Measure>) -> Vec<usize> {
    let mut places: Vec<usize> = measures.flat_map(Measure::configurations).collect();
    places.sort_unstable();
    places.dedup();
    places
}
