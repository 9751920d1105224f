//! Users, cores and a volume against exact queueing theory, where every station is exponential.

use std::rc::Rc;

use tier0_database::engine::Engine;
use tier0_database::host::HostSpec;
use tier0_database::layout::Scale;
use tier0_database::run::{DatabaseSpec, RunHooks, RunLength, run};
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
    let workload = Workload::parse(LOOKUP, "lookup.toml", &Changes::default()).expect("a sound workload");
    let spec = DatabaseSpec {
        workload,
        engine: Engine::find("sql-server-2008").expect("it is embedded"),
        scale: Scale { units: 1.0, grown: 1.0 },
        // A page in ten thousand.
        buffer: ByteCount(100 * 8192),
        policy: PolicyKind::Lru,
        host: HostSpec { cores: 64, transaction: Nanos(1), io: Nanos(1), volume_queue: None },
        users,
        think,
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
    report.expect("nothing fails").per_s
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
