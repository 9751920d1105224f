//! `tier0 advise`.

use std::path::Path;

use crate::support::{directory, file, json, refuse, run_in, succeed, text};

const SAMPLES: &str = include_str!("../../../../crates/advisor/tests/it/samples/postgres.jsonl");

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
