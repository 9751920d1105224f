//! A pool that grows under a client: drives join, the client goes on, what it wrote is there after the next start.

use std::io::Write;
use std::path::Path;

use crate::support::{
    create, describe, directory, run, serve, skipped, stop, succeeded, tier0, uri, verb, wait_until,
};

fn status(array: &Path) -> serde_json::Value {
    let output = tier0(&["status", &array.display().to_string(), "--json"]).output().expect("it starts");
    serde_json::from_str(&succeeded("tier0 status", &output)).expect("it prints JSON")
}

fn usable(array: &Path) -> u64 {
    status(array)["pools"][0]["space"]["usable_bytes"].as_u64().expect("a number")
}

#[test]
fn a_pool_grows_while_it_is_served() {
    if skipped("a_pool_grows_while_it_is_served", false, &["fio", "nbdinfo"]) {
        return;
    }
    let directory = directory();
    let at = directory.path();
    let array = describe(at, "raid5", 3, 3, "96MiB");
    create(&array);
    let server = serve(&array);
    let fio = |arguments: &[&str]| {
        let uri = format!("--uri={}", uri(at));
        let common = ["--name=verify", "--ioengine=nbd", &uri, "--iodepth=8", "--size=96M", "--bs=64k"];
        let rest = ["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--randrepeat=1"];
        run("fio", &[&common[..], &rest[..], arguments].concat())
    };
    fio(&["--rw=write"]);
    let before = usable(&array);
    let mut file = std::fs::File::options().append(true).open(&array).expect("the array file");
    for name in ["n0", "n1", "n2"] {
        let path = at.join(format!("{name}.img")).display().to_string();
        verb(&array, &["drive", "add", "--name", name, "--path", &path, "--size", "256MiB"]);
        write!(file, "\n[[drive]]\nname = \"{name}\"\npath = \"{path}\"\n").expect("the array file");
    }
    let grown = verb(&array, &["pool", "grow"]);
    assert!(grown.contains("has grown"), "{grown}");
    assert!(usable(&array) >= 2 * before, "{before} bytes before, {} after", usable(&array));
    // The client goes on while extents move.
    fio(&["--rw=write", "--verify_only"]);
    fio(&["--rw=write"]);
    wait_until("the end of restriping", || status(&array)["pools"][0]["restripe"].is_null());
    fio(&["--rw=write", "--verify_only"]);
    verb(&array, &["volume", "create", "more", "--size", "300MiB"]);
    stop(server);

    let server = serve(&array);
    assert!(usable(&array) >= 2 * before);
    assert_eq!(status(&array)["health"], "healthy");
    fio(&["--rw=write", "--verify_only"]);
    stop(server);
}
