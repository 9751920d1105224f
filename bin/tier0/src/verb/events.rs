//! `tier0 events`: what has happened to an array, over all its servers, from the file in which they keep it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use tier0_api::Severity;
use tier0_description::{Description, Remnant, moved_events};
use tier0_units::counted;

use crate::failure::Failure;
use crate::history::{self, FileId, KeptEvent, read};
use crate::moment::moment;
use crate::output::{json, json_line, print, wrapped};

const EXAMPLES: &str = "\
Examples:
  tier0 events array.toml --since 2h
      the last two hours
  tier0 events array.toml --severity warning
      warnings (!) and critical events (!!) only
  tier0 events array.toml --since 2026-11-24T18:00:00Z --json | jq -r .[].what
  tier0 events array.toml --json | jq '.[] | select(.id == \"drive-failed\")'
      failed drives; docs/api/events.md lists the ids

Times are UTC. Events are read from the event file that the server writes
(array.events in the array file; default: next to it), so the command also works
while the array is stopped. About 8000 events are kept.";

/// How often a file that is followed is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// What has happened to an array.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Show only events since this time: an age, as in "90s", "2h 30m" or "3 days", or a UTC time, as in
    /// 2026-11-24T18:00
    #[arg(long, value_name = "TIME", value_parser = parse_since, allow_hyphen_values = true)]
    since: Option<Timestamp>,
    /// Show only events of at least this severity
    #[arg(long, value_name = "LEVEL", default_value = "info", ignore_case = true)]
    severity: Level,
    /// Keep printing new events until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Print JSON; with --follow, one object per line
    #[arg(long)]
    json: bool,
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    Info,
    Warning,
    Critical,
}

/// A time before now, or one of the calendar.
fn parse_since(text: &str) -> Result<Timestamp, String> {
    moment(text, |now, age| now.checked_sub(age).ok()).ok_or_else(|| {
        "use an age, as in \"90s\" or \"2h 30m\", or a UTC time, as in 2026-11-24T18:00".to_owned()
    })
}

/// Prints them.
pub(crate) fn run(verb: &Events) -> Result<(), Failure> {
    let path = place_of_events(&verb.array)?;
    let mut tail = Tail::default();
    let old = content(&moved_events(&path))?;
    let mut events = old.map_or_else(Vec::new, |old| kept(&old.text, &moved_events(&path)));
    events.extend(tail.read(&path)?);
    if tail.read.is_none() {
        tracing::warn!(
            "no events in {path:?} yet; \"tier0 serve\" writes them, and logs an error if it cannot"
        );
    }
    events.retain(|event| verb.wants(event));
    match verb.json && !verb.follow {
        true => print(&json(&events))?,
        false => verb.print_each(&events)?,
    }
    if !verb.follow {
        return Ok(());
    }
    loop {
        pause(LOOK);
        let mut events = tail.read(&path)?;
        events.retain(|event| verb.wants(event));
        verb.print_each(&events)?;
    }
}

/// Where the events of an array file are kept: also of one that is broken or gone, where events are there.
fn place_of_events(array: &Path) -> Result<PathBuf, Failure> {
    let fault = match Description::read(array) {
        Ok(description) => {
            return Ok(description.events.expect("a file that was read has a place for events"));
        }
        Err(error) => Failure::input(error),
    };
    let Some(Remnant { events, .. }) = Remnant::of(array).filter(|remnant| remnant.events.is_file()) else {
        return Err(fault);
    };
    tracing::warn!("{}; reading the events in {events:?} anyway", fault.text().unwrap_or_default());
    Ok(events)
}

impl Events {
    fn wants(&self, event: &KeptEvent) -> bool {
        let least = match self.severity {
            Level::Info => Severity::Info,
            Level::Warning => Severity::Warning,
            Level::Critical => Severity::Critical,
        };
        event.severity >= least && self.since.is_none_or(|since| event.time >= since)
    }

    fn print_each(&self, events: &[KeptEvent]) -> Result<(), Failure> {
        let text: String = match self.json {
            true => events.iter().map(json_line).collect(),
            false => events.iter().map(line).collect(),
        };
        if text.is_empty() { Ok(()) } else { print(&text) }
    }
}

fn line(event: &KeptEvent) -> String {
    let urgency = match event.severity {
        Severity::Info => "",
        Severity::Warning => "! ",
        Severity::Critical => "!! ",
    };
    let KeptEvent { time, thing, what, remedy, .. } = event;
    let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
    let time = time.strftime("%F %TZ");
    // A file may hold anything, and terminals obey.
    let told = format!("{time} {urgency}{thing}: {what}{remedy}").replace(char::is_control, "\u{fffd}");
    format!("{}\n", wrapped(&told, "    "))
}

