//! The column `ISStallPCT` of the known report of SQL Server holds milliseconds per I/O, not a percentage: on all published rows it
//! equals floor(IOStallMS ÷ (reads + writes)).

use super::{Case, Rule, Said, Subject, told, unknown};
use crate::evidence::Trap;

pub(super) const RULE: Rule = Rule {
    id: "stall-percent",
    subject: Subject::Measurement,
    threshold: "ISStallPCT equals floor(IOStallMS / (NumberReads + NumberWrites)) in at least nine of ten rows",
    advice: "read the column ISStallPCT as milliseconds per I/O; PerCentReads and PerCentWrites are rounded \
                down",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let traps = case.evidence.traps.iter().filter_map(|trap| match trap {
        Trap::StallPercent { equal, of } => Some((*equal, *of)),
        Trap::LogicalReads { .. } => None,
    });
    let (equal, of) = traps.fold((0, 0), |(equal, of), (more, rows)| (equal + more, of + rows));
    if of == 0 {
        return unknown("no file has the column ISStallPCT");
    }
    told(equal * 10 >= of * 9, format!("it equals milliseconds per I/O in {equal} of {of} rows"))
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
        evidence.traps.push(Trap::StallPercent { equal: 12, of: 12 });
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Fires);
        evidence.traps.push(Trap::StallPercent { equal: 0, of: 12 });
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Silent);
    }
}
