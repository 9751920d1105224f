//! `tier0 advise collect` from a real MariaDB under load, and what the samples say.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tier0_torture::clock::pause;
use tier0_torture::mariadb::{MariaDb, TOOLS};

use crate::support::{directory, skipped, succeeded, tier0, wait_until};

const PASSWORD: &str = "s3cret";
/// Some 20 MB, of which the server keeps 8.
const ROWS: u64 = 60_000;

#[test]
fn samples_of_a_running_mariadb_are_collected_and_understood() {
    let programs: Vec<&str> = TOOLS.iter().map(|(tool, _)| *tool).collect();
    if skipped("samples_of_a_running_mariadb_are_collected_and_understood", false, &programs) {
        return;
    }
    let directory = directory();
    let server = MariaDb::of(directory.path()).expect("there is a user");
    server.create().expect("made");
    let with_schema = ["--performance-schema=ON", "--performance-schema-instrument=transaction=ON"];
    let process = server.start(&with_schema).expect("started");
    load(&server);

    let file = |name: &str| directory.path().join(name).display().to_string();
    let dsn = |user: &str| format!("mysql://{user}@localhost/?socket={}", server.socket().display());
    let refused = collect(&dsn("stranger"), 1, &file("stranger.jsonl")).output().expect("it starts");
    let told = said(&refused);
    assert!(refused.status.code() == Some(1) && told.contains("grant process on *.*"), "{told}");

    // The server is away for a while, and begins to count again.
    let samples = file("samples.jsonl");
    let is_over = AtomicBool::new(false);
    let (told, process) = std::thread::scope(|scope| {
        let users = scope.spawn(|| use_it(&server, &is_over));
        let collecting = collect(&dsn("monitor"), 5, &samples).spawn().expect("it starts");
        let lines = || std::fs::read_to_string(&samples).unwrap_or_default().lines().count();
        wait_until("two samples", || lines() >= 2);
        process.stop().expect("it ends");
        // Longer than the time between samples.
        pause(Duration::from_millis(1100));
        let process = server.start(&with_schema).expect("started again");
        let told = ended(collecting);
        is_over.store(true, Ordering::Relaxed);
        assert!(users.join().expect("they end") > 0, "the server was asked");
        (told, process)
    });
    assert!(told.contains("failed; \"tier0 advise"), "{told}");
    assert!(told.contains("trying again at the next sample") && !told.contains(PASSWORD), "{told}");
    // A second run goes on in the same file.
    let lines = text(&samples).lines().count();
    succeeded("collect", &collect(&dsn("monitor"), 1, &samples).output().expect("it starts"));
    assert!(text(&samples).lines().count() > lines && !text(&samples).contains(PASSWORD));
    process.stop().expect("it ends");
    judged(&samples);

    // MariaDB's default.
    let process = server.start(&[]).expect("started");
    let bare = file("bare.jsonl");
    let told = said(&collect(&dsn("monitor"), 1, &bare).output().expect("it starts"));
    assert!(told.contains("put performance_schema = ON"), "{told}");
    process.stop().expect("it ends");
    let advice = advised(&[&bare]);
    let names: Vec<&str> = objects(&advice).iter().filter_map(|object| object["name"].as_str()).collect();
    assert!(names.contains(&"all data of InnoDB"), "{names:?}");
    assert!(advice["notes"].to_string().contains("performance_schema = ON"), "{advice}");
}

/// What the samples of the load say.
fn judged(samples: &str) {
    let advice = advised(&[samples]);
    let busiest = objects(&advice).iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let busiest = busiest.expect("there are tables");
    assert_eq!(busiest["name"], "shop.orders", "it is read at random: {advice}");
    assert!(busiest["ms_per_io"].as_f64().is_some_and(|ms| ms > 0.0), "{busiest}");
    assert!(busiest["bytes"].as_f64().is_some_and(|bytes| bytes > 10e6), "{busiest}");
    assert!(objects(&advice).iter().any(|object| object["name"] == "shop.odd-name:p0"), "{advice}");
    assert!(
        advice["notes"].to_string().contains("MariaDB samples: counters fell or began again"),
        "{advice}"
    );
    assert!(advice["busy"].is_f64() && advice["seconds"].as_f64() > Some(3.0), "{advice}");
    let arguments = ["advise", "plan", samples, "--flash", "1GB", "--directory", "/flash"];
    let plan = succeeded("plan", &tier0(&arguments).output().expect("it starts"));
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert!(
        plan["before"]["transactions_s"].as_f64() > Some(10.0),
        "each statement is a transaction: {plan}"
    );
    assert!(plan["database"]["system"].is_string(), "{plan}");
    // Whether reads from the host's own device wait long enough to move a table depends on it.
    for moved in plan["moves"].as_array().expect("a list") {
        let how = moved["statements"].to_string();
        assert!(how.contains(".isl") || how.contains("with the data directory only"), "{moved}");
        assert_eq!(moved["is_postgresql"], false);
    }
}

fn load(server: &MariaDb) {
    let sql = format!(
        "set global innodb_flush_log_at_trx_commit = 0;
         create database shop; use shop;
         create table orders (id int primary key, pad char(200)) engine=innodb;
         insert into orders select seq, repeat('x', 200) from seq_1_to_{ROWS};
         create table `odd-name` (id int primary key) engine=innodb
           partition by range (id) (partition p0 values less than (10), partition p1 values less than maxvalue);
         insert into `odd-name` values (1), (20);
         create user monitor@localhost identified by '{PASSWORD}';
         grant process on *.* to monitor@localhost;
         grant select on performance_schema.* to monitor@localhost;
         create user stranger@localhost identified by '{PASSWORD}';"
    );
    server.query(&sql).expect("it is loaded");
}

/// Reads rows at random, statement by statement, until it is over; how often the server answered.
fn use_it(server: &MariaDb, is_over: &AtomicBool) -> u32 {
    let (mut state, mut answered) = (7_u64, 0);
    while !is_over.load(Ordering::Relaxed) {
        let statements = (0..500).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("select length(pad) from shop.orders where id = {};", 1 + (state >> 33) % ROWS)
        });
        // It is away for a while.
        match server.query(&statements.collect::<String>()) {
            Ok(_) => answered += 1,
            Err(_) => pause(Duration::from_millis(100)),
        }
    }
    answered
}

fn collect(dsn: &str, seconds: u32, file: &str) -> Command {
    let lasts = format!("{seconds}s");
    let mut command =
        tier0(&["advise", "collect", "--dsn", dsn, "--every", "1s", "--for", &lasts, "--out", file]);
    command.env("MYSQL_PWD", PASSWORD).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

/// Everything that a program printed.
fn said(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).expect("a file")
}

fn advised(files: &[&str]) -> Value {
    let arguments = [&["advise"], files, &["--json"]].concat();
    let advice = succeeded("advise", &tier0(&arguments).output().expect("it starts"));
    serde_json::from_str(&advice).expect("JSON")
}

fn objects(advice: &Value) -> &[Value] {
    advice["objects"].as_array().expect("objects")
}

fn share(object: &Value) -> f64 {
    object["io_share"].as_f64().unwrap_or(0.0)
}
