//! After each change something else limits: look for it before.

use super::{Case, Rule, Said, Subject, percent, told, unknown};

/// From here on processors queue.
const NEAR: f64 = 0.80;

pub(super) const RULE: Rule = Rule {
    id: "next-limit",
    subject: Subject::Diagnosis,
    threshold: "with all data on flash the processors would be at least 80 % busy",
    advice: "plan for processors too; more flash than that brings nothing",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let Some(model) = &case.model else {
        return unknown(
            "the gain is not known: waits, the time, or the number and busy share of processors were not measured",
        );
    };
    let data: Vec<bool> = model.all.iter().map(|waits| !waits.is_log).collect();
    let gain = model.gain(&data).expected;
    let busy = model.busy_after(gain);
    told(
        busy >= NEAR,
        format!(
            "with all data on flash, processors would be {} busy instead of {}",
            percent(busy),
            percent(model.busy)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let slow = vec![testing::object("t", Kind::Data, 1.0, 20_000.0, 0.0, 60.0)];
        assert_eq!(testing::of(&RULE, &testing::period(slow.clone(), 0.5)), Outcome::Fires);
        let fast = vec![testing::object("t", Kind::Data, 1.0, 2_000.0, 0.0, 1.0)];
        assert_eq!(testing::of(&RULE, &testing::period(fast, 0.1)), Outcome::Silent);
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
