//! `tier0 volume list`, `rename` and `shrink`.

use std::path::Path;

use crate::support::{Background, Scene, Served, array_file, directory, json, refuse, run, succeed, text};

/// The volume of a name in a list as JSON.
fn named<'a>(listed: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let volumes = listed["volumes"].as_array().expect("a list");
    volumes.iter().find(|volume| volume["name"] == name).unwrap_or_else(|| panic!("no {name}: {listed}"))
}

/// A client that stays connected to the volume at `uri`, once it is.
fn connected(array: &str, uri: &str) -> Background {
    let load = ["load", uri, "--read", "100", "--rate", "50", "--time", "120s"];
    let client = Background::start(&load);
    until("the client is connected", || {
        named(&json(&["volume", "list", array]), "lun0")["connections"].as_u64() > Some(0)
    });
    client
}

/// Waits for what another process does.
fn until(what: &str, is_reached: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_reached() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it does not come to that: {what}");
}

/// Writes the first `bytes` of a volume.
fn write(uri: &str, bytes: &str) {
    let load = ["--read", "0", "--pattern", "sequential", "--block", "1MiB", "--overwrite"];
    succeed(&[&["load", uri, "--bytes", bytes][..], &load].concat());
}

#[test]
fn volumes_are_listed_served_or_not() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    let array = text(&array);
    // Not created yet.
    let ended = run(&["volume", "list", array, "--json"]);
    assert!(ended.code == Some(0) && ended.stderr.contains("not created yet"), "{}", ended.stderr);
    let listed: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&listed["source"], &named(&listed, "lun0")["used_bytes"]), (&"file".into(), &().into()));

    succeed(&["create", array]);
    let served = Served::start(Path::new(array), at);
    succeed(&["volume", "create", array, "logs", "--size", "16MiB", "--thin"]);
    write(&served.uri, "4MiB");
    let client = connected(array, &served.uri);
    let listed = json(&["volume", "list", array]);
    let lun0 = named(&listed, "lun0");
    assert_eq!((&listed["source"], &lun0["size_bytes"]), (&"server".into(), &(24 << 20).into()));
    assert_eq!((&lun0["thin"], &named(&listed, "logs")["thin"]), (&false.into(), &true.into()));
    assert_eq!((&lun0["write_cache"], &lun0["read_cache"]), (&"durable".into(), &true.into()));
    assert!(lun0["connections"].as_u64() > Some(0), "{listed}");
    let told = succeed(&["volume", "list", array]);
    for words in ["volume", "connections", "24MiB", "thick", "thin", "durable"] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    drop(client);
    served.stop();

    // It was created after the file was written.
    let ended = run(&["volume", "list", array, "--json"]);
    assert!(ended.code == Some(0) && ended.stderr.contains("as its drives hold them"), "{}", ended.stderr);
    let listed: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let logs = named(&listed, "logs");
    assert_eq!((&listed["source"], &logs["size_bytes"]), (&"drives".into(), &(16 << 20).into()));
    assert_eq!(logs["connections"], serde_json::Value::Null, "no server knows connections: {listed}");

    for drive in ["d0.img", "d1.img"] {
        std::fs::rename(at.join(drive), at.join(format!("{drive}.away"))).expect("a file");
    }
    let ended = run(&["volume", "list", array]);
    assert!(ended.code == Some(0) && ended.stdout.contains("lun0"), "{}", ended.stderr);
    assert!(ended.stderr.contains("array.toml") && !ended.stdout.contains("logs"), "{}", ended.stderr);
}

