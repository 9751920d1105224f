//! The log stays on write-cached disks: it is sequential, small and written once. A published move of the log to flash lost a little.

use super::{Case, Rule, Said, Subject, fires, silent, unknown};
use crate::evidence::{Counter, Kind, Object};

pub(super) const RULE: Rule = Rule {
    id: "log-stays",
    subject: Subject::Placement,
    threshold: "the log is among the measured objects",
    advice: "leave the log on write-cached disks",
    check,
};

fn check(case: &Case<'_>) -> Said {
    if case.objects.is_empty() {
        return unknown("no objects were measured");
    }
    let logs = case.objects.iter().filter(|object| object.kind == Kind::Log);
    let writes = |object: &Object| object.counts.get(Counter::Writes).unwrap_or(0.0);
    match logs.max_by(|a, b| writes(a).total_cmp(&writes(b))) {
        None => silent("the measured objects hold no log"),
        Some(log) => fires(format!(
            "{}: {} for a write",
            log.full_name(),
            log.counts
                .ms_per_write()
                .or_else(|| log.counts.ms_per_io())
                .map_or("not timed".to_owned(), |ms| format!("{ms:.1} ms"))
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let log = testing::object("log", Kind::Log, 1.0, 0.0, 100.0, 1.0);
        assert_eq!(testing::of(&RULE, &testing::period(vec![log], 0.5)), Outcome::Fires);
        let data = testing::object("t", Kind::Data, 1.0, 10.0, 0.0, 1.0);
        assert_eq!(testing::of(&RULE, &testing::period(vec![data], 0.5)), Outcome::Silent);
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
