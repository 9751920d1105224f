//! `tier0 lab validate-drive`: the disk model beside measured drives (docs/drive-models.md).

use std::path::PathBuf;

use clap::Args;
use comfy_table::Table;
use serde::Serialize;
use tier0_drive::disk::validation::{Comparison, ValidationError, ValidationReport, validate};

use crate::failure::Failure;
use crate::output::{align_right, json, print, rendered, table};

const EXAMPLES: &str = "\
Examples:
  tier0 lab validate-drive --disksim measured/ atlas10k
  tier0 lab validate-drive --disksim measured/ atlas10k cheetah9LP --json

A drive NAME has the files NAME.diskspecs, NAME.model, NAME.seek and
NAME.trace.gz of DiskSim's validation suite. Parameters come from these files;
nothing is fitted. The demerit is the root mean square distance between the
distributions of measured and simulated service times, as a share of the
measured mean.";

/// Compares the disk model with measured drives.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateDrive {
    /// Directory with the files of the drives
    #[arg(long, value_name = "DIR")]
    disksim: PathBuf,
    /// Names of the drives
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One drive, for JSON.
#[derive(Serialize)]
struct Validated<'a> {
    drive: &'a str,
    demerit_percent: f64,
    all: Compared,
    reads: Option<Compared>,
    writes: Option<Compared>,
}

#[derive(Serialize)]
struct Compared {
    requests: usize,
    measured_mean_ms: f64,
    simulated_mean_ms: f64,
    rms_ms: f64,
    demerit_percent: f64,
    quantiles: Vec<Quantile>,
}

#[derive(Serialize)]
struct Quantile {
    share: f64,
    measured_ms: f64,
    simulated_ms: f64,
}

/// Compares them.
pub(crate) fn run(verb: &ValidateDrive) -> Result<(), Failure> {
    let validate = |name: &String| validate(&verb.disksim, name).map_err(|error| failure(verb, &error));
    let reports = verb.names.iter().map(validate).collect::<Result<Vec<_>, _>>()?;
    if verb.json {
        let validated: Vec<_> = reports.iter().map(validated).collect();
        return print(&json(&validated));
    }
    let texts: Vec<String> = reports.iter().map(text).collect();
    print(&texts.join("\n"))
}

/// The remedy is always to look at the files.
fn failure(verb: &ValidateDrive, error: &ValidationError) -> Failure {
    let text = error.to_string();
    if text.contains("; ") {
        return Failure::Input(text);
    }
    Failure::Input(format!("{text}; check the drive's files in {}", verb.disksim.display()))
}

fn validated(report: &ValidationReport) -> Validated<'_> {
    Validated {
        drive: &report.name,
        demerit_percent: report.all.demerit * 100.0,
        all: compared(&report.all),
        reads: report.reads.as_ref().map(compared),
        writes: report.writes.as_ref().map(compared),
    }
}

fn compared(comparison: &Comparison) -> Compared {
    let quantile = |pair: &tier0_drive::disk::validation::QuantilePair| Quantile {
        share: pair.share,
        measured_ms: pair.measured_ms,
        simulated_ms: pair.simulated_ms,
    };
    Compared {
        requests: comparison.count,
        measured_mean_ms: comparison.mean_measured_ms,
        simulated_mean_ms: comparison.mean_simulated_ms,
        rms_ms: comparison.rms_ms,
        demerit_percent: comparison.demerit * 100.0,
        quantiles: comparison.quantiles.iter().map(quantile).collect(),
    }
}

fn text(report: &ValidationReport) -> String {
    let mut means = table(&["", "requests", "measured ms", "simulated ms", "rms ms", "demerit"]);
    let kinds =
        [("all", Some(&report.all)), ("reads", report.reads.as_ref()), ("writes", report.writes.as_ref())];
    for (kind, comparison) in kinds {
        let Some(comparison) = comparison else { continue };
        means.add_row([
            kind.to_owned(),
            comparison.count.to_string(),
            format!("{:.3}", comparison.mean_measured_ms),
            format!("{:.3}", comparison.mean_simulated_ms),
            format!("{:.3}", comparison.rms_ms),
            format!("{:.2} %", comparison.demerit * 100.0),
        ]);
    }
    align_right(&mut means, 1..6);
    format!(
        "{}: demerit {:.2} % over {} requests\n\n{}\n\n{}\n",
        report.name,
        report.all.demerit * 100.0,
        report.all.count,
        rendered(&means),
        rendered(&distribution(&report.all))
    )
}

fn distribution(comparison: &Comparison) -> Table {
    let mut table = table(&["faster", "measured ms", "simulated ms"]);
    for pair in &comparison.quantiles {
        table.add_row([
            format!("{:.0} %", pair.share * 100.0),
            format!("{:.3}", pair.measured_ms),
            format!("{:.3}", pair.simulated_ms),
        ]);
    }
    align_right(&mut table, 0..3);
    table
}