#[test]
fn a_volume_is_renamed_while_clients_use_it() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array().to_owned();
    let array = array.as_str();
    write(scene.uri(), "2MiB");
    let client = connected(array, scene.uri());
    refuse(&["volume", "rename", array, "none", "new"], 2, &["\"none\""]);
    refuse(&["volume", "rename", array, "lun0", "a b"], 2, &["\"a b\" is not a valid name"]);
    let done = succeed(&["volume", "rename", array, "lun0", "redo"]).replace('\n', " ");
    assert!(done.contains("renamed volume lun0 to redo"), "{done}");
    assert!(done.contains("rename it in the array file too") && done.contains("\"lun0\""), "{done}");
    let listed = json(&["volume", "list", array]);
    assert!(named(&listed, "redo")["connections"].as_u64() > Some(0), "the client was cut off: {listed}");
    // It counts as a user under the new name.
    refuse(&["volume", "delete", array, "redo", "--yes"], 2, &["\"redo\" is used by", "--force"]);
    // Its requests go on.
    let requests = || {
        let report = json(&["iostat", array]);
        report["pools"][0]["connections"][0]["read"]["count"].as_u64().unwrap_or(0)
    };
    let before = requests();
    until("the client's requests go on", || requests() > before);
    drop(client);
    // New clients find it under the new name alone.
    let renamed = scene.uri().replace("lun0", "redo");
    assert_eq!(run(&["load", scene.uri(), "--read", "100", "--bytes", "1MiB"]).code, Some(2));
    succeed(&["load", &renamed, "--read", "100", "--bytes", "1MiB"]);

    let content = std::fs::read_to_string(array).expect("an array file").replace("lun0", "redo");
    let directory = scene.stop_and_keep();
    std::fs::write(array, content).expect("an array file");
    let served = Served::start(Path::new(array), directory.path());
    let listed = json(&["volume", "list", array]);
    assert_eq!(listed["volumes"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(named(&listed, "redo")["size_bytes"], 24 << 20);
    served.stop();
}

#[test]
fn a_volume_shrinks_with_consent_and_without_clients() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array().to_owned();
    let array = array.as_str();
    write(scene.uri(), "24MiB");
    let shrink = |size: &'static str| ["volume", "shrink", array, "lun0", "--size", size];
    let asks = &["from 24MiB to 8MiB", "beyond 8MiB is lost", "--yes"];
    refuse(&shrink("8MiB"), 2, asks);
    refuse(&[&shrink("32MiB")[..], &["--yes"]].concat(), 2, &["24MiB", "tier0 volume resize"]);
    refuse(&[&shrink("1000")[..], &["--yes"]].concat(), 2, &["4KiB"]);
    let client = connected(array, scene.uri());
    refuse(&[&shrink("8MiB")[..], &["--yes"]].concat(), 2, &["\"lun0\" is used by", "--force"]);
    assert!(named(&json(&["volume", "list", array]), "lun0")["connections"].as_u64() > Some(0));
    let used = || json(&["status", array])["pools"][0]["space"]["used_bytes"].as_u64().expect("a size");
    let done = succeed(&[&shrink("8MiB")[..], &["--yes", "--force"]].concat()).replace('\n', " ");
    assert!(done.contains("shrunk volume lun0 from 24MiB to 8MiB"), "{done}");
    assert!(done.contains("the array file still says 24MiB"), "{done}");
    assert_eq!(used(), 8 << 20, "what it held beyond its size is free");
    drop(client);
    assert_eq!(named(&json(&["volume", "list", array]), "lun0")["size_bytes"], 8 << 20);
    // It is offered with its new size.
    let load = ["load", scene.uri(), "--read", "100", "--pattern", "sequential", "--block", "1MiB"];
    let told: serde_json::Value = json(&[&load[..], &["--bytes", "8MiB"]].concat());
    assert!(told.is_object());
    assert!(succeed(&shrink("8MiB")).contains("nothing changed"), "there is nothing to agree to");
    scene.stop();
}

/// `--rate 10` meant ten bytes a second, and `status --quiet` printed the page.
#[test]
fn rates_need_a_unit_and_quiet_is_quiet() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    for verb in [&["scrub", array][..], &["pool", "restripe", array]] {
        refuse(&[verb, &["--rate", "10"]].concat(), 2, &["\"10\" has no unit", "use 10MiB"]);
        refuse(&[verb, &["--rate", "10B"]].concat(), 2, &["\"10B\" is below 4KiB per second"]);
    }
    for options in [&["--quiet"][..], &["-q", "--json"]] {
        let ended = run(&[&["status", array][..], options].concat());
        assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(0), "", ""), "{options:?}");
    }
    succeed(&["drive", "fail", array, "d1", "--yes"]);
    let ended = run(&["status", array, "--quiet"]);
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(5), "", ""));
    scene.stop();
}

/// A scrub that had ended was "not running, 90.7 %" when extents had moved meanwhile.
#[test]
fn a_scrub_that_has_finished_is_told_with_its_result() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    write(scene.uri(), "16MiB");
    succeed(&["scrub", array]);
    let status = scene.status_when(|status| !status["pools"][0]["scrub"]["last"].is_null());
    let scrub = &status["pools"][0]["scrub"];
    assert_eq!((&scrub["running"], &scrub["progress"]), (&false.into(), &1.0.into()), "{scrub}");
    let last = &scrub["last"];
    assert_eq!(
        (&last["result"], &last["bytes_verified"]),
        (&"finished".into(), &(16 << 20).into()),
        "{scrub}"
    );
    assert_eq!((&last["repaired"], &last["unrecoverable"]), (&0.into(), &0.into()), "{scrub}");
    let told = succeed(&["status", array]).replace("\n    ", " ");
    let words = "last scrub: finished ";
    assert!(told.contains(words) && told.contains(" ago, 100 %, 16MiB verified, no errors"), "{told}");
    let array = array.to_owned();
    let directory = scene.stop_and_keep();
    let served = Served::start(Path::new(&array), directory.path());
    let told = succeed(&["status", &array]).replace("\n    ", " ");
    assert!(told.contains("last scrub: before the server started (1 scrub finished"), "{told}");
    served.stop();
}
