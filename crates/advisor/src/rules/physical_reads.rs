//! Tables and indexes with many physical reads are candidates.

use super::{Case, Rule, Said, Subject, fires, names, percent, silent, unknown};
use crate::evidence::{Counter, Kind, Level, Object};

/// "Many": a tenth of all.
const MANY: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    id: "physical-reads",
    subject: Subject::Placement,
    threshold: "a table or an index has at least 10 % of the physical reads",
    advice: "rank these tables and indexes, not whole files",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let segments = case.evidence.objects.iter().filter(|object| is_table_or_index(object));
    let reads: Vec<_> =
        segments.filter_map(|object| Some((object, object.counts.get(Counter::Reads)?))).collect();
    let all: f64 = reads.iter().map(|(_, reads)| reads).sum();
    if all <= 0.0 {
        return unknown(
            "no physical reads of tables were measured; give object statistics, AWR or samples of \"tier0 advise collect\"",
        );
    }
    let mut many: Vec<_> = reads.into_iter().filter(|(_, reads)| *reads >= MANY * all).collect();
    many.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> = many
        .iter()
        .map(|(object, reads)| format!("{} {}", object.full_name(), percent(reads / all)))
        .collect();
    match words.is_empty() {
        true => silent("no table and no index has 10 % of the physical reads"),
        false => fires(names(&words)),
    }
}

/// InnoDB has a file for each table.
fn is_table_or_index(object: &Object) -> bool {
    object.identity.level == Level::Segment || matches!(object.kind, Kind::Table | Kind::Partition)
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let segment = |name: &str, reads: f64| {
            let mut object = testing::object(name, Kind::Table, 1.0, reads, 0.0, 5.0);
            object.identity.level = Level::Segment;
            object
        };
        let hot = testing::period(vec![segment("a", 900.0), segment("b", 100.0)], 0.5);
        assert_eq!(testing::of(&RULE, &hot), Outcome::Fires);
        let even = (0..20).map(|number| segment(&number.to_string(), 10.0)).collect();
        assert_eq!(testing::of(&RULE, &testing::period(even, 0.5)), Outcome::Silent);
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
