//! Brokerage: load, run, check, crash, check, damage, check.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tier0_bench::address::Address;
use tier0_bench::load::{Load, Scale};
use tier0_bench::prepare::{PrepareOptions, prepare, remove};
use tier0_bench::run::report::RunReport;
use tier0_bench::run::run;
use tier0_bench::watch::Watch;
use tier0_programs::clock::{pause, wall_s};

use crate::server::Server;
use crate::shared::{consistent, every_damage_is_found, options};

const LOAD: PrepareOptions =
    PrepareOptions { scale: Scale::Customers { customers: 1000, days: 1 }, jobs: 2, seed: 1 };

/// A change that breaks each condition.
const DAMAGES: [(&str, &str); 13] = [
    ("indexes", "drop index holding_history_by_trade"),
    ("rows market-days", "delete from daily_market where symbol = 'S0000007' and day = '2015-01-05'"),
    ("references", "update account set broker = 0 where id = 1"),
    ("requests", "delete from trade_request where trade = (select max(trade) from trade_request)"),
    (
        "summaries",
        "update holding_summary set quantity = quantity + 1 where account = 11 and symbol = (select min(symbol) from holding_summary where account = 11)",
    ),
    ("traded-shares", "update trade set quantity = quantity + 100 where id = 5"),
    (
        "holding-history",
        "update holding set quantity = quantity + 1 where trade = (select max(trade) from holding)",
    ),
    ("trade-holdings", "delete from holding_history where trade = 9"),
    ("brokers", "update broker set trades = trades + 1 where id = 2"),
    ("balances", "update account set balance = balance + 1 where id = 2"),
    ("settlements", "delete from settlement where trade = 3"),
    (
        "cash",
        "update cash_transaction set amount = amount + 1 where trade = (select min(trade) from cash_transaction)",
    ),
    ("histories", "delete from trade_history where trade = 4 and status = 'DONE'"),
];

#[test]
fn brokerage_is_loaded_run_and_checked_and_survives_a_crash() {
    let Some(server) = Server::create("brokerage_is_loaded_run_and_checked_and_survives_a_crash") else {
        return;
    };
    let postmaster = server.start();
    let address = server.address("postgres");
    let prepared = prepare(&address, &LOAD, Watch::none()).expect("loaded");
    assert_eq!(prepared.scale, "1000 customers, 1 day of trades at first");
    runs(&run(&address, &options(4, 5), None, Watch::none()).expect("it ran"));

    a_server_that_hangs_keeps_nothing(&server, &address);

    // The server is killed in the middle of a run.
    let of_users = address.clone();
    let running =
        std::thread::Builder::new().spawn(move || run(&of_users, &options(4, 30), None, Watch::none()));
    pause(Duration::from_millis(1500));
    postmaster.kill().expect("killed");
    let error = running.expect("a thread").join().expect("no panic").expect_err("the server is gone");
    assert!(error.to_string().contains("tier0 bench check"), "{error}");
    let postmaster = server.start();
    consistent(&address, None);

    DAMAGES.iter().for_each(|(_, sql)| {
        server.query(sql);
    });
    every_damage_is_found(&address, &DAMAGES);
    assert_eq!(remove(&address, Watch::none()).expect("removed"), Some(Load::Brokerage));
    postmaster.stop().expect("in good order");
}

/// All processes of the server are stopped in the middle of a run: it ends with what was measured.
fn a_server_that_hangs_keeps_nothing(server: &Server, address: &Address) {
    let began = wall_s();
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(address, &options(4, 3), None, Watch::none()));
        pause(Duration::from_millis(2000));
        let record = std::path::PathBuf::from(server.query("show data_directory")).join("postmaster.pid");
        let record = std::fs::read_to_string(record).expect("the server has one");
        let pids = server.query("select pid from pg_stat_activity where pid <> pg_backend_pid()");
        let pids: Vec<Pid> = record
            .lines()
            .take(1)
            .chain(pids.lines())
            .map(|pid| Pid::from_raw(pid.parse().expect("a number")).expect("a process"))
            .collect();
        let all = |signal| {
            pids.iter().for_each(|pid| {
                // A session may have ended.
                let _ = kill_process(*pid, signal);
            })
        };
        all(Signal::STOP);
        let ended = running.join();
        all(Signal::CONT);
        ended.expect("no panic").expect("a report")
    });
    assert!(wall_s() - began < 35.0, "the run did not end");
    assert!(report.unfinished == 4 && report.trade_results_per_second > Some(0.0), "{report:#?}");
    assert!(report.not_measured.iter().any(|gap| gap.why.contains("did not answer")), "{report:#?}");
    consistent(address, None);
}

/// The mix is the published one, and rows are touched as often as the facts have it.
fn runs(report: &RunReport) {
    let of = |name: &str| report.transactions.iter().find(|own| own.kind == name).expect("it is there");
    assert!(report.transactions.iter().all(|own| own.committed > 0), "{:#?}", report.transactions);
    assert!(report.trade_results_per_second.is_some_and(|rate| rate > 0.0));
    for (name, share) in
        [("trade-order", 0.101), ("trade-result", 0.1), ("trade-status", 0.19), ("market-watch", 0.18)]
    {
        let measured = of(name).share;
        assert!((measured - share).abs() < 0.04, "{name}: {measured} instead of {share}");
    }
    let results = of("trade-result").committed as f64 / of("trade-order").committed as f64;
    assert!((0.75..1.05).contains(&results), "{results} results for an order");
    let counted = report.database_io.transactions.expect("counted") as f64;
    let object =
        |name: &str| report.database_io.objects.iter().find(|object| object.name == name).expect(name);
    let each = |count: Option<u64>| count.expect("counted") as f64 / counted;
    assert!((0.07..0.13).contains(&each(object("settlement").inserted)), "{:?}", object("settlement"));
    // 60 % of 18 % read 100 days of the market, 35 % ten; and 14 % read 12.
    let days = each(object("daily_market").rows_read);
    assert!((9.0..17.0).contains(&days), "{days}");
}
