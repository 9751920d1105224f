//! Groups of sets that join a pool that serves, and volumes that migrate between them.

use std::path::Path;

use serde_json::Value;

use crate::support::{Served, contents, directory, file, refuse, run, status, succeed, text, wait_until};

/// A pool of one group without a name: RAID 5 of disks, of which three make a set, and a volume.
fn array_of(directory: &Path, disks: usize, spares: u32) -> String {
    let at = directory.display();
    format!(
        r#"
[array]
name = "lab"
cores = 2
memory = "64MiB"

[[drive]]
name = "disk{{n}}"
count = {disks}
path = "{at}/disk{{n}}.img"
size = "128MiB"
class = "disk"

[[pool]]
name = "pool0"
raid = "raid5"
set_size = 3
spare_drives = {spares}
log = "8MiB"
chunklet = "2MiB"
extent = "1MiB"

[[volume]]
name = "lun0"
size = "32MiB"
"#
    )
}

/// Such an array in a directory, served; its file, and the server.
fn served(at: &Path, disks: usize, spares: u32) -> (String, Served) {
    let array = file(at, "array.toml", &array_of(at, disks, spares));
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    (text(&array).to_owned(), served)
}

fn load(uri: &str, more: &[&str]) {
    succeed(&[&["load", uri, "--overwrite", "--verify"], more].concat());
}

fn write_all(uri: &str) {
    load(uri, &["--read", "0", "--pattern", "sequential", "--block", "256KiB", "--ios", "128"]);
}

fn lun0(array: &str) -> Value {
    status(array)["pools"][0]["volumes"][0].clone()
}

/// Adds a group of two drives of flash in files.
fn add_flash(array: &str, directory: &Path, more: &[&str]) -> String {
    let drive = |name: &str| format!("{name}={}", directory.join(format!("{name}.img")).display());
    let (one, other) = (drive("ssd0"), drive("ssd1"));
    let verb = ["pool", "add-group", array, "flash", "--raid", "raid1", "--drive", &one, "--drive", &other];
    succeed(&[verb.as_slice(), &["--size", "128MiB", "--class", "flash"], more].concat()).replace('\n', " ")
}

/// As docs/operations.md says: two disks leave, flash takes their bays, and the volume gets a tier and moves to it.
#[test]
fn disks_give_way_to_flash_and_a_volume_moves_there_and_back() {
    let directory = directory();
    let at = directory.path();
    let (array, served) = served(at, 5, 2);
    let array = array.as_str();
    write_all(&served.uri);
    for disk in ["disk3", "disk4"] {
        succeed(&["drive", "remove", array, disk, "--yes"]);
        wait_until("the disk has left", || {
            !status(array)["pools"][0]["drives"].to_string().contains(&format!("\"{disk}\""))
        });
    }
    let done = add_flash(array, at, &[]);
    assert!(
        done.contains("group flash of 2 drives of class flash:") && done.contains("tier0 config"),
        "{done}"
    );
    assert_eq!(lun0(array)["group"], "disks", "the first group has got a name");
    succeed(&["volume", "set", array, "lun0", "place=auto"]);
    succeed(&["volume", "pin", array, "lun0", "--range", "0..2MiB", "--to", "fast"]);
    wait_until("the pin holds", || lun0(array)["away_bytes"] == 2 << 20);

    let done = succeed(&["volume", "migrate", array, "lun0", "--group", "flash"]).replace('\n', " ");
    assert!(done.contains("30MiB") && done.contains("pins") && done.contains("cancels"), "{done}");
    wait_until("it has moved", || lun0(array)["migrating_bytes"] == 0 && lun0(array)["away_bytes"] == 0);
    wait_until("it is told", || succeed(&["events", array]).contains("has moved to group \"flash\""));
    let (config, groups) = (succeed(&["config", array]), status(array));
    assert_eq!(groups["pools"][0]["groups"][0]["used_bytes"], 0, "{groups}");
    assert!(config.contains("[[pool.group]]") && config.contains("group = \"flash\""), "{config}");

    // The old file still does, and says what it lacks.
    served.kill();
    let served = Served::start(Path::new(array), at);
    load(&served.uri, &["--read", "100", "--ios", "200"]);
    assert_eq!(lun0(array)["group"], "flash");
    served.stop();
    let told = run(&["check", array]);
    assert!(
        told.stdout.contains("group \"flash\"") || told.stderr.contains("group \"flash\""),
        "{}",
        told.stdout
    );
    let newer = file(at, "newer.toml", &config);
    let served = Served::start(&newer, at);
    let array = text(&newer);
    succeed(&["volume", "migrate", array, "lun0", "--group", "disks"]);
    wait_until("it has moved back", || lun0(array)["away_bytes"] == 0);
    load(&served.uri, &["--read", "50", "--ios", "200"]);
    assert!(succeed(&["volume", "migrate", array, "lun0", "--group", "disks"]).contains("already"));
    served.stop();
}

