//! A witness that the array cannot use: `check`, `serve` and `status` say so before it is needed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Background, array_text, directory, file, json, refuse, run, succeed, text, tier0};

/// Status said that all was well and `drive fail` named a remedy that was none.
#[test]
fn a_broken_witness_is_told_by_everybody() {
    let directory = directory();
    let at = directory.path();
    let file_text = array_text(at, "raid1", 2).replace("[array]", "[array]\nwitness = \"absent/witness\"");
    let array = file(at, "array.toml", &file_text);
    succeed(&["create", text(&array)]);
    let words = ["absent/witness", "make its directory", "array.witness"];
    let tells = |told: &str| words.iter().all(|word| told.contains(word));
    let told = succeed(&["check", text(&array)]);
    assert!(tells(&told), "check of drives: {told}");

    let log = std::fs::File::create(at.join("log")).expect("a file");
    let mut server = tier0();
    server
        .args(["serve", text(&array), "--listen", "127.0.0.1:0", "--json"])
        .stdout(Stdio::piped())
        .stderr(log);
    let mut server = Background::of(server);
    server.read_until(|line| line == "}");
    let told = succeed(&["check", text(&array)]);
    assert!(tells(&told), "check of a server: {told}");
    await_status(text(&array), 4, &words);
    let told = std::fs::read_to_string(at.join("log")).expect("a log");
    assert!(tells(&told), "serve: {told}");
    assert_eq!(told.matches("absent/witness").count(), 1, "serve says it more than once: {told}");
    refuse(&["drive", "fail", text(&array), "d1", "--yes"], 2, &[&words[..], &["\"d1\""]].concat());
    let refused = run(&["drive", "fail", text(&array), "d1", "--yes"]).stderr;
    assert!(!refused.contains("wait for the rebuild"), "there is none: {refused}");

    std::fs::create_dir(at.join("absent")).expect("a directory");
    await_status(text(&array), 0, &["healthy: all drives online"]);
    std::fs::write(at.join("absent/witness"), "garbage").expect("a file");
    await_status(text(&array), 4, &["no witness file", "take that file away"]);
    refuse(&["drive", "fail", text(&array), "d1", "--yes"], 2, &["take that file away"]);
    std::fs::remove_file(at.join("absent/witness")).expect("a file");
    assert_eq!(json(&["drive", "fail", text(&array), "d1", "--yes"])["result"], "done");
    assert_eq!(server.interrupt(), Some(0));
}

/// A leg of a mirror that was put back to an older image started alone, because the other leg had not gone on without
/// it, and served what was old.
#[test]
fn an_older_image_does_not_start_alone() {
    let directory = directory();
    let at = directory.path();
    let file_text = array_text(at, "raid1", 2).replace("[array]", "[array]\nwitness = \"witness\"");
    let array = file(at, "array.toml", &file_text);
    let path = |name: &str| at.join(name);
    succeed(&["create", text(&array)]);
    let reached = serve_until_noted(&array, &[], 0);
    std::fs::copy(path("d1.img"), path("old.img")).expect("a copy");
    let later = serve_until_noted(&array, &[], reached);
    std::fs::rename(path("d0.img"), path("away.img")).expect("moved");
    std::fs::rename(path("d1.img"), path("newer.img")).expect("moved");
    std::fs::copy(path("old.img"), path("d1.img")).expect("a copy");
    let words = ["\"pool0\"", "older state", &later.to_string(), "--without d0"];
    refuse(&["check", text(&array)], 2, &words);
    // The leg as it was is what the witness has seen.
    std::fs::copy(path("newer.img"), path("d1.img")).expect("a copy");
    succeed(&["check", text(&array)]);
    // The administrator gives up what is newer.
    std::fs::copy(path("old.img"), path("d1.img")).expect("a copy");
    serve_until_noted(&array, &["--without", "d0"], 0);
    succeed(&["check", text(&array)]);
}

