//! Processors at 100 %: storage is no longer the bottleneck.

use super::{Case, Rule, Said, Subject, percent, told, unknown};

/// "100 %" as a mean over a period: sampling and pauses take a few per cent.
const FULL: f64 = 0.95;

pub(super) const RULE: Rule = Rule {
    id: "cpu-limits",
    subject: Subject::Diagnosis,
    threshold: "the host's processors are at least 95 % busy",
    advice: "look at queries and processors first; flash brings little now",
    check,
};

fn check(case: &Case<'_>) -> Said {
    match case.evidence.host.busy {
        Some(busy) => told(busy >= FULL, format!("processors are {} busy", percent(busy))),
        None => {
            unknown("the processors were not measured; give iostat, sar, Perfmon or AWR of the same time")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Evidence;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |busy: f64| testing::of(&RULE, &testing::period(Vec::new(), busy));
        assert_eq!((of(0.97), of(0.5)), (Outcome::Fires, Outcome::Silent));
        assert_eq!(testing::of(&RULE, &Evidence::default()), Outcome::Unknown);
    }
}
