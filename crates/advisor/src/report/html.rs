//! The page, which needs nothing else.

use askama::Template;

use super::{NOT_MEASURED, Row, change, gb, percent};
use crate::advice::{Advice, Verdict};
use crate::rules::Outcome;

/// The most bars of a chart.
const BARS_MAX: usize = 20;
/// The most rows of what stays; a database has thousands of small tables.
const STAYS_MAX: usize = 200;

/// What a report says of its own making.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The command that makes it again.
    pub command: String,
    /// The program's version.
    pub version: String,
    /// The commit it was built from, where that is known.
    pub commit: Option<String>,
}

struct Fact {
    name: &'static str,
    value: String,
}

struct Bar {
    name: String,
    value: String,
    width: f64,
}

struct RuleLine {
    id: &'static str,
    outcome: &'static str,
    fires: bool,
    unknown: bool,
    evidence: String,
    threshold: &'static str,
    advice: &'static str,
}

#[derive(Template)]
#[template(path = "advise.html")]
struct Page<'a> {
    answer: &'a [String],
    notes: &'a [String],
    facts: Vec<Fact>,
    bars: Vec<Bar>,
    chosen: Vec<Row>,
    stays: Vec<Row>,
    steps: Vec<Bar>,
    sizing: &'a [String],
    caches: &'a [String],
    rules: Vec<RuleLine>,
    sources: Vec<(String, &'static str, u64)>,
    provenance: &'a Provenance,
}

/// The page of an advice.
///
/// # Errors
/// The page cannot be rendered.
pub fn html(advice: &Advice, provenance: &Provenance) -> Result<String, askama::Error> {
    let of = |chosen: bool| {
        let rows = advice.objects.iter().filter(move |row| (row.verdict == Verdict::Flash) == chosen);
        rows.map(Row::of)
    };
    let mut stays: Vec<Row> = of(false).collect();
    if stays.len() > STAYS_MAX {
        let left = stays.len() - STAYS_MAX;
        stays.truncate(STAYS_MAX);
        if let Some(last) = stays.last_mut() {
            last.why = format!("{}; {left} more are in --json", last.why);
        }
    }
    let page = Page {
        answer: &advice.answer,
        notes: &advice.notes,
        facts: facts(advice),
        bars: bars(advice),
        chosen: of(true).collect(),
        stays,
        steps: steps(advice),
        sizing: &advice.sizing.words,
        caches: &advice.caches,
        rules: advice
            .findings
            .iter()
            .map(|finding| RuleLine {
                id: finding.rule,
                outcome: match finding.outcome {
                    Outcome::Fires => "fires",
                    Outcome::Silent => "silent",
                    Outcome::Unknown => "unknown",
                },
                fires: finding.outcome == Outcome::Fires,
                unknown: finding.outcome == Outcome::Unknown,
                evidence: finding.evidence.clone(),
                threshold: finding.threshold,
                advice: finding.advice,
            })
            .collect(),
        sources: advice
            .sources
            .iter()
            .map(|source| (source.file.clone(), source.format.words(), source.samples))
            .collect(),
        provenance,
    };
    page.render()
}

fn facts(advice: &Advice) -> Vec<Fact> {
    let or_not = |value: Option<String>| value.unwrap_or_else(|| NOT_MEASURED.to_owned());
    vec![
        Fact {
            name: "of the time at work, sessions wait for storage",
            value: or_not(advice.storage_share.map(percent)),
        },
        Fact { name: "processors busy", value: or_not(advice.busy.map(percent)) },
        Fact {
            name: "transactions, all chosen objects on flash",
            value: or_not(advice.chosen.gain.map(|gain| change(gain.expected))),
        },
        Fact {
            name: "of flash for them",
            value: match advice.objects.iter().any(|row| row.verdict == Verdict::Flash && row.bytes.is_none())
            {
                true => NOT_MEASURED.to_owned(),
                false => gb(advice.chosen.bytes),
            },
        },
    ]
}

fn bars(advice: &Advice) -> Vec<Bar> {
    let rows = advice.objects.iter().filter(|row| row.verdict == Verdict::Flash);
    let rows: Vec<_> = rows.filter_map(|row| Some((row, row.gain_per_gb?))).take(BARS_MAX).collect();
    let most = rows.iter().map(|(_, gain)| *gain).fold(0.0, f64::max);
    let bar = |(row, gain): &(&crate::advice::Ranked, f64)| Bar {
        name: row.name.clone(),
        value: format!("{:+.2} %", gain * 100.0),
        width: (gain.max(0.0) / most.max(1e-12) * 100.0).round(),
    };
    rows.iter().map(bar).collect()
}

fn steps(advice: &Advice) -> Vec<Bar> {
    let most = advice.steps.iter().map(|step| step.bytes).fold(0.0, f64::max);
    let bar = |step: &crate::advice::Step| Bar {
        name: format!("{:.0} % of the {}", step.share * 100.0, if step.of_waits { "waits" } else { "I/Os" }),
        value: gb(step.bytes),
        width: (step.bytes / most.max(1.0) * 100.0).round(),
    };
    advice.steps.iter().map(bar).collect()
}
