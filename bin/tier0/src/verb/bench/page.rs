//! The report of a run as one HTML file: rates and response times over time, and the tables of the text.

use std::path::Path;

use comfy_table::Table;
use tier0_bench::run::report::RunReport;
use tier0_bench::run::tally::Second;
use tier0_lab::report::{Chart, Figures, FiguresTable, Provenance, Series, figures_html};

use super::report::{self, figure, headline};
use crate::failure::Failure;
use crate::output::thousands;

/// Points of a curve at most; a longer run is shown in equal parts.
const POINTS_MAX: usize = 120;

/// Writes the page of a run.
pub(super) fn write(report: &RunReport, path: &Path) -> Result<(), Failure> {
    let failed = |fact: String| {
        Failure::Run(format!("cannot write {}: {fact}; name another file in --html", path.display()))
    };
    let page = figures_html(&figures(report), &provenance()).map_err(|error| failed(error.to_string()))?;
    std::fs::write(path, page).map_err(|error| failed(error.to_string()))
}

fn figures(run: &RunReport) -> Figures {
    let unit = report::unit(run);
    let of = |title: &str, note: &str, table: &Table| FiguresTable {
        title: title.to_owned(),
        note: note.to_owned(),
        header: table
            .header()
            .into_iter()
            .flat_map(|row| row.cell_iter())
            .map(|cell| cell.content())
            .collect(),
        rows: table.row_iter().map(|row| row.cell_iter().map(|cell| cell.content()).collect()).collect(),
    };
    let mut tables = vec![
        of(if unit == "query" { "Queries" } else { "Transactions" }, "", &report::transactions(run)),
        of(
            "Database and array",
            "Reads of the database are blocks that it asked the operating system for, whose page cache may have them.",
            &report::per_transaction(run),
        ),
        of("I/O by object", &format!("Counts for each {unit}, by blocks read."), &report::objects(run)),
    ];
    tables
        .extend(report::volumes(run).map(|rows| of("Volumes of the array", "As the array saw them.", &rows)));
    Figures {
        title: format!("{} on PostgreSQL, {}", run.workload, report::scale(run)),
        answer: report::lines(run),
        facts: facts(run),
        charts: charts(run),
        tables,
        remarks: run.not_measured.iter().map(|gap| format!("{}: {}.", gap.what, gap.why)).collect(),
    }
}

/// The run's own measure, as its report has it.
pub(super) fn own_rate(run: &RunReport) -> f64 {
    run.queries_per_hour.or(run.nopm).or(run.trade_results_per_second).unwrap_or(0.0)
}

fn facts(run: &RunReport) -> Vec<(String, String)> {
    let (name, _) = headline(run);
    let words = match name {
        "NOPM" => "New-Orders committed per minute (NOPM)",
        "results/s" => "trade results per second",
        _ => "queries per hour",
    };
    let mut facts = vec![(figure(own_rate(run)), words.to_owned())];
    if run.queries_per_hour.is_none() {
        facts.push((thousands(run.commits_per_minute), "commits per minute".to_owned()));
    }
    if let Some(response) = &run.response_ms {
        let (value, unit) = match run.queries_per_hour {
            Some(_) => (response.p95 / 1000.0, "s"),
            None => (response.p95, "ms"),
        };
        facts.push((format!("{} {unit}", figure(value)), "95 % answered within".to_owned()));
    }
    if let Some(reads) = run.per_transaction.database_reads {
        facts.push((figure(reads), format!("blocks read by the database per {}", report::unit(run))));
    }
    if let Some(reads) = run.per_transaction.array_reads {
        facts.push((figure(reads), format!("reads of the array per {}", report::unit(run))));
    }
    facts
}

fn charts(run: &RunReport) -> Vec<Chart> {
    let (name, unit_s) = headline(run);
    let parts: Vec<&[Second]> = run.series.chunks(run.series.len().div_ceil(POINTS_MAX).max(1)).collect();
    let begins = |place: usize| match place {
        0 => 0.0,
        _ => parts[place - 1].last().map_or(0.0, |last| last.second),
    };
    let series = |label: &str, value: &dyn Fn(&[Second], f64) -> Option<f64>| {
        let at = |(place, part): (usize, &&[Second])| {
            let until = part.last()?.second;
            let length = until - begins(place);
            // The rest of a second at the end of a run says little.
            (length >= 0.5).then(|| value(part, length).map(|value| (until, value))).flatten()
        };
        let points = parts.iter().enumerate().filter_map(at).collect();
        Series { label: label.to_owned(), points, result: None, published: None }
    };
    let chart = |title: &str, y_label: &str, all: Vec<Series>| Chart {
        title: title.to_owned(),
        x_label: "seconds".to_owned(),
        x_is_logarithmic: false,
        y_label: y_label.to_owned(),
        limit: None,
        series: all,
    };
    let rate = |count: fn(&Second) -> u64, unit_s: f64| {
        move |part: &[Second], length: f64| Some(part.iter().map(count).sum::<u64>() as f64 / length * unit_s)
    };
    let worst =
        |part: &[Second], _: f64| part.iter().filter_map(|second| second.p95_ms).max_by(f64::total_cmp);
    let busy = |part: &[Second], _: f64| {
        let busy: Vec<f64> = part.iter().filter_map(|second| second.busy).collect();
        (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64 * 100.0)
    };
    let mut charts = vec![chart("Rate", name, vec![series(name, &rate(|second| second.headline, unit_s))])];
    if run.queries_per_hour.is_none() {
        let commits = rate(|second| second.commits, 60.0);
        charts.push(chart("All commits", "per minute", vec![series("commits", &commits)]));
    }
    charts.push(chart("95th percentile of the response time", "ms", vec![series("p95", &worst)]));
    charts.push(chart("Processors busy", "%", vec![series("busy", &busy)]));
    charts.retain(|chart| chart.series.iter().any(|series| !series.points.is_empty()));
    charts
}

/// The command of this program, without the address of the database, which may have a password.
fn provenance() -> Provenance {
    let mut arguments = vec!["tier0".to_owned()];
    let mut hides_next = false;
    for argument in std::env::args().skip(1) {
        arguments.push(match (hides_next, argument.split_once('=')) {
            (true, _) => "…".to_owned(),
            (false, Some(("--dsn", _))) => "--dsn=…".to_owned(),
            _ => argument.clone(),
        });
        hides_next = argument == "--dsn";
    }
    Provenance {
        command: arguments.join(" "),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: crate::verb::lab::commit(),
    }
}
