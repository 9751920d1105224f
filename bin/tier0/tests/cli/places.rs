//! Where paths begin: those of an array file beside it, those of the command line where the command is given.

use std::path::Path;
use std::process::Stdio;

use crate::support::{Background, directory, file, plain, run_in, served, text, tier0};

const ARRAY: &str = "[array]\nname = \"test\"\nsearch = [\"shelf\"]\nwitness = \"w/witness\"\ncontrol = \"c/socket\"\n\
    [[drive]]\nname = \"d{n}\"\ncount = 2\npath = \"drives/d{n}.img\"\nsize = \"64MiB\"\n\
    [[pool]]\nname = \"pool0\"\nraid = \"raid1\"\n\
    [[volume]]\nname = \"lun0\"\nsize = \"24MiB\"\n\
    [nbd]\nlisten = [\"unix:nbd.sock\"]\n";

fn told(at: &Path, arguments: &[&str]) -> String {
    let ended = run_in(at, arguments);
    assert_eq!(ended.code, Some(0), "tier0 {}: {}", arguments.join(" "), ended.stderr);
    ended.stdout
}

/// The same file was another array in another directory: its drives were not found, its server not asked.
#[test]
fn an_array_file_is_the_same_wherever_the_command_is_given() {
    let directory = directory();
    let (home, away) = (directory.path().join("home"), directory.path().join("away"));
    for name in ["home/drives", "home/shelf", "home/w", "home/c", "away"] {
        std::fs::create_dir_all(directory.path().join(name)).expect("a directory");
    }
    let array = file(&home, "array.toml", ARRAY);
    told(&away, &["create", "../home/array.toml"]);
    assert!(home.join("drives/d1.img").exists());
    // A directory to search is one beside the file, too.
    std::fs::rename(home.join("drives/d1.img"), home.join("shelf/d1.img")).expect("moved");
    let mut server = tier0();
    server.current_dir(directory.path()).args(["serve", "home/array.toml", "--json"]).stdout(Stdio::piped());
    let mut server = Background::of(server);
    let served = server.read_until(|line| line == "}");
    assert!(served.contains(text(&home.join("nbd.sock"))), "{served}");
    assert!(home.join("c/socket").exists());
    told(&away, &["status", text(&array)]);
    told(&home, &["status", "array.toml"]);
    // What is on the command line is where the command is given.
    told(&away, &["drive", "add", text(&array), "--name", "d2", "--path", "d2.img", "--size", "64MiB"]);
    assert!(away.join("d2.img").exists());
    // What is printed says the same when it lies anywhere else.
    let printed = told(&away, &["config", "../home/array.toml"]);
    for path in ["shelf", "w/witness", "c/socket", "drives/d0.img", "shelf/d1.img"] {
        assert!(printed.contains(&format!("\"{}\"", text(&home.join(path)))), "{path}: {printed}");
    }
    assert!(printed.contains(&format!("\"unix:{}\"", text(&home.join("nbd.sock")))), "{printed}");
    told(&away, &["drive", "fail", "../home/array.toml", "d1", "--yes"]);
    assert!(home.join("w/witness").exists());
    assert_eq!(server.interrupt(), Some(0));
}