/// A file that grows, and that may be moved away or taken away.
#[derive(Default)]
struct Tail {
    /// Device and number of the file, and how much of it was read.
    read: Option<(FileId, usize)>,
}

impl Tail {
    /// What has been written since the last time. A line that is not ended waits.
    fn read(&mut self, path: &Path) -> Result<Vec<KeptEvent>, Failure> {
        let now = content(path)?;
        let mut events = Vec::new();
        if let Some((known, read)) = self.read
            && now.as_ref().is_none_or(|now| now.id != known)
            && let Some(before) = content(&moved_events(path))?.filter(|before| before.id == known)
        {
            // What was written to it in its last moment was moved with it.
            events = kept(before.text.get(read..).unwrap_or_default(), path);
            self.read = None;
        }
        let Some(now) = now else { return Ok(events) };
        let from = self.read.filter(|(known, _)| *known == now.id).map_or(0, |(_, read)| read);
        let new = now.text.get(from..).unwrap_or_default();
        let whole = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read = Some((now.id, from + whole));
        events.extend(kept(&new[..whole], path));
        Ok(events)
    }
}

/// What a file holds.
struct Content {
    id: FileId,
    text: Vec<u8>,
}

/// Nothing where there is no file.
fn content(path: &Path) -> Result<Option<Content>, Failure> {
    match history::content(path) {
        Ok((id, text)) => Ok(Some(Content { id, text })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::Input(format!(
        "cannot read the events in {path:?}: {error}; correct array.events, or grant access"
    ))
}

fn kept(text: &[u8], path: &Path) -> Vec<KeptEvent> {
    let (events, others) = read(text);
    if others > 0 {
        tracing::warn!(
            "{} of {path:?} cannot be parsed and {} skipped",
            counted(others as u64, "line"),
            if others == 1 { "is" } else { "are" }
        );
    }
    events
}

#[expect(clippy::disallowed_methods, reason = "the terminal's time, not the engine's")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn times_are_before_now_or_of_the_calendar() {
        let at = |text: &str| parse_since(text).map(|at| at.to_string());
        assert_eq!(at("2026-11-24T18:00:00Z"), Ok("2026-11-24T18:00:00Z".to_owned()));
        assert_eq!(at("2026-11-24T18:00"), at("2026-11-24T18:00:00Z"));
        assert_eq!(at("2026-11-24 18:00"), at("2026-11-24T18:00:00Z"));
        assert_eq!(at("2026-11-24"), at("2026-11-24T00:00:00Z"));
        assert_eq!(at("2026-11-24T18:00:00+02:00"), at("2026-11-24T16:00:00Z"));
        let ago = |text: &str| {
            let now = parse_since("0s").expect("a time");
            (now.as_second() - parse_since(text).expect("a time").as_second() + 5) / 10 * 10
        };
        assert_eq!([ago("90s"), ago("2h 30m"), ago("3 days")], [90, 9000, 259_200]);
        for wrong in ["", "yesterday", "2h30", "2026-13-01", "-"] {
            assert!(parse_since(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_file_is_followed_over_a_torn_line_and_a_move() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.events");
        let mut tail = Tail::default();
        let mut whats = |path: &Path| -> Vec<String> {
            tail.read(path).expect("it is read").into_iter().map(|event| event.what).collect()
        };
        assert!(whats(&path).is_empty());
        let event = |what: &str| {
            format!(
                "{{\"time\":\"2026-11-24T18:00:00Z\",\"severity\":\"info\",\"thing\":\"t\",\"what\":\"{what}\",\"remedy\":\"\"}}\n"
            )
        };
        let mut file = File::create(&path).expect("a file");
        let (one, two) = (event("one"), event("two"));
        file.write_all(format!("{one}{}", &two[..20]).as_bytes()).expect("it is written");
        assert_eq!(whats(&path), ["one"]);
        file.write_all(&two.as_bytes()[20..]).expect("it is written");
        assert_eq!(whats(&path), ["two"]);
        assert!(whats(&path).is_empty());
        file.write_all(event("last").as_bytes()).expect("it is written");
        std::fs::rename(&path, moved_events(&path)).expect("it moves");
        std::fs::write(&path, event("three")).expect("it is written");
        assert_eq!(whats(&path), ["last", "three"]);
        std::fs::remove_file(&path).expect("it goes");
        assert!(whats(&path).is_empty());
    }
}
