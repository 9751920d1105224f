//! The reference studies against what was published, with only their calibration figures fitted.

use tier0_lab::record::{Role, Verdict};
use tier0_lab::run::{RunOptions, StudyOutcome, run};
use tier0_lab::study::Study;

fn outcome(text: &str) -> StudyOutcome {
    let study = Study::parse(text, "study").expect("the study is sound");
    let options = RunOptions { curves: false, ..RunOptions::default() };
    run(&study, &options, &|_| {}).expect("the study can be run")
}

fn assert_within(outcome: &StudyOutcome, compared: usize) {
    let judged =
        outcome.records.iter().map(|judged| (judged, judged.record.judge(judged.tolerance.as_ref())));
    let judged: Vec<_> = judged.filter(|(_, verdict)| *verdict != Verdict::Open).collect();
    assert_eq!(judged.len(), compared);
    for (judged, verdict) in judged {
        assert_eq!(verdict, Verdict::Within, "{judged:?}");
    }
    for fitted in &outcome.fit.as_ref().expect("something was fitted").parameters {
        assert!(!fitted.at_bound, "{fitted:?}");
    }
}

#[test]
fn cx4_oracle_is_within_its_tolerances() {
    assert_within(&outcome(include_str!("../../../studies/cx4-oracle.toml")), 5);
}

/// The grid's points of which nothing is published are left out: the whole takes half a minute.
#[test]
fn ps6100xv_is_within_its_tolerances() {
    let unpublished = ["16k", "32k", "r100", "r80", "r60"];
    let whole = include_str!("../../../studies/ps6100xv.toml");
    let kept = whole
        .lines()
        .filter(|line| !unpublished.iter().any(|id| line.starts_with(&format!("  {{ id = \"{id}\""))));
    let outcome = outcome(&kept.collect::<Vec<_>>().join("\n"));
    assert_within(&outcome, 7);
    let calibration = outcome.records.iter().filter(|judged| judged.record.role == Role::Calibration);
    assert_eq!(calibration.count(), 1);
    let grid = outcome.study.grid.as_ref().expect("it has a grid");
    assert_eq!(grid.points.len(), 6);
}
