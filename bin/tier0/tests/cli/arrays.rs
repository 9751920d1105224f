//! `tier0 create` and `tier0 serve`.

use crate::support::{Served, array_file, contents, directory, json, refuse, succeed, text};

#[test]
fn an_array_is_created_once_and_served_again() {
    let directory = directory();
    let array = array_file(directory.path(), "raid10", 4);
    let created = json(&["create", text(&array)]);
    assert_eq!(created["pools"][0]["raid"], "raid10");
    assert_eq!(created["volumes"][0]["size_bytes"], 24 << 20);
    let before = contents(directory.path());
    refuse(&["create", text(&array)], 2, &["d0", "pool0", "--force"]);
    assert_eq!(contents(directory.path()), before, "a refused create has written something");

    let served = Served::start(&array, directory.path());
    let write =
        ["load", &served.uri, "--read", "0", "--ios", "500", "--seed", "9", "--verify", "--overwrite"];
    succeed(&write);
    served.stop();
    let served = Served::start(&array, directory.path());
    let measured = json(&["load", &served.uri, "--ios", "500", "-d", "8"]);
    assert_eq!(measured["all"]["ios"], 500);
    served.stop();
    let before = contents(directory.path());
    refuse(&["create", text(&array), "--force"], 2, &["d0", "pool0", "lost", "--yes"]);
    assert_eq!(contents(directory.path()), before, "without consent something was written");
    succeed(&["create", text(&array), "--force", "--yes"]);
}

#[test]
fn a_busy_socket_is_named() {
    let directory = directory();
    let array = array_file(directory.path(), "raid0", 2);
    succeed(&["create", text(&array)]);
    let socket = directory.path().join("busy");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let listen = format!("unix:{}", text(&socket));
    refuse(&["serve", text(&array), "--listen", &listen], 1, &["busy", "in use", "another address"]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = port.local_addr().expect("an address").to_string();
    refuse(&["serve", text(&array), "--listen", &listen], 1, &[&listen, "in use"]);
    assert!(socket.exists(), "another's socket was removed");
}

#[test]
fn a_drive_in_use_is_not_touched() {
    let directory = directory();
    let array = array_file(directory.path(), "raid0", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory.path());
    refuse(&["serve", text(&array), "--listen", "127.0.0.1:0"], 1, &["d0.img", "in use"]);
    refuse(&["create", text(&array), "--force"], 1, &["d0.img", "in use"]);
    refuse(&["load", text(&directory.path().join("d0.img"))], 1, &["d0.img", "in use"]);
    served.stop();
}

#[test]
fn too_many_lost_drives_are_named() {
    for (raid, drives, lost) in [("raid0", 2, 1), ("raid5", 3, 2), ("raid6", 4, 3)] {
        let directory = directory();
        let array = array_file(directory.path(), raid, drives);
        succeed(&["create", text(&array)]);
        for drive in 0..lost {
            std::fs::remove_file(directory.path().join(format!("d{drive}.img"))).expect("a drive to lose");
        }
        let before = contents(directory.path());
        refuse(&["serve", text(&array)], 2, &["pool0", "\"d0\"", raid]);
        assert_eq!(contents(directory.path()), before, "a refused {raid} has written something");
    }
}
