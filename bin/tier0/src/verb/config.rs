//! `tier0 config`: the array file of what is.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tier0_array::Description;
use tier0_array::admin::{AdminReply, AdminRequest, PoolFacts};

use crate::control::{ask_if_served, ask_of};
use crate::failure::Failure;
use crate::output::{json, print};

const EXAMPLES: &str = "\
Examples:
  tier0 config array.toml
      the array file that describes the array as it is now
  tier0 config array.toml > new.toml && mv new.toml array.toml
      bring the array file up to date
  tier0 config array.toml --json
      the same for programs, sizes in bytes

The array must be served. Drives, pools and volumes are as the drives know them;
what only the file says (search, control, [nbd]) is as the file has it.";

/// Prints the array file of what is.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Config {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The same for JSON.
#[derive(Serialize)]
struct Facts<'a> {
    array: &'a str,
    pools: Vec<PoolFacts>,
}

/// Prints it.
pub(crate) fn run(verb: &Config) -> Result<(), Failure> {
    let description = Description::read(&verb.array).map_err(Failure::input)?;
    let AdminReply::Described(pools) = ask_of(&description, &verb.array, &AdminRequest::Describe)? else {
        return Err(Failure::Run("the server answered something else; is it of this version?".into()));
    };
    if verb.json {
        return print(&json(&Facts { array: &description.name, pools }));
    }
    let (actual, remarks) = description.actual(&pools).map_err(Failure::Run)?;
    let heading =
        "# The array as it is, by \"tier0 config\": values that were left to tier0 are written out.\n";
    print(&format!("{heading}{}", actual.to_text(&remarks)))
}

/// What the pools of an array are; none where no server serves it.
pub(super) fn facts(description: &Description) -> Result<Option<Vec<PoolFacts>>, Failure> {
    match ask_if_served(description, &AdminRequest::Describe)? {
        None => Ok(None),
        Some(AdminReply::Described(pools)) => Ok(Some(pools)),
        Some(_) => Err(Failure::Run("the server answered something else; is it of this version?".into())),
    }
}
