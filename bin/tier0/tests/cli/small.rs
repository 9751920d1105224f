//! Small answers that were wrong or told half of it.

use std::os::unix::fs::PermissionsExt;

use crate::support::{
    Background, Ended, Scene, Served, array_file, array_text, directory, file, json, let_be_read, plain,
    refuse, run, run_as_nobody, run_in, served, succeed, text, tier0,
};

/// What a verb says of an array on a terminal of so many columns.
fn told_at(verb: &str, array: &str, columns: &str) -> Ended {
    tier0().env("COLUMNS", columns).args([verb, array]).output().expect("the program starts").into()
}

/// Where nothing was going on, some verbs were done and others refused.
#[test]
fn to_stop_what_does_not_go_on_is_done() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    for verb in [&["scrub"][..], &["pool", "grow"], &["pool", "restripe"], &["drive", "remove"]] {
        let drive: &[&str] = if verb == ["drive", "remove"] { &["d1"] } else { &[] };
        let told = succeed(&[verb, &[array], drive, &["--stop"]].concat());
        assert!(told.contains("nothing to stop"), "{verb:?}: {told}");
    }
    // Of a drive that is lost it was refused.
    succeed(&["drive", "fail", array, "d1", "--yes"]);
    let told = succeed(&["drive", "remove", array, "d1", "--stop"]);
    assert!(told.contains("nothing to stop") && told.contains("drive rejoin"), "{told}");
    scene.stop();
}

/// A scrub that was going on kept its rate, and the one who asked for another read that it was done.
#[test]
fn another_rate_for_a_scrub_that_goes_on_is_refused() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let load =
        ["--read", "0", "--pattern", "sequential", "--block", "1MiB", "--bytes", "16MiB", "--overwrite"];
    succeed(&[&["load", scene.uri()][..], &load].concat());
    succeed(&["scrub", array, "--rate", "1MiB"]);
    let ended = run(&["scrub", array, "--rate", "2MiB", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((ended.code, &told["result"]), (Some(2), &"refused".into()), "{}", ended.stdout);
    succeed(&["scrub", array, "--stop"]);
    scene.stop();
}

#[test]
fn answers_say_what_is() {
    let scene = Scene::of("raid5", 3);
    let array = scene.array();
    let told = succeed(&["volume", "resize", array, "lun0", "--size", "24MiB"]);
    assert!(told.contains("already has 24MiB") && !told.contains("resized"), "{told}");

    let held = std::fs::File::create(scene.at("held.img")).expect("a file");
    held.set_len(64 << 20).and_then(|()| held.lock()).expect("it is ours");
    let held = scene.at("held.img");
    refuse(&["drive", "add", array, "--name", "d9", "--path", text(&held)], 2, &["held.img", "in use"]);

    succeed(&["drive", "fail", array, "d1", "--yes"]);
    let told = run(&["status", array]);
    assert_eq!(told.code, Some(5));
    for words in ["drive d1: failed", "it was taken out", "tier0 drive rejoin"] {
        assert!(told.stdout.contains(words), "{words} is missing: {}", told.stdout);
    }
    assert!(!told.stdout.contains("at the start") && !told.stdout.contains("0 of 0"), "{}", told.stdout);
    let status = scene.settled();
    let d1 = status["pools"][0]["drives"]
        .as_array()
        .and_then(|drives| drives.iter().find(|one| one["name"] == "d1"));
    let standing = d1.map(|drive| &drive["health"]["standing"]);
    assert_eq!(standing, Some(&"lost".into()), "a drive that was taken out is healthy: {status}");
    assert!(succeed(&["config", array]).contains("LOST"));
    assert!(status["summary"].as_str().is_some_and(|text| text.contains("drive rejoin")), "{status}");

    std::fs::rename(scene.at("d1.img"), scene.at("elsewhere")).expect("a file");
    assert_eq!(json(&["drive", "rejoin", array, "d1"])["result"], "done");
    succeed(&["drive", "fail", array, "d1", "--yes"]);
    std::fs::remove_file(scene.at("elsewhere")).expect("a file");
    refuse(&["drive", "rejoin", array, "d1"], 2, &["\"d1\"", "elsewhere", "--path", "tier0 drive replace"]);
    scene.stop();
}

/// Of a drive that holds no sector one was told to free space on its file system, and it ended with 1.
#[test]
fn a_drive_that_is_much_too_small_is_told_as_one() {
    let scene = Scene::of("raid1", 2);
    let tiny = file(scene.directory(), "tiny", &"x".repeat(215));
    let new = ["--name", "d9", "--path", text(&tiny)];
    let words = ["\"d9\" holds 0B", "too small for metadata", "KiB)", "larger drive"];
    refuse(&[&["drive", "add", scene.array()], &new[..]].concat(), 2, &words);
    refuse(&[&["drive", "add", scene.array()], &new[..], &["--force", "--yes"]].concat(), 2, &words);
    assert_eq!(std::fs::read(&tiny).expect("it is there"), "x".repeat(215).as_bytes());
    let absent = scene.at("absent");
    let new = ["--name", "d9", "--path", text(&absent), "--size", "0"];
    refuse(&[&["drive", "add", scene.array()], &new[..]].concat(), 2, &words);
    assert!(!absent.exists(), "a drive that was refused leaves its file");
    scene.stop();
}

/// A volume on a pool of some MiB was made 900 TiB large without a question.
#[test]
fn a_volume_grows_beyond_all_measure_only_with_consent() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    succeed(&["volume", "create", array, "thin", "--size", "16MiB", "--thin"]);
    let grow = |size: &'static str| ["volume", "resize", array, "thin", "--size", size];
    refuse(
        &grow("900TiB"),
        2,
        &["\"thin\" grows from 16MiB", "900TiB", "10 times the size of pool pool0", "--yes"],
    );
    succeed(&grow("100MiB"));
    succeed(&[&grow("900TiB")[..], &["--yes"]].concat());
    // It is so already, and there is nothing to agree to.
    succeed(&grow("900TiB"));
    let create = ["volume", "create", array, "far", "--size", "900TiB", "--thin"];
    refuse(&create, 2, &["\"far\" of 900TiB", "10 times the size of pool pool0", "--yes"]);
    succeed(&[&create[..], &["--yes"]].concat());
    scene.stop();
}

