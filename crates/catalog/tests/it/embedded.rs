//! The embedded catalogue: complete, sourced, sane, and agreeing with the facts it was made from.

use std::collections::BTreeSet;
use std::path::Path;

use tier0_catalog::{
    ArrayParameters, Catalog, DATASHEET, DiskParameters, DriveSpec, FlashParameters, LinkParameters,
    NvramParameters, ParameterRow, ParameterSet, ParameterValue, SourceKind, Spec, Unit,
};

/// The drives that the reference studies and today's users need.
const DRIVES: [&str; 11] = [
    "fc-15k-300gb",
    "sas-15k-146gb-sff",
    "sas-10k-900gb-sff",
    "nl-7k2",
    "hdd-7k2",
    "efd-73gb",
    "efd-200gb",
    "efd-400gb",
    "ssd-sas-400gb",
    "nvme",
    "ssd-sata",
];

fn disk(catalog: &Catalog, id: &str) -> Spec<DiskParameters> {
    match catalog.drive(id).expect("the drive is there") {
        DriveSpec::Disk(spec) => (**spec).clone(),
        DriveSpec::Flash(_) | DriveSpec::Nvram(_) => panic!("{id} is no disk"),
    }
}

fn flash(catalog: &Catalog, reference: &str) -> Spec<FlashParameters> {
    match catalog.drive_by_reference(reference).expect("the drive is there") {
        DriveSpec::Flash(spec) => *spec,
        DriveSpec::Disk(_) | DriveSpec::Nvram(_) => panic!("{reference} is no flash"),
    }
}

#[test]
fn has_every_drive_link_and_array_that_is_needed() {
    let catalog = Catalog::embedded();
    for id in DRIVES {
        catalog.drive(id).unwrap_or_else(|error| panic!("{error}"));
    }
    let links = ["fc-1g", "fc-2g", "fc-4g", "fc-8g", "fc-16g", "iscsi-1g", "iscsi-10g", "iscsi-25g"];
    for id in links.into_iter().chain(["sas-3g", "sas-6g", "sas-12g"]) {
        catalog.link(id).unwrap_or_else(|error| panic!("{error}"));
    }
    for id in ["cx4-960", "ps6100xv", "msa2040", "3par7450"] {
        let array = catalog.array(id).unwrap_or_else(|error| panic!("{error}"));
        let link = &array.parameters.front_end_link.value;
        catalog.link(link).unwrap_or_else(|error| panic!("front_end_link of {id}: {error}"));
        let cache = catalog.drive(&array.parameters.write_cache.value);
        let DriveSpec::Nvram(cache) = cache.unwrap_or_else(|error| panic!("write_cache of {id}: {error}"))
        else {
            panic!("the write cache of {id} is no nvram");
        };
        let memory =
            array.parameters.memory_mib_per_controller.value * f64::from(array.parameters.controllers.value);
        assert!(cache.parameters.capacity_mib.value < memory, "{id}");
        assert!(cache.parameters.mirrored.value && cache.parameters.protected.value, "{id}");
    }
}

/// Every parameter, of every entry, under every calibration.
fn all_rows(catalog: &Catalog) -> Vec<(String, ParameterRow)> {
    let mut all = Vec::new();
    for summary in catalog.list() {
        for calibration in &summary.calibrations {
            let reference = format!("{}@{calibration}", summary.id);
            let rows = catalog.rows(&reference).unwrap_or_else(|error| panic!("{error}"));
            all.extend(rows.into_iter().map(|row| (reference.clone(), row)));
        }
    }
    all
}

#[test]
fn every_parameter_has_value_unit_kind_and_source() {
    let rules: Vec<_> = [
        DiskParameters::rules(),
        FlashParameters::rules(),
        NvramParameters::rules(),
        LinkParameters::rules(),
        ArrayParameters::rules(),
    ]
    .concat();
    let rows = all_rows(&Catalog::embedded());
    assert!(rows.len() > 500, "only {} parameters were looked at", rows.len());
    for (reference, row) in rows {
        let at = format!("{} of {reference}", row.parameter);
        assert!(row.source.trim().len() >= 4, "{at}: the source {:?} says nothing", row.source);
        assert!(!row.meaning.is_empty(), "{at} has no meaning");
        let known = rules.iter().any(|rule| {
            let in_range = match (&row.value, &rule.range) {
                (ParameterValue::Number(number), Some(range)) => range.contains(number),
                (ParameterValue::Number(_), None) => false,
                (ParameterValue::Text(text), None) => !text.is_empty() && row.unit == Unit::Text,
                (ParameterValue::Flag(_), None) => row.unit == Unit::Flag,
                _ => false,
            };
            rule.name == row.parameter && rule.unit == row.unit && in_range
        });
        assert!(known, "{at}: no rule allows {} {}", row.value, row.unit);
    }
}

