//! Large sequential scans are not worth flash: disks are good at them. Flash is for random I/O of at most 16 KiB.

use super::{Case, Rule, Said, Subject, fires, names, silent, unknown};

/// Others do not matter.
const MUCH: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "sequential",
    subject: Subject::Placement,
    threshold: "an object with at least 5 % of the I/Os has a mean read above 32 KiB, or scans read at least 99 % \
                of its rows",
    advice: "leave scanned objects on disks",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let judged: Vec<_> = case
        .busiest(MUCH)
        .into_iter()
        .filter_map(|(object, _)| Some((object, object.is_sequential()?)))
        .collect();
    if judged.is_empty() {
        return unknown("neither bytes nor scans of busy objects were measured");
    }
    let scanned: Vec<String> = judged
        .iter()
        .filter(|(_, scanned)| *scanned)
        .map(|(object, _)| {
            let size =
                object.counts.bytes_per_read().map(|bytes| format!(" (mean read {:.0} KiB)", bytes / 1024.0));
            format!("{}{}", object.full_name(), size.unwrap_or_default())
        })
        .collect();
    match scanned.is_empty() {
        true => silent("all busy objects are read in small pieces"),
        false => fires(names(&scanned)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::{Counter, Kind};

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |bytes: f64| {
            let mut object = testing::object("t", Kind::Data, 1.0, 100.0, 0.0, 5.0);
            object.counts.set(Counter::ReadBytes, Some(100.0 * bytes));
            testing::of(&RULE, &testing::period(vec![object], 0.5))
        };
        assert_eq!((of(262_144.0), of(8192.0)), (Outcome::Fires, Outcome::Silent));
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
