//! `tier0 lab`.

use std::path::{Path, PathBuf};

use crate::support::{directory, file, json, refuse, run, succeed, text};

/// The measured drives, which are no part of the project.
const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/disksim");

#[test]
fn the_disk_model_is_near_measured_drives() {
    let measured = Path::new(MEASURED);
    if !measured.is_dir() {
        return eprintln!("skipped: there are no measured drives in ../shared/data/disksim");
    }
    let drives = ["atlas10k", "cheetah9LP", "ibm18es"];
    let validated = json(&[&["lab", "validate-drive", "--disksim", text(measured)][..], &drives].concat());
    for (drive, report) in drives.iter().zip(validated.as_array().expect("a list")) {
        assert_eq!(report["drive"], *drive);
        let demerit = report["demerit_percent"].as_f64().expect("a figure");
        assert!(demerit <= 8.0, "the demerit of {drive} is {demerit} %");
    }
}

#[test]
fn a_drive_without_files_is_named() {
    refuse(&["lab", "validate-drive", "--disksim", "/nowhere", "disk1"], 2, &["disk1", "/nowhere"]);
}

#[test]
fn a_study_is_calibrated_then_predicted() {
    let listed = json(&["lab", "list"]);
    let ids: Vec<_> = listed.as_array().expect("a list").iter().map(|study| &study["id"]).collect();
    assert!(ids.iter().any(|id| *id == "ps6100xv") && ids.iter().any(|id| *id == "cx4-oracle"), "{ids:?}");

    let directory = directory();
    let page = directory.path().join("report.html");
    // A tenth of the study's requests, and none of its databases: what is shown is looked at here, and not how near it comes.
    let study = include_str!("../../../../studies/cx4-oracle.toml");
    let (loads, rest) = study.split_once("[database]").expect("databases behind the loads");
    let (_, rest) = rest.split_once("[[parameter]]").expect("parameters behind the databases");
    let of_databases =
        ["oltp.", "database = {", "database.buffer", "host = {", "system = {", "efd-73gb@cx4-mixed"];
    let whole = format!("{loads}[[parameter]]{rest}");
    let blocks = whole.split("\n\n").filter(|block| !of_databases.iter().any(|word| block.contains(word)));
    let short = blocks.collect::<Vec<_>>().join("\n\n").replace("ios = 60000", "ios = 3000");
    let study = file(directory.path(), "cx4-oracle.toml", &short);
    let records = json(&["lab", "run", text(&study), "--html", text(&page)]);
    let records = records.as_array().expect("an array of records");
    for record in records {
        let keys: Vec<_> = record.as_object().expect("a record").keys().map(String::as_str).collect();
        assert_eq!(keys, ["error", "id", "published", "role", "unit", "value"]);
    }
    let ratio = records.iter().find(|record| record["id"] == "cx4-oracle.read.per_drive_ratio");
    let ratio = ratio.expect("a quotient of two figures that are fitted to");
    assert_eq!(ratio["role"], "derived");
    assert!(ratio["error"].is_f64(), "it is published");

    let page = std::fs::read_to_string(page).expect("the report");
    assert!(page.contains("nothing here is evidence"), "a quotient of fitted figures is no prediction");
    assert!(page.contains("<svg") && page.contains("per_drive_ratio"), "the report has curves and figures");
    for other in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(other), "the report asks another place: {other}");
    }
}

#[test]
fn the_array_of_a_configuration_is_a_file_for_load() {
    let directory = directory();
    let printed = succeed(&["lab", "run", "ps6100xv", "--print-array", "raid10"]);
    let array = file(directory.path(), "raid10.toml", &printed);
    let report = json(&["load", text(&array), "--read", "70", "--alignment", "512", "--ios", "200"]);
    assert_eq!(report["all"]["ios"], 200);
    refuse(&["lab", "run", "ps6100xv", "--print-array", "raid7"], 2, &["raid7", "raid10"]);
}

#[test]
fn what_is_no_study_is_named_and_nothing_is_written() {
    refuse(&["lab", "run", "ps6100"], 2, &["ps6100", "ps6100xv", "cx4-oracle"]);
    let directory = directory();
    let page = directory.path().join("none/report.html");
    refuse(&["lab", "run", "cx4-oracle", "--html", text(&page)], 2, &["report.html", "directory"]);
    let wrong = file(directory.path(), "wrong.toml", "id = 3\n");
    refuse(&["lab", "run", text(&wrong)], 2, &["wrong.toml", "line 1"]);
}

