//! Two reports of runs, figure by figure.

use serde::Serialize;
use tier0_bench::run::report::{PerTransaction, RunReport};
use tier0_bench::run::tally::Quantiles;

use super::super::report::{figure, scale};
use crate::output::{align_right, escaped, rendered, table, wrapped};

/// A figure of both.
#[derive(Serialize)]
struct Figure {
    name: String,
    /// None: not measured.
    first: Option<f64>,
    second: Option<f64>,
    /// Second to first; none where one is missing or the first is 0.
    ratio: Option<f64>,
}

/// What is different in what was run.
#[derive(Serialize)]
struct Setting {
    name: String,
    first: String,
    second: String,
}

/// Two runs.
#[derive(Serialize)]
pub(super) struct Comparison {
    /// A line for each run that ended early.
    early: Vec<String>,
    settings: Vec<Setting>,
    figures: Vec<Figure>,
}

impl Comparison {
    pub(super) fn of(first: &RunReport, second: &RunReport) -> Comparison {
        Comparison {
            early: super::early([("the first run", first), ("the second run", second)]),
            settings: settings(first, second),
            figures: figures(first, second),
        }
    }
}

fn settings(first: &RunReport, second: &RunReport) -> Vec<Setting> {
    let of = |report: &RunReport| {
        let settings = serde_json::to_value(&report.settings).expect("settings can be written as JSON");
        let mut told: Vec<(String, String)> = Vec::new();
        for (name, value) in settings.as_object().into_iter().flatten() {
            told.push((name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        told.push(("database".to_owned(), report.database.clone()));
        told.push(("server".to_owned(), report.server.clone()));
        told.push(("load".to_owned(), report.workload.clone()));
        told.push(("size".to_owned(), scale(report)));
        told.push(("volumes of the array".to_owned(), super::volumes(report)));
        told.push(("cores".to_owned(), super::cores(report)));
        told
    };
    let (first, second) = (of(first), of(second));
    let names: Vec<&String> = first.iter().chain(&second).map(|(name, _)| name).collect();
    let mut seen = std::collections::BTreeSet::new();
    let value = |told: &[(String, String)], name: &str| {
        let found = told.iter().find(|(own, _)| own == name);
        found.map_or("not a setting of this load".to_owned(), |(_, value)| value.clone())
    };
    let all = names.into_iter().filter(|name| seen.insert(*name));
    let all = all.map(|name| Setting {
        name: name.clone(),
        first: value(&first, name),
        second: value(&second, name),
    });
    all.filter(|setting| setting.first != setting.second).collect()
}

/// A figure by its name.
type Named<T, R> = (&'static str, fn(&T) -> R);

fn figures(first: &RunReport, second: &RunReport) -> Vec<Figure> {
    let mut all: Vec<Figure> = Vec::new();
    let mut add = |name: String, of: &dyn Fn(&RunReport) -> Option<f64>| {
        let (first, second) = (of(first), of(second));
        let ratio = first.zip(second).filter(|(first, _)| *first > 0.0).map(|(first, second)| second / first);
        all.push(Figure { name, first, second, ratio });
    };
    if first.nopm.is_some() || second.nopm.is_some() {
        add("NOPM".to_owned(), &|report| report.nopm);
    }
    if first.trade_results_per_second.is_some() || second.trade_results_per_second.is_some() {
        add("trade results per second".to_owned(), &|report| report.trade_results_per_second);
    }
    if first.queries_per_hour.is_some() || second.queries_per_hour.is_some() {
        add("queries per hour".to_owned(), &|report| report.queries_per_hour);
    }
    add("commits per minute".to_owned(), &|report| Some(report.commits_per_minute));
    add("retries".to_owned(), &|report| Some(report.retries as f64));
    let responses: [Named<Quantiles, f64>; 3] =
        [("p50", |times| times.p50), ("p95", |times| times.p95), ("p99", |times| times.p99)];
    for kind in first.transactions.iter().map(|own| own.kind.clone()) {
        for (name, quantile) in responses {
            add(format!("{kind} {name}, ms"), &|report| {
                let own = report.transactions.iter().find(|own| own.kind == kind)?;
                own.response_ms.as_ref().map(quantile)
            });
        }
    }
    let each: [Named<PerTransaction, Option<f64>>; 9] = [
        ("database reads per transaction, blocks", |each| each.database_reads),
        ("database writes per transaction, blocks", |each| each.database_writes),
        ("WAL per transaction, bytes", |each| each.wal_bytes),
        ("array reads per transaction", |each| each.array_reads),
        ("array bytes read per transaction", |each| each.array_read_bytes),
        ("array writes per transaction", |each| each.array_writes),
        ("array bytes written per transaction", |each| each.array_write_bytes),
        ("CPU per transaction, ms", |each| each.processor_ms),
        ("CPU per transaction without the load generator, ms", |each| each.processor_ms_without_generator),
    ];
    for (name, of) in each {
        add(name.to_owned(), &|report| of(&report.per_transaction));
    }
    all
}

pub(super) fn text(comparison: &Comparison) -> String {
    let mut rows = table(&["figure", "first", "second", "second / first"]);
    let told = |value: Option<f64>| value.map_or("not measured".to_owned(), figure);
    for one in &comparison.figures {
        let ratio = one.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
        rows.add_row([escaped(&one.name), told(one.first), told(one.second), ratio]);
    }
    align_right(&mut rows, 1..4);
    let differ = comparison.settings.iter().map(|setting| {
        let Setting { name, first, second } = setting;
        wrapped(&escaped(&format!("  {name}: {first} and {second}")), "    ") + "\n"
    });
    let differ: String = differ.collect();
    let heading = if differ.is_empty() { "the same settings\n" } else { "settings that differ\n" };
    let early: String = comparison.early.iter().map(|line| format!("{line}\n")).collect();
    format!("{early}{heading}{differ}\n{}\n", rendered(&rows))
}