/// A reserve of 5 kept five bytes.
#[test]
fn a_reserve_is_worth_something() {
    let scene = Scene::of("raid1", 2);
    refuse(&["pool", "reserve", scene.array(), "5"], 2, &["5", "no unit", "5%"]);
    refuse(&["pool", "reserve", scene.array(), "4KiB"], 2, &["4KiB", "one extent (1MiB)", "10%"]);
    for reserve in ["0", "0B", "2MiB", "5%"] {
        succeed(&["pool", "reserve", scene.array(), reserve]);
    }
    scene.stop();
}

/// That a drive is unknown was told without those that are known.
#[test]
fn who_is_to_be_done_without_is_named_among_the_others() {
    let directory = directory();
    let array = array_file(directory.path(), "raid5", 3);
    succeed(&["create", text(&array)]);
    refuse(
        &["serve", text(&array), "--without", "d9"],
        2,
        &["--without d9", "\"d0\", \"d1\", \"d2\"", "tier0 check"],
    );
}

/// A volume that moved to another pool of the file was created there, and two had one name.
#[test]
fn volumes_of_two_pools_have_two_names() {
    let directory = directory();
    let at = directory.path();
    let second = |pool: &str| {
        format!(
            "[array]\nname = \"test\"\n[[drive]]\nname = \"d{{n}}\"\ncount = 4\npath = \"{}/d{{n}}.img\"\nsize = \"64MiB\"\n\
             [[pool]]\nname = \"p\"\nraid = \"raid1\"\ndrives = [\"d0\", \"d1\"]\n\
             [[pool]]\nname = \"q\"\nraid = \"raid1\"\ndrives = [\"d2\", \"d3\"]\n\
             [[volume]]\nname = \"lun0\"\npool = \"{pool}\"\nsize = \"16MiB\"\n",
            at.display()
        )
    };
    let array = file(at, "array.toml", &second("p"));
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    refuse(
        &["volume", "create", text(&array), "lun0", "--pool", "q", "--size", "1MiB"],
        2,
        &["\"lun0\"", "already"],
    );
    file(at, "array.toml", &second("q"));
    let words = ["\"lun0\"", "already exists in pool \"p\"", "pool \"q\"", "another name"];
    refuse(&["check", text(&array)], 2, &words);
    served.stop();
    for verb in ["check", "serve"] {
        refuse(&[verb, text(&array)], 2, &words);
    }
}

