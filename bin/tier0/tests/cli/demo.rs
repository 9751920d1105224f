//! `tier0 demo`.

use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{
    Background, Ended, Served, contents, directory, file, json, refuse, succeed, text, tier0,
};

/// A demo that ends after its tables, without some of its parts.
fn once<'a>(time: &'a str, without: &[&'a str], place: &'a Path) -> Vec<&'a str> {
    let mut arguments = vec!["demo", "--once", "--time", time];
    arguments.extend(without);
    arguments.extend(["--dir", text(place)]);
    arguments
}

#[test]
fn the_demo_measures_predicts_and_leaves_an_array() {
    let directory = directory();
    let place = directory.path().join("demo");
    let shown = json(&once("1s", &["--no-caches", "--no-tier", "--no-database"], &place));
    assert!(shown.get("caches").is_none() && shown.get("tier").is_none() && !place.join("caches").exists());
    assert!(shown["measured"]["all"]["iops"].as_f64().is_some_and(|iops| iops > 0.0));
    assert_eq!(shown["measured"]["verify"]["sectors_wrong"], 0);
    let predicted = shown["predicted"].as_array().expect("predictions");
    let iops: Vec<f64> =
        predicted.iter().map(|drive| drive["report"]["all"]["iops"].as_f64().expect("a figure")).collect();
    assert_eq!(iops.len(), 4);
    assert!(iops.is_sorted(), "from slow to fast: {iops:?}");

    let served = Served::start(&place.join("array.toml"), directory.path());
    assert_eq!(json(&["load", &served.uri, "--ios", "100"])["all"]["ios"], 100);
    served.stop();
}

#[test]
fn the_demo_stays_up_until_it_is_told_to_end() {
    let directory = directory();
    let place = directory.path().join("demo");
    let said = directory.path().join("said.txt");
    let mut command = tier0();
    command.args([
        "demo",
        "--time",
        "1s",
        "--no-predictions",
        "--no-caches",
        "--no-tier",
        "--no-database",
        "--dir",
        text(&place),
    ]);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&said).expect("a file"));
    let mut demo = Background::of(command);
    let told = demo.read_until(|line| line.starts_with("Ctrl-C"));
    // Paths are as long as they are.
    let widest =
        told.lines().filter(|line| !line.contains(text(&place))).map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{told}");
    let uri = told.split_whitespace().find(|word| word.starts_with("nbd+unix://")).expect("an address");
    assert!(told.contains("Measured through NBD"), "{told}");
    let uri = uri.trim_matches('\'');
    assert_eq!(json(&["load", uri, "--ios", "100"])["all"]["ios"], 100);
    // It could not be asked: no server listened where its file says.
    let array = place.join("array.toml");
    assert!(told.contains("tier0 status") && told.contains(text(&array)), "{told}");
    assert_eq!(json(&["status", text(&array)])["array"], "demo");
    assert_eq!(demo.interrupt(), Some(0));
    // It took a minute to end, and said nothing.
    let said = std::fs::read_to_string(&said).expect("a file");
    assert!(said.contains("the demo ends its load and its server, and keeps its files"), "{said}");
}

#[test]
fn the_demo_shows_what_each_cache_answers() {
    let directory = directory();
    let place = directory.path().join("demo");
    let caches = place.join("caches");
    let shown = json(&once("2s", &["--no-predictions", "--no-tier", "--no-database"], &place));
    let phases = shown["caches"]["phases"].as_array().expect("phases");
    let names: Vec<_> = phases.iter().map(|phase| phase["phase"].as_str().expect("a name")).collect();
    assert_eq!(names, ["disks", "memory", "flash"]);
    let of = |phase: usize, kind: &str| {
        let rows = phases[phase]["rows"].as_array().expect("rows");
        rows.iter().map(|row| row[kind].as_u64().expect("a count")).sum::<u64>()
    };
    for (phase, memory, flash) in [(0, false, false), (1, true, false), (2, true, true)] {
        let (from_memory, from_flash) = (of(phase, "reads_from_memory"), of(phase, "reads_from_flash"));
        assert_eq!((from_memory > 0, from_flash > 0), (memory, flash), "{}", phases[phase]);
        assert!(of(phase, "reads_from_disks") > 0, "{}", phases[phase]);
    }
    // It is kept, and no demo touches it while it is served, or where something else has taken its place.
    let array = caches.join("array.toml");
    let again = ["demo", "--once", "--dir", text(&place)];
    let served = Served::start(&array, directory.path());
    assert_eq!(json(&["load", &served.uri, "--ios", "100"])["all"]["ios"], 100);
    refuse(&again, 2, &["in use", "end its server"]);
    served.stop();
    file(&caches, "array.toml", "[array]\nname = \"ours\"\n");
    refuse(&again, 2, &["caches", "something else than a demo"]);
}

/// What it shows of the tier is simulated: faster as extents move.
#[test]
fn the_demo_shows_hot_extents_that_move_to_flash() {
    let directory = directory();
    let place = directory.path().join("demo");
    let arguments = once("1ms", &["--no-predictions", "--no-caches", "--no-database"], &place);
    let shown = json(&arguments);
    let rows = shown["tier"]["rows"].as_array().expect("rows");
    let figure = |row: &serde_json::Value, name: &str| row[name].as_f64().unwrap_or_default();
    let (first, last) = (&rows[0], rows.last().expect("rows"));
    assert_eq!((figure(first, "on_flash_bytes"), figure(first, "promoted")), (0.0, 0.0), "{first}");
    let hot = shown["tier"]["hot_bytes"].as_f64().expect("a size");
    assert!(figure(last, "on_flash_bytes") > 0.8 * hot && figure(last, "reads_on_flash") > 0.7, "{last}");
    assert!(figure(last, "read_ns_mean") * 3.0 < figure(first, "read_ns_mean"), "{first} {last}");
    let told = succeed(&arguments);
    assert!(told.contains("tier0 volume set array.toml lun0 place=auto"), "{told}");
}

