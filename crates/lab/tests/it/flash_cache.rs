//! What a flash cache brings, as a study answers it: warm from the first request on, beside the same array without one.

use tier0_lab::record::Figure;
use tier0_lab::run::{RunOptions, run};
use tier0_lab::study::Study;

const STUDY: &str = r#"
id = "flash-cache"
title = "What SSDs as a read cache bring"
description = "Eight disks of 10k in RAID 10, with and without a flash cache on four SSDs."

[base.set]
array = "ps6100xv"
drive = "sas-10k-900gb-sff"
drives = 8
raid = "raid10"
volume_size = "64GiB"
write_cache = "256MiB"
pattern = "zipf:1"
read_percent = 90
users = 16
ios = 8000
warm_up = "0s"

[[configuration]]
id = "without"
title = "disks alone"

[[configuration]]
id = "with"
title = "with four SSDs as read cache"
set = { flash_cache = "8GiB", flash_cache_drive = "ssd-sata", flash_cache_drives = 4 }

[[record]]
id = "gain"
value = { metric = "iops", of = "with", over = "without" }
unit = "x"
role = "unpublished"

[[configuration]]
id = "reads"
title = "with four SSDs as read cache, nothing written"
set = { read_percent = 100, flash_cache = "8GiB", flash_cache_drive = "ssd-sata", flash_cache_drives = 4 }

[[record]]
id = "hits"
value = { metric = "flash_hit_percent", of = "reads" }
unit = "% of lookups"
role = "unpublished"

[[record]]
id = "hits-beside-writes"
value = { metric = "flash_hit_percent", of = "with" }
unit = "% of lookups"
role = "unpublished"
"#;

fn parse(text: &str) -> Result<Study, String> {
    Study::parse(text, "study.toml").map_err(|error| error.to_string())
}

#[test]
fn a_flash_cache_is_warm_and_brings_what_its_hits_save() {
    let study = parse(STUDY).expect("a sound study");
    let options = RunOptions { threads: Some(1), curves: false, repeats: false, ..RunOptions::default() };
    let outcome = run(&study, &options, &|_| {}).expect("it can be run");
    let figure = |id: &str| {
        let found = outcome.records.iter().find(|judged| judged.record.id == format!("flash-cache.{id}"));
        found.and_then(|judged| judged.record.value.as_ref()).and_then(Figure::number).expect("a number")
    };
    // A million of 8.4 million places: by their law 87.2 % of the reads.
    assert!((86.0..88.0).contains(&figure("hits")), "{} %", figure("hits"));
    // Where one request in ten writes, the hottest pages lie in the write cache and are read there. The flash cache is asked for
    // the others alone.
    let beside_writes = figure("hits-beside-writes");
    assert!(beside_writes < figure("hits") - 10.0 && beside_writes > 50.0, "{beside_writes} %");
    assert!(figure("gain") > 2.5, "{}", figure("gain"));
}

#[test]
fn what_makes_no_flash_cache_is_named() {
    let cache = "flash_cache_drive = \"ssd-sata\", ";
    for (from, to, names) in [
        (cache, "", "flash_cache_drive"),
        (cache, "flash_cache_drive = \"nl-7k2\", ", "is no SSD"),
        ("\"8GiB\"", "\"1MiB\"", "flash_cache out of range"),
        ("write_cache = \"256MiB\"\n", "", "write_cache"),
        ("flash_cache_drives = 4", "flash_cache_drives = 0", "flash_cache_drives out of range"),
    ] {
        assert!(STUDY.contains(from), "{from:?}");
        let error = parse(&STUDY.replace(from, to)).expect_err("it is wrong");
        assert!(error.contains(names), "{error}");
    }
    assert!(parse(&STUDY.replace("\"8GiB\"", "\"0B\"")).is_ok(), "none at all");
}

#[test]
fn a_prediction_of_nothing_that_was_published_is_none() {
    let text = STUDY.replace("\"unpublished\"", "\"prediction\"");
    let study = parse(&text).expect("a sound study");
    assert_eq!(study.figures.prediction_count(), 0);
    let published = STUDY.replace("role = \"unpublished\"", "role = \"unpublished\"\npublished = 3");
    let error = parse(&published).expect_err("it contradicts itself");
    assert!(error.contains("make it a prediction"), "{error}");
}