/// The table of volumes was 45 columns wide on a terminal of 40, and that of `iostat` 82 on one of 80.
#[test]
fn what_is_told_fits_a_narrow_terminal() {
    let scene = Scene::of("raid5", 3);
    let array = scene.array();
    succeed(&["load", scene.uri(), "--read", "50", "--ios", "200", "--overwrite"]);
    for verb in ["status", "iostat", "check", "events"] {
        for columns in [30, 40, 45, 60, 80] {
            let told = told_at(verb, array, &columns.to_string()).stdout;
            for line in told.lines() {
                let is_one_word = line.split_whitespace().count() <= 1;
                assert!(
                    line.chars().count() <= columns || is_one_word,
                    "{verb} {columns}: {line:?} in\n{told}"
                );
            }
        }
    }
    let wide = told_at("iostat", array, "80").stdout;
    assert!(wide.contains("r/s") && !wide.contains("r/s:"), "rows are records: {wide}");
    assert!(told_at("iostat", array, "40").stdout.contains("\nlun0\nr/s: "));
    let pool = &json(&["iostat", array])["pools"][0];
    let written = |kind: &str| (pool[kind][0]["name"].clone(), pool[kind][0]["write"]["count"].as_u64());
    let (host, log) = (written("volumes").1, written("log"));
    assert!(log.0 == "log" && log.1 >= host && host > Some(50), "{pool}");
    assert_eq!(
        (&pool["destage"][0]["name"], &pool["tables"][0]["name"]),
        (&"destage".into(), &"tables".into())
    );
    let cache = &pool["write_cache"][0];
    assert!(cache["name"] == "write cache" && cache["high_watermark"]["pages"].is_u64(), "{cache}");
    let share = |what: &str| cache[what].as_f64();
    assert!(share("memory_utilisation") > Some(0.0) && share("log_utilisation") < Some(1.0), "{cache}");
    assert!(wide.contains("watermarks at 30 % and 70 %") && !wide.contains("forced:"), "{wide}");
    let status = &json(&["status", array])["pools"][0]["log"]["flushing"];
    assert_eq!((status["watermark_low"].as_f64(), status["delayed_writes"].as_u64()), (Some(0.3), Some(0)));
    let told = succeed(&["status", array]);
    assert!(
        told.contains("write cache: memory ") && told.contains(" forced, 0 demanded; 0 writes"),
        "{told}"
    );
    scene.stop();
}

