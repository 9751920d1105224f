//! Users, cores and a volume against exact queueing theory, where every station is exponential.

use std::rc::Rc;

use tier0_database::engine::Engine;
use tier0_database::host::HostSpec;
use tier0_database::layout::Scale;
use tier0_database::run::{DatabaseReport, DatabaseSpec, RunHooks, RunLength, run};
use tier0_database::storage::Placement;
use tier0_database::workload::{Changes, Workload};
use tier0_policy::PolicyKind;
use tier0_units::{ByteCount, Nanos};
use tier0_world::{PayloadWidth, VirtualRuntime};

use crate::station::Station;

/// A transaction that reads one page of a million.
const LOOKUP: &str = r#"
id = "lookup"
title = "one page"
unit = "tables"
headline = "lookup"
description = "a test"
dimension = [{ name = "row", count = 1000000, kind = "assumed", source = "a test" }]
object = [{ name = "table", key = ["row"], row_bytes = 5000, kind = "assumed", source = "a test" }]
transaction = [{ name = "lookup", share = 1, steps = [{ pick = "row" }, { read = "table" }], kind = "assumed", source = "a test" }]
"#;

/// Transactions per second of so many users.
fn simulated(users: u32, think: Nanos, service: Nanos) -> f64 {
    report(users, think, service, None, ByteCount(0)).per_s
}

/// What users do, who begin transactions after thinking or at a rate, over a page cache.
fn report(
    users: u32,
    think: Nanos,
    service: Nanos,
    rate: Option<f64>,
    page_cache: ByteCount,
) -> DatabaseReport {
    let workload = Workload::parse(LOOKUP, "lookup.toml", &Changes::default()).expect("a sound workload");
    let spec = DatabaseSpec {
        workload,
        engine: Engine::find("sql-server-2008").expect("it is embedded"),
        scale: Scale { units: 1.0, grown: 1.0 },
        // A page in ten thousand.
        buffer: ByteCount(100 * 8192),
        policy: PolicyKind::Lru,
        host: HostSpec { cores: 64, transaction: Nanos(1), io: Nanos(1), volume_queue: None, page_cache },
        users,
        think,
        rate,
    };
    let runtime = VirtualRuntime::new(7, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let volumes = vec![Rc::new(Station::new(&world, 9, 1, service))];
    let placement = Placement { objects: vec![vec![0]], log: 0, log_bytes: ByteCount::mib(16), spread: 1.0 };
    let length =
        RunLength { warm_up: Nanos::from_secs(2), measured: Nanos::from_secs(200), enough: u64::MAX };
    let report = runtime.run(async move {
        let hooks = RunHooks { caches: ByteCount(0), missed: &|_, _, _| {}, begins: &mut || {} };
        run(&world, spec, volumes, &placement, length, 7, hooks).await
    });
    report.expect("nothing fails")
}

/// Mean value analysis of one queueing station and one delay (Reiser and Lavenberg, JACM 27(2), 1980), which is exact here.
fn exact(users: u32, think: Nanos, service: Nanos) -> f64 {
    let (think, service) = (think.as_secs_f64(), service.as_secs_f64());
    let mut queue = 0.0;
    let mut rate = 0.0;
    for population in 1..=users {
        let response = service * (1.0 + queue);
        rate = f64::from(population) / (think + response);
        queue = rate * response;
    }
    rate
}

#[test]
fn a_closed_network_is_as_fast_as_mean_value_analysis_says() {
    for (users, think_ms) in [(1, 0), (4, 20), (10, 20), (40, 100)] {
        let (think, service) = (Nanos::from_millis(think_ms), Nanos::from_millis(4));
        let (found, exact) = (simulated(users, think, service), exact(users, think, service));
        assert!(
            (found / exact - 1.0).abs() < 0.03,
            "{users} users, {think_ms} ms: {found:.2}, exactly {exact:.2}"
        );
    }
}

/// An open queue with exponential arrivals and service: the response time is 1 ÷ (service rate − arrival rate), and its median
/// ln 2 times that. Users are many more than are ever at work.
#[test]
fn transactions_that_arrive_at_a_rate_queue_as_theory_says() {
    let (rate, service) = (150.0, Nanos::from_millis(4));
    let found = report(200, Nanos::ZERO, service, Some(rate), ByteCount(0));
    let exact_ms = 1e3 / (1.0 / service.as_secs_f64() - rate);
    assert!((found.per_s / rate - 1.0).abs() < 0.02, "{}", found.per_s);
    assert!((found.response_ms / exact_ms - 1.0).abs() < 0.1, "{} {exact_ms}", found.response_ms);
    let median = exact_ms * std::f64::consts::LN_2;
    assert!((found.p50_ms / median - 1.0).abs() < 0.1, "{} {median}", found.p50_ms);
}

/// Where users are too few for the rate, what has arrived waits, and the wait counts.
#[test]
fn more_than_can_be_served_waits_from_its_arrival_on() {
    let found = report(1, Nanos::ZERO, Nanos::from_millis(4), Some(400.0), ByteCount(0));
    assert!((230.0..270.0).contains(&found.per_s), "{}", found.per_s);
    assert!(found.response_ms > 10_000.0, "{}", found.response_ms);
}

/// Pages are drawn uniformly: the page cache holds half of them, so half of what the database asks for is no I/O.
#[test]
fn what_the_page_cache_holds_is_asked_for_and_not_read() {
    let half = ByteCount(500_000 * 8192);
    let found = report(4, Nanos::ZERO, Nanos::from_micros(100), None, half);
    assert!((found.asked - 1.0).abs() < 0.02, "{}", found.asked);
    assert!((found.reads - 0.5).abs() < 0.03, "{}", found.reads);
    assert_eq!(found.objects[0].asked, found.asked);
}
