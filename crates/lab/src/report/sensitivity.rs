//! Which assumptions move which figure, for a terminal: the strongest first.

use std::fmt::Write as _;

use super::Provenance;
use super::terminal::table;
use super::view::interval;
use crate::record::format_number;
use crate::sensitivity::{Sensitivity, Varied};

/// A change that the simulation alone may make shows as this many percent.
const DECIMALS: usize = 1;

/// The figures, numbered, and a line for each variation with what it does to them.
pub fn sensitivity(found: &Sensitivity, provenance: &Provenance, width: Option<u16>) -> String {
    let mut text = String::new();
    let mut figures = table(width, ["", "figure", "value", "", "unit"], &[0, 2, 3]);
    for (number, figure) in found.figures.iter().enumerate() {
        let interval = interval(figure.half_width);
        let value = format_number(figure.value);
        figures.add_row([name(number), figure.id.clone(), value, interval, figure.unit.clone()]);
    }
    let _ = writeln!(text, "{figures}");
    if found.variations.is_empty() {
        let _ = writeln!(
            text,
            "\nnone of the study's assumptions says what else it may be (docs/studies.md: vary)"
        );
    } else {
        let names = (0..found.figures.len()).map(name);
        let header: Vec<String> =
            ["assumption".to_owned(), "instead".to_owned()].into_iter().chain(names).collect();
        let right: Vec<usize> = (2..header.len()).collect();
        let mut changes = table(width, header, &right);
        let mut sorted: Vec<&Varied> = found.variations.iter().collect();
        sorted.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
        for varied in sorted {
            let shown = varied.changes.iter().map(|change| change.map_or("–".to_owned(), percent));
            let what = format!("{}: {}", varied.assumption, varied.from);
            changes.add_row([what, varied.to.clone()].into_iter().chain(shown));
        }
        let _ = writeln!(
            text,
            "\nchange of each figure in percent, one assumption at a time, nothing fitted again\n{changes}"
        );
    }
    if !found.not_varied.is_empty() {
        let _ = writeln!(text, "\nnot varied: {}", found.not_varied.join("; "));
    }
    let _ = writeln!(
        text,
        "{} · seed {} · tier0 {} · {:.1} s",
        provenance.command,
        found.seed,
        provenance.version,
        found.elapsed.as_secs_f64()
    );
    text
}

fn name(number: usize) -> String {
    format!("({})", number + 1)
}

fn strength(varied: &Varied) -> f64 {
    varied.changes.iter().flatten().map(|change| change.abs()).fold(0.0, f64::max)
}

fn percent(change: f64) -> String {
    format!("{:+.*}", DECIMALS, change * 100.0)
}
