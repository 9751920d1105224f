//! `tier0 lab list`: the studies that the program carries.

use clap::Args;
use tier0_lab::study;
use tier0_units::counted;

use crate::failure::Failure;
use crate::output::{align_right, json, print, rendered, table};

const EXAMPLES: &str = "\
Examples:
  tier0 lab list
  tier0 lab list --json";

/// Lists the studies.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub(crate) fn run(verb: &List) -> Result<(), Failure> {
    let studies = study::list();
    if verb.json {
        return print(&json(&studies));
    }
    let mut table = table(&["study", "configurations", "fitted", "calibration", "predicted", "title"]);
    for study in &studies {
        table.add_row([
            study.id.clone(),
            study.configurations.to_string(),
            counted(study.free_parameters as u64, "parameter"),
            counted(study.calibration_figures as u64, "figure"),
            counted(study.prediction_figures as u64, "figure"),
            study.title.clone(),
        ]);
    }
    align_right(&mut table, 1..5);
    print(&format!("{}\n\n\"tier0 lab run STUDY\" runs one.\n", rendered(&table)))
}
