//! Unix sockets of a server that another process removes, or puts something else in the place of.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::support::{
    Background, array_text, directory, file, json, let_be_read, refuse, run, run_as_nobody, succeed, text,
    tier0,
};

/// The file of a new array with a unix socket.
fn created(at: &Path) -> PathBuf {
    let content = format!("{}[nbd]\nlisten = [\"unix:nbd.sock\"]\n", array_text(at, "raid1", 2));
    let array = file(at, "array.toml", &content);
    succeed(&["create", text(&array)]);
    array
}

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

/// A socket that was removed was gone until the next start, and the server did not say so.
#[test]
fn a_socket_that_was_removed_is_made_again() {
    let directory = directory();
    let at = directory.path();
    let array = created(at);
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
    await_that("it is told", || log().contains("is no longer this server's socket"));
    refuse(&["status", text(&array)], 1, &["array.control", "is not a socket", "remove that file"]);
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
    let array = created(at);
    let socket = file(at, "nbd.sock", "of somebody");
    for verb in ["check", "serve"] {
        refuse(&[verb, text(&array)], 2, &["nbd.listen", "nbd.sock", "is not a socket", "remove it"]);
    }
    std::fs::remove_file(&socket).expect("a file");
    let control = file(at, "array.control", "of somebody");
    let told = succeed(&["check", text(&array)]).replace("\n    ", " ");
    assert!(told.contains("array.control: ") && told.contains("exists and is not a socket"), "{told}");
    let server = serve(&array, at);
    let log = || std::fs::read_to_string(at.join("log")).expect("a log");
    await_that("it is told", || log().contains("the path exists and is not a socket"));
    assert!(!log().contains("another server"), "{}", log());
    std::fs::remove_file(&control).expect("a file");
    await_that("it answers", || run(&["status", text(&array)]).code == Some(0));
    assert_eq!(server.interrupt(), Some(0));
}

/// Clients found another server at the address, or none, and status said that all is well.
#[test]
fn a_socket_that_was_taken_is_told_until_it_is_back() {
    let directory = directory();
    let at = directory.path();
    let array = created(at);
    let server = serve(&array, at);
    let (socket, away) = (at.join("nbd.sock"), at.join("away.sock"));
    std::fs::rename(&socket, &away).expect("a socket");
    std::fs::rename(file(at, "other", "of somebody"), &socket).expect("a file");
    await_that("it is told", || run(&["status", text(&array)]).code == Some(4));
    let told = run(&["status", text(&array)]).stdout;
    assert!(
        told.contains("nbd.listen: ")
            && told.contains("nbd.sock\" is no longer")
            && told.contains("remove that file"),
        "{told}"
    );
    std::fs::rename(&away, &socket).expect("a socket");
    await_that("it is taken back", || run(&["status", text(&array)]).code == Some(0));
    let control = at.join("array.control");
    std::fs::remove_file(&control).expect("a socket");
    await_that("it is made again", || control.exists());
    let told = || succeed(&["events", text(&array), "--severity", "warning"]);
    await_that("events tell", || told().contains("array.control"));
    assert!(told().contains("nbd.sock\" is no longer this server"), "{}", told());
    assert_eq!(server.interrupt(), Some(0));
}

