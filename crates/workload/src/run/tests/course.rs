//! How runs begin, go and end.

use std::cell::RefCell;
use std::rc::Rc;

use tier0_drive::{DriveHandle, RamMedium};
use tier0_units::{ByteCount, Nanos};
use tier0_world::{PayloadWidth, RealOptions, RealRuntime, VirtualRuntime};

use super::target::{Fault, Model, SECTORS, Service, run, run_on};
use crate::run::{LoadRun, RunError};
use crate::spec::{Arrival, LoadSpec, OpenLoop, Portion, RunLimits, SpecError, StreamSpec, VerifySpec};
use crate::stats::{EndedBy, Phase, SteadyCriterion};

const MS: Nanos = Nanos::from_millis(1);

fn load(limits: RunLimits) -> LoadSpec {
    LoadSpec::single(StreamSpec { arrival: Arrival::users(4), ..StreamSpec::default() }, limits)
}

fn fixed(world: &tier0_world::World) -> Model {
    Model::new(world, 2, Service::Fixed(MS))
}

#[test]
fn each_limit_ends_a_run_where_it_says() {
    let report = run(load(RunLimits::ios(1000)), fixed);
    assert_eq!((report.ended_by, report.all.ios), (EndedBy::Ios, 1000));
    let report = run(load(RunLimits::bytes(ByteCount::kib(80))), fixed);
    assert_eq!((report.ended_by, report.all.bytes), (EndedBy::Bytes, 80 << 10));
    let report = run(load(RunLimits::time(Nanos::from_secs(2))), fixed);
    assert_eq!((report.ended_by, report.measured_s), (EndedBy::Time, 2.0));
    // Two places of 1 ms: 2000 requests per second, of which the very last pair ends with the run.
    assert!((3998..=4000).contains(&report.all.ios), "{}", report.all.ios);
    assert!(report.is_clean());
}

#[test]
fn precision_ends_a_run_early_and_is_true() {
    let mut load =
        load(RunLimits { precision_percent: Some(2.0), ..RunLimits::time(Nanos::from_secs(10_000)) });
    load.streams[0].arrival = Arrival::OpenLoop(OpenLoop::at(1000.0));
    load.warm_up = Nanos::from_secs(5);
    let report = run(load, |world| Model::new(world, 2, Service::Exponential(MS)));
    assert_eq!(report.ended_by, EndedBy::Precision);
    // M/M/2 at 50 %: R = S / (1 - utilisation^2) = 1.333 ms. Two means are within 2 % with 95 % each; 4 % is
    // safe.
    assert!((report.all.latency_ns_mean / 1.3333e6 - 1.0).abs() < 0.04, "{}", report.all.latency_ns_mean);
    assert!(report.precision.read_percent.is_some_and(|percent| percent <= 2.0));
}

