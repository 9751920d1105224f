//! Caches of flash volumes are off by default: lookups cost more than hits bring, and a write cache that slow disks clog delays flash.
//! Write cache on is right where the array is all flash with few applications, or for windows of bulk load and restore.

use super::{Case, Rule, Said, Subject, silent, told, unknown};

/// "Few applications".
const FEW: f64 = 3.0;

pub(super) const RULE: Rule = Rule {
    id: "flash-caches",
    subject: Subject::Cache,
    threshold: "the write cache is on for flash volumes of an array that is not all flash or has more than 3 \
                applications",
    advice: "switch the write cache off for flash volumes, except in windows of bulk load, restore or \
                sequential work; measure neighbours before and after",
    check,
};

fn check(case: &Case<'_>) -> Said {
    match case.site.flash_write_cache {
        None => unknown("say whether the write cache is on for flash volumes (flash_write_cache in --site)"),
        Some(false) => silent("the write cache of flash volumes is off"),
        Some(true) => {
            let (Some(all_flash), Some(applications)) = (case.site.all_flash, case.site.applications) else {
                return unknown(
                    "the write cache is on; say whether the array is all flash and how many applications it has (all_flash, applications in --site)",
                );
            };
            let fits = all_flash && applications <= FEW;
            told(
                !fits,
                format!(
                    "it is on; the array is {} and has {applications:.0} applications",
                    if all_flash { "all flash" } else { "not all flash" }
                ),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |on: Option<bool>, applications: f64| {
            testing::of_site(
                &RULE,
                &Site {
                    flash_write_cache: on,
                    all_flash: Some(true),
                    applications: Some(applications),
                    ..Site::default()
                },
            )
        };
        assert_eq!((of(Some(true), 9.0), of(Some(true), 2.0)), (Outcome::Fires, Outcome::Silent));
        assert_eq!((of(Some(false), 9.0), of(None, 9.0)), (Outcome::Silent, Outcome::Unknown));
    }
}
