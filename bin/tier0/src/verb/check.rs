//! `tier0 check`: what an array file would do, without doing it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tier0_array::ArrayError;
use tier0_array::open::{
    Displaced, OpenOptions, look_at_places, look_for_copies, rehearse, rehearse_creation, witness_fault,
};
use tier0_control::admin::{AdminReply, AdminRequest};
use tier0_description::facts::PoolFacts;
use tier0_description::{Description, Finding, ListenAddress};
use tier0_nbd::server::DEFAULT_TCP_ADDRESS;
use tier0_world::net::PeerAddress;

use super::config::facts;
use crate::addresses::{self, Patience, absent_directory, closed_directory, is_other_file};
use crate::control::{ask_if_served, served_already};
use crate::failure::Failure;
use crate::history;
use crate::output::{json, print, wrapped};
use crate::patience::within;
use crate::sockets::Accesses;

/// How long the files that are named may take to be looked at: as long as a command of a drive.
const LOOK_LIMIT: Duration = Duration::from_secs(30);

/// The field of the addresses.
const LISTEN: &str = "nbd.listen";

const EXAMPLES: &str = "\
Examples:
  tier0 check array.toml
      what the file would do at the next start; nothing is written
  tier0 check array.toml --json

Ends with 2 where tier0 serve would refuse the file. Of an array that is
served, everything is compared; of one that is not, the drives are read. One
that is not created yet is refused by tier0 serve; what is told then is
whether the sizes of its drives let tier0 create make it.";

/// Says what a file would do.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found, for JSON.
#[derive(Serialize)]
struct Found {
    /// `refused` where a start would be, else `done`.
    result: &'static str,
    /// Why a start would be refused; empty where it would not.
    text: String,
    array: String,
    /// Whether a start with this file would be refused.
    refused: bool,
    /// Whether the array is served, so that everything was compared.
    served: bool,
    /// One sentence each; first why a start would be refused.
    findings: Vec<String>,
}

/// Says it.
pub(crate) fn run(verb: &Check) -> Result<(), Failure> {
    let description = Description::read(&verb.array).map_err(Failure::input)?;
    Accesses::of(&description)?;
    let facts = facts(&description)?;
    let served = facts.is_some();
    let (refusals, told) = match facts {
        Some(facts) => {
            let description = description.clone();
            within(LOOK_LIMIT, move || compare(&description, &facts)).ok_or_else(|| {
                Failure::Run(
                    "a file that the array file or the server names does not answer; \"tier0 status\" shows the drives".into(),
                )
            })??
        }
        None => look(&description, &verb.array)?,
    };
    let first = refusals.first().cloned();
    let found = Found {
        result: if first.is_some() { "refused" } else { "done" },
        text: first.clone().unwrap_or_default(),
        array: description.name.clone(),
        refused: first.is_some(),
        served,
        findings: refusals.into_iter().chain(told).collect(),
    };
    if verb.json {
        print(&json(&found))?;
    } else if first.is_none() {
        print(&text(&description, &found))?;
    }
    first.map_or(Ok(()), |text| Err(Failure::Input(text)))
}

/// Why a start with this file would be refused, and what else is to be told.
type Findings = (Vec<String>, Vec<String>);

/// Of the array that is served. Files are looked at, so it may take as long as they like.
fn compare(description: &Description, facts: &[PoolFacts]) -> Result<Findings, Failure> {
    let (mut refusals, mut told) = of_file(description, Asker::Anybody);
    told.extend(witness_fault(description)?);
    let displaced = look_at_places(description, facts)?;
    refusals.extend(refusals_without(description, &displaced)?);
    refusals.extend(look_for_copies(description, facts)?);
    told.extend(displaced.into_iter().map(|one| one.text));
    for finding in description.compare(facts).map_err(Failure::Run)? {
        match finding {
            Finding::Refused(text) => refusals.push(text),
            Finding::Told(text) => told.push(text),
        }
    }
    Ok((refusals, told))
}

