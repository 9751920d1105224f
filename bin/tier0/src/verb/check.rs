//! `tier0 check`: what an array file would do, without doing it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tier0_api::{AdminReply, AdminRequest};
use tier0_array::ArrayError;
use tier0_array::open::{
    Displaced, OpenOptions, PoolLayout, Rehearsal, is_virtual, look_at_places, look_for_copies, rehearse,
    rehearse_creation, witness_fault,
};
use tier0_description::facts::PoolFacts;
use tier0_description::{Description, Finding, ListenAddress};
use tier0_nbd::server::DEFAULT_TCP_ADDRESS;
use tier0_world::net::PeerAddress;

use super::config::facts;
use super::layout;
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
      show what the next start would do; nothing is written
  tier0 check array.toml --json

If the array is running, the array file is compared with it; if not, with its
drives. The exit code is 2 if tier0 serve would refuse the file. If the array
does not exist yet, the layout that tier0 create would make is shown, with the
usable capacity; the exit code is 2 if tier0 create would refuse the file.
For modelled drives, the layout is that of tier0 load.";

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
    /// `served`, `not-served`, `not-created`, or of what nothing can be created: `in-memory`, `modelled`.
    state: State,
    /// One sentence each; first why a start would be refused, or a creation of an array that does not exist yet.
    findings: Vec<String>,
    /// What `tier0 create` would make of an array that does not exist yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<Rehearsal>,
}

/// What is known of the array beside its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Served,
    NotServed,
    NotCreated,
    InMemory,
    Modelled,
}

/// What was found of an array.
struct Looked {
    state: State,
    /// Why a start or a creation would be refused.
    refusals: Vec<String>,
    /// What else is to be told.
    told: Vec<String>,
    layout: Option<Rehearsal>,
}

/// Says it.
pub(crate) fn run(verb: &Check) -> Result<(), Failure> {
    let description = Description::read(&verb.array).map_err(Failure::input)?;
    Accesses::of(&description)?;
    let facts = facts(&description)?;
    let looked = match facts {
        Some(facts) => {
            let description = description.clone();
            let compared = within(LOOK_LIMIT, move || compare(&description, &facts)).ok_or_else(|| {
                Failure::Run(
                    "a file that the array file or the server names does not answer; \"tier0 status\" shows the drives".into(),
                )
            })?;
            Looked::without_layout(State::Served, compared?)
        }
        None => look(&description, &verb.array)?,
    };
    let Looked { state, refusals, told, layout } = looked;
    let first = refusals.first().cloned();
    let found = Found {
        result: if first.is_some() { "refused" } else { "done" },
        text: first.clone().unwrap_or_default(),
        array: description.name.clone(),
        refused: first.is_some(),
        served: state == State::Served,
        state,
        findings: refusals.into_iter().chain(told).collect(),
        layout,
    };
    if verb.json {
        print(&json(&found))?;
    } else if first.is_none() || found.layout.is_some() {
        print(&text(&description, &verb.array, &found))?;
    }
    first.map_or(Ok(()), |text| Err(Failure::Input(text)))
}

