//! The array under the simulator, in short: what `cargo xtask sim` does at length.

use std::ops::Range;

use tier0_sim::crash_points::{Script, Theme};
use tier0_sim::sweep::{run_caught, sweep};
use tier0_sim::{Array, Failure, Mixture, SimConfig, System};

/// Seeds that must be clean.
const SEEDS: Range<u64> = 0..48;
/// Seeds that draw their mixtures that must be clean.
const MIXTURE_SEEDS: Range<u64> = 0..32;
/// Seeds of growing pools that must be clean.
const GROWING_SEEDS: Range<u64> = 0..20;
/// Seeds of pools with two groups of sets that must be clean.
const GROUP_SEEDS: Range<u64> = 40..60;
/// Seeds of extents that move between groups that must be clean.
const MOVING_SEEDS: Range<u64> = 0..40;
/// Seeds of volumes that are cloned that must be clean.
const CLONE_SEEDS: Range<u64> = 0..40;
/// Seeds whose caches are switched that must be clean.
const CACHE_SEEDS: Range<u64> = 0..24;
/// Seeds of drives that forget that must be clean.
const FORGETFUL_SEEDS: Range<u64> = 0..12;
/// Seeds with mishaps that must be clean.
const MISHAP_SEEDS: Range<u64> = 0..24;
/// Seeds with incidents that must be clean.
const INCIDENT_SEEDS: Range<u64> = 0..24;
/// Seeds with ordeals that must be clean.
const ORDEAL_SEEDS: Range<u64> = 80..128;
/// Seeds of users who come through NBD that must be clean.
const NETWORK_SEEDS: Range<u64> = 0..20;
/// The seed whose growing pool is crashed: it restripes and makes and deletes volumes meanwhile.
const GROWING_SCRIPT: u64 = 8;
/// The script of a pool with a flash cache.
const FLASH_SCRIPT: u64 = 1;
/// Every so many-th of its crash points is tried: a prime, too.
const FLASH_STRIDE: u64 = 997;
/// Every so many-th crash point is tried: a prime, so that all manners of a power cut take their turns.
const CRASH_STRIDE: u64 = 421;

/// Sweeps these seeds of the swarm, changed: all are clean, and each of these things happens.
fn survives(seeds: Range<u64>, change: impl Fn(SimConfig) -> SimConfig + Sync, things: &[&str]) {
    all_survive(seeds, |seed| change(SimConfig::draw(seed, &Array)), things);
}

