//! `tier0 status`: the state of a running array, as tables or JSON, with an exit code for monitoring.

mod drives;
mod events;
mod pool;
mod scrub;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tier0_api::{ConnectionsStatus, FindingKind, Health, Status};
use tier0_description::{Description, Finding};

use super::config::facts;
use crate::cli::Global;
use crate::control::Addressee;
use crate::failure::Failure;
use crate::output::{json, print, wrapped};
use crate::patience::within;

/// How long the files that the array file names may take to be looked at.
const COMPARE_LIMIT: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  tier0 status array.toml
  tier0 status array.toml --json | jq .summary
  tier0 status array.toml --quiet || page-somebody
      prints nothing; exits with 4, 5 or 6 unless the array is healthy

Exits with 1 if no server serves the array, or its server does not answer
within 10 s. --quiet prints no status, with --json neither; errors go to stderr.";

/// Which array.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusVerb {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Asks, prints unless told to be quiet, and ends as the array's health says.
pub(crate) fn run(verb: &StatusVerb, global: &Global) -> Result<(), Failure> {
    let server = Addressee::of(&verb.array)?;
    let mut status = server.status()?;
    match server.description() {
        Ok(description) => add_refusals(&mut status, description)?,
        // No start reads it.
        Err(broken) => status.add(&FindingKind::ArrayFileBroken { fault: broken.fault.to_owned() }),
    }
    if global.quiet == 0 {
        print(&if verb.json { json(&status) } else { text(&status) })?;
    }
    match status.health {
        Health::Healthy => Ok(()),
        unhealthy => Err(Failure::Unhealthy(unhealthy)),
    }
}

/// What would refuse the next start with this file is a problem now: later the server cannot be asked any more. The server
/// tells of drives whose files do not answer.
fn add_refusals(status: &mut Status, description: &Description) -> Result<(), Failure> {
    let Some(facts) = facts(description)? else { return Ok(()) };
    let description = description.clone();
    let Some(findings) = within(COMPARE_LIMIT, move || description.compare(&facts)) else { return Ok(()) };
    for finding in findings.map_err(Failure::Run)? {
        let Finding::Refused(text) = finding else { continue };
        status.add(&FindingKind::StartRefused { text });
    }
    Ok(())
}

fn text(status: &Status) -> String {
    let heading = wrapped(&format!("array {}: {}", status.array, status.summary), "  ");
    let connections = status.connections.as_ref().and_then(connections);
    let connections = connections.map_or_else(String::new, |line| format!("{}\n", wrapped(&line, "  ")));
    let pools: Vec<String> = status.pools.iter().map(|pool| pool::text(pool, &status.summary)).collect();
    format!("{heading}\n{connections}{}{}", pools.concat(), events::text(&status.events))
}

/// Where clients were closed for want of places: how many, and why. None where none was.
fn connections(of: &ConnectionsStatus) -> Option<String> {
    let closed = [
        (of.refused - of.refused_of_address.min(of.refused), "new"),
        (of.refused_of_address, "new of an address that had as many as one may have"),
        (of.gave_way_negotiating, "in the handshake"),
        (of.gave_way_idle, "idle"),
    ];
    let told: Vec<String> = closed
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "connections: {} of {} open, {} of them in the handshake; closed for want of places since the start: {}",
            of.open,
            of.limit,
            of.negotiating,
            told.join(", ")
        )
    })
}

/// A time in at most two units: `12 s`, `3 min 4 s`, `2 h 5 min`, `3 d 4 h`.
pub(crate) fn duration(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(3);
    let (unit, name) = UNITS[first];
    let whole = format!("{} {name}", seconds / unit);
    match UNITS.get(first + 1).map(|(small, name)| (seconds % unit / small, name)) {
        Some((rest, name)) if rest > 0 => format!("{whole} {rest} {name}"),
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_told_where_some_had_no_place() {
        let mut of = ConnectionsStatus {
            open: 7,
            negotiating: 2,
            limit: 1024,
            limit_per_address: 512,
            refused: 0,
            refused_of_address: 0,
            gave_way_negotiating: 0,
            gave_way_idle: 0,
        };
        assert_eq!(connections(&of), None);
        (of.refused, of.refused_of_address, of.gave_way_negotiating) = (5, 5, 230);
        let told = "connections: 7 of 1024 open, 2 of them in the handshake; closed for want of places since the start: \
                    5 new of an address that had as many as one may have, 230 in the handshake";
        assert_eq!(connections(&of).as_deref(), Some(told));
    }

    #[test]
    fn durations_have_at_most_two_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (184, "3 min 4 s"),
            (7500, "2 h 5 min"),
            (7201, "2 h"),
            (273_700, "3 d 4 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
