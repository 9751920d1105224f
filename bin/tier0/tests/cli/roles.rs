//! An array file with disks for data and SSDs for the write log and the flash cache alone: what happens to the SSDs when a disk
//! fails, and to the array when an SSD does.

use std::path::Path;

use serde_json::Value;

use crate::support::{Served, directory, file, refuse, status, succeed, text};

fn array_of(directory: &Path) -> String {
    let at = directory.display();
    format!(
        r#"
[array]
name = "lab"
cores = 2
memory = "64MiB"

[[drive]]
name = "disk{{n}}"
count = 4
path = "{at}/disk{{n}}.img"
size = "128MiB"
class = "disk"

[[drive]]
name = "ssd{{n}}"
count = 2
path = "{at}/ssd{{n}}.img"
size = "256MiB"
class = "flash"

[[pool]]
name = "pool0"
drives = ["disk*"]
raid = "raid10"
set_size = 4
chunklet = "4MiB"
log = "16MiB"
log_drives = ["ssd*"]
flash_cache = "32MiB"
flash_cache_drives = ["ssd*"]

[[volume]]
name = "lun0"
size = "64MiB"
"#
    )
}

fn status_when(array: &str, is_reached: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..1200 {
        let status = status(array);
        if is_reached(&status) {
            return status;
        }
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it does not come to that: {}", status(array));
}

fn settled(array: &str) -> Value {
    status_when(array, |status| {
        let pool = &status["pools"][0];
        pool["rebuild"].is_null() && pool["restripe"].is_null()
    })
}

fn drive<'a>(status: &'a Value, name: &str) -> &'a Value {
    let drives = status["pools"][0]["drives"].as_array().expect("a list");
    drives.iter().find(|drive| drive["name"] == name).unwrap_or_else(|| panic!("no {name}: {drives:?}"))
}

/// The columns of drives, and those on drives that are not for data.
fn columns(status: &Value, name: &str) -> (u64, u64) {
    let drive = drive(status, name);
    let [used, misplaced] =
        ["chunklets_used", "misplaced_columns"].map(|field| drive[field].as_u64().expect("a number"));
    (used, misplaced)
}

/// The SSDs had 63 columns, the new disk none, all was well, and the pool grew into the SSDs.
#[test]
fn ssds_of_the_log_give_back_what_they_took_over() {
    let directory = directory();
    let array = file(directory.path(), "array.toml", &array_of(directory.path()));
    let array = text(&array);
    succeed(&["create", array]);
    let served = Served::start(Path::new(array), directory.path());
    succeed(&["load", &served.uri, "--read", "0", "--block", "64KiB", "--ios", "1024", "--overwrite"]);
    let before = status(array);
    for name in ["ssd0", "ssd1"] {
        assert_eq!((&drive(&before, name)["for_data"], columns(&before, name).1), (&Value::Bool(false), 0));
    }
    let (had, _) = columns(&before, "disk1");
    succeed(&["drive", "fail", array, "disk1", "--yes"]);
    let now = status_when(array, |status| {
        status["pools"][0]["sets"]["degraded"] == 0 && status["pools"][0]["rebuild"].is_null()
    });
    let taken = columns(&now, "ssd0").1 + columns(&now, "ssd1").1;
    assert_eq!(taken, had, "all other drives have a column of every set: {now}");
    let problems = now["pools"][0]["problems"].to_string();
    assert!(
        problems.contains("ssd0") && problems.contains("flash cache alone") && problems.contains("replace"),
        "{problems}"
    );
    let events = succeed(&["events", array]);
    assert!(events.contains("columns of sets and is for the write log or the flash cache alone"), "{events}");
    refuse(&["pool", "grow", array], 2, &["tier0 drive add"]);
    served.stop();
    // The file is as it was.
    let served = Served::start(Path::new(array), directory.path());
    assert_eq!(columns(&status(array), "ssd0").1 + columns(&status(array), "ssd1").1, taken);
    let path = directory.path().join("disk4.img");
    let new = ["--name", "disk4", "--path", text(&path), "--size", "128MiB", "--class", "disk"];
    succeed(&[&["drive", "replace", array, "disk1"], &new[..]].concat());
    let now = status_when(array, |status| {
        let pool = &status["pools"][0];
        pool["rebuild"].is_null() && columns(status, "ssd0").1 + columns(status, "ssd1").1 == 0
    });
    assert_eq!(columns(&now, "disk4").0, had, "the new disk has what the old one had: {now}");
    succeed(&["pool", "restripe", array]);
    let now = settled(array);
    assert_eq!(now["pools"][0]["problems"].to_string(), "[]");
    for name in ["ssd0", "ssd1"] {
        assert_eq!(columns(&now, name), columns(&before, name), "drive {name}");
    }
    served.stop();
    let served = Served::start(Path::new(array), directory.path());
    let now = settled(array);
    assert_eq!(drive(&now, "disk4")["for_data"], Value::Bool(true), "what disk1 was for");
    served.stop();
}