#[test]
fn a_profile_finds_the_knee() {
    let directory = directory();
    let array = file(
        directory.path(),
        "disks.toml",
        "[array]\nname = \"disks\"\n[[drive]]\nname = \"d{n}\"\ncount = 4\nmodel = \"sas-15k-146gb-sff\"\n\
         [[pool]]\nname = \"p\"\nraid = \"raid10\"\n[[volume]]\nname = \"v\"\nsize = \"200GiB\"\n",
    );
    let arguments = ["lab", "profile", text(&array), "--limit", "20ms", "--read", "70", "--time", "20s"];
    let found = json(&arguments);
    assert_eq!(found["found"]["end"], "limit");
    let iops = found["found"]["at_limit"]["iops"].as_f64().expect("a figure");
    let probes = found["found"]["probes"].as_array().expect("probes");
    let within = |probe: &&serde_json::Value| {
        let latency = |kind: &str| probe[kind].as_f64().expect("both kinds");
        latency("read_latency_ms").max(latency("write_latency_ms")) <= 20.0
    };
    let best = probes.iter().filter(within).map(|probe| probe["iops"].as_f64().expect("a figure"));
    let best = best.fold(0.0, f64::max);
    assert!(iops >= best * 0.99, "{iops} at the limit, but {best} within it");
    assert!(succeed(&arguments).contains("beyond the limit"));
    refuse(&["lab", "profile", text(&array), "--limit", "0s"], 2, &["--limit"]);
    refuse(&["lab", "profile", "/nowhere"], 2, &["/nowhere"]);
}

/// A trace of 2,000 reads in a loop over 200 blocks of 4 KiB, in the form of the MSR traces.
fn looping_trace(at: &Path) -> PathBuf {
    let lines = (0..2000_u64)
        .map(|n| format!("{},host,0,Read,{},4096,10\n", 128_166_372_000_000_000 + n, n % 200 * 4096));
    file(at, "loop.csv", &lines.collect::<String>())
}

#[test]
fn a_trace_is_replayed_against_policies_and_sizes() {
    let directory = directory();
    let trace = looping_trace(directory.path());
    let page = directory.path().join("replay.html");
    let arguments = ["lab", "replay", text(&trace), "--size", "100", "--size", "1MiB", "--curve", "5"];
    let report = json(&[&arguments[..], &["--html", text(&page)]].concat());
    assert_eq!(
        (&report["format"], &report["requests"], &report["distinct_blocks"]),
        (&"msr".into(), &2000.into(), &200.into())
    );
    let tried = report["tried"].as_array().expect("a list");
    assert_eq!(tried.len(), 8, "two policies, the flash cache and the optimum at two sizes");
    let missed = |policy: &str, blocks: u64| {
        let one = tried.iter().find(|one| one["policy"] == policy && one["blocks"] == blocks);
        one.expect("it was tried")["miss_ratio"].as_f64().expect("a number")
    };
    assert_eq!((missed("lru", 100), missed("optimum", 200)), (1.0, 0.1));
    assert!(missed("adaptive", 100) < 0.7 && missed("optimum", 100) < missed("adaptive", 100));
    assert_eq!(report["curve"].as_array().map(Vec::len), Some(15));
    assert!(std::fs::read_to_string(&page).expect("a page").contains("<svg"));
    let told = succeed(&arguments);
    assert!(told.contains("2,000 requests, 2,000 of them reads, of 200 blocks (800KiB)"), "{told}");
    refuse(&["lab", "replay", text(&trace), "--policy", "best"], 2, &["best", "lru, adaptive"]);
    refuse(&["lab", "replay", text(&trace), "--format", "fio"], 2, &["loop.csv", "line 1"]);
    refuse(&["lab", "replay", "/nowhere"], 2, &["/nowhere"]);
    let binary = file(directory.path(), "blocks.bin", "\u{1}\0\0\0\u{2}\0\0\0");
    refuse(&["lab", "replay", text(&binary)], 2, &["blocks.bin", "u32-le"]);
    refuse(&["lab", "replay", text(&trace), "--threads", "0"], 2, &["at least 1 thread"]);
}

