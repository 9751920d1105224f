//! Decision support: load, go on after a stop, all queries once, a run for a time, check, crash, check, damage, check.

use std::time::Duration;

use tier0_bench::BenchError;
use tier0_bench::address::Address;
use tier0_bench::load::{Load, Scale};
use tier0_bench::prepare::{PrepareOptions, prepare, remove};
use tier0_bench::run::{RunOptions, run};
use tier0_bench::watch::Watch;
use tier0_programs::clock::{pause, wall_s};

use crate::server::Server;
use crate::shared::{self, consistent, every_damage_is_found};

const LOAD: PrepareOptions = PrepareOptions { scale: Scale::Factor(0.01), jobs: 2, seed: 1 };

/// A change that breaks each condition.
const DAMAGES: [(&str, &str); 11] = [
    ("indexes", "update pg_index set indisvalid = false where indexrelid = 'lineitem_by_part'::regclass"),
    (
        "rows",
        "delete from partsupp where ps_partkey = 7 and ctid = (select min(ctid) from partsupp where ps_partkey = 7)",
    ),
    ("references", "update supplier set s_nationkey = 99 where s_suppkey = 3"),
    ("retail-price", "update part set p_retailprice = p_retailprice + 0.01 where p_partkey = 5"),
    ("part-suppliers", ""),
    ("order-customer", "update orders set o_custkey = 3 where o_orderkey = 1"),
    ("lines-of-orders", "delete from lineitem where l_orderkey = 2"),
    (
        "line-offer",
        "update lineitem set l_quantity = l_quantity + 1 where l_orderkey = 3 and l_linenumber = 1",
    ),
    ("total-price", "update orders set o_totalprice = o_totalprice + 0.01 where o_orderkey = 4"),
    ("order-status", "update orders set o_orderstatus = 'P' where o_orderkey = 5"),
    ("dates", "update lineitem set l_receiptdate = l_shipdate where l_orderkey = 6"),
];

/// Streams begin all together.
fn options(users: u32, seconds: u64) -> RunOptions {
    RunOptions { ramp: None, ..shared::options(users, seconds) }
}

#[test]
fn decision_support_is_loaded_run_and_checked_and_survives_a_crash() {
    let Some(server) = Server::create("decision_support_is_loaded_run_and_checked_and_survives_a_crash")
    else {
        return;
    };
    let postmaster = server.start();
    let address = server.address("postgres");
    loads(&address);
    consistent(&address, Some(Load::DecisionSupport));
    refusals(&address);
    passes(&address);
    ends_in_the_middle(&address);

    let of_streams = address.clone();
    let running =
        std::thread::Builder::new().spawn(move || run(&of_streams, &options(2, 30), None, Watch::none()));
    pause(Duration::from_millis(500));
    postmaster.kill().expect("killed");
    let error = running.expect("a thread").join().expect("no panic").expect_err("the server is gone");
    assert!(error.to_string().contains("tier0 bench check"), "{error}");
    let postmaster = server.start();
    consistent(&address, Some(Load::DecisionSupport));

    DAMAGES.iter().filter(|(_, sql)| !sql.is_empty()).for_each(|(_, sql)| {
        server.query(sql);
    });
    let checked = every_damage_is_found(&address, &DAMAGES);
    assert_eq!(checked.conditions.len(), DAMAGES.len());
    assert_eq!(remove(&address, Watch::none()).expect("removed"), Some(Load::DecisionSupport));
    postmaster.stop().expect("in good order");
}

/// A load that was stopped goes on.
fn loads(address: &Address) {
    let began = wall_s();
    let is_over = || wall_s() - began > 0.3;
    let stopped = prepare(address, &LOAD, Watch { say: &|_| {}, is_over: &is_over });
    assert!(matches!(stopped, Err(BenchError::Stopped)), "{stopped:?}");
    let prepared = prepare(address, &LOAD, Watch::none()).expect("the rest");
    assert_eq!(
        (prepared.scale.as_str(), prepared.workload.as_str()),
        ("scale factor 0.01", "decision-support")
    );
    assert!((12_000_000..40_000_000).contains(&prepared.size_bytes), "{prepared:?}");
    let again = prepare(address, &LOAD, Watch::none()).expect("nothing is left");
    assert_eq!((again.parts_loaded, again.sent_bytes), (0, 0));
}

/// Other loads, other sizes and options of other loads are refused, and nothing is changed.
fn refusals(address: &Address) {
    let refused = |error: BenchError, words: &[&str]| {
        assert!(error.is_input(), "{error}");
        words.iter().for_each(|words| assert!(error.to_string().contains(words), "{words}: {error}"));
    };
    let other = PrepareOptions { scale: Scale::Warehouses(1), ..LOAD };
    refused(
        prepare(address, &other, Watch::none()).expect_err("another load"),
        &["decision-support", "--load"],
    );
    let larger = PrepareOptions { scale: Scale::Factor(0.02), ..LOAD };
    refused(
        prepare(address, &larger, Watch::none()).expect_err("larger"),
        &["--scale-factor 0.01", "--drop"],
    );
    let wanted = RunOptions { load: Some(Load::OrderEntry), ..options(1, 1) };
    refused(run(address, &wanted, None, Watch::none()).expect_err("another load"), &["not order-entry"]);
    let with_rate = RunOptions { rate: Some(5.0), ..options(1, 1) };
    refused(
        run(address, &with_rate, None, Watch::none()).expect_err("a rate"),
        &["--rate", "decision support"],
    );
}

/// Every query runs, in each stream once.
fn passes(address: &Address) {
    let report = run(address, &RunOptions { one_pass: true, ..options(2, 1) }, None, Watch::none());
    let report = report.expect("it ran");
    assert_eq!(report.transactions.len(), 22);
    assert!(report.transactions.iter().all(|query| query.committed == 2), "{:#?}", report.transactions);
    assert_eq!(report.queries_by_stream.as_deref(), Some(&[22, 22][..]));
    assert_eq!((report.queries_unfinished, report.divisor), (Some(0), Some(44)));
    assert!(report.queries_per_hour.is_some_and(|rate| rate > 0.0) && !report.ended_early);
    let read = |name: &str| {
        report.database_io.objects.iter().find(|own| own.name == name).and_then(|own| own.rows_read)
    };
    assert!(read("lineitem").is_some_and(|rows| rows > 10 * 60_000), "{:?}", read("lineitem"));
}

/// A query that is under way at the end is cancelled at once and does not count.
fn ends_in_the_middle(address: &Address) {
    let slow = RunOptions { queries: Some("q1,q9".parse().expect("queries")), ..options(3, 1) };
    let began = wall_s();
    let report = run(address, &slow, None, Watch::none()).expect("it ran");
    assert!(wall_s() - began < 4.0, "it ended late");
    let finished: u64 = report.transactions.iter().map(|query| query.committed).sum();
    assert_eq!(report.queries_by_stream.map(|all| all.iter().sum()), Some(finished));
    assert!(report.queries_unfinished.is_some_and(|count| (1..=3).contains(&count)));
}