/// A directory whose sockets have too long names is reached from nearby, as before.
#[test]
fn a_deep_directory_is_reached_from_within() {
    let directory = directory();
    let deep = directory.path().join("a-directory-with-a-name-of-some-length/".repeat(3));
    std::fs::create_dir_all(&deep).expect("a directory");
    let listen = ARRAY.split("[nbd]").next().expect("a part");
    let begins = |line: &&str| ["search", "witness", "control"].iter().any(|field| line.starts_with(field));
    let plain: Vec<&str> = listen.lines().filter(|line| !begins(line)).collect();
    let plain = plain.join("\n").replace("drives/", "");
    file(&deep, "array.toml", &plain);
    told(&deep, &["create", "array.toml"]);
    let mut server = tier0();
    server
        .current_dir(&deep)
        .args(["serve", "array.toml", "--json", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped());
    let mut server = Background::of(server);
    server.read_until(|line| line == "}");
    told(&deep, &["status", "array.toml"]);
    assert_eq!(server.interrupt(), Some(0));
    file(&deep, "array.toml", &format!("{plain}\n[nbd]\nlisten = [\"unix:s\"]\n"));
    let refused = run_in(&deep, &["check", "array.toml"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("at most 107 fit"), "{}", refused.stderr);
}

/// A drive that joined was looked for where it was last alone: what lay there was one that is lost, and it counted as missing
/// although it lay where that one had been.
#[test]
fn a_drive_that_lies_where_a_lost_one_was_is_found() {
    let directory = directory();
    let home = directory.path();
    file(home, "array.toml", &plain("test", ""));
    told(home, &["create", "array.toml"]);
    let server = served(home);
    for name in ["e1", "e2"] {
        let path = format!("{name}.img");
        told(home, &["drive", "add", "array.toml", "--name", name, "--path", &path, "--size", "64MiB"]);
    }
    told(home, &["drive", "fail", "array.toml", "e1", "--yes"]);
    assert_eq!(server.interrupt(), Some(0));
    for (from, to) in [("e1.img", "x"), ("e2.img", "e1.img"), ("x", "e2.img")] {
        std::fs::rename(home.join(from), home.join(to)).expect("moved");
    }
    let checked = run_in(home, &["check", "array.toml"]);
    let all = format!("{}{}", checked.stdout, checked.stderr);
    assert!(checked.code == Some(0) && !all.contains("missing"), "{all}");
}

/// An array that is out of use was served instead of one of the same names, because it had been started more often.
#[test]
fn of_two_pools_of_one_name_the_one_counts_that_the_file_names() {
    let directory = directory();
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    for (home, search, starts) in [(&old, "", 2), (&new, "search = [\"../old\"]\n", 0)] {
        std::fs::create_dir_all(home).expect("a directory");
        file(home, "array.toml", &plain("test", ""));
        told(home, &["create", "array.toml"]);
        for _ in 0..starts {
            assert_eq!(served(home).interrupt(), Some(0));
        }
        file(home, "array.toml", &plain("test", search));
    }
    let checked = run_in(&new, &["check", "array.toml"]);
    let all = format!("{}{}", checked.stdout, checked.stderr);
    let left = "old/d0.img";
    assert!(checked.code == Some(0) && all.contains("left alone") && all.contains(left), "{all}");
    let server = served(&new);
    let printed = told(&new, &["config", "array.toml"]);
    assert!(printed.contains(text(&new.join("d0.img"))) && !printed.contains(left), "{printed}");
    assert_eq!(server.interrupt(), Some(0));
    // `check` cannot know which is meant where the file names the drives of neither.
    std::fs::create_dir_all(directory.path().join("third")).expect("a directory");
    let third = directory.path().join("third");
    file(&third, "array.toml", &plain("test", "search = [\"../old\", \"../new\"]\n"));
    let refused = run_in(&third, &["check", "array.toml"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("two pools \"pool0\""), "{}", refused.stderr);
}

/// The last drive that the file named was replaced without a word, and the next start said that the pool is on none of the
/// drives; or the last but one, and then that one was lost.
#[test]
fn the_last_drive_that_the_file_names_is_replaced_with_a_word() {
    let directory = directory();
    let home = directory.path();
    file(home, "array.toml", &plain("test", ""));
    told(home, &["create", "array.toml"]);
    let server = served(home);
    let replace = |old: &str, new: &str| {
        let path = format!("{new}.img");
        told(
            home,
            &["drive", "replace", "array.toml", old, "--name", new, "--path", &path, "--size", "64MiB"],
        )
        .replace('\n', " ")
    };
    let said = replace("d0", "e0");
    assert!(said.contains("names only one drive"), "{said}");
    let said = replace("d1", "e1");
    assert!(said.contains("names no remaining drive"), "{said}");
    let printed = told(home, &["config", "array.toml"]);
    assert_eq!(server.interrupt(), Some(0));
    file(home, "array.toml", &printed);
    told(home, &["check", "array.toml"]);
}
