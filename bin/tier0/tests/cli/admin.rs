//! Verbs on a running array: what they refuse, with which code, and that a refusal changes nothing.

use crate::support::{
    Scene, Served, array_file, array_text, contents, directory, file, json, refuse, run, status, succeed,
    text,
};

/// Unknown names, and drives that are missing or too small, ended with 1, as if something had broken.
#[test]
fn what_is_asked_for_wrongly_is_refused_and_changes_nothing() {
    let scene = Scene::of("raid5", 3);
    let array = scene.array();
    let before = json(&["config", array]);
    let new = scene.at("new.img");
    let new = text(&new);
    let taken = scene.at("d1.img");
    let spare = scene.at("spare.img");
    std::fs::File::create(&spare).and_then(|file| file.set_len(64 << 20)).expect("a file");
    for (arguments, words) in [
        (&["drive", "fail", array, "d9", "--yes"][..], &["\"d9\"", "d0, d1, d2"][..]),
        (&["drive", "remove", array, "d9"], &["\"d9\""]),
        (&["drive", "replace", array, "d9", "--name", "n", "--path", new], &["\"d9\""]),
        (&["drive", "add", array, "--name", "n", "--path", new], &["new.img", "there is nothing", "--size"]),
        (
            &["drive", "add", array, "--name", "n", "--path", new, "--size", "4095"],
            &["4095B", "multiple of 512B"],
        ),
        (&["drive", "add", array, "--name", "n", "--path", new, "--size", "64KiB"], &["\"n\"", "larger"]),
        (&["drive", "add", array, "--name", "d1", "--path", new, "--size", "64MiB"], &["\"d1\"", "already"]),
        (
            &["drive", "add", array, "--name", "n", "--path", text(&spare), "--size", "16MiB"],
            &["64MiB", "16MiB"],
        ),
        (&["drive", "add", array, "--name", "n", "--path", "/nowhere/n", "--size", "64MiB"], &["/nowhere/n"]),
        (
            &["drive", "add", array, "--name", "n n", "--path", new, "--size", "64MiB"],
            &["\"n n\"", "no name"],
        ),
        (&["drive", "add", array, "--name", "n", "--path", text(&taken)], &["d1.img", "\"d1\"", "already"]),
        (
            &["drive", "replace", array, "d1", "--name", "n", "--path", new, "--size", "16MiB"],
            &["\"n\"", "16MiB", "\"d1\" of 64MiB", "larger"],
        ),
        (
            &["drive", "replace", array, "d1", "--name", "d2", "--path", new, "--size", "64MiB"],
            &["\"d2\"", "already"],
        ),
        (&["drive", "add", array, "--pool", "p9", "--name", "n", "--path", new], &["\"p9\""]),
        (&["pool", "grow", array, "--pool", "p9"], &["\"p9\""]),
        (&["pool", "grow", array], &["pool0", "tier0 drive add"]),
        (&["scrub", array, "--pool", "p9"], &["\"p9\""]),
        (&["volume", "create", array, "lun0", "--size", "1MiB"], &["\"lun0\"", "already"]),
        (&["volume", "create", array, "big", "--size", "4PiB"], &["\"big\"", "4PiB", "smaller"]),
        (&["volume", "clone", array, "none", "copy"], &["\"none\""]),
        (&["volume", "clone", array, "lun0", "lun0"], &["\"lun0\"", "already"]),
        (&["volume", "clone", array, "lun0", "copy"], &["\"lun0\"", "thick", "--thin"]),
        (&["volume", "resize", array, "none", "--size", "1MiB"], &["\"none\""]),
        (
            &["volume", "resize", array, "lun0", "--size", "1MiB"],
            &["24MiB", "larger only", "tier0 volume shrink"],
        ),
        (
            &["volume", "resize", array, "lun0", "--size", "4GiB"],
            &["\"lun0\"", "24MiB", "4GiB", "pool0", "free", "grow it by less"],
        ),
        (&["volume", "create", array, "small", "--size", "64"], &["64B", "a number without a unit is bytes"]),
        (&["volume", "resize", array, "lun0", "--size", "64"], &["64B", "a number without a unit is bytes"]),
        (&["volume", "delete", array, "none", "--yes"], &["\"none\""]),
        (&["volume", "set", array, "none", "cache.write=off"], &["\"none\""]),
    ] {
        refuse(arguments, 2, words);
        assert!(!std::path::Path::new(new).exists(), "a refused {arguments:?} leaves a file");
    }
    assert_eq!(json(&["config", array]), before, "a refused verb has changed something");
    scene.stop();
}