#[test]
fn the_warm_up_does_not_count_and_a_steady_state_is_awaited() {
    let slow_start = |load: LoadSpec| {
        run(load, |world| {
            let model = fixed(world);
            model.stall.set(Some((Nanos::ZERO, Nanos::from_secs(3))));
            model
        })
    };
    let limits = RunLimits::time(Nanos::from_secs(10));
    let cold = slow_start(load(limits));
    assert!(cold.all.latency_ns_max >= 3_000_000_000);
    let warm = slow_start(LoadSpec { warm_up: Nanos::from_secs(4), ..load(limits) });
    assert_eq!((warm.all.latency_ns_max, warm.warm_up_s, warm.measured_s), (2_000_000, 4.0, 10.0));
    let steady = SteadyCriterion::default();
    let settled = slow_start(LoadSpec { steady: Some(steady), ..load(limits) });
    let verdict = settled.steady.expect("it was asked for");
    assert!(verdict.reached, "{verdict:?}");
    // Silence until 3 s, then one second with the stalled requests in it, then five like one another.
    assert!((8.0..=9.0).contains(&verdict.waited_s), "{verdict:?}");
    assert_eq!(settled.all.latency_ns_max, 2_000_000);
    let impatient = SteadyCriterion { wait_max: Nanos::from_secs(2), ..steady };
    let unsettled = slow_start(LoadSpec { steady: Some(impatient), ..load(limits) });
    assert!(unsettled.steady.is_some_and(|verdict| !verdict.reached));
    assert!(unsettled.table().contains("no steady state after 2.00 s"));
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_does_not() {
    let report = |seed| {
        let mut load = LoadSpec { seed, ..load(RunLimits::time(Nanos::from_secs(5))) };
        load.streams[0].pattern = "zipf:0.9".parse().expect("a pattern");
        load.streams.push(StreamSpec {
            name: "arrivals".to_owned(),
            arrival: Arrival::OpenLoop(OpenLoop::at(500.0)),
            ..StreamSpec::default()
        });
        serde_json::to_string(&run(load, |world| Model::new(world, 2, Service::Exponential(MS))))
            .expect("it is JSON")
    };
    assert_eq!(report(1), report(1));
    let intervals =
        |report: String| report[report.find("intervals").expect("a report has them")..].to_owned();
    assert_ne!(intervals(report(1)), intervals(report(2)));
}

#[test]
fn other_requests_keep_the_hot_set_by_its_seed() {
    let asked = |seed, placement_seed| {
        let mut load = LoadSpec { seed, placement_seed, ..load(RunLimits::ios(500)) };
        load.streams[0].pattern = "hot-cold:100/10".parse().expect("a pattern");
        load.streams[0].scatter = Some(ByteCount::kib(16));
        let (report, target) = run_on(PayloadWidth::NONE, load, fixed).expect("it fits");
        (target.asked.borrow().clone(), report.read.map(|read| read.ios))
    };
    let (hot, reads) = asked(1, None);
    let (same_hot, other_reads) = asked(2, Some(1));
    assert_eq!(hot, same_hot);
    assert_ne!(reads, other_reads, "the second run asked the same as the first");
    assert_ne!(hot, asked(2, None).0);
}

#[test]
fn a_report_survives_json_and_fits_a_table() {
    let report = run(load(RunLimits::time(Nanos::from_secs(2))), fixed);
    let json = serde_json::to_string(&report).expect("it is JSON");
    assert_eq!(serde_json::from_str::<crate::stats::LoadReport>(&json).expect("it reads back"), report);
    let table = report.table();
    for part in ["read", "write", "all", "IOPS", "p99.99", "2.00 ms", "time limit reached"] {
        assert!(table.contains(part), "{part:?} is not in\n{table}");
    }
}

#[test]
fn progress_is_told_in_every_phase() {
    let runtime = VirtualRuntime::new(1, PayloadWidth::new(16));
    let mut load = load(RunLimits::time(Nanos::from_secs(4)));
    load.warm_up = Nanos::from_secs(2);
    load.verify = Some(VerifySpec { fresh: true, sweep: true });
    let target = Rc::new(Model::new(runtime.world(), 1, Service::Fixed(Nanos::from_millis(100))));
    let told = Rc::new(RefCell::new(Vec::new()));
    let tell = told.clone();
    let run = LoadRun::new(runtime.world(), target, load).expect("it fits");
    let run =
        run.on_progress(Nanos::from_millis(500), move |progress| tell.borrow_mut().push(progress.clone()));
    runtime.run(run.run());
    let told = told.borrow();
    let phases: Vec<Phase> = told.iter().map(|progress| progress.phase).collect();
    for phase in [Phase::WarmUp, Phase::Measuring, Phase::Sweeping] {
        assert!(phases.contains(&phase), "{phase:?} is not among {phases:?}");
    }
    let half = told.iter().find(|progress| progress.elapsed == Nanos::from_secs(4)).expect("told at 4 s");
    assert_eq!((half.done, half.left, half.iops), (Some(0.5), Some(Nanos::from_secs(2)), 10.0));
}

#[test]
fn a_stop_ends_it_with_what_was_measured_and_nothing_is_dropped() {
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let target = Rc::new(fixed(runtime.world()));
    let run = LoadRun::new(runtime.world(), target.clone(), load(RunLimits::ios(u64::MAX))).expect("it fits");
    let (stop, world) = (run.stop_handle(), runtime.world().clone());
    let handle = stop.clone();
    runtime
        .world()
        .spawn(async move {
            world.sleep(Nanos::from_millis(3500)).await;
            handle.stop();
        })
        .detach();
    let report = runtime.run(run.run());
    assert_eq!((report.ended_by, report.measured_s), (EndedBy::Stopped, 3.5));
    assert_eq!(report.unanswered, 4);
    assert_eq!(target.begun.get(), target.done.get(), "every request was waited for");
    assert_eq!(target.done.get(), report.all.ios + report.unanswered);
    stop.stop();
}

#[test]
fn a_rate_that_the_target_cannot_keep_up_with_ends_in_overload() {
    let mut load = load(RunLimits::time(Nanos::from_secs(1_000)));
    load.streams[0].arrival = Arrival::OpenLoop(OpenLoop { rate_iops: 1e6, outstanding_max: 8 });
    let report = run(load, fixed);
    assert_eq!(report.ended_by, EndedBy::Overload);
    assert!(report.unanswered > 1_000_000 && !report.is_clean());
}

#[test]
fn a_target_without_time_is_recognised() {
    let load = load(RunLimits::time(Nanos::from_secs(1)));
    let report = run(load, |world| Model::new(world, 1, Service::Fixed(Nanos::ZERO)));
    assert_eq!(report.ended_by, EndedBy::Standstill);
}

#[test]
fn failures_end_a_run_unless_they_are_allowed() {
    let failing = |errors_max| {
        let limits = RunLimits { errors_max, ..RunLimits::ios(500) };
        run(load(limits), |world| fixed(world).with_fault(Some(Fault::FailWrite(20))))
    };
    let strict = failing(0);
    assert_eq!((strict.ended_by, strict.errors.writes), (EndedBy::Errors, 1));
    let reason = strict.errors.first.expect("there was one");
    assert!(
        reason.starts_with("write of 16 sectors at sector ") && reason.ends_with("input/output error (EIO)"),
        "{reason}"
    );
    let tolerant = failing(1);
    assert_eq!((tolerant.ended_by, tolerant.all.ios, tolerant.errors.writes), (EndedBy::Ios, 500, 1));
}

#[test]
fn loads_that_do_not_fit_are_refused() {
    let refuse = |load: LoadSpec, block_sectors| {
        let target = |world: &_| fixed(world).with_block(block_sectors);
        run_on(PayloadWidth::NONE, load, target).map(|_| ()).expect_err("it does not fit")
    };
    let mut small = load(RunLimits::ios(1));
    small.streams[0].block = "512B".parse().expect("a size");
    let text = refuse(small, 8).to_string();
    assert!(text.contains("aligned to 512B") && text.contains("block size is 4KiB"), "{text}");
    let mut shifted = load(RunLimits::ios(1));
    shifted.streams[0].start = Portion::Bytes(ByteCount(512));
    assert!(matches!(refuse(shifted, 8), RunError::Misaligned { .. }));
    let mut verified = load(RunLimits::ios(1));
    verified.verify = Some(VerifySpec::default());
    assert_eq!(refuse(verified, 1), RunError::NoPayload(0));
    let mut endless = load(RunLimits::ios(1));
    endless.limits.ios = None;
    assert_eq!(refuse(endless, 1), RunError::Spec(SpecError::NoLimit));
}

#[test]
fn a_sequential_write_of_the_size_of_the_target_fills_it() {
    let mut load = load(RunLimits::bytes(ByteCount(SECTORS * 512)));
    let stream = &mut load.streams[0];
    (stream.pattern, stream.read_percent) = ("sequential".parse().expect("a pattern"), 0.0);
    stream.arrival = Arrival::queue_depth(4);
    load.verify = Some(VerifySpec { fresh: true, sweep: true });
    let report = run_on(PayloadWidth::new(16), load, fixed).expect("it fits").0;
    assert_eq!(report.all.ios, SECTORS / 16);
    assert_eq!(report.verify.expect("it was asked for").blocks_swept, SECTORS / 16);
}

#[test]
fn it_runs_in_real_time_too() {
    let runtime = RealRuntime::new(&RealOptions::default()).expect("a real world");
    let medium = RamMedium::new("ram", ByteCount::mib(8)).expect("memory");
    let target = Rc::new(DriveHandle::new(medium.open(runtime.world())));
    let mut load = load(RunLimits { ios: Some(20_000), ..RunLimits::time(Nanos::from_secs(60)) });
    load.verify = Some(VerifySpec { fresh: true, sweep: true });
    let run = LoadRun::new(runtime.world(), target, load).expect("it fits");
    let report = runtime.run(run.run());
    assert_eq!((report.ended_by, report.all.ios), (EndedBy::Ios, 20_000));
    assert!(report.is_clean() && report.measured_s > 0.0, "{}", report.table());
}
