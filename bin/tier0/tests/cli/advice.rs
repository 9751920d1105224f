//! What a running array advises, and what it must not.

use std::io::Write as _;

use crate::support::{Scene, Served, array_text, directory, file, refuse, run, succeed, text};

/// `/etc/passwd` was to be overwritten with --force.
#[test]
fn a_file_that_cannot_be_a_drive_is_not_to_be_overwritten() {
    let scene = Scene::of("raid1", 2);
    let small = file(scene.directory(), "passwd", &"root:x:0:0:root:/root:/bin/sh\n".repeat(400));
    let odd = file(scene.directory(), "odd", &"of somebody".repeat(6 << 20));
    let mut open = std::fs::File::options().append(true).open(&odd).expect("a file");
    open.write_all(b"x").expect("a file");
    for path in [&small, &odd] {
        let asked = ["drive", "add", scene.array(), "--name", "d7", "--path", text(path)];
        refuse(&asked, 2, &["is no drive", "name another file"]);
        assert!(!run(&asked).stderr.contains("--force"));
    }
    scene.stop();
}

/// "tier0 drive rejoin" was advised for a drive whose file was gone, and `can_return` was true of it.
#[test]
fn a_drive_whose_file_is_gone_cannot_return() {
    let scene = Scene::of("raid1", 2);
    succeed(&["drive", "fail", scene.array(), "d1", "--yes"]);
    let can_return = |wanted: bool| {
        scene.status_when(|status| status["pools"][0]["drives"][1]["can_return"] == wanted);
    };
    can_return(true);
    let (away, at) = (scene.at("away"), scene.at("d1.img"));
    std::fs::copy(&at, &away).expect("a copy");
    std::fs::remove_file(&at).expect("it was there");
    can_return(false);
    std::fs::rename(&away, &at).expect("it is back");
    can_return(true);
    scene.stop();
}

/// The spare was gone with a drive that was removed: all was well, and `check` wanted the file corrected that said it
/// rightly.
#[test]
fn spares_are_told_as_created_when_a_drive_has_left() {
    let directory = directory();
    let at = directory.path();
    let own = array_text(at, "raid1", 4).replace("set_size = 4", "set_size = 2\nspare_drives = 1");
    let array = file(at, "array.toml", &own);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, at);
    succeed(&["drive", "remove", text(&array), "d3"]);
    let mut config = succeed(&["config", text(&array)]);
    while config.contains("d3") {
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(std::time::Duration::from_millis(50));
        config = succeed(&["config", text(&array)]);
    }
    assert!(config.contains("spare_drives = 1"), "{config}");
    let status = run(&["status", text(&array)]);
    assert!(status.code == Some(4) && status.stdout.contains("spares: "), "{}", status.stdout);
    let checked = run(&["check", text(&array)]);
    assert!(!(checked.stdout + &checked.stderr).contains("spare_drives"));
    served.stop();
    let own = own.replace("count = 4", "count = 3");
    let array = file(at, "array.toml", &own);
    let checked = run(&["check", text(&array)]);
    assert!(!(checked.stdout + &checked.stderr).contains("spare_drives"));
}
