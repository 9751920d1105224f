//! Verification finds what a target does wrong.

use tier0_units::Nanos;
use tier0_world::PayloadWidth;

use super::target::{Fault, Model, Service, run_on};
use crate::spec::{Arrival, LoadSpec, RunLimits, StreamSpec, VerifySpec};
use crate::stats::{EndedBy, LoadReport};

/// Four users that write and read a mebibyte, with a fault at the 100th write.
fn verified(width: u16, fault: Option<Fault>, sweep: bool, limits: RunLimits) -> LoadReport {
    let stream = StreamSpec {
        arrival: Arrival::users(4),
        block: "8KiB:3 16KiB:1".parse().expect("a mix"),
        read_percent: 50.0,
        ..StreamSpec::default()
    };
    let load =
        LoadSpec { verify: Some(VerifySpec { fresh: true, sweep }), ..LoadSpec::single(stream, limits) };
    let target =
        |world: &_| Model::new(world, 3, Service::Exponential(Nanos::from_millis(1))).with_fault(fault);
    run_on(PayloadWidth::new(width), load, target).expect("it fits").0
}

#[test]
fn a_target_without_fault_passes_at_any_width() {
    for width in [16, 32, 512] {
        let report = verified(width, None, true, RunLimits::ios(20_000));
        let verify = report.verify.as_ref().expect("it was asked for");
        assert!(report.is_clean() && verify.sectors_wrong == 0, "{}", report.table());
        assert!(verify.sectors_checked > 10_000 * 16 && verify.blocks_swept == 128, "{verify:?}");
    }
}

#[test]
fn each_fault_is_found_by_the_next_read_and_named() {
    for width in [16, 512] {
        for (fault, words) in [
            (Fault::LoseWrite(100), ["lost write (stale data)", "lost write"]),
            (Fault::MisdirectWrite(100), ["misdirected I/O", "lost write"]),
            (Fault::FlipBit(100), ["corrupt data", "corrupt data"]),
        ] {
            let report = verified(width, Some(fault), false, RunLimits::ios(100_000));
            assert_eq!(report.ended_by, EndedBy::Mismatch);
            let first = report.verify.and_then(|verify| verify.first).expect("a mismatch has words");
            assert!(words.iter().any(|words| first.contains(words)), "{first}");
        }
    }
}

#[test]
fn the_sweep_finds_what_no_read_met() {
    let mut found = 0;
    for n in 1..=20 {
        let mut limits = RunLimits::ios(60);
        limits.errors_max = 0;
        let report = verified(16, Some(Fault::FlipBit(n)), true, limits);
        found += u32::from(!report.is_clean());
    }
    // A later write to the same block repairs it; with 30 writes to 128 blocks that is rare.
    assert!(found >= 15, "{found} of 20 faults were found");
}

#[test]
fn a_failed_write_leaves_both_outcomes_open() {
    let limits = RunLimits { errors_max: 1, ..RunLimits::ios(20_000) };
    let report = verified(16, Some(Fault::FailWrite(100)), true, limits);
    let verify = report.verify.expect("it was asked for");
    assert_eq!((report.errors.writes, verify.sectors_wrong, verify.first), (1, 0, None));
}
