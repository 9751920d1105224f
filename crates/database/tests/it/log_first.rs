//! No page is written before the log up to its newest change, whatever the sizes and the speeds of the volumes.

use std::rc::Rc;

use proptest::prelude::*;
use tier0_database::engine::Engine;
use tier0_database::host::HostSpec;
use tier0_database::layout::Scale;
use tier0_database::run::{DatabaseReport, DatabaseSpec, RunHooks, RunLength, run};
use tier0_database::storage::Placement;
use tier0_database::workload::{Changes, Workload};
use tier0_policy::PolicyKind;
use tier0_units::{ByteCount, Nanos};
use tier0_world::{PayloadWidth, VirtualRuntime};

use crate::station::{Station, UNLIMITED};

struct Plan {
    seed: u64,
    buffer_pages: u64,
    users: u32,
    data: Nanos,
    log: Nanos,
    checkpoint_ms: f64,
    /// Orders scan the items and mark their lines as a list.
    scans: bool,
    /// Rows of warehouses and districts are held until the commit.
    holds: bool,
    /// Payments only.
    pays: bool,
}

/// Runs order entry in two warehouses; the model itself panics where a page would be written before its log.
fn database(plan: &Plan) -> DatabaseReport {
    let mut text = include_str!("../../../../catalog/workloads/order-entry.toml").to_owned();
    if plan.scans {
        let scan_us = "scan_us = { value = 41, unit = \"us\", kind = \"assumed\", source = \"a test\" }\n";
        text = scan_us.to_owned()
            + &text.replacen("{ read = \"warehouse\" }", "{ scan = \"item\" }", 1).replacen(
                "repeat = \"5..15\"",
                "list = true, repeat = \"5..15\"",
                1,
            );
    }
    if !plan.holds {
        text = text.replace(", hold = true", "");
    }
    let mix = plan.pays.then(|| ("payment".to_owned(), 1.0)).into_iter().collect();
    let changes = Changes { mix, ..Changes::default() };
    let workload = Workload::parse(&text, "order-entry.toml", &changes).expect("a sound workload");
    let mut engine = Engine::find("sql-server-2008").expect("it is embedded");
    engine.checkpoint.value = plan.checkpoint_ms;
    let objects = workload.objects.len();
    let spec = DatabaseSpec {
        workload,
        engine,
        scale: Scale { units: 2.0, grown: 1.0 },
        buffer: ByteCount(plan.buffer_pages * 8192),
        policy: PolicyKind::Lru,
        host: HostSpec {
            cores: 2,
            transaction: Nanos::from_micros(200),
            io: Nanos::from_micros(10),
            volume_queue: None,
            page_cache: ByteCount(0),
        },
        users: plan.users,
        think: Nanos::ZERO,
        rate: None,
    };
    let runtime = VirtualRuntime::new(plan.seed, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let volumes = vec![
        Rc::new(Station::new(&world, 1, UNLIMITED, plan.data)),
        Rc::new(Station::new(&world, 2, UNLIMITED, plan.log)),
    ];
    let placement =
        Placement { objects: vec![vec![0]; objects], log: 1, log_bytes: ByteCount::mib(64), spread: 1.0 };
    let length =
        RunLength { warm_up: Nanos::from_millis(200), measured: Nanos::from_secs(2), enough: u64::MAX };
    let seed = plan.seed;
    runtime
        .run(async move {
            let hooks = RunHooks { caches: ByteCount(0), missed: &|_, _, _| {}, begins: &mut || {} };
            run(&world, spec, volumes, &placement, length, seed, hooks).await
        })
        .expect("nothing fails")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_page_is_written_before_its_log(
        seed in 0u64..1000,
        buffer_pages in 200u64..4000,
        users in 1u32..24,
        data_us in 20u64..8000,
        log_us in 20u64..20_000,
        checkpoint_ms in 100f64..1500.0,
        scans: bool,
        holds: bool,
    ) {
        let (data, log) = (Nanos::from_micros(data_us), Nanos::from_micros(log_us));
        let report = database(&Plan { seed, buffer_pages, users, data, log, checkpoint_ms, scans, holds, pays: false });
        prop_assert!(report.per_s > 0.0);
        prop_assert!(report.writes > 0.0, "{report:?}");
    }
}

#[test]
fn commits_that_wait_together_are_written_together() {
    let plan = |users| Plan {
        seed: 3,
        buffer_pages: 40_000,
        users,
        data: Nanos::from_micros(50),
        log: Nanos::from_millis(5),
        checkpoint_ms: 1e6,
        scans: false,
        holds: false,
        pays: false,
    };
    let (one, many) = (database(&plan(1)), database(&plan(32)));
    // 92 % of the transactions commit, and each waits for a write of 5 ms; 32 of them share their writes.
    assert!(one.per_s < 260.0, "{one:?}");
    assert!(many.per_s > 10.0 * one.per_s, "{} {}", many.per_s, one.per_s);
}

#[test]
fn a_held_row_serves_one_transaction_after_the_other() {
    let plan = |holds| Plan {
        seed: 3,
        buffer_pages: 40_000,
        users: 32,
        data: Nanos::from_micros(50),
        log: Nanos::from_millis(5),
        checkpoint_ms: 1e6,
        scans: false,
        holds,
        pays: true,
    };
    let (held, free) = (database(&plan(true)), database(&plan(false)));
    // A payment holds the row of one of two warehouses while the log is written, for 5 ms; two of them can share a write.
    assert!((300.0..=480.0).contains(&held.per_s), "{}", held.per_s);
    assert!(free.per_s > 3.0 * held.per_s, "{} {}", free.per_s, held.per_s);
}

#[test]
fn a_seed_gives_the_same_run() {
    let plan = || Plan {
        seed: 5,
        buffer_pages: 1000,
        users: 8,
        data: Nanos::from_millis(2),
        log: Nanos::from_micros(100),
        checkpoint_ms: 500.0,
        scans: true,
        holds: true,
        pays: false,
    };
    let (first, second) = (database(&plan()), database(&plan()));
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
}