/// That no socket and no file could be made in a directory was seen at the start.
#[test]
fn a_directory_that_takes_no_files_is_found_by_check() {
    let directory = directory();
    let at = directory.path();
    let closed = at.join("closed");
    std::fs::create_dir(&closed).expect("a directory");
    let fields = "[array]\nevents = \"closed/e\"\ncontrol = \"closed/c\"";
    let content = array_text(at, "raid1", 2).replacen("[array]", fields, 1);
    let array = file(at, "array.toml", &content);
    succeed(&["create", text(&array)]);
    let server = serve(&array, at);
    server.interrupt();
    for name in ["d0.img", "d1.img"] {
        let open = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(at.join(name), open).expect("it is ours");
    }
    std::fs::remove_file(closed.join("e")).expect("events");
    let_be_read(&closed);
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    let told = run_as_nobody(&["check", text(&array)]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    for words in ["cannot write events", "array.control: cannot create a socket in the directory"] {
        assert!(told.stdout.contains(words), "{words}: {}", told.stdout);
    }
    file(at, "array.toml", &format!("{content}[nbd]\nlisten = [\"unix:closed/s\"]\n"));
    let told = run_as_nobody(&["check", text(&array)]);
    assert_eq!(told.code, Some(2), "{}", told.stdout);
    assert!(told.stderr.contains("nbd.listen: cannot create a socket"), "{}", told.stderr);
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// A server whose array file had been renamed was not found under the new name, and status said that the array is not served.
#[test]
fn a_server_whose_array_file_was_renamed_is_told() {
    let directory = directory();
    let at = directory.path();
    let array = created(at);
    let server = serve(&array, at);
    let renamed = at.join("new.toml");
    std::fs::rename(&array, &renamed).expect("a file");
    let process = format!("tier0 server {}", server.id());
    let told = [&process, "array.toml\" (now missing", "tier0 status", "array.control"];
    refuse(&["status", text(&renamed)], 1, &told);
    // As it is advised.
    let asked = run(&["status", text(&array)]);
    assert!(asked.code == Some(4) && asked.stdout.contains("array test"), "{}", asked.stderr);
    assert_eq!(server.interrupt(), Some(0));
}

/// Every verb hung without end in connecting to a process that listens, takes no connection, and has its backlog full.
#[test]
fn a_server_that_takes_no_connection_is_not_waited_for_without_end() {
    let directory = directory();
    let at = directory.path();
    let array = created(at);
    let address = SocketAddrUnix::new(at.join("array.control")).expect("a short path");
    let socket = |flags| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
    let listener = socket(SocketFlags::CLOEXEC);
    bind(&listener, &address).and_then(|()| listen(&listener, 0)).expect("it listens");
    let mut waiting = Vec::new();
    loop {
        let client = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        match connect(&client, &address) {
            Ok(()) => waiting.push(client),
            Err(_) => break,
        }
    }
    refuse(&["status", text(&array)], 1, &["has not responded for 10 s", "check its log"]);
    // What changes something was not sent, so nothing comes of it later.
    let ended = run(&["scrub", text(&array)]);
    assert!(ended.code == Some(1) && !ended.stderr.contains("carry out"), "{}", ended.stderr);
    refuse(&["serve", text(&array)], 2, &["array.control", "another server listens"]);
}

/// A start that waited for an address warned that the process had stood still, and advised to look for a stopped one.
#[test]
fn a_start_that_waits_for_an_address_does_not_stand_still() {
    let directory = directory();
    let at = directory.path();
    let array = created(at);
    let holder = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = holder.local_addr().expect("an address").to_string();
    let log = std::fs::File::create(at.join("log")).expect("a file");
    let mut server = tier0();
    server.args(["serve", text(&array), "--json", "--listen", &port]).stdout(Stdio::piped()).stderr(log);
    let mut server = Background::of(server);
    #[expect(clippy::disallowed_methods, reason = "a test holds another process up")]
    std::thread::sleep(std::time::Duration::from_millis(1800));
    drop(holder);
    server.read_until(|line| line == "}");
    let status = run(&["status", text(&array)]);
    assert_eq!(status.code, Some(0), "{}{}", status.stdout, status.stderr);
    let log = std::fs::read_to_string(at.join("log")).expect("a log");
    assert!(
        !log.contains("did not run for") && !status.stdout.contains("did not run for"),
        "{log}{}",
        status.stdout
    );
    assert_eq!(server.interrupt(), Some(0));
}

/// The sockets that a killed server leaves were looked at for a second by the thread of the array.
#[test]
fn a_start_after_a_kill_does_not_stand_still() {
    let directory = directory();
    let at = directory.path();
    let array = created(at);
    drop(serve(&array, at));
    assert!(at.join("nbd.sock").exists(), "what a killed server leaves");
    let server = serve(&array, at);
    let status = run(&["status", text(&array)]);
    let log = std::fs::read_to_string(at.join("log")).expect("a log");
    assert!(
        !log.contains("did not run for") && !status.stdout.contains("did not run for"),
        "{log}{}",
        status.stdout
    );
    assert_eq!(server.interrupt(), Some(0));
}

/// Connections that said nothing kept every client of the same address out for ten seconds, and were told nowhere.
#[test]
fn silent_connections_keep_no_client_out() {
    let directory = directory();
    let at = directory.path();
    let content = array_text(at, "raid1", 2).replace("[array]\n", "[array]\ncores = 1\n");
    let array = file(at, "array.toml", &content);
    succeed(&["create", text(&array)]);
    let mut server = Background::start(&["serve", text(&array), "--json", "--listen", "127.0.0.1:0"]);
    let told: serde_json::Value = serde_json::from_str(&server.read_until(|line| line == "}")).expect("JSON");
    let uri = told["volumes"][0]["addresses"][0].as_str().expect("an address").to_owned();
    let address = uri.trim_start_matches("nbd://").split('/').next().expect("host and port").to_owned();
    // More than one address may have.
    let silent: Vec<std::net::TcpStream> =
        (0..540).map(|_| std::net::TcpStream::connect(&address).expect("connects")).collect();
    succeed(&["load", &uri, "--ios", "10"]);
    let status = json(&["status", text(&array)]);
    let count = |field: &str| status["connections"][field].as_u64().expect("a number");
    assert!(count("gave_way_negotiating") >= 28, "{}", status["connections"]);
    assert_eq!((count("refused"), count("limit_per_address")), (0, 512));
    let shown = run(&["status", text(&array)]).stdout;
    assert!(shown.contains("closed for want of places since the start"), "{shown}");
    drop(silent);
    assert_eq!(server.interrupt(), Some(0));
    let events = succeed(&["events", text(&array)]);
    assert!(events.replace("\n", " ").contains("127.0.0.1 has 512 connections"), "{events}");
}
