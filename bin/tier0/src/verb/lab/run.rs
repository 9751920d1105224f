//! `tier0 lab run`: a study, from its fit to its reports.

use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{HumanDuration, ProgressBar};
use tier0_lab::LabError;
use tier0_lab::report::{Provenance, html, terminal};
use tier0_lab::run::{RunOptions, RunPhase, RunProgress, StudyOutcome};
use tier0_lab::study::Study;
use tier0_lab::timed::TimedError;

use super::parse_threads;
use crate::cli::Global;
use crate::driving::{live_line, tell_step};
use crate::failure::Failure;
use crate::output::{print, terminal_width};

const EXAMPLES: &str = "\
Examples:
  tier0 lab run ps6100xv
  tier0 lab run cx4-oracle --html cx4-oracle.html
      a report with curves, in one file
  tier0 lab run ps6100xv --json > records.json
      one record per figure
  tier0 lab run ps6100xv --print-array raid10 > array.toml
      the array file of a configuration, for tier0 load array.toml
  tier0 lab run my-study.toml
      a study of your own (docs/studies.md)";

/// Runs a study.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// The study's name, or a study file (.toml)
    #[arg(value_name = "STUDY")]
    study: String,
    /// Also write a report with curves to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Number of simulation threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<NonZeroUsize>,
    /// Random seed [default: the study's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print the records as JSON
    #[arg(long)]
    json: bool,
    /// Only print the array file of a configuration, for "tier0 load"
    #[arg(long, value_name = "CONFIGURATION", conflicts_with_all = ["html", "json", "threads", "seed"])]
    print_array: Option<String>,
}

/// Runs it.
pub(crate) fn run(verb: &Run, global: &Global) -> Result<(), Failure> {
    let study = Study::find(&verb.study).map_err(Failure::input)?;
    if let Some(id) = &verb.print_array {
        return print(&tier0_lab::array_file(&study, id).map_err(failure)?);
    }
    if let Some(path) = &verb.html {
        check_writable(path)?;
    }
    let options = RunOptions {
        threads: verb.threads.map(NonZeroUsize::get),
        seed: verb.seed,
        // Curves are for the charts alone, and take time.
        curves: verb.html.is_some(),
        repeats: true,
    };
    let bar = live_line(global.quiet == 0);
    let outcome = tier0_lab::run::run(&study, &options, &|progress| tell(&bar, global.quiet == 0, progress));
    bar.finish_and_clear();
    let outcome = outcome.map_err(failure)?;
    let provenance = Provenance {
        command: command(verb),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(),
    };
    if let Some(path) = &verb.html {
        write_html(path, &outcome, &provenance)?;
    }
    if verb.json {
        return print(&format!("{}\n", outcome.json()));
    }
    let text = terminal(&outcome, &provenance, terminal_width()).map_err(failure)?;
    print(&text)
}

pub(super) fn tell(bar: &ProgressBar, show: bool, progress: &RunProgress) {
    let phase = match progress.phase {
        RunPhase::Fitting => format!("fitting, evaluation {} of at most {}", progress.done, progress.of),
        RunPhase::Measuring => format!("measuring, {} of {}", progress.done, progress.of),
        RunPhase::Varying => format!("varying, {} of {} done", progress.done, progress.of),
    };
    let left = progress.left.map_or(String::new(), |left| format!(", {} left", HumanDuration(left)));
    tell_step(bar, show, format!("{phase}{left}: {}", progress.what));
}

/// How a report begins.
const PAGE: &[u8] = b"<!doctype html>";

/// A study takes a while: that its report has no place, or would be written over something else than an earlier report, is
/// said before.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || !directory.is_dir() {
        let shown = path.display();
        return Err(Failure::Input(format!(
            "cannot write the report to {shown}; name a file in an existing directory"
        )));
    }
    let mut begins = [0; PAGE.len()];
    let read = std::fs::File::open(path).and_then(|mut file| {
        let is_empty = file.metadata()?.len() == 0;
        Ok(is_empty || file.read_exact(&mut begins).is_ok() && begins == *PAGE)
    });
    match read {
        Ok(false) => {
            Err(Failure::Input(format!("{} exists and is not a report; name another file", path.display())))
        }
        _ => Ok(()),
    }
}

fn write_html(path: &Path, outcome: &StudyOutcome, provenance: &Provenance) -> Result<(), Failure> {
    let page = html(outcome, provenance).map_err(failure)?;
    std::fs::write(path, page)
        .map_err(|source| Failure::run(LabError::Write { path: path.to_owned(), source }))
}

/// What the study says is input; a report that cannot be made or written is not.
pub(crate) fn failure(error: LabError) -> Failure {
    match error {
        LabError::Write { .. }
        | LabError::Render(_)
        | LabError::Ended { .. }
        | LabError::Database { .. }
        | LabError::Timed(TimedError::Failed { .. }) => Failure::run(error),
        error => Failure::input(error),
    }
}

/// The command that gives the same figures again.
fn command(verb: &Run) -> String {
    let seed = verb.seed.map_or(String::new(), |seed| format!(" --seed {seed}"));
    format!("tier0 lab run {}{seed}", verb.study)
}

/// The commit that the program is built from, where the build knew it.
pub(crate) fn commit() -> Option<String> {
    option_env!("TIER0_COMMIT").map(str::to_owned)
}
