//! Flash of the size of the hot set; beyond it little is gained.

use super::{Case, Rule, Said, Subject, told, unknown};

/// Nearly all.
const MOST: f64 = 0.90;
/// Sizes of drives do not fit exactly.
const ROOM: f64 = 1.1;

pub(super) const RULE: Rule = Rule {
    id: "hot-set",
    subject: Subject::Placement,
    threshold: "the flash is more than 10 % larger than the objects that have 90 % of the waits (or of the I/Os, where waits were \
                not measured)",
    advice: "less flash would bring nearly the same",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let Some(flash) = case.flash else { return unknown("say how much flash there would be (--flash)") };
    let weight = |object: &crate::evidence::Object| object.counts.wait_ms().or_else(|| object.counts.ios());
    let mut sized: Vec<(f64, f64)> = case
        .data()
        .filter_map(|object| Some((weight(object)?, object.bytes?)))
        .filter(|(_, bytes)| *bytes > 0.0)
        .collect();
    let all: f64 = sized.iter().map(|(weight, _)| weight).sum();
    if all <= 0.0 {
        return unknown("sizes of objects with their waits or I/Os were not measured");
    }
    sized.sort_by(|a, b| (b.0 / b.1).total_cmp(&(a.0 / a.1)));
    let (mut hot, mut covered) = (0.0, 0.0);
    for (weight, bytes) in sized {
        if covered >= MOST * all {
            break;
        }
        covered += weight;
        hot += bytes;
    }
    told(
        flash > ROOM * hot,
        format!("90 % of it is in {:.1} GB; the flash has {:.0} GB", hot / 1e9, flash / 1e9),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let object = |name: &str, gb: f64, reads: f64| testing::object(name, Kind::Data, gb, reads, 0.0, 5.0);
        let evidence = testing::period(vec![object("a", 100.0, 950.0), object("b", 900.0, 50.0)], 0.5);
        let of = |flash: Option<f64>| testing::with(&RULE, &evidence, &Site::default(), flash);
        assert_eq!(
            (of(Some(200e9)), of(Some(50e9)), of(None)),
            (Outcome::Fires, Outcome::Silent, Outcome::Unknown)
        );
    }
}
