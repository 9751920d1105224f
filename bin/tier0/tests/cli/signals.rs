//! A server that is asked to end before it serves.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{Background, array_file, directory, succeed, text, tier0};

/// A start that waits, asked to end: its code and what it says.
fn stopped(array: &Path, signal: Signal) -> (Option<i32>, String) {
    // A start waits for a drive that another process has locked.
    let drive = std::fs::File::open(array.with_file_name("d0.img")).expect("a drive");
    drive.lock().expect("nobody has it");
    let log = array.with_file_name("log");
    let mut server = tier0();
    server.args(["serve", text(array), "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    server.stderr(std::fs::File::create(&log).expect("a file"));
    let server = Background::of(server);
    assert!((0..300).any(|_| server.catches(signal) || wait()), "it does not catch the signal");
    server.signal(signal);
    let code = server.end();
    (code, std::fs::read_to_string(log).expect("a log"))
}

fn wait() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
    std::thread::sleep(std::time::Duration::from_millis(5));
    false
}

/// It ended without a word, with a code that no document named.
#[test]
fn a_start_that_is_stopped_says_so() {
    let directory = directory();
    let array = array_file(directory.path(), "raid1", 2);
    succeed(&["create", text(&array)]);
    for (signal, code, name) in [(Signal::TERM, 143, "SIGTERM"), (Signal::INT, 130, "Ctrl-C")] {
        let (ended, told) = stopped(&array, signal);
        assert_eq!(ended, Some(code), "{told}");
        let sentence = format!("tier0: stopped by {name} during startup; ");
        assert!(told.lines().count() == 1 && told.starts_with(&sentence), "{told}");
    }
}

/// `timeout` sends SIGTERM to the process and to its group: the second one ended the server before what was in flight was
/// answered.
#[test]
fn two_signals_at_once_are_one_wish() {
    let directory = directory();
    let array = array_file(directory.path(), "raid1", 2);
    succeed(&["create", text(&array)]);
    for _ in 0..5 {
        let mut server = tier0();
        server.args(["serve", text(&array), "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped());
        let mut server = Background::of(server);
        server.read_until(|line| line == "}");
        server.signal(Signal::TERM);
        // It has taken the first one by then, and is ending.
        wait();
        server.signal_if_there(Signal::INT);
        assert_eq!(server.end(), Some(0));
    }
}

/// A pipe that nobody read stopped the shards at the line of the log that found no room, and the second signal too.
#[test]
fn a_stderr_that_nobody_reads_holds_up_nothing() {
    let directory = directory();
    let array = array_file(directory.path(), "raid1", 2);
    succeed(&["create", text(&array)]);
    let (unread, mut stderr) = std::io::pipe().expect("a pipe");
    rustix::pipe::fcntl_setpipe_size(&stderr, 4096).expect("a size");
    stderr.write_all(&[b'.'; 4096]).expect("room for no more");
    let mut server = tier0();
    server.args(["serve", text(&array), "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped());
    server.stderr(stderr);
    let mut server = Background::of(server);
    server.read_until(|line| line == "}");
    // The log has something to say of each.
    succeed(&["drive", "fail", text(&array), "d1", "--yes"]);
    succeed(&["drive", "rejoin", text(&array), "d1"]);
    assert_eq!(server.interrupt(), Some(0));
    drop(unread);
}