#[test]
fn a_group_that_cannot_be_is_refused_and_nothing_is_left() {
    let directory = directory();
    let at = directory.path();
    let (array, served) = served(at, 3, 0);
    let array = array.as_str();
    let foreign = file(at, "old.img", &"x".repeat(64 << 20));
    let names: Vec<_> = contents(at).into_keys().collect();
    let path = |name: &str| format!("{name}={}", at.join(format!("{name}.img")).display());
    let (one, two, same) = (path("a"), path("b"), format!("c={}", at.join("a.img").display()));
    let held = format!("old={}", foreign.display());
    let cases: [(&[&str], i32, &[&str]); 9] = [
        (&["flash", "--raid", "raid7", "--drive", &one], 2, &["raid7"]),
        (
            &["flash", "--raid", "raid6", "--drive", &one, "--drive", &two],
            2,
            &["raid6", "there are 2", "another level"],
        ),
        (&["flash", "--raid", "raid1", "--drive", &one, "--drive", &same], 2, &["path of its own"]),
        (&["disks", "--raid", "raid1", "--drive", &one, "--drive", &two], 2, &["--first-name"]),
        (&["bad name", "--raid", "raid1", "--drive", &one, "--drive", &two], 2, &["bad name"]),
        (&["flash", "--raid", "raid1", "--drive", "a", "--drive", &two], 2, &["NAME=PATH"]),
        (&["flash", "--raid", "raid1", "--drive", &one, "--drive", "disk0=/x"], 2, &["disk0"]),
        (&["flash", "--raid", "raid1", "--drive", &one, "--drive", &held], 2, &["\"old\"", "--force"]),
        (
            &[
                "flash",
                "--raid",
                "raid1",
                "--set-size",
                "2",
                "--spare-drives",
                "1",
                "--drive",
                &one,
                "--drive",
                &two,
            ],
            2,
            &["lower one of them"],
        ),
    ];
    for (arguments, code, words) in cases {
        refuse(&[&["pool", "add-group", array], arguments, &["--size", "64MiB"]].concat(), code, words);
        let now: Vec<_> = contents(at).into_keys().collect();
        assert_eq!(now, names, "{arguments:?} leaves a file behind");
    }
    refuse(&["volume", "migrate", array, "lun0", "--group", "flash"], 2, &["tier0 pool add-group"]);
    refuse(
        &["pool", "add-group", array, "flash", "--raid", "raid0", "--drive", &one],
        2,
        &["no redundancy", "--yes"],
    );
    refuse(&["volume", "set", array, "lun0", "place=auto"], 2, &["class flash", "tier0 pool add-group"]);
    assert!(
        status(array)["pools"][0]["volumes"][0].get("group").is_none(),
        "the pool has one group without a name"
    );
    add_flash(array, at, &["--first-name", "old"]);
    assert_eq!(lun0(array)["group"], "old");
    refuse(
        &[
            "pool",
            "add-group",
            array,
            "third",
            "--raid",
            "raid1",
            "--drive",
            &one,
            "--drive",
            &two,
            "--size",
            "64MiB",
            "--first-name",
            "x",
        ],
        2,
        &["omit --first-name"],
    );
    served.stop();
}

