//! `tier0 bench compare`: two reports of runs, or a prediction and the run.
//!
//! | file | concept |
//! |---|---|
//! | `runs` | two reports, figure by figure |
//! | `prediction` | what was predicted, what was measured, the error |

mod prediction;
mod runs;

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use tier0_bench::run::report::RunReport;
use tier0_lab::predict::{Prediction, PredictionError};

use crate::failure::Failure;
use crate::output::{escaped_lines, json, print};
use crate::text_file;

const EXAMPLES: &str = "\
Examples:
  tier0 bench compare before.json after.json
  tier0 bench compare before.json after.json --json
  tier0 bench compare prediction.json run.json
      predicted, measured and error of each figure

The files are output of \"tier0 bench run --json\" or \"tier0 bench scene --json\";
the first one may be output of \"tier0 bench predict\". Exits with 3 if a
prediction was changed after it was sealed.";

/// The form of reports that can be compared.
const REPORT_VERSION: u32 = 1;

/// Which reports.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// The first report, or a prediction
    #[arg(value_name = "FIRST.JSON")]
    first: PathBuf,
    /// The second report, or the run that was predicted
    #[arg(value_name = "SECOND.JSON")]
    second: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A file: a report, or what a scene prints, which has one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Run(Box<RunReport>),
    Scene { run: Box<RunReport> },
}

/// Compares.
pub(crate) fn run(verb: &Compare) -> Result<(), Failure> {
    let (first, second) = (document(&verb.first)?, document(&verb.second)?);
    if Prediction::is_one(&second) {
        return Err(Failure::Input(format!(
            "{} is a prediction; name it first, and then the run",
            verb.second.display()
        )));
    }
    let measured = run_of(second, &verb.second)?;
    if Prediction::is_one(&first) {
        let predicted = Prediction::read(&first, &verb.first.display().to_string())?;
        let judged = prediction::Judged::of(&predicted, &measured);
        return print(&if verb.json { json(&judged) } else { escaped_lines(&prediction::text(&judged)) });
    }
    let compared = runs::Comparison::of(&run_of(first, &verb.first)?, &measured);
    print(&if verb.json { json(&compared) } else { escaped_lines(&runs::text(&compared)) })
}

/// A line for each report of a run that did not last as long as it should have.
fn early<'a>(reports: impl IntoIterator<Item = (&'a str, &'a RunReport)>) -> Vec<String> {
    let early = reports.into_iter().filter(|(_, report)| report.ended_early);
    early.map(|(which, report)| format!("{which} ended early, after {:.0} s", report.seconds)).collect()
}

/// The volumes that the array counted; none where none was asked.
fn volumes(report: &RunReport) -> String {
    let names = report.array_io.iter().flat_map(|io| &io.volumes).map(|volume| volume.name.as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The processors of the machine.
fn cores(report: &RunReport) -> String {
    report.processor.as_ref().map_or("not measured".to_owned(), |used| used.cores.to_string())
}

/// A report of a run.
pub(super) fn read_run(path: &Path) -> Result<RunReport, Failure> {
    run_of(document(path)?, path)
}

fn document(path: &Path) -> Result<Value, Failure> {
    serde_json::from_str(&text_file::read(path)?).map_err(|error| not_a_report(path, &error))
}

fn run_of(value: Value, path: &Path) -> Result<RunReport, Failure> {
    match Form::deserialize(value) {
        Ok(Form::Run(report) | Form::Scene { run: report }) if report.version != REPORT_VERSION => {
            Err(Failure::Input(format!(
                "{} is a report of form {}, and this version reads form {REPORT_VERSION}; use the version of tier0 that made it",
                path.display(),
                report.version
            )))
        }
        Ok(Form::Run(report) | Form::Scene { run: report }) => Ok(*report),
        Err(error) => Err(not_a_report(path, &error)),
    }
}

fn not_a_report(path: &Path, error: &serde_json::Error) -> Failure {
    Failure::Input(format!(
        "{} is no report of \"tier0 bench run --json\" or \"tier0 bench scene --json\" of this version ({error}); run it again",
        path.display()
    ))
}

impl From<PredictionError> for Failure {
    fn from(error: PredictionError) -> Failure {
        match error {
            PredictionError::Form { .. } => Failure::input(error),
            PredictionError::Changed { .. } => Failure::WrongData(error.to_string()),
        }
    }
}
