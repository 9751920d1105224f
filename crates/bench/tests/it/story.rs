//! Load, run, check, crash, check, damage, check.

use std::time::Duration;

use tier0_bench::BenchError;
use tier0_bench::address::Address;
use tier0_bench::check::check;
use tier0_bench::load::{Load, Scale};
use tier0_bench::prepare::{PrepareOptions, prepare, remove};
use tier0_bench::run::options::Isolation;
use tier0_bench::run::{RunOptions, run};
use tier0_bench::watch::Watch;
use tier0_programs::clock::{pause, wall_s};
use tier0_programs::tools::output;
use tier0_units::Nanos;

use crate::server::Server;
use crate::shared::{consistent, every_damage_is_found, options};

/// A change that breaks each of the conditions, in a district of its own where it can.
const DAMAGES: [(&str, &str); 15] = [
    // An index of this name, on another table.
    ("indexes", "drop index customer_by_name; create index customer_by_name on item (i_name)"),
    ("rows", "delete from stock where s_i_id = 77"),
    ("warehouse-ytd warehouse-history", "update warehouse set w_ytd = w_ytd + 0.01"),
    ("next-order", "update district set d_next_o_id = d_next_o_id + 1 where d_id = 1"),
    (
        "newest-order undelivered",
        "delete from new_order where no_d_id = 2 and no_o_id = (select max(no_o_id) from new_order where no_d_id = 2)",
    ),
    (
        "new-orders",
        "delete from new_order where no_d_id = 3 and no_o_id = (select min(no_o_id) + 7 from new_order where no_d_id = 3)",
    ),
    ("orders", "delete from public.orders where o_d_id = 4 and o_id = 5"),
    (
        "order-lines lines-of-orders",
        "delete from order_line where ol_d_id = 5 and ol_o_id = 9 and ol_number = 2",
    ),
    (
        "delivered-lines",
        "update order_line set ol_delivery_d = null where ol_d_id = 6 and ol_o_id = 1 and ol_number = 1",
    ),
    ("district-history", "update district set d_ytd = d_ytd - 0.01 where d_id = 7"),
    ("balance paid", "update customer set c_balance = c_balance + 1 where c_d_id = 8 and c_id = 1"),
    ("payments", "update customer set c_payment_cnt = c_payment_cnt + 1 where c_d_id = 9 and c_id = 2"),
    ("deliveries", "update customer set c_delivery_cnt = c_delivery_cnt - 1 where c_d_id = 10 and c_id = 3"),
    ("stock-orders", "update stock set s_order_cnt = s_order_cnt + 1 where s_i_id = 1"),
    ("stock-quantity", "update stock set s_ytd = s_ytd + 1 where s_i_id = 2"),
];

const LOAD: PrepareOptions = PrepareOptions { scale: Scale::Warehouses(1), jobs: 2, seed: 5 };

#[test]
fn order_entry_is_loaded_run_and_checked_and_survives_a_crash() {
    let Some(server) = Server::create("order_entry_is_loaded_run_and_checked_and_survives_a_crash") else {
        return;
    };
    let postmaster = server.start();
    let address = server.address("postgres");
    refusals(&server, &address);
    loads(&address);
    // From now on "$user", which comes before public, has a table of the same name.
    server.query("create schema postgres; create table postgres.orders as select 'mine' as whose");

    runs(&address);

    refused_transactions_are_repeated(&address);
    more_arrives_than_is_served(&server, &address);
    a_forgotten_lock_keeps_nothing(&server, &address);

    // The server is killed in the middle of a run.
    let of_users = address.clone();
    let running =
        std::thread::Builder::new().spawn(move || run(&of_users, &options(4, 30), None, Watch::none()));
    pause(Duration::from_secs(2));
    postmaster.kill().expect("killed");
    let error = running.expect("a thread").join().expect("no panic").expect_err("the server is gone");
    let words = error.to_string();
    let BenchError::Ended { report, .. } = &error else { panic!("what was measured is kept: {error}") };
    assert!(report.failure.as_ref() == Some(&words) && report.nopm > Some(0.0), "{report:#?}");
    assert!(words.contains("transaction") && words.contains("tier0 bench check"), "{words}");
    let postmaster = server.start();

    consistent(&address, None);

    damages(&server, &address);
    assert_eq!(remove(&address, Watch::none()).expect("removed"), Some(Load::OrderEntry));
    assert_eq!(server.query("select whose from postgres.orders"), "mine");
    let error = prepare(&address, &LOAD, Watch::none()).expect_err("another's table");
    assert!(matches!(error, BenchError::Foreign { .. }), "{error}");
    server.query("drop schema postgres cascade");
    assert_eq!(remove(&address, Watch::none()).expect("nothing is left"), None);
    postmaster.stop().expect("in good order");
}

