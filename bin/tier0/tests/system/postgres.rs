//! A real database on a real array: PostgreSQL on ext4 on a loop device on nbdfuse on tier0's NBD export of a RAID 10
//! volume. Load, restart of everything, the same rows.

use tier0_torture::mount::{self, Mounted};
use tier0_torture::postgres::{self, Cluster};
use tier0_torture::tools::output;

use crate::support::{create, describe, directory, run, serve, skipped, stop, uri};

/// What the accounts and the history hold, which must agree.
fn counts(cluster: &Cluster) -> Vec<String> {
    let query = |sql: &str| cluster.query(sql).unwrap_or_else(|error| panic!("{error}"));
    let tables = ["accounts", "branches", "tellers", "history"];
    let mut counts: Vec<String> =
        tables.iter().map(|table| query(&format!("select count(*) from pgbench_{table}"))).collect();
    counts.push(query("select sum(abalance) from pgbench_accounts"));
    counts.push(query("select sum(delta) from pgbench_history"));
    counts
}

/// Runs a client of the database.
fn client(cluster: &Cluster, program: &str, arguments: &[&str]) -> String {
    let mut command = cluster.client(program);
    output(program, command.args(arguments).arg("postgres")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn postgresql_keeps_its_rows_on_a_raid10_volume() {
    let programs: Vec<&str> =
        [&mount::TOOLS[..], &postgres::TOOLS].concat().iter().map(|(tool, _)| *tool).collect();
    if skipped("postgresql_keeps_its_rows_on_a_raid10_volume", true, &programs) {
        return;
    }
    let directory = directory();
    // PostgreSQL's user must be able to reach its socket and the mount point.
    for path in directory.path().ancestors().take_while(|path| path.starts_with(env!("CARGO_TARGET_TMPDIR")))
    {
        run("chmod", &["a+rx", &path.display().to_string()]);
    }
    let array = describe(directory.path(), "raid10", 4, 4, "400MiB");
    create(&array);

    let server = serve(&array);
    let mounted = Mounted::new(directory.path(), &uri(directory.path()), true).expect("mounted");
    let cluster = Cluster::of(mounted.point(), directory.path()).expect("there is a user");
    cluster.create().expect("made");
    let database = cluster.start().expect("started");
    client(&cluster, "pgbench", &["--initialize", "--scale=2", "--quiet"]);
    let report = client(&cluster, "pgbench", &["--client=4", "--transactions=250", "--no-vacuum"]);
    assert!(report.contains("1000/1000"), "all transactions were processed:\n{report}");
    let before = counts(&cluster);
    assert_eq!(before[0], "200000");
    assert_eq!(before[3], "1000");
    assert_eq!(before[4], before[5], "what the accounts hold is what the history says");
    database.stop().expect("in good order");
    mounted.unmount().expect("unmounted");
    stop(server);

    let server = serve(&array);
    let mounted = Mounted::new(directory.path(), &uri(directory.path()), false).expect("mounted");
    let database = cluster.start().expect("started");
    assert_eq!(counts(&cluster), before);
    cluster.query("create extension if not exists amcheck").expect("it is there");
    client(&cluster, "pg_amcheck", &["--heapallindexed"]);
    database.stop().expect("in good order");
    mounted.unmount().expect("unmounted");
    stop(server);
}