/// A name of another pool's drive was taken for a new one, and verbs then found either.
#[test]
fn a_name_of_another_pools_drive_is_taken() {
    let directory = directory();
    let at = directory.path();
    let one = array_text(at, "raid1", 2).replace("raid = ", "drives = [\"d*\"]\nraid = ");
    let other = "[[drive]]\nname = \"e{n}\"\ncount = 2\npath = \"e{n}.img\"\nsize = \"64MiB\"\n\
        [[pool]]\nname = \"pool1\"\nraid = \"raid1\"\ndrives = [\"e*\"]\n";
    let array = file(
        at,
        "array.toml",
        &format!("{}{other}", one.replace("name = \"lun0\"", "name = \"lun0\"\npool = \"pool0\"")),
    );
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    let before = json(&["config", text(&array)]);
    let new = at.join("new.img");
    let place = ["--name", "e1", "--path", text(&new), "--size", "64MiB"];
    refuse(&[&["drive", "replace", text(&array), "d1"], &place[..]].concat(), 2, &["\"e1\"", "already"]);
    refuse(&[&["drive", "add", text(&array), "--pool", "pool0"], &place[..]].concat(), 2, &["\"e1\""]);
    assert!(!new.exists(), "a refused request leaves a file");
    assert_eq!(json(&["config", text(&array)]), before, "a refused request has changed something");
    served.stop();
}

/// Of a drive that was rebuilt already it was said that its removal makes the array less redundant.
#[test]
fn the_removal_of_a_drive_that_is_rebuilt_costs_nothing() {
    let directory = directory();
    let spares =
        array_text(directory.path(), "raid5", 4).replace("set_size = 4", "set_size = 3\nspare_drives = 1");
    let array = file(directory.path(), "array.toml", &spares);
    let array = text(&array);
    succeed(&["create", array]);
    let served = Served::start(std::path::Path::new(array), directory.path());
    succeed(&["drive", "fail", array, "d2", "--yes"]);
    let is_whole = |status: &serde_json::Value| {
        let pool = &status["pools"][0];
        pool["rebuild"].is_null() && pool["sets"]["degraded"] == 0 && pool["log"]["copies"] == 2
    };
    status_when(array, is_whole);
    let told = succeed(&["drive", "remove", array, "d2", "--yes"]).replace('\n', " ");
    assert!(told.contains("is forgotten") && told.contains("nothing is less redundant"), "{told}");
    let old = directory.path().join("d2.img");
    assert!((0..200).any(|_| is_free(&old) || wait()), "the server keeps the file of a removed drive open");
    served.stop();
}

/// A drive that had joined again was there twice, and one that was taken out had failed for as long as the server ran.
#[test]
fn a_drive_is_there_once_and_has_failed_since_it_did() {
    let scene = Scene::of("raid5", 3);
    let array = scene.array();
    #[expect(clippy::disallowed_methods, reason = "a server has run for a while")]
    std::thread::sleep(std::time::Duration::from_secs(3));
    succeed(&["drive", "fail", array, "d1", "--yes"]);
    let is_told = |status: &serde_json::Value| lost_event(status).is_some();
    let lost = scene.status_when(is_told);
    let age = lost_event(&lost).expect("it was told");
    let since = lost["pools"][0]["drives"][1]["health"]["since_s"].as_u64().expect("a time");
    assert!(since.abs_diff(age) <= 1, "lost for {since} s, and told {age} s ago");
    succeed(&["drive", "rejoin", array, "d1"]);
    let is_right = |status: &serde_json::Value| {
        let drives = status["pools"][0]["drives"].as_array().expect("drives");
        let named = drives.iter().filter(|drive| drive["name"] == "d1").count();
        assert_eq!(named, 1, "d1 is there {named} times: {status}");
        status["pools"][0]["rebuild"].is_null()
    };
    scene.status_when(is_right);
    scene.stop();
}

