//! `tier0 bench predict`: what a run will measure, sealed before it is done.

use std::path::{Path, PathBuf};

use clap::Args;
use tier0_lab::predict::{MemoryRun, Prediction, RunPlan, RunStorage, StorageProfile};

use super::compare::read_run;
use super::report::figure;
use crate::cli::Global;
use crate::driving::live_line;
use crate::failure::Failure;
use crate::logging;
use crate::moment;
use crate::output::{json, print};
use crate::text_file;
use crate::verb::lab::{commit, failure};

const EXAMPLES: &str = "\
Examples:
  tier0 bench predict --example > my-run.toml
      a file to begin with
  tier0 bench predict my-run.toml --array modelled.toml > prediction.json
      on an array whose drives have models
  tier0 bench predict my-run.toml --profile profile.json --memory-run memory.json
      on storage that \"tier0 lab profile --json\" has measured, with the
      processor time of a run in memory
  tier0 bench compare prediction.json run.json
      what was predicted, what was measured, and the error

Prints JSON. It has the time, all inputs and a SHA-256 over everything, which is
also printed to stderr. See docs/bench.md.";

/// A file to begin with.
const EXAMPLE: &str = include_str!("../../../../../studies/predict-example.toml");
/// Reads of a transaction above which a run was not in memory. PostgreSQL counts a page by which a table grows as read: 0.1 in order
/// entry.
const MEMORY_READS_MAX: f64 = 0.3;

/// What to predict.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Predict {
    /// The run: a file with [database] and [host] as of "tier0 lab whatif"
    #[arg(value_name = "FILE", required_unless_present = "example")]
    file: Option<PathBuf>,
    /// The array under the database: an array file whose drives have models
    #[arg(long, value_name = "ARRAY.TOML", conflicts_with = "profile")]
    array: Option<PathBuf>,
    /// Or the storage as it was measured: output of "tier0 lab profile --json --read 70 --durable"
    #[arg(long, value_name = "PROFILE.JSON")]
    profile: Option<PathBuf>,
    /// Processor time and log of a transaction from this run in memory: output of "tier0 bench run --json"
    #[arg(long, value_name = "RUN.JSON")]
    memory_run: Option<PathBuf>,
    /// Print a file to begin with
    #[arg(long, conflicts_with_all = ["file", "array", "profile", "memory_run"])]
    example: bool,
}

/// Predicts.
pub(crate) fn run(verb: &Predict, global: &Global) -> Result<(), Failure> {
    let Some(file) = verb.file.as_ref().filter(|_| !verb.example) else { return print(EXAMPLE) };
    let storage = match (&verb.array, &verb.profile) {
        (Some(array), _) => RunStorage::Array(text_file::read(array)?),
        (None, Some(profile)) => RunStorage::Profiled(profile_of(profile)?),
        (None, None) => RunStorage::OfTheFile,
    };
    let memory_run = verb.memory_run.as_deref().map(memory_run).transpose()?;
    let plan = RunPlan::read(&text_file::read(file)?, &file.display().to_string(), storage, memory_run);
    let plan = plan.map_err(failure)?;
    let bar = live_line(global.quiet == 0);
    bar.set_message("simulating the run");
    let prediction = plan.predict(moment::now().to_string(), program());
    bar.finish_and_clear();
    let prediction = prediction.map_err(failure)?;
    if global.quiet == 0 {
        words(&prediction).iter().for_each(|line| logging::say(line));
    }
    print(&json(&prediction))
}

/// What makes predictions.
fn program() -> String {
    let commit = commit().map_or(String::new(), |commit| format!(" ({commit})"));
    format!("tier0 {}{commit}", env!("CARGO_PKG_VERSION"))
}

fn words(prediction: &Prediction) -> [String; 2] {
    let figures = &prediction.figures;
    [
        format!(
            "predicted: {} transactions per second (± {:.0} % by the simulation), {} NOPM, p95 {} ms, {} reads per transaction",
            figure(figures.tps),
            figures.half_width * 100.0,
            figure(figures.nopm),
            figure(figures.p95_ms),
            figure(figures.database_reads)
        ),
        format!("sealed at {}, SHA-256 {}", prediction.made, prediction.sha256),
    ]
}

fn profile_of(path: &Path) -> Result<StorageProfile, Failure> {
    serde_json::from_str(&text_file::read(path)?).map_err(|error| {
        Failure::Input(format!(
            "{} is no output of \"tier0 lab profile --json\" ({error}); profile the storage again",
            path.display()
        ))
    })
}

/// What a run in memory says of a transaction.
fn memory_run(path: &Path) -> Result<MemoryRun, Failure> {
    let (report, shown) = (read_run(path)?, path.display());
    if report.workload != "order-entry" {
        return Err(Failure::Input(format!(
            "{shown} is a run of {}; a prediction needs one of order-entry",
            report.workload
        )));
    }
    let each = &report.per_transaction;
    // Without the array's counts those of the database are all that is known: the page cache may have served them.
    if let Some(reads) = each.array_reads.or(each.database_reads).filter(|reads| *reads > MEMORY_READS_MAX) {
        return Err(Failure::Input(format!(
            "{shown} was no run in memory: each transaction read {} times, and {MEMORY_READS_MAX} is the limit; give the database more \
             memory, read it with pg_prewarm or warm it up with --ramp, and run it again",
            figure(reads)
        )));
    }
    // A load generator on the same machine takes its share of the same cores.
    let transaction_ms = each.processor_ms.ok_or_else(|| {
        Failure::Input(format!(
            "{shown} has no processor time, because the server was on another machine; give host.transaction_ms in the file, \
             without --memory-run"
        ))
    })?;
    let io = &report.database_io;
    let images = io.wal.map(|wal| wal.full_page_images * io.block_bytes);
    let transactions = io.transactions.filter(|count| *count > 0);
    let wal_bytes =
        io.wal.zip(images).zip(transactions).map(|((wal, images), transactions)| {
            wal.bytes.saturating_sub(images) as f64 / transactions as f64
        });
    Ok(MemoryRun { transaction_ms, wal_bytes: wal_bytes.filter(|bytes| *bytes > 0.0) })
}
