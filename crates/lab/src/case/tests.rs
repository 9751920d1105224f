//! Cases, at work where their parts meet.

use tier0_catalog::{Catalog, DriveSpec};

use super::{Case, CaseReport};

const TWO: &str = r#"
host = { cores = 4, transaction_ms = 0.2, io_us = 10 }
run = { warm_up = "50ms", measured = "400ms", sum = true }

[database]
workload = "order-entry"
engine = "postgresql-15"
scale = 2
buffer = "16MiB"
users = 8
place = { "*" = "one" }

[[beside]]
name = "other"
[beside.database]
workload = "order-entry"
engine = "postgresql-15"
scale = 2
buffer = "16MiB"
users = 8
place = { "*" = "two" }

[system]
drive = [{ name = "ssd{n}", count = 2, model = "ssd-sata" }]
pool = [{ name = "pool0", raid = "raid1", set_size = 2 }]
volume = [{ name = "one", pool = "pool0", size = "4GiB" }, { name = "two", pool = "pool0", size = "4GiB" }]
"#;

fn case(text: &str) -> Case {
    Case::of("case", text.parse().expect("it is TOML")).expect("it is a case")
}

fn measured(text: &str) -> CaseReport {
    case(text).measure(&Catalog::embedded(), 1).expect("it runs")
}

#[test]
fn transactions_of_all_databases_are_counted_where_the_case_says_so() {
    let report = measured(TWO);
    let (first, other) = (report.database.per_s, report.beside[0].1.per_s);
    assert!(first > 100.0 && other > 100.0, "{first} {other}");
    assert!((report.per_s - (first + other)).abs() < 1e-6, "{} {first} {other}", report.per_s);
    let alone = measured(&TWO.replace("sum = true", "sum = false"));
    assert!((alone.per_s - first).abs() < 1e-6, "{} {first}", alone.per_s);
}

#[test]
fn more_io_than_a_volume_may_have_under_way_waits_in_the_host() {
    let queue =
        |depth: u32| measured(&TWO.replace("io_us = 10", &format!("io_us = 10, volume_queue = {depth}")));
    let (narrow, wide) = (queue(1), queue(64));
    assert!(
        narrow.database.read_ms > 2.0 * wide.database.read_ms,
        "{} {}",
        narrow.database.read_ms,
        wide.database.read_ms
    );
    assert!(narrow.database.per_s < wide.database.per_s);
}

const TIERED: &str = r#"
host = { cores = 4, transaction_ms = 0.2, io_us = 10 }
run = { shrink = 10 }

[database]
workload = "order-entry"
engine = "postgresql-15"
scale = 100
buffer = "1GiB"
users = 8

[system]
drive = [
  { name = "disk{n}", count = 2, model = "hdd-7k2" },
  { name = "ssd{n}", count = 2, model = "ssd-sata" },
  { name = "cache", model = "ssd-sas-400gb" },
]
volume = [{ name = "data", group = "disk", size = "40GiB", place = "auto" }]
[system.array]
memory = "2GiB"
[[system.pool]]
name = "pool0"
log = "32MiB"
flash_cache = "40GiB"
flash_cache_drives = ["cache"]
group = [
  { name = "disk", drives = ["disk*"], raid = "raid1", set_size = 2 },
  { name = "flash", drives = ["ssd*"], raid = "raid1", set_size = 2 },
]
"#;

#[test]
fn caches_and_the_fast_group_are_made_smaller_with_their_database() {
    let case = case(TIERED);
    assert_eq!(case.system.memory.map(|bytes| bytes.0), Some((2 << 30) / 10));
    assert_eq!(case.system.pools[0].flash_cache.bytes.map(|bytes| bytes.0), Some((40 << 30) / 10));
    assert_eq!(case.database.buffer.0, (1 << 30) / 10);
    let whole = Catalog::embedded();
    let smaller = case.shrunk.catalog(&whole).expect("a smaller drive is a drive");
    let capacity =
        |catalog: &Catalog, model: &str| match catalog.drive_by_reference(model).expect("it is there") {
            DriveSpec::Flash(spec) => spec.parameters.capacity_gb.value,
            _ => panic!("{model} is no flash drive"),
        };
    assert!((capacity(&smaller, "ssd-sata") * 10.0 - capacity(&whole, "ssd-sata")).abs() < 1e-9);
    assert_eq!(capacity(&smaller, "ssd-sas-400gb"), capacity(&whole, "ssd-sas-400gb"));
}

#[test]
fn a_model_in_the_fast_group_and_elsewhere_cannot_be_made_smaller() {
    let text = TIERED.replace("ssd-sas-400gb", "ssd-sata");
    let refused = Case::of("case", text.parse().expect("it is TOML")).expect_err("it is both").to_string();
    assert!(
        refused.contains("run.shrink: drives of model \"ssd-sata\" are in a fast group and elsewhere"),
        "{refused}"
    );
}

#[test]
fn a_host_of_the_catalogue_gives_what_the_section_does_not() {
    let modelled =
        TWO.replace("cores = 4, transaction_ms = 0.2, io_us = 10", "model = \"xeon-x5680-2p\", io_us = 30");
    let host = case(&modelled).database.host;
    assert_eq!((host.cores, host.transaction.0, host.io.0), (12, 400_000, 30_000));
    for (host, expected) in [
        ("model = \"pentium\"", "host.model: there is no host \"pentium\"; use one of xeon-"),
        (
            "model = \"xeon-x5690-2p\"",
            "host.transaction_ms: host \"xeon-x5690-2p\" has none for order-entry; add it",
        ),
        ("cores = 4, io_us = 10", "host.transaction_ms is missing; add it, or name a model"),
    ] {
        let text = TWO.replace("cores = 4, transaction_ms = 0.2, io_us = 10", host);
        let refused =
            Case::of("case", text.parse().expect("it is TOML")).expect_err("it lacks a number").to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn drives_are_counted_with_their_watts_and_rack_units() {
    let report = measured(TWO);
    let hardware = report.hardware;
    assert_eq!((hardware.drives, hardware.rack_units), (2, None));
    // Idle 1.5 W, at work 4.3 W (catalogue).
    assert!((3.0..=8.6).contains(&hardware.drive_watts), "{hardware:?}");
    let framed = measured(&TWO.replace("[system]", "[front_end]\nmodel = \"msa2040\"\n\n[system]"));
    assert_eq!(framed.hardware.rack_units, Some(2));
}

/// One of them could not: a drive at one part in 194 had less endurance than the catalogue takes.
#[test]
fn every_case_of_the_embedded_studies_can_be_made_as_small_as_it_says() {
    let whole = Catalog::embedded();
    for summary in crate::study::list() {
        let study = crate::study::embedded(&summary.id).expect("it was listed");
        for configuration in &study.cases {
            let smaller = configuration.case.shrunk.catalog(&whole);
            assert!(smaller.is_ok(), "{}: {}: {:?}", study.id, configuration.id, smaller.err());
        }
    }
}
