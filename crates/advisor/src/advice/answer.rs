//! The paragraph: is storage what limits, what would flash bring, what limits next?

use super::rank::{Ranked, Verdict};
use super::{Chosen, Question};
use crate::report::{change, gb, interval};
use crate::rules::{Case, Finding, Outcome, percent};

/// Sessions that wait for storage for this share of their time are limited by it.
const LIMITS: f64 = 0.5;
/// Processors that are so busy limit.
const FULL: f64 = 0.95;
/// From here on processors queue.
const BUSY: f64 = 0.8;
/// Where the database takes less than this part of the busy processors, other work is named.
const OWN: f64 = 0.8;
/// Gains below are not worth a sentence of hope.
const WORTH: f64 = 0.02;

/// Sentences.
pub(super) fn answer(
    case: &Case<'_>,
    question: &Question,
    findings: &[Finding],
    objects: &[Ranked],
    chosen: &Chosen,
) -> Vec<String> {
    let mut lines = vec![limits_now(case, findings)];
    lines.push(brings(question, objects, chosen));
    if let Some(line) = limits_next(chosen) {
        lines.push(line);
    }
    lines
}

fn limits_now(case: &Case<'_>, findings: &[Finding]) -> String {
    let busy = case.evidence.host.busy;
    match (&case.model, busy) {
        (Some(model), Some(busy)) if busy >= FULL && model.computing < OWN * model.busy * model.cores => format!(
            "Processors limit, not storage: they are {} busy, of which the database takes {}; if the other work on this host is not for the \
             database, move it away and measure again.",
            percent(busy),
            percent(model.computing / model.cores)
        ),
        (_, Some(busy)) if busy >= FULL => {
            format!("Processors limit, not storage: they are {} busy.", percent(busy))
        }
        (Some(model), Some(busy)) => {
            let share = model.storage_share();
            let words = match share {
                share if share >= LIMITS => "Storage limits",
                share if share >= 0.2 => "Storage is a part of what limits",
                _ => "Storage does not limit",
            };
            format!("{words}: sessions wait for it {} of their time at work, and processors are {} busy.", percent(share), percent(busy))
        }
        // What the host shows, where the database's own waits are not known.
        (None, Some(busy)) => match findings.iter().find(|finding| finding.rule == "waits-for-io") {
            Some(finding) if finding.outcome == Outcome::Fires => {
                format!("The host waits for storage: {}.", finding.evidence)
            }
            Some(finding) if finding.outcome == Outcome::Silent => {
                format!("The host does not wait for storage: {}.", finding.evidence)
            }
            _ => format!(
                "Processors are {} busy; whether storage limits is not known, because no waits of the database or its devices \
                 were measured over a known time.",
                percent(busy)
            ),
        },
        (_, None) => "Whether storage limits is not known: the processors were not measured; give iostat, sar, Perfmon or AWR of the \
             same time, or state it with --cpu."
            .to_owned(),
    }
}

fn brings(question: &Question, objects: &[Ranked], chosen: &Chosen) -> String {
    if objects.is_empty() {
        return "No objects were measured, so nothing can be placed; give file or table statistics of the database.".to_owned();
    }
    if chosen.objects == 0 {
        let no_room = objects.iter().any(|row| row.verdict == Verdict::NoRoom);
        if !no_room {
            return "Nothing belongs on flash: no object has random I/O that waits.".to_owned();
        }
        let has_sizes = objects.iter().any(|row| row.verdict == Verdict::NoRoom && row.bytes.is_some());
        let why = match has_sizes {
            true => "No candidate fits on the flash",
            false => "The sizes of the candidates are not known (give them in --site), so none is chosen",
        };
        return match chosen.gain_of_all {
            Some(gain) => {
                format!(
                    "{why}; all of them together would bring {} transactions ({}).",
                    change(gain.expected),
                    interval(gain)
                )
            }
            None => format!("{why}."),
        };
    }
    let has_sizes = objects.iter().filter(|row| row.verdict == Verdict::Flash).all(|row| row.bytes.is_some());
    let size = match has_sizes {
        true => gb(chosen.bytes),
        false if chosen.bytes > 0.0 => format!("more than {}", gb(chosen.bytes)),
        false => "of unknown size".to_owned(),
    };
    let what = format!(
        "{} object{} ({size}{})",
        chosen.objects,
        if chosen.objects == 1 { "" } else { "s" },
        chosen.wait_share.map_or(String::new(), |share| format!(", {} of the waits", percent(share))),
    );
    let flash = question.flash.map_or("flash".to_owned(), |flash| format!("{} of flash", gb(flash)));
    match chosen.gain {
        Some(gain) if gain.high < WORTH => {
            format!("{what} on {flash} would bring no more than {}.", change(gain.high))
        }
        Some(gain) => format!(
            "{what} on {flash} would bring {} transactions ({}).",
            change(gain.expected),
            interval(gain)
        ),
        None => format!(
            "{what} belong{} on {flash}; how much that brings is not known without waits, the time between samples, and the number and the \
             busy share of the processors (--cores, --cpu).",
            if chosen.objects == 1 { "s" } else { "" }
        ),
    }
}

fn limits_next(chosen: &Chosen) -> Option<String> {
    let (busy, share) = (chosen.busy_then?, chosen.storage_share_then?);
    Some(match busy {
        busy if busy >= BUSY => format!("Then the processors limit: they would be {} busy.", percent(busy)),
        busy if share >= LIMITS => format!(
            "Then storage still limits: sessions would wait for what stays on disks and for flash {} of their time, with processors {} busy.",
            percent(share),
            percent(busy)
        ),
        busy => format!(
            "Then neither is full: processors would be {} busy and storage {} of the time; look for locks, the network or too few sessions.",
            percent(busy),
            percent(share)
        ),
    })
}