#[test]
fn each_connection_is_told_with_what_it_asks() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let load = ["load", scene.uri(), "--read", "50", "--time", "60s", "--overwrite", "--connections", "2"];
    let load = Background::start(&load);
    let connections = || {
        let report = json(&["iostat", array]);
        report["pools"][0]["connections"].as_array().expect("a list").clone()
    };
    let counts = |connection: &serde_json::Value, op: &str| connection[op]["count"].as_u64().unwrap_or(0);
    let is_busy = |found: &[serde_json::Value]| {
        found.len() == 2 && found.iter().all(|one| counts(one, "read") > 10 && counts(one, "write") > 10)
    };
    let found = std::iter::repeat_with(connections).find(|found| is_busy(found)).expect("it comes");
    for connection in &found {
        assert_eq!(connection["volume"], "lun0");
        let peer = connection["peer"].as_str().expect("a text");
        assert_eq!(peer, format!("process {}", load.id()), "{connection}");
    }
    assert_ne!(found[0]["id"], found[1]["id"]);
    let told = succeed(&["iostat", array]);
    for connection in &found {
        let name = format!("lun0 from process {} #{}", load.id(), connection["id"].as_str().expect("a text"));
        assert!(told.contains(&name), "{name} is missing: {told}");
    }
    drop(load);
    scene.stop();
}

/// What was advised did not help: to add drives alone, to take out of the file what was never in it, to add what is refused.
#[test]
fn what_is_advised_can_be_done() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let larger = ["volume", "create", array, "lun1", "--size", "1GiB"];
    refuse(&larger, 2, &["does not fit", "--thin", "tier0 drive add, then tier0 pool grow"]);
    succeed(&["volume", "create", array, "lun1", "--size", "4MiB"]);
    let told = succeed(&["volume", "delete", array, "lun1", "--yes"]);
    assert!(told.contains("deleted volume lun1") && !told.contains("array file"), "{told}");
    let told = succeed(&["volume", "delete", array, "lun0", "--yes"]);
    assert!(told.contains("deleted volume lun0") && told.contains("from the array file too"), "{told}");
    let other = file(scene.directory(), "d7.img", &"of somebody".repeat(6 << 20));
    let mut content = array_text(scene.directory(), "raid1", 2);
    content = content.replacen("[[pool]]", "[[drive]]\nname = \"d7\"\npath = \"d7.img\"\n\n[[pool]]", 1);
    let changed = content.replacen("[[pool]]", "[[pool]]\ndrives = [\"d0\", \"d1\"]", 1);
    file(scene.directory(), "array.toml", &changed);
    let told = succeed(&["check", array]);
    assert!(told.contains("d7") && told.contains("--force"), "{told}");
    refuse(&["drive", "add", array, "--name", "d7", "--path", text(&other)], 2, &["d7", "--force"]);
    scene.stop();
}

/// To take back a drive that was being removed ended the removal without a word, and was advised.
#[test]
fn a_drive_that_is_being_removed_is_kept_before_it_is_taken_back() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    // There is no room for what it held, so it is not forgotten.
    succeed(&["drive", "remove", array, "d1", "--force", "--yes"]);
    let status = scene.status_when(|status| status["pools"][0]["drives"][1]["state"] == "lost");
    assert_eq!(status["pools"][0]["drives"][1]["can_return"], false, "{status}");
    let events = status["events"].as_array().expect("events");
    let lost = events.iter().find(|event| event["id"] == "drive-failed");
    assert_eq!(
        lost.expect("it is told")["remedy"],
        "",
        "what was removed on purpose is not to be taken back"
    );
    refuse(
        &["drive", "rejoin", array, "d1"],
        2,
        &["is being removed", "tier0 drive remove --stop", "--force"],
    );
    let told = succeed(&["drive", "remove", array, "d1", "--stop"]);
    assert!(told.contains("tier0 drive rejoin"), "{told}");
    succeed(&["drive", "rejoin", array, "d1"]);
    scene.status_when(|status| status["pools"][0]["sets"]["degraded"] == 0);
    scene.stop();
}

