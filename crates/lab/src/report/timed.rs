//! A trace on a modelled array, for a terminal and as one HTML file: the answer in words, then figures by kind and by interval.

use askama::Template;
use comfy_table::Table;

use super::Provenance;
use super::chart::{Chart, Series, swatch};
use super::terminal::table;
use crate::LabError;
use crate::record::format_number;
use crate::timed::{IntervalFigures, KindFigures, PaceFigures, TimedReport, WAIT_MS};

/// What is replayed, and on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedTitle {
    /// The trace.
    pub trace: String,
    /// The array.
    pub array: String,
}

/// Requests that wait in the host for less than this do not count as behind, seconds.
const BEHIND_S: f64 = 0.001;

/// What came of it, a sentence or two each.
fn answer(report: &TimedReport) -> Vec<String> {
    let mut lines = vec![format!(
        "{} reads and writes in {}: {} IOPS, {} MB/s.",
        format_number(report.requests as f64),
        seconds(report.duration_s),
        format_number(report.iops),
        format_number(report.mb_s),
    )];
    let kinds = [("reads", &report.read), ("writes", &report.write)].into_iter();
    let means = kinds.filter_map(|(name, kind)| {
        let kind = kind.as_ref()?;
        let (mean, p99) = (format_number(kind.latency_ms_mean), format_number(kind.latency_ms_p99));
        Some(format!("{name} take {mean} ms on average, and 99 % of them at most {p99} ms"))
    });
    let means = means.collect::<Vec<_>>().join("; ");
    let slow = percent(report.over_20_ms_share);
    lines.push(format!("{}. {slow} of all take longer than {WAIT_MS} ms.", capital(&means)));
    lines.push(behind(report));
    lines.extend(served(report));
    if !report.drives_busy.is_empty() {
        let busy = report.drives_busy.iter();
        let busy = busy.map(|row| format!("{} {}", row.resource, percent(row.busy))).collect::<Vec<_>>();
        lines.push(format!("At work, as a share of the time: {}.", busy.join(", ")));
    }
    lines.extend(left_out(report));
    let empty = match report.empty_at_start.is_empty() {
        true => String::new(),
        false => format!("; at the start these were empty: {}", report.empty_at_start.join(", ")),
    };
    lines.push(format!(
        "Assumed: the volumes had been written before{empty}. Host, network and the array's processors cost no time."
    ));
    lines
}

/// Whether the array kept up.
fn behind(report: &TimedReport) -> String {
    let (PaceFigures::Speed(speed), Some(trace_s)) = (report.pace, report.trace_s) else {
        return format!(
            "Closed loop: {} requests outstanding at any time; the trace's times are ignored.",
            report.outstanding_max
        );
    };
    let at = if speed == 1.0 { String::new() } else { format!(" at {speed} times its speed") };
    let lasts = format!("The trace lasts {}{at}", seconds(trace_s));
    let end = report.behind_at_end_s.unwrap_or_default();
    match report.behind_max_s < BEHIND_S {
        true => format!("{lasts}, and the array kept up with it."),
        false => format!(
            "{lasts}, and the array fell behind by up to {}: {} requests were outstanding, and others waited in the host. The last \
             answer came {} after the last request.",
            seconds(report.behind_max_s),
            report.outstanding_max,
            seconds(end),
        ),
    }
}

/// What answered reads, where there was a choice.
fn served(report: &TimedReport) -> Option<String> {
    let work = &report.work;
    let shares = [
        (work.read_hits, "memory answered", "of the reads that looked there"),
        (work.flash_hits, "the flash cache answered", "of the reads that looked there"),
        (
            work.tier_hits,
            "the tier's fast group answered",
            "of the reads of up to 64 KiB that went to drives",
        ),
    ];
    let words = shares
        .iter()
        .filter_map(|(share, who, of)| share.map(|share| format!("{who} {} {of}", percent(share))))
        .collect::<Vec<_>>();
    (!words.is_empty()).then(|| format!("{}.", capital(&words.join("; "))))
}

/// What was passed on besides reads and writes, and what was not.
fn left_out(report: &TimedReport) -> Option<String> {
    let counts = [
        (report.discards, "discards were passed on"),
        (report.flushes, "flushes were passed on"),
        (report.discards_left_out, "discards of places that are neither read nor written were left out"),
        (report.empty_left_out, "requests without data were left out"),
    ];
    let words = counts.iter().filter(|(count, _)| *count > 0);
    let words =
        words.map(|(count, what)| format!("{} {what}", format_number(*count as f64))).collect::<Vec<_>>();
    (!words.is_empty()).then(|| format!("{}.", capital(&words.join("; "))))
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A time in a unit that is easy to read.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{} h", format_number(s / 3600.0)),
        s if s >= 1.0 || s == 0.0 => format!("{} s", format_number(s)),
        s => format!("{} ms", format_number(s * 1e3)),
    }
}

/// The figures of a kind as texts, without its name.
fn cells(kind: &KindFigures) -> [String; 7] {
    [
        format_number(kind.requests as f64),
        format_number(kind.latency_ms_mean),
        format_number(kind.latency_ms_p50),
        format_number(kind.latency_ms_p95),
        format_number(kind.latency_ms_p99),
        format_number(kind.latency_ms_max),
        percent(kind.over_20_ms_share),
    ]
}

