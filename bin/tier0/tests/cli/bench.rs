//! `tier0 bench predict` and `tier0 bench compare`, which need no database, and the server of a scene.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tier0_programs::postgres::{Cluster, TOOLS};
use tier0_programs::tools;

use crate::support::{directory, file, refuse, succeed, text};

const RUN: &str = r#"
[database]
workload = "order-entry"
engine = "postgresql-15"
scale = 2
buffer = "16MiB"
users = 4
choices = { item = "uniform" }
[host]
cores = 2
transaction_ms = 0.5
io_us = 20
page_cache = "8MiB"
[run]
warm_up = "100ms"
measured = "500ms"
"#;

const ARRAY: &str = r#"
[array]
name = "a"
[[drive]]
name = "ssd{n}"
count = 2
model = "ssd-sata"
[[pool]]
name = "pool0"
raid = "raid1"
set_size = 2
[[volume]]
name = "lun0"
size = "4GiB"
"#;

/// What `tier0 lab profile` prints of a storage that takes 2 ms for a read.
fn profile() -> Value {
    let sample = |outstanding: u32| {
        json!({ "outstanding": outstanding, "iops": f64::from(outstanding) * 500.0, "megabytes_per_s": 1.0, "latency_ms": 2.0,
            "read_latency_ms": 2.0, "write_latency_ms": 1.0, "p99_ms": 3.0 })
    };
    json!({ "target": "disk.img", "latency_limit_ms": 20.0, "target_bytes": 1_000_000_000,
        "found": { "at_limit": sample(8), "end": "never_passed", "probes": [sample(1), sample(8)] } })
}

/// What `tier0 bench run --json` prints of a run that began then.
fn report(started: &str, array_reads: f64) -> Value {
    json!({
        "version": 1, "workload": "order-entry", "database": "database \"b\"", "server": "PostgreSQL 15", "started": started,
        "warehouses": 2, "buffer_bytes": 16 << 20,
        "settings": { "users": 4, "duration_s": 60.0, "ramp_s": 5.0, "rate": null, "think": "none", "items": "uniform",
            "home": "fixed", "mix": "new-order=43.48,payment=43.48,order-status=4.35,delivery=4.35,stock-level=4.35",
            "isolation": "read-committed", "seed": 1 },
        "seconds": 60.0, "ended_early": false, "nopm": 2500.0, "commits_per_minute": 6000.0,
        "response_ms": { "mean": 40.0, "p50": 30.0, "p95": 100.0, "p99": 200.0, "max": 300.0 },
        "transactions": [{ "kind": "payment", "committed": 6000, "rolled_back": 0, "serialization_failures": 0, "deadlocks": 0,
            "share": 1.0, "response_ms": null }],
        "retries": 0, "districts_without_order": 0,
        "per_transaction": { "database_reads": 6.0, "array_reads": array_reads, "processor_ms": 0.8, "wal_bytes": 9000.0 },
        "database_io": { "block_bytes": 8192, "transactions": 6000, "commits": 6000, "reads": 36_000, "hits": 1,
            "read_ms": null, "writes": null,
            "wal": { "bytes": 60_000_000, "records": 1, "full_page_images": 1000, "writes": 1, "syncs": 1 },
            "objects": [
                { "name": "stock", "size_bytes": 1, "grown_bytes": 0, "reads": 18_000, "hits": 1 },
                { "name": "stock_by_age", "index_of": "stock", "size_bytes": 1, "grown_bytes": 0, "reads": 6000, "hits": 1 },
            ],
            "not_measured": [] },
        "array_io": null, "processor": null, "not_measured": [], "series": [],
    })
}

/// A file with a JSON document.
fn document(at: &Path, name: &str, value: &Value) -> PathBuf {
    file(at, name, &value.to_string())
}

