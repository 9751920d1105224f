//! `tier0 config`: the array file of what is.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tier0_api::{AdminReply, AdminRequest, ApiVersion};
use tier0_control::admin::facts_of;
use tier0_description::facts::PoolFacts;
use tier0_description::{Description, ListenAddress, Remnant};
use tier0_nbd::server::DEFAULT_TCP_ADDRESS;

use crate::control::{Addressee, ask_if_served, misunderstood};
use crate::failure::Failure;
use crate::output::{json, print};

const EXAMPLES: &str = "\
Examples:
  tier0 config array.toml
      print the array file of the running array
  tier0 config array.toml > new.toml && mv new.toml array.toml
      update the array file
  tier0 config array.toml --json
      the same as JSON, sizes in bytes

The array must be running. Drives, pools and volumes come from the array itself;
settings that only the file has (search, control, [nbd]) come from the file.";

/// What a file lacks that was lost.
const LACK: &str = "\
# The array file could not be read. Add the settings that only the file had: witness, search, memory, keep_awake,
# pause_timeout, control and events unless next to the file, and access rights (control_mode, socket_mode, ...).
";
/// The same where the server tells no addresses, as one of an earlier version.
const LACK_OF_ADDRESSES: &str = "\
# Also add the NBD addresses: without [nbd] the next start listens on 127.0.0.1:10809, for every user of the machine.
";

/// Prints the array file of what is.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Config {
    /// Array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The same for JSON.
#[derive(Serialize)]
struct Facts<'a> {
    api: ApiVersion,
    array: &'a str,
    pools: Vec<tier0_api::PoolFacts>,
}

/// Prints it.
pub(crate) fn run(verb: &Config) -> Result<(), Failure> {
    check_is_not_stdout(&verb.array)?;
    let server = Addressee::of(&verb.array)?;
    let AdminReply::Described(pools) = server.ask(&AdminRequest::Describe)? else {
        return Err(misunderstood());
    };
    let (description, lack) = match server.description() {
        Ok(description) => (description.clone(), String::new()),
        Err(broken) => {
            let status = server.status()?;
            restored(broken.remnant, &status.array, &status.listen)
        }
    };
    if verb.json {
        return print(&json(&Facts { api: ApiVersion::CURRENT, array: &description.name, pools }));
    }
    let pools: Vec<PoolFacts> = pools.into_iter().map(facts_of).collect();
    let (actual, remarks) = description.actual(&pools).map_err(Failure::Run)?;
    let heading = "# The running array, printed by \"tier0 config\". Default values are written out.\n";
    print(&format!("{heading}{lack}{}", actual.to_text(&remarks)))
}

/// What is known of an array whose file is lost, and a comment on what is not. The addresses are those at which the server
/// listens: a start without any would listen where every user of the machine may connect.
fn restored(remnant: &Remnant, array: &str, listen: &[String]) -> (Description, String) {
    let parsed = listen.iter().map(|address| ListenAddress::parse(address, true));
    let listen: Vec<ListenAddress> = parsed.filter_map(Result::ok).collect();
    let addresses = if listen.is_empty() { LACK_OF_ADDRESSES } else { "" };
    if listen.is_empty() {
        tracing::warn!(
            "the NBD addresses are unknown: without [nbd] the next start listens on {DEFAULT_TCP_ADDRESS}"
        );
    }
    let description = Description { listen, ..remnant.description(array) };
    (description, format!("{LACK}{addresses}"))
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
            ", and the shell has already truncated it",
            format!(
                "; while the array is running, \"tier0 config {name} > new.toml && mv new.toml {name}\" \
                 restores it, except for settings that only the file had; otherwise restore it from a backup"
            ),
        ),
        _ => ("", String::new()),
    };
    Err(Failure::Input(format!(
        "stdout is redirected to the array file {array:?} itself{state}; write to another file, then rename it{now}"
    )))
}

/// What the pools of an array are; none where no server serves it.
pub(super) fn facts(description: &Description) -> Result<Option<Vec<PoolFacts>>, Failure> {
    match ask_if_served(description, &AdminRequest::Describe)? {
        None => Ok(None),
        Some(AdminReply::Described(pools)) => Ok(Some(pools.into_iter().map(facts_of).collect())),
        Some(_) => Err(misunderstood()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file without the addresses was brought back without a word, and the next start listened on TCP.
    #[test]
    fn where_a_server_listens_is_brought_back_or_its_lack_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let remnant = Remnant::of(&directory.path().join("a.toml")).expect("it is alone");
        let listen = ["unix:/run/s".to_owned(), "0.0.0.0:10809".to_owned()];
        let (known, comment) = restored(&remnant, "a", &listen);
        assert_eq!((known.listen.len(), comment.as_str()), (2, LACK));
        let (known, comment) = restored(&remnant, "a", &[]);
        assert!(known.listen.is_empty() && comment.contains("without [nbd]"), "{comment}");
    }
}