/// An interval as texts.
fn interval_cells(interval: &IntervalFigures) -> [String; 7] {
    let of = |kind: &Option<KindFigures>, figure: fn(&KindFigures) -> f64| {
        kind.as_ref().map_or("–".to_owned(), |kind| format_number(figure(kind)))
    };
    let mean = |kind: &KindFigures| kind.latency_ms_mean;
    let p99 = |kind: &KindFigures| kind.latency_ms_p99;
    [
        format_number(interval.start_s),
        format_number(interval.iops),
        format_number(interval.mb_s),
        of(&interval.read, mean),
        of(&interval.read, p99),
        of(&interval.write, mean),
        of(&interval.write, p99),
    ]
}

const KIND_HEADER: [&str; 8] =
    ["", "requests", "mean ms", "p50 ms", "p95 ms", "p99 ms", "max ms", "over 20 ms"];
const INTERVAL_HEADER: [&str; 7] =
    ["from s", "IOPS", "MB/s", "read ms", "read p99 ms", "write ms", "write p99 ms"];

fn kinds(report: &TimedReport) -> impl Iterator<Item = (&'static str, [String; 7])> {
    let kinds = [("reads", report.read), ("writes", report.write)];
    kinds.into_iter().filter_map(|(name, kind)| kind.map(|kind| (name, cells(&kind))))
}

/// The report as text without colour; with a width, long cells are wrapped to it.
pub fn timed_terminal(report: &TimedReport, title: &TimedTitle, width: Option<u16>) -> String {
    let mut by_kind: Table = table(width, KIND_HEADER, &[1, 2, 3, 4, 5, 6, 7]);
    for (name, cells) in kinds(report) {
        by_kind.add_row([name.to_owned()].into_iter().chain(cells));
    }
    let mut by_time = table(width, INTERVAL_HEADER, &[0, 1, 2, 3, 4, 5, 6]);
    for interval in &report.intervals {
        by_time.add_row(interval_cells(interval));
    }
    format!(
        "{} on array {}\n\n{}\n\n{}\n\nBy the time of the answer, in intervals of {}:\n{}\n",
        title.trace,
        title.array,
        answer(report).join("\n"),
        by_kind.trim_fmt(),
        seconds(report.interval_s),
        by_time.trim_fmt(),
    )
}

/// The report as a page that needs nothing else.
///
/// # Errors
/// [`LabError::Render`] where the page cannot be rendered.
pub fn timed_html(
    report: &TimedReport,
    title: &TimedTitle,
    provenance: &Provenance,
) -> Result<String, LabError> {
    let page = Page {
        title,
        answer: answer(report),
        charts: charts(report),
        kinds: kinds(report).map(|(name, cells)| (name, cells.to_vec())).collect(),
        interval: seconds(report.interval_s),
        intervals: report.intervals.iter().map(|interval| interval_cells(interval).to_vec()).collect(),
        provenance,
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "timed.html")]
struct Page<'a> {
    title: &'a TimedTitle,
    answer: Vec<String>,
    charts: Vec<Chart>,
    kinds: Vec<(&'static str, Vec<String>)>,
    interval: String,
    intervals: Vec<Vec<String>>,
    provenance: &'a Provenance,
}

impl Page<'_> {
    fn swatch(&self, place: &usize) -> String {
        swatch(*place)
    }

    fn kind_header(&self) -> &'static [&'static str] {
        &KIND_HEADER[1..]
    }

    fn interval_header(&self) -> &'static [&'static str] {
        &INTERVAL_HEADER
    }
}

/// Figures of intervals over time, each at the middle of its interval.
fn charts(report: &TimedReport) -> Vec<Chart> {
    let series = |label: &str, figure: &dyn Fn(&IntervalFigures) -> Option<f64>| {
        let at = |interval: &IntervalFigures| {
            figure(interval).map(|figure| (interval.start_s + interval.length_s / 2.0, figure))
        };
        let points = report.intervals.iter().filter_map(at).collect();
        Series { label: label.to_owned(), points, result: None, published: None }
    };
    let chart = |title: &str, y_label: &str, all: Vec<Series>| Chart {
        title: title.to_owned(),
        x_label: "seconds".to_owned(),
        x_is_logarithmic: false,
        y_label: y_label.to_owned(),
        limit: None,
        series: all.into_iter().filter(|series| !series.points.is_empty()).collect(),
    };
    vec![
        chart(
            "Mean latency",
            "ms",
            vec![
                series("reads", &|interval| Some(interval.read?.latency_ms_mean)),
                series("writes", &|interval| Some(interval.write?.latency_ms_mean)),
            ],
        ),
        chart(
            "99th percentile of the latency",
            "ms",
            vec![
                series("reads", &|interval| Some(interval.read?.latency_ms_p99)),
                series("writes", &|interval| Some(interval.write?.latency_ms_p99)),
            ],
        ),
        chart("Requests", "IOPS", vec![series("reads and writes", &|interval| Some(interval.iops))]),
        chart("Throughput", "MB/s", vec![series("reads and writes", &|interval| Some(interval.mb_s))]),
    ]
}
