//! Small answers that were wrong or told half of it.

use crate::support::{
    Ended, Scene, Served, array_file, directory, file, json, refuse, run, succeed, text, tier0,
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
    succeed(&["scrub", array, "--rate", "4KiB"]);
    let ended = run(&["scrub", array, "--rate", "1MiB", "--json"]);
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
    assert!(told.contains("24MiB already") && !told.contains("grown"), "{told}");

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
        &["\"d9\"", "\"d0\", \"d1\", \"d2\"", "tier0 check"],
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
    let words = ["\"lun0\"", "pool \"p\" already", "pool \"q\"", "another name"];
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
    scene.stop();
}
