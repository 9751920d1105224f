//! `tier0 pool recover`: the last resort for an array that no start opens.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tier0_api::{Event, EventId, EventKind, Severity, Subject};
use tier0_array::open::recover::{ByteRange, DriveRole, Recovery, Role, VolumeLoss, recover};
use tier0_array::open::{OpenOptions, rehearse};
use tier0_description::{Description, moved_events};
use tier0_units::{ByteCount, counted};

use super::asking::Agreement;
use super::config::facts;
use crate::consent;
use crate::control::served_instead;
use crate::failure::Failure;
use crate::history::{self, KeptEvent};
use crate::output::{json, print, wrapped};

pub(super) const EXAMPLES: &str = "\
Examples:
  tier0 pool recover array.toml
      show what is recoverable and what may be lost (dry run)
  tier0 pool recover array.toml --json
  tier0 pool recover array.toml --without d1
      the same without drive d1
  tier0 pool recover array.toml --accept-loss --yes
      recover the pool with the connected drives, then start it (tier0 serve)

The array must not be running. Connect all remaining drives first, including
stale ones. Exit code 1: not recoverable, or the array still does not start.
Exit code 2: no recovery needed, but the array does not start for another
reason.";

/// The last resort.
#[derive(Args, Debug)]
pub(crate) struct Recover {
    /// Array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Recover only this pool
    #[arg(value_name = "POOL")]
    pool: Option<String>,
    /// Treat this drive (name or path) as missing; may be repeated
    #[arg(long, value_name = "DRIVE")]
    without: Vec<String>,
    /// Recover the pool and accept the listed loss
    #[arg(long)]
    accept_loss: bool,
    #[command(flatten)]
    agreement: Agreement,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found and done, for JSON.
#[derive(Serialize)]
struct Told<'a> {
    /// `done`, `refused` (nothing was changed) or `failed`.
    result: &'a str,
    /// One sentence: why not, or where the pools stand.
    text: String,
    array: &'a str,
    /// Whether pools were written; otherwise nothing was.
    assembled: bool,
    pools: &'a [Recovery],
}

impl<'a> Told<'a> {
    fn new(array: &'a str, assembled: bool, pools: &'a [Recovery], done: &Result<(), Failure>) -> Told<'a> {
        let result = done.as_ref().err().map_or("done", Failure::result);
        let text = match (done, assembled) {
            (Err(failure), _) => failure.text().unwrap_or_default(),
            (Ok(()), true) => ASSEMBLED.to_owned(),
            (Ok(()), false) if pools.iter().any(|one| one.is_needed) => ASSEMBLABLE.to_owned(),
            (Ok(()), false) => nothing_to_do(pools),
        };
        Told { result, text, array, assembled, pools }
    }
}

/// Where pools stand.
const ASSEMBLED: &str = "recovered; start it with \"tier0 serve\", find inconsistencies with \"tier0 \
                         scrub\", and return unused drives with \"tier0 drive rejoin\"";
const ASSEMBLABLE: &str = "recoverable with this loss: add --accept-loss";
const NOTHING_TO_DO: &str = "no recovery needed: start it with \"tier0 serve\"";
const REFUSED_ALL_THE_SAME: &str = "no recovery needed, but the array would not start";

/// How to go on where there is nothing to recover: without the drives that were left out.
fn nothing_to_do(pools: &[Recovery]) -> String {
    let drives = pools.iter().flat_map(|one| &one.without);
    let without: String = drives.map(|drive| format!(" --without {drive}")).collect();
    match without.as_str() {
        "" => NOTHING_TO_DO.to_owned(),
        without => format!("no recovery needed: start it with \"tier0 serve ARRAY{without}\""),
    }
}

/// How the note begins on a pool that was assembled with loss before.
const EARLIER: &str = "losses of an earlier recovery are not listed here";

/// What is agreed to.
const CONSEQUENCE: &str =
    "the listed data may be lost permanently, and the contents of unused drives are given up";

