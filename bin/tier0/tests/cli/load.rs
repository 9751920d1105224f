//! `tier0 load`.

use std::path::{Path, PathBuf};

use crate::support::{
    Background, Served, array_file, contents, directory, file, json, refuse, run, succeed, text,
};

fn drive_of_zeros(directory: &Path) -> PathBuf {
    let path = directory.join("drive.img");
    std::fs::write(&path, vec![0; 4 << 20]).expect("a drive");
    path
}

#[test]
fn a_file_is_written_only_with_consent() {
    let directory = directory();
    let drive = drive_of_zeros(directory.path());
    let before = contents(directory.path());
    refuse(&["load", text(&drive), "--read", "70", "--ios", "10"], 2, &["drive.img", "--overwrite"]);
    succeed(&["load", text(&drive), "--ios", "10"]);
    assert_eq!(contents(directory.path()), before, "something was written without consent");
    succeed(&["load", text(&drive), "--read", "0", "--ios", "10", "--overwrite"]);
    assert_ne!(contents(directory.path()), before);
}

#[test]
fn an_export_is_written_only_with_consent() {
    let directory = directory();
    let array = array_file(directory.path(), "raid5", 3);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory.path());
    refuse(&["load", &served.uri, "--read", "70", "--ios", "10"], 2, &["lun0", "--overwrite"]);
    let checked =
        ["load", &served.uri, "--read", "50", "-d", "16", "--verify", "--overwrite", "--ios", "2000"];
    let report = json(&checked);
    assert_eq!(report["verify"]["sectors_wrong"], 0);
    assert!(report["verify"]["sectors_checked"].as_u64().is_some_and(|checked| checked > 16_000));
    served.stop();
}

#[test]
fn data_that_another_overwrites_is_found_wrong() {
    let directory = directory();
    let drive = drive_of_zeros(directory.path());
    // The run demands zeros of what it has not written; one byte of the file is none.
    let mut bytes = vec![0; 4 << 20];
    bytes[1 << 20] = 1;
    std::fs::write(&drive, bytes).expect("a drive");
    let arguments =
        ["load", text(&drive), "--pattern", "sequential", "--bytes", "4MiB", "--verify", "--fresh"];
    let ended = run(&arguments);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("2048"), "the sector at 1 MiB is named: {}", ended.stderr);
    assert!(ended.stdout.contains("IOPS"), "what was measured is printed");
}

#[test]
fn the_table_and_the_histogram_count_every_request() {
    let directory = directory();
    let drive = drive_of_zeros(directory.path());
    let table = succeed(&["load", text(&drive), "--ios", "300", "--histogram", "-d", "4"]);
    assert!(table.contains("300 requests"), "{table}");
    let steps = table.lines().filter(|line| line.trim_start().starts_with("<="));
    let counts = steps.map(|line| line.split_whitespace().nth(3).expect("a count").parse::<u64>());
    assert_eq!(counts.map(|count| count.expect("a number")).sum::<u64>(), 300);
}

#[test]
fn an_array_in_virtual_time_repeats_itself() {
    let directory = directory();
    let array = file(
        directory.path(),
        "model.toml",
        "[array]\nname = \"model\"\n[[drive]]\nname = \"d{n}\"\ncount = 4\nmodel = \"sas-15k-146gb-sff\"\n\
         [[pool]]\nname = \"p\"\nraid = \"raid10\"\n[[volume]]\nname = \"v\"\nsize = \"100GiB\"\n",
    );
    let arguments = ["load", text(&array), "--read", "70", "-d", "16", "--ios", "2000", "--json"];
    let first = succeed(&arguments);
    assert_eq!(first, succeed(&arguments), "the same seed gives the same report");
    let other = succeed(&[&arguments[..], &["--seed", "2"]].concat());
    assert_ne!(first, other);
    let checked = json(&["load", text(&array), "--read", "50", "--ios", "500", "--verify"]);
    assert_eq!(checked["verify"]["sectors_wrong"], 0);
    assert_eq!(contents(directory.path()).len(), 1, "virtual time leaves no file");
    refuse(&["load", text(&array), "--volume", "w"], 2, &["\"w\"", "v"]);
}

