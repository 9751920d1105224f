//! tempdb has a quarter to one file for each processor.

use super::{Case, Rule, Said, Subject, told, unknown};
use crate::evidence::Kind;

pub(super) const RULE: Rule = Rule {
    id: "tempdb-files",
    subject: Subject::Layout,
    threshold: "there is less than a quarter of a file, or more than one, for each processor",
    advice: "give tempdb 0.25 to 1 file for each processor, all of one size",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let counted =
        case.data().filter(|object| object.kind == Kind::Temp && object.identity.path.is_some()).count();
    let files = case.site.tempdb_files.or((counted > 0).then_some(counted as f64));
    let cores = case.site.cores.or(case.evidence.host.cores);
    match (files, cores) {
        (Some(files), Some(cores)) if cores > 0.0 => told(
            !(0.25..=1.0).contains(&(files / cores)),
            format!("{files:.0} files for {cores:.0} processors"),
        ),
        _ => unknown("files of tempdb or processors are not known (tempdb_files and cores in --site)"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |files: Option<f64>| {
            testing::of_site(&RULE, &Site { tempdb_files: files, cores: Some(16.0), ..Site::default() })
        };
        assert_eq!(
            (of(Some(1.0)), of(Some(8.0)), of(None)),
            (Outcome::Fires, Outcome::Silent, Outcome::Unknown)
        );
    }
}
