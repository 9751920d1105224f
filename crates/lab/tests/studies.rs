//! Small studies from their text to their records: determinism, roles, the path around the engine.

use tier0_lab::LabError;
use tier0_lab::record::{Figure, Role};
use tier0_lab::report::{Provenance, html, terminal};
use tier0_lab::run::{RunOptions, StudyOutcome, run};
use tier0_lab::search::SearchEnd;
use tier0_lab::study::Study;

const STUDY: &str = r#"
id = "small"
title = "four disks & <more>"
description = "…"

[base.set]
array = "ps6100xv"
drive = "sas-15k-146gb-sff"
drives = 4
raid = "raid10"
volume_size = "20GiB"
read_percent = 70
latency_limit_ms = 20
ios = 3000
warm_up = "500ms"

[grid]
metric = "iops"
unit = "IOPS"
[[grid.axis]]
title = "block"
point = [
  { id = "8k", label = "8 KiB", set = { block = "8KiB" } },
  { id = "256k", label = "256 KiB", set = { block = "256KiB" } },
]
[[grid.axis]]
title = "reads"
point = [
  { id = "r100", label = "100 %", set = { read_percent = 100 } },
  { id = "r50", label = "50 %", set = { read_percent = 50 } },
]

[[configuration]]
id = "one"
title = "one array"
[[configuration]]
id = "same"
title = "one array once more"
[[configuration]]
id = "two"
title = "two arrays"
set = { members = 2 }
[[configuration]]
id = "buffered"
title = "with a write buffer"
set = { write_buffer = "1MiB", destage_pages = 1000 }
[[configuration]]
id = "throttled"
title = "with a write buffer that empties slowly"
set = { write_buffer = "1MiB", destage_pages = 2 }
[[configuration]]
id = "hopeless"
title = "a latency that no disk has"
set = { latency_limit_ms = 0.5 }
[[configuration]]
id = "flash"
title = "four flash drives"
set = { drive = "efd-73gb", array = "cx4-960", volume_size = "10GiB", read_percent = 100 }
[[configuration]]
id = "slow-flash"
title = "four flash drives with twice the command time"
set = { drive = "efd-73gb", array = "cx4-960", volume_size = "10GiB", read_percent = 100, flash_read_us = 800 }

[[record]]
id = "8k.r100"
role = "prediction"
published = 3000
tolerance = "50%"
[[record]]
id = "members"
value = { metric = "iops", of = "two", over = "one" }
unit = "x"
role = "prediction"
published = 2
tolerance = "10%"
[[record]]
id = "order"
value = { metric = "iops", order = [["two", "one"], ["one", "same"], ["throttled", "buffered"]] }
unit = "order"
role = "prediction"
published = "withheld"
[[record]]
id = "hopeless"
value = { metric = "iops", of = "hopeless" }
unit = "IOPS"
role = "prediction"
[[record]]
id = "command-time"
value = { metric = "iops", of = "flash", over = "slow-flash" }
unit = "x"
role = "prediction"
"#;

fn outcome(text: &str, threads: usize) -> StudyOutcome {
    let study = Study::parse(text, "small.toml").expect("the study is sound");
    let options = RunOptions { threads: Some(threads), ..RunOptions::default() };
    run(&study, &options, &|_| {}).expect("the study can be run")
}

fn value(outcome: &StudyOutcome, id: &str) -> Option<Figure> {
    let found = outcome.records.iter().find(|judged| judged.record.id == id);
    found.unwrap_or_else(|| panic!("no record {id}")).record.value.clone()
}

fn number(outcome: &StudyOutcome, id: &str) -> f64 {
    value(outcome, id).and_then(|figure| figure.number()).unwrap_or_else(|| panic!("{id} is no number"))
}