/// How long ago it was told that a drive is lost.
fn lost_event(status: &serde_json::Value) -> Option<u64> {
    let events = status["events"].as_array().expect("events");
    let lost = |event: &&serde_json::Value| event["id"] == "drive-failed";
    events.iter().find(lost)?["age_s"].as_u64()
}

/// What a replaced drive had left behind was called data that is not tier0's.
#[test]
fn where_a_drive_was_that_has_left_is_remembered() {
    let scene = Scene::of("raid1", 2);
    let (array, old) = (scene.array(), scene.at("d1.img"));
    let new = scene.at("e1.img");
    succeed(&["drive", "replace", array, "d1", "--name", "e1", "--path", text(&new), "--size", "64MiB"]);
    scene.status_when(|status| {
        let drives = status["pools"][0]["drives"].as_array().expect("drives");
        drives.iter().all(|drive| drive["name"] != "d1")
    });
    let add = ["drive", "add", array, "--name", "d1", "--path", text(&old)];
    // Its superblock goes a moment later.
    let is_erased = || !run(&add).stderr.contains("still has it open");
    assert!((0..200).any(|_| is_erased() || wait()), "its superblock stays");
    assert!((0..200).any(|_| is_free(&old) || wait()), "the server keeps the file of a replaced drive open");
    refuse(&add, 2, &["\"d1\" lay", "left pool \"pool0\"", "--force"]);
    let (array, directory) = (array.to_owned(), scene.stop_and_keep());
    let told = succeed(&["check", &array]).replace("\n    ", " ");
    assert!(told.contains("since drive \"d1\" was removed from pool \"pool0\""), "{told}");
    assert!(!told.contains("not tier0's"), "{told}");
    drop(directory);
}

/// Whether no process has a file open that it uses as a drive.
fn is_free(drive: &std::path::Path) -> bool {
    let file = std::fs::File::open(drive).expect("it is there");
    let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::flock(&file, lock).is_ok()
}

/// Lets another process go on; false.
fn wait() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
    std::thread::sleep(std::time::Duration::from_millis(50));
    false
}

fn status_when(array: &str, is_reached: impl Fn(&serde_json::Value) -> bool) {
    assert!(
        (0..400).any(|_| is_reached(&status(array)) || wait()),
        "it does not come to that: {}",
        status(array)
    );
}

/// What lowered redundancy or deleted was done without a word of warning.
#[test]
fn what_costs_something_needs_consent() {
    let scene = Scene::of("raid5", 3);
    let array = scene.array();
    let before = json(&["config", array]);
    refuse(&["drive", "fail", array, "d1"], 2, &["\"d1\"", "no further failure", "--yes"]);
    // It is emptied first, which three drives in sets of three have no room for.
    refuse(&["drive", "remove", array, "d1"], 2, &["\"d1\"", "56MiB", "--force"]);
    refuse(&["drive", "remove", array, "d1", "--force"], 2, &["\"d1\"", "no further failure", "--yes"]);
    refuse(&["volume", "delete", array, "lun0"], 2, &["\"lun0\"", "24MiB", "--yes"]);
    assert_eq!(json(&["config", array]), before, "something was changed without consent");

    let done = json(&["drive", "fail", array, "d1", "--yes"]);
    assert_eq!((&done["result"], &done["what"]["drive"]), (&"done".into(), &"d1".into()));
    let refused = run(&["drive", "fail", array, "d0", "--yes", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&refused.stdout).expect("JSON");
    assert_eq!((refused.code, &told["result"]), (Some(2), &"refused".into()));
    assert!(refused.stderr.contains(told["text"].as_str().expect("a text")), "{}", refused.stderr);
    succeed(&["volume", "delete", array, "lun0", "--yes"]);
    scene.stop();
}

#[test]
fn the_file_of_what_is_describes_the_array_and_creates_its_like() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid10", 4);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    let new = at.join("d9.img");
    succeed(&["drive", "add", text(&array), "--name", "d9", "--path", text(&new), "--size", "64MiB"]);
    succeed(&["volume", "create", text(&array), "more", "--size", "8MiB", "--thin", "--write-cache", "off"]);
    let printed = succeed(&["config", text(&array)]);
    served.stop();
    for words in
        ["d9.img", "name = \"more\"", "thin = true", "write_cache = \"off\"", "stripe_unit = \"64KiB\""]
    {
        assert!(printed.contains(words), "{words} is missing:\n{printed}");
    }
    std::fs::write(&array, &printed).expect("an array file");
    let served = Served::start(&array, at);
    assert_eq!(succeed(&["config", text(&array)]), printed);
    served.stop();
    succeed(&["create", text(&array), "--force", "--yes"]);
    let served = Served::start(&array, at);
    assert_eq!(
        json(&["config", text(&array)])["pools"][0]["log_bytes"].as_u64().map(|log| log > 0),
        Some(true)
    );
    served.stop();
}