#[test]
fn an_assumption_gives_its_reasoning_and_a_memory_is_never_a_datasheet() {
    for (reference, row) in all_rows(&Catalog::embedded()) {
        let at = format!("{} of {reference}", row.parameter);
        if row.source.contains("remembered") || row.source.contains("derived") {
            assert_eq!(row.kind, SourceKind::Assumed, "{at}");
        }
        if row.kind == SourceKind::Assumed {
            assert!(row.source.len() >= 10, "{at}: {:?} is no reasoning", row.source);
        }
    }
}

#[test]
fn every_file_of_the_directory_is_embedded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog");
    let mut ids = BTreeSet::new();
    let mut dirs = vec![root];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).expect("the catalogue is beside the crate") {
            let path = entry.expect("readable").path();
            let of_databases = ["workloads", "engines", "hosts"].iter().any(|name| path.ends_with(name));
            if path.is_dir() && of_databases {
                // Another crate's, which has a test of its own.
                continue;
            } else if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let text = std::fs::read_to_string(&path).expect("readable");
                let file: toml::Table = text.parse().expect("it is TOML");
                for table in file.values() {
                    ids.extend(table.as_table().expect("a table of entries").keys().cloned());
                }
            }
        }
    }
    let catalog = Catalog::embedded();
    let embedded: BTreeSet<String> = catalog.ids().cloned().collect();
    assert_eq!(ids, embedded, "embedded.rs must list every file of catalog/");
}

#[test]
fn the_conservative_calibration_is_the_default() {
    let catalog = Catalog::embedded();
    let efd = flash(&catalog, "efd-73gb");
    assert_eq!(efd.calibration, "array-sizing");
    assert_eq!(efd.parameters.rated_read_iops.value, 2_500.0);
    assert_eq!(efd.parameters.controller_read_mb_s.value, 100.0);
    assert_eq!(flash(&catalog, "efd-73gb@datasheet").parameters.rated_read_iops.value, 9_000.0);
    assert_eq!(flash(&catalog, "efd-73gb@cx4-oracle").parameters.rated_read_iops.value, 8_842.0);
    for summary in catalog.list() {
        let default = catalog.rows(&summary.id).expect("it is listed");
        let datasheet = catalog.rows(&format!("{}@{DATASHEET}", summary.id)).expect("always there");
        for (chosen, other) in default.iter().zip(&datasheet) {
            let (ParameterValue::Number(a), ParameterValue::Number(b)) = (&chosen.value, &other.value) else {
                continue;
            };
            let name = chosen.parameter;
            let slower = if matches!(chosen.unit, Unit::Us | Unit::Ms) { a >= b } else { a <= b };
            let is_block = name == "rated_block_kib";
            assert!(slower || is_block, "{name} of {}: {a} is less conservative than {b}", summary.id);
        }
    }
}

#[test]
fn the_400_gb_flash_drive_trails_in_writes_under_every_calibration() {
    let catalog = Catalog::embedded();
    for calibration in ["datasheet", "array-sizing", "cx4-oracle"] {
        let small = flash(&catalog, &format!("efd-73gb@{calibration}")).parameters;
        let large = flash(&catalog, &format!("efd-400gb@{calibration}")).parameters;
        assert!(large.write_iops_ceiling() < small.write_iops_ceiling(), "{calibration}");
        assert_eq!(large.read_iops_ceiling(), small.read_iops_ceiling(), "{calibration}");
    }
}

#[test]
fn the_cheetah_has_the_measured_media_rate() {
    let parameters = disk(&Catalog::embedded(), "fc-15k-300gb").parameters;
    let outer = parameters.media_mb_s(parameters.outer_sectors_per_track.value);
    let inner = parameters.media_mb_s(parameters.inner_sectors_per_track.value);
    assert!((outer - 153.6).abs() < 0.05 && (inner - 92.2).abs() < 0.05, "{outer} and {inner}");
}

#[test]
fn every_disk_geometry_holds_its_capacity() {
    for drive in Catalog::embedded().drives() {
        let DriveSpec::Disk(spec) = drive else { continue };
        let parameters = &spec.parameters;
        let zones = parameters.zones.value;
        let cylinders: u32 = (0..zones).map(|zone| parameters.zone_cylinders(zone)).sum();
        assert_eq!(cylinders, parameters.cylinders.value, "{}", spec.id);
        assert_eq!(parameters.zone_sectors_per_track(0), parameters.outer_sectors_per_track.value);
        assert_eq!(parameters.zone_sectors_per_track(zones - 1), parameters.inner_sectors_per_track.value);
        assert!(parameters.geometry_sectors() >= parameters.capacity_sectors(), "{}", spec.id);
        assert_eq!(drive.capacity().0, parameters.capacity_sectors(), "{}", spec.id);
    }
}