/// A second user was told that a server is starting.
#[test]
fn who_may_not_open_an_array_reads_that() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    mode(scene.directory(), 0o755);
    for name in ["d0.img", "d1.img"] {
        mode(&scene.at(name), 0o600);
    }
    if !rustix::process::geteuid().is_root() {
        return scene.stop();
    }
    for verb in ["serve", "create"] {
        let told = run_as_nobody(&[verb, array]);
        assert_eq!(told.code, Some(2), "{verb}: {}", told.stderr);
        for words in ["Permission denied", "array.control", "another user"] {
            assert!(told.stderr.contains(words), "{verb} does not say {words}: {}", told.stderr);
        }
        assert!(!told.stderr.contains("starting"), "{verb}: {}", told.stderr);
    }
    scene.stop();
}

/// Two histories were told by the names of drives alone, which copies in a directory to search have in common.
#[test]
fn of_two_histories_the_places_are_told() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    succeed(&["create", text(&array)]);
    for (gone, without) in [("d1.img", "d1"), ("d0.img", "d0")] {
        std::fs::rename(at.join(gone), at.join("away")).expect("a file");
        let mut server = tier0();
        server.args(["serve", text(&array), "--json", "--without", without]);
        server.stdout(std::process::Stdio::piped());
        let mut server = Background::of(server);
        server.read_until(|line| line == "}");
        assert_eq!(server.interrupt(), Some(0));
        std::fs::rename(at.join("away"), at.join(gone)).expect("a file");
    }
    let (one, other) = (at.join("d0.img"), at.join("d1.img"));
    refuse(&["serve", text(&array)], 2, &["two groups", text(&one), text(&other), "--without"]);
}

/// Who recovers was advised an option that is one of a start.
#[test]
fn nothing_of_a_start_is_advised_to_who_recovers() {
    let directory = directory();
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    std::fs::create_dir(&old).and_then(|()| std::fs::create_dir(&new)).expect("directories");
    let array = array_file(&old, "raid1", 2);
    succeed(&["create", text(&array)]);
    // At their first start drives learn where the others lie.
    Served::start(&array, &old).stop();
    std::fs::rename(old.join("d0.img"), new.join("d0.img")).expect("a file");
    let moved = array_file(&new, "raid1", 2);
    refuse(&["serve", text(&moved)], 2, &["its last path", "--without d1"]);
    let told = run(&["pool", "recover", text(&moved)]);
    assert_eq!(told.code, Some(2), "{}", told.stdout);
    assert!(
        told.stderr.contains("its last path") && told.stderr.contains("disconnect or rename it"),
        "{}",
        told.stderr
    );
    assert!(!told.stderr.contains("--without"), "{}", told.stderr);
}

/// The name of a lost drive was "there already", and nothing said when another one could have it; and a drive that was too small
/// to be of use was refused without the size that it should have.
#[test]
fn names_and_sizes_that_a_drive_cannot_have_are_told_with_a_way_out() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let path = scene.at("x.img");
    let add = |name: &'static str, size: &'static str| {
        ["drive", "add", array, "--name", name, "--path", text(&path), "--size", size]
    };
    refuse(&add("x", "2MiB"), 2, &["2MiB", "too small for metadata", "KiB)", "larger drive"]);
    refuse(&add("d1", "64MiB"), 2, &["\"d1\" already", "another name"]);
    succeed(&["drive", "fail", array, "d1", "--yes"]);
    refuse(&add("d1", "64MiB"), 2, &["\"d1\" is lost", "when it is forgotten", "drive remove ARRAY d1"]);
    assert!(!path.exists(), "a refused drive has left a file");
    succeed(&add("x", "64MiB"));
    scene.settled();
    succeed(&["drive", "remove", array, "d1"]);
    scene.status_when(|status| !status["pools"][0]["drives"].to_string().contains("\"d1\""));
    let again = scene.at("y.img");
    succeed(&["drive", "add", array, "--name", "d1", "--path", text(&again), "--size", "64MiB"]);
    scene.stop();
}

