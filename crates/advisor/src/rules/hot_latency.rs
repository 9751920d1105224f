//! Hot tables want less than 1 ms; spinning disks do not get below 2 ms.

use super::latency::slow;
use super::{Case, Rule, Said, Subject, unknown};

/// A share of the I/Os that makes an object hot.
const HOT: f64 = 0.10;
/// What hot tables want.
const WANTED_MS: f64 = 1.0;

pub(super) const RULE: Rule = Rule {
    id: "hot-latency",
    subject: Subject::Diagnosis,
    threshold: "data with at least 10 % of the I/Os takes 1 ms or more for an I/O; below 2 ms only flash and \
                memory go",
    advice: "put these objects on flash if their users wait for them",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let hot = case.busiest(HOT);
    let timed: Vec<_> = hot
        .iter()
        .filter_map(|(object, _)| {
            let ms = object.counts.ms_per_read().or_else(|| object.counts.ms_per_io())?;
            Some((object.full_name(), ms))
        })
        .collect();
    if timed.is_empty() {
        return unknown("no hot object was timed");
    }
    slow(&timed, |ms| ms >= WANTED_MS, || "all hot objects that were timed take less than 1 ms".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |ms: f64| {
            let object = testing::object("t", Kind::Data, 1.0, 100.0, 100.0, ms);
            testing::of(&RULE, &testing::period(vec![object], 0.5))
        };
        assert_eq!((of(5.0), of(0.4)), (Outcome::Fires, Outcome::Silent));
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
