//! `tier0 scrub`: verify everything that is stored.

use std::path::PathBuf;

use clap::Args;
use tier0_api::AdminRequest;

use super::rate::Pace;
use crate::failure::Failure;
use crate::verb::asking::{Agreement, Answering, carry_out};

const EXAMPLES: &str = "\
Examples:
  tier0 scrub array.toml
      verify all stored data, and repair what is wrong
  tier0 scrub array.toml --rate 200MiB
      read at most this much per second
  tier0 scrub array.toml --stop
      stop; the next scrub, or the next server start, continues from here

A scrub continues by itself after a restart of the server. After a drive has
rejoined, everything is read again.
\"tier0 status\" shows the progress, the result of the last scrub and the errors
of each drive; --json lists all lost ranges of volumes.";

/// Verifies what is stored.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Scrub {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Scrub only this pool
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    answering: Answering,
}

/// Starts or stops a scrub.
pub(crate) fn scrub(verb: &Scrub) -> Result<(), Failure> {
    let pool = verb.pool.clone();
    let request = match verb.pace.stop {
        true => AdminRequest::ScrubStop { pool },
        false => AdminRequest::ScrubStart { pool, rate: verb.pace.rate },
    };
    carry_out(&verb.array, &request, verb.answering, Agreement::default())
}
