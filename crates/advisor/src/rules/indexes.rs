//! Non-clustered indexes that are heavily used and small come after the busiest tables. In a published evaluation 12 % of the data with
//! 8 % of the I/Os gained 7 %. A clustered index is its table.

use super::{Case, Rule, Said, Subject, fires, names, percent, silent, unknown};
use crate::evidence::{Kind, Level, Object};

/// "Heavily used", of the I/Os.
const HEAVY: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "indexes",
    subject: Subject::Placement,
    threshold: "a non-clustered index has at least 5 % of the I/Os",
    advice: "consider these indexes after the busiest tables",
    check,
};

fn check(case: &Case<'_>) -> Said {
    // InnoDB's indexes lie in the file of their table.
    let tells_apart = |object: &Object| {
        object.kind == Kind::Index || object.kind == Kind::Table && object.identity.level == Level::Segment
    };
    if !case.data().any(tells_apart) {
        return unknown(
            "tables and indexes were not told apart; give object statistics, AWR or samples of PostgreSQL",
        );
    }
    let used: Vec<String> = case
        .busiest(HEAVY)
        .into_iter()
        .filter(|(object, _)| object.kind == Kind::Index)
        .map(|(object, share)| format!("{} {}", object.full_name(), percent(share)))
        .collect();
    match used.is_empty() {
        true => silent("no index has 5 % of the I/Os"),
        false => fires(names(&used)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let object = |name: &str, kind: Kind, reads: f64| testing::object(name, kind, 1.0, reads, 0.0, 5.0);
        let used = testing::period(vec![object("t", Kind::Table, 92.0), object("i", Kind::Index, 8.0)], 0.5);
        assert_eq!(testing::of(&RULE, &used), Outcome::Fires);
        let unused =
            testing::period(vec![object("t", Kind::Table, 99.0), object("i", Kind::Index, 1.0)], 0.5);
        assert_eq!(testing::of(&RULE, &unused), Outcome::Silent);
        for kind in [Kind::Data, Kind::Table] {
            let files = testing::period(vec![object("f", kind, 99.0)], 0.5);
            assert_eq!(testing::of(&RULE, &files), Outcome::Unknown);
        }
    }
}
