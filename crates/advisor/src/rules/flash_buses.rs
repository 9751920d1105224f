//! Flash drives on several back-end buses outrun as many on one.

use super::{Case, Rule, Said, Subject, told, unknown};

pub(super) const RULE: Rule = Rule {
    id: "flash-buses",
    subject: Subject::Layout,
    threshold: "the flash drives are on fewer buses than there are",
    advice: "spread the flash drives over all buses",
    check,
};

fn check(case: &Case<'_>) -> Said {
    match (case.site.buses, case.site.flash_buses) {
        (Some(buses), Some(used)) => {
            told(used < buses, format!("flash drives are on {used:.0} of {buses:.0} buses"))
        }
        _ => unknown("the buses are not known (buses and flash_buses in --site)"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |used: Option<f64>| {
            testing::of_site(&RULE, &Site { buses: Some(4.0), flash_buses: used, ..Site::default() })
        };
        assert_eq!(
            (of(Some(1.0)), of(Some(4.0)), of(None)),
            (Outcome::Fires, Outcome::Silent, Outcome::Unknown)
        );
    }
}
