//! Logical reads that are labelled physical: reads of the database's memory, of which no flash saves anything.

use super::{Case, Rule, Said, Subject, fires, names, silent, unknown};
use crate::evidence::{Counter, Format, Level, Trap};

pub(super) const RULE: Rule = Rule {
    id: "logical-reads",
    subject: Subject::Measurement,
    threshold: "an object has at least as many physical as logical reads, its reads took less than 10 us each, or \
                tables read more than all files",
    advice: "do not place data by these reads; export physical reads, or use file statistics",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let has = |format: Format| case.evidence.sources.iter().any(|source| source.format == format);
    if !has(Format::ObjectStatistics) {
        return unknown("no execution statistics of objects were given");
    }
    let doubted: Vec<String> = case
        .evidence
        .traps
        .iter()
        .filter_map(|trap| match trap {
            Trap::LogicalReads { object, because } => Some(format!("{object} ({because})")),
            Trap::StallPercent { .. } => None,
        })
        .collect();
    if !doubted.is_empty() {
        return fires(names(&doubted));
    }
    let reads = |level: Level| -> f64 {
        let objects = case.evidence.objects.iter().filter(|object| object.identity.level == level);
        objects.filter_map(|object| object.counts.get(Counter::Reads)).sum()
    };
    let (of_files, of_objects) = (reads(Level::File), reads(Level::Segment));
    if of_files > 0.0 && of_objects > of_files * 64.0 {
        // A read of a file has at most 64 pages.
        return fires(format!(
            "objects count {of_objects:.0} reads, files {of_files:.0} of at most 64 pages each"
        ));
    }
    silent("nothing speaks against the counts of physical reads")
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::{Evidence, Kind, Source};

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let mut evidence = Evidence::default();
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Unknown);
        evidence.sources.push(Source { file: "f".into(), format: Format::ObjectStatistics, samples: 1 });
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Silent);
        let mut table = testing::object("t", Kind::Table, 1.0, 1e6, 0.0, 1.0);
        table.identity.level = Level::Segment;
        evidence.objects = vec![table, testing::object("f", Kind::Data, 1.0, 10.0, 0.0, 1.0)];
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Fires);
        evidence.objects.clear();
        evidence.traps.push(Trap::LogicalReads { object: "t".into(), because: "x".into() });
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Fires);
    }
}
