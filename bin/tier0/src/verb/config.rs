//! `tier0 config`: the array file of what is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tier0_array::Description;
use tier0_array::admin::{AdminReply, AdminRequest, PoolFacts};

use crate::control::{Addressee, ask_if_served, misunderstood};
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

/// What a file lacks that the server alone tells.
const LACK: &str = "\
# The array file could not be read. What only the file says has to be added: witness, search, keep_awake, pause_timeout,
# control and events where they are not beside it, who may connect (control_mode, ...), [nbd].
";

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
    check_is_not_stdout(&verb.array)?;
    let server = Addressee::of(&verb.array)?;
    let AdminReply::Described(pools) = server.ask(&AdminRequest::Describe)? else {
        return Err(misunderstood());
    };
    let (description, lack) = match server.description() {
        Ok(description) => (description.clone(), ""),
        Err(broken) => (broken.remnant.description(&server.status()?.array), LACK),
    };
    if verb.json {
        return print(&json(&Facts { array: &description.name, pools }));
    }
    let (actual, remarks) = description.actual(&pools).map_err(Failure::Run)?;
    let heading =
        "# The array as it is, by \"tier0 config\": values that were left to tier0 are written out.\n";
    print(&format!("{heading}{lack}{}", actual.to_text(&remarks)))
}

/// The shell empties the file that it sends stdout to before this program runs.
fn check_is_not_stdout(array: &Path) -> Result<(), Failure> {
    let (Ok(file), Ok(stdout)) = (std::fs::metadata(array), rustix::fs::fstat(std::io::stdout())) else {
        return Ok(());
    };
    if !file.is_file() || (file.dev(), file.ino()) != (stdout.st_dev, stdout.st_ino) {
        return Ok(());
    }
    let name = array.display();
    let (state, now) = match file.len() {
        0 => (
            ", and the shell has emptied it already",
            format!(
                "; while the array is served, \"tier0 config {name} > new.toml && mv new.toml {name}\" brings it back, but \
                 for what only the file says; if no server runs, take it from a copy"
            ),
        ),
        _ => ("", String::new()),
    };
    Err(Failure::Input(format!(
        "stdout is the array file {array:?} itself{state}; write into another file, and move that to its place{now}"
    )))
}

/// What the pools of an array are; none where no server serves it.
pub(super) fn facts(description: &Description) -> Result<Option<Vec<PoolFacts>>, Failure> {
    match ask_if_served(description, &AdminRequest::Describe)? {
        None => Ok(None),
        Some(AdminReply::Described(pools)) => Ok(Some(pools)),
        Some(_) => Err(misunderstood()),
    }
}
