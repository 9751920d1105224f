//! Alternatives, for a terminal and as one HTML file: the answer in words, then the figures of each case.

use std::fmt::Write as _;

use askama::Template;

use super::Provenance;
use super::cases::{COLUMNS, Line, lines_of, terminal_table};
use crate::LabError;
use crate::case::CaseReport;
use crate::record::format_number;
use crate::whatif::{WhatIf, answer, assumptions, figures};

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
    provenance: &Provenance,
    width: Option<u16>,
) -> String {
    let mut text = format!("{}\n\n", whatif.title);
    answer(whatif, reports).iter().for_each(|line| _ = writeln!(text, "{line}"));
    let lines = lines_of(&figures(whatif, reports));
    let _ = writeln!(
        text,
        "\n{}\n\n{COLUMNS}\n{}\n{}",
        terminal_table(lines, "case", "x now", Some(whatif.headline()), width).trim_fmt(),
        trust(whatif),
        provenance.command,
    );
    text
}

/// The report as a page that needs nothing else.
///
/// # Errors
/// [`LabError::Render`] where the page cannot be rendered.
pub fn whatif_html(
    whatif: &WhatIf,
    reports: &[CaseReport],
    provenance: &Provenance,
) -> Result<String, LabError> {
    let objects = reports[0].database.objects.iter().map(|object| ObjectLine {
        name: object.name.clone(),
        size: object.bytes.to_string(),
        reads: format_number(object.reads),
        writes: format_number(object.writes),
        read_ms: format_number(object.read_ms),
    });
    let page = Page {
        title: &whatif.title,
        answer: answer(whatif, reports),
        headline: whatif.headline(),
        lines: lines_of(&figures(whatif, reports)),
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
    headline: &'a str,
    lines: Vec<Line>,
    objects: Vec<ObjectLine>,
    trust: String,
    provenance: &'a Provenance,
}
