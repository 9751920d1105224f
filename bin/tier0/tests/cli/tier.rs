//! The performance tier as an administrator meets it: hot data moves to flash, one can see why, and by hand it goes where it is told.

use std::path::Path;

use serde_json::Value;

use crate::support::{Served, directory, file, json, refuse, run, status, succeed, text, wait_until};

/// RAID 5 of disks beside mirrored flash, and a volume on the disks, of which `fields` tell. Nothing is read from memory.
fn array_of(directory: &Path, fields: &str) -> String {
    let at = directory.display();
    format!(
        r#"
[array]
name = "lab"
cores = 2
memory = "64MiB"

[[drive]]
name = "disk{{n}}"
count = 3
path = "{at}/disk{{n}}.img"
size = "128MiB"
class = "disk"

[[drive]]
name = "ssd{{n}}"
count = 2
path = "{at}/ssd{{n}}.img"
size = "64MiB"
class = "flash"

[[pool]]
name = "pool0"
log_drives = ["ssd*"]
log = "8MiB"
chunklet = "2MiB"
extent = "1MiB"
read_cache = false

[[pool.group]]
name = "disks"
drives = ["disk*"]
raid = "raid5"
set_size = 3

[[pool.group]]
name = "flash"
drives = ["ssd*"]
raid = "raid1"
set_size = 2

[[volume]]
name = "lun0"
size = "64MiB"
group = "disks"
{fields}
"#
    )
}

fn served(directory: &Path, fields: &str) -> (String, Served) {
    let array = file(directory, "array.toml", &array_of(directory, fields));
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory);
    (text(&array).to_owned(), served)
}

fn load(uri: &str, more: &[&str]) {
    succeed(&[&["load", uri, "--overwrite"], more].concat());
}

fn tier_of(array: &str) -> Value {
    status(array)["pools"][0]["tier"].clone()
}

/// Reads the first 4 MiB of the volume until its second extent lies on flash, and its move has ended.
fn heat(array: &str, uri: &str) {
    wait_until("the extent is promoted", || {
        load(uri, &["--read", "100", "--length", "4MiB", "--ios", "2000"]);
        json(&["tier", "explain", array, "lun0", "1MiB"])["since_s"].is_u64()
    });
}

#[test]
fn hot_data_moves_to_flash_and_it_is_told_why() {
    let directory = directory();
    let (array, served) = served(directory.path(), "place = \"auto\"");
    let array = array.as_str();
    load(&served.uri, &["--read", "0", "--pattern", "sequential", "--block", "256KiB", "--ios", "256"]);
    heat(array, &served.uri);
    let told = succeed(&["tier", "explain", array, "lun0", "1MiB"]);
    for words in
        ["volume lun0, 1MiB to 2MiB", "group: flash, since", "place: auto", "it stays until", "(hot)"]
    {
        assert!(told.contains(words), "{words:?} is missing: {told}");
    }
    let cold = json(&["tier", "explain", array, "lun0", "40MiB"]);
    assert_eq!((&cold["is_fast"], &cold["group"]), (&Value::Bool(false), &"disks".into()), "{cold}");
    let plan = succeed(&["tier", "plan", array]);
    assert!(plan.contains("fast group flash of") && plan.contains("share of drive I/O"), "{plan}");
    let told = run(&["status", array]).stdout;
    assert!(told.contains("tier on: group flash holds"), "{told}");
    let told = succeed(&["iostat", array]).replace("\n    ", " ");
    assert!(told.contains("tier: group flash") && told.contains("promoted, 0 demoted"), "{told}");
    let io = &json(&["iostat", array])["pools"][0]["tier"];
    assert!(io["moves"]["promoted"].as_u64() > Some(0) && io["reads_fast"].as_u64() > Some(0), "{io}");
    let config = succeed(&["config", array]);
    assert!(config.contains("place = \"auto\""), "{config}");

    served.kill();
    let served = Served::start(Path::new(array), directory.path());
    let resident = json(&["tier", "explain", array, "lun0", "1MiB"]);
    assert_eq!(resident["is_fast"], true, "the map is the memory: {resident}");
    let done = succeed(&["volume", "set", array, "lun0", "place=slow"]).replace('\n', " ");
    assert!(done.contains("is to lie in its own group") && done.contains("applies again"), "{done}");
    wait_until("it lies on the disks again", || tier_of(array)["fast_promoted_bytes"] == 0);
    served.stop();
}

#[test]
fn by_hand_it_goes_where_it_is_told_or_one_is_told_why_not() {
    let directory = directory();
    let (array, served) = served(directory.path(), "");
    let array = array.as_str();
    load(&served.uri, &["--read", "0", "--pattern", "sequential", "--block", "256KiB", "--ios", "256"]);
    assert!(status(array)["pools"][0].get("tier").is_none(), "nothing was placed");
    assert!(
        json(&["iostat", array])["pools"][0]["tier"].is_null()
            && !succeed(&["iostat", array]).contains("tier:")
    );
    let done =
        succeed(&["volume", "pin", array, "lun0", "--range", "8MiB..12MiB", "--to", "fast", "--until", "1h"]);
    assert!(done.contains("pinned 4MiB of volume lun0 to the fast group"), "{done}");
    wait_until("it lies on flash", || tier_of(array)["fast_promoted_bytes"] == 4 << 20);
    let told = succeed(&["tier", "explain", array, "lun0", "9MiB"]);
    assert!(told.contains("pinned until 2") && told.contains("it stays: it is pinned here"), "{told}");
    refuse(
        &["volume", "set", array, "lun0", "place=fast"],
        2,
        &["are lacking", "tier0 volume pin ARRAY.TOML lun0"],
    );
    refuse(&["volume", "set", array, "lun0", "place=hot"], 2, &["\"hot\"", "place=auto|fast|slow"]);
    refuse(&["volume", "pin", array, "lun0", "--range", "5", "--to", "fast"], 2, &["0..4GiB"]);
    refuse(
        &["volume", "pin", array, "lun0", "--range", "70MiB..80MiB", "--to", "fast"],
        2,
        &["behind the end"],
    );
    refuse(&["tier", "explain", array, "lun0", "64MiB"], 2, &["behind the end"]);
    refuse(&["pool", "tier", array], 2, &["--rate"]);
    assert_eq!(json(&["pool", "tier", array, "off", "--rate", "10MiB"])["result"], "done");
    assert!(run(&["status", array]).stdout.contains("the tier waits: the tier is off"));
    succeed(&["volume", "unpin", array, "lun0"]);
    wait_until("it lies on the disks again", || tier_of(array)["fast_promoted_bytes"] == 0);
    served.stop();
}
