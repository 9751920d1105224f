//! Counters since a start mix all loads: rules are about differences of two samples of one load.

use super::{Case, Rule, Said, Subject, told, unknown};

pub(super) const RULE: Rule = Rule {
    id: "one-sample",
    subject: Subject::Measurement,
    threshold: "the counters of objects are of one sample only",
    advice: "take a second sample after a period that covers the load's phases, and give both files",
    check,
};

fn check(case: &Case<'_>) -> Said {
    if case.evidence.objects.is_empty() {
        return unknown("no objects were measured; give file or table statistics");
    }
    let seconds = case
        .evidence
        .seconds
        .map_or("a time that is not known".to_owned(), |seconds| format!("{seconds:.0} s"));
    told(!case.evidence.is_period, format!("the counters are of {seconds}"))
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let mut evidence = testing::period(vec![testing::object("a", Kind::Data, 1.0, 1.0, 1.0, 1.0)], 0.5);
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Silent);
        evidence.is_period = false;
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Fires);
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
