//! Small answers that were wrong or told half of it.

use crate::support::{Ended, Scene, json, refuse, run, succeed, text, tier0};

/// What status says on a terminal of so many columns.
fn status_at(array: &str, columns: &str) -> Ended {
    tier0().env("COLUMNS", columns).args(["status", array]).output().expect("the program starts").into()
}

/// Where nothing was going on, some verbs were done and others refused.
#[test]
fn to_stop_what_does_not_go_on_is_done() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    for verb in [&["scrub"][..], &["pool", "grow"], &["pool", "restripe"], &["drive", "remove"]] {
        let drive: &[&str] = if verb == ["drive", "remove"] { &["d1"] } else { &[] };
        let told = succeed(&[verb, &[array], drive, &["--stop"]].concat());
        assert!(told.contains("nothing to stop"), "{verb:?}: {told}");
    }
    scene.stop();
}

/// A scrub that was going on kept its rate, and the one who asked for another read that it was done.
#[test]
fn another_rate_for_a_scrub_that_goes_on_is_refused() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let load =
        ["--read", "0", "--pattern", "sequential", "--block", "1MiB", "--bytes", "16MiB", "--overwrite"];
    succeed(&[&["load", scene.uri()][..], &load].concat());
    succeed(&["scrub", array, "--rate", "4KiB"]);
    let ended = run(&["scrub", array, "--rate", "1MiB", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((ended.code, &told["result"]), (Some(2), &"refused".into()), "{}", ended.stdout);
    succeed(&["scrub", array, "--stop"]);
    scene.stop();
}

#[test]
fn answers_say_what_is() {
    let scene = Scene::of("raid5", 3);
    let array = scene.array();
    let told = succeed(&["volume", "resize", array, "lun0", "--size", "24MiB"]);
    assert!(told.contains("24MiB already") && !told.contains("grown"), "{told}");

    let held = std::fs::File::create(scene.at("held.img")).expect("a file");
    held.set_len(64 << 20).and_then(|()| held.lock()).expect("it is ours");
    let held = scene.at("held.img");
    refuse(&["drive", "add", array, "--name", "d9", "--path", text(&held)], 2, &["held.img", "in use"]);

    succeed(&["drive", "fail", array, "d1", "--yes"]);
    let told = run(&["status", array]);
    assert_eq!(told.code, Some(5));
    for words in ["drive d1: failed", "it was taken out", "tier0 drive rejoin"] {
        assert!(told.stdout.contains(words), "{words} is missing: {}", told.stdout);
    }
    assert!(!told.stdout.contains("at the start") && !told.stdout.contains("0 of 0"), "{}", told.stdout);
    let status = scene.settled();
    assert!(status["summary"].as_str().is_some_and(|text| text.contains("drive rejoin")), "{status}");

    std::fs::rename(scene.at("d1.img"), scene.at("elsewhere")).expect("a file");
    refuse(
        &["drive", "rejoin", array, "d1"],
        2,
        &["\"d1\"", "d1.img", "array.search", "tier0 drive replace"],
    );
    std::fs::rename(scene.at("elsewhere"), scene.at("d1.img")).expect("a file");
    assert_eq!(json(&["drive", "rejoin", array, "d1"])["result"], "done");
    scene.stop();
}

/// The table of volumes was 45 columns wide on a terminal of 40.
#[test]
fn status_fits_a_narrow_terminal() {
    let scene = Scene::of("raid5", 3);
    let array = scene.array();
    for columns in [30, 40, 45, 60, 80] {
        let told = status_at(array, &columns.to_string()).stdout;
        for line in told.lines() {
            let is_one_word = line.split_whitespace().count() <= 1;
            assert!(line.chars().count() <= columns || is_one_word, "{columns}: {line:?} in\n{told}");
        }
    }
    scene.stop();
}