/// What a file would do was found out by starting with it, which writes.
#[test]
fn check_says_what_a_file_would_do_without_doing_it() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid5", 4);
    let told = succeed(&["check", text(&array)]);
    assert!(told.contains("does not exist yet") && told.contains("tier0 create"), "{told}");
    succeed(&["create", text(&array)]);
    let before = contents(at);
    assert!(!succeed(&["check", text(&array)]).contains('!'), "there is nothing to tell");
    let right = std::fs::read_to_string(&array).expect("an array file");
    std::fs::remove_file(at.join("d3.img")).expect("a drive to miss");
    let told = succeed(&["check", text(&array)]);
    assert!(told.contains("\"d3\"") && told.contains("starts without it"), "{told}");
    for name in ["d1.img", "d2.img"] {
        std::fs::remove_file(at.join(name)).expect("a drive to miss");
    }
    refuse(&["check", text(&array)], 2, &["pool0", "d1", "d2"]);
    for (path, _) in before.iter().filter(|(path, _)| path.exists()) {
        assert_eq!(contents(at)[path], before[path], "check has written {path:?}");
    }

    std::fs::remove_file(at.join("d0.img")).expect("a drive");
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    assert!(!succeed(&["check", text(&array)]).contains('!'), "there is nothing to tell");
    for (from, to, words) in [
        ("set_size = 4", "set_size = 3", &["raid5 sets of 4 drives"][..]),
        ("stripe_unit = \"64KiB\"", "stripe_unit = \"32KiB\"", &["64KiB", "32KiB"]),
        ("pool0", "pool9", &["pool9", "none of the connected drives"]),
        ("[array]", "[array", &["line 1"]),
    ] {
        std::fs::write(&array, right.replace(from, to).replace("[array]\n", &control(at))).expect("a file");
        refuse(&["check", text(&array)], 2, words);
    }
    for (from, to, words) in [
        ("24MiB", "16MiB", &["lun0", "24MiB", "the array file has 16MiB"][..]),
        ("24MiB", "32MiB", &["lun0", "24MiB", "32MiB", "volume resize"]),
        ("lun0", "lun1", &["\"lun1\"", "would be created", "\"lun0\"", "is not in the array file"]),
        ("stripe_unit", "extent = \"3MiB\"\nstripe_unit", &["extent", "3MiB"]),
        ("stripe_unit", "groups = 2\nstripe_unit", &["groups", "raid50"]),
        ("size = \"64MiB\"", "size = \"65MiB\"", &["64MiB", "65MiB", "d3.img"]),
    ] {
        std::fs::write(&array, right.replace(from, to).replace("[array]\n", &control(at))).expect("a file");
        let told = succeed(&["check", text(&array)]);
        words.iter().for_each(|word| assert!(told.contains(word), "{word} is missing: {told}"));
    }
    served.stop();
}

