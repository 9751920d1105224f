//! What queueing theory knows in advance.

use tier0_units::Nanos;

use super::target::{Model, Service, run};
use crate::spec::{Arrival, ClosedLoop, LoadSpec, OpenLoop, RunLimits, StreamSpec, ThinkTime};
use crate::stats::LoadReport;

const MS: Nanos = Nanos::from_millis(1);

fn load(arrival: Arrival, limits: RunLimits) -> LoadSpec {
    let stream = StreamSpec { arrival, read_percent: 100.0, ..StreamSpec::default() };
    LoadSpec { warm_up: Nanos::from_secs(5), ..LoadSpec::single(stream, limits) }
}

fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{what} is {found}, not {expected}");
}

fn closed(users: u32, think_time: ThinkTime, servers: usize, service: Service) -> LoadReport {
    let arrival = Arrival::ClosedLoop(ClosedLoop { users, queue_depth: 2, think_time });
    run(load(arrival, RunLimits::time(Nanos::from_secs(100))), |world| Model::new(world, servers, service))
}

#[test]
fn a_saturated_server_works_at_its_rate_and_everyone_waits_their_turn() {
    // 16 places, one server of 1 ms: X = 1000/s and R = N S = 16 ms, every time.
    let report = closed(8, ThinkTime::None, 1, Service::Fixed(MS));
    assert_near(report.all.iops, 1000.0, 1e-4, "throughput");
    assert_near(report.all.latency_ns_mean, 16e6, 1e-4, "response time");
    assert_eq!(report.all.latency_ns_p50, report.all.latency_ns_p99_99);
}

#[test]
fn users_without_a_queue_ask_once_per_cycle() {
    // Places enough for all: X = N / (R + Z) with R = S.
    for think_time in [ThinkTime::Fixed(Nanos::from_millis(9)), ThinkTime::Exponential(Nanos::from_millis(9))]
    {
        let report = closed(10, think_time, 20, Service::Fixed(MS));
        assert_near(report.all.iops, 20.0 / 0.010, 0.01, "throughput");
        assert_near(report.all.latency_ns_mean, 1e6, 1e-9, "response time");
    }
}

#[test]
fn a_queue_with_thinking_users_keeps_littles_law() {
    // The interactive response time law, R = N / X - Z, holds for any queue.
    for users in [3, 10, 30] {
        let think_time = ThinkTime::Exponential(Nanos::from_millis(20));
        let report = closed(users, think_time, 1, Service::Exponential(MS));
        let response_ns = f64::from(2 * users) / report.all.iops * 1e9 - 20e6;
        assert_near(report.all.latency_ns_mean + 20e6, response_ns + 20e6, 0.01, "cycle time");
    }
}

#[test]
fn a_closed_queue_has_the_throughput_of_the_machine_repairman() {
    // M/M/1//N: X = (1 - p0) / S with 1 / p0 = sum over k of N! / (N - k)! (S / Z)^k.
    let report = closed(10, ThinkTime::Exponential(Nanos::from_millis(20)), 1, Service::Exponential(MS));
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 0..20 {
        term *= f64::from(20 - k) / 20.0;
        sum += term;
    }
    assert_near(report.all.iops, (1.0 - 1.0 / sum) * 1000.0, 0.01, "throughput");
}

#[test]
fn an_open_queue_waits_as_pollaczek_and_khinchine_say() {
    for utilisation in [0.3, 0.5, 0.8] {
        let arrival = Arrival::OpenLoop(OpenLoop::at(1000.0 * utilisation));
        let of = |service| {
            run(load(arrival, RunLimits::time(Nanos::from_secs(1000))), |world| Model::new(world, 1, service))
        };
        let wait = utilisation / (1.0 - utilisation);
        let fixed = of(Service::Fixed(MS));
        assert_near(fixed.all.iops, 1000.0 * utilisation, 0.01, "throughput");
        assert_near(fixed.all.latency_ns_mean, 1e6 * (1.0 + wait / 2.0), 0.04, "mean of M/D/1");
        let random = of(Service::Exponential(MS));
        assert_near(random.all.latency_ns_mean, 1e6 * (1.0 + wait), 0.06, "mean of M/M/1");
        // Response times of M/M/1 are exponential: the 99th percentile is ln 100 means.
        assert_near(random.all.latency_ns_p99 as f64, 4.605e6 * (1.0 + wait), 0.08, "p99 of M/M/1");
    }
}

#[test]
fn an_open_loop_sees_the_stall_that_a_closed_one_hides() {
    // One second of stall in 50: an open loop has 2 % of its arrivals in it, half of which wait more than
    // half a second.
    let stalled = |arrival| {
        let limits = RunLimits::time(Nanos::from_secs(50));
        run(load(arrival, limits), |world| {
            let model = Model::new(world, 1, Service::Fixed(MS));
            model.stall.set(Some((Nanos::from_secs(30), Nanos::from_secs(31))));
            model
        })
    };
    let open = stalled(Arrival::OpenLoop(OpenLoop::at(200.0)));
    assert!(open.all.latency_ns_p99 > 300_000_000, "the open loop sees {} ns", open.all.latency_ns_p99);
    let closed = stalled(Arrival::users(1));
    assert!(closed.all.latency_ns_p99 < 1_100_000, "the closed loop sees {} ns", closed.all.latency_ns_p99);
    let worst = open.intervals.iter().max_by_key(|row| row.read.latency_ns_max).expect("there are intervals");
    assert_eq!(worst.start_s, 26.0, "the series shows the stall, 31 s after the start and 5 s of warm-up");
}

#[test]
fn few_places_at_the_target_make_arrivals_wait_and_count() {
    // Four places of 1 ms at the target but only one request outstanding: M/D/1 again, counted from the
    // arrival.
    let open = OpenLoop { rate_iops: 700.0, outstanding_max: 1 };
    let limits = RunLimits::time(Nanos::from_secs(1000));
    let report = run(load(Arrival::OpenLoop(open), limits), |world| Model::new(world, 4, Service::Fixed(MS)));
    assert_near(report.all.latency_ns_mean, 1e6 * (1.0 + 0.7 / 0.3 / 2.0), 0.03, "mean of M/D/1");
}

#[test]
fn an_open_loop_that_falls_behind_is_told() {
    let at = |rate_iops: f64| {
        let limits = RunLimits::time(Nanos::from_secs(20));
        let report = run(load(Arrival::OpenLoop(OpenLoop::at(rate_iops)), limits), |world| {
            Model::new(world, 1, Service::Fixed(Nanos::from_millis(5)))
        });
        (report.rate.expect("it has a rate"), report.table())
    };
    // A server of 5 ms answers 200 requests a second; the other 300 wait, those of the warm-up too.
    let (rate, text) = at(500.0);
    assert!(rate.is_behind, "{rate:?}");
    assert_eq!(rate.asked_iops, 500.0);
    assert_near(rate.answered_iops, 200.0, 1e-3, "the answered rate");
    assert_near(rate.waiting as f64, 300.0 * 25.0, 0.05, "what waits");
    assert!(text.contains("fell behind: asked 500 IOPS, answered 200 IOPS, "), "{text}");
    let (rate, text) = at(150.0);
    assert!(!rate.is_behind && !text.contains("fell behind"), "{rate:?}\n{text}");
    assert_near(rate.answered_iops, 150.0, 0.05, "the answered rate");
}

#[test]
fn a_closed_loop_has_no_rate() {
    assert_eq!(closed(2, ThinkTime::None, 1, Service::Fixed(MS)).rate, None);
}