/// An SSD that was lost was never used as a cache again, and the administrator was told to correct a file that was right.
#[test]
fn an_ssd_that_was_lost_is_a_cache_again_when_it_is_taken_back() {
    let directory = directory();
    let array = file(directory.path(), "array.toml", &array_of(directory.path()));
    let array = text(&array);
    succeed(&["create", array]);
    let served = Served::start(Path::new(array), directory.path());
    let cache =
        |status: &Value, name: &str| drive(status, name)["flash_cache_bytes"].as_u64().expect("a number");
    let whole = cache(&status(array), "ssd0");
    assert!(whole >= 16 << 20);
    succeed(&["drive", "fail", array, "ssd0", "--yes"]);
    let now = settled(array);
    let problems = now["pools"][0]["problems"].to_string();
    assert!(problems.contains("tier0 drive rejoin") && !problems.contains("spares again"), "{problems}");
    served.stop();
    // A start without the SSD warns of the missing SSD and does not blame the array file.
    let served = Served::start(Path::new(array), directory.path());
    let lacks = |status: &Value| {
        status["events"].to_string().contains("flash cache lacks drive ssd0, which has failed")
    };
    let now = status_when(array, lacks);
    for told in [now["events"].to_string(), now["pools"][0]["problems"].to_string()] {
        assert!(!told.contains("correct the"), "the file is right: {told}");
    }
    assert_eq!(cache(&now, "ssd1"), whole, "the other part stays as it is");
    succeed(&["drive", "rejoin", array, "ssd0"]);
    let now = status_when(array, |status| {
        let there = status["pools"][0]["drives"].as_array().expect("a list").iter();
        there.filter(|drive| drive["name"] == "ssd0" && drive["state"] == "active").count() == 1
            && cache(status, "ssd0") == whole
    });
    assert_eq!(drive(&now, "ssd0")["for_data"], Value::Bool(false));
    // The same with a new drive in its place.
    let path = directory.path().join("ssd2.img");
    let new = ["--name", "ssd2", "--path", text(&path), "--size", "256MiB", "--class", "flash"];
    succeed(&[&["drive", "replace", array, "ssd1"], &new[..]].concat());
    let now = status_when(array, |status| {
        let drives = status["pools"][0]["drives"].as_array().expect("a list");
        drives.iter().any(|drive| drive["name"] == "ssd2") && cache(status, "ssd2") == whole
    });
    assert_eq!(drive(&now, "ssd2")["for_data"], Value::Bool(false));
    served.stop();
}

/// The write log moved from an SSD to a disk, and a drive was replaced by a smaller one, without a word.
#[test]
fn what_makes_the_array_slower_or_smaller_is_told() {
    let directory = directory();
    let array = file(directory.path(), "array.toml", &array_of(directory.path()));
    let array = text(&array);
    succeed(&["create", array]);
    let served = Served::start(Path::new(array), directory.path());
    let place = |name: &str| directory.path().join(name);
    let spare = place("spare.img");
    let disk = ["--name", "spare", "--path", text(&spare), "--size", "128MiB", "--class", "disk"];
    succeed(&[&["drive", "add", array], &disk[..]].concat());
    refuse(
        &["drive", "remove", array, "ssd1"],
        2,
        &["write log of pool pool0", "\"ssd1\"", "to a disk", "--yes"],
    );
    let told = succeed(&["drive", "remove", array, "ssd1", "--yes"]).replace('\n', " ");
    assert!(told.contains("write log goes to drive spare, a disk"), "{told}");
    let small = place("small.img");
    let small = ["--name", "small", "--path", text(&small), "--size", "96MiB", "--class", "disk"];
    let told = succeed(&[&["drive", "replace", array, "disk1"], &small[..]].concat()).replace('\n', " ");
    assert!(told.contains("small has 96MiB and is smaller than disk1 (128MiB)"), "{told}");
    served.stop();
}
