//! Means over minutes hide spikes that hosts feel.

use super::{Case, Rule, Said, Subject, told, unknown};

/// Arrays average over five minutes and hide spikes; a minute is the longest that shows a checkpoint.
const LONGEST_S: f64 = 60.0;

pub(super) const RULE: Rule = Rule {
    id: "array-averages",
    subject: Subject::Measurement,
    threshold: "an interval of host or device figures is longer than 60 s",
    advice: "measure at the host in intervals of 10 s or less",
    check,
};

fn check(case: &Case<'_>) -> Said {
    match case.evidence.host.interval_s {
        Some(seconds) => told(seconds > LONGEST_S, format!("the longest interval has {seconds:.0} s")),
        None => unknown("no intervals with times were measured; give iostat -x -t, sar or Perfmon"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Evidence;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let mut evidence = Evidence::default();
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Unknown);
        evidence.host.interval_s = Some(300.0);
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Fires);
        evidence.host.interval_s = Some(10.0);
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Silent);
    }
}