#[test]
fn every_configuration_has_its_record_and_the_figures_make_sense() {
    let outcome = outcome(STUDY, 2);
    let ids: Vec<&str> = outcome.records.iter().map(|judged| judged.record.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "small.8k.r100",
            "small.members",
            "small.order",
            "small.hopeless",
            "small.command-time",
            "small.8k.r50",
            "small.256k.r100",
            "small.256k.r50"
        ]
    );
    assert!(outcome.records.iter().all(|judged| judged.record.role == Role::Prediction));
    assert!(number(&outcome, "small.8k.r100") > 2.0 * number(&outcome, "small.256k.r100"));
    assert!(number(&outcome, "small.8k.r100") > number(&outcome, "small.8k.r50"));
    assert!((number(&outcome, "small.members") - 2.0).abs() < 0.2);
    // Equal setups are measured once and under one seed, so they are equal to the last digit.
    let order = value(&outcome, "small.order");
    assert_eq!(order, Some(Figure::Text("two > one and one = same and throttled < buffered".into())));
    assert_eq!(value(&outcome, "small.hopeless"), None);
    let hopeless = outcome.measured.iter().find(|measured| measured.configuration.id == "hopeless");
    assert_eq!(hopeless.expect("it was measured").measurement.end, Some(SearchEnd::AboveFromTheStart));
    // 800 us against the catalogue's 400 us.
    let command_time = number(&outcome, "small.command-time");
    assert!((1.7..2.1).contains(&command_time), "{command_time}");
}

#[test]
fn threads_change_nothing_and_seeds_do() {
    let one = outcome(STUDY, 1);
    let three = outcome(STUDY, 3);
    assert_eq!(one.json(), three.json());
    assert_eq!(one.measured, three.measured);
    let other = outcome(&format!("seed = 2\n{STUDY}"), 2);
    assert_ne!(one.json(), other.json());
}

#[test]
fn a_buffered_write_does_not_wait_for_a_disk_until_the_buffer_is_full() {
    let outcome = outcome(STUDY, 2);
    let find = |id: &str| {
        let found = outcome.measured.iter().find(|measured| measured.configuration.id == id);
        found.expect("it was measured").measurement.clone()
    };
    let least = |id: &str| find(id).curve[0].write_latency_ms.expect("it writes");
    assert!(least("buffered") < 1.0, "{}", least("buffered"));
    assert!(least("one") > 3.0, "{}", least("one"));
    let throttled = find("throttled").result;
    assert!(throttled.write_latency_ms > throttled.read_latency_ms, "{throttled:?}");
}

#[test]
fn reports_hold_every_figure_and_need_nothing_else() {
    let outcome = outcome(STUDY, 2);
    let provenance = Provenance {
        command: "tier0 lab run small.toml".into(),
        version: "1.2.3".into(),
        commit: Some("abc".into()),
    };
    let page = html(&outcome, &provenance).expect("a page");
    for part in [
        "four disks &#38; &#60;more&#62;",
        "8k.r100",
        "kept back",
        "256 KiB",
        "tier0 lab run small.toml",
        "abc",
        "read_cost_us",
        "embedded multi-core processor",
        "prefers-color-scheme",
        "<svg",
    ] {
        assert!(page.contains(part), "the page lacks {part:?}");
    }
    for part in ["http://", "https://", "<script", "url(", "@import", "<link"] {
        assert!(!page.contains(part), "the page has {part:?}");
    }
    let text = terminal(&outcome, &provenance, None).expect("a table");
    for part in ["prediction: nothing was fitted to these", "2 of 2 published figures", "seed 1", "members"] {
        assert!(text.contains(part), "the table lacks {part:?}:\n{text}");
    }
    assert!(!text.contains("calibration:"), "nothing was fitted:\n{text}");
    let json: serde_json::Value = serde_json::from_str(&outcome.json()).expect("JSON");
    let records = json.as_array().expect("an array");
    assert_eq!(records.len(), outcome.records.len());
    for record in records {
        let fields: Vec<&str> = record.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(fields.len(), 6, "{fields:?}");
    }
}

#[test]
fn what_cannot_be_built_is_named() {
    let text = STUDY.replace("volume_size = \"20GiB\"", "volume_size = \"2TiB\"");
    let study = Study::parse(&text, "small.toml").expect("the study is sound by itself");
    let error = run(&study, &RunOptions::default(), &|_| {}).expect_err("2 TiB do not fit four disks");
    assert!(matches!(error, LabError::Array { .. }));
    let error = error.to_string();
    assert!(error.contains("8k.r100") && error.contains("does not fit pool"), "{error}");
}
