//! Alternatives to a database's array: files that say them, and what small ones give.

use tier0_lab::whatif::{WhatIf, answer, figures};

/// Two disks that an order-entry database keeps busy, and a flash drive.
const SMALL: &str = r#"
title = "small"

[database]
workload = "order-entry"
engine = "sql-server-2008"
scale = 4
buffer = "32MiB"
users = 8
log_size = "64MiB"

[host]
cores = 2
transaction_ms = 0.5
io_us = 20

[run]
warm_up = "1s"
measured = "10s"

[[system.drive]]
name = "disk{n}"
count = 2
model = "fc-15k-300gb"

[[system.drive]]
name = "cache"
model = "cx4-write-cache"

[[system.pool]]
name = "pool0"
drives = ["disk*"]
raid = "raid1"
set_size = 2
log = "64MiB"
log_drives = ["cache"]

[[system.volume]]
name = "data"
size = "1GiB"

[[alternative]]
name = "all in memory"
database.buffer = "1GiB"

[[alternative]]
name = "flash"
[[alternative.system.drive]]
name = "disk{n}"
model = "efd-73gb"
"#;

fn parse(text: &str) -> Result<WhatIf, String> {
    WhatIf::parse(text, "mine.toml").map_err(|error| error.to_string())
}

#[test]
fn more_memory_and_flash_bring_what_disks_hold_back() {
    let whatif = parse(SMALL).expect("a sound file");
    let reports = whatif.run(2, &|_| {}).expect("it runs");
    let figures = figures(&whatif, &reports);
    let [now, memory, flash] = &figures[..] else { panic!("three cases: {figures:?}") };
    assert!(now.limit.contains("drives"), "{now:?}");
    assert!(now.reads_per_transaction > 1.0 && now.read_ms > 3.0, "{now:?}");
    assert!(memory.over_now > 3.0 && memory.reads_per_transaction < 0.5, "{memory:?}");
    assert!(flash.over_now > 2.0 && flash.read_ms < 0.5 * now.read_ms, "{now:?} {flash:?}");
    // The same transactions need the same reads, whatever reads them.
    let ratio = flash.reads_per_transaction / now.reads_per_transaction;
    assert!((0.8..1.25).contains(&ratio), "{now:?} {flash:?}");
    let words = answer(&whatif, &reports);
    assert!(words[0].starts_with("now: ") && words[1].starts_with("all in memory: "), "{words:?}");
    let again = whatif.run(1, &|_| {}).expect("it runs");
    assert_eq!(
        format!("{:?}", again[2].database),
        format!("{:?}", reports[2].database),
        "a seed gives the same"
    );
}

#[test]
fn mistakes_are_named() {
    for (old, new, told) in [
        ("scale = 4", "scale = 40", "volume \"data\" has 1GiB, and what lies on it needs"),
        ("scale = 4", "scale = -4", "now: database.scale is out of range"),
        ("users = 8", "user = 8", "now: unknown field `user`"),
        (
            "workload = \"order-entry\"",
            "workload = \"tpcc\"",
            "there is no workload \"tpcc\"; use one of order-entry",
        ),
        (
            "engine = \"sql-server-2008\"",
            "engine = \"db4\"",
            "there is no database engine \"db4\"; use one of",
        ),
        (
            "users = 8",
            "users = 8\nplace = { stock = \"fast\" }",
            "there is no volume \"fast\"; use some of data",
        ),
        ("users = 8", "users = 8\nplace = { stok = \"data\" }", "\"stok\" is no object of the workload"),
        ("users = 8", "users = 8\nthink = \"soon\"", "database.think: "),
        ("cores = 2", "cores = 0", "host.cores is out of range"),
        ("raid = \"raid1\"", "raid = \"raid7\"", "now: system."),
        ("database.buffer = \"1GiB\"", "", "alternative \"all in memory\" changes nothing"),
        ("name = \"flash\"", "name = \"all in memory\"", "two alternatives named"),
        ("name = \"flash\"\n", "", "alternative 2 has no name"),
        ("[host]", "[hots]", "now: unknown field `hots`"),
        ("title = \"small\"", "title = ", "mine.toml, line 2"),
    ] {
        assert!(SMALL.contains(old), "{old}");
        let error = parse(&SMALL.replacen(old, new, 1)).expect_err(new);
        assert!(error.contains(told), "{new:?}: {error}");
    }
}

#[test]
fn the_example_can_be_run() {
    let text = include_str!("../../../../studies/whatif-example.toml");
    let whatif = WhatIf::parse(text, "studies/whatif-example.toml").expect("a sound file");
    assert!(whatif.cases.len() > 3);
}

