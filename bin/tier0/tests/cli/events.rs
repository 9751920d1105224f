//! `tier0 events`: what has happened, over all servers of an array.

use rustix::process::Signal;

use crate::support::{
    Background, Scene, Served, array_text, directory, file, json, refuse, run, succeed, text,
};

fn whats(arguments: &[&str]) -> Vec<String> {
    let events = json(arguments);
    let of = |event: &serde_json::Value| {
        format!("{}: {}", event["thing"].as_str().expect("a thing"), event["what"].as_str().expect("a text"))
    };
    events.as_array().expect("events").iter().map(of).collect()
}

#[test]
fn events_outlive_their_server() {
    let scene = Scene::of("raid5", 3);
    let array = scene.array().to_owned();
    succeed(&["drive", "fail", &array, "d1", "--yes"]);
    scene.status_when(|status| status["events"].to_string().contains("taken out by an administrator"));
    let directory = scene.stop_and_keep();
    let told = whats(&["events", &array]);
    assert!(told[0].starts_with("array test: served by tier0"), "{told:?}");
    assert!(
        told.iter().any(|line| line.starts_with("drive d1: failed (taken out by an administrator)")),
        "{told:?}"
    );
    assert_eq!(told.last().map(String::as_str), Some("array test: its server has ended"));
    let served = Served::start(std::path::Path::new(&array), directory.path());
    // The start itself has something to say.
    let mut following = Background::start(&["events", &array, "--follow", "--severity", "warning"]);
    let line = following.read_until(|line| line.contains("\"d1\""));
    assert!(
        line.contains("Z !! drive d1: failed") && line.contains("Z ! array test: drive \"d1\""),
        "{line}"
    );
    served.stop();
    // A shell that starts the tests in the background has them ignore Ctrl-C.
    following.signal(Signal::TERM);
    following.end();
    let critical = whats(&["events", &array, "--severity", "critical"]);
    assert!(critical.iter().all(|line| line.contains("failed")), "{critical:?}");
    assert!(whats(&["events", &array, "--since", "2030-01-01"]).is_empty());
    // That there is no room for a rebuild is found while the server ends.
    let of_start = |what: &&String| !what.contains("cannot be rebuilt");
    let all = whats(&["events", &array, "--since", "2h"]);
    assert_eq!(all.iter().filter(of_start).count(), told.iter().filter(of_start).count() + 3, "{all:?}");
    refuse(&["events", &array, "--since", "yesterday"], 2, &["--since", "2h 30m"]);
}

#[test]
fn where_events_cannot_be_kept_the_array_serves_all_the_same() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array().to_owned();
    let directory = scene.stop_and_keep();
    let events = directory.path().join("array.events");
    std::fs::remove_file(&events).expect("it was kept");
    let none = run(&["events", &array]);
    assert!(none.code == Some(0) && none.stderr.contains("no events in"), "{}", none.stderr);
    std::fs::create_dir(&events).expect("a directory in its place");
    let served = Served::start(std::path::Path::new(&array), directory.path());
    refuse(&["events", &array], 2, &[text(&events), "array.events"]);
    served.stop();
}

/// After a kill the events went on as if the server had ended well.
#[test]
fn a_server_that_was_killed_is_told_by_the_next_one() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array().to_owned();
    let directory = scene.kill();
    let served = Served::start(std::path::Path::new(&array), directory.path());
    served.stop();
    let served = Served::start(std::path::Path::new(&array), directory.path());
    served.stop();
    let told = whats(&["events", &array, "--severity", "warning"]);
    let killed: Vec<&String> = told.iter().filter(|what| what.contains("exited uncleanly")).collect();
    assert_eq!(killed.len(), 1, "one of three servers was killed: {told:?}");
    assert!(killed[0].starts_with("array test: previous server") && killed[0].contains("is from 20"));
}

/// An administrator who looked at the status did not learn that events were no longer kept.
#[test]
fn status_tells_that_events_are_not_kept_until_they_are() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array().to_owned();
    let events = scene.at("array.events");
    scene.status_when(|status| status["health"] == "healthy");
    std::fs::rename(&events, scene.at("elsewhere")).expect("it was kept");
    std::fs::create_dir(&events).expect("a directory in its place");
    let status = scene.status_when(|status| status["health"] == "warning");
    let summary = status["summary"].as_str().expect("a text");
    assert!(summary.contains("cannot write events") && summary.contains("array.events"), "{summary}");
    assert_eq!(run(&["status", &array]).code, Some(4));
    std::fs::remove_dir(&events).expect("it is empty");
    scene.status_when(|status| status["health"] == "healthy");
    scene.stop();
}

/// `a.toml` and `a.conf` kept their events in one file, and one could not be told from the other.
#[test]
fn two_arrays_beside_each_other_share_no_file() {
    let directory = directory();
    let at = directory.path();
    let content = array_text(at, "raid1", 2);
    let array = file(at, "a.conf", &content);
    file(at, "a.toml", &content);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    assert!(at.join("a.conf.control").exists() && !at.join("a.control").exists());
    succeed(&["status", text(&array)]);
    served.stop();
    assert!(!whats(&["events", text(&array)]).is_empty() && !at.join("a.events").exists());
    let bare = file(at, "a", &content);
    refuse(&["check", text(&bare)], 2, &["array.events", "a.toml", "rename one of the files"]);
    let named = "[array]\nevents = \"e\"\ncontrol = \"c\"";
    let bare = file(at, "a", &content.replacen("[array]", named, 1));
    succeed(&["check", text(&bare)]);
}

/// Of a short rebuild the end was missing, of one without room everything, and of a drive that was moved, too.
#[test]
fn what_befalls_drives_and_rebuilds_is_kept() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let load = ["--read", "0", "--ios", "200", "--overwrite"];
    succeed(&[&["load", scene.uri()][..], &load].concat());
    let has = |words: &str| {
        scene.status_when(|status| {
            let events = status["events"].as_array().expect("events").clone();
            events.iter().any(|event| event["what"].as_str().is_some_and(|what| what.contains(words)))
        });
        assert!(whats(&["events", array]).iter().any(|what| what.contains(words)), "{words} is not kept");
    };
    succeed(&["drive", "fail", array, "d1", "--yes"]);
    has("cannot be rebuilt: no drive has a spare chunklet");
    let path = scene.at("d9.img");
    succeed(&["drive", "add", array, "--name", "d9", "--path", text(&path), "--size", "64MiB"]);
    has("a rebuild has begun");
    has("every set is whole, and no rebuild is running");
    std::fs::rename(scene.at("d0.img"), scene.at("away.img")).expect("a file");
    file(scene.directory(), "d0.img", "of somebody");
    has("its file was moved from");
    std::fs::rename(scene.at("away.img"), scene.at("d0.img")).expect("a file");
    has("d0.img\" again");
    let told = whats(&["events", array]);
    let count = |words: &str| told.iter().filter(|what| what.contains(words)).count();
    assert_eq!(count("a rebuild has begun"), count("every set is whole"), "{told:?}");
    scene.stop();
}
