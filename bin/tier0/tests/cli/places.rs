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
