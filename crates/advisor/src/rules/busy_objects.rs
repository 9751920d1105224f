//! Many reads and writes make a candidate; many and a long stall for each I/O, a first candidate.

use super::{Case, Rule, Said, Subject, fires, names, percent, silent, unknown};

/// "Many": a tenth of all.
const MANY: f64 = 0.10;
/// An I/O that takes less is one of memory, and would read as 0.0 ms.
const AT_ONCE_MS: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "busy-objects",
    subject: Subject::Placement,
    threshold: "an object has at least 10 % of the I/Os, which are not answered at once (0.05 ms); it is a first candidate if its I/Os also take at least as \
                long as the mean",
    advice: "look at the first candidates first",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let Some(_) = case.all_ios() else {
        return unknown("no I/Os of objects were measured; give file or table statistics");
    };
    let sum = |of: fn(&crate::evidence::Counts) -> Option<f64>| -> f64 {
        case.data().filter_map(|object| of(&object.counts)).sum()
    };
    let mean = sum(|counts| counts.wait_ms()) / sum(|counts| counts.ios()).max(1.0);
    let busiest = case.busiest(MANY);
    // What memory or flash answers at once is no candidate, however busy it is.
    let is_slow = |ms: f64| ms >= AT_ONCE_MS;
    let words: Vec<String> = busiest
        .iter()
        .filter(|(object, _)| object.counts.ms_per_io().is_none_or(is_slow))
        .map(|(object, share)| {
            let first = object.counts.ms_per_io().is_some_and(|ms| ms >= mean && ms > 0.0);
            let ms = object.counts.ms_per_io().map_or("not timed".to_owned(), |ms| format!("{ms:.1} ms"));
            format!(
                "{} {} of the I/Os, {ms}{}",
                object.full_name(),
                percent(*share),
                if first { ", first candidate" } else { "" }
            )
        })
        .collect();
    match words.is_empty() {
        true if !busiest.is_empty() => {
            silent("the busiest objects are answered at once, in less than 0.05 ms")
        }
        true => silent("no object has 10 % of the I/Os; they are spread over many"),
        false => fires(names(&words)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let object = |name: &str, reads: f64| testing::object(name, Kind::Data, 1.0, reads, 0.0, 5.0);
        let hot = testing::period(vec![object("a", 900.0), object("b", 100.0)], 0.5);
        assert_eq!(testing::of(&RULE, &hot), Outcome::Fires);
        let even = (0..20).map(|number| object(&number.to_string(), 10.0)).collect();
        assert_eq!(testing::of(&RULE, &testing::period(even, 0.5)), Outcome::Silent);
        let at_once = testing::object("a", Kind::Data, 1.0, 900.0, 0.0, 0.02);
        assert_eq!(testing::of(&RULE, &testing::period(vec![at_once], 0.5)), Outcome::Silent);
        assert_eq!(testing::of(&RULE, &Default::default()), Outcome::Unknown);
    }
}
