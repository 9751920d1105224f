//! Small answers that were wrong or told half of it.

use std::path::Path;
use std::time::Duration;

use crate::support::{Ended, Served, array_file, directory, json, refuse, run, succeed, text, tier0};

/// What status says on a terminal of so many columns.
fn status_at(array: &Path, columns: &str) -> Ended {
    tier0().env("COLUMNS", columns).args(["status", text(array)]).output().expect("the program starts").into()
}

/// The status once nothing is rebuilt any more.
fn settled(array: &str) -> serde_json::Value {
    for _ in 0..200 {
        let told = run(&["status", array, "--json"]).stdout;
        let status: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        if status["pools"][0]["rebuild"].is_null() {
            return status;
        }
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the rebuild of {array} does not end");
}

/// Where nothing was going on, some verbs were done and others refused.
#[test]
fn to_stop_what_does_not_go_on_is_done() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    for verb in [&["scrub"][..], &["pool", "grow"], &["pool", "restripe"], &["drive", "remove"]] {
        let drive: &[&str] = if verb == ["drive", "remove"] { &["d1"] } else { &[] };
        let told = succeed(&[verb, &[text(&array)], drive, &["--stop"]].concat());
        assert!(told.contains("nothing to stop"), "{verb:?}: {told}");
    }
    served.stop();
}

/// A scrub that was going on kept its rate, and the one who asked for another read that it was done.
#[test]
fn another_rate_for_a_scrub_that_goes_on_is_refused() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    let load =
        ["--read", "0", "--pattern", "sequential", "--block", "1MiB", "--bytes", "16MiB", "--overwrite"];
    succeed(&[&["load", &served.uri][..], &load].concat());
    succeed(&["scrub", text(&array), "--rate", "4KiB"]);
    let ended = run(&["scrub", text(&array), "--rate", "1MiB", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((ended.code, &told["result"]), (Some(2), &"refused".into()), "{}", ended.stdout);
    succeed(&["scrub", text(&array), "--stop"]);
    served.stop();
}

#[test]
fn answers_say_what_is() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid5", 3);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    let told = succeed(&["volume", "resize", text(&array), "lun0", "--size", "24MiB"]);
    assert!(told.contains("24MiB already") && !told.contains("grown"), "{told}");

    let held = std::fs::File::create(at.join("held.img")).expect("a file");
    held.set_len(64 << 20).and_then(|()| held.lock()).expect("it is ours");
    let held = at.join("held.img");
    refuse(
        &["drive", "add", text(&array), "--name", "d9", "--path", text(&held)],
        2,
        &["held.img", "in use"],
    );

    succeed(&["drive", "fail", text(&array), "d1", "--yes"]);
    let told = run(&["status", text(&array)]);
    assert_eq!(told.code, Some(5));
    for words in ["drive d1: failed", "it was taken out", "tier0 drive rejoin"] {
        assert!(told.stdout.contains(words), "{words} is missing: {}", told.stdout);
    }
    assert!(!told.stdout.contains("at the start") && !told.stdout.contains("0 of 0"), "{}", told.stdout);
    let status = settled(text(&array));
    assert!(status["summary"].as_str().is_some_and(|text| text.contains("drive rejoin")), "{status}");

    std::fs::rename(at.join("d1.img"), at.join("elsewhere")).expect("a file");
    refuse(
        &["drive", "rejoin", text(&array), "d1"],
        2,
        &["\"d1\"", "d1.img", "array.search", "tier0 drive replace"],
    );
    std::fs::rename(at.join("elsewhere"), at.join("d1.img")).expect("a file");
    assert_eq!(json(&["drive", "rejoin", text(&array), "d1"])["result"], "done");
    served.stop();
}

/// The table of volumes was 45 columns wide on a terminal of 40.
#[test]
fn status_fits_a_narrow_terminal() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid5", 3);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    for columns in [30, 40, 45, 60, 80] {
        let told = status_at(&array, &columns.to_string()).stdout;
        for line in told.lines() {
            let is_one_word = line.split_whitespace().count() <= 1;
            assert!(line.chars().count() <= columns || is_one_word, "{columns}: {line:?} in\n{told}");
        }
    }
    served.stop();
}
