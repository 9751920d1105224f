//! Copies of drives in the places of the drives: nothing on them contradicts a start that takes them for the array.

use std::path::Path;
use std::time::Duration;

use crate::support::{directory, file, plain, run_in, served, served_with, text};

/// A new array in a directory.
fn created(at: &Path) {
    file(at, "array.toml", &plain("test", ""));
    assert_eq!(says(at, &["create", "array.toml"]).0, Some(0));
}

/// What `tier0 VERB array.toml` ends with and says, on either channel.
fn says(at: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let ended = run_in(at, arguments);
    (ended.code, format!("{}{}", ended.stdout, ended.stderr).replace('\n', " "))
}

fn until<T>(mut done: impl FnMut() -> Option<T>) -> T {
    for _ in 0..200 {
        if let Some(done) = done() {
            return done;
        }
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not within 10 s");
}

fn swap(home: &Path) {
    std::fs::create_dir(home.join("old")).expect("a directory");
    for name in ["d0.img", "d1.img"] {
        std::fs::rename(home.join(name), home.join("old").join(name)).expect("moved");
        std::fs::copy(home.join("old").join(name), home.join(name)).expect("copied");
    }
}

/// The drives were moved under their server and copies put in their places: the next start took the copies without a word.
#[test]
fn copies_in_the_places_of_moved_drives_are_told_before_and_after_the_end() {
    let directory = directory();
    let home = directory.path();
    created(home);
    let server = served(home);
    swap(home);
    let (code, status) = says(home, &["status", "array.toml"]);
    assert!(code == Some(5) && status.contains("another file is there"), "{status}");
    let (_, checked) = says(home, &["check", "array.toml"]);
    assert!(checked.contains("is now a copy of it") && checked.contains("move it back"), "{checked}");
    // At once: no look every so often has seen it.
    assert_eq!(server.interrupt(), Some(0));
    let server = served(home);
    // A thread reads what the server before has left.
    let status = until(|| Some(says(home, &["status", "array.toml"])).filter(|(code, _)| *code == Some(4)));
    assert!(status.1.contains("stop the server and move the original back"), "{}", status.1);
    until(|| says(home, &["events", "array.toml"]).1.contains("this drive may be a copy").then_some(()));
    assert_eq!(server.interrupt(), Some(0));
    for name in ["d0.img", "d1.img"] {
        std::fs::rename(home.join("old").join(name), home.join(name)).expect("moved back");
    }
    let server = served(home);
    let (code, status) = says(home, &["status", "array.toml"]);
    assert!(code == Some(0) && !status.contains("copy of"), "{status}");
    assert_eq!(server.interrupt(), Some(0));
}

/// A link that leads elsewhere put copies in the places of drives that lie where they lay, and nothing was told.
#[test]
fn copies_behind_a_link_that_leads_elsewhere_are_told() {
    let directory = directory();
    let home = directory.path();
    for name in ["one", "two"] {
        std::fs::create_dir(home.join(name)).expect("a directory");
    }
    let link = |to: &str| {
        let _ = std::fs::remove_file(home.join("link"));
        std::os::unix::fs::symlink(to, home.join("link")).expect("a link");
    };
    link("one");
    file(home, "array.toml", &plain("test", "").replace("d{n}.img", "link/d{n}.img"));
    assert_eq!(says(home, &["create", "array.toml"]).0, Some(0));
    let server = served(home);
    for name in ["d0.img", "d1.img"] {
        std::fs::copy(home.join("one").join(name), home.join("two").join(name)).expect("copied");
    }
    assert_eq!(says(home, &["status", "array.toml"]).0, Some(0));
    link("two");
    let (code, status) = says(home, &["status", "array.toml"]);
    assert!(code == Some(5) && status.contains("another file is there"), "{status}");
    let (_, checked) = says(home, &["check", "array.toml"]);
    assert!(checked.contains("is now a copy of it"), "{checked}");
    assert_eq!(server.interrupt(), Some(0));
    let server = served(home);
    let status = until(|| Some(says(home, &["status", "array.toml"])).filter(|(code, _)| *code == Some(4)));
    assert!(status.1.contains("this drive may be a copy"), "{}", status.1);
    assert_eq!(server.interrupt(), Some(0));
    link("one");
    let server = served(home);
    assert_eq!(says(home, &["status", "array.toml"]).0, Some(0));
    link("two");
    assert_eq!(says(home, &["status", "array.toml"]).0, Some(5));
    link("one");
    let (code, status) = says(home, &["status", "array.toml"]);
    assert!(code == Some(0) && status.contains("again"), "{status}");
    assert_eq!(server.interrupt(), Some(0));
}

/// The same of copies that were renamed over one of the names of files that have another one: no file was moved or deleted.
#[test]
fn copies_renamed_over_one_of_two_names_are_told() {
    let directory = directory();
    let home = directory.path();
    file(home, "array.toml", &plain("test", "search = [\".\"]\n"));
    assert_eq!(says(home, &["create", "array.toml"]).0, Some(0));
    let server = served(home);
    for name in ["d0.img", "d1.img"] {
        std::fs::hard_link(home.join(name), home.join(format!("{name}.name"))).expect("a second name");
        std::fs::copy(home.join(name), home.join("copy")).expect("copied");
        std::fs::rename(home.join("copy"), home.join(name)).expect("moved");
    }
    let (code, status) = says(home, &["status", "array.toml"]);
    assert!(code == Some(5) && status.contains("does not lead to its file any more"), "{status}");
    assert!(status.contains("another file is there") && status.contains("undo the rename"), "{status}");
    let (_, checked) = says(home, &["check", "array.toml"]);
    assert!(checked.contains("is now a copy of it") && checked.contains("undo the rename"), "{checked}");
    assert!(!checked.contains("is a copy of drive"), "the original is none: {checked}");
    assert_eq!(server.interrupt(), Some(0));
}

/// `check` of a served array said that a start would not be refused, which then found two of each drive.
#[test]
fn copies_where_a_start_looks_too_are_told_while_the_array_is_served() {
    let directory = directory();
    let home = directory.path();
    std::fs::create_dir(home.join("more")).expect("a directory");
    file(home, "array.toml", &plain("test", "search = [\"more\"]\n"));
    assert_eq!(says(home, &["create", "array.toml"]).0, Some(0));
    let server = served(home);
    std::fs::write(home.join("more/notes"), "of no drive").expect("written");
    std::os::unix::fs::symlink("../d0.img", home.join("more/link")).expect("a link");
    assert_eq!(says(home, &["check", "array.toml"]).0, Some(0));
    std::fs::copy(home.join("d1.img"), home.join("more/copy")).expect("copied");
    let (code, checked) = says(home, &["check", "array.toml"]);
    assert!(code == Some(2) && checked.contains("more/copy\" is a copy of drive \"d1\""), "{checked}");
    assert_eq!(server.interrupt(), Some(0));
    let (code, refused) = says(home, &["serve", "array.toml"]);
    assert!(code == Some(2) && refused.contains("copies of the same drive"), "{refused}");
    std::fs::remove_file(home.join("more/copy")).expect("it was there");
    assert_eq!(served(home).interrupt(), Some(0));
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for name in ["array.toml", "d0.img", "d1.img"] {
        std::fs::copy(from.join(name), to.join(name)).expect("copied");
    }
}

/// In a copy of an array a drive was taken back from where the drives remembered it: it was the original's, and overwritten.
#[test]
fn a_copy_takes_no_drive_of_the_original_back() {
    let directory = directory();
    let (original, copy) = (directory.path().join("original"), directory.path().join("copy"));
    std::fs::create_dir(&original).expect("a directory");
    created(&original);
    assert_eq!(served(&original).interrupt(), Some(0));
    copied(&original, &copy);
    std::fs::remove_file(copy.join("d1.img")).expect("it was there");
    let before = std::fs::read(original.join("d1.img")).expect("it is there");
    let server = served_with(&copy, &["--without", "d1"]);
    let of_original = original.join("d1.img");
    let (spelled, linked) = (copy.join("../original/d1.img"), copy.join("link"));
    std::os::unix::fs::symlink(&of_original, &linked).expect("a link");
    for path in [&spelled, &linked] {
        let (code, told) = says(&copy, &["drive", "rejoin", "array.toml", "d1", "--path", text(path)]);
        assert!(code == Some(2) && told.contains("a copy must not touch the original"), "{path:?}: {told}");
    }
    for arguments in [
        &["drive", "rejoin", "array.toml", "d1"][..],
        &["drive", "rejoin", "array.toml", "d1", "--path", text(&of_original)],
    ] {
        let (code, told) = says(&copy, arguments);
        assert!(code == Some(2) && told.contains("a copy must not touch the original"), "{told}");
    }
    // Where the originals of the others are gone only the administrator knows.
    std::fs::rename(original.join("d0.img"), original.join("away")).expect("moved");
    let (code, told) = says(&copy, &["drive", "rejoin", "array.toml", "d1"]);
    assert!(code == Some(2) && told.contains("confirm with --path"), "{told}");
    std::fs::rename(original.join("away"), original.join("d0.img")).expect("moved back");
    // Beside the others, where the array file has it, it is found.
    std::fs::copy(&of_original, copy.join("d1.img")).expect("copied");
    let (code, told) = says(&copy, &["drive", "rejoin", "array.toml", "d1"]);
    assert!(code == Some(0), "{told}");
    assert_eq!(server.interrupt(), Some(0));
    assert!(std::fs::read(&of_original).expect("it is there") == before);
    let (code, checked) = says(&original, &["check", "array.toml"]);
    assert!(code == Some(0) && !checked.contains('!'), "{checked}");
}

/// Drives of the array in each other's places are known by what they hold.
#[test]
fn drives_that_have_changed_places_are_no_copies() {
    let directory = directory();
    let home = directory.path();
    created(home);
    let server = served(home);
    for (from, to) in [("d0.img", "x"), ("d1.img", "d0.img"), ("x", "d1.img")] {
        std::fs::rename(home.join(from), home.join(to)).expect("moved");
    }
    let (code, status) = says(home, &["status", "array.toml"]);
    assert!(code == Some(4) && !status.contains("another file"), "{status}");
    assert_eq!(server.interrupt(), Some(0));
    let server = served(home);
    assert_eq!(says(home, &["status", "array.toml"]).0, Some(0));
    assert_eq!(server.interrupt(), Some(0));
}
