//! Array files that are broken, emptied or gone while their server runs.

use std::path::Path;
use std::process::Stdio;

use crate::support::{Ended, Scene, Served, file, refuse, run, succeed, text, tier0};

/// Runs a verb of an array whose file is broken, and demands success and one warning that holds `words`.
fn warned(arguments: &[&str], code: i32, words: &[&str]) -> Ended {
    let ended = run(arguments);
    let asked = arguments.join(" ");
    assert_eq!(ended.code, Some(code), "tier0 {asked}: {}", ended.stderr);
    let warnings: Vec<&str> = ended.stderr.lines().collect();
    let [warning] = warnings[..] else { panic!("tier0 {asked} warns once: {}", ended.stderr) };
    for word in [&[" WARN ", "array.toml"], words].concat() {
        assert!(warning.contains(word), "tier0 {asked} does not say {word:?}: {warning}");
    }
    ended
}

/// No verb reached the server: each read the array file to its end for the control socket.
#[test]
fn a_server_is_reached_whose_array_file_is_broken() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let whole = std::fs::read_to_string(array).expect("an array file");
    let breaks: [(&dyn Fn(), &str); 3] = [
        (&|| std::fs::write(array, whole.replace("[[pool]]", "[[pool")).expect("it is ours"), "line 10"),
        (&|| std::fs::write(array, whole.replace("raid =", "riad =")).expect("it is ours"), "riad"),
        (&|| std::fs::remove_file(array).expect("it is ours"), "cannot read array file"),
    ];
    for (break_it, fault) in breaks {
        break_it();
        let asked = [fault, "using the control socket", "array.control", "of the running server"];
        // The next start is in danger, and all else is well.
        let told = warned(&["status", array], 4, &asked).stdout.replace("\n  ", " ");
        assert!(told.contains("tier0 config") && told.contains("pool0"), "{told}");
        for verb in [&["iostat"][..], &["scrub"], &["drive", "rejoin"]] {
            let (drive, code): (&[&str], _) = match verb {
                ["drive", _] => (&["d9"], 2),
                _ => (&[], 0),
            };
            let ended = run(&[verb, &[array], drive].concat());
            assert_eq!(ended.code, Some(code), "{verb:?}: {}", ended.stderr);
            assert!(ended.stderr.contains("of the running server"), "{verb:?}: {}", ended.stderr);
        }
        let told = warned(&["events", array], 0, &[fault, "array.events", "anyway"]).stdout;
        assert!(told.contains("served by"), "{told}");
        let volume = ["volume", "create", array, "more", "--size", "1MiB", "--thin"];
        warned(&volume, 0, &asked);
        // Consent takes a question and a request, and the fault is told once.
        warned(&["volume", "delete", array, "more", "--yes"], 0, &asked);
        std::fs::write(array, &whole).expect("it is ours");
    }
    assert_eq!(run(&["status", array]).code, Some(0));
    // A server of another name is not taken for the array's.
    std::fs::write(array, whole.replace("\"test\"", "\"other\"\nwrong = 1")).expect("it is ours");
    let ended = run(&["status", array]);
    assert!(ended.code == Some(2) && ended.stderr.contains("belongs to array \"test\""), "{}", ended.stderr);
    let at = scene.stop_and_keep();
    refuse(&["status", text(&at.path().join("array.toml"))], 2, &["line 3", "wrong"]);
}

/// The socket beside a file without an ending is that of its namesake.
#[test]
fn a_broken_file_does_not_lead_to_the_server_of_another_one() {
    let scene = Scene::of("raid1", 2);
    let namesake = file(scene.directory(), "array", "");
    refuse(&["status", text(&namesake)], 2, &["\"array\" is missing"]);
    refuse(&["drive", "fail", text(&namesake), "d1", "--yes"], 2, &["\"array\" is missing"]);
    std::fs::remove_file(namesake).expect("it is ours");
    scene.stop();
}

/// `tier0 config`, its stdout in a file.
fn config_into(array: &str, out: &Path, empties: bool) -> Ended {
    let mut options = std::fs::OpenOptions::new();
    let out = options.create(true).write(true).append(!empties).truncate(empties).open(out).expect("a file");
    let ended = tier0().args(["config", array]).stdout(out).stderr(Stdio::piped()).output();
    ended.expect("the program starts").into()
}

/// `tier0 config array.toml > array.toml` left an empty file, and no verb that could tell what had been in it.
#[test]
fn an_array_file_that_the_shell_emptied_comes_back() {
    let scene = Scene::of("raid1", 2);
    let (array, new) = (scene.array(), scene.at("new.toml"));
    let kept = config_into(array, Path::new(array), false);
    assert!(kept.code == Some(2) && kept.stderr.contains("another file"), "{}", kept.stderr);
    assert!(!kept.stderr.contains("truncated"), "{}", kept.stderr);
    let whole = succeed(&["config", array]);
    let emptied = config_into(array, Path::new(array), true);
    assert_eq!(emptied.code, Some(2));
    for words in
        ["stdout is redirected to the array file", "already truncated it", "> new.toml && mv new.toml", "; "]
    {
        assert!(emptied.stderr.contains(words), "{words} is missing: {}", emptied.stderr);
    }
    assert_eq!(std::fs::read(array).expect("it is there"), b"");
    let restored = config_into(array, &new, true);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert!(restored.stderr.contains("of the running server"), "{}", restored.stderr);
    std::fs::rename(&new, array).expect("it is ours");
    let text = std::fs::read_to_string(array).expect("it is there");
    assert!(text.contains("Add the settings that only the file had"), "{text}");
    // All of it comes from the server, but for where the control socket and the events are. The addresses were lost, and the
    // next start listened on TCP, for every user of the machine.
    let listen = format!("\n[nbd]\nlisten = [\"unix:{}/s\"]\n", scene.directory().display());
    assert_eq!(succeed(&["config", array]), whole + &listen);
    let (array, at) = (array.to_owned(), scene.stop_and_keep());
    Served::start(Path::new(&array), at.path()).stop();
}
