//! What has happened lately, newest last.

use tier0_api::{Event, Severity};

use super::duration;
use crate::output::wrapped;

/// How many of them are shown: what fits a screen beside the tables. JSON has all.
const SHOWN: usize = 10;

/// A line for each of the last ones; nothing where nothing has happened.
pub(super) fn text(events: &[Event]) -> String {
    if events.is_empty() {
        return String::new();
    }
    let first = events.len().saturating_sub(SHOWN);
    let more = if first > 0 { format!(", the last {SHOWN} of {}", events.len()) } else { String::new() };
    let lines: Vec<String> = events[first..].iter().map(line).collect();
    format!("\nevents{more}:\n{}\n", lines.join("\n"))
}

fn line(event: &Event) -> String {
    let urgency = match event.severity {
        Severity::Info => "",
        Severity::Warning => "! ",
        Severity::Critical => "!! ",
    };
    let remedy = if event.remedy.is_empty() { String::new() } else { format!("; {}", event.remedy) };
    let Event { thing, what, .. } = event;
    wrapped(&format!("  {} ago: {urgency}{thing}: {what}{remedy}", duration(event.age_s)), "    ")
}

#[cfg(test)]
mod tests {
    use tier0_api::{EventKind, Subject};

    use super::*;

    #[test]
    fn the_last_events_are_told_newest_last() {
        assert_eq!(text(&[]), "");
        let kind = EventKind::DriveAwaited { error: "an error".into(), reason: "it is needed".into() };
        let event = |age_s: u64| Event { age_s, ..Event::new(Subject::drive("d0"), &kind) };
        let events: Vec<Event> = (0..12).rev().map(event).collect();
        let text = text(&events);
        assert!(
            text.starts_with("\nevents, the last 10 of 12:\n  9 s ago: !! drive d0: fails (an error), and"),
            "{text}"
        );
        assert!(text.ends_with("it is needed; bring it back\n"), "{text}");
    }
}
