//! Unix sockets of a server that somebody removes, or puts something else in the place of.

use std::path::Path;
use std::process::Stdio;

use crate::support::{Background, array_text, directory, file, refuse, run, succeed, text, tier0};

/// A server whose log is `at/log`, once it serves.
fn serve(array: &Path, at: &Path) -> Background {
    let log = std::fs::File::create(at.join("log")).expect("a file");
    let mut server = tier0();
    server.args(["serve", text(array), "--json"]).stdout(Stdio::piped()).stderr(log);
    let mut server = Background::of(server);
    server.read_until(|line| line == "}");
    server
}

fn await_that(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..400 {
        if is_so() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it does not come to that: {what}");
}

/// A socket that was removed was gone until the next start, and nobody said so.
#[test]
fn a_socket_that_was_removed_is_made_again() {
    let directory = directory();
    let at = directory.path();
    let content = format!("{}[nbd]\nlisten = [\"unix:nbd.sock\"]\n", array_text(at, "raid1", 2));
    let array = file(at, "array.toml", &content);
    succeed(&["create", text(&array)]);
    let server = serve(&array, at);
    let (control, socket) = (at.join("array.control"), at.join("nbd.sock"));
    let log = || std::fs::read_to_string(at.join("log")).expect("a log");
    for path in [&control, &socket] {
        std::fs::remove_file(path).expect("a socket");
        await_that("a socket is made again", || path.exists());
    }
    await_that("it answers", || run(&["status", text(&array)]).code == Some(0));
    let uri = format!("nbd+unix:///lun0?socket={}", text(&socket));
    succeed(&["load", &uri, "--ios", "10"]);
    await_that("it is told", || log().contains("array.control") && log().contains("nbd.listen"));

    // Something else lies there from one moment to the next.
    std::fs::rename(file(at, "other", "of somebody"), &control).expect("a file");
    await_that("it is told", || log().contains("is not the socket of this server"));
    refuse(&["status", text(&array)], 1, &["array.control", "is no socket", "take it away"]);
    assert_eq!(std::fs::read(&control).expect("a file"), b"of somebody");
    std::fs::remove_file(&control).expect("a file");
    await_that("it answers", || run(&["status", text(&array)]).code == Some(0));
    assert_eq!(server.interrupt(), Some(0));
    assert!(!control.exists() && !socket.exists(), "sockets are left behind");
}

/// A file at the control socket's path was called a server that listens there.
#[test]
fn a_file_at_a_sockets_path_is_no_server() {
    let directory = directory();
    let at = directory.path();
    let right = array_text(at, "raid1", 2);
    let content = format!("{right}[nbd]\nlisten = [\"unix:nbd.sock\"]\n");
    let array = file(at, "array.toml", &content);
    succeed(&["create", text(&array)]);
    let socket = file(at, "nbd.sock", "of somebody");
    refuse(&["check", text(&array)], 2, &["nbd.listen", "is no socket", "take it away"]);
    refuse(&["serve", text(&array)], 1, &["nbd.sock", "no socket", "take it away"]);
    std::fs::remove_file(&socket).expect("a file");
    let control = file(at, "array.control", "of somebody");
    let told = succeed(&["check", text(&array)]).replace("\n    ", " ");
    assert!(told.contains("array.control: what lies at") && told.contains("is no socket"), "{told}");
    let server = serve(&array, at);
    let log = std::fs::read_to_string(at.join("log")).expect("a log");
    assert!(log.contains("what lies there is no socket") && !log.contains("another server"), "{log}");
    std::fs::remove_file(&control).expect("a file");
    await_that("it answers", || run(&["status", text(&array)]).code == Some(0));
    assert_eq!(server.interrupt(), Some(0));
}