/// Sweeps seeds that have these options: all are clean, and each of these things happens.
fn all_survive(seeds: Range<u64>, config_of: impl Fn(u64) -> SimConfig + Sync, things: &[&str]) {
    let report = sweep(seeds, 2, 3, |seed| run_caught(&Array, &config_of(seed)), |_| {});
    let failures: Vec<String> = report.failures.iter().map(Failure::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for reached in things {
        assert!(report.coverage.of(reached) > 0, "no run has reached \"{reached}\":\n{}", report.coverage);
    }
}

#[test]
fn the_array_survives_what_these_seeds_bring() {
    let things = [
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
    ];
    survives(SEEDS, |config| config, &things);
}

/// Each seed draws the kinds of trouble that it brings together, as a sweep of `cargo xtask sim` has it.
#[test]
fn the_array_survives_the_mixtures_that_seeds_draw() {
    let things = [
        "power cuts under load",
        "drives gone",
        "pools grown",
        "volumes cloned under load",
        "caches of volumes switched",
        "array: reads from flash",
        "mishaps: drives without power for a while",
        "drives pulled and taken back",
        "last resorts",
        "network: connections made anew",
        "healed",
    ];
    all_survive(MIXTURE_SEEDS, |seed| Mixture::draw(seed).config(seed, &Array), &things);
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

#[test]
fn drives_may_forget() {
    let things = ["drives struck by rot", "drives gone", "healed"];
    survives(FORGETFUL_SEEDS, SimConfig::forgetful, &things);
}

/// Any number of drives fail, hang or lose their power for a while; starts with too few are refused without a write.
#[test]
fn mishaps_beyond_redundancy_lose_nothing() {
    let things = [
        "mishaps: errors that pass",
        "mishaps: drives without power for a while",
        "mishaps: drives that hang for a while",
        "requests refused in mishaps",
        "starts refused with stale drives alone",
        "starts refused with one drive",
        "healed",
    ];
    survives(MISHAP_SEEDS, SimConfig::mishaps, &things);
}

/// Drives are pulled and taken back while hosts work, or put back to older images between two lives; the process stands
/// still.
#[test]
fn what_operators_and_machines_do_to_healthy_drives_loses_nothing() {
    let things = [
        "drives pulled and taken back",
        "drives put back to an older image",
        "processes that stand still",
        "healed",
    ];
    survives(INCIDENT_SEEDS, SimConfig::incidents, &things);
}

#[test]
fn growing_pools_survive_what_these_seeds_bring() {
    let things = [
        "pools grown",
        "volumes created under load",
        "volumes deleted under load",
        "power cuts under load",
        "healed",
    ];
    survives(GROWING_SEEDS, SimConfig::growing, &things);
}

/// Spares, growth and balance stay within a group, whatever happens to the drives of both.
#[test]
fn pools_with_two_groups_of_sets_survive_what_these_seeds_bring() {
    let things =
        ["pools grown", "drives gone", "power cuts under load", "blocks repaired by scrubs", "healed"];
    survives(GROUP_SEEDS, |config| config.grouped(&Array).growing(), &things);
}

/// Extents move between groups of other RAID levels and lanes, whatever happens.
#[test]
fn extents_that_move_between_groups_survive_what_these_seeds_bring() {
    let things = ["array: extents moved to another group", "power cuts under load", "discards", "healed"];
    survives(MOVING_SEEDS, |config| config.grouped(&Array).moving(), &things);
}

#[test]
fn volumes_that_are_cloned_survive_what_these_seeds_bring() {
    let things = [
        "volumes cloned under load",
        "volumes that come and go, verified",
        "writes refused for want of space",
        "power cuts under load",
        "drives gone",
        "healed",
    ];
    survives(CLONE_SEEDS, SimConfig::cloned, &things);
}

#[test]
fn caches_that_are_switched_under_load_survive_what_these_seeds_bring() {
    let things = [
        "caches of volumes switched",
        "caches of the pool switched",
        "power cuts under load",
        "drives gone",
        "healed",
    ];
    survives(CACHE_SEEDS, SimConfig::switching, &things);
}

#[test]
fn a_growing_pool_survives_crashes_at_points_of_a_script() {
    let script = Script::growing(&Array, GROWING_SCRIPT)
        .unwrap_or_else(|failure| panic!("it fails without a crash: {failure}"));
    assert!(script.changes > 50, "drives are changed {} times only", script.changes);
    let points = script.points().div_ceil(CRASH_STRIDE);
    let report = sweep(0..points, 2, 1, |point| script.crash(&Array, point * CRASH_STRIDE), |_| {});
    let failure = report.failures.first();
    assert!(failure.is_none(), "{}", failure.expect("there is one"));
    assert!(report.coverage.of("pools grown") > 0, "no pool has grown:\n{}", report.coverage);
}

#[test]
fn a_flash_cache_survives_crashes_at_points_of_a_script() {
    let script = Script::flash_cached(&Array, FLASH_SCRIPT)
        .unwrap_or_else(|failure| panic!("it fails without a crash: {failure}"));
    let points = script.points().div_ceil(FLASH_STRIDE);
    let report = sweep(0..points, 2, 1, |point| script.crash(&Array, point * FLASH_STRIDE), |_| {});
    let failure = report.failures.first();
    assert!(failure.is_none(), "{}", failure.expect("there is one"));
    for thing in ["array: reads from flash", "array: lines found on flash at a start"] {
        assert!(report.coverage.of(thing) > 0, "no {thing}:\n{}", report.coverage);
    }
}

/// Users come through the NBD server, over connections that die at any byte.
#[test]
fn what_the_server_acknowledged_is_there_however_connections_die() {
    let things = [
        "network: connections made anew",
        "network: requests asked again",
        "writes lost with their connection",
        "power cuts under load",
        "healed",
    ];
    survives(NETWORK_SEEDS, SimConfig::networked, &things);
}

#[test]
fn the_array_survives_ordeals() {
    let things = [
        "creations cut",
        "creations cut that open",
        "drives that lie about flushes",
        "last resorts",
        "reads verified after a last resort",
        "interrupted: a pool grew",
    ];
    survives(ORDEAL_SEEDS, SimConfig::ordeals, &things);
}