/// The trace lasts 0.2 ms, which disks cannot keep up with.
#[test]
fn a_trace_is_replayed_on_a_modelled_array() {
    let directory = directory();
    let trace = looping_trace(directory.path());
    let array = |size: &str| {
        format!(
            "[array]\nname = \"disks\"\n[[drive]]\nname = \"d{{n}}\"\ncount = 2\nmodel = \"sas-15k-146gb-sff\"\n\
             [[pool]]\nname = \"p\"\nraid = \"raid1\"\nset_size = 2\n[[volume]]\nname = \"v\"\nsize = \"{size}\"\n"
        )
    };
    let disks = file(directory.path(), "disks.toml", &array("1GiB"));
    let page = directory.path().join("course.html");
    let arguments = ["lab", "replay", text(&trace), "--array", text(&disks)];
    let with = |more: &[&str]| json(&[&arguments[..], more].concat());
    let report = with(&["--html", text(&page)]);
    assert_eq!(
        (&report["format"], &report["requests"], &report["array"]),
        (&"msr".into(), &2000.into(), &"disks".into())
    );
    let behind = report["behind_max_s"].as_f64().expect("a figure");
    let latest = report["read"]["latency_ms_max"].as_f64().expect("a figure");
    assert!(behind > 0.01 && latest >= behind * 1e3, "{behind} s behind, {latest} ms");
    let answered = report["intervals"].as_array().expect("intervals").iter();
    let answered: u64 = answered.filter_map(|interval| interval["read"]["requests"].as_u64()).sum();
    assert_eq!(answered, 2000);
    assert!(std::fs::read_to_string(&page).expect("a page").contains("<svg"));
    let closed = with(&["--closed", "2"]);
    assert_eq!((&closed["pace"]["closed"], &closed["trace_s"]), (&2.into(), &serde_json::Value::Null));
    assert_eq!(with(&["--limit", "10"])["requests"], 10);
    let told = succeed(&arguments);
    assert!(
        told.contains("2,000 reads and writes in") && told.contains("the array fell behind by up to"),
        "{told}"
    );

    let small = file(directory.path(), "small.toml", &array("512KiB"));
    let on_small = ["lab", "replay", text(&trace), "--array", text(&small)];
    refuse(&on_small, 2, &["volume \"v\" has 512KiB", "800KiB", "288KiB are missing", "--fold"]);
    let folded = run(&[&on_small[..], &["--fold"]].concat());
    let warned = &folded.stderr;
    assert!(folded.code == Some(0) && warned.contains("wrapped to its start"), "{warned}");
    let blocks = file(directory.path(), "blocks.txt", "1\n2\n1\n");
    let of_blocks = ["lab", "replay", text(&blocks), "--array", text(&disks)];
    refuse(&of_blocks, 2, &["has no times", "--closed N"]);
    let played = run(&[&of_blocks[..], &["--closed", "1"]].concat());
    let warned = &played.stderr;
    assert!(played.code == Some(0) && warned.contains("blocks are taken to have 4KiB"), "{warned}");
    refuse(&[&arguments[..], &["--volume", "w"]].concat(), 2, &["no volume \"w\"", "v"]);
    refuse(&[&arguments[..], &["--map", "v"]].concat(), 2, &["--map", "usr.0=data"]);
    refuse(&[&arguments[..], &["--speed", "0"]].concat(), 2, &["a speed is between"]);
    refuse(&[&arguments[..], &["--size", "1GiB"]].concat(), 2, &["--array", "--size"]);
    refuse(&["lab", "replay", text(&trace), "--closed", "3"], 2, &["--array"]);
    refuse(&["lab", "replay", text(&trace), "--array", "/nowhere.toml"], 2, &["/nowhere.toml"]);
}

