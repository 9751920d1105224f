//! Where paths begin: those of an array file beside it, those of the command line where the command is given.

use std::path::Path;
use std::process::Stdio;

use crate::support::{Background, directory, file, run_in, text, tier0};

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