/// Says what could be assembled, and assembles it where that was accepted.
pub(super) fn run(verb: &Recover) -> Result<(), Failure> {
    let description = Description::read(&verb.array).map_err(Failure::input)?;
    let pool = verb.pool.as_deref();
    if let Some(unknown) = pool.filter(|name| !description.pools.iter().any(|pool| pool.name == *name)) {
        return Err(Failure::Input(format!("the array file has no pool {unknown:?}; name one of its pools")));
    }
    if description.drives.iter().any(|drive| drive.path.is_none()) {
        return Err(Failure::Input(
            "pools in memory cannot be recovered; start the array with \"tier0 serve\", empty".into(),
        ));
    }
    if facts(&description)?.is_some() {
        return Err(Failure::Input(format!(
            "array {:?} is running; stop its server first, or check \"tier0 status\"",
            description.name
        )));
    }
    let mut pools = recover(&description, pool, &verb.without, false).map_err(|error| {
        let served = served_instead(&description, &verb.array, &error);
        served.unwrap_or_else(|| error.without_a_start().into())
    })?;
    // Whether anything lies at a path was seen before.
    let is_unknown = |asked: &&String| {
        let is_it = |drive: &DriveRole| drive.name == **asked;
        !asked.contains('/') && !pools.iter().any(|one| one.drives.iter().any(is_it))
    };
    if let Some(unknown) = verb.without.iter().find(is_unknown) {
        return Err(Failure::Input(format!(
            "--without {unknown}: no pool has a drive of that name; use a name or path that \"tier0 pool \
             recover\" lists"
        )));
    }
    note_earlier(&description, &mut pools);
    let obstacle = pools.iter().find_map(|one| Some(of_pool(&one.pool, one.obstacle.as_ref()?)));
    let is_due = verb.accept_loss && pools.iter().any(|one| one.is_needed && one.obstacle.is_none());
    if is_due && !verb.json {
        print(&text(&pools, Asked::Assembling))?;
    }
    let done = match is_due {
        true => consent::obtain(CONSEQUENCE, verb.agreement.yes).and_then(|()| {
            pools = recover(&description, pool, &verb.without, true)?;
            leave_events(&description, &pools);
            Ok(())
        }),
        false => Ok(()),
    };
    let assembled = is_due && done.is_ok();
    let is_whole = pools.iter().all(|one| !one.is_needed && one.obstacle.is_none());
    let refusal = if is_whole { refused_start(&description, &verb.without) } else { None };
    let looking = if refusal.is_some() { Asked::Vainly } else { Asked::Looking };
    let done = done.and_then(|()| obstacle.map_or(Ok(()), |obstacle| Err(Failure::Run(obstacle))));
    let done = done.and_then(|()| refusal.map_or(Ok(()), Err));
    let done = done.and_then(|()| if assembled { rehearsed(&description) } else { Ok(()) });
    if verb.json {
        print(&json(&Told::new(&description.name, assembled, &pools, &done)))?;
    } else if assembled && done.is_ok() {
        print(&format!("{ASSEMBLED}\n"))?;
    } else if !is_due {
        print(&text(&pools, looking))?;
    }
    done
}

/// Why a start is refused of pools that are whole; none where it is not.
fn refused_start(description: &Description, without: &[String]) -> Option<Failure> {
    let error = rehearse(description, &OpenOptions { without: without.to_vec() }).err()?;
    let why = Failure::from(error).text().unwrap_or_default();
    Some(Failure::Input(format!("{REFUSED_ALL_THE_SAME}: {why}")))
}

/// Notes of pools that were assembled with loss what their events tell of it: the drives do not remember, and what is on none
/// of them any more counts as lost no more.
fn note_earlier(description: &Description, pools: &mut [Recovery]) {
    let Some(path) = &description.events else { return };
    let kept = [moved_events(path), path.clone()].map(|path| history::content(&path));
    let events: Vec<KeptEvent> =
        kept.into_iter().flatten().flat_map(|(_, text)| history::read(&text).0).collect();
    for one in pools {
        let thing = format!("pool {}", one.pool);
        let is_loss = |event: &&KeptEvent| {
            event.thing == thing && event.severity == Severity::Critical && event.is(EventId::ArrayRecovered)
        };
        let Some(event) = events.iter().rfind(is_loss) else { continue };
        one.notes.push(format!("{EARLIER} (event of {}: {})", event.time.strftime("%F %TZ"), event.what));
    }
}

/// Leaves in the events of the array what was given up. Events that cannot be kept undo nothing.
fn leave_events(description: &Description, pools: &[Recovery]) {
    let Some(path) = &description.events else { return };
    for one in pools.iter().filter(|one| one.is_needed && one.obstacle.is_none()) {
        if let Err(error) = history::add(path, event(one)) {
            tracing::warn!("cannot write the recovery event to {path:?}: {error}");
        }
    }
}

fn event(one: &Recovery) -> Event {
    let harmed = one.volumes.iter().filter(|volume| !volume.is_nothing()).map(|volume| volume.name.clone());
    let volumes_harmed = harmed.collect();
    Event::new(Subject::pool(&one.pool), &EventKind::ArrayRecovered { volumes_harmed })
}

