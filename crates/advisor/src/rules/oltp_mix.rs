//! 70 % reads of random 8 KiB stand for most OLTP. A load far from that is sized by its own figures.

use super::{Case, Rule, Said, Subject, percent, told, unknown};

pub(super) const RULE: Rule = Rule {
    id: "oltp-mix",
    subject: Subject::Layout,
    threshold: "reads are less than 60 % or more than 80 % of the I/Os",
    advice: "size by the measured mix, not by a 70/30 profile",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let Some((reads, writes)) = case.mix().filter(|(reads, writes)| reads + writes > 0.0) else {
        return unknown("reads and writes were not counted");
    };
    let share = reads / (reads + writes);
    told(!(0.6..=0.8).contains(&share), format!("reads are {} of the I/Os", percent(share)))
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |reads: f64| {
            let object = testing::object("t", Kind::Data, 1.0, reads, 100.0 - reads, 5.0);
            testing::of(&RULE, &testing::period(vec![object], 0.5))
        };
        assert_eq!((of(95.0), of(70.0)), (Outcome::Fires, Outcome::Silent));
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