/// The log lies on the new drives, in a group that has no sets before.
#[test]
fn the_log_goes_to_the_drives_of_a_group_before_its_sets_are_made() {
    let directory = directory();
    let at = directory.path();
    let (array, served) = served(at, 3, 0);
    let array = array.as_str();
    write_all(&served.uri);
    let done = add_flash(array, at, &["--without-sets"]);
    assert!(done.contains("without sets") && done.contains("tier0 pool grow"), "{done}");
    refuse(&["volume", "migrate", array, "lun0", "--group", "flash"], 2, &["are lacking"]);
    // It starts without sets of the group, too.
    served.kill();
    let served = Served::start(Path::new(array), at);
    succeed(&["pool", "log", array, "--drives", "ssd0,ssd1"]);
    wait_until("the log lies there", || {
        status(array)["pools"][0]["log"]["drives"] == serde_json::json!(["ssd0", "ssd1"])
    });
    let grown = succeed(&["pool", "grow", array]);
    assert!(grown.contains("has grown by"), "{grown}");
    succeed(&["volume", "set", array, "lun0", "place=fast"]);
    wait_until("it lies on flash", || lun0(array)["away_bytes"] == 32 << 20);
    load(&served.uri, &["--read", "50", "--ios", "200"]);
    served.stop();
}

fn group(array: &str, name: &str) -> Option<Value> {
    let groups = status(array)["pools"][0]["groups"].as_array().cloned().unwrap_or_default();
    groups.into_iter().find(|group| group["name"] == name)
}

