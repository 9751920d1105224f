//! A cache of reads needs no redundancy, since the data are safe on disks; a tier that takes writes does.

use super::{Case, Rule, Said, Subject, silent, told, unknown};

pub(super) const RULE: Rule = Rule {
    id: "flash-redundancy",
    subject: Subject::Layout,
    threshold: "flash that takes writes has no redundancy",
    advice: "mirror the flash of a write tier",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let Some(used_as) = &case.site.flash_use else {
        return unknown("the use of the flash is not known (flash_use = \"cache\" or \"tier\" in --site)");
    };
    if used_as == "cache" {
        return silent("the flash is a cache of reads");
    }
    match &case.site.flash_raid {
        None => unknown("the RAID level of the flash is not known (flash_raid in --site)"),
        Some(raid) => {
            told(raid == "raid0" || raid == "none", format!("the flash takes writes and is {raid}"))
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
        let of = |used_as: Option<&str>, raid: &str| {
            testing::of_site(
                &RULE,
                &Site {
                    flash_use: used_as.map(str::to_owned),
                    flash_raid: Some(raid.to_owned()),
                    ..Site::default()
                },
            )
        };
        assert_eq!((of(Some("tier"), "raid0"), of(Some("tier"), "raid1")), (Outcome::Fires, Outcome::Silent));
        assert_eq!((of(Some("cache"), "raid0"), of(None, "raid1")), (Outcome::Silent, Outcome::Unknown));
    }
}
