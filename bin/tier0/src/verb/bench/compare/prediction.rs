//! A prediction and the run: what was predicted, what was measured, and the error.

use jiff::Timestamp;
use serde::Serialize;
use tier0_bench::run::report::RunReport;
use tier0_bench::run::tally::Quantiles;
use tier0_lab::predict::{Prediction, RunFigures};

use super::super::report::figure;
use crate::output::{align_right, escaped, rendered, table, wrapped};

/// A figure that was predicted.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    name: String,
    /// None: the model does not have it.
    predicted: Option<f64>,
    /// None: not measured.
    measured: Option<f64>,
    /// By how much the prediction is off, percent of what was measured; none where one is missing or 0 was measured.
    error_percent: Option<f64>,
}

/// A setting of the run that is not the one that was predicted.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Setting {
    name: &'static str,
    predicted: String,
    run: String,
}

/// Whether a prediction was made before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Before it began.
    Before,
    /// After it began.
    After,
    /// One of the times cannot be read.
    Unknown,
}

/// How right a prediction was.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    /// When it was made.
    predicted_at: String,
    /// When counting began in the run.
    run_at: String,
    /// Whether it was made before the run.
    made: Order,
    sha256: String,
    /// A line if the run ended early.
    early: Vec<String>,
    /// What differs between the run that was predicted and the one that was done.
    settings: Vec<Setting>,
    figures: Vec<Figure>,
    /// Blocks that the database read for each transaction, by table and index.
    objects: Vec<Figure>,
}

impl Judged {
    pub(super) fn of(prediction: &Prediction, run: &RunReport) -> Judged {
        Judged {
            predicted_at: prediction.made.clone(),
            run_at: run.started.clone(),
            made: Order::of(&prediction.made, &run.started),
            sha256: prediction.sha256.clone(),
            early: super::early([("the run", run)]),
            settings: settings(prediction, run),
            figures: figures(&prediction.figures, run),
            objects: objects(&prediction.figures, run),
        }
    }
}

impl Order {
    fn of(predicted: &str, run: &str) -> Order {
        match (predicted.parse::<Timestamp>(), run.parse::<Timestamp>()) {
            (Ok(predicted), Ok(run)) if predicted < run => Order::Before,
            (Ok(_), Ok(_)) => Order::After,
            _ => Order::Unknown,
        }
    }
}

impl Figure {
    fn new(name: impl Into<String>, predicted: Option<f64>, measured: Option<f64>) -> Figure {
        let both = predicted.zip(measured).filter(|(_, measured)| *measured > 0.0);
        let error_percent = both.map(|(predicted, measured)| (predicted / measured - 1.0) * 100.0);
        Figure { name: name.into(), predicted, measured, error_percent }
    }
}

fn settings(prediction: &Prediction, run: &RunReport) -> Vec<Setting> {
    let predicted = &prediction.settings;
    let own = &run.settings;
    let rate = |rate: Option<f64>| rate.map_or("none".to_owned(), |rate| rate.to_string());
    // Reports of older versions do not tell the buffer.
    let buffer = run.buffer_bytes.unwrap_or(predicted.buffer_bytes);
    let all = [
        ("load", "order-entry".to_owned(), run.workload.clone()),
        (
            "warehouses",
            predicted.warehouses.to_string(),
            run.warehouses.map_or(String::new(), |count| count.to_string()),
        ),
        ("users", predicted.users.to_string(), own.users.to_string()),
        ("think", predicted.think.clone(), own.think.clone()),
        ("rate", rate(predicted.rate), rate(own.rate)),
        ("items", predicted.items.clone(), own.items.clone().unwrap_or_default()),
        ("home", predicted.home.clone(), own.home.clone().unwrap_or_default()),
        ("mix", predicted.mix.clone(), own.mix.clone().unwrap_or_default()),
        ("buffer, bytes", predicted.buffer_bytes.to_string(), buffer.to_string()),
        // The model's sessions are those of the default.
        ("isolation", "read-committed".to_owned(), own.isolation.clone()),
    ];
    // What is not known of the run differs from nothing.
    let cores = prediction.case["host"]["cores"].as_u64().filter(|_| run.processor.is_some());
    let cores = cores.map(|cores| ("cores", cores.to_string(), super::cores(run)));
    let differ = all.into_iter().chain(cores).filter(|(_, predicted, run)| predicted != run);
    differ.map(|(name, predicted, run)| Setting { name, predicted, run }).collect()
}

