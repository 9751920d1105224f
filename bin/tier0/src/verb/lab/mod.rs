//! `tier0 lab`: predictions, and how far the models can be trusted.

mod list;
mod profile;
mod replay;
mod run;
mod sensitivity;
mod timed;
mod validate_drive;
mod whatif;

use std::num::NonZeroUsize;

use clap::Subcommand;

pub(crate) use run::{check_writable, commit, failure};

use crate::cli::Global;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tier0 lab list
  tier0 lab run ps6100xv --html ps6100xv.html
  tier0 lab sensitivity cx4-oracle
  tier0 lab whatif my-database.toml
  tier0 lab profile modelled.toml --limit 20ms --read 70
  tier0 lab replay volume.csv --size 10GiB --curve --html replay.html
  tier0 lab replay volume.csv --array modelled.toml
  tier0 lab validate-drive --disksim measured/ atlas10k";

/// What to do.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Lab {
    /// List the studies
    List(list::List),
    /// Run a study: fit its free parameters to the calibration figures, then predict the other figures
    Run(run::Run),
    /// Predict what other drives, caches, memory or processors would bring a database
    Whatif(whatif::WhatIf),
    /// Show how much each assumption of a study changes each figure
    Sensitivity(sensitivity::Sensitivity),
    /// Find the highest IOPS of a target within a latency limit
    Profile(Box<profile::Profile>),
    /// Replay a block trace against caches of several sizes and policies, or on a modelled array
    Replay(Box<replay::Replay>),
    /// Compare the disk model with the measured service times of a drive
    ValidateDrive(validate_drive::ValidateDrive),
}

/// How many threads to use.
fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse::<usize>() {
        Ok(threads) => NonZeroUsize::new(threads).ok_or_else(|| "at least 1 thread is needed".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Does it.
pub(crate) fn run(verb: &Lab, global: &Global) -> Result<(), Failure> {
    match verb {
        Lab::List(list) => list::run(list),
        Lab::Run(run) => run::run(run, global),
        Lab::Whatif(whatif) => whatif::run(whatif, global),
        Lab::Sensitivity(sensitivity) => sensitivity::run(sensitivity, global),
        Lab::Profile(profile) => profile::run(profile, global),
        Lab::Replay(replay) => replay::run(replay, global),
        Lab::ValidateDrive(validate) => validate_drive::run(validate),
    }
}
