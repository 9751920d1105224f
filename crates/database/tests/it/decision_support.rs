//! Decision support: sizes of tables, and the times of queries that wait for processors.

use std::rc::Rc;

use tier0_database::engine::Engine;
use tier0_database::host::HostSpec;
use tier0_database::layout::{Layout, Scale};
use tier0_database::run::{DatabaseReport, DatabaseSpec, RunHooks, RunLength, run};
use tier0_database::storage::Placement;
use tier0_database::workload::{Changes, Workload};
use tier0_policy::PolicyKind;
use tier0_units::{ByteCount, Nanos};
use tier0_world::{PayloadWidth, VirtualRuntime};

use crate::measured::assert_within;
use crate::station::{Station, UNLIMITED};

fn decision_support() -> (Workload, Engine, Scale, Layout) {
    let workload = Workload::find("decision-support", &Changes::default()).expect("it is embedded");
    let engine = Engine::find("sql-server-2008").expect("it is embedded");
    let scale = Scale { units: 1.0, grown: 1.0 };
    let layout = Layout::new(&workload, &engine, &scale);
    (workload, engine, scale, layout)
}

/// A factor of the scale on flash that answers in 1 ms, with a core for each of the users.
fn database(users: u32) -> DatabaseReport {
    let (workload, engine, scale, layout) = decision_support();
    let placement = Placement {
        objects: vec![vec![0]; layout.objects.len()],
        log: 0,
        log_bytes: ByteCount::mib(16),
        spread: 1.0,
    };
    let spec = DatabaseSpec {
        workload,
        engine,
        scale,
        buffer: ByteCount::mib(64),
        policy: PolicyKind::Lru,
        host: HostSpec {
            cores: users,
            transaction: Nanos::from_millis(1),
            io: Nanos::from_micros(10),
            volume_queue: None,
            page_cache: ByteCount(0),
        },
        users,
        think: Nanos::ZERO,
        rate: None,
    };
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let volumes = vec![Rc::new(Station::new(&world, 1, UNLIMITED, Nanos::from_millis(1)))];
    let length =
        RunLength { warm_up: Nanos::from_secs(20), measured: Nanos::from_secs(200), enough: u64::MAX };
    let report = runtime.run(async move {
        let hooks = RunHooks { caches: ByteCount(0), missed: &|_, _, _| {}, begins: &mut || {} };
        run(&world, spec, volumes, &placement, length, 1, hooks).await
    });
    report.expect("nothing fails")
}

/// 0.72 to 0.78 GB of lines and 1.1 to 1.2 GB of tables for each factor, in pages of 8 KiB.
#[test]
fn tables_are_as_large_as_kits_say() {
    let (_, _, _, layout) = decision_support();
    let gb = |pages: u64| (pages * layout.page.0) as f64 / 1e9;
    println!("lines {:.2} GB, all {:.2} GB", gb(layout.objects[0].pages), gb(layout.pages));
    assert_within("lines", gb(layout.objects[0].pages), 0.75, 0.1);
    assert_within("all", gb(layout.pages), 1.15, 0.1);
}

#[test]
fn queries_take_the_time_of_their_pages() {
    let (workload, _, _, layout) = decision_support();
    let report = database(1);
    let pages = |name: &str| layout.objects[workload.object(name).expect("it is there")].pages as f64;
    for (query, pages) in [
        ("pricing-summary", pages("lineitem")),
        ("shipping-priority", pages("lineitem") + pages("orders") + pages("customer")),
        ("revenue-change", 0.14 * pages("lineitem")),
        ("promotion-effect", 0.012 * pages("lineitem") + pages("part")),
        ("parts-by-supplier", pages("supplier") + pages("part") + pages("partsupp")),
    ] {
        let found = report.transactions.iter().find(|transaction| transaction.name == query);
        let response_ms = found.expect("it is reported").response_ms;
        println!("{query}: {response_ms:.0} ms");
        assert_within(query, response_ms, pages * 0.041, 0.1);
    }
    // 200 MB/s for each core.
    assert_within("MB/s", report.mb_s, 200.0, 0.05);
    assert!(database(8).mb_s < 8.0 * report.mb_s * 0.8, "scans that join read less");
}