/// Files that were moved or replaced under a server, and wrong paths, were noticed at the next start.
#[test]
fn check_of_a_server_looks_at_the_drives_files() {
    let scene = Scene::of("raid5", 4);
    let array = scene.array();
    assert!(!succeed(&["check", array]).contains('!'), "there is nothing to tell");
    let swap = |one: &str, other: &str| {
        let (one, other, aside) = (scene.at(one), scene.at(other), scene.at("aside"));
        std::fs::rename(&one, &aside).expect("a file");
        std::fs::rename(&other, &one).expect("a file");
        std::fs::rename(&aside, &other).expect("a file");
    };
    swap("d0.img", "d1.img");
    let told = succeed(&["check", array]);
    for words in ["\"d0\" is at", "d1.img\", but the array file has", "correct its path"] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    swap("d0.img", "d1.img");
    let file = std::fs::read_to_string(array).expect("an array file");
    std::fs::rename(scene.at("d3.img"), scene.at("moved")).expect("a file");
    std::fs::write(scene.at("d3.img"), vec![0; 64 << 20]).expect("a blank one");
    let told = succeed(&["check", array]);
    for words in ["\"d3\"", "is no longer a tier0 drive", "d3.img\"", "/moved\"", "move it back from"] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    std::fs::rename(scene.at("moved"), scene.at("d3.img")).expect("a file");
    let elsewhere = file.replace("/d{n}.img", "/elsewhere{n}.img");
    let searched = elsewhere.replace("[array]", &format!("[array]\nsearch = [{:?}]", scene.directory()));
    std::fs::write(array, searched).expect("an array file");
    let told = succeed(&["check", array]);
    for words in ["\"d2\" is at", "d2.img", "elsewhere2.img", "correct its path"] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    assert!(!told.contains("is not in the array file"), "{told}");
    scene.stop();
}

/// Of a server whose drive files were deleted, or moved with their directory, `check` said that a start would not be refused.
#[test]
fn check_of_a_server_says_what_a_start_would_not_find() {
    let scene = Scene::of("raid5", 4);
    let array = scene.array();
    std::fs::rename(scene.at("d3.img"), scene.at("moved")).expect("a file");
    let told = succeed(&["check", array]);
    for words in ["\"d3\"", "d3.img", "moved", "move it back"] {
        assert!(told.contains(words), "{words} is missing: {told}");
    }
    assert!(succeed(&["config", array]).contains("/moved\""));
    std::fs::remove_file(scene.at("moved")).expect("a file");
    let told = succeed(&["check", array]);
    assert!(
        told.contains("\"d3\"") && told.contains("was deleted") && told.contains("drive replace"),
        "{told}"
    );
    std::fs::remove_file(scene.at("d2.img")).expect("a file");
    refuse(&["check", array], 2, &["\"d2\", \"d3\"", "pool0", "raid5", "tier0 drive replace"]);
    scene.stop();

    // One of a pair could go on by itself.
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    std::fs::rename(scene.at("d1.img"), scene.at("moved")).expect("a file");
    refuse(&["check", array], 2, &["\"d1\"", "--without d1"]);
    let elsewhere = std::fs::read_to_string(array)
        .expect("a file")
        .replace("[array]", &format!("[array]\nsearch = [{:?}]", scene.directory()));
    std::fs::write(array, elsewhere).expect("a file");
    succeed(&["check", array]);
    scene.stop();
}

/// A directory of drives that was moved under its server was told as drives that a start would miss, and `config` named
/// places where nothing lay.
#[test]
fn a_directory_that_was_moved_is_told_where_it_is() {
    let directory = directory();
    let (here, there) = (directory.path().join("here"), directory.path().join("there"));
    std::fs::create_dir(&here).expect("a directory");
    let text_of = array_text(std::path::Path::new("."), "raid5", 4);
    let array = file(&here, "array.toml", &text_of);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, &here);
    std::fs::rename(&here, &there).expect("a directory");
    let array = there.join("array.toml");
    let told = succeed(&["check", text(&array)]);
    assert!(!told.contains('!'), "there is nothing to tell: {told}");
    assert!(succeed(&["config", text(&array)]).contains(&format!("{:?}", there.join("d3.img"))));
    served.stop();
    let served = Served::start(&array, &there);
    served.stop();
}