/// Whether a start opens what was assembled.
///
/// # Errors
/// It does not.
fn rehearsed(description: &Description) -> Result<(), Failure> {
    rehearse(description, &OpenOptions::default())
        .map_err(|error| Failure::Run(format!("recovered, but the array would still not start: {error}")))?;
    Ok(())
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// To say what could be done.
    Looking,
    /// The same, where there is nothing to do, and a start is refused.
    Vainly,
    /// To do it.
    Assembling,
}

fn text(pools: &[Recovery], asked: Asked) -> String {
    pools.iter().map(|one| pool_text(one, asked)).collect::<Vec<_>>().join("\n")
}

fn pool_text(one: &Recovery, asked: Asked) -> String {
    let mut text = format!("pool {}, superblock generation {}\n", one.pool, one.generation);
    let obstacle = one.obstacle.iter().map(|obstacle| wrapped(&format!("  ! {obstacle}"), "    "));
    text.extend(obstacle.map(|line| format!("{line}\n")));
    let can_be_assembled = one.is_needed && one.obstacle.is_none();
    for drive in &one.drives {
        text.push_str(&format!("  drive {}: {}\n", drive.name, words(drive, can_be_assembled)));
    }
    let is_poorer = one.notes.iter().any(|note| note.starts_with(EARLIER));
    for volume in &one.volumes {
        text.push_str(&format!("  volume {} of {}:", volume.name, ByteCount(volume.size_bytes)));
        text.push_str(&match volume.is_nothing() && one.obstacle.is_some() {
            // It loses nothing only in a pool that serves again.
            true => " complete on the connected drives; not readable until the pool is recovered\n".into(),
            false if volume.is_nothing() && is_poorer => " no further loss\n".into(),
            false => loss_text(volume),
        });
    }
    for note in &one.notes {
        text.push_str(&format!("{}\n", wrapped(&format!("  ! {note}"), "    ")));
    }
    let end = match (&one.obstacle, one.is_needed) {
        (Some(_), _) => "not recoverable",
        (None, true) if asked == Asked::Assembling => "recoverable with this loss",
        (None, true) => ASSEMBLABLE,
        (None, false) if asked == Asked::Vainly => REFUSED_ALL_THE_SAME,
        (None, false) => &nothing_to_do(std::slice::from_ref(one)),
    };
    text.push_str(&format!("  {end}\n"));
    text
}

fn words(drive: &DriveRole, can_be_assembled: bool) -> String {
    let words = match drive.role {
        Role::Believed => "in use",
        Role::Readmitted => "was out of service, used again",
        Role::Stale => "stale, not used",
        Role::RolledBack => "restored from an older image, not used",
        Role::Overwritten => "overwritten at its start, not used",
        Role::Missing if can_be_assembled => "missing; --accept-loss gives up its contents",
        Role::Missing => "missing",
        Role::OneHistory => "present, belongs to one history",
        Role::OtherHistory => "present, belongs to another history",
        Role::LeftOut if can_be_assembled => "left out; --accept-loss gives up its contents",
        Role::LeftOut => "left out",
        Role::Lost => "lost and missing",
        Role::Left => "removed from the pool",
        Role::Joins => "blank, added to hold the write log",
    };
    match drive.generation {
        Some(generation) => format!("{words} (superblock generation {generation})"),
        None => words.to_owned(),
    }
}

fn loss_text(volume: &VolumeLoss) -> String {
    if volume.is_nothing() {
        return " no loss\n".to_owned();
    }
    let mut text = "\n".to_owned();
    let mut part = |ranges: &[ByteRange], what: &str| {
        let bytes: u64 = ranges.iter().map(|range| range.end_byte - range.first_byte).sum();
        if bytes == 0 {
            return;
        }
        let (size, count) = (ByteCount(bytes), counted(ranges.len() as u64, "range"));
        text.push_str(&format!("    {size} in {count}, {what}\n"));
        for range in ranges {
            text.push_str(&format!("      bytes {} to {}\n", range.first_byte, range.end_byte - 1));
        }
    };
    part(&volume.lost, "lost: on no connected drive");
    part(&volume.stale, "stale: on drives that missed writes; older content, zeros or errors");
    part(&volume.cut, "perhaps lost: where a required drive holds no data, as a truncated one");
    if volume.log_bytes_max > 0 {
        let most = ByteCount(volume.log_bytes_max);
        text.push_str(&format!(
            "    unknown: up to {most} of the last acknowledged writes were only in the write log\n"
        ));
    }
    if volume.may_be_older {
        text.push_str(
            "    all of it may be outdated: the missing drives could have continued on their own\n",
        );
    }
    text
}