/// A file of events, or a control socket, that cannot be used was a warning, which `-q` drops.
#[test]
fn a_quiet_server_tells_what_cannot_be_used() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    succeed(&["create", text(&array)]);
    file(at, "array.control", "of somebody");
    file(at, "array.events", "of somebody");
    let log = std::fs::File::create(at.join("log")).expect("a file");
    let mut server = tier0();
    server.args(["serve", text(&array), "-q", "--json", "--listen", "127.0.0.1:0"]);
    server.stdout(std::process::Stdio::piped()).stderr(log);
    let mut server = Background::of(server);
    server.read_until(|line| line == "}");
    assert_eq!(server.interrupt(), Some(0));
    let log = std::fs::read_to_string(at.join("log")).expect("a log");
    for path in ["array.control", "array.events"] {
        assert!(log.lines().any(|line| line.contains(path) && line.contains(" ERROR ")), "{path}: {log}");
    }
}

/// What a user may not use ended with 1 where it was the control socket, and with 2 where it was the events or a drive.
#[test]
fn what_a_user_may_not_use_is_refused_with_one_code() {
    let scene = Scene::of("raid1", 2);
    let closed = std::fs::Permissions::from_mode(0o000);
    let_be_read(scene.directory());
    for name in ["array.control", "array.events"] {
        std::fs::set_permissions(scene.at(name), closed.clone()).expect("it is ours");
    }
    for (verb, name) in [("status", "array.control"), ("events", "array.events")] {
        let ended = run_as_nobody(&[verb, scene.array()]);
        assert_eq!(ended.code, Some(2), "{verb}: {}", ended.stderr);
        assert!(ended.stderr.contains(name) && ended.stderr.contains("ermission"), "{}", ended.stderr);
    }
    std::fs::set_permissions(scene.directory(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    scene.stop();
}

/// What an array takes for checksums and pages not yet destaged was 320 MiB for each core and pool, and nobody could say less.
#[test]
fn the_array_file_says_how_much_memory_it_takes() {
    let directory = directory();
    let home = directory.path();
    file(home, "array.toml", &plain("test", "memory = \"1MiB\"\n"));
    let refused = run_in(home, &["check", "array.toml"]);
    let range = "array.memory: 1MiB is too small; use at least 64MiB";
    assert!(refused.code == Some(2) && refused.stderr.contains(range), "{}", refused.stderr);
    file(home, "array.toml", &plain("test", "cores = 2\nmemory = \"96MiB\"\n"));
    assert_eq!(run_in(home, &["create", "array.toml"]).code, Some(0));
    let server = served(home);
    let status: serde_json::Value =
        serde_json::from_str(&run_in(home, &["status", "array.toml", "--json"]).stdout).expect("JSON");
    assert_eq!(status["pools"][0]["integrity"]["tables"]["memory_bytes"], 96 << 20);
    let said = run_in(home, &["status", "array.toml"]).stdout;
    assert!(
        said.contains("checksums in memory: 0B, of 96MiB shared with dirty pages and the read cache"),
        "{said}"
    );
    let printed = run_in(home, &["config", "array.toml"]).stdout;
    assert!(printed.contains("memory = \"96MiB\""), "{printed}");
    assert_eq!(server.interrupt(), Some(0));
}

/// `check` said nothing of a file whose number of cores a start would not follow.
#[test]
fn what_keeps_an_array_on_its_cores_is_told_before() {
    let directory = directory();
    let home = directory.path();
    file(home, "array.toml", &plain("test", "cores = 2\n"));
    assert_eq!(run_in(home, &["create", "array.toml"]).code, Some(0));
    let quiet = run_in(home, &["check", "array.toml"]);
    assert!(quiet.code == Some(0) && !quiet.stdout.contains("shards"), "{}", quiet.stdout);
    file(home, "array.toml", &plain("test", "cores = 256\n"));
    let told = run_in(home, &["check", "array.toml"]);
    let text = "still runs on 2 shards instead of 256 (array.cores): the write log of pool \"pool0\" is too small for 256 \
                parts";
    let said = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.code == Some(0) && said.contains(text), "{said}{}", told.stderr);
}
