//! `tier0 advise`.

use std::path::Path;

use crate::support::{directory, file, json, refuse, run, run_in, succeed, text};

const SAMPLES: &str = include_str!("../../../../crates/advisor/tests/it/samples/postgres.jsonl");

const MARIADB: &str = include_str!("../../../../crates/advisor/tests/it/samples/mariadb.jsonl");

/// The example, and the arguments that name its files.
fn example(at: &Path) -> Vec<String> {
    succeed(&["advise", "--example", text(&at.join("example"))]);
    ["before.csv", "after.csv", "perfmon.csv"]
        .map(|name| text(&at.join("example").join(name)).to_owned())
        .to_vec()
}

fn with<'a>(verb: &[&'a str], files: &'a [String], options: &[&'a str]) -> Vec<&'a str> {
    verb.iter().copied().chain(files.iter().map(String::as_str)).chain(options.iter().copied()).collect()
}

#[test]
fn the_example_is_answered_in_words_json_and_a_page() {
    let directory = directory();
    let files = example(directory.path());
    let page = directory.path().join("advice.html");
    let site = text(&directory.path().join("example/site.toml")).to_owned();
    let options = ["--flash", "400GB", "--site", &site, "--html", text(&page)];
    let told = succeed(&with(&["advise"], &files, &options));
    for word in [
        "Storage limits",
        "customers",
        "orders_log",
        "log: sequential",
        "Rules that fire",
        "small-read-table",
    ] {
        assert!(told.contains(word), "{word} is missing: {told}");
    }
    let found = json(&with(&["advise"], &files, &["--flash", "400GB", "--site", &site]));
    assert_eq!(found["objects"][0]["own_name"], "customers");
    assert_eq!(found["objects"][0]["verdict"], "flash");
    let gain = &found["chosen"]["gain"];
    let of = |name: &str| gain[name].as_f64().expect("a gain");
    assert!(of("low") <= of("expected") && of("expected") <= of("high") && of("expected") > 0.5, "{gain}");
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("customers") && page.contains("not measured"), "sizes and rules are in it");
    for other in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(other), "the page asks another place: {other}");
    }
}

#[test]
fn a_plan_has_statements_and_fits() {
    let directory = directory();
    let samples = file(directory.path(), "shop.jsonl", SAMPLES);
    let plan = json_of(&succeed(&["advise", "plan", text(&samples), "--flash", "85GB"]));
    assert_eq!(
        plan["moves"][0]["statements"][0],
        "alter table \"public\".\"orders\" set tablespace \"flash\";"
    );
    assert!(plan["used_bytes"].as_f64() <= plan["flash_bytes"].as_f64());
    let sql =
        succeed(&["advise", "plan", text(&samples), "--flash", "85GB", "--tablespace", "fast", "--sql"]);
    assert!(sql.lines().any(|line| line.ends_with("set tablespace \"fast\";")), "{sql}");
    let small = json_of(&succeed(&["advise", "plan", text(&samples), "--flash", "1GB"]));
    assert_eq!(small["moves"].as_array().map(Vec::len), Some(0), "{small}");
    assert!(small["left_out"].to_string().contains("larger than the flash"), "{small}");
    refuse(&["advise", "plan", text(&samples)], 2, &["--flash"]);
}

