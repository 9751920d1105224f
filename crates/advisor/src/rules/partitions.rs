//! Parts of a busy table count too: where it does not fit, its busy partitions may. Partitioning the largest table beat spreading files
//! alone in a published evaluation.

use super::{Case, Rule, Said, Subject, fires, percent, silent, unknown};

/// Of the I/Os.
const HALF: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    id: "partitions",
    subject: Subject::Placement,
    threshold: "one object has at least half of the I/Os and does not fit on the flash",
    advice: "partition this table by what makes it hot (date, customer) and place its busy partitions",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let Some((object, share)) = case.busiest(0.0).into_iter().next() else {
        return unknown("no I/Os of objects were measured");
    };
    if share < HALF {
        return silent(format!(
            "the busiest object, {}, has {} of the I/Os",
            object.full_name(),
            percent(share)
        ));
    }
    match (object.bytes, case.flash) {
        (Some(bytes), Some(flash)) if bytes <= flash => {
            silent(format!("{} fits with its {:.0} GB", object.full_name(), bytes / 1e9))
        }
        (Some(bytes), Some(flash)) => fires(format!(
            "{} has {} of the I/Os and {:.0} GB; the flash has {:.0} GB",
            object.full_name(),
            percent(share),
            bytes / 1e9,
            flash / 1e9
        )),
        _ => unknown(format!(
            "{} has {} of the I/Os; its size or --flash is not known",
            object.full_name(),
            percent(share)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let evidence = testing::period(vec![testing::object("t", Kind::Table, 300.0, 610.0, 0.0, 5.0)], 0.5);
        let of = |flash: Option<f64>| testing::with(&RULE, &evidence, &Site::default(), flash);
        assert_eq!(
            (of(Some(200e9)), of(Some(400e9)), of(None)),
            (Outcome::Fires, Outcome::Silent, Outcome::Unknown)
        );
    }
}
