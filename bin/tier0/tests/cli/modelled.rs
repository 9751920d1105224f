//! Loads on modelled arrays: settled before they are measured, with the memory and the models that are given, and what the report
//! says of their state.

use crate::support::{directory, file, json, refuse, run, succeed, text};

/// Four disks in RAID 10 with a volume of `size`; `more` stands in the pool, and drives before it.
fn disks(model: &str, drives: &str, more: &str, size: &str) -> String {
    format!(
        "[array]\nname = \"model\"\n[[drive]]\nname = \"d{{n}}\"\ncount = 4\nmodel = \"{model}\"\n{drives}\
         [[pool]]\nname = \"p\"\ndrives = [\"d*\"]\nraid = \"raid10\"\n{more}[[volume]]\nname = \"v\"\nsize = \"{size}\"\n"
    )
}

#[test]
fn a_modelled_array_is_settled_and_the_report_says_so() {
    let directory = directory();
    let array = file(directory.path(), "a.toml", &disks("sas-15k-146gb-sff", "", "", "100GiB"));
    let load = |more: &[&str]| {
        let load = ["load", text(&array), "--read", "60", "-d", "16"];
        json(&[&load[..], more].concat())
    };
    let iops = |report: &serde_json::Value| report["all"]["iops"].as_f64().expect("a figure");
    // A cache that begins empty destages nothing in its first seconds.
    let cold = load(&["--warm-up", "0s", "--time", "8s"]);
    assert_eq!(cold["array"]["is_steady"], false, "{}", cold["array"]);
    assert!(cold["array"]["moved"][0].as_str().is_some_and(|moved| moved.contains("the write cache rose")));
    let (settled, long) = (load(&["--time", "40s"]), load(&["--warm-up", "60s", "--time", "60s"]));
    assert!(settled["array"]["settled"]["seconds"].as_f64() > Some(1.0), "{}", settled["array"]);
    let (cold, settled, long) = (iops(&cold), iops(&settled), iops(&long));
    assert!((settled / long - 1.0).abs() < 0.1, "{settled} settled, {long} after a minute");
    assert!(cold > 1.1 * settled, "{cold} at first, {settled} settled");
    let said =
        succeed(&["load", text(&array), "--read", "60", "-d", "16", "--warm-up", "0s", "--time", "8s"]);
    assert!(said.contains("not a steady state: the write cache rose"), "{said}");
}

#[test]
fn a_flash_cache_of_a_modelled_array_is_warm() {
    let directory = directory();
    let ssd = "[[drive]]\nname = \"ssd\"\nmodel = \"ssd-sata\"\n";
    let cache = "flash_cache = \"4GiB\"\nflash_cache_drives = [\"ssd\"]\n";
    let of = |name: &str, array: &str| {
        let array = file(directory.path(), name, array);
        json(&["load", text(&array), "--pattern", "zipf:1", "-d", "8", "--time", "20s"])
    };
    let plain = of("plain.toml", &disks("nl-7k2", "", "", "32GiB"));
    let cached = of("cached.toml", &disks("nl-7k2", ssd, cache, "32GiB"));
    assert_eq!(cached["array"]["settled"]["read_caches"], "pre_warmed", "{}", cached["array"]);
    // The 524,288 likeliest of 4,194,304 places have ln(524,288) + 0.58 of ln(4,194,304) + 0.58 of the accesses: 87 %.
    let hits = cached["array"]["flash_hits"].as_f64().expect("reads looked there");
    assert!((0.80..0.88).contains(&hits), "{hits}");
    let iops = |report: &serde_json::Value| report["all"]["iops"].as_f64().expect("a figure");
    assert!(iops(&cached) > 3.0 * iops(&plain), "{} {}", iops(&cached), iops(&plain));
}

#[test]
fn a_modelled_array_has_the_memory_that_its_file_says() {
    let directory = directory();
    let with_memory =
        disks("sas-15k-146gb-sff", "", "", "2GiB").replace("[[drive]]", "memory = \"1GiB\"\n[[drive]]");
    let array = file(directory.path(), "a.toml", &with_memory);
    let report = json(&["load", text(&array), "-d", "8", "--time", "5s"]);
    let hits = report["array"]["memory_hits"].as_f64().expect("what was read is kept in it");
    // Of the gigabyte four fifths are for clean pages, of which each has some bookkeeping: two fifths of the volume.
    assert!((0.3..0.42).contains(&hits), "{hits}");
    // The tables of a flash cache of this size need more than there is by default.
    let ssd = "[[drive]]\nname = \"ssd\"\nmodel = \"nvme\"\n";
    let cache = "flash_cache = \"400GiB\"\nflash_cache_drives = [\"ssd\"]\n";
    let large = file(directory.path(), "large.toml", &disks("nl-7k2", ssd, cache, "8GiB"));
    let ended = run(&["load", text(&large), "--ios", "500", "-d", "4", "--warm-up", "0s"]);
    assert!(ended.code == Some(0) && !ended.stderr.contains("array.memory"), "{}", ended.stderr);
}

#[test]
fn models_are_those_of_the_given_catalogue() {
    let directory = directory();
    let built_in = include_str!("../../../../catalog/flash/ssd-sata.toml");
    let own = built_in.replace("flash.ssd-sata", "flash.my-ssd");
    assert_ne!(own, built_in);
    let catalog = file(directory.path(), "catalogue.toml", &own);
    let array = file(directory.path(), "a.toml", &disks("my-ssd", "", "", "10GiB"));
    let load = ["load", text(&array), "--ios", "200", "--warm-up", "0s"];
    assert_eq!(json(&[&load[..], &["--catalog", text(&catalog)]].concat())["all"]["ios"], 200);
    refuse(&load, 2, &["my-ssd", "drive.model"]);
}

#[test]
fn an_open_loop_that_falls_behind_is_told_with_its_rates() {
    let directory = directory();
    let array = file(directory.path(), "a.toml", &disks("nl-7k2", "", "", "100GiB"));
    let load = ["load", text(&array), "--rate", "5000", "--time", "10s", "--warm-up", "1s"];
    let report = json(&load);
    assert_eq!(report["rate"]["is_behind"], true, "{}", report["rate"]);
    assert_eq!(report["rate"]["asked_iops"], 5000.0);
    assert!(report["rate"]["waiting"].as_u64() > Some(10_000), "{}", report["rate"]);
    assert!(succeed(&load).contains("the target fell behind: asked 5,000 IOPS, answered "));
}

#[test]
fn a_file_smaller_than_its_model_is_refused_before_it_is_made() {
    let directory = directory();
    let drives = disks("sas-15k-146gb-sff", "path = \"d{n}.img\"\nsize = \"1GB\"\n", "", "100MiB");
    let drives = drives.replace("model = \"sas", "class = \"disk\"\nmodel = \"sas");
    let array = file(directory.path(), "a.toml", &drives);
    for verb in ["check", "create"] {
        refuse(&[verb, text(&array)], 2, &["models a drive of", "enlarge it"]);
    }
    assert!(!directory.path().join("d0.img").exists(), "nothing was made");
}