fn json_of(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn what_cannot_be_read_is_named() {
    let directory = directory();
    let letter = file(directory.path(), "letter.txt", "Dear all,\n");
    refuse(&["advise", text(&letter)], 2, &["letter.txt", "not recognised"]);
    refuse(&["advise", "/nowhere.csv"], 2, &["/nowhere.csv"]);
    let csv = file(directory.path(), "f.csv", "name,num_of_reads,num_of_writes\na,1,2\nb,x,2\n");
    refuse(&["advise", text(&csv)], 2, &["f.csv, line 3", "num_of_reads"]);
    let good = file(directory.path(), "g.csv", "name,num_of_reads,num_of_writes\na,1,2\n");
    refuse(&["advise", text(&good), "--flash", "0"], 2, &["--flash"]);
    refuse(&["advise", text(&good), "--drive", "sas-10k-900gb-sff"], 2, &["no flash drive"]);
    let site = file(directory.path(), "site.toml", "spindels = 4\n");
    refuse(&["advise", text(&good), "--site", text(&site)], 2, &["site.toml, line 1", "docs/advise.md"]);
    assert!(succeed(&["advise", text(&good)]).contains("not measured"));
    refuse(&["advise", "collect", "--dsn", "password=s3cret x", "--out", "/nowhere/f"], 2, &["--dsn"]);
    let taken = run_in(directory.path(), &["advise", "collect", "--dsn", "host=/nowhere", "--out", "g.csv"]);
    assert_eq!(taken.code, Some(2), "{}", taken.stderr);
    let away = run_in(
        directory.path(),
        &["advise", "collect", "--dsn", "host=/nowhere user=u", "--out", "new.jsonl"],
    );
    assert_eq!(away.code, Some(1), "{}", away.stderr);
    assert!(away.stderr.contains("cannot connect") && away.stderr.contains("; "), "{}", away.stderr);
}

#[test]
fn a_plan_is_checked_against_what_came_of_it() {
    let directory = directory();
    let samples = file(directory.path(), "shop.jsonl", SAMPLES);
    let plan = succeed(&["advise", "plan", text(&samples), "--flash", "85GB"]);
    let plan = file(directory.path(), "plan.json", &plan);
    // The same samples again: nothing was moved.
    let told = succeed(&["advise", "check", text(&plan), text(&samples)]);
    for word in
        ["The gain is less than predicted", "measured +0 %", "take nearly as long as before", "public.orders"]
    {
        assert!(
            told.split_whitespace().collect::<Vec<_>>().join(" ").contains(word),
            "{word} is missing: {told}"
        );
    }
    let found = json(&["advise", "check", text(&plan), text(&samples)]);
    assert_eq!(found["measured"], 0.0);
    assert_eq!(found["within"], false);
    let other = file(directory.path(), "other.json", "{}");
    refuse(
        &["advise", "check", text(&other), text(&samples)],
        2,
        &["other.json", "no placement plan", "tier0 advise plan"],
    );
}

#[test]
fn a_plan_of_another_database_is_not_carried_out() {
    let directory = directory();
    let files = example(directory.path());
    let plan = succeed(&with(&["advise", "plan"], &files, &["--flash", "400GB", "--directory", "F:/fast"]));
    let plan = file(directory.path(), "plan.json", &plan);
    let apply = ["advise", "apply", text(&plan), "--dsn", "host=/nowhere"];
    refuse(&apply, 2, &["not of a PostgreSQL", "--sql"]);
    refuse(&[&apply[..], &["--pin"]].concat(), 2, &["--array", "--volume"]);
}

/// Statements are printed, and nothing is carried out.
#[test]
fn a_plan_of_a_mariadb_is_carried_out_by_hand() {
    let directory = directory();
    let samples = file(directory.path(), "shop.jsonl", MARIADB);
    let plan = ["advise", "plan", text(&samples), "--flash", "100GB", "--directory", "/flash"];
    let sql = succeed(&[&plan[..], &["--sql"]].concat());
    assert!(sql.lines().all(|line| line.starts_with("-- ")), "no statement does it: {sql}");
    for word in ["stop the server", "'/flash/shop/orders.ibd'", "'shop/orders.isl'"] {
        assert!(sql.contains(word), "{word} is missing: {sql}");
    }
    let plan = file(directory.path(), "plan.json", &succeed(&plan));
    let apply = ["advise", "apply", text(&plan), "--dsn", "mysql://root:s3cret@localhost/"];
    refuse(&apply, 2, &["not of a PostgreSQL", "--sql"]);
    let array = directory.path().join("array.toml");
    let pin = ["--pin", "--array", text(&array), "--volume", "data"];
    refuse(&[&apply[..], &pin].concat(), 2, &["--pin follows the files of a PostgreSQL only", "--sql"]);
    // A plan of a PostgreSQL, and the address of another server.
    let samples = file(directory.path(), "pg.jsonl", SAMPLES);
    let plan = succeed(&["advise", "plan", text(&samples), "--flash", "85GB"]);
    let plan = file(directory.path(), "pg.json", &plan);
    let apply = ["advise", "apply", text(&plan), "--dsn", "mysql://root:s3cret@localhost/"];
    refuse(&apply, 2, &["--dsn names a MySQL", "--sql"]);
}

#[test]
fn a_mysql_that_is_not_there_is_named_without_the_password() {
    let directory = directory();
    let out = directory.path().join("out.jsonl");
    let collect = |dsn: &str, code: i32| {
        let told = run(&["advise", "collect", "--dsn", dsn, "--out", text(&out)]);
        assert_eq!(told.code, Some(code), "{}", told.stderr);
        assert!(!told.stderr.contains("s3cret") && told.stderr.contains("; "), "{}", told.stderr);
        told.stderr
    };
    let away = collect("mysql://u:s3cret@localhost/?socket=/nowhere/mysqld.sock", 1);
    assert!(away.contains("cannot connect to the database"), "{away}");
    let wrong = collect("mysql://u:s3cret@localhost/?sockets=s3cret", 2);
    assert!(wrong.contains("--dsn is not understood"), "{wrong}");
}

/// Samples of a MariaDB on the array of the example.
#[test]
fn the_twin_confirms_a_plan_of_a_mariadb() {
    let directory = directory();
    example(directory.path());
    let samples = file(directory.path(), "shop.jsonl", MARIADB);
    let (now, case) = (directory.path().join("example/now.toml"), directory.path().join("case.toml"));
    let options = ["--flash", "100GB", "--array", text(&now), "--simulated", "1s", "--whatif", text(&case)];
    let plan = json_of(&succeed(&[&["advise", "plan", text(&samples)], &options[..]].concat()));
    assert!(plan["twin"]["gain"]["expected"].as_f64() > Some(0.1), "{plan}");
    assert_eq!(plan["twin"]["sessions_measured"], true);
    assert!(std::fs::read_to_string(case).expect("the case").contains("engine = \"innodb\""));
}

/// The load of the example on its array, briefly.
#[test]
fn the_twin_confirms_a_plan_and_writes_the_array() {
    let directory = directory();
    let files = example(directory.path());
    let at = |name: &str| directory.path().join(name);
    let now = at("example/now.toml");
    let (next, case) = (at("next.toml"), at("case.toml"));
    let options = ["--cores", "16", "--flash", "400GB", "--array", text(&now), "--simulated", "1s"];
    let written = ["--next", text(&next), "--whatif", text(&case)];
    let told = run(&with(&["advise", "plan"], &files, &[&options[..], &written[..]].concat()));
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let plan = json_of(&told.stdout);
    let (twin, gain) = (&plan["twin"], &plan["twin"]["gain"]);
    let of = |name: &str| gain[name].as_f64().expect("a gain");
    assert!(of("low") <= of("expected") && of("expected") <= of("high") && of("expected") > 0.2, "{twin}");
    let read_ms = |which: &str| twin[which]["read_ms"].as_f64().expect("a time");
    assert!(read_ms("next") < 0.7 * read_ms("now"), "{twin}");
    assert_eq!(twin["sessions_measured"], true);
    for word in ["The twin", "Mean value analysis says", "were measured", "read_cache = false"] {
        assert!(told.stderr.contains(word), "{word} is missing: {}", told.stderr);
    }
    assert_eq!(plan["settings"][0]["volume"], "log");
    // The array of the plan is one, and what is there stays where it is.
    assert!(succeed(&["check", text(&next)]).contains("flash"));
    let next = std::fs::read_to_string(next).expect("the array file");
    for line in ["name = \"flash\"", "model = \"ssd-sata\"", "name = \"log\"", "name = \"data\""] {
        assert!(next.contains(line), "{line} is missing: {next}");
    }
    let log_drives = next.lines().find(|line| line.starts_with("log_drives")).expect("they are said");
    assert!(
        log_drives.contains("cache") && !log_drives.contains("flash"),
        "the write log stays: {log_drives}"
    );
    assert!(std::fs::read_to_string(case).expect("the case").contains("[[alternative]]"));
}

#[test]
fn what_the_twin_lacks_is_named() {
    let directory = directory();
    let files = example(directory.path());
    let now = std::fs::read_to_string(directory.path().join("example/now.toml")).expect("it is there");
    let array = |name: &str, text: &str| file(directory.path(), name, text);
    let base = ["--cores", "16", "--flash", "400GB", "--array"];
    let refused = |files: &[String], options: &[&str], words: &[&str]| {
        refuse(&with(&["advise", "plan"], files, options), 2, words);
    };
    let plain = array(
        "plain.toml",
        &now.replace("model = \"sas-10k-900gb-sff\"", "path = \"d{n}\"\nsize = \"900GB\""),
    );
    refused(
        &files,
        &[&base[..], &[text(&plain)]].concat(),
        &["plain.toml", "45 of 46 drives have no model", "tier0 catalog list"],
    );
    let small = array("small.toml", &now.replace("2TiB", "1TiB"));
    refused(
        &files,
        &[&base[..], &[text(&small)]].concat(),
        &["small.toml", "objects of the samples take", "--data-on"],
    );
    let good = text(&array("good.toml", &now)).to_owned();
    refused(
        &files,
        &[&base[..], &[&good, "--data-on", "nowhere"]].concat(),
        &["no volume \"nowhere\"", "data, log"],
    );
    let huge = ["--cores", "16", "--flash", "9000TB", "--array", &good];
    refused(&files, &huge, &["more than 960 mirrored drives", "--flash"]);
    // One sample has no time, and without Perfmon nothing has measured the processors.
    refused(&files[..1], &[&base[..], &[&good]].concat(), &["--cpu"]);
    let flash = array("flash.toml", &now.replace("sas-10k-900gb-sff", "ssd-sata"));
    refused(&files, &[&base[..], &[text(&flash)]].concat(), &["lies on flash already"]);
    // The size of an existing fast group is the limit.
    let tiered = "count = 45\nmodel = \"sas-10k-900gb-sff\"\n[[drive]]\nname = \"ssd{n}\"\ncount = 2\nmodel = \"ssd-sata\"\n";
    let groups = "[[pool.group]]\nname = \"disks\"\ndrives = [\"disk*\"]\nraid = \"raid5\"\nset_size = 5\n\
                  [[pool.group]]\nname = \"fast\"\ndrives = [\"ssd*\"]\nraid = \"raid1\"\nset_size = 2\n";
    let tiered = now
        .replace("log_drives = [\"cache\"]\n", "")
        .replace("[[drive]]\nname = \"cache\"\nmodel = \"cx4-write-cache\"\n", "")
        .replace("count = 45\nmodel = \"sas-10k-900gb-sff\"\n", tiered)
        .replace("drives = [\"disk*\"]\nraid = \"raid5\"\nset_size = 5\n", groups);
    let tiered = array("tiered.toml", &tiered);
    let options = ["--cores", "16", "--flash", "5TB", "--array", text(&tiered)];
    refused(&files, &options, &["the fast group \"fast\"", "free; plan with --flash"]);
}

/// A name of a table cannot command the terminal.
#[test]
fn names_with_control_characters_are_escaped() {
    let directory = directory();
    let wicked = "name,num_of_reads,num_of_writes,io_stall_read_ms,io_stall_write_ms\n\"a\u{1b}[2J\u{202e}b\",100,2,900,2\n";
    let csv = file(directory.path(), "f.csv", wicked);
    let told = run(&["advise", text(&csv)]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    for harmful in ['\u{1b}', '\u{202e}'] {
        assert!(!told.stdout.contains(harmful) && !told.stderr.contains(harmful), "{}", told.stdout);
    }
    assert!(told.stdout.contains("a\\u{1b}[2J\\u{202e}b"), "{}", told.stdout);
}

/// A name that would command a terminal, end a statement or begin an element of a page.
#[test]
fn names_of_objects_command_neither_terminal_nor_database_nor_browser() {
    let directory = directory();
    let name = r#"o\u001b[2J\"; drop table x; --<b>\n'\\"#;
    let wicked = SAMPLES.replace("\"name\":\"orders\"", &format!("\"name\":\"{name}\""));
    assert_ne!(wicked, SAMPLES);
    let samples = file(directory.path(), "shop.jsonl", &wicked);
    let sql = succeed(&["advise", "plan", text(&samples), "--flash", "85GB", "--sql"]);
    let statement =
        r#"alter table "public".U&"o\001b[2J""; drop table x; --<b>\000a'\\" set tablespace "flash";"#;
    assert!(sql.lines().any(|line| line == statement), "{sql}");
    let page = directory.path().join("advice.html");
    let told = succeed(&["advise", text(&samples), "--flash", "85GB", "--html", text(&page)]);
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(!page.contains("<b>\\") && page.contains("&#60;b&#62;"), "it is escaped for the browser");
    for shown in [&told, &page, &sql] {
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown}");
    }
}