/// Tables of one's own on the array of [`SMALL`], under an engine that writes every page by itself.
fn own(objects: &str) -> String {
    let (_, rest) = SMALL.split_once("log_size").expect("it is there");
    let rest = rest.split_once("database.buffer").map(|(before, _)| before).expect("an alternative");
    let rest = rest.rsplit_once("[[alternative]]").map(|(before, _)| before).expect("an alternative");
    format!(
        "[database]\nengine = \"oracle-11g\"\nusers = 8\nmeasured_tps = 100\nobject = [{objects}]\nlog_size{rest}\
         [[alternative]]\nname = \"memory\"\ndatabase.buffer = \"128MiB\"\n"
    )
}

#[test]
fn tables_of_ones_own_run_and_more_memory_helps_as_much_as_they_have_hot_pages() {
    let of = |law: &str| {
        let objects = format!(
            "{{ name = \"orders\", size = \"400MB\", reads = 3.5, writes = 1, law = \"{law}\" }}, \
             {{ name = \"temp\", size = \"20MB\", writes = 0.5 }}"
        );
        let whatif = parse(&own(&objects)).expect("valid");
        let reports = whatif.run(2, &|_| {}).expect("possible");
        let words = answer(&whatif, &reports).join(" ");
        assert!(words.contains("You measured 100: the model is off by"), "{words}");
        figures(&whatif, &reports)
    };
    let (uniform, skewed) = (of("uniform"), of("zipf 0.95"));
    let reads = uniform[0].reads_per_transaction;
    assert!((3.4..3.6).contains(&reads), "as counted: {reads}");
    let writes = uniform[0].writes_per_transaction;
    assert!((1.3..1.7).contains(&writes), "as counted: {writes}");
    let gain = |figures: &[tier0_lab::whatif::CaseFigures]| {
        figures[1].reads_per_transaction / figures[0].reads_per_transaction
    };
    assert!(gain(&skewed) < 0.75 * gain(&uniform), "{} {}", gain(&skewed), gain(&uniform));
}

#[test]
fn wrong_tables_of_ones_own_are_refused_with_field_and_remedy() {
    for (objects, fact) in [
        ("{ name = \"a\", size = \"1GB\" }", "no object has reads or writes"),
        ("{ name = \"a\", size = \"1GB\", reads = -1 }", "has reads or writes out of range"),
        ("{ name = \"a\", size = \"1GB\", reads = 1, law = \"home\" }", "use \"uniform\" or \"zipf THETA\""),
        ("{ name = \"a\", size = \"1GB\", reads = 1 }, { name = \"a\", size = \"1GB\" }", "is there twice"),
        ("{ name = \"a\", size = \"100GB\", reads = 1 }", "make it larger"),
        ("", "give either workload and scale, or object"),
    ] {
        let refused = parse(&own(objects)).expect_err(objects);
        assert!(refused.contains(fact), "{objects}: {refused}");
    }
}

#[test]
fn loads_and_databases_beside_take_their_part_of_the_array() {
    let beside = r#"
[[system.volume]]
name = "more"
size = "1GiB"

[[alternative]]
name = "a load beside"
beside = [{ name = "bulk", load = { volume = "more", block = "8KiB", read_percent = 60, users = 8 } }]

[[alternative]]
name = "the same database beside"
[[alternative.beside]]
name = "second"
database = { workload = "order-entry", engine = "sql-server-2008", scale = 4, buffer = "32MiB", users = 8, log_size = "64MiB", place = { "*" = "more" } }
"#;
    let (base, _) = SMALL.split_once("[[alternative]]").expect("alternatives");
    let base = base.replace("users = 8\n", "users = 8\nplace = { \"*\" = \"data\" }\n");
    let whatif = parse(&format!("{base}{beside}")).expect("valid");
    let reports = whatif.run(2, &|_| {}).expect("possible");
    let tps = |place: usize| reports[place].database.per_s;
    assert!(tps(1) < 0.8 * tps(0) && tps(2) < 0.8 * tps(0), "{} {} {}", tps(0), tps(1), tps(2));
    let (name, second) = &reports[2].beside[0];
    assert_eq!(name, "second");
    assert!((second.per_s / tps(2) - 1.0).abs() < 0.3, "both get as much: {} {}", second.per_s, tps(2));
    let both = reports[2].io.reads.ios() as f64;
    let own = reports[2].database.reads * reports[2].database.per_s * 10.0;
    assert!(both > 1.5 * own, "the reads of both are counted: {both} {own}");
    for (from, to, fact) in [
        ("\"*\" = \"more\"", "\"*\" = \"data\"", "where another database lies"),
        ("volume = \"more\"", "volume = \"less\"", "there is no volume \"less\""),
        ("load = {", "loads = {", "unknown field `loads`"),
    ] {
        let text = format!("{base}{beside}");
        assert!(text.contains(from), "{from}");
        let refused = parse(&text.replace(from, to)).expect_err(to);
        assert!(refused.contains(fact), "{to}: {refused}");
    }
}