/// As docs/operations.md says: the volume goes, then the group, then its drives; and a group of the same name comes again.
#[test]
fn a_group_leaves_with_its_drives_and_another_one_gets_its_name() {
    let directory = directory();
    let at = directory.path();
    let (array, served) = served(at, 4, 1);
    let array = array.as_str();
    refuse(&["pool", "remove-group", array, "disks"], 2, &["one group"]);
    add_flash(array, at, &[]);
    write_all(&served.uri);
    succeed(&["volume", "migrate", array, "lun0", "--group", "flash"]);
    refuse(
        &["pool", "remove-group", array, "flash"],
        2,
        &["volumes lun0", "tier0 volume migrate lun0 --group disks"],
    );
    wait_until("it has moved", || lun0(array)["migrating_bytes"] == 0);
    let config = file(at, "with-flash.toml", &succeed(&["config", array]));
    succeed(&["volume", "migrate", array, "lun0", "--group", "disks"]);
    // What is still on its way goes on.
    succeed(&["pool", "tier", array, "on", "--rate", "64KiB"]);
    let done = succeed(&["pool", "remove-group", array, "flash"]).replace('\n', " ");
    assert!(done.contains("group flash leaves pool pool0") && done.contains("--cancel"), "{done}");
    // `tier0 check` warns of a file that names the group.
    let counting = std::fs::read_to_string(&config).expect("it is a text")
        + "\n[[volume]]\nname = \"early\"\npool = \"pool0\"\ngroup = \"flash\"\nsize = \"1MiB\"\nplace = \"fast\"\n";
    let counting = file(at, "counting.toml", &counting);
    let checked = run(&["check", text(&counting)]);
    let told = format!("{}{}", checked.stdout, checked.stderr).replace('\n', " ");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "group \"flash\" is leaving pool \"pool0\"",
        "the array file has \"flash\", which is leaving the pool",
        "\"early\" is in the array file but not in pool \"pool0\"",
        "place is fast in the array file, but pool \"pool0\" has no group of flash that stays",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    succeed(&["pool", "tier", array, "on", "--rate", "0"]);
    load(&served.uri, &["--read", "50", "--ios", "200"]);
    wait_until("the group has left", || group(array, "flash").is_none());
    wait_until("it is told", || succeed(&["events", array]).contains("group \"flash\" has left it"));
    let between = file(at, "between.toml", &succeed(&["config", array]));
    assert!(!succeed(&["config", array]).contains("name = \"flash\""));
    refuse(&["pool", "remove-group", array, "disks"], 2, &["only one", "tier0 pool add-group"]);
    refuse(&["volume", "migrate", array, "lun0", "--group", "flash"], 2, &["no group \"flash\""]);

    // A file that names it starts the array, with a warning.
    served.kill();
    let checked = run(&["check", text(&between)]);
    assert_eq!((checked.code, checked.stdout.contains("flash")), (Some(0), false), "{}", checked.stdout);
    let checked = run(&["check", text(&config)]);
    let told = format!("{}{}", checked.stdout, checked.stderr);
    assert_eq!(checked.code, Some(0), "{told}");
    assert!(told.contains("group \"flash\" of the array file has left pool"), "{told}");
    // So does one that has a volume there that does not exist.
    let volume = "\n[[volume]]\nname = \"late\"\npool = \"pool0\"\ngroup = \"flash\"\nsize = \"1MiB\"\n";
    let with_volume = std::fs::read_to_string(&config).expect("it is a text") + volume;
    let with_volume = file(at, "with-volume.toml", &with_volume);
    let checked = run(&["check", text(&with_volume)]);
    let told = format!("{}{}", checked.stdout, checked.stderr).replace('\n', " ");
    assert_eq!(checked.code, Some(0), "{told}");
    assert!(told.contains("\"late\" is in the array file") && told.contains("it is not created"), "{told}");
    let served = Served::start(&with_volume, at);
    assert!(!succeed(&["volume", "list", text(&with_volume)]).contains("late"));
    served.kill();
    let served = Served::start(&config, at);
    load(&served.uri, &["--read", "100", "--ios", "200"]);
    let array = text(&config);
    for drive in ["ssd0", "ssd1"] {
        succeed(&["drive", "remove", array, drive, "--yes"]);
        wait_until("the drive has left", || {
            !status(array)["pools"][0]["drives"].to_string().contains(&format!("\"{drive}\""))
        });
        std::fs::remove_file(at.join(format!("{drive}.img"))).expect("the drive was removed");
    }
    let newer = succeed(&["config", array]);
    assert!(!newer.contains("ssd0") && !newer.contains("flash"), "{newer}");

    add_flash(array, at, &[]);
    succeed(&["volume", "migrate", array, "lun0", "--group", "flash"]);
    wait_until("it has moved there", || lun0(array)["migrating_bytes"] == 0);
    let newest = file(at, "newest.toml", &succeed(&["config", array]));
    served.kill();
    let served = Served::start(&newest, at);
    let array = text(&newest);
    load(&served.uri, &["--read", "50", "--ios", "200"]);
    assert_eq!((lun0(array)["group"].as_str(), lun0(array)["away_bytes"].as_u64()), (Some("flash"), Some(0)));
    // The first group can go as well.
    succeed(&["pool", "remove-group", array, "disks"]);
    wait_until("the disks have left", || group(array, "disks").is_none());
    load(&served.uri, &["--read", "50", "--ios", "200"]);
    // The log has no room elsewhere, so not all of them can go.
    let refused = ["disk0", "disk1", "disk2", "disk3"].into_iter().find_map(|disk| {
        let asked = run(&["drive", "remove", array, disk, "--yes"]);
        let is_gone = || !status(array)["pools"][0]["drives"].to_string().contains(&format!("\"{disk}\""));
        match asked.code {
            Some(0) => {
                wait_until("the disk has left", is_gone);
                None
            }
            code => Some((code, asked.stderr.replace('\n', " "))),
        }
    });
    let (code, told) = refused.expect("one is refused");
    assert!(code == Some(2) && told.contains("copy of the write log needs"), "{told}");
    served.stop();
    // The file of before there were groups describes sets that have left.
    let first = at.join("array.toml");
    let checked = run(&["check", text(&first)]);
    let told = format!("{}{}", checked.stdout, checked.stderr);
    assert_eq!(checked.code, Some(0), "{told}");
    assert!(told.contains("describes for pool \"pool0\" have left it"), "{told}");
    let served = Served::start(&first, at);
    load(&served.uri, &["--read", "100", "--ios", "200"]);
    served.stop();
}
