//! With `--json`, stdout gets one object also where there is no result.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Background, array_file, array_text, directory, file, run, succeed, text};

/// A program that read JSON got nothing to read where a verb was refused.
#[test]
fn what_is_refused_is_told_as_json_too() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    let wrong = file(at, "wrong.toml", &array_text(at, "raid11", 2));
    for (arguments, code, result) in [
        (&["check", text(&wrong)][..], 2, "refused"),
        (&["config", text(&array)], 1, "failed"),
        (&["create", text(&wrong)], 2, "refused"),
        (&["status", text(&array)], 1, "failed"),
        (&["status", "/nowhere.toml"], 2, "refused"),
        (&["serve", text(&array)], 2, "refused"),
        (&["pool", "recover", text(&array)], 1, "failed"),
        (&["pool", "recover", text(&wrong)], 2, "refused"),
        (&["catalog", "show", "no-such-entry"], 2, "refused"),
        (&["drive", "fail", text(&array), "d0", "--yes"], 1, "failed"),
    ] {
        let ended = run(&[arguments, &["--json"]].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        let told: serde_json::Value = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?} prints no object: {:?}", ended.stdout));
        assert_eq!(told["result"], result, "{arguments:?}");
        let text = told["text"].as_str().expect("a text");
        assert!(!text.is_empty() && ended.stderr.contains(text), "{arguments:?}: {text}");
    }
}

/// Monitoring waited a minute for a server that was stopped.
#[test]
fn status_of_a_stopped_server_ends_within_ten_seconds() {
    let directory = directory();
    let array = array_file(directory.path(), "raid1", 2);
    succeed(&["create", text(&array)]);
    let mut server = Background::start(&["serve", text(&array), "--listen", "127.0.0.1:0", "--json"]);
    server.read_until(|line| line == "}");
    server.signal(Signal::STOP);
    #[expect(clippy::disallowed_methods, reason = "a test measures another process")]
    let begun = std::time::Instant::now();
    let ended = run(&["status", text(&array)]);
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("10 s"), "{}", ended.stderr);
    server.signal(Signal::CONT);
    assert_eq!(run(&["status", text(&array)]).code, Some(0), "it answers again");
    assert_eq!(server.interrupt(), Some(0));
}
