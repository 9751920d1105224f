//! `tier0 advise collect` from a real PostgreSQL under load, and what the samples say.

use std::path::Path;

use tier0_torture::postgres::{self, Cluster};
use tier0_torture::tools::output;

use crate::support::{directory, run, skipped, succeeded, tier0};

fn client(cluster: &Cluster, program: &str, arguments: &[&str]) -> String {
    let mut command = cluster.client(program);
    output(program, command.args(arguments).arg("postgres")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn samples_of_a_running_postgresql_are_collected_and_understood() {
    let programs: Vec<&str> = postgres::TOOLS.iter().map(|(tool, _)| *tool).collect();
    if skipped("samples_of_a_running_postgresql_are_collected_and_understood", true, &programs) {
        return;
    }
    let directory = directory();
    for path in directory.path().ancestors().take_while(|path| path.starts_with(env!("CARGO_TARGET_TMPDIR")))
    {
        run("chmod", &["a+rx", &path.display().to_string()]);
    }
    let cluster = Cluster::of(directory.path(), directory.path()).expect("there is a user");
    cluster.create().expect("made");
    let settings = ["track_io_timing=on", "track_wal_io_timing=on"].map(str::to_owned);
    let database = cluster.start_with(&settings).expect("started");
    // Some 150 MB, of which the server keeps 8 in its buffers.
    client(&cluster, "pgbench", &["--initialize", "--scale=10", "--quiet"]);

    let out = directory.path().join("samples.jsonl");
    let file = out.display().to_string();
    let dsn = format!("host={} user=postgres dbname=postgres", socket(directory.path()));
    let load = cluster.client("pgbench").args(["--client=4", "--time=8", "--no-vacuum", "postgres"]).spawn();
    let mut load = load.expect("pgbench starts");
    let arguments = ["advise", "collect", "--dsn", &dsn, "--every", "1s", "--for", "6s", "--out", &file];
    let told = succeeded("collect", &tier0(&arguments).output().expect("it starts"));
    assert!(told.contains("samples"), "{told}");
    // A second run goes on in the same file, behind a line that a kill has cut off.
    let mut text = std::fs::read_to_string(&out).expect("samples");
    let lines = text.lines().count();
    assert!((2..=7).contains(&lines), "{lines} samples in 6 s");
    text.push_str("{\"tier0\":\"postgresql-sam");
    std::fs::write(&out, text).expect("a file");
    let arguments = ["advise", "collect", "--dsn", &dsn, "--every", "1s", "--for", "1s", "--out", &file];
    succeeded("collect", &tier0(&arguments).output().expect("it starts"));
    assert!(load.wait().expect("it ends").success());
    carried_out(&cluster, directory.path(), &dsn);
    database.stop().expect("in good order");

    let advice = succeeded("advise", &tier0(&["advise", &file, "--json"]).output().expect("it starts"));
    let advice: serde_json::Value = serde_json::from_str(&advice).expect("JSON");
    let objects = advice["objects"].as_array().expect("objects");
    let busiest = objects.iter().max_by(|a, b| share(a).total_cmp(&share(b))).expect("there are tables");
    let name = busiest["own_name"].as_str().expect("a name");
    assert!(name.starts_with("pgbench_accounts"), "accounts are read at random: {advice}");
    assert!(busiest["ms_per_io"].is_f64(), "track_io_timing is on: {busiest}");
    assert!(advice["busy"].is_f64() && advice["seconds"].as_f64() > Some(3.0), "{advice}");
    let plan = tier0(&["advise", "plan", &file, "--flash", "1GB"]).output().expect("it starts");
    let plan = succeeded("plan", &plan);
    // The rows lie in the host's page cache. Whether reads from there wait long enough to move a table depends on the host.
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["tier0"], "placement-plan");
    assert_eq!(plan["database"]["database"], "postgres");
    assert!(plan["database"]["system"].is_string(), "a superuser may read it: {plan}");
    for moved in plan["moves"].as_array().expect("a list") {
        let text = moved.to_string();
        assert!(text.contains("alter table") || text.contains("alter index"), "{text}");
    }
}

/// A plan's table and index go to a tablespace, once.
fn carried_out(cluster: &Cluster, directory: &Path, dsn: &str) {
    let moved = |kind: &str, name: &str| {
        serde_json::json!({
            "object": format!("public.{name}"), "database": "public", "name": name, "is_postgresql": true,
            "kind": kind, "bytes": 1e8, "statements": [],
        })
    };
    let mut plan = serde_json::json!({
        "tier0": "placement-plan", "version": 2, "flash_bytes": 1e9, "used_bytes": 2e8, "before": {}, "tablespace": "flash",
        "moves": [moved("table", "pgbench_accounts"), moved("index", "pgbench_accounts_pkey")],
        "left_out": [], "answer": [],
    });
    let file = directory.join("plan.json");
    // Of another database: nothing is done.
    plan["database"] = serde_json::json!({ "host": "db1", "port": 5432, "database": "shop", "system": "1" });
    std::fs::write(&file, plan.to_string()).expect("a file");
    let other = tier0(&["advise", "apply", &file.display().to_string(), "--dsn", dsn, "--yes"]).output();
    let other = other.expect("it starts");
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(other.status.code() == Some(2), "{said}");
    assert!(said.contains("the plan is of database \"shop\"") && said.contains("--other-database"), "{said}");
    if let Some(fields) = plan.as_object_mut() {
        fields.remove("database");
    }
    std::fs::write(&file, plan.to_string()).expect("a file");
    let file = file.display().to_string();
    let apply = || tier0(&["advise", "apply", &file, "--dsn", dsn, "--yes"]).output().expect("it starts");
    let refused = apply();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("there is no tablespace \"flash\""), "{said}");
    let place = directory.join("flash");
    std::fs::create_dir(&place).expect("a directory");
    run("chown", &["postgres", &place.display().to_string()]);
    client(
        cluster,
        "psql",
        &["--command", &format!("create tablespace flash location '{}'", place.display())],
    );
    assert!(succeeded("apply", &apply()).contains("moved 2 objects to tablespace flash;"));
    assert!(
        succeeded("apply", &apply()).contains("moved 0 objects to tablespace flash, 2 were there before")
    );
}

fn share(object: &serde_json::Value) -> f64 {
    object["io_share"].as_f64().unwrap_or(0.0)
}

fn socket(directory: &Path) -> String {
    directory.join("pg").display().to_string()
}
