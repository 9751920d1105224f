//! Small tables that are read much gain most per GB. In a published evaluation one with less than 3 % of the data gained 17 %.

use super::{Case, Rule, Said, Subject, fires, names, percent, silent, unknown};
use crate::evidence::Counter;

/// "Small", of the data.
const SMALL: f64 = 0.03;
/// "Much", of the I/Os.
const MANY: f64 = 0.10;
/// "Read", of its own I/Os.
const READ: f64 = 0.90;

pub(super) const RULE: Rule = Rule {
    id: "small-read-table",
    subject: Subject::Placement,
    threshold: "an object has at most 3 % of the data, at least 10 % of the I/Os, and at least 90 % of them are \
                reads",
    advice: "put these objects on flash first",
    check,
};

fn check(case: &Case<'_>) -> Said {
    if case.data().all(|object| case.size_share(object).is_none() || case.io_share(object).is_none()) {
        return unknown("sizes or I/Os of objects were not measured");
    }
    let found: Vec<String> = case
        .busiest(MANY)
        .into_iter()
        .filter(|(object, _)| {
            let reads = object.counts.get(Counter::Reads).zip(object.counts.ios());
            let is_read = reads.is_some_and(|(reads, ios)| reads >= READ * ios);
            is_read && case.size_share(object).is_some_and(|size| size <= SMALL)
        })
        .map(|(object, share)| {
            let size = case.size_share(object).unwrap_or(0.0);
            format!(
                "{}: {:.1} % of the data, {} of the I/Os",
                object.full_name(),
                size * 100.0,
                percent(share)
            )
        })
        .collect();
    match found.is_empty() {
        true => silent("no small object has a tenth of the I/Os"),
        false => fires(names(&found)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let object =
            |name: &str, gb: f64, reads: f64| testing::object(name, Kind::Table, gb, reads, 0.0, 5.0);
        let small = testing::period(vec![object("a", 2.0, 500.0), object("b", 98.0, 500.0)], 0.5);
        assert_eq!(testing::of(&RULE, &small), Outcome::Fires);
        let large = testing::period(vec![object("a", 50.0, 500.0), object("b", 50.0, 500.0)], 0.5);
        assert_eq!(testing::of(&RULE, &large), Outcome::Silent);
        let mut unsized_one = object("a", 1.0, 10.0);
        unsized_one.bytes = None;
        assert_eq!(testing::of(&RULE, &testing::period(vec![unsized_one], 0.5)), Outcome::Unknown);
    }
}
