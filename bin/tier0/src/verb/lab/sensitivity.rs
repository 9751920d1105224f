//! `tier0 lab sensitivity`: which assumptions of a study move which figure.

use std::num::NonZeroUsize;

use clap::Args;
use tier0_lab::report::{self, Provenance};
use tier0_lab::run::RunOptions;
use tier0_lab::sensitivity::sensitivity;
use tier0_lab::study::Study;

use super::parse_threads;
use super::run::{commit, failure, tell};
use crate::cli::Global;
use crate::driving::live_line;
use crate::failure::Failure;
use crate::output::{json, print, terminal_width};

const EXAMPLES: &str = "\
Examples:
  tier0 lab sensitivity cx4-oracle
  tier0 lab sensitivity ps6100xv --json > sensitivity.json

The study is fitted once. Then each assumption is set to each of its alternative
values in the study (docs/studies.md: vary), one at a time, and the published
figures are predicted again.";

/// Varies a study's assumptions.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sensitivity {
    /// The study's name, or a study file (.toml)
    #[arg(value_name = "STUDY")]
    study: String,
    /// Number of simulation threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<NonZeroUsize>,
    /// Random seed [default: the study's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Varies them.
pub(crate) fn run(verb: &Sensitivity, global: &Global) -> Result<(), Failure> {
    let study = Study::find(&verb.study).map_err(Failure::input)?;
    let options = RunOptions {
        threads: verb.threads.map(NonZeroUsize::get),
        seed: verb.seed,
        curves: false,
        repeats: false,
    };
    let bar = live_line(global.quiet == 0);
    let found = sensitivity(&study, &options, &|progress| tell(&bar, global.quiet == 0, progress));
    bar.finish_and_clear();
    let found = found.map_err(failure)?;
    if verb.json {
        return print(&json(&found));
    }
    let seed = verb.seed.map_or(String::new(), |seed| format!(" --seed {seed}"));
    let provenance = Provenance {
        command: format!("tier0 lab sensitivity {}{seed}", verb.study),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(),
    };
    print(&report::sensitivity(&found, &provenance, terminal_width()))
}
