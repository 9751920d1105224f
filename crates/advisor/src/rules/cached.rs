//! What memory serves already needs no flash.

use super::{Case, Rule, Said, Subject, told, unknown};

/// Of the page requests; administrators of OLTP call less than 95 % poor and 99 % good.
const OF_DATABASE: f64 = 0.99;
/// Of the reads; a low hit rate of the array is what makes a candidate.
const OF_ARRAY: f64 = 0.90;

pub(super) const RULE: Rule = Rule {
    id: "cached",
    subject: Subject::Placement,
    threshold: "the database's memory serves at least 99 % of the page requests, or the array's cache at least 90 \
                % of the reads",
    advice: "flash brings little to what is read from memory; look at the waits that are left",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let database = case.evidence.hit_share();
    let array = case.site.array_hit_share;
    if database.is_none() && array.is_none() {
        return unknown(
            "hit rates were not measured; give Perfmon, AWR or samples of \"tier0 advise collect\", or array_hit_share in --site",
        );
    }
    let words = |share: Option<f64>| {
        share.map_or("not measured".to_owned(), |share| format!("{:.2} %", share * 100.0))
    };
    let is_cached =
        database.is_some_and(|share| share >= OF_DATABASE) || array.is_some_and(|share| share >= OF_ARRAY);
    told(
        is_cached,
        format!("the database's memory serves {}, the array's cache {}", words(database), words(array)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Evidence;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |share: f64| {
            let mut evidence = Evidence::default();
            evidence.host.hit_share = Some(share);
            testing::of(&RULE, &evidence)
        };
        assert_eq!((of(0.999), of(0.9)), (Outcome::Fires, Outcome::Silent));
        assert_eq!(
            testing::of_site(&RULE, &Site { array_hit_share: Some(0.95), ..Site::default() }),
            Outcome::Fires
        );
        assert_eq!(testing::of(&RULE, &Evidence::default()), Outcome::Unknown);
    }
}