/// The Fibre Channel table of the reference systems: Gb/s, line rate, reach on OM1, OM2, OM3, OM4, OS1.
type FibreChannelRow = (u32, f64, [Option<u32>; 5]);

#[test]
fn fibre_channel_is_as_tabled() {
    let table: [FibreChannelRow; 5] = [
        (1, 1.0625, [Some(300), Some(500), Some(860), None, Some(10_000)]),
        (2, 2.125, [Some(150), Some(300), Some(500), None, Some(10_000)]),
        (4, 4.25, [Some(50), Some(150), Some(380), Some(400), Some(10_000)]),
        (8, 8.5, [Some(21), Some(50), Some(150), Some(190), Some(10_000)]),
        (16, 14.025, [Some(15), Some(35), Some(100), Some(125), Some(10_000)]),
    ];
    let catalog = Catalog::embedded();
    for (gigabits, line_rate, reach) in table {
        let link = &catalog.link(&format!("fc-{gigabits}g")).expect("the link is there").parameters;
        assert_eq!(link.nominal_mb_s.value, f64::from(gigabits) * 100.0);
        assert_eq!(link.line_rate_gbaud.value, line_rate);
        assert_eq!(link.encoding.value, if gigabits < 16 { "8b/10b" } else { "64b/66b" });
        assert_eq!(link.retimed.value, gigabits == 16);
        let metres =
            [&link.metres_om1, &link.metres_om2, &link.metres_om3, &link.metres_om4, &link.metres_os1];
        let metres = metres.map(|metres| metres.as_ref().map(|parameter| parameter.value));
        assert_eq!(metres, reach, "{gigabits}GFC");
    }
}

#[test]
fn iscsi_carries_what_its_headers_leave() {
    // 125 MB/s x 1448/1538 of a frame x 8192/8240 of a PDU = 117.0 MB/s per Gb/s.
    let catalog = Catalog::embedded();
    for gigabits in [1.0, 10.0, 25.0] {
        let link = &catalog.link(&format!("iscsi-{gigabits}g")).expect("the link is there").parameters;
        let expected = 125.0 * gigabits * 1448.0 / 1538.0 * 8192.0 / 8240.0;
        let error = (link.payload_mb_s.value / expected - 1.0).abs();
        assert!(error < 0.001, "{} and {expected}", link.payload_mb_s.value);
    }
}

#[test]
fn the_cx4_is_delivered_with_flash_caches_off() {
    let catalog = Catalog::embedded();
    let cx4 = &catalog.array("cx4-960").expect("it is there").parameters;
    assert!(cx4.disk_lun_read_cache.value && cx4.disk_lun_write_cache.value);
    assert!(!cx4.flash_lun_read_cache.value && !cx4.flash_lun_write_cache.value);
}

#[test]
fn lists_assumptions_and_prints_as_json() {
    let catalog = Catalog::embedded();
    let assumed: Vec<_> =
        catalog.parameters_of_kind("nvme", SourceKind::Assumed).expect("it is there").collect();
    assert!(!assumed.is_empty() && assumed.iter().all(|row| row.kind == SourceKind::Assumed));
    let summary = catalog.list().into_iter().find(|s| s.id == "nvme").expect("it is listed");
    assert_eq!(summary.assumed, assumed.len());
    assert_eq!(summary.capacity_gb, Some(3_840.0));

    let rows = catalog.rows("nl-7k2").expect("it is there");
    let json = serde_json::to_value(&rows).expect("rows serialise");
    let rpm = json.as_array().expect("an array").iter().find(|row| row["parameter"] == "rpm").expect("rpm");
    assert_eq!(rpm["value"], 7200.0);
    assert_eq!(rpm["unit"], "rpm");
    assert_eq!(rpm["kind"], "datasheet");
}

#[test]
fn an_unknown_id_brings_those_that_resemble_it() {
    let catalog = Catalog::embedded();
    let error = catalog.drive("efd-73").expect_err("there is none");
    assert_eq!(error.near.first().map(String::as_str), Some("efd-73gb"));
    let text = error.to_string();
    assert!(text.starts_with("the catalogue has no drive \"efd-73\"; did you mean \"efd-73gb\""), "{text}");
    assert!(catalog.drive("xyzzy").expect_err("there is none").near.is_empty());

    let error = catalog.rows("efd-73gb@sizing").expect_err("there is none").to_string();
    assert_eq!(
        error,
        "\"efd-73gb\" has no calibration \"sizing\"; available: datasheet, array-sizing, cx4-mixed, cx4-oracle"
    );
}