fn figures(predicted: &RunFigures, run: &RunReport) -> Vec<Figure> {
    let each = &run.per_transaction;
    let times = |of: fn(&Quantiles) -> f64| run.response_ms.as_ref().map(of);
    let tps = (run.seconds > 0.0).then(|| run.ended() as f64 / run.seconds);
    let mut all = vec![
        Figure::new("transactions per second", Some(predicted.tps), tps),
        Figure::new("NOPM", Some(predicted.nopm), run.nopm),
        Figure::new("response p50, ms", Some(predicted.p50_ms), times(|times| times.p50)),
        Figure::new("response p95, ms", Some(predicted.p95_ms), times(|times| times.p95)),
    ];
    let mut add = |name: &str, predicted: f64, measured: Option<f64>| {
        all.push(Figure::new(name, Some(predicted), measured));
    };
    add("database reads per transaction, blocks", predicted.database_reads, each.database_reads);
    add("array reads per transaction", predicted.storage_reads, each.array_reads);
    add("database writes per transaction, blocks", predicted.database_writes, each.database_writes);
    add("array writes per transaction", predicted.storage_writes, each.array_writes);
    add("WAL per transaction, bytes", predicted.wal_bytes, each.wal_bytes);
    let busy = run.processor.as_ref().map(|used| used.busy * 100.0);
    add("CPU busy, %", predicted.cpu * 100.0, busy);
    for kind in &run.transactions {
        let own = predicted.kinds.iter().find(|one| one.kind == kind.kind);
        let measured = kind.response_ms.as_ref();
        let (p50, p95) = (own.map(|own| own.p50_ms), own.map(|own| own.p95_ms));
        all.push(Figure::new(format!("{} p50, ms", kind.kind), p50, measured.map(|times| times.p50)));
        all.push(Figure::new(format!("{} p95, ms", kind.kind), p95, measured.map(|times| times.p95)));
    }
    all
}

fn objects(predicted: &RunFigures, run: &RunReport) -> Vec<Figure> {
    let io = &run.database_io;
    let each = |reads: Option<u64>| Some(reads? as f64 / io.transactions.filter(|all| *all > 0)? as f64);
    let mut all: Vec<Figure> = Vec::new();
    for object in &predicted.objects {
        let same = io.objects.iter().find(|one| one.name == object.name);
        let measured = same.and_then(|one| each(one.reads));
        all.push(Figure::new(&object.name, Some(object.database_reads), measured));
    }
    let others = io.objects.iter().filter(|one| predicted.objects.iter().all(|own| own.name != one.name));
    all.extend(others.map(|one| Figure::new(&one.name, None, each(one.reads))));
    all.sort_by(|a, b| b.measured.unwrap_or(0.0).total_cmp(&a.measured.unwrap_or(0.0)));
    all
}

pub(super) fn text(judged: &Judged) -> String {
    let order = match judged.made {
        Order::Before => format!(
            "predicted at {}, before the run of {}; SHA-256 {}",
            judged.predicted_at, judged.run_at, judged.sha256
        ),
        Order::After => format!(
            "NOT PREDICTED BEFORE THE RUN: made at {}, and the run began to count at {}; SHA-256 {}",
            judged.predicted_at, judged.run_at, judged.sha256
        ),
        Order::Unknown => format!(
            "made at {}; when the run was is not known ({:?}); SHA-256 {}",
            judged.predicted_at, judged.run_at, judged.sha256
        ),
    };
    let differ = judged.settings.iter().map(|Setting { name, predicted, run }| {
        wrapped(&escaped(&format!("  {name}: predicted for {predicted}, run with {run}")), "    ") + "\n"
    });
    let differ: String = differ.collect();
    let heading = match differ.is_empty() {
        true => "the run has the settings that were predicted\n".to_owned(),
        false => format!("ANOTHER RUN THAN THE ONE PREDICTED; settings that differ\n{differ}"),
    };
    let early: String = judged.early.iter().map(|line| format!("{line}\n")).collect();
    format!(
        "{}\n{early}{heading}\n{}\n\ndatabase reads per transaction, blocks\n{}\n",
        wrapped(&escaped(&order), "  "),
        rows(&judged.figures, "figure"),
        rows(&judged.objects, "object")
    )
}

fn rows(figures: &[Figure], what: &str) -> String {
    let mut rows = table(&[what, "predicted", "measured", "error"]);
    for one in figures {
        let error = one.error_percent.map_or("-".to_owned(), |error| format!("{error:+.1} %"));
        rows.add_row([
            escaped(&one.name),
            one.predicted.map_or("not modelled".to_owned(), figure),
            one.measured.map_or("not measured".to_owned(), figure),
            error,
        ]);
    }
    align_right(&mut rows, 1..4);
    rendered(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_before_or_after_the_run() {
        let made = "2026-03-01T12:00:00Z";
        for (run, order) in [
            ("2026-03-01 12:00:05.25+00", Order::Before),
            ("2026-03-01 13:30:00+02", Order::After),
            ("2026-03-01 17:30:01+05:30", Order::Before),
            ("yesterday", Order::Unknown),
        ] {
            assert_eq!(Order::of(made, run), order, "{run}");
        }
    }

    #[test]
    fn what_is_missing_has_no_error() {
        let error = |predicted, measured| Figure::new("x", predicted, measured).error_percent;
        assert_eq!(error(Some(3.0), Some(2.0)), Some(50.0));
        assert_eq!(error(Some(1.0), Some(2.0)), Some(-50.0));
        assert_eq!(
            (error(None, Some(2.0)), error(Some(1.0), None), error(Some(1.0), Some(0.0))),
            (None, None, None)
        );
    }
}
