//! The array under the simulator, in short: what `cargo xtask sim` does at length.

use tier0_sim::crash_points::{Script, Theme};
use tier0_sim::sweep::sweep;
use tier0_sim::{Array, SimConfig, System, run};

/// Seeds that must be clean.
const SEEDS: std::ops::Range<u64> = 0..240;
/// Every so many-th crash point is tried: a prime, so that all manners of a power cut take their turns.
const CRASH_STRIDE: u64 = 61;

#[test]
fn the_array_survives_what_these_seeds_bring() {
    let one = |seed| run(&Array, &SimConfig::draw(seed, &Array));
    let report = sweep(SEEDS, 2, 3, one, |_| {});
    let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for reached in [
        "power cuts under load",
        "processes killed under load",
        "drives gone",
        "drives that hang",
        "drives that lose writes",
        "drives that misdirect writes",
        "drives missing at a start",
        "stale drives brought back",
        "blocks repaired by scrubs",
        "healed",
    ] {
        assert!(report.coverage.of(reached) > 0, "no run has reached \"{reached}\":\n{}", report.coverage);
    }
}

#[test]
fn the_array_survives_crashes_at_points_of_every_level_and_write_cache() {
    for (number, theme) in (0..).zip(Theme::all(&Array.abilities())) {
        let about = theme.describe();
        let script = Script::of_theme(&Array, number, &theme)
            .unwrap_or_else(|failure| panic!("{about} fails without a crash: {failure}"));
        assert!(script.changes > 50, "{about} changes drives {} times only", script.changes);
        let first = number % CRASH_STRIDE;
        let points = (script.points() - first).div_ceil(CRASH_STRIDE);
        let report =
            sweep(0..points, 2, 1, |point| script.crash(&Array, first + point * CRASH_STRIDE), |_| {});
        let failure = report.failures.first();
        assert!(failure.is_none(), "{about}: {}", failure.expect("there is one"));
    }
}