/// A fact of a pool, which many facts name themselves.
fn of_pool(pool: &str, fact: &str) -> String {
    let names_it = fact.contains(&format!("pool {pool:?}"));
    if names_it { fact.to_owned() } else { format!("pool {pool:?}: {fact}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss() -> VolumeLoss {
        VolumeLoss {
            name: "lun0".into(),
            size_bytes: 1 << 30,
            lost: Vec::new(),
            stale: Vec::new(),
            cut: Vec::new(),
            log_bytes_max: 0,
            may_be_older: false,
        }
    }

    fn recovery(roles: &[Role]) -> Recovery {
        let role = |(number, role): (usize, &Role)| DriveRole {
            name: format!("d{number}"),
            role: *role,
            generation: None,
        };
        Recovery {
            pool: "p".into(),
            obstacle: None,
            is_needed: true,
            generation: 7,
            drives: roles.iter().enumerate().map(role).collect(),
            without: Vec::new(),
            volumes: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Of two histories one was told as stale, and that there are two stood in the last line.
    #[test]
    fn what_stands_against_it_is_told_first() {
        let obstacle = Some("two groups; choose".to_owned());
        let told = pool_text(
            &Recovery { obstacle, ..recovery(&[Role::OneHistory, Role::OtherHistory]) },
            Asked::Looking,
        );
        assert!(told.lines().nth(1).is_some_and(|line| line.contains("two groups")), "{told}");
        assert!(told.contains("drive d1: present, belongs to another history\n"), "{told}");
        assert!(!told.contains("stale") && told.ends_with("not recoverable\n"), "{told}");
    }

    /// "Loses nothing" stood beside "cannot be assembled".
    #[test]
    fn nothing_is_promised_of_a_pool_that_cannot_be_assembled() {
        let whole = Recovery { volumes: vec![loss()], ..recovery(&[Role::Believed]) };
        assert!(pool_text(&whole, Asked::Looking).contains("lun0 of 1GiB: no loss\n"));
        let hopeless = Recovery { obstacle: Some("too few; connect more".into()), ..whole };
        let told = pool_text(&hopeless, Asked::Looking);
        assert!(!told.contains("no loss") && told.contains("not readable until"), "{told}");
    }

    /// What a drive that was only missing held was told as given up, where the administrator had given up nothing.
    #[test]
    fn nothing_is_given_up_before_somebody_does() {
        let needed = recovery(&[Role::Missing]);
        assert!(pool_text(&needed, Asked::Looking).contains("--accept-loss gives up"));
        let told = pool_text(&Recovery { is_needed: false, ..needed }, Asked::Looking);
        assert!(told.contains("drive d0: missing\n") && told.contains(NOTHING_TO_DO), "{told}");
    }

    /// Who had given --accept-loss --yes was told to add it.
    #[test]
    fn who_accepts_the_loss_is_not_told_to() {
        let needed = recovery(&[Role::Believed]);
        assert!(pool_text(&needed, Asked::Looking).ends_with("add --accept-loss\n"));
        assert!(pool_text(&needed, Asked::Assembling).ends_with("recoverable with this loss\n"));
    }

    #[test]
    fn json_says_what_the_text_says_where_nothing_is_to_recover() {
        let whole = Recovery { is_needed: false, ..recovery(&[Role::Believed]) };
        let pools = std::slice::from_ref(&whole);
        let told = Told::new("a", false, pools, &Ok(()));
        assert!(pool_text(&whole, Asked::Looking).contains(&told.text) && !told.text.is_empty());
    }

    #[test]
    fn a_volume_that_loses_nothing_is_told_as_such() {
        assert_eq!(loss_text(&loss()), " no loss\n");
    }

    #[test]
    fn ranges_are_told_with_both_ends() {
        let range = ByteRange { first_byte: 1 << 20, end_byte: 2 << 20 };
        let told = loss_text(&VolumeLoss { stale: vec![range], log_bytes_max: 4096, ..loss() });
        assert!(told.contains("1MiB in 1 range, stale: on drives that missed writes"), "{told}");
        assert!(told.contains("bytes 1048576 to 2097151\n"), "{told}");
        assert!(told.contains("up to 4KiB"), "{told}");
    }
}
