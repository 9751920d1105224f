//! The simulator proved on a small array: correct, it passes; with any of twelve bugs, it is caught.

use crate::mirror::{Bug, Mirror};
use tier0_sim::crash_points::Script;
use tier0_sim::sweep::{catching, sweep};
use tier0_sim::{SimConfig, run};
use tier0_units::WriteCache;

/// Seeds within which each bug must be found.
const SEEDS_MAX: u64 = 400;

fn run_seed(bug: Option<Bug>, seed: u64) -> Result<tier0_sim::RunReport, Box<tier0_sim::Failure>> {
    let system = Mirror(bug);
    run(&system, &SimConfig::draw(seed, &system))
}

#[test]
fn the_correct_array_survives_everything_and_everything_is_reached() {
    let report = sweep(0..300, 2, 1, |seed| run_seed(None, seed), |_| {});
    let failure = report.failures.first();
    assert!(failure.is_none(), "{}\n{}", failure.unwrap(), failure.unwrap().events.join("\n"));
    for reached in [
        "power cuts under load",
        "processes killed under load",
        "drives struck by rot",
        "drives with unreadable sectors",
        "drives that lose writes",
        "drives that misdirect writes",
        "drives that fail flushes",
        "drives that hang",
        "drives gone",
        "drives replaced",
        "drives missing at a start",
        "stale drives brought back",
        "blocks repaired by scrubs",
        "healed",
    ] {
        assert!(report.coverage.of(reached) > 0, "no run has reached \"{reached}\":\n{}", report.coverage);
    }
}

#[test]
fn a_seed_reproduces_a_run_event_by_event() {
    for seed in 0..20 {
        let (one, other) = (run_seed(None, seed).expect("clean"), run_seed(None, seed).expect("clean"));
        assert_eq!(one, other, "seed {seed}");
    }
    assert_ne!(run_seed(None, 1).expect("clean").hash, run_seed(None, 2).expect("clean").hash);
}

#[test]
fn each_planted_bug_is_found() {
    for bug in Bug::ALL {
        let report = sweep(0..SEEDS_MAX, 2, 1, |seed| run_seed(Some(bug), seed), |_| {});
        let failure = report.failures.first();
        let failure = failure.unwrap_or_else(|| panic!("{bug:?} is not found in {SEEDS_MAX} seeds"));
        println!("{bug:?}: {failure}");
        let again = catching(failure.seed, || run_seed(Some(bug), failure.seed));
        assert_eq!(again.expect_err("it fails again").sentence, failure.sentence, "{bug:?} is reproduced");
    }
}

#[test]
fn crash_points_pass_the_correct_array_and_catch_a_skipped_flush() {
    let points = |bug: Option<Bug>| {
        let system = Mirror(bug);
        let mut config = SimConfig::draw(5, &system);
        config.load.operations = 6;
        config.array.volumes.iter_mut().for_each(|volume| volume.write_cache = WriteCache::Durable);
        config.faults.per_life = 0.0;
        config.faults.missing_share = 0.0;
        let script = Script::new(&system, config)?;
        assert!(script.changes > 10, "the script changes something: {}", script.changes);
        (0..script.points()).try_for_each(|point| script.crash(&system, point).map(|_| ()))
    };
    assert_eq!(points(None), Ok(()));
    let failure = points(Some(Bug::SkipFlush)).expect_err("a crash finds it");
    assert!(failure.sentence.contains("crashed at change"), "{failure}");
}
