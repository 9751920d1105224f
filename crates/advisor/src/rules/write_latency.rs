//! Writes of more than 20 ms are out of bounds for OLTP.

use super::latency::slower_than_oltp_takes;
use super::{Case, Rule, Said, Subject};

pub(super) const RULE: Rule = Rule {
    id: "write-latency",
    subject: Subject::Diagnosis,
    threshold: "the mean of the writes of a file, object or device is above 20 ms",
    advice: "these writes are too slow for OLTP: add drives or move the content to flash",
    check,
};

fn check(case: &Case<'_>) -> Said {
    slower_than_oltp_takes(&case.latencies(false), "writes")
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::{Counter, Counts, Kind};

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |ms: f64| {
            let object = testing::object("t", Kind::Data, 1.0, 100.0, 100.0, ms);
            testing::of(&RULE, &testing::period(vec![object], 0.5))
        };
        assert_eq!((of(25.0), of(19.0)), (Outcome::Fires, Outcome::Silent));
        let mut combined = testing::object("t", Kind::Data, 1.0, 100.0, 100.0, 50.0);
        combined.counts = Counts::default().with(Counter::StallMs, 1e5).with(Counter::Reads, 10.0);
        assert_eq!(testing::of(&RULE, &testing::period(vec![combined], 0.5)), Outcome::Unknown);
    }
}
