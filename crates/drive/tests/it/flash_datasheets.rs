//! The model with the parameters of the catalogue's drives against the figures their makers give.
//!
//! The catalogue's `rated_` figures are no input of the model. Run with `--nocapture` for the table.

use crate::flash_common::Load;
use tier0_catalog::{Catalog, DriveSpec, FlashSpec};
use tier0_drive::flash::{FlashModel, FlashParameters, Precondition};
use tier0_units::{ByteCount, SECTOR_BYTES};

/// The largest deviation from a rated figure, as a share of it.
const DEVIATION_MAX: f64 = 0.20;

/// Commands outstanding for the rated IOPS: enough for any of these drives, as the makers measure.
const DEPTH_MAX: u32 = 256;

struct Row {
    what: &'static str,
    unit: &'static str,
    rated: f64,
    model: f64,
}

fn drive(spec: &FlashSpec, precondition: Precondition) -> FlashModel {
    let parameters = FlashParameters::try_from(spec).expect("the catalogue's entry is in range");
    let mut drive = FlashModel::new(parameters, 1).expect("the parameters were checked");
    drive.precondition(precondition);
    drive
}

fn random_rows(spec: &FlashSpec) -> Vec<Row> {
    let p = &spec.parameters;
    let block = ByteCount((p.rated_block_kib.value * 1024.0) as u64);
    let load = |depth: u32, read_percent| {
        let load = Load::random(depth as usize, read_percent, 400_000);
        Load { sectors: block.0 / SECTOR_BYTES, ..load }.run(&mut drive(spec, Precondition::Random(block)))
    };
    let depth = p.queue_depth.value.min(DEPTH_MAX);
    let row = |what, unit, rated, model| Row { what, unit, rated, model };
    let mut rows = vec![
        row("random read", "IOPS", p.rated_read_iops.value, load(depth, 100).iops),
        row("random write", "IOPS", p.rated_write_iops.value, load(depth, 0).iops),
    ];
    if let Some(depth) = &p.rated_latency_queue_depth {
        if let Some(rated) = &p.rated_read_latency_us {
            let model = load(depth.value, 100).read_latency_ns_mean / 1e3;
            rows.push(row("read latency", "us", rated.value, model));
        }
        if let Some(rated) = &p.rated_write_latency_us {
            let model = load(depth.value, 0).write_latency_ns_mean / 1e3;
            rows.push(row("write latency", "us", rated.value, model));
        }
    }
    rows
}

fn sequential_rows(spec: &FlashSpec) -> Vec<Row> {
    let p = &spec.parameters;
    let mb_s = |read_percent| {
        let measured =
            Load::sequential(32, read_percent, 60_000).run(&mut drive(spec, Precondition::Sequential));
        measured.iops * 131_072.0 / 1e6
    };
    let row = |what, rated, model| Row { what, unit: "MB/s", rated, model };
    vec![
        row("sequential read", p.rated_read_mb_s.value, mb_s(100)),
        row("sequential write", p.rated_write_mb_s.value, mb_s(0)),
    ]
}

/// What a quiet drive takes for one command, which makers seldom give.
fn single_latencies(spec: &FlashSpec) -> (f64, f64) {
    let block = ByteCount((spec.parameters.rated_block_kib.value * 1024.0) as u64);
    let load = |read_percent| {
        let load = Load { sectors: block.0 / SECTOR_BYTES, ..Load::random(1, read_percent, 20_000) };
        load.run(&mut drive(spec, Precondition::Random(block)))
    };
    (load(100).read_latency_ns_mean / 1e3, load(0).write_latency_ns_mean / 1e3)
}

#[test]
fn rated_figures_come_out() {
    let catalog = Catalog::embedded();
    let mut deviating = Vec::new();
    for entry in catalog.drives() {
        let DriveSpec::Flash(entry) = entry else { continue };
        let names: Vec<_> = entry.calibrations().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let spec = entry.calibrated(&name).expect("the entry named it");
            let label = format!("{}@{name}", spec.id);
            for Row { what, unit, rated, model } in
                random_rows(&spec).into_iter().chain(sequential_rows(&spec))
            {
                let ratio = model / rated;
                println!("{label:28} {what:17} {rated:>10.0} {model:>10.0} {unit:5} {ratio:>6.2}");
                if (ratio - 1.0).abs() > DEVIATION_MAX {
                    deviating.push(format!("{label} {what}: {model:.0} {unit} instead of {rated:.0}"));
                }
            }
            let (read_us, write_us) = single_latencies(&spec);
            println!("{label:28} alone: read {read_us:.0} us, write {write_us:.0} us");
        }
    }
    assert!(deviating.is_empty(), "{deviating:#?}");
}