#[test]
fn the_demo_predicts_what_flash_is_worth_to_a_database() {
    let directory = directory();
    let place = directory.path().join("demo");
    let shown = json(&once("1ms", &["--no-predictions", "--no-caches", "--no-tier"], &place));
    let cases = shown["database"]["cases"].as_array().expect("cases");
    let names: Vec<&str> = cases.iter().filter_map(|case| case["name"].as_str()).collect();
    assert_eq!(names, ["now", "read cache on the SSDs", "tier, after 50 s", "all on SSDs"]);
    let over = |case: usize| cases[case]["over_now"].as_f64().expect("a figure");
    // With the tier, what is hot has the SSDs, and the log the disks beside them.
    assert!(over(1) > 1.2 && over(2) > 1.2 && over(3) > 0.9 * over(1).max(over(2)), "{cases:?}");
}

#[test]
fn ctrl_c_in_the_middle_of_the_caches_leaves_nothing_behind() {
    let directory = directory();
    let mut command = tier0();
    command
        .args(["demo", "--time", "2s", "--no-predictions", "--no-tier", "--no-database"])
        .env("TMPDIR", directory.path())
        .stdout(Stdio::piped());
    let mut demo = Background::of(command);
    demo.read_until(|line| line.contains("disks alone"));
    assert_eq!(demo.interrupt(), Some(0));
    assert_eq!(contents(directory.path()).len(), 0, "it leaves something");
}

#[test]
fn ctrl_c_in_the_middle_of_the_predictions_leaves_nothing_behind() {
    let directory = directory();
    let mut command = tier0();
    command.args(["demo", "--time", "1s"]).env("TMPDIR", directory.path()).stdout(Stdio::piped());
    let mut demo = Background::of(command);
    demo.read_until(|line| line.contains("read back and checked"));
    assert_eq!(demo.interrupt(), Some(0));
    assert_eq!(contents(directory.path()).len(), 0, "it leaves something");
}

/// A second Ctrl-C, or any other end than the first, left half a GiB in the temporary directory.
#[test]
fn the_demo_leaves_nothing_behind() {
    for (signals, code) in [(&[Signal::HUP][..], 0), (&[Signal::TERM], 0), (&[Signal::INT, Signal::INT], 130)]
    {
        let directory = directory();
        let mut command = tier0();
        command.args(["demo", "--time", "30s"]).env("TMPDIR", directory.path()).stdout(Stdio::piped());
        let mut demo = Background::of(command);
        demo.read_until(|line| line.contains("nbd+unix://") || line.contains("nbd://"));
        for signal in signals {
            demo.signal(*signal);
        }
        let ended = demo.end();
        assert!(ended == Some(code) || (signals.len() == 2 && ended == Some(0)), "{signals:?}: {ended:?}");
        assert_eq!(contents(directory.path()).len(), 0, "{signals:?} leave something");
    }
}

#[test]
fn what_a_killed_demo_left_is_removed_by_the_next() {
    let directory = directory();
    let mut command = tier0();
    command.args(["demo", "--time", "30s"]).env("TMPDIR", directory.path()).stdout(Stdio::piped());
    let mut demo = Background::of(command);
    demo.read_until(|line| line.contains("nbd+unix://") || line.contains("nbd://"));
    demo.signal(Signal::KILL);
    demo.end();
    assert_eq!(contents(directory.path()).len(), 1, "a killed demo cannot clear away");
    let mut command = tier0();
    command.args([
        "demo",
        "--once",
        "--time",
        "1s",
        "--no-predictions",
        "--no-caches",
        "--no-tier",
        "--no-database",
        "--json",
    ]);
    command.env("TMPDIR", directory.path());
    let ended = Ended::from(command.output().expect("it starts"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("removed") && ended.stderr.contains("tier0-demo-"), "{}", ended.stderr);
    assert_eq!(contents(directory.path()).len(), 0);
}

#[test]
fn the_demo_uses_no_directory_of_others() {
    let directory = directory();
    file(directory.path(), "letter.txt", "dear");
    refuse(&["demo", "--once", "--dir", text(directory.path())], 2, &["--dir", "something else"]);
    // The demo overwrote the volume of an array that another user had made.
    file(directory.path(), "array.toml", "[array]\nname = \"ours\"\n");
    refuse(&["demo", "--once", "--dir", text(directory.path())], 2, &["--dir", "no demo has made"]);
    refuse(&["demo", "--once", "--dir", "/dev/null"], 2, &["/dev/null is not a directory"]);
}

/// It was made, and its table was of zeros.
#[test]
fn a_demo_takes_time() {
    let directory = directory();
    let place = directory.path().join("demo");
    refuse(&["demo", "--time", "0s", "--dir", text(&place)], 2, &["--time", "use a longer one"]);
    assert!(!place.exists());
    let shown =
        json(&once("500ms", &["--no-predictions", "--no-caches", "--no-tier", "--no-database"], &place));
    assert!(shown["measured"]["all"]["iops"].as_f64().is_some_and(|iops| iops > 0.0), "{shown}");
}
