//! What the last resort says of arrays that need it, and of those that do not.

use std::path::Path;

use crate::support::{Background, Served, array_file, directory, json, run, succeed, text};

fn away(at: &Path, drive: &str) {
    std::fs::rename(at.join(format!("{drive}.img")), at.join(format!("{drive}.away"))).expect("a drive");
}

fn back(at: &Path, drive: &str) {
    std::fs::rename(at.join(format!("{drive}.away")), at.join(format!("{drive}.img"))).expect("a drive");
}

/// One of two histories was told as stale and not needed, and that there are two stood in the last line.
#[test]
fn a_split_is_told_at_the_top() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    succeed(&["create", text(&array)]);
    for (here, gone) in [("d0", "d1"), ("d1", "d0")] {
        away(at, gone);
        let serve = ["serve", text(&array), "--listen", "127.0.0.1:0", "--json", "--without", gone];
        let mut server = Background::start(&serve);
        server.read_until(|line| line == "}");
        assert_eq!(server.interrupt(), Some(0), "{here} serves alone");
        back(at, gone);
    }
    let ended = run(&["pool", "recover", text(&array)]);
    assert_eq!(ended.code, Some(1));
    // It was named before the fact, which names it too.
    assert_eq!(ended.stderr.matches("pool \"pool0\"").count(), 1, "{}", ended.stderr);
    let second = ended.stdout.lines().nth(1).unwrap_or_default();
    assert!(second.contains("two groups without each other"), "{}", ended.stdout);
    for words in ["belongs to one history", "belongs to another history"] {
        assert_eq!(ended.stdout.matches(words).count(), 1, "{words}: {}", ended.stdout);
    }
    for words in ["stale", "given up", "in use\n"] {
        assert!(!ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    let told = succeed(&["pool", "recover", text(&array), "--without", "d1"]);
    assert!(told.contains("drive d1: left out") && told.contains("serve ARRAY --without d1"), "{told}");
    assert_eq!(run(&["pool", "recover", text(&array), "--without", "d7"]).code, Some(2));
}

/// A drive that was taken back was listed as one that left, too.
#[test]
fn a_drive_that_was_taken_back_is_listed_once() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    succeed(&["drive", "fail", text(&array), "d1", "--yes"]);
    succeed(&["drive", "rejoin", text(&array), "d1"]);
    served.stop();
    let told = succeed(&["pool", "recover", text(&array)]);
    assert_eq!(told.matches("drive d1:").count(), 1, "{told}");
    let found = json(&["pool", "recover", text(&array)]);
    let sentence = found["text"].as_str().expect("a text");
    assert!(told.contains(sentence) && sentence.contains("no recovery needed"), "{found}");
    assert_eq!(found["pools"][0]["drives"].as_array().map(Vec::len), Some(2), "{found}");

    away(at, "d1");
    // Whether a start needs consent depends on how far the rebuild had come.
    let told = run(&["pool", "recover", text(&array)]).stdout;
    assert!(told.contains("drive d1: missing\n") && !told.contains("given up"), "{told}");
}

/// A start was refused, and of that nothing was said but that there is nothing to recover.
#[test]
fn where_nothing_is_to_recover_a_start_that_is_refused_is_told() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    succeed(&["create", text(&array)]);
    away(at, "d1");
    let told = run(&["pool", "recover", text(&array)]);
    assert_eq!(told.code, Some(2), "{}", told.stderr);
    let refusal = "no recovery needed, but the array would not start";
    assert!(told.stdout.contains(refusal) && told.stderr.contains(refusal), "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains("--without d1"), "{}", told.stderr);
    let told = run(&["pool", "recover", text(&array), "--json"]);
    let found: serde_json::Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_eq!((told.code, &found["result"]), (Some(2), &"refused".into()), "{found}");
    let told = succeed(&["pool", "recover", text(&array), "--without", "d1"]);
    assert!(told.contains("no recovery needed: start it with \"tier0 serve"), "{told}");
}

/// A drive file that was cut short and given its size again was told to lose nothing.
#[test]
fn a_drive_that_was_cut_short_is_told() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid0", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    let load =
        ["load", &served.uri, "--read", "0", "--pattern", "sequential", "--block", "64KiB", "--overwrite"];
    succeed(&[&load[..], &["--bytes", "24MiB", "--quiet"]].concat());
    served.stop();
    let told = succeed(&["pool", "recover", text(&array)]);
    assert!(told.contains("lun0 of 24MiB: no loss\n"), "{told}");
    let drive = std::fs::File::options().write(true).open(at.join("d1.img")).expect("a drive");
    for mib in [12, 64] {
        drive.set_len(mib << 20).expect("a size");
    }
    let told = succeed(&["pool", "recover", text(&array)]);
    assert!(!told.contains("no loss") && told.contains("perhaps lost: where a required drive"), "{told}");
    assert!(told.contains("drive \"d1\" holds no data from byte 12582912"), "{told}");
}

/// After data had been given up, it was told that nothing is lost.
#[test]
fn a_recovery_with_loss_is_remembered() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid5", 3);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    succeed(&["drive", "fail", text(&array), "d1", "--yes"]);
    let load =
        ["load", &served.uri, "--read", "0", "--pattern", "sequential", "--block", "64KiB", "--overwrite"];
    succeed(&[&load[..], &["--bytes", "8MiB", "--quiet"]].concat());
    served.stop();
    away(at, "d0");
    let told = succeed(&["pool", "recover", text(&array)]);
    assert!(
        !told.contains("no loss") && !told.contains("no further loss") && !told.contains("earlier"),
        "{told}"
    );
    succeed(&["pool", "recover", text(&array), "--accept-loss", "--yes"]);
    let told = succeed(&["pool", "recover", text(&array)]).replace("\n    ", " ");
    for words in ["no further loss", "losses of an earlier recovery are not listed", "lost data: lun0"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}