/// What cannot be done says why, and has changed nothing.
fn refusals(server: &Server, address: &Address) {
    let error = check(address, None, Watch::none()).expect_err("there is nothing");
    assert!(matches!(error, BenchError::NotPrepared(_)) && error.is_input(), "{error}");
    let error = run(address, &options(1, 1), None, Watch::none()).expect_err("there is nothing");
    assert!(matches!(error, BenchError::NotPrepared(_)), "{error}");
    let error =
        check(&server.address("elsewhere"), None, Watch::none()).expect_err("there is no such database");
    assert!(error.to_string().contains("createdb"), "{error}");
    assert!(!error.to_string().contains("hush"), "no password: {error}");

    server.query("create table customer (name text)");
    for error in [
        prepare(address, &LOAD, Watch::none()).expect_err("another's table"),
        remove(address, Watch::none()).expect_err("another's table"),
    ] {
        assert!(matches!(error, BenchError::Foreign { .. }) && error.is_input(), "{error}");
        assert!(error.to_string().contains("(customer)"), "{error}");
    }
    assert_eq!(server.query("select count(*) from pg_tables where schemaname = 'public'"), "1");
    server.query("drop table customer");
}

/// A load that was stopped goes on.
fn loads(address: &Address) {
    let began = wall_s();
    let is_over = || wall_s() - began > 0.7;
    let stopped = prepare(address, &LOAD, Watch { say: &|_| {}, is_over: &is_over });
    assert!(matches!(stopped, Err(BenchError::Stopped)), "{stopped:?}");
    let error = check(address, None, Watch::none()).expect_err("it is not loaded");
    assert!(matches!(error, BenchError::Unfinished { pieces: 2, .. }), "{error}");
    let prepared = prepare(address, &LOAD, Watch::none()).expect("the rest");
    assert_eq!((prepared.scale.as_str(), prepared.parts), ("1 warehouse", 2));
    assert!(prepared.parts_loaded >= 1, "{prepared:?}");
    assert!((80_000_000..200_000_000).contains(&prepared.size_bytes), "{prepared:?}");
    let again = prepare(address, &LOAD, Watch::none()).expect("nothing is left");
    assert_eq!((again.parts_loaded, again.sent_bytes), (0, 0));
}

fn runs(address: &Address) {
    let lines = std::sync::Mutex::new(Vec::new());
    let say = |line: &str| lines.lock().expect("lines").push(line.to_owned());
    let report = run(address, &options(4, 5), None, Watch { say: &say, is_over: &|| false }).expect("it ran");
    assert_eq!((report.workload.as_str(), report.warehouses), ("order-entry", Some(1)));
    assert!(
        report.nopm.is_some_and(|nopm| nopm > 0.0 && report.commits_per_minute > 2.0 * nopm),
        "{report:#?}"
    );
    assert_eq!(report.series.len(), 5);
    let in_series: u64 = report.series.iter().map(|second| second.commits).sum();
    let committed: u64 = report.transactions.iter().map(|kind| kind.committed).sum();
    assert!(committed > 100 && committed.abs_diff(in_series) < committed / 20, "{in_series} of {committed}");
    assert!(report.transactions.iter().all(|kind| kind.committed > 0), "{:#?}", report.transactions);
    assert_eq!(report.districts_without_order, Some(0));
    let told = lines.lock().expect("lines").iter().filter(|line| line.starts_with("run")).count();
    assert_eq!(told, 5, "a line each second");

    // The database has counted about what the users have seen, and it grew by what they did.
    let each = report.per_transaction;
    let counted = report.database_io.transactions.expect("it is counted");
    let ratio = counted as f64 / committed as f64;
    assert!((0.5..2.0).contains(&ratio), "the database counted {counted}, the users {committed}");
    assert!(each.wal_bytes.is_some_and(|bytes| bytes > 500.0), "{each:?}");
    assert!(each.processor_ms.is_some_and(|ms| ms > 0.0), "the server is on this machine");
    assert_eq!((each.array_reads, report.array_io.as_ref()), (None, None));
    let object =
        |name: &str| report.database_io.objects.iter().find(|object| object.name == name).expect(name);
    assert!(report.database_io.objects.len() == 19, "9 tables and 10 indexes");
    let each_of = |count: Option<u64>| count.expect("counted") as f64 / counted as f64;
    // Ten order lines for each New-Order, which are 43.5 % of all; ten stock rows changed.
    assert!((3.3..5.5).contains(&each_of(object("order_line").inserted)), "{:?}", object("order_line"));
    assert!((3.3..5.5).contains(&each_of(object("stock").updated)), "{:?}", object("stock"));
    assert!((0.35..0.55).contains(&each_of(object("history").inserted)));
    // The model touches 13.0 rows of stock: 4.35 of orders and 8.7 of Stock-Level; and 1.9 of customer. Here a customer who was
    // found by name is read again to be changed: 2.2.
    assert!((10.0..16.5).contains(&each_of(object("stock").rows_read)), "{:?}", object("stock"));
    assert!((1.7..2.8).contains(&each_of(object("customer").rows_read)), "{:?}", object("customer"));
    assert_eq!(object("stock").writes, None, "no version counts that");
    let gaps: Vec<&str> = report.not_measured.iter().map(|gap| gap.what.as_str()).collect();
    assert!(gaps.contains(&"the array") && gaps.contains(&"blocks written by table and index"), "{gaps:?}");
}

