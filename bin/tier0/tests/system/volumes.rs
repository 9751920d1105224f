//! Volumes that are created, resized and deleted while the array is served, as other people's clients see them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tier0_torture::process::Running;
use tier0_torture::tools::find;

use crate::support::{create, describe, directory, refused, run, serve, skipped, stop, uri, verb};

fn uri_of(directory: &Path, volume: &str) -> String {
    uri(directory).replace("lun0", volume)
}

/// So many MiB that look like nothing, others for each seed.
fn noise(mib: u32, seed: u32) -> Vec<u8> {
    (0..mib << 20).map(|i| ((i ^ seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn listed(directory: &Path) -> Vec<String> {
    let text = run("nbdinfo", &["--list", "--json", &uri_of(directory, "")]);
    let found: serde_json::Value = serde_json::from_str(&text).expect("nbdinfo prints JSON");
    let exports = found["exports"].as_array().expect("a list");
    exports.iter().map(|export| export["export-name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn volumes_come_and_go_while_the_array_is_served() {
    if skipped("volumes_come_and_go_while_the_array_is_served", false, &["nbdinfo", "nbdcopy"]) {
        return;
    }
    let directory = directory();
    let at = directory.path();
    let array = describe(at, "raid5", 4, 4, "16MiB");
    create(&array);
    let server = serve(&array);
    assert_eq!(listed(at), ["lun0"]);

    verb(&array, &["volume", "create", "logs", "--size", "24MiB", "--thin"]);
    assert_eq!(listed(at), ["lun0", "logs"]);
    assert_eq!(run("nbdinfo", &["--size", &uri_of(at, "logs")]).trim(), (24 << 20).to_string());
    let (image, copy) = (at.join("image"), at.join("copy"));
    let bytes = noise(24, 0);
    std::fs::write(&image, &bytes).expect("an image");
    run("nbdcopy", &[&image.display().to_string(), &uri_of(at, "logs")]);

    verb(&array, &["volume", "resize", "logs", "--size", "40MiB"]);
    assert_eq!(run("nbdinfo", &["--size", &uri_of(at, "logs")]).trim(), (40 << 20).to_string());
    stop(server);

    let server = serve(&array);
    assert_eq!(listed(at), ["lun0", "logs"]);
    run("nbdcopy", &[&uri_of(at, "logs"), &copy.display().to_string()]);
    let read = std::fs::read(&copy).expect("a copy");
    assert_eq!(read.len(), 40 << 20);
    assert!(read[..24 << 20] == bytes && read[24 << 20..].iter().all(|byte| *byte == 0));

    // A client that stays.
    let nbdcopy = find("nbdcopy").expect("it is installed");
    let mut client = Command::new(nbdcopy);
    client.args(["-", &uri_of(at, "logs")]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = client.spawn().expect("it starts");
    // More than a pipe holds: when it is taken, the client is connected and writes.
    client.stdin.as_mut().expect("a pipe").write_all(&bytes[..8 << 20]).expect("it reads");
    assert!(refused(&array, &["volume", "delete", "logs", "--yes"]).contains("--force"));
    assert_eq!(listed(at), ["lun0", "logs"]);
    verb(&array, &["volume", "delete", "logs", "--force", "--yes"]);
    assert_eq!(listed(at), ["lun0"]);
    drop(client.stdin.take());
    client.wait().expect("it ends");
    assert!(refused(&array, &["volume", "delete", "logs"]).contains("no volume"));
    stop(server);

    let server = serve(&array);
    assert_eq!(listed(at), ["lun0"]);
    stop(server);
}

/// Kills a server, whose socket does not tell that the next one is ready then.
fn killed(mut server: Running, at: &Path) {
    server.kill().expect("it was killed");
    std::fs::remove_file(at.join("nbd.sock")).expect("its socket");
}

/// A clone that is made while its volume is written, and what both hold after kills and when one of them is gone.
#[test]
fn a_clone_holds_what_its_volume_held_when_it_was_made() {
    let name = "a_clone_holds_what_its_volume_held_when_it_was_made";
    if skipped(name, false, &["nbdcopy"]) {
        return;
    }
    let directory = directory();
    let at = directory.path();
    let array = describe(at, "raid5", 4, 4, "16MiB");
    create(&array);
    let server = serve(&array);
    let file = |name: &str| at.join(name).display().to_string();
    let holds = |volume: &str, bytes: &[u8]| {
        run("nbdcopy", &[&uri_of(at, volume), &file("read")]);
        let read = std::fs::read(at.join("read")).expect("a copy");
        let wrong = read.iter().zip(bytes).position(|(read, right)| read != right);
        assert_eq!((read.len(), wrong), (bytes.len(), None), "{volume}");
    };
    verb(&array, &["volume", "create", "db", "--size", "16MiB", "--thin"]);
    let (old, new) = (noise(16, 0), noise(16, 77));
    std::fs::write(at.join("old"), &old).expect("an image");
    std::fs::write(at.join("new"), &new).expect("an image");
    run("nbdcopy", &[&file("old"), &uri_of(at, "db")]);
    verb(&array, &["volume", "clone", "db", "test"]);
    assert_eq!(listed(at), ["lun0", "db", "test"]);
    holds("test", &old);
    run("nbdcopy", &[&file("new"), &uri_of(at, "db")]);
    holds("test", &old);
    holds("db", &new);
    killed(server, at);

    let server = serve(&array);
    holds("test", &old);
    holds("db", &new);
    verb(&array, &["volume", "delete", "db", "--yes"]);
    holds("test", &old);
    assert!(refused(&array, &["volume", "clone", "lun0", "other"]).contains("thick"));
    killed(server, at);

    let server = serve(&array);
    assert_eq!(listed(at), ["lun0", "test"]);
    holds("test", &old);
    stop(server);
}
