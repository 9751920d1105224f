//! The report as one HTML file: no script, no network, light and dark, wide and narrow.

use askama::Template;
use tier0_catalog::SourceKind;

use super::answer::{RankingTable, ranking_tables, trust};
use super::caches::{NeighbourLine, WriteCacheLine, neighbours, write_caches};
use super::cases::{Line, lines as case_lines, sentences};
use super::chart::{Chart, swatch};
use super::curves::charts;
use super::matrix::{Matrix, matrices};
use super::view::{
    ImportedLine, MeasurementLine, RecordLine, WorkLine, agrees, doubts, imported, predictions,
};
use super::{Provenance, parameters_of_kind, strip};
use crate::LabError;
use crate::calibrate::Fitted;
use crate::record::{Role, Verdict, format_number};
use crate::run::StudyOutcome;
use crate::study::Assumption;

/// The report.
///
/// # Errors
/// [`LabError`] where the catalogue lacks what the study rests on, or the page cannot be rendered.
pub fn html(outcome: &StudyOutcome, provenance: &Provenance) -> Result<String, LabError> {
    Ok(Page::of(outcome, provenance)?.render()?)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: &'a str,
    description: &'a str,
    mechanism: &'a [String],
    rankings: Vec<RankingTable>,
    sentences: Vec<String>,
    cases: Vec<Line>,
    trust: String,
    verdict: String,
    /// How many of the published predictions are within their tolerance.
    predictions_within: usize,
    predictions_compared: usize,
    calibration: Vec<RecordLine>,
    prediction: Vec<RecordLine>,
    withheld: Vec<RecordLine>,
    derived: Vec<RecordLine>,
    /// Those outside of the grid, which has its own tables.
    unpublished: Vec<RecordLine>,
    /// Points of the grid of which nothing was published.
    grid_unpublished: usize,
    fitted: &'a [Fitted],
    evaluations: usize,
    charts: Vec<Chart>,
    matrices: Vec<Matrix>,
    grid_unit: &'a str,
    measurements: Vec<MeasurementLine>,
    work: Vec<WorkLine>,
    write_caches: Vec<WriteCacheLine>,
    neighbours: Vec<NeighbourLine>,
    imported: Vec<ImportedLine>,
    assumptions: &'a [Assumption],
    entries: Vec<Entry>,
    assumed_count: usize,
    provenance: &'a Provenance,
    seed: u64,
    simulated_ios: String,
    elapsed: String,
}

/// The assumed parameters of one entry of the catalogue.
struct Entry {
    id: String,
    rows: Vec<EntryRow>,
}

struct EntryRow {
    parameter: String,
    value: String,
    source: String,
}

impl<'a> Page<'a> {
    fn of(outcome: &'a StudyOutcome, provenance: &'a Provenance) -> Result<Page<'a>, LabError> {
        let lines: Vec<RecordLine> = outcome.records.iter().map(RecordLine::of).collect();
        let some =
            |keep: &dyn Fn(&RecordLine) -> bool| lines.iter().filter(|line| keep(line)).cloned().collect();
        let (within, compared) = predictions(&lines);
        let entries = entries(outcome)?;
        let assumed_count: usize = entries.iter().map(|entry| entry.rows.len()).sum();
        let imported = imported(&outcome.study)?;
        let fit = outcome.fit.as_ref();
        Ok(Page {
            title: &outcome.study.title,
            description: &outcome.study.description,
            mechanism: &outcome.study.mechanism,
            rankings: ranking_tables(outcome),
            sentences: sentences(&outcome.cases),
            cases: case_lines(&outcome.cases),
            trust: trust(outcome, &lines, outcome.study.assumptions.len() + assumed_count, imported.len()),
            verdict: format!("{within} of {compared}"),
            predictions_within: within,
            predictions_compared: compared,
            calibration: some(&|line| line.role == Role::Calibration),
            prediction: some(&|l| l.role == Role::Prediction && l.is_published() && !l.is_withheld()),
            withheld: some(&|line| line.role == Role::Prediction && line.is_withheld()),
            derived: some(&|line| line.role == Role::Derived),
            unpublished: some(&|line| line.role == Role::Unpublished && !line.is_of_grid(&outcome.study)),
            grid_unpublished: lines
                .iter()
                .filter(|line| !line.is_published() && line.is_of_grid(&outcome.study))
                .count(),
            fitted: fit.map_or(&[], |fit| &fit.parameters),
            evaluations: fit.map_or(0, |fit| fit.evaluations),
            charts: charts(outcome),
            matrices: matrices(outcome),
            grid_unit: outcome.study.grid.as_ref().map_or("", |grid| &grid.unit),
            measurements: outcome.measured.iter().map(MeasurementLine::of).collect(),
            work: outcome.measured.iter().map(WorkLine::of).collect(),
            write_caches: write_caches(outcome.measured.iter()),
            neighbours: neighbours(outcome.measured.iter()),
            imported,
            assumptions: &outcome.study.assumptions,
            assumed_count,
            entries,
            provenance,
            seed: outcome.seed,
            simulated_ios: format_number(outcome.simulated_ios as f64),
            elapsed: format!("{:.1} s", outcome.elapsed.as_secs_f64()),
        })
    }

    fn error_strip(&self, line: &RecordLine) -> String {
        line.distance.map_or(String::new(), strip::error)
    }

    fn range_strip(&self, fitted: &Fitted) -> String {
        let logarithmic = fitted.least > 0.0 && fitted.most / fitted.least > 10.0;
        let share = |value: f64| match logarithmic {
            true => (value / fitted.least).ln() / (fitted.most / fitted.least).ln(),
            false => (value - fitted.least) / (fitted.most - fitted.least),
        };
        strip::range(share(fitted.value), share(fitted.start))
    }

    fn agrees(&self, fitted: &Fitted) -> String {
        agrees(fitted)
    }

    fn doubts(&self, fitted: &Fitted) -> Vec<&'static str> {
        doubts(fitted)
    }

    fn number(&self, value: &f64) -> String {
        format_number(*value)
    }

    fn swatch(&self, place: &usize) -> String {
        swatch(*place)
    }

    /// Strength of a cell's shade, in percent: pale enough everywhere for the text to stay readable.
    fn shade(&self, share: &f64) -> String {
        format!("{:.0}", 4.0 + share * 0.5)
    }
}

fn entries(outcome: &StudyOutcome) -> Result<Vec<Entry>, LabError> {
    let mut entries: Vec<Entry> = Vec::new();
    for assumed in parameters_of_kind(&outcome.study, SourceKind::Assumed)? {
        let row = EntryRow { parameter: assumed.parameter, value: assumed.value, source: assumed.source };
        match entries.iter_mut().find(|entry| entry.id == assumed.entry) {
            Some(entry) => entry.rows.push(row),
            None => entries.push(Entry { id: assumed.entry, rows: vec![row] }),
        }
    }
    Ok(entries)
}