/// What a file said to no effect was not told by `serve`, and with wrong values by `check`.
#[test]
fn fields_without_effect_are_told_served_or_not() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    let right = std::fs::read_to_string(&array).expect("an array file");
    let right = right.replace("raid = ", "chunklet = \"4MiB\"\nlog = \"8MiB\"\nraid = ");
    std::fs::write(&array, &right).expect("an array file");
    succeed(&["create", text(&array)]);
    assert!(!succeed(&["check", text(&array)]).contains('!'), "there is nothing to tell");
    let wrong = right
        .replace(
            "chunklet = \"4MiB\"",
            "chunklet = \"2MiB\"\nextent = \"2MiB\"\nflash_cache_writes = 5\nchecksums = false",
        )
        .replace("log = \"8MiB\"", "log = \"1MiB\"")
        .replace("size = \"24MiB\"", "size = \"24MiB\"\nthin = true");
    std::fs::write(&array, wrong).expect("an array file");
    let told = [
        "chunklet is 4MiB, fixed at creation, but the array file has 2MiB",
        "extent is 1MiB, fixed at creation, but the array file has 2MiB",
        "log is 8MiB, fixed at creation, but the array file has 1MiB",
        "checksums is true, fixed at creation, but the array file has false",
        "thin is false, fixed at creation, but the array file has true",
        "flash_cache_writes has no effect without a flash cache",
    ];
    let tells_all = |who: &str, said: &str| {
        told.iter().for_each(|words| assert!(said.contains(words), "{who} does not say {words}: {said}"));
    };
    tells_all("check of drives", &succeed(&["check", text(&array)]));
    let mut server = crate::support::tier0();
    let log = std::fs::File::create(at.join("log")).expect("a file");
    server.args(["serve", text(&array), "--listen", "127.0.0.1:0", "--json"]);
    server.stdout(std::process::Stdio::piped()).stderr(log);
    let mut server = crate::support::Background::of(server);
    server.read_until(|line| line == "}");
    tells_all("check of a server", &succeed(&["check", text(&array)]));
    assert_eq!(server.interrupt(), Some(0));
    tells_all("serve", &std::fs::read_to_string(at.join("log")).expect("a log").replace('\\', ""));
}

/// The section of an array with its socket where it is by default.
fn control(directory: &std::path::Path) -> String {
    format!("[array]\ncontrol = \"{}/array.control\"\n", text(directory))
}

/// A thin pool that filled took the file systems on it down, and nothing could be held back from them.
#[test]
fn thin_volumes_leave_the_reserve_until_it_is_lowered() {
    let directory = directory();
    let at = directory.path();
    let text_of =
        array_text(at, "raid1", 2).replace("stripe_unit", "warn_at = [30]\nreserve = \"50%\"\nstripe_unit");
    let thin = text_of.replace("24MiB\"", "400MiB\"\nthin = true");
    let array = file(at, "array.toml", &thin);
    let array = text(&array);
    succeed(&["create", array]);
    let served = Served::start(std::path::Path::new(array), at);
    let usable = status(array)["pools"][0]["space"]["usable_bytes"].as_u64().expect("a size");
    let fill =
        ["load", &served.uri, "--read", "0", "--pattern", "sequential", "--block", "64KiB", "--overwrite"];
    let write = |start: &str, bytes: &str| run(&[&fill[..], &["--start", start, "--bytes", bytes]].concat());
    let full = write("0B", "400MiB");
    assert!(full.code == Some(1) && full.stderr.contains("no space"), "{}", full.stderr);
    let told = status(array);
    let (pool, space) = (&told["pools"][0], &told["pools"][0]["space"]);
    let used = space["used_bytes"].as_u64().expect("a size");
    assert!(used <= usable / 2 && used > usable / 4, "{used} of {usable}");
    assert_eq!((&pool["health"], &space["kept_bytes"]), (&"critical".into(), &(usable / 2).into()), "{told}");
    assert!(pool["problems"][0].as_str().is_some_and(|text| text.contains("tier0 pool reserve")), "{told}");
    // What has its place is written on.
    let again = write("0B", "4MiB");
    assert_eq!(again.code, Some(0), "{}", again.stderr);

    refuse(&["pool", "reserve", array, "100%"], 2, &["100%"]);
    let done = succeed(&["pool", "reserve", array, "0"]);
    assert!(done.contains("tier0 config"), "{done}");
    let beyond = write("300MiB", "4MiB");
    assert_eq!(beyond.code, Some(0), "{}", beyond.stderr);
    assert!(succeed(&["config", array]).contains("reserve = \"0B\""));
    let checked = run(&["check", array]);
    assert!(checked.stdout.contains("reserve"), "{}", checked.stdout);
    served.stop();
}

