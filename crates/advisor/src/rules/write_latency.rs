//! Writes of more than 20 ms are out of bounds for OLTP.

use super::{Case, Rule, Said, Subject, fires, names, silent, unknown};

/// The bound of published evaluations of arrays under OLTP.
const LIMIT_MS: f64 = 20.0;

pub(super) const RULE: Rule = Rule {
    id: "write-latency",
    subject: Subject::Diagnosis,
    threshold: "the mean of the writes of a file, object or device is above 20 ms",
    advice: "these writes are too slow for OLTP: add drives or move the content to flash",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let all = case.latencies(false);
    if all.is_empty() {
        return unknown(
            "writes were not timed on their own; give statistics with both stalls, iostat -x, or Perfmon",
        );
    }
    let slow: Vec<String> =
        all.iter().filter(|(_, ms)| *ms > LIMIT_MS).map(|(name, ms)| format!("{name} {ms:.1} ms")).collect();
    match slow.is_empty() {
        true => {
            let most = all.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
            silent(format!("the slowest mean is {most:.1} ms"))
        }
        false => fires(names(&slow)),
    }
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