/// Under repeatable read, users of one warehouse are in each other's way.
fn refused_transactions_are_repeated(address: &Address) {
    let of_payments = RunOptions {
        isolation: Isolation::RepeatableRead,
        mix: Some("payment=1".parse().expect("a mix")),
        ramp: Some(Nanos::ZERO),
        ..options(4, 1)
    };
    let report = run(address, &of_payments, None, Watch::none()).expect("it ran");
    let payment = report.transactions.iter().find(|own| own.kind == "payment").expect("it is there");
    assert!(payment.serialization_failures > 0 && payment.committed > 0, "{payment:?}");
    assert_eq!(report.retries, payment.serialization_failures + payment.deadlocks);
    consistent(address, None);
}

/// What arrives while all users are busy is counted, and not only what they served. Another database, which writes meanwhile, is told
/// of.
fn more_arrives_than_is_served(server: &Server, address: &Address) {
    server.query("create database neighbour");
    let offered = RunOptions { rate: Some(20_000.0), ..options(1, 2) };
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(address, &offered, None, Watch::none()));
        pause(Duration::from_millis(1500));
        let mut psql = server.cluster.client("psql");
        psql.args(["--command", "create table own as select generate_series(1, 1000)", "neighbour"]);
        output("psql", &mut psql).expect("it writes");
        running.join().expect("no panic").expect("it ran")
    });
    assert!(
        report.database_io.changed_by_others.is_some_and(|rows| rows >= 1000),
        "{:?}",
        report.database_io
    );
    let arrivals = report.arrivals.expect("it had a rate");
    assert!((19_000.0..21_000.0).contains(&arrivals.offered_per_second), "{arrivals:?}");
    assert!(
        (arrivals.served_per_second * report.seconds - report.ended() as f64).abs() < 0.5,
        "{arrivals:?}"
    );
    assert!(arrivals.served_per_second < 10_000.0 && arrivals.waiting > 20_000, "{arrivals:?}");
}

/// Another session locks a table and does not end: run, check and removal end all the same, and nothing is removed later.
fn a_forgotten_lock_keeps_nothing(server: &Server, address: &Address) {
    let locked = "begin; lock table public.warehouse; select pg_sleep(60)";
    let stopped_after = |seconds: f64| {
        let began = wall_s();
        move || wall_s() - began > seconds
    };
    std::thread::scope(|scope| {
        let began = wall_s();
        let running = scope.spawn(|| run(address, &options(4, 3), None, Watch::none()));
        pause(Duration::from_millis(1500));
        let forgotten = scope.spawn(|| server.cluster.query(locked));
        pause(Duration::from_millis(500));
        let checked = check(address, None, Watch { say: &|_| {}, is_over: &stopped_after(1.0) });
        assert!(matches!(checked, Err(BenchError::Stopped)), "{checked:?}");
        let removed = remove(address, Watch { say: &|_| {}, is_over: &stopped_after(1.0) });
        assert!(matches!(removed, Err(BenchError::Stopped)), "{removed:?}");
        let report = running.join().expect("no panic").expect("a report");
        assert!(wall_s() - began < 30.0, "the run did not end");
        assert!(report.unfinished == 4 && !report.ended_early, "{report:#?}");
        assert!(report.nopm.is_some_and(|nopm| nopm > 0.0), "{report:#?}");
        let gap = report.not_measured.iter().find(|gap| gap.what == "reads by table and index");
        assert!(gap.is_some_and(|gap| gap.why.contains("pg_locks")), "{:#?}", report.not_measured);
        let error = remove(address, Watch::none()).expect_err("it is locked");
        assert!(error.to_string().contains("pg_locks"), "{error}");
        server.query(
            "select pg_terminate_backend(pid) from pg_stat_activity where query like 'begin; lock table%'",
        );
        forgotten.join().expect("no panic").expect_err("it was ended");
    });
    consistent(address, None);
}

/// Every condition finds what breaks it.
fn damages(server: &Server, address: &Address) {
    for (_, sql) in DAMAGES {
        server.query(sql);
    }
    let checked = every_damage_is_found(address, &DAMAGES);
    let of =
        |name: &str| checked.conditions.iter().find(|one| one.name == name).and_then(|one| one.first.clone());
    let first = of("district-history").expect("it is broken");
    assert!(first.starts_with("warehouse/district 1/7: "), "{first}");
    let first = of("indexes").expect("it is broken");
    assert!(
        first.contains("on item (i_name) instead of on customer (c_w_id, c_d_id, c_last, c_first)"),
        "{first}"
    );
    let first = of("orders").expect("it is broken");
    assert!(first.starts_with("warehouse/district 1/4: "), "{first}");
}
