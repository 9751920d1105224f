//! A full array uses inner tracks, seeks further and has no room to work. Size for 60 to 70 % full and never from figures taken at 40 %.

use super::{Case, Rule, Said, Subject, percent, told, unknown};

/// Over it, add a member.
const FULL: f64 = 0.85;
/// What stays free of a pool.
const FREE: f64 = 0.05;
/// What stays free of each member, bytes.
const FREE_OF_MEMBER: f64 = 100e9;

pub(super) const RULE: Rule = Rule {
    id: "fill",
    subject: Subject::Layout,
    threshold: "more than 85 % of the pool is used, or less is free than the smaller of 5 % and 100 GB for each \
                member",
    advice: "add a member or drives; size for 60 to 70 % full",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let (Some(capacity), Some(used)) = (case.site.capacity, case.site.used) else {
        return unknown("space is not known (capacity and used in --site)");
    };
    let (capacity, used) = (capacity.0 as f64, used.0 as f64);
    if capacity <= 0.0 {
        return unknown("the capacity in --site is 0; give the pool's");
    }
    let reserve = (FREE * capacity).min(FREE_OF_MEMBER * case.site.members.unwrap_or(1.0));
    let fires = used > FULL * capacity || capacity - used < reserve;
    told(
        fires,
        format!(
            "{} of {:.0} GB are used; {:.0} GB are to stay free",
            percent(used / capacity),
            capacity / 1e9,
            reserve / 1e9
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |used: u64| {
            testing::of_site(
                &RULE,
                &Site {
                    capacity: Some(tier0_units::ByteCount(1000)),
                    used: Some(tier0_units::ByteCount(used)),
                    ..Site::default()
                },
            )
        };
        assert_eq!((of(900), of(650)), (Outcome::Fires, Outcome::Silent));
        assert_eq!(testing::of_site(&RULE, &Site::default()), Outcome::Unknown);
    }
}