/// `drive rejoin` was advised for drives that were forgotten, and for a file that served as another drive.
#[test]
fn a_drive_is_to_be_taken_back_only_where_that_works() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let (file, link) = (scene.at("d1.img"), scene.at("link.img"));
    // Another name of the file.
    std::fs::hard_link(&file, &link).expect("a link");
    let add = ["drive", "add", array, "--name", "n", "--path", text(&link)];
    let serves = |drive: &str| {
        refuse(&add, 2, &[drive, "which serves", "name another"]);
        assert!(!run(&add).stderr.contains("rejoin"), "of {drive}");
    };
    let problems = || run(&["status", array]).stdout.split("\nevents").next().unwrap_or_default().to_owned();
    serves("\"d1\"");
    succeed(&["drive", "fail", array, "d1", "--yes"]);
    refuse(&add, 2, &["\"d1\"", "which is lost", "tier0 drive rejoin"]);
    assert!(problems().contains("rejoin"), "{}", problems());
    // It serves as another drive: the lost one cannot come back.
    succeed(&["drive", "add", array, "--name", "m", "--path", text(&file), "--force", "--yes"]);
    let told = problems();
    assert!(!told.contains("rejoin"), "{told}");
    refuse(&["drive", "fail", array, "d1", "--yes"], 2, &["lost already; replace it"]);
    refuse(&["drive", "rejoin", array, "d1"], 2, &["\"m\"", "which serves", "name another"]);
    serves("\"m\"");
    scene.settled();
    succeed(&["drive", "remove", array, "d1"]);
    let is_gone = |status: &serde_json::Value| status["events"].to_string().contains("it has left pool");
    let status = scene.status_when(is_gone);
    assert!(!status["events"].to_string().contains("rejoin"), "{}", status["events"]);
    scene.stop();
}

/// `drive add --force` overwrote a drive of another array, and asked nobody.
#[test]
fn a_drive_of_another_array_is_not_overwritten_without_consent() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let elsewhere = directory();
    let other = array_text(elsewhere.path(), "raid1", 2).replace("\"test\"", "\"other\"");
    let other = file(elsewhere.path(), "other.toml", &other);
    succeed(&["create", text(&other)]);
    let taken = elsewhere.path().join("d1.img");
    let before = std::fs::read(&taken).expect("it is ours");
    let add = ["drive", "add", array, "--name", "n", "--path", text(&taken), "--force"];
    refuse(&add, 2, &["pool \"pool0\" of array \"other\"", "all data on it will be lost", "--yes"]);
    let replace = ["drive", "replace", array, "d1", "--name", "n", "--path", text(&taken), "--force"];
    refuse(&replace, 2, &["pool \"pool0\" of array \"other\"", "all data on it will be lost", "--yes"]);
    assert!(std::fs::read(&taken).expect("it is ours") == before, "it was written to");
    // What holds nothing asks for nothing.
    let blank = scene.at("blank.img");
    succeed(&["drive", "add", array, "--name", "b", "--path", text(&blank), "--size", "64MiB", "--force"]);
    succeed(&[&add[..], &["--yes"]].concat());
    scene.stop();
}
