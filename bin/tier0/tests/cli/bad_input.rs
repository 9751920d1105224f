//! Wrong array files and wrong drives: one clear sentence, exit code 2, nothing written.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{array_file, array_text, contents, directory, file, refuse, succeed, text};

/// An array file with one thing changed, which these verbs refuse.
fn changed(from: &str, to: &str, words: &[&str]) {
    changed_for(&["create", "serve"], from, to, words);
}

fn changed_for(verbs: &[&str], from: &str, to: &str, words: &[&str]) {
    let directory = directory();
    let right = array_text(directory.path(), "raid10", 4);
    let wrong = right.replace(from, to);
    assert_ne!(right, wrong, "nothing was changed");
    let array = file(directory.path(), "array.toml", &wrong);
    for verb in verbs {
        let before = contents(directory.path());
        refuse(&[verb, text(&array)], 2, words);
        assert_eq!(contents(directory.path()), before, "tier0 {verb} has written something");
    }
}

#[test]
fn a_wrong_array_file_is_named_with_line_field_and_remedy() {
    changed("[array]", "[array", &["array.toml", "line 1"]);
    changed("[[pool]]", "[pool]", &["line 10", "pool", "write [[pool]]"]);
    changed("[array]", "[[array]]", &["line 1", "write [array]"]);
    changed(
        "count = 4",
        "count = \"4\"",
        &["line 6", "drive.count", "a non-negative integer", "write 4, without"],
    );
    changed("set_size = 4", "set_size = 2.5", &["line 13", "pool.set_size", "2.5", "a non-negative integer"]);
    changed("set_size = 4", "set_size = 4\ndrives = \"d*\"", &["pool.drives", "a list", "write [\"d*\"]"]);
    changed("\"24MiB\"", "\"24MiB\"\nthin = yes", &["volume.thin", "yes is not a value", "write true"]);
    changed("\"24MiB\"", "24MiB", &["volume.size", "put strings in quotes", "\"24MiB\""]);
    changed("\"24MiB\"", "64", &["volume.size", "64B", "a number without a unit is bytes"]);
    changed("[array]\n", "[array]\ncontrol_mode = 0600\n", &["array.control_mode", "\"0600\""]);
    changed("name = \"test\"", "", &["array", "\"name\" is missing"]);
    changed("stripe_unit = \"64KiB\"", "stripe = 3", &["line 14", "stripe"]);
    changed("raid10", "raid11", &["line 12", "pool.raid", "raid11", "raid10"]);
    changed("\"64KiB\"", "\"60KiB\"", &["line 1", "60KiB"]);
    changed("24MiB", "24 parsecs", &["line 18", "parsecs", "8KiB"]);
    changed("lun0", "lun 0", &["line 17", "volume.name", "lun 0"]);
}

#[test]
fn a_raid_level_without_enough_drives_is_named() {
    changed("count = 4", "count = 3", &["pool0", "set_size", "3"]);
    changed("set_size = 4", "set_size = 3", &["line 1", "raid10"]);
}

#[test]
fn a_volume_that_does_not_fit_is_named() {
    changed_for(&["create"], "24MiB", "24GiB", &["lun0", "24GiB", "pool0", "smaller"]);
}

#[test]
fn a_missing_file_is_named() {
    for verb in ["create", "serve", "load"] {
        refuse(&[verb, "/nowhere/array.toml"], 2, &["/nowhere/array.toml"]);
    }
}

#[test]
fn a_missing_drive_is_named() {
    changed_for(&["create"], "size = \"64MiB\"\n", "", &["d0.img", "does not exist"]);
    changed_for(&["serve"], "size = \"64MiB\"\n", "", &["pool0", "tier0 create"]);
}

