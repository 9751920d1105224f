//! `tier0 demo`.

use crate::support::{Background, Served, directory, file, json, refuse, text};

#[test]
fn the_demo_measures_predicts_and_leaves_an_array() {
    let directory = directory();
    let place = directory.path().join("demo");
    let shown = json(&["demo", "--once", "--time", "1s", "--dir", text(&place)]);
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
    let mut demo = Background::start(&["demo", "--time", "1s", "--dir", text(&place)]);
    let told = demo.read_until(|line| line.starts_with("Ctrl-C"));
    let uri = told.split_whitespace().find(|word| word.starts_with("nbd+unix://")).expect("an address");
    assert!(told.contains("measured through NBD") && told.contains("predicted"), "{told}");
    assert_eq!(json(&["load", uri, "--ios", "100"])["all"]["ios"], 100);
    assert_eq!(demo.interrupt(), Some(0));
}

#[test]
fn the_demo_uses_no_directory_of_others() {
    let directory = directory();
    file(directory.path(), "letter.txt", "dear");
    refuse(&["demo", "--once", "--dir", text(directory.path())], 2, &["--dir", "something else"]);
}
