//! A witness that nobody can use: everybody who is asked says so, before it is needed.

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
    let told = std::fs::read_to_string(at.join("log")).expect("a log");
    assert!(tells(&told), "serve: {told}");
    let told = succeed(&["check", text(&array)]);
    assert!(tells(&told), "check of a server: {told}");
    await_status(text(&array), 4, &words);
    refuse(&["drive", "fail", text(&array), "d1", "--yes"], 2, &[&words[..], &["\"d1\""]].concat());
    let refused = run(&["drive", "fail", text(&array), "d1", "--yes"]).stderr;
    assert!(!refused.contains("wait for the rebuild"), "there is none: {refused}");

    std::fs::create_dir(at.join("absent")).expect("a directory");
    await_status(text(&array), 0, &["all is well"]);
    std::fs::write(at.join("absent/witness"), "garbage").expect("a file");
    await_status(text(&array), 4, &["no witness file", "take that file away"]);
    refuse(&["drive", "fail", text(&array), "d1", "--yes"], 2, &["take that file away"]);
    std::fs::remove_file(at.join("absent/witness")).expect("a file");
    assert_eq!(json(&["drive", "fail", text(&array), "d1", "--yes"])["result"], "done");
    assert_eq!(server.interrupt(), Some(0));
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
