//! Scans and lists of rows: what they read, how much of it at once, and what scans have in common.

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

/// A table of 64 MiB and one of 1 MiB, eight rows of which fill a page of 8 KiB.
const HEAD: &str = r#"
id = "mine"
title = "a test"
unit = "tables"
headline = "first"
description = "a test"
scan_us = { value = 41, unit = "us", kind = "assumed", source = "a test" }
dimension = [
  { name = "row", count = 65536, kind = "assumed", source = "a test" },
  { name = "few", count = 1024, kind = "assumed", source = "a test" },
]
object = [
  { name = "large", key = ["row"], row_bytes = 960, kind = "assumed", source = "a test" },
  { name = "small", key = ["few"], row_bytes = 960, kind = "assumed", source = "a test" },
]
"#;
/// Pages of the large table.
const LARGE: f64 = 8192.0;

/// A run of a workload with a buffer of 1,024 pages on a volume whose reads take 1 ms.
struct Plan<'a> {
    /// Name, share, steps.
    transactions: &'a [(&'a str, f64, &'a str)],
    users: u32,
    cores: u32,
    think: Nanos,
    prefetch: f64,
    shared: bool,
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Plan { transactions: &[], users: 1, cores: 8, think: Nanos::ZERO, prefetch: 1.0, shared: true }
    }
}

impl Plan<'_> {
    fn run(&self) -> DatabaseReport {
        let transaction = |(name, share, steps): &(&str, f64, &str)| {
            format!(
                "[[transaction]]\nname = {name:?}\nshare = {share}\nsteps = {steps}\nkind = \"assumed\"\nsource = \"a test\"\n"
            )
        };
        let text = HEAD.to_owned() + &self.transactions.iter().map(transaction).collect::<String>();
        let workload = Workload::parse(&text, "mine.toml", &Changes::default()).expect("a sound workload");
        let mut engine = Engine::find("sql-server-2008").expect("it is embedded");
        engine.prefetch.value = self.prefetch;
        engine.shared_scans.value = f64::from(u8::from(self.shared));
        let scale = Scale { units: 1.0, grown: 1.0 };
        assert_eq!(Layout::new(&workload, &engine, &scale).objects[0].pages as f64, LARGE);
        let spec = DatabaseSpec {
            workload,
            engine,
            scale,
            buffer: ByteCount(1024 * 8192),
            policy: PolicyKind::Lru,
            host: HostSpec {
                cores: self.cores,
                transaction: Nanos::from_micros(10),
                io: Nanos::from_micros(10),
                volume_queue: None,
                page_cache: ByteCount(0),
            },
            users: self.users,
            think: self.think,
            rate: None,
        };
        let runtime = VirtualRuntime::new(7, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let volumes = vec![Rc::new(Station::new(&world, 1, UNLIMITED, Nanos::from_millis(1)))];
        let placement =
            Placement { objects: vec![vec![0]; 2], log: 0, log_bytes: ByteCount::mib(16), spread: 1.0 };
        let length =
            RunLength { warm_up: Nanos::from_secs(2), measured: Nanos::from_secs(60), enough: u64::MAX };
        let report = runtime.run(async move {
            let hooks = RunHooks { caches: ByteCount(0), missed: &|_, _, _| {}, begins: &mut || {} };
            run(&world, spec, volumes, &placement, length, 7, hooks).await
        });
        report.expect("nothing fails")
    }
}

/// Bytes read for each transaction, as a share of the large table.
fn tables(report: &DatabaseReport) -> f64 {
    report.mb_s * 1e6 / report.per_s / (LARGE * 8192.0)
}

const WHOLE: &[(&str, f64, &str)] = &[("first", 1.0, r#"[{ scan = "large" }]"#)];

#[test]
fn a_scan_reads_its_part_once_in_large_reads() {
    let whole = Plan { transactions: WHOLE, ..Plan::default() }.run();
    assert_within("tables", tables(&whole), 1.0, 0.02);
    assert_within("reads of 512 KiB", whole.reads, LARGE / 64.0, 0.02);
    // Reads are ahead of the processor, 41 us for a page.
    assert_within("response", whole.response_ms, LARGE * 0.041, 0.05);
    let tenth =
        Plan { transactions: &[("first", 1.0, r#"[{ scan = "large", share = 0.1 }]"#)], ..Plan::default() }
            .run();
    assert!((0.1..0.12).contains(&tables(&tenth)), "{}", tables(&tenth));
}

#[test]
fn two_scans_that_overlap_cost_as_much_as_one() {
    for think_ms in [0, 20] {
        let think = Nanos::from_millis(think_ms);
        let plan =
            |users, shared| Plan { transactions: WHOLE, users, think, shared, ..Plan::default() }.run();
        let (one, two) = (plan(1, true), plan(2, true));
        assert!(two.per_s > 1.8 * one.per_s, "{} {}", two.per_s, one.per_s);
        println!("think {think_ms} ms: two scans read {:.3} tables", 2.0 * tables(&two));
        assert!(2.0 * tables(&two) <= 1.15 * tables(&one), "{} {}", tables(&two), tables(&one));
        assert_within("tables of a scan alone", tables(&plan(2, false)), 1.0, 0.02);
    }
}

#[test]
fn scans_on_few_cores_stay_together() {
    let four = Plan { transactions: WHOLE, users: 4, cores: 1, ..Plan::default() }.run();
    println!("four scans on a core read {:.3} tables", 4.0 * tables(&four));
    assert!(4.0 * tables(&four) < 1.5, "{}", tables(&four));
}

#[test]
fn a_large_scan_leaves_the_buffer_and_a_small_one_stays_in_it() {
    let lookup = r#"[{ repeat = "100", steps = [{ pick = "few" }, { read = "small" }] }]"#;
    let both =
        Plan { transactions: &[("first", 1.0, lookup), ("scan", 1.0, WHOLE[0].2)], ..Plan::default() }.run();
    assert!(both.hits > 0.999, "the small table stays: {}", both.hits);
    let small = Plan { transactions: &[("first", 1.0, r#"[{ scan = "small" }]"#)], ..Plan::default() }.run();
    assert_eq!(small.reads, 0.0, "it is in the buffer");
    assert_within("response", small.response_ms, 128.0 * 0.041, 0.05);
}

#[test]
fn rows_of_a_list_are_read_at_once() {
    let list = r#"[{ repeat = "32", list = true, steps = [{ pick = "row" }, { read = "large" }] }]"#;
    let plan = |prefetch| Plan { transactions: &[("first", 1.0, list)], prefetch, ..Plan::default() }.run();
    let (one, sixteen) = (plan(1.0), plan(16.0));
    assert_within("reads", sixteen.reads, one.reads, 0.02);
    assert!(one.response_ms > 4.0 * sixteen.response_ms, "{} {}", one.response_ms, sixteen.response_ms);
    // More reads than users are under way: Little's law.
    let under_way = sixteen.reads * sixteen.per_s * sixteen.read_ms / 1e3;
    println!("1 user, {under_way:.1} reads under way");
    assert!(under_way > 4.0, "{under_way}");
    let plain = list.replace("list = true, ", "");
    let unmarked = Plan { transactions: &[("first", 1.0, &plain)], prefetch: 16.0, ..Plan::default() }.run();
    assert_within("rows that are no list", unmarked.response_ms, one.response_ms, 0.02);
}