/// The trace of 20 reads of 10 blocks of 4 KiB, in many forms.
#[test]
fn traces_are_read_as_people_have_them() {
    let directory = directory();
    let lines = |line: &dyn Fn(u64) -> String| (0..20).map(|n| line(n % 10) + "\n").collect::<String>();
    let dispatched = |n| {
        let event = |action, process| format!("8,0 1 1 0.000000000 7 {action} R {} + 8 [{process}]", n * 8);
        format!("{}\n{}", event("D", "a"), event("C", "0"))
    };
    for (name, trace, options, format, note) in [
        (
            "alibaba",
            lines(&|n| format!("7,R,{},4096,1577808144360767", n * 4096)),
            &[][..],
            "alibaba",
            "columns are volume,op,",
        ),
        ("tencent", lines(&|n| format!("1538323200,{},8,0,1063", n * 8)), &[], "tencent", "read as tencent"),
        ("spc", lines(&|n| format!("0,{},4096,R,0.5", n * 8)), &[], "spc", "read as spc"),
        (
            "vscsi",
            lines(&|n| format!("7,4096,1,read,{},2756778716647", n * 8)),
            &[],
            "vscsi",
            "read as vscsi",
        ),
        ("events", lines(&dispatched), &[], "blkparse", "has no Q events"),
        (
            "own",
            format!("\u{feff}op;lba;n;x\n{}\n\n", lines(&|n| format!("1;{};8;x", n * 8)).trim_end()),
            &["--columns", "op:10,offset:sectors,size:sectors,-"],
            "columns",
            "2 lines skipped; the first is line 1",
        ),
    ] {
        let trace = file(directory.path(), name, &trace);
        let ended = run(&[&["lab", "replay", text(&trace), "--size", "10", "--json"], options].concat());
        let report: serde_json::Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        assert_eq!(
            (&report["format"], &report["reads"], &report["distinct_blocks"]),
            (&format.into(), &20.into(), &10.into()),
            "{name}"
        );
        assert!(ended.stderr.contains(note), "{}", ended.stderr);
        let is_skipping = ["events", "own"].contains(&name);
        assert_eq!(ended.stderr.contains("skipped"), is_skipping, "{name}: {}", ended.stderr);
    }
    let trace = file(directory.path(), "own", "1,2\n");
    let refuse_with = |options: &[&str], told: &[&str]| {
        refuse(&[&["lab", "replay", text(&trace)], options].concat(), 2, told);
    };
    refuse_with(&[], &["--columns"]);
    refuse_with(&["--columns", "time,lba"], &["\"lba\" is no column"]);
    refuse_with(&["--columns", "time,offset", "--format", "msr"], &["--columns", "--format"]);
    refuse_with(&["--columns", "time,offset,size"], &["own", "line 1", "name all columns"]);
    let numbers = (0..20_u8).map(|number| format!("{}\0\0\0", char::from(number))).collect::<String>();
    let blocks = file(directory.path(), "blocks.bin", &numbers);
    let ended = run(&["lab", "replay", text(&blocks), "--format", "u32-le", "--size", "10"]);
    assert!(ended.stderr.contains("every 4 bytes are the number of a block"), "{}", ended.stderr);
    assert!(ended.stdout.contains("no budget of writes limits the flash cache"), "{}", ended.stdout);
    let words = file(directory.path(), "words", "7\n8\n9\n10\n11\n12\n13\n14\n");
    refuse(&["lab", "replay", text(&words), "--format", "u32-le"], 2, &["is text", "name another format"]);
}

/// An object of the greatest number panicked.
#[test]
fn the_greatest_object_is_an_object() {
    let directory = directory();
    let path = directory.path().join("edge.oracleGeneral");
    let record = |id: u64| [&[0; 4][..], &id.to_le_bytes(), &[1, 0, 0, 0], &[0xff; 8]].concat();
    std::fs::write(&path, [record(u64::MAX), record(u64::MAX), record(0)].concat()).expect("room");
    let report = json(&["lab", "replay", text(&path), "--size", "2"]);
    assert_eq!((&report["requests"], &report["distinct_blocks"]), (&3.into(), &2.into()));
    let tried = report["tried"].as_array().expect("a list");
    assert_eq!(tried.len(), 3, "objects with sizes of their own have no flash cache: {tried:?}");
}

/// Each size beyond the trace had a row, and nothing said that all were of the same cache.
#[test]
fn sizes_beyond_a_trace_are_told_and_tried_once() {
    let directory = directory();
    let trace = looping_trace(directory.path());
    let sizes = ["lab", "replay", text(&trace), "--size", "500", "--size", "1GiB", "--policy", "lru"];
    let ended = run(&sizes);
    for size in ["500", "1GiB"] {
        let told = format!(
            "--size {size} is more than the trace touches (200 blocks); it is replayed with 200 blocks"
        );
        assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    }
    let tried = json(&sizes)["tried"].as_array().map(Vec::len);
    assert_eq!(tried, Some(3), "the policy, the flash cache and the optimum");
    let told = succeed(&["lab", "replay", text(&trace), "--limit", "1"]);
    assert!(told.contains("1 request, 1 of them reads, of 1 block (4KiB)"), "{told}");
}