impl Looked {
    fn without_layout(state: State, (refusals, told): Findings) -> Looked {
        Looked { state, refusals, told, layout: None }
    }
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

/// Of an array that no server serves.
fn look(description: &Description, file: &Path) -> Result<Looked, Failure> {
    if is_virtual(description) {
        let layout = rehearse_creation(description)?;
        return Ok(laid_out(State::Modelled, (Vec::new(), description.all_notes()), layout));
    }
    let (mut refusals, mut told) = of_file(description, Asker::WhoStarts);
    let rehearsed = match rehearse(description, &OpenOptions::default()) {
        Ok(warnings) => {
            told.extend(warnings);
            None
        }
        Err(error) => Some(not_created(description, file, error)?),
    };
    // Asked last: a server that has the drives may listen there itself.
    refusals.extend(addresses::taken(LISTEN, &description.listen, Patience::Look));
    if description.listen.is_empty() {
        let default = [ListenAddress(PeerAddress::Tcp(DEFAULT_TCP_ADDRESS))];
        // A start may be given another address.
        told.extend(addresses::taken("a start without --listen", &default, Patience::Look));
    }
    Ok(match rehearsed {
        Some(layout) => {
            refusals.extend(trace_of_array(description));
            laid_out(State::NotCreated, (refusals, told), layout)
        }
        None if description.drives.iter().all(|drive| drive.path.is_none()) => {
            laid_out(State::InMemory, (refusals, told), rehearse_creation(description)?)
        }
        None => Looked::without_layout(State::NotServed, (refusals, told)),
    })
}

/// Why an array may exist although none of its drives is connected: a server of it has written events.
pub(crate) fn trace_of_array(description: &Description) -> Option<String> {
    let events = description.events.as_deref().filter(|events| events.exists())?;
    Some(format!(
        "{events:?} holds events of this array, so its drives may be disconnected or not mounted; connect them, or remove that \
         file, or use \"tier0 create --yes\", if the array is new"
    ))
}

/// With the layout of an array that does not exist, and what is to be told of it.
fn laid_out(state: State, (mut refusals, mut told): Findings, layout: Rehearsal) -> Looked {
    told.extend(layout.pools.iter().filter_map(PoolLayout::overcommitment));
    let held = layout
        .overwrites
        .iter()
        .map(|held| held.text.replace("add --force to", "use \"tier0 create --force\" to"));
    refusals.extend(held);
    Looked { state, refusals, told, layout: Some(layout) }
}

/// What a creation would make, where the array does not exist.
///
/// # Errors
/// Why a start is refused for another reason, or why a creation would be refused.
fn not_created(description: &Description, file: &Path, error: ArrayError) -> Result<Rehearsal, Failure> {
    let is_not_created = error.is_without_pool();
    match served_already(description, file, error) {
        Failure::Input(_) if is_not_created => rehearse_creation(description).map_err(|fault| {
            let fault = Failure::input(fault).text().unwrap_or_default();
            Failure::Input(format!(
                "{fault} (array {:?} does not exist yet, and \"tier0 create\" would refuse this file)",
                description.name
            ))
        }),
        failure => Err(failure),
    }
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
            "array.control: {path:?} exists and is not a socket, so the server cannot be administered; remove it, or correct the path"
        ));
    }
    let Some(directory) = absent_directory(path) else {
        return closed_directory("array.control", path).map(|(_, text)| text);
    };
    Some(format!(
        "array.control: the directory {directory:?} of the control socket does not exist, so the server cannot be administered; create it, \
         or correct the path"
    ))
}

fn text(description: &Description, file: &Path, found: &Found) -> String {
    let file = file.display();
    let read = match (found.state, found.refused) {
        (State::Served, _) => "running; compared with the running array, checks passed".to_owned(),
        (State::NotServed, _) => "not running; checks passed".to_owned(),
        (State::NotCreated, false) => {
            format!("the array does not exist yet; \"tier0 create {file}\" would create this layout")
        }
        (State::NotCreated, true) => {
            format!(
                "the array does not exist yet; \"tier0 create {file}\" would refuse to create this layout"
            )
        }
        (State::InMemory, _) => {
            format!("all drives are in memory; \"tier0 serve {file}\" creates this layout at each start")
        }
        (State::Modelled, _) => {
            format!("all drives are modelled; \"tier0 load {file}\" runs this layout in virtual time")
        }
    };
    let mut text = format!("{}\n{}\n", wrapped(&description.outline(), "  "), wrapped(&read, "  "));
    for finding in &found.findings {
        text.push_str(&format!("{}\n", wrapped(&format!("  ! {finding}"), "    ")));
    }
    if let Some(rehearsal) = &found.layout {
        let made = &rehearsal.files_to_make;
        if !made.is_empty() {
            text.push_str(&format!(
                "{}\n",
                wrapped(&format!("  files to be created: {}", made.join(", ")), "    ")
            ));
        }
        let pools: Vec<&PoolLayout> = rehearsal.pools.iter().collect();
        text.push_str(&format!("\n{}", layout::text(&pools)));
    }
    text
}
