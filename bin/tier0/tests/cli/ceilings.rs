//! Ceilings of volumes, set while the array serves, and what a restart, the array file, lists and statistics say of them.

use serde_json::{Value, json};

use crate::support::{Scene, Served, file, json, refuse, run, succeed, text};

/// The ceilings of the first volume, as status tells.
fn ceilings_of(array: &str) -> Value {
    json(&["status", array])["pools"][0]["volumes"][0]["ceilings"].clone()
}

#[test]
fn ceilings_are_set_while_the_array_serves_and_stay_so() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    assert_eq!(ceilings_of(array), Value::Null);
    let done = succeed(&["volume", "set", array, "lun0", "iops.max=500", "mbps.max=100", "burst=1"]);
    assert!(done.contains("volume lun0: at most 500 IOPS, 100 MB/s, burst 1 s from now on"), "{done}");
    let known = json!({ "iops_max": 500, "mbps_max": 100, "burst_seconds": 1 });
    assert_eq!(ceilings_of(array), known);
    assert!(run(&["status", array]).stdout.contains("500 IOPS, 100 MB/s, burst 1 s"));

    succeed(&["load", scene.uri(), "--read", "100", "--block", "8KiB", "--ios", "1500"]);
    let throttling = &json(&["iostat", array])["pools"][0]["throttling"][0];
    assert_eq!((&throttling["volume"], &throttling["ceilings"]), (&json!("lun0"), &known));
    assert!(throttling["requests"].as_u64() > Some(0), "{throttling}");
    assert!(run(&["iostat", array]).stdout.contains("lun0: at most 500 IOPS, 100 MB/s, burst 1 s; "));
    let config = succeed(&["config", array]);
    assert!(config.contains("iops_max = 500\nmbps_max = 100\nburst = 1\n"), "{config}");

    // What is not named stays, and both caches and ceilings can be set at once.
    let done = succeed(&["volume", "set", array, "lun0", "mbps.max=none", "cache.read=off"]);
    assert!(done.contains("read cache off") && done.contains("at most 500 IOPS, burst 1 s"), "{done}");
    let file_of = array.to_owned();
    let directory = scene.stop_and_keep();
    let array = file_of.as_str();
    let stored = json(&["volume", "list", array]);
    let left = json!({ "iops_max": 500, "mbps_max": null, "burst_seconds": 1 });
    assert_eq!((&stored["source"], &stored["volumes"][0]["ceilings"]), (&json!("drives"), &left));
    let served = Served::start(std::path::Path::new(array), directory.path());
    assert_eq!(ceilings_of(array), left);
    let done = succeed(&["volume", "set", array, "lun0", "iops.max=none"]);
    assert!(done.contains("volume lun0: no ceilings from now on"), "{done}");
    assert_eq!(ceilings_of(array), Value::Null);
    served.stop();
}

/// What the array file says counts at each start, and that is told when something else is set.
#[test]
fn the_array_file_says_which_ceilings_there_are_at_a_start() {
    let scene = Scene::of("raid1", 2);
    let right = std::fs::read_to_string(scene.array()).expect("an array file");
    let says = right.replace("size = \"24MiB\"", "size = \"24MiB\"\niops_max = 700\nmbps_max = 0");
    let array = file(scene.directory(), "array.toml", &says);
    let array = text(&array).to_owned();
    let told = succeed(&["check", &array]);
    let words = "volume \"lun0\": iops_max 0 would change to 700 at the next start";
    assert!(told.contains(words), "{told}");
    let done = succeed(&["volume", "set", &array, "lun0", "iops.max=900", "mbps.max=50", "burst=4"]);
    let words =
        "the array file has iops_max 700 and mbps_max 0 for volume \"lun0\", which applies again at the next";
    assert!(done.replace('\n', " ").contains(words), "{done}");
    let directory = scene.stop_and_keep();
    let served = Served::start(std::path::Path::new(&array), directory.path());
    let known = json!({ "iops_max": 700, "mbps_max": null, "burst_seconds": 4 });
    assert_eq!(ceilings_of(&array), known, "the burst, of which the file says nothing, stays");
    served.stop();
}

#[test]
fn what_cannot_be_a_ceiling_is_answered_with_what_can() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let set = |setting: &str, words: &[&str]| refuse(&["volume", "set", array, "lun0", setting], 2, words);
    set("iops.max=abc", &["\"abc\"", "iops.max=N|none"]);
    set("mbps.max=1.5", &["\"1.5\"", "mbps.max=N|none"]);
    set("burst=10s", &["\"10s\"", "burst=SECONDS|none"]);
    set("iops.mx=5", &["did you mean iops.max?"]);
    set("iops.max=4000000000", &["iops.max is at most"]);
    set("burst=5", &["no ceiling", "set iops.max or mbps.max"]);
    assert_eq!(ceilings_of(array), Value::Null, "nothing was changed");
    let right = std::fs::read_to_string(array).expect("an array file");
    let wrong = right.replace("size = \"24MiB\"", "size = \"24MiB\"\nmbps_max = 4000000");
    let wrong = file(scene.directory(), "wrong.toml", &wrong);
    refuse(&["check", text(&wrong)], 2, &["volume.mbps_max: 4000000 is too much", "1 to 100000"]);
    scene.stop();
}
