//! Caches that are switched while the array serves, and what a restart, the array file and status say of them.

use serde_json::Value;

use crate::support::{Scene, Served, file, json, refuse, run, succeed, text};

/// Of a volume, as status tells: the write and the read cache.
fn caches_of(status: &Value, volume: usize) -> (String, bool) {
    let volume = &status["pools"][0]["volumes"][volume];
    let mode = volume["write_cache"].as_str().expect("a mode").to_owned();
    (mode, volume["read_cache"].as_bool().expect("on or off"))
}

fn write(uri: &str) {
    succeed(&["load", uri, "--read", "0", "--block", "8KiB", "--ios", "500", "--overwrite"]);
}

#[test]
fn caches_are_switched_while_the_array_serves_and_stay_so() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    assert_eq!(caches_of(&scene.status().0, 0), ("durable".to_owned(), true));
    write(scene.uri());
    let done = succeed(&["volume", "set", array, "lun0", "cache.write=off", "cache.read=off"]);
    assert!(done.contains("volume lun0: read cache off, write cache off from now on"), "{done}");
    let (status, _) = scene.status();
    assert_eq!(caches_of(&status, 0), ("off".to_owned(), false));
    assert_eq!(status["pools"][0]["log"]["dirty_bytes"], 0, "what was written is in its place");
    write(scene.uri());
    assert_eq!(scene.status().0["pools"][0]["log"]["dirty_bytes"], 0);
    let config = succeed(&["config", array]);
    assert!(config.contains("write_cache = \"off\"") && config.contains("read_cache = false"), "{config}");
    let told = run(&["status", array]).stdout;
    assert!(!told.contains("off for all volumes"), "{told}");

    // The pool's switch is over all of them, and leaves their own as they are.
    succeed(&["volume", "set", array, "lun0", "cache.write=volatile", "cache.read=on"]);
    let answer = json(&["pool", "set", array, "cache.read=off", "cache.write=off"]);
    assert_eq!(answer["what"]["request"], "pool-cache", "{answer}");
    let (status, _) = scene.status();
    assert_eq!(caches_of(&status, 0), ("off".to_owned(), false));
    assert_eq!(status["pools"][0]["cache"], serde_json::json!({ "read": false, "write": false }));
    let told = run(&["status", array]).stdout;
    assert!(told.contains("caches off for all volumes: read and write"), "{told}");
    let done = succeed(&["volume", "set", array, "lun0", "cache.write=on"]);
    assert!(done.contains("once the write cache of pool pool0 is on"), "{done}");
    succeed(&["volume", "set", array, "lun0", "cache.write=volatile"]);

    let file_of = array.to_owned();
    let directory = scene.stop_and_keep();
    let array = file_of.as_str();
    let served = Served::start(std::path::Path::new(array), directory.path());
    let status = json(&["status", array]);
    assert_eq!(caches_of(&status, 0), ("off".to_owned(), false));
    succeed(&["pool", "set", array, "--pool", "pool0", "cache.write=on"]);
    assert_eq!(caches_of(&json(&["status", array]), 0), ("volatile".to_owned(), false));
    succeed(&["pool", "set", array, "cache.read=on"]);
    assert_eq!(caches_of(&json(&["status", array]), 0), ("volatile".to_owned(), true));
    write(&served.uri);
    served.stop();
}

/// What the array file says counts at each start, and that is told when something else is set.
#[test]
fn the_array_file_says_how_caches_stand_at_a_start() {
    let scene = Scene::of("raid1", 2);
    let right = std::fs::read_to_string(scene.array()).expect("an array file");
    let says = right
        .replace("stripe_unit", "read_cache = false\nwrite_cache = true\nstripe_unit")
        .replace("size = \"24MiB\"", "size = \"24MiB\"\nread_cache = false\nwrite_cache = \"durable\"");
    let array = file(scene.directory(), "array.toml", &says);
    let array = text(&array).to_owned();
    let told = succeed(&["check", &array]);
    for words in [
        "pool \"pool0\": read_cache true would change to false at the next start",
        "volume \"lun0\": read_cache true would change to false at the next start",
    ] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    let done = succeed(&["volume", "set", &array, "lun0", "cache.write=off", "cache.read=off"]);
    let words =
        "the array file has write_cache durable for volume \"lun0\", which applies again at the next start";
    assert!(done.replace('\n', " ").contains(words), "{done}");
    let directory = scene.stop_and_keep();
    let served = Served::start(std::path::Path::new(&array), directory.path());
    let status = json(&["status", &array]);
    assert_eq!(caches_of(&status, 0), ("durable".to_owned(), false));
    assert_eq!(status["pools"][0]["cache"], serde_json::json!({ "read": false, "write": true }));
    served.stop();
}

#[test]
fn what_cannot_be_set_is_answered_with_what_can() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let keys = "cache.read=on|off or cache.write=durable|volatile|off|on";
    refuse(&["volume", "set", array, "lun0", "cache.read"], 2, &["\"cache.read\"", keys]);
    let meant = "unknown property \"cache.raed\"; did you mean cache.read?";
    refuse(&["volume", "set", array, "lun0", "cache.raed=off"], 2, &[meant]);
    refuse(
        &["volume", "set", array, "lun0", "x=off"],
        2,
        &["unknown property \"x\"", "cache.write=durable|"],
    );
    refuse(
        &["volume", "set", array, "lun0", "cache.write=never"],
        2,
        &["\"never\"", "durable|volatile|off|on"],
    );
    refuse(&["volume", "set", array, "lun0", "cache.read=on", "cache.read=off"], 2, &["cache.read", "once"]);
    refuse(&["volume", "set", array, "lun9", "cache.read=on"], 2, &["\"lun9\"", "tier0 status"]);
    refuse(&["pool", "set", array, "cache.write=volatile"], 2, &["\"volatile\"", "cache.write=on|off"]);
    refuse(&["pool", "set", array, "--pool", "none", "cache.read=on"], 2, &["\"none\"", "tier0 status"]);
    assert_eq!(run(&["volume", "set", array, "lun0"]).code, Some(2));
    assert_eq!(caches_of(&scene.status().0, 0), ("durable".to_owned(), true), "nothing was changed");
    scene.stop();
}