/// Both legs were put back to older images, and served as if that were all, although the witness knew better.
#[test]
fn a_whole_set_that_was_put_back_is_told() {
    let directory = directory();
    let at = directory.path();
    let file_text = array_text(at, "raid1", 2).replace("[array]", "[array]\nwitness = \"witness\"");
    let array = file(at, "array.toml", &file_text);
    succeed(&["create", text(&array)]);
    let reached = serve_until_noted(&array, &[], 0);
    for name in ["d0.img", "d1.img"] {
        std::fs::copy(at.join(name), at.join(format!("old-{name}"))).expect("a copy");
    }
    let later = serve_until_noted(&array, &[], reached);
    assert!(!succeed(&["check", text(&array)]).contains("put back"));
    for name in ["d0.img", "d1.img"] {
        std::fs::copy(at.join(format!("old-{name}")), at.join(name)).expect("a copy");
    }
    let told = succeed(&["check", text(&array)]).replace('\n', " ");
    assert!(told.contains("put back to an") && told.contains(&later.to_string()), "{told}");
    let server = Background::start(&["serve", text(&array), "--listen", "127.0.0.1:0", "--json"]);
    await_status(text(&array), 4, &["bring back what is newer"]);
    assert_eq!(server.interrupt(), Some(0));
}

/// A leg of a mirror that had been left behind started alone, because the witness's file had been put back to before it heard
/// of that.
#[test]
fn a_leg_does_not_start_alone_by_a_witness_that_is_much_older() {
    let directory = directory();
    let at = directory.path();
    let file_text = array_text(at, "raid1", 2).replace("[array]", "[array]\nwitness = \"witness\"");
    let array = file(at, "array.toml", &file_text);
    succeed(&["create", text(&array)]);
    let began = serve_until_noted(&array, &[], 0);
    let old = std::fs::read(at.join("witness")).expect("a witness");
    let mut reached = began;
    while reached <= began + 16 {
        reached = serve_until_noted(&array, &[], reached);
    }
    std::fs::rename(at.join("d0.img"), at.join("away.img")).expect("moved");
    succeed(&["check", text(&array)]);
    std::fs::write(at.join("witness"), old).expect("put back");
    refuse(&["check", text(&array)], 2, &["--without d0", "older state", &format!("generation {began} ")]);
}

/// A leg that had recorded the loss of the other, which then went on by consent, started alone and silently.
#[test]
fn a_leg_that_was_left_behind_does_not_start_alone_though_it_lost_the_other_first() {
    let directory = directory();
    let at = directory.path();
    let file_text = array_text(at, "raid1", 2).replace("[array]", "[array]\nwitness = \"witness\"");
    let array = file(at, "array.toml", &file_text);
    succeed(&["create", text(&array)]);
    let serve = |options: &[&str]| {
        let listen = ["serve", text(&array), "--listen", "127.0.0.1:0", "--json"];
        let mut server = Background::start(&[&listen, options].concat());
        server.read_until(|line| line == "}");
        server
    };
    let server = serve(&[]);
    succeed(&["drive", "fail", text(&array), "d1", "--yes"]);
    assert_eq!(server.interrupt(), Some(0));
    std::fs::rename(at.join("d0.img"), at.join("away.img")).expect("moved");
    assert_eq!(serve(&["--without", "d0"]).interrupt(), Some(0));
    std::fs::rename(at.join("d1.img"), at.join("other.img")).expect("moved");
    std::fs::rename(at.join("away.img"), at.join("d0.img")).expect("moved");
    refuse(&["check", text(&array)], 2, &["went on without \"d0\"", "--without d1"]);
    assert_eq!(serve(&["--without", "d1"]).interrupt(), Some(0));
    succeed(&["check", text(&array)]);
}

/// Serves until the witness has seen a generation beyond this one; which one.
fn serve_until_noted(array: &Path, options: &[&str], beyond: u64) -> u64 {
    let mut server =
        Background::start(&[&["serve", text(array), "--listen", "127.0.0.1:0", "--json"], options].concat());
    server.read_until(|line| line == "}");
    let witness = array.with_file_name("witness");
    let noted = || {
        let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&witness).ok()?).ok()?;
        let generation = told["pools"].as_object()?.values().next()?["generation"].as_u64()?;
        (generation > beyond).then_some(generation)
    };
    let reached = within_20_s(noted).expect("the witness is told");
    assert_eq!(server.interrupt(), Some(0));
    // What was written since is noted at the next start.
    noted().unwrap_or(reached)
}

fn within_20_s<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    (0..200).find_map(|_| {
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(Duration::from_millis(100));
        look()
    })
}

/// The server looks from time to time.
fn await_status(array: &str, code: i32, words: &[&str]) {
    for _ in 0..200 {
        let ended = run(&["status", array]);
        if ended.code == Some(code) && words.iter().all(|word| ended.stdout.contains(word)) {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(Duration::from_millis(100));
    }
    let last = run(&["status", array]);
    panic!("{array} never says {words:?} with {code}, but {:?}: {}", last.code, last.stdout);
}
