//! Databases on arrays, as texts.

use crate::record::format_number;
use crate::run::MeasuredCase;
use crate::whatif::{CaseFigures, limit_of};

/// One database as texts.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) tps: String,
    pub(super) half_width: String,
    pub(super) over_now: String,
    pub(super) headline: String,
    pub(super) response_ms: String,
    pub(super) p95_ms: String,
    pub(super) cpu: String,
    pub(super) reads: String,
    pub(super) writes: String,
    pub(super) read_ms: String,
    pub(super) hits: String,
    /// Of the page's bars: percent of the longest.
    pub(super) bar: f64,
}

impl Line {
    pub(super) fn of(figures: &CaseFigures, most: f64) -> Line {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let maybe = |share: Option<f64>| share.map_or("–".to_owned(), percent);
        Line {
            name: figures.name.clone(),
            tps: format_number(figures.tps),
            half_width: format!("± {:.1} %", figures.half_width * 100.0),
            over_now: format!("{:.2}", figures.over_now),
            headline: format_number(figures.headline_per_minute),
            response_ms: format_number(figures.response_ms),
            p95_ms: format_number(figures.p95_ms),
            cpu: percent(figures.cpu),
            reads: format_number(figures.reads_per_transaction),
            writes: format_number(figures.writes_per_transaction),
            read_ms: format_number(figures.read_ms),
            hits: format!(
                "{} / {} / {}",
                percent(figures.buffer_hits),
                maybe(figures.memory_hits),
                maybe(figures.flash_hits)
            ),
            bar: 100.0 * figures.tps / most.max(1e-9),
        }
    }
}

/// The databases of a study, over the first of them.
pub(super) fn lines(cases: &[MeasuredCase]) -> Vec<Line> {
    let base = cases.first().map_or(0.0, |first| first.report.database.per_s);
    let figures = |measured: &MeasuredCase| {
        let MeasuredCase { configuration, report } = measured;
        CaseFigures::of(&configuration.id, &configuration.case, report, base)
    };
    let all: Vec<CaseFigures> = cases.iter().map(figures).collect();
    let most = all.iter().map(|figures| figures.tps).fold(0.0, f64::max);
    all.iter().map(|figures| Line::of(figures, most)).collect()
}

/// What each database does, and what limits it, a sentence each.
pub(super) fn sentences(cases: &[MeasuredCase]) -> Vec<String> {
    let sentence = |MeasuredCase { configuration, report }: &MeasuredCase| {
        format!(
            "{}: {} transactions per minute at {} ms; the limit is {}.",
            configuration.title,
            format_number(report.counted_per_s * 60.0),
            format_number(report.database.response_ms),
            limit_of(&configuration.case, report).words(),
        )
    };
    cases.iter().map(sentence).collect()
}