#[test]
fn a_modelled_array_has_a_read_cache_where_it_is_told_to() {
    let directory = directory();
    let array = file(
        directory.path(),
        "model.toml",
        "[array]\nname = \"model\"\n[[drive]]\nname = \"d{n}\"\ncount = 4\nmodel = \"sas-15k-146gb-sff\"\n\
         [[pool]]\nname = \"p\"\nraid = \"raid10\"\n[[volume]]\nname = \"v\"\nsize = \"256MiB\"\n",
    );
    let iops = |more: &[&str]| {
        let load = ["load", text(&array), "--read", "100", "-d", "8", "--ios", "2000", "--warm-up", "20s"];
        json(&[&load[..], more].concat())["all"]["iops"].as_f64().expect("a number")
    };
    // Half of the pages are in it; a load that is always answered from memory would never end in virtual time.
    let (without, with) = (iops(&[]), iops(&["--read-cache", "128MiB"]));
    assert!(with > 1.3 * without, "{with} {without}");
    let checked = ["load", text(&array), "--read", "50", "--ios", "500", "--verify", "--read-cache", "64MiB"];
    assert_eq!(json(&checked)["verify"]["sectors_wrong"], 0);
    let other = drive_of_zeros(directory.path());
    refuse(&["load", text(&other), "--read-cache", "1GiB"], 2, &["--read-cache", "array file"]);
}

#[test]
fn a_load_from_a_file_is_the_load_of_its_options() {
    let directory = directory();
    let drive = drive_of_zeros(directory.path());
    let description = "seed = 5\n[limits]\nios = 50\n[stream]\nblock = \"4KiB\"\nread_percent = 100\n";
    let load = file(directory.path(), "load.toml", description);
    let by_file = json(&["load", text(&drive), "--load", text(&load)]);
    let by_options = json(&["load", text(&drive), "--seed", "5", "--ios", "50", "--block", "4KiB"]);
    assert_eq!(by_file["load"], by_options["load"]);
    let wrong = file(directory.path(), "wrong.toml", "[stream]\nreads = 3\n");
    refuse(&["load", text(&drive), "--load", text(&wrong)], 2, &["wrong.toml", "line 2", "reads"]);
    refuse(&["load", text(&drive), "--load", text(&load), "--ios", "3"], 2, &["--load", "--ios"]);
}

#[test]
fn what_cannot_be_loaded_is_named() {
    let directory = directory();
    let drive = drive_of_zeros(directory.path());
    refuse(&["load", "ftp://x"], 2, &["ftp://x", "nbd://"]);
    refuse(&["load", "/nowhere"], 2, &["/nowhere", "does not exist"]);
    refuse(&["load", "nbd+unix:///x?socket=/nowhere"], 1, &["/nowhere", "cannot connect"]);
    refuse(&["load", text(&drive), "--length", "1TiB"], 2, &["1TiB", "4MiB"]);
    refuse(&["load", text(&drive), "--block", "1000"], 2, &["1000B", "512"]);
    let array = array_file(directory.path(), "raid0", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory.path());
    let other = served.uri.replace("lun0", "lun9");
    refuse(&["load", &other], 2, &["lun9", "\"lun0\""]);
    served.stop();
}

#[test]
fn ctrl_c_ends_a_load_with_its_report() {
    let directory = directory();
    let array = array_file(directory.path(), "raid10", 4);
    succeed(&["create", text(&array)]);
    let mut demo = Background::start(&["serve", text(&array), "--listen", "127.0.0.1:0"]);
    let told = demo.read_until(|line| line.starts_with("Press Ctrl-C"));
    let uri = told.split_whitespace().find(|word| word.starts_with("nbd://")).expect("an address");
    let load = Background::start(&["load", uri, "--time", "1h", "-d", "4"]);
    // It has caught the signal before it connects, so whenever this comes, the report is printed.
    wait_for_connections();
    assert_eq!(load.interrupt(), Some(130));
    assert_eq!(demo.interrupt(), Some(0));
}

/// Time for a process to start; if it were too short, the exit code would still be a signal's and the test fail.
#[expect(clippy::disallowed_methods, reason = "tests of whole programs live on the wall clock")]
fn wait_for_connections() {
    std::thread::sleep(std::time::Duration::from_millis(500));
}
