//! Small studies from their text to their records: determinism, roles, the path around the engine.

use std::sync::OnceLock;

use tier0_lab::LabError;
use tier0_lab::ranking::{Ranking, rankings};
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
ios = 1500
warm_up = "200ms"

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
id = "cached"
title = "with a write cache"
set = { write_cache = "64MiB" }
[[configuration]]
id = "little-cache"
title = "with a small write cache"
set = { write_cache = "4MiB" }
[[configuration]]
id = "hopeless"
title = "a latency that no disk has"
set = { latency_limit_ms = 0.5 }
[[configuration]]
id = "flash"
title = "four flash drives"
set = { drive = "efd-73gb", array = "cx4-960", volume_size = "10GiB", read_percent = 100 }

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
value = { metric = "iops", order = [["two", "one"], ["one", "same"], ["little-cache", "cached"]] }
unit = "order"
role = "prediction"
published = "withheld"
[[record]]
id = "hopeless"
value = { metric = "iops", of = "hopeless" }
unit = "IOPS"
role = "prediction"
"#;

/// Two configurations behind the same base, one with a write cache that settles.
const FEW: &str = r#"
[[configuration]]
id = "one"
title = "one array"
[[configuration]]
id = "cached"
title = "with a write cache"
set = { write_cache = "64MiB" }
[[record]]
id = "cache"
value = { metric = "iops", of = "cached", over = "one" }
unit = "x"
role = "prediction"
"#;

fn outcome(text: &str, threads: usize) -> StudyOutcome {
    let study = Study::parse(text, "small.toml").expect("the study is sound");
    let options = RunOptions { threads: Some(threads), ..RunOptions::default() };
    run(&study, &options, &|_| {}).expect("the study can be run")
}

/// The whole study with curves, run once for all tests that look at it.
fn whole() -> &'static StudyOutcome {
    static WHOLE: OnceLock<StudyOutcome> = OnceLock::new();
    WHOLE.get_or_init(|| outcome(STUDY, 2))
}

fn value(outcome: &StudyOutcome, id: &str) -> Option<Figure> {
    let found = outcome.records.iter().find(|judged| judged.record.id == id);
    found.unwrap_or_else(|| panic!("no record {id}")).record.value.clone()
}

fn number(outcome: &StudyOutcome, id: &str) -> f64 {
    value(outcome, id).and_then(|figure| figure.number()).unwrap_or_else(|| panic!("{id} is no number"))
}

#[test]
fn configurations_under_the_same_load_are_ranked() {
    let rankings = rankings(whole());
    let ranks = |ranking: &Ranking| -> Vec<(String, usize)> {
        ranking.lines.iter().map(|line| (line.id.clone(), line.rank)).collect()
    };
    let [random] = &rankings[..] else { panic!("the others have loads of their own: {rankings:?}") };
    assert_eq!(random.load, "8KiB, random, 70 % reads, reads and writes each within 20 ms on average");
    let ranks = ranks(random);
    assert_eq!((ranks[0].0.as_str(), ranks[0].1), ("two", 1), "{ranks:?}");
    let rank = |id: &str| ranks.iter().find(|(name, _)| name == id).expect("it is ranked").1;
    assert_eq!(rank("one"), rank("same"), "they are the same");
    let two = &random.lines[0];
    let one = random.lines.iter().find(|line| line.id == "one").expect("it is ranked");
    assert_eq!((two.drives, two.usable.0), (8, 2 * one.usable.0));
    assert!((2.9e11..3.0e11).contains(&(one.usable.0 as f64)), "two of four disks of 146 GB: {}", one.usable);
    // A disk of two platters draws 5 W idle and 8 W at work.
    assert!((20.0..=32.0).contains(&one.drive_watts), "{} W", one.drive_watts);
    assert!((40.0..=64.0).contains(&two.drive_watts), "{} W", two.drive_watts);
    // With a small write cache the disks write little at once, and never rest.
    let little = random.lines.iter().find(|line| line.id == "little-cache").expect("it is ranked");
    let (left, what) = little.headroom.as_ref().expect("something is busy");
    assert!(*left < 0.01 && what == "drives", "{left} of {what}");
    for line in &random.lines {
        let (left, what) = line.headroom.as_ref().expect("something is busy");
        assert!((0.0..0.6).contains(left), "{}: {left} of {what}", line.id);
        assert!(line.p99_ms > 20.0, "{}: the mean is 20 ms", line.id);
    }
}

#[test]
fn every_configuration_has_its_record_and_the_figures_make_sense() {
    let outcome = whole();
    let ids: Vec<&str> = outcome.records.iter().map(|judged| judged.record.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "small.8k.r100",
            "small.members",
            "small.order",
            "small.hopeless",
            "small.8k.r50",
            "small.256k.r100",
            "small.256k.r50"
        ]
    );
    let roles: Vec<Role> = outcome.records.iter().map(|judged| judged.record.role).collect();
    assert_eq!(roles[..3], [Role::Prediction; 3]);
    assert_eq!(roles[3..], [Role::Unpublished; 4], "nothing was published that would test them");
    assert!(number(outcome, "small.8k.r100") > 2.0 * number(outcome, "small.256k.r100"));
    assert!(number(outcome, "small.8k.r100") > number(outcome, "small.8k.r50"));
    assert!((number(outcome, "small.members") - 2.0).abs() < 0.2);
    // Equal setups are measured once and under one seed, so they are equal to the last digit.
    let order = value(outcome, "small.order");
    assert_eq!(order, Some(Figure::Text("two > one and one = same and little-cache < cached".into())));
    assert_eq!(value(outcome, "small.hopeless"), None);
    let hopeless = outcome.measured.iter().find(|measured| measured.configuration.id == "hopeless");
    assert_eq!(hopeless.expect("it was measured").measurement.end, Some(SearchEnd::AboveFromTheStart));
}

#[test]
fn threads_change_nothing_and_seeds_do() {
    let head = STUDY.split("[grid]").next().expect("a text has parts");
    let few = format!("{head}{FEW}");
    let one = outcome(&few, 1);
    let three = outcome(&few, 3);
    assert_eq!(one.json(), three.json());
    assert_eq!(one.measured, three.measured);
    let other = outcome(&format!("seed = 2\n{few}"), 2);
    assert_ne!(one.json(), other.json());
}

#[test]
fn a_cached_write_does_not_wait_for_a_disk_until_the_cache_is_full() {
    let outcome = whole();
    let find = |id: &str| {
        let found = outcome.measured.iter().find(|measured| measured.configuration.id == id);
        found.expect("it was measured").measurement.clone()
    };
    let least = |id: &str| find(id).curve[0].write_latency_ms.expect("it writes");
    assert!(least("cached") < 1.0, "{}", least("cached"));
    assert!(least("one") > 3.0, "{}", least("one"));
    let last = *find("cached").curve.last().expect("it has a curve");
    assert!(last.write_latency_ms > Some(5.0), "{last:?}");
}

#[test]
fn reports_hold_every_figure_and_need_nothing_else() {
    let outcome = whole();
    let provenance = Provenance {
        command: "tier0 lab run small.toml".into(),
        version: "1.2.3".into(),
        commit: Some("abc".into()),
    };
    let page = html(outcome, &provenance).expect("a page");
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
    let text = terminal(outcome, &provenance, None).expect("a table");
    for part in
        ["prediction: nothing was fitted to these", "2 of 2 published predictions", "seed 1", "members"]
    {
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
    assert!(error.contains("8k.r100") && error.contains("does not fit in pool"), "{error}");
}
