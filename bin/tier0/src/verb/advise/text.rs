//! An advice for the terminal.

use std::fmt::Write as _;

use tier0_advisor::advice::{Advice, Ranked, Verdict};
use tier0_advisor::report::{NOT_MEASURED, Row, gb};
use tier0_advisor::rules::Outcome;

use crate::output::{align_right, escaped, escaped_lines, rendered, table, wrapped};

/// Rows of what stays; the rest is in JSON.
const STAYS_SHOWN: usize = 12;

/// The advice as text.
pub(super) fn text(advice: &Advice) -> String {
    let mut text = format!("{}\n", wrapped(&escaped(&advice.answer.join(" ")), ""));
    let of = |chosen: bool| -> Vec<&Ranked> {
        advice.objects.iter().filter(|row| (row.verdict == Verdict::Flash) == chosen).collect()
    };
    let (chosen, stays) = (of(true), of(false));
    if !chosen.is_empty() {
        let mut rows =
            table(&["to flash", "size", "I/O", "waits", "ms/IO", "gain", "interval", "per GB", "why"]);
        for row in chosen {
            let row = shown(row);
            let why = row.why.clone();
            rows.add_row([
                row.name,
                row.size,
                row.ios,
                row.waits,
                row.ms,
                row.gain,
                row.interval,
                row.per_gb,
                why,
            ]);
        }
        align_right(&mut rows, 1..8);
        let _ = write!(text, "\n{}\n", rendered(&rows));
    }
    if !stays.is_empty() {
        let mut rows = table(&["stays", "size", "I/O", "waits", "ms/IO", "why"]);
        for row in stays.iter().take(STAYS_SHOWN) {
            let row = shown(row);
            rows.add_row([row.name, row.size, row.ios, row.waits, row.ms, row.why]);
        }
        align_right(&mut rows, 1..5);
        let _ = write!(text, "\n{}\n", rendered(&rows));
        if stays.len() > STAYS_SHOWN {
            let _ = writeln!(text, "and {} more (--json)", stays.len() - STAYS_SHOWN);
        }
    }
    if !advice.steps.is_empty() {
        let steps: Vec<String> = advice
            .steps
            .iter()
            .map(|step| format!("{:.0} % in {}", step.share * 100.0, gb(step.bytes)))
            .collect();
        let _ = writeln!(
            text,
            "\n{}",
            wrapped(
                &format!(
                    "How much flash: of the {} of data that may move (not the log, temporary or scanned data), {}.",
                    if advice.steps[0].of_waits { "waits" } else { "I/Os" },
                    steps.join(", ")
                ),
                "  "
            )
        );
    } else {
        let _ = writeln!(text, "\nHow much flash: {NOT_MEASURED}; sizes with waits or I/Os are needed.");
    }
    let mut list = |heading: &str, lines: &[String]| {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{heading}");
            lines.iter().for_each(|line| {
                _ = writeln!(text, "{}", wrapped(&format!("  - {}", escaped(line)), "    "))
            });
        }
    };
    list("Drives", &advice.sizing.words);
    list("Caches", &advice.caches);
    let fired = advice.findings.iter().filter(|finding| finding.outcome == Outcome::Fires);
    let fired: Vec<String> = fired
        .map(|finding| format!("{}: {}. {}.", finding.rule, finding.evidence, capital(finding.advice)))
        .collect();
    list("Rules that fire", &fired);
    let silent: Vec<&str> = names(advice, Outcome::Silent);
    let unknown: Vec<&str> = names(advice, Outcome::Unknown);
    list("Rules that are silent", &joined(&silent));
    list("Rules that lack a measurement (--html and --json say which)", &joined(&unknown));
    list("Notes", &advice.notes);
    escaped_lines(&text)
}

/// A row whose names stay on its line.
fn shown(row: &Ranked) -> Row {
    let row = Row::of(row);
    Row { name: escaped(&row.name), why: escaped(&row.why), ..row }
}

fn joined(names: &[&str]) -> Vec<String> {
    if names.is_empty() { Vec::new() } else { vec![names.join(", ")] }
}

fn names(advice: &Advice, outcome: Outcome) -> Vec<&str> {
    advice.findings.iter().filter(|finding| finding.outcome == outcome).map(|finding| finding.rule).collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
