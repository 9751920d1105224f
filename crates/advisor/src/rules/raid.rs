//! RAID 10 for OLTP: it beats RAID 50 and RAID 6 where small writes matter.

use super::{Case, Rule, Said, Subject, percent, silent, told, unknown};

/// Fewer writes hardly cost.
const MATTER: f64 = 0.10;

pub(super) const RULE: Rule = Rule {
    id: "raid",
    subject: Subject::Layout,
    threshold: "the disks are not RAID 1 or 10, and at least 10 % of the I/Os are writes",
    advice: "plan RAID 10 for the disks of OLTP data",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let Some(raid) = &case.site.raid else { return unknown("the RAID level is not known (raid in --site)") };
    if ["raid1", "raid10"].contains(&raid.as_str()) {
        return silent(format!("the disks are {raid}"));
    }
    let Some((reads, writes)) = case.mix().filter(|(reads, writes)| reads + writes > 0.0) else {
        return unknown(format!("the disks are {raid}; writes were not counted"));
    };
    let share = writes / (reads + writes);
    told(share >= MATTER, format!("the disks are {raid}; {} of the I/Os are writes", percent(share)))
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Kind;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |raid: Option<&str>, writes: f64| {
            let object = testing::object("t", Kind::Data, 1.0, 100.0 - writes, writes, 5.0);
            let site = Site { raid: raid.map(str::to_owned), ..Site::default() };
            testing::with(&RULE, &testing::period(vec![object], 0.5), &site, None)
        };
        assert_eq!((of(Some("raid6"), 30.0), of(Some("raid6"), 2.0)), (Outcome::Fires, Outcome::Silent));
        assert_eq!((of(Some("raid10"), 30.0), of(None, 30.0)), (Outcome::Silent, Outcome::Unknown));
    }
}
