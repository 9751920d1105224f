//! A host has redundant paths to its data.

use super::{Case, Rule, Said, Subject, told, unknown};

pub(super) const RULE: Rule = Rule {
    id: "paths",
    subject: Subject::Layout,
    threshold: "the host has fewer than 2 paths",
    advice: "add a second path over another port and switch",
    check,
};

fn check(case: &Case<'_>) -> Said {
    match case.site.paths {
        Some(paths) => told(paths < 2.0, format!("the host has {paths:.0} path(s)")),
        None => unknown("the paths are not known (paths in --site)"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |paths: Option<f64>| testing::of_site(&RULE, &Site { paths, ..Site::default() });
        assert_eq!(
            (of(Some(1.0)), of(Some(4.0)), of(None)),
            (Outcome::Fires, Outcome::Silent, Outcome::Unknown)
        );
    }
}