/// Why a start would be refused that does not find drives which the server has.
fn refusals_without(description: &Description, displaced: &[Displaced]) -> Result<Vec<String>, Failure> {
    let drives: Vec<_> = displaced.iter().filter(|one| one.is_certain).map(|one| one.id).collect();
    if drives.is_empty() {
        return Ok(Vec::new());
    }
    match ask_if_served(description, &AdminRequest::StartWithout { drives })? {
        Some(AdminReply::Objections(texts)) => Ok(texts),
        // It has ended meanwhile.
        _ => Ok(Vec::new()),
    }
}

/// Of the drives of an array that no server serves.
fn look(description: &Description, file: &Path) -> Result<Findings, Failure> {
    let (mut refusals, mut told) = of_file(description, Asker::WhoStarts);
    told.extend(
        rehearse(description, &OpenOptions::default())
            .map_err(|error| not_to_be_started(description, file, error))?,
    );
    // Asked last: a server that has the drives may listen there itself.
    refusals.extend(addresses::taken(LISTEN, &description.listen, Patience::Look));
    if description.listen.is_empty() {
        let default = [ListenAddress(PeerAddress::Tcp(DEFAULT_TCP_ADDRESS))];
        // A start may be given another address.
        told.extend(addresses::taken("a start without --listen", &default, Patience::Look));
    }
    Ok((refusals, told))
}

/// Why a start is refused; where the array may not have been created yet, also what would refuse its creation.
fn not_to_be_started(description: &Description, file: &Path, error: ArrayError) -> Failure {
    let is_not_created = error.is_without_pool();
    match served_already(description, file, error) {
        Failure::Input(text) if is_not_created => Failure::Input(match rehearse_creation(description) {
            Ok(()) if sizes_are_known(description) => format!("{text}, which the sizes of its drives allow"),
            Ok(()) => text,
            Err(fault) => {
                let fault = Failure::input(fault).text().unwrap_or_default();
                format!("{text}, which is refused as it is: {fault}")
            }
        }),
        failure => failure,
    }
}

/// Whether it is known how large each drive is, or would be made.
fn sizes_are_known(description: &Description) -> bool {
    let is_there = |path: &PathBuf| path.exists();
    description.drives.iter().all(|drive| drive.size.is_some() || drive.path.as_ref().is_some_and(is_there))
}

/// Whether a start would be by the user who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    WhoStarts,
    /// The server that runs may be another user's, who may do more.
    Anybody,
}

/// What the file itself says in vain, and names in vain.
fn of_file(description: &Description, asker: Asker) -> Findings {
    let mut told = description.all_notes();
    told.extend(homeless_control(description));
    let is_refusal =
        |(kind, _): &(ErrorKind, String)| asker == Asker::WhoStarts || *kind != ErrorKind::PermissionDenied;
    let unusable = addresses::unusable(LISTEN, &description.listen);
    let (refusing, others): (Vec<_>, Vec<_>) = unusable.into_iter().partition(is_refusal);
    told.extend(others.into_iter().map(|(_, text)| text));
    let conflict = addresses::conflict(LISTEN, &description.listen, description.control.as_deref());
    let refusals = conflict.into_iter().chain(refusing.into_iter().map(|(_, text)| text)).collect();
    let lasts = description.drives.iter().any(|drive| drive.path.is_some());
    told.extend(description.events.as_deref().filter(|_| lasts).and_then(history::fault));
    (refusals, told)
}

/// What stands against making the control socket, without which a server serves all the same.
fn homeless_control(description: &Description) -> Option<String> {
    let path = description.control.as_deref()?;
    if is_other_file(path) {
        return Some(format!(
            "array.control: what lies at {path:?} is no socket, so no verb reaches a server; take it away, or correct the path"
        ));
    }
    let Some(directory) = absent_directory(path) else {
        return closed_directory("array.control", path).map(|(_, text)| text);
    };
    Some(format!(
        "array.control: the directory {directory:?} of the control socket is not there, so no verb reaches a server; make it, \
         or correct the path"
    ))
}

fn text(description: &Description, found: &Found) -> String {
    let read = match found.served {
        true => "running; compared with the running array, checks passed",
        false => "not running; checks passed",
    };
    let mut text = format!("{}\n{}\n", wrapped(&description.outline(), "  "), wrapped(read, "  "));
    for finding in &found.findings {
        text.push_str(&format!("{}\n", wrapped(&format!("  ! {finding}"), "    ")));
    }
    text
}