#[test]
fn a_foreign_drive_is_left_alone() {
    let directory = directory();
    let array = array_file(directory.path(), "raid10", 4);
    let foreign = directory.path().join("d2.img");
    std::fs::write(&foreign, vec![0x5a; 64 << 20]).expect("a drive of somebody else");
    let before = contents(directory.path());
    refuse(&["create", text(&array)], 2, &["d2", "--force"]);
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn a_drive_that_is_too_small_is_named() {
    let directory = directory();
    let array = array_file(directory.path(), "raid10", 4);
    std::fs::File::create(directory.path().join("d1.img"))
        .and_then(|drive| drive.set_len(1 << 20))
        .expect("a small drive");
    let before = contents(directory.path());
    refuse(&["create", text(&array)], 2, &["d1", "larger"]);
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn drives_that_have_shrunk_are_named_with_what_they_held() {
    let directory = directory();
    let array = array_file(directory.path(), "raid10", 4);
    succeed(&["create", text(&array)]);
    for name in ["d0.img", "d1.img", "d2.img"] {
        let drive = std::fs::File::options().write(true).open(directory.path().join(name)).expect("a drive");
        drive.set_len(20 << 20).expect("truncated");
    }
    refuse(
        &["serve", text(&array)],
        2,
        &["d0.img", "shrunk", "20MiB", "64MiB", "restore its size", "--without d0"],
    );
}

/// A drive that had shrunk was called missing where it lay at another drive's path.
#[test]
fn a_drive_that_has_shrunk_is_recognised_at_any_path() {
    let directory = directory();
    let array = array_file(directory.path(), "raid5", 4);
    succeed(&["create", text(&array)]);
    let at = |name: &str| directory.path().join(name);
    std::fs::rename(at("d1.img"), at("aside")).expect("a drive");
    std::fs::rename(at("d2.img"), at("d1.img")).expect("a drive");
    std::fs::rename(at("aside"), at("d2.img")).expect("a drive");
    let drive = std::fs::File::options().write(true).open(at("d2.img")).expect("a drive");
    drive.set_len(40 << 20).expect("truncated");
    let words = ["\"d1\"", "d2.img", "64MiB", "40MiB", "restore its size", "--without d1"];
    for verb in ["check", "serve"] {
        refuse(&[verb, text(&array)], 2, &words);
    }
}

#[test]
fn a_directory_is_no_drive() {
    let directory = directory();
    let array = array_file(directory.path(), "raid10", 4);
    std::fs::create_dir(directory.path().join("d3.img")).expect("a directory");
    refuse(&["create", text(&array)], 2, &["\"d3\"", "d3.img", "neither"]);
}

#[test]
fn a_full_disk_is_named_and_left_as_it_was() {
    let directory = directory();
    let Some(small) = SmallDisk::mount(directory.path()) else {
        return eprintln!("skipped: a small file system cannot be mounted here");
    };
    let array = array_file(&small.0, "raid10", 4);
    let before = contents(&small.0);
    refuse(&["create", text(&array)], 1, &["256MiB", "iB free; free space", text(&small.0), "smaller"]);
    assert_eq!(contents(&small.0), before, "drive files are left behind");
}

/// That files do not fit was told without how much is needed, how much is free and where, and after most of it was written.
#[test]
fn drives_that_do_not_fit_are_told_before_they_are_made() {
    let directory = directory();
    let content = array_text(directory.path(), "raid10", 4).replace("64MiB", "900TiB");
    let array = file(directory.path(), "array.toml", &content);
    let before = contents(directory.path());
    refuse(&["create", text(&array)], 1, &["3600TiB", text(directory.path()), "free;", "smaller"]);
    assert_eq!(contents(directory.path()), before);
}

/// A file system of 100 MiB, which drives of 64 MiB fill; unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(directory: &Path) -> Option<SmallDisk> {
        let place = directory.join("small");
        std::fs::create_dir(&place).expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=100m", "none"]).arg(&place).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(SmallDisk(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, so that a test that fails with a file open leaves no mount behind.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// That a server could not listen was found out by starting it.
#[test]
fn check_finds_sockets_without_a_directory() {
    let directory = directory();
    let at = directory.path();
    let right = array_text(at, "raid1", 2);
    let array = file(at, "array.toml", &right);
    succeed(&["create", text(&array)]);
    std::fs::write(&array, format!("{right}[nbd]\nlisten = [\"unix:absent/s\"]\n")).expect("an array file");
    for verb in ["check", "serve"] {
        refuse(&[verb, text(&array)], 2, &["nbd.listen", "absent", "create it"]);
    }
    let control = right.replace("[array]", "[array]\ncontrol = \"gone/c\"");
    std::fs::write(&array, control).expect("an array file");
    let told = succeed(&["check", text(&array)]);
    assert!(told.contains("array.control") && told.contains("gone"), "{told}");
}

#[test]
fn memory_cannot_be_created_on() {
    let directory = directory();
    let array = "[array]\nname = \"a\"\n[[drive]]\nname = \"ram0\"\nram = \"64MiB\"\n\
                 [[pool]]\nname = \"p\"\nraid = \"raid0\"\nset_size = 1\n";
    let array = file(directory.path(), "array.toml", array);
    refuse(&["create", text(&array)], 2, &["ram0", "tier0 serve"]);
}

/// A path that cannot be one ended with the code of what fails while running.
#[test]
fn a_drive_that_cannot_be_opened_is_wrong_input() {
    let directory = directory();
    let at = directory.path();
    std::fs::write(at.join("plain"), "no directory").expect("a file");
    let right = array_text(at, "raid1", 2);
    let array = file(at, "array.toml", &right.replace("/d{n}.img", "/plain/d{n}.img"));
    let before = contents(at);
    refuse(&["create", text(&array)], 2, &["plain/d0.img", "check"]);
    let sizeless = std::fs::read_to_string(&array).expect("a file").replace("size = \"64MiB\"\n", "");
    std::fs::write(&array, sizeless).expect("an array file");
    refuse(&["create", text(&array)], 2, &["plain/d0.img"]);
    std::fs::remove_file(&array).expect("a file");
    assert_eq!(contents(at).len() + 1, before.len(), "a refused verb has written something");
}

/// A drive in the array file's place was called text that is not valid UTF-8.
#[test]
fn a_drive_is_no_array_file() {
    let directory = directory();
    let array = array_file(directory.path(), "raid1", 2);
    let blank = directory.path().join("blank.img");
    std::fs::File::create(&blank).and_then(|file| file.set_len(64 << 20)).expect("a file");
    let latin = directory.path().join("latin.toml");
    std::fs::write(&latin, b"[array]\nname = \"\xe4\"\n").expect("a file");
    succeed(&["create", text(&array)]);
    for named in [&directory.path().join("d0.img"), &blank, &latin] {
        for verb in ["check", "status", "serve"] {
            refuse(&[verb, text(named)], 2, &["is not an array file", "binary", "name the TOML file"]);
        }
    }
}

/// Whether a start would be refused was not asked where no drive has a path.
#[test]
fn check_refuses_what_serve_refuses_without_files() {
    let directory = directory();
    let drives = |what: &str| {
        let drive = format!("[[drive]]\nname = \"d{{n}}\"\ncount = 2\n{what}\n");
        format!("[array]\nname = \"a\"\ncores = 1\n{drive}[[pool]]\nname = \"p\"\nraid = \"raid1\"\n")
    };
    let model = file(directory.path(), "model.toml", &drives("model = \"ssd-sata\""));
    let small = file(directory.path(), "small.toml", &drives("ram = \"1MiB\""));
    let words = ["\"d0\"", "no storage", "tier0 load"];
    refuse(&["serve", text(&model), "--listen", "127.0.0.1:0"], 2, &words);
    // Nothing is wrong with it for those who can use it.
    assert!(succeed(&["check", text(&model)]).contains("tier0 load"));
    refuse(&["serve", text(&small), "--listen", "127.0.0.1:0"], 2, &["\"d0\""]);
    refuse(&["check", text(&small)], 2, &["\"d0\""]);
    let memory = file(directory.path(), "memory.toml", &drives("ram = \"64MiB\""));
    succeed(&["check", text(&memory)]);
    refuse(&["status", text(&memory)], 2, &["memory", "no control socket"]);
    refuse(&["config", text(&memory)], 2, &["memory", "no control socket"]);
}
