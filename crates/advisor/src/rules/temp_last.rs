//! Temporary data go to flash only after all other hot data.

use super::{Case, Rule, Said, Subject, percent, told, unknown};
use crate::evidence::Kind;

/// Less is not worth a place.
const MUCH: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "temp-last",
    subject: Subject::Placement,
    threshold: "temporary data has at least 5 % of the I/Os",
    advice: "put temporary data on flash only if room is left",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let temp: Vec<_> = case.data().filter(|object| object.kind == Kind::Temp).collect();
    let Some(share) =
        temp.iter().map(|object| case.io_share(object)).sum::<Option<f64>>().filter(|_| !temp.is_empty())
    else {
        return unknown("no I/Os of temporary data were measured");
    };
    told(share >= MUCH, format!("temporary data has {} of the I/Os", percent(share)))
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |reads: f64| {
            let temp = testing::object("tempdb", Kind::Temp, 1.0, reads, 0.0, 5.0);
            let data = testing::object("t", Kind::Data, 1.0, 100.0, 0.0, 5.0);
            testing::of(&RULE, &testing::period(vec![temp, data], 0.5))
        };
        assert_eq!((of(50.0), of(1.0)), (Outcome::Fires, Outcome::Silent));
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
