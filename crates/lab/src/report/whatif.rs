//! Alternatives, for a terminal and as one HTML file: the answer in words, then the figures of each case.

use std::fmt::Write as _;

use askama::Template;
use tier0_units::ByteCount;

use super::Provenance;
use super::cases::{COLUMNS, Line, lines_of, terminal_table};
use super::terminal::table;
use crate::LabError;
use crate::case::CaseReport;
use crate::record::format_number;
use crate::whatif::search::{SearchResult, found};
use crate::whatif::{CaseFigures, ObjectFigures, WhatIf, answer, assumptions, figures};

/// What every figure rests on, in one sentence.
fn trust(whatif: &WhatIf) -> String {
    format!(
        "These are predictions of a model: ± is the 95 % interval of the simulation alone, and {} assumptions of workload, \
         engine and drives are not in it. Locks between transactions are not modelled.",
        assumptions(whatif)
    )
}

/// The report as text without colour; with a width, long cells are wrapped to it.
pub fn whatif_terminal(
    whatif: &WhatIf,
    reports: &[CaseReport],
    search: Option<&SearchResult>,
    provenance: &Provenance,
    width: Option<u16>,
) -> String {
    let mut text = format!("{}\n\n", whatif.title);
    answer(whatif, reports).iter().for_each(|line| _ = writeln!(text, "{line}"));
    if let Some(search) = search {
        let mut table = table(width, SEARCH_HEADER, &[3, 4, 5, 6, 7, 8]);
        search_cells(search).for_each(|cells| _ = table.add_row(cells));
        let _ = writeln!(text, "\n{}\n\n{}", found(search).join("\n"), table.trim_fmt());
    }
    let figures = figures(whatif, reports);
    let lines = lines_of(&figures);
    let _ = writeln!(
        text,
        "\n{}\n\n{COLUMNS}\n{}\n{}\n{}",
        terminal_table(lines, "case", "x now", Some(whatif.headline()), width).trim_fmt(),
        most_read(&figures[0]),
        trust(whatif),
        provenance.command,
    );
    text
}

/// The objects that a case reads most, in one sentence.
fn most_read(case: &CaseFigures) -> String {
    let (reads, bytes) = case.objects.iter().fold((0.0, 0), |(reads, bytes), object| {
        (reads + object.reads_per_transaction, bytes + object.bytes)
    });
    let mut objects: Vec<&ObjectFigures> = case.objects.iter().collect();
    objects.sort_by(|a, b| b.reads_per_transaction.total_cmp(&a.reads_per_transaction));
    let part = |object: &&ObjectFigures| {
        let of_reads = object.reads_per_transaction / f64::max(reads, 1e-9) * 100.0;
        let of_bytes = object.bytes as f64 / bytes.max(1) as f64 * 100.0;
        format!("{} {of_reads:.0} % of the reads ({of_bytes:.1} % of the data)", object.name)
    };
    let parts: Vec<String> = objects.iter().take(MOST_READ).map(part).collect();
    format!("most read in {:?}: {}", case.name, parts.join(", "))
}

const SEARCH_HEADER: [&str; 10] =
    ["drives", "raid", "set size", "needed", "price", "full %", "tps", "ms", "for room", "limit"];

/// A row for each candidate; of one that does not hold, its figures with the most drives that were tried.
fn search_cells(search: &SearchResult) -> impl Iterator<Item = [String; 10]> {
    search.candidates.iter().map(|candidate| {
        let maybe = |number: Option<f64>| number.map_or("–".to_owned(), format_number);
        let held = candidate.drives.and_then(|drives| candidate.probe(drives));
        let shown = held.or(candidate.probed.last());
        [
            candidate.model.clone(),
            candidate.raid.clone(),
            candidate.set_size.to_string(),
            candidate.drives.map_or("none holds".to_owned(), |drives| drives.to_string()),
            maybe(candidate.price),
            maybe(candidate.fill_percent),
            maybe(shown.map(|probed| probed.tps)),
            maybe(shown.map(|probed| probed.response_ms)),
            candidate.drives_for_room.to_string(),
            shown.map_or(String::new(), |probed| probed.limit.clone()),
        ]
    })
}

/// So many objects are named.
const MOST_READ: usize = 5;

/// The report as a page that needs nothing else.
///
/// # Errors
/// [`LabError::Render`] where the page cannot be rendered.
pub fn whatif_html(
    whatif: &WhatIf,
    reports: &[CaseReport],
    search: Option<&SearchResult>,
    provenance: &Provenance,
) -> Result<String, LabError> {
    let figures = figures(whatif, reports);
    let objects = figures[0].objects.iter().map(|object| ObjectLine {
        name: object.name.clone(),
        size: ByteCount(object.bytes).to_string(),
        reads: format_number(object.reads_per_transaction),
        writes: format_number(object.writes_per_transaction),
        read_ms: format_number(object.read_ms),
    });
    let page = Page {
        title: &whatif.title,
        answer: answer(whatif, reports),
        found: search.map(found).unwrap_or_default(),
        search_header: &SEARCH_HEADER,
        search: search.into_iter().flat_map(search_cells).map(Vec::from).collect(),
        headline: whatif.headline(),
        lines: lines_of(&figures),
        objects: objects.collect(),
        trust: trust(whatif),
        provenance,
    };
    Ok(page.render()?)
}

struct ObjectLine {
    name: String,
    size: String,
    reads: String,
    writes: String,
    read_ms: String,
}

#[derive(Template)]
#[template(path = "whatif.html")]
struct Page<'a> {
    title: &'a str,
    answer: Vec<String>,
    found: Vec<String>,
    search_header: &'static [&'static str],
    search: Vec<Vec<String>>,
    headline: &'a str,
    lines: Vec<Line>,
    objects: Vec<ObjectLine>,
    trust: String,
    provenance: &'a Provenance,
}
