//! Databases on arrays, as texts.

use comfy_table::Table;

use super::terminal::table;
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
    pub(super) hardware: String,
    /// Of the page's bars: percent of the longest.
    pub(super) bar: f64,
}

impl Line {
    fn of(figures: &CaseFigures, most: f64) -> Line {
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
            hardware: match figures.rack_units {
                Some(units) => format!("{} / {:.0} / {units}", figures.drives, figures.drive_watts),
                None => format!("{} / {:.0}", figures.drives, figures.drive_watts),
            },
            bar: 100.0 * figures.tps / most.max(1e-9),
        }
    }
}

/// Lines of figures, with bars as long as the rates.
pub(super) fn lines_of(all: &[CaseFigures]) -> Vec<Line> {
    let most = all.iter().map(|figures| figures.tps).fold(0.0, f64::max);
    all.iter().map(|figures| Line::of(figures, most)).collect()
}

/// A terminal's table of them: what the first column is called, what the rates are compared with, and the transactions of the
/// benchmark's own measure, if they have a column.
pub(super) fn terminal_table(
    lines: Vec<Line>,
    first: &str,
    over: &str,
    headline: Option<&str>,
    width: Option<u16>,
) -> Table {
    let headline = headline.map(|name| format!("{name}/min"));
    let mut header = vec![first, "tps", "", over];
    header.extend(headline.as_deref());
    header.extend(["ms", "p95 ms", "CPU", "reads/tx", "writes/tx", "read ms", "hits", HARDWARE]);
    let numbers: Vec<usize> = (1..header.len() - 1).collect();
    let mut table = table(width, header, &numbers);
    for l in lines {
        let mut row = vec![l.name, l.tps, l.half_width, l.over_now];
        row.extend(headline.is_some().then_some(l.headline));
        row.extend([l.response_ms, l.p95_ms, l.cpu, l.reads, l.writes, l.read_ms, l.hits, l.hardware]);
        table.add_row(row);
    }
    table
}

/// What the columns are.
pub(super) const COLUMNS: &str = "tps: transactions of all kinds per second · reads/tx, writes/tx: the database's page reads and \
                                  data writes for each · hits: in the database's buffer / the array's memory / its flash cache · \
                                  drives / W / U: their number, what they draw, and rack units of their enclosures (docs/catalog.md)";

/// The column of [`Line::hardware`].
const HARDWARE: &str = "drives / W / U";

/// The databases of a study, over the first of them.
pub(super) fn lines(cases: &[MeasuredCase]) -> Vec<Line> {
    let base = cases.first().map_or(0.0, |first| first.report.database.per_s);
    let figures = |measured: &MeasuredCase| {
        let MeasuredCase { configuration, report } = measured;
        CaseFigures::of(&configuration.id, &configuration.case, report, base)
    };
    lines_of(&cases.iter().map(figures).collect::<Vec<CaseFigures>>())
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