#[test]
fn a_prediction_is_compared_with_the_run_that_follows() {
    let directory = directory();
    let at = directory.path();
    let (run, array) = (file(at, "run.toml", RUN), file(at, "array.toml", ARRAY));
    let told = succeed(&["bench", "predict", text(&run), "--array", text(&array)]);
    let predicted: Value = serde_json::from_str(&told).expect("JSON");
    let tps = predicted["figures"]["tps"].as_f64().expect("a rate");
    assert!(tps > 100.0, "{predicted}");
    let reads = &predicted["figures"];
    assert!(
        reads["database_reads"].as_f64() > reads["storage_reads"].as_f64(),
        "the page cache has some: {reads}"
    );
    assert_eq!(predicted["settings"]["items"], "uniform");
    let prediction = file(at, "prediction.json", &told);
    let after = document(at, "after.json", &report("2999-01-01 00:00:00+00", 5.0));
    let told = succeed(&["bench", "compare", text(&prediction), text(&after)]);
    for words in
        ["before the run", "has the settings that were predicted", "stock_by_age", "not modelled", "WAL per"]
    {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    let judged = succeed(&["bench", "compare", text(&prediction), text(&after), "--json"]);
    let judged: Value = serde_json::from_str(&judged).expect("JSON");
    assert_eq!((judged["made"].as_str(), &judged["settings"]), (Some("before"), &json!([])));
    let rate = &judged["figures"][0];
    assert_eq!(
        (rate["name"].as_str(), rate["measured"].as_f64()),
        (Some("transactions per second"), Some(100.0))
    );
    let error = rate["error_percent"].as_f64().expect("an error");
    assert!((error - (tps / 100.0 - 1.0) * 100.0).abs() < 1e-6, "{rate}");
    assert_eq!(judged["objects"][0]["name"], "stock");
}

#[test]
fn what_is_no_prediction_of_the_run_is_said() {
    let directory = directory();
    let at = directory.path();
    let (run, storage) = (file(at, "run.toml", RUN), document(at, "profile.json", &profile()));
    let told = succeed(&["bench", "predict", text(&run), "--profile", text(&storage)]);
    let prediction = file(at, "prediction.json", &told);
    let mut other = report("2001-01-01 00:00:00+00", 5.0);
    other["warehouses"] = json!(10);
    other["settings"]["items"] = json!("nurand");
    let other = document(at, "other.json", &other);
    let told = succeed(&["bench", "compare", text(&prediction), text(&other)]);
    for words in [
        "NOT PREDICTED BEFORE THE RUN",
        "ANOTHER RUN",
        "warehouses: predicted for 2, run with 10",
        "items: predicted for uniform, run with nurand",
    ] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    assert!(!told.contains("users: predicted"), "{told}");
    let swapped = ["bench", "compare", text(&other), text(&prediction)];
    refuse(&swapped, 2, &["prediction.json is a prediction", "name it first"]);
}

#[test]
fn a_prediction_that_was_changed_is_refused() {
    let directory = directory();
    let at = directory.path();
    let (run, storage) = (file(at, "run.toml", RUN), document(at, "profile.json", &profile()));
    let told = succeed(&["bench", "predict", text(&run), "--profile", text(&storage)]);
    let measured = document(at, "run.json", &report("2999-01-01 00:00:00+00", 5.0));
    let mut prediction: Value = serde_json::from_str(&told).expect("JSON");
    // Another layout of the same content is no change.
    let same = document(at, "same.json", &prediction);
    succeed(&["bench", "compare", text(&same), text(&measured)]);
    prediction["made"] = json!("2000-01-01T00:00:00Z");
    let changed = document(at, "changed.json", &prediction);
    refuse(
        &["bench", "compare", text(&changed), text(&measured)],
        3,
        &["changed.json was changed", "predict again"],
    );
    prediction["version"] = json!(99);
    let newer = document(at, "newer.json", &prediction);
    refuse(&["bench", "compare", text(&newer), text(&measured)], 2, &["newer.json", "version is 99"]);
}

#[test]
fn a_run_in_memory_brings_processor_time_and_log() {
    let directory = directory();
    let at = directory.path();
    // Images of pages are not in a run in memory; few transactions would have another mix.
    let plain = RUN.replacen("[host]", "settings = { page_images = 0 }\n[host]", 1);
    let plain = plain.replacen("measured = \"500ms\"", "measured = \"20s\"", 1);
    let (run, storage) = (file(at, "run.toml", &plain), document(at, "profile.json", &profile()));
    let memory = document(at, "memory.json", &report("2026-01-01 00:00:00+00", 0.0));
    let arguments =
        ["bench", "predict", text(&run), "--profile", text(&storage), "--memory-run", text(&memory)];
    let predicted: Value = serde_json::from_str(&succeed(&arguments)).expect("JSON");
    assert_eq!(predicted["memory_run"]["transaction_ms"], 0.8);
    assert_eq!(predicted["case"]["host"]["transaction_ms"], 0.8);
    // 60 MB without a thousand images of pages, in 6,000 transactions.
    let wal = (60e6 - 1000.0 * 8192.0) / 6000.0;
    assert_eq!(predicted["memory_run"]["wal_bytes"].as_f64(), Some(wal));
    let of_log = predicted["figures"]["wal_bytes"].as_f64().expect("the log");
    assert!((of_log / wal - 1.0).abs() < 0.1, "{of_log} instead of {wal}");
    let on_disk = document(at, "disk.json", &report("2026-01-01 00:00:00+00", 3.0));
    let arguments =
        ["bench", "predict", text(&run), "--profile", text(&storage), "--memory-run", text(&on_disk)];
    refuse(&arguments, 2, &["disk.json was no run in memory", "more memory"]);
}

#[test]
fn what_cannot_be_predicted_says_why() {
    let directory = directory();
    let at = directory.path();
    let run = file(at, "run.toml", RUN);
    let predict =
        |arguments: &[&str], words: &[&str]| refuse(&[&["bench", "predict"], arguments].concat(), 2, words);
    predict(&[text(&run)], &["run.toml", "--array or --profile"]);
    predict(&["/nowhere.toml"], &["/nowhere.toml", "check that it exists"]);
    let letter = file(at, "letter.json", "Dear all,");
    predict(&[text(&run), "--profile", text(&letter)], &["letter.json", "tier0 lab profile"]);
    predict(&[text(&run), "--profile", text(&letter), "--memory-run", text(&letter)], &["letter.json"]);
    let storage = document(at, "profile.json", &profile());
    let wrong = |name: &str, from: &str, to: &str, words: &[&str]| {
        let wrong = file(at, name, &RUN.replace(from, to));
        predict(&[text(&wrong), "--profile", text(&storage)], words);
    };
    let brokerage = RUN.replace("order-entry", "brokerage").replace("choices = { item = \"uniform\" }\n", "");
    let brokerage = file(at, "a.toml", &brokerage);
    predict(&[text(&brokerage), "--profile", text(&storage)], &["a.toml", "only \"order-entry\" can be run"]);
    wrong(
        "b.toml",
        "users = 4",
        "users = 4\nrate = 5\nthink = \"1s\"",
        &["database.rate", "leave out think"],
    );
    wrong("c.toml", "[run]", "[[alternative]]\nname = \"x\"\n[run]", &["one run"]);
    wrong("d.toml", "[run]", "[system]\n[run]", &["d.toml", "leave out one of them"]);
    wrong("e.toml", "transaction_ms = 0.5", "", &["transaction_ms"]);
    let without_models =
        file(at, "real.toml", &ARRAY.replace("model = \"ssd-sata\"", "path = \"d{n}.img\"\nsize = \"8GiB\""));
    predict(&[text(&run), "--array", text(&without_models)], &["has no model"]);
    let both =
        ["bench", "predict", text(&run), "--profile", text(&storage), "--array", text(&without_models)];
    refuse(&both, 2, &["--array", "--profile"]);
    assert!(succeed(&["bench", "predict", "--example"]).contains("[database]"));
}

/// Sizes belong to loads, and what is missing is said before any database is asked.
#[test]
fn sizes_of_another_load_are_refused() {
    let prepare = |arguments: &[&str], words: &[&str]| {
        let all = [&["bench", "prepare", "--dsn", "host=/nowhere"], arguments].concat();
        refuse(&all, 2, words);
    };
    prepare(
        &["--scale-factor", "1"],
        &["--scale-factor is a size of decision-support", "--load decision-support"],
    );
    prepare(&["--load", "brokerage", "--warehouses", "1"], &["the load is brokerage"]);
    prepare(&["--load", "brokerage"], &["--customers N"]);
    prepare(&["--load", "brokerage", "--customers", "1500"], &["multiple of 1000"]);
    prepare(&["--load", "brokerage", "--customers", "1000", "--days", "301"], &["1 to 300 days"]);
    prepare(&["--load", "decision-support", "--scale-factor", "0"], &["0.01 to 1000"]);
    prepare(&["--load", "tpcc"], &["order-entry, brokerage, decision-support"]);
    let directory = directory();
    let page = directory.path().join("none/run.html");
    refuse(&["bench", "run", "--dsn", "host=/nowhere", "--html", text(&page)], 2, &["run.html"]);
}

/// Reports of other loads have no figures of order entry, and are compared by those that they have.
#[test]
fn reports_of_other_loads_are_compared() {
    let directory = directory();
    let at = directory.path();
    let of = |name: &str, rate: f64| {
        let mut scan = report("2026-01-01 00:00:00+00", 5.0);
        scan["workload"] = json!("decision-support");
        scan["scale"] = json!("scale factor 1");
        scan["queries_per_hour"] = json!(rate);
        let fields = scan.as_object_mut().expect("an object");
        ["warehouses", "nopm", "districts_without_order"]
            .iter()
            .for_each(|field| drop(fields.remove(*field)));
        document(at, name, &scan)
    };
    let (first, second) = (of("first.json", 100.0), of("second.json", 200.0));
    let told = succeed(&["bench", "compare", text(&first), text(&second)]);
    assert!(told.contains("queries per hour") && told.contains("2.000") && !told.contains("NOPM"), "{told}");
    let orders = document(at, "orders.json", &report("2026-01-01 00:00:00+00", 5.0));
    let told = succeed(&["bench", "compare", text(&orders), text(&first)]);
    assert!(told.contains("load: order-entry and decision-support"), "{told}");
    let (run, storage) = (file(at, "run.toml", RUN), document(at, "profile.json", &profile()));
    let memory = ["bench", "predict", text(&run), "--profile", text(&storage), "--memory-run", text(&first)];
    refuse(&memory, 2, &["first.json", "order-entry"]);
}

/// "The same settings" was said of runs on other machines and arrays, and text of a file commanded the terminal.
#[test]
fn what_makes_runs_incomparable_is_said() {
    let directory = directory();
    let at = directory.path();
    let first = document(at, "first.json", &report("2026-01-01 00:00:00+00", 5.0));
    let mut other = report("2026-01-01 00:00:00+00", 5.0);
    other["ended_early"] = json!(true);
    other["seconds"] = json!(7.0);
    other["settings"]["isolation"] = json!("serializable");
    other["server"] = json!("PostgreSQL \u{1b}[31m15");
    let volume = json!({ "name": "lun0", "reads": 1, "read_bytes": 1, "read_p95_ms": null, "writes": 1, "write_bytes": 1,
        "write_p95_ms": null, "flushes": 1, "errors": 0 });
    other["array_io"] = json!({ "volumes": [volume] });
    let second = document(at, "second.json", &other);
    let told = succeed(&["bench", "compare", text(&first), text(&second)]);
    for words in [
        "the second run ended early, after 7 s",
        "isolation: read-committed and serializable",
        "volumes of the array: none and lun0",
        "\\u{1b}[31m",
    ] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    assert!(!told.contains('\u{1b}'), "{told}");
    other["version"] = json!(99);
    let newer = document(at, "newer.json", &other);
    refuse(&["bench", "compare", text(&first), text(&newer)], 2, &["newer.json", "form 99"]);
}

/// Every user of the machine got a superuser's session, and with that a shell as the user `postgres`.
#[test]
fn the_server_of_a_scene_is_closed_to_other_users() {
    if !rustix::process::geteuid().is_root() || tools::need(&TOOLS).is_err() {
        eprintln!("skipped the_server_of_a_scene_is_closed_to_other_users: needs root and PostgreSQL");
        return;
    }
    let directory = directory();
    for path in directory.path().ancestors().take_while(|path| path.starts_with(env!("CARGO_TARGET_TMPDIR")))
    {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    }
    let cluster = Cluster::of(directory.path(), directory.path()).expect("there is a user");
    cluster.create().expect("made");
    let server = cluster.start().expect("started");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(cluster.socket()), mode(&cluster.socket().join(".s.PGSQL.5432"))), (0o700, 0o700));
    let query = |user: Option<u32>| {
        let mut psql = tools::command("psql");
        psql.arg("--host").arg(cluster.socket()).args([
            "--username=postgres",
            "--command",
            "select 1",
            "postgres",
        ]);
        psql.current_dir("/");
        user.iter().for_each(|user| {
            psql.uid(*user).gid(*user);
        });
        tools::output("psql", &mut psql)
    };
    let refused = query(Some(65_534)).expect_err("another user is refused").to_string();
    assert!(refused.contains("Permission denied"), "{refused}");
    query(None).expect("root reaches it");
    cluster.query("select 1").expect("its own user reaches it");
    server.stop().expect("in good order");
}
