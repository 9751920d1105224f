//! `tier0 catalog`: the catalogue's entries, and one entry with the source of each figure.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use tier0_catalog::{Catalog as Entries, ParameterRow, SourceKind, Summary};

use crate::failure::Failure;
use crate::output::{align_right, json, print, rendered, table};

const EXAMPLES: &str = "\
Examples:
  tier0 catalog list
  tier0 catalog show nvme";

const LIST_EXAMPLES: &str = "\
Examples:
  tier0 catalog list
  tier0 catalog list --json
  tier0 catalog list --catalog my-drives/
      add or override entries with your own";

const SHOW_EXAMPLES: &str = "\
Examples:
  tier0 catalog show sas-15k-146gb-sff
  tier0 catalog show efd-73gb@datasheet
      the same drive under another calibration
  tier0 catalog show ps6100xv --json";

/// Where entries come from.
#[derive(Args, Debug, Default)]
pub(crate) struct CatalogSource {
    /// Add or override entries from a file, or the files in a directory (docs/catalog.md)
    #[arg(long = "catalog", value_name = "PATH")]
    dir: Option<PathBuf>,
}

impl CatalogSource {
    /// Whether entries of one's own are named.
    pub(crate) fn is_given(&self) -> bool {
        self.dir.is_some()
    }

    /// Reads the catalogue.
    pub(crate) fn load(&self) -> Result<Entries, Failure> {
        match &self.dir {
            None => Ok(Entries::embedded()),
            Some(dir) => Entries::load_dir(dir).map_err(Failure::input),
        }
    }
}

/// What to show.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Catalog {
    /// List all entries
    List(List),
    /// Show an entry's parameters with unit, kind and source
    Show(Show),
}

/// Lists all entries.
#[derive(Args, Debug)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct List {
    #[command(flatten)]
    source: CatalogSource,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows one entry.
#[derive(Args, Debug)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct Show {
    /// Entry, or ENTRY@CALIBRATION
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    source: CatalogSource,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows what was asked for.
pub(crate) fn run(verb: &Catalog) -> Result<(), Failure> {
    match verb {
        Catalog::List(list) => run_list(list),
        Catalog::Show(show) => run_show(show),
    }
}

fn run_list(verb: &List) -> Result<(), Failure> {
    let entries = verb.source.load()?.list();
    if verb.json {
        return print(&json(&entries));
    }
    let mut table = table(&["id", "kind", "class", "capacity", "calibration", "assumed", "what it is"]);
    for entry in &entries {
        let capacity = entry.capacity_gb.map_or(String::new(), |gb| format!("{gb:.0} GB"));
        table.add_row([
            entry.id.clone(),
            entry.kind.to_string(),
            entry.class.clone(),
            capacity,
            entry.calibration.clone(),
            format!("{} of {}", entry.assumed, entry.parameters),
            entry.description.clone(),
        ]);
    }
    align_right(&mut table, [3, 5]);
    print(&format!(
        "{}\n\n\"tier0 catalog show ID\" shows an entry's parameters and their sources.\n",
        rendered(&table)
    ))
}

/// One entry, for JSON.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    summary: Summary,
    rows: Vec<ParameterRow>,
}

fn run_show(verb: &Show) -> Result<(), Failure> {
    let catalog = verb.source.load()?;
    let rows = catalog.rows(&verb.id).map_err(Failure::input)?;
    let (id, calibration) = match verb.id.split_once('@') {
        Some((id, calibration)) => (id, Some(calibration)),
        None => (verb.id.as_str(), None),
    };
    let summary = catalog.list().into_iter().find(|entry| entry.id == id);
    let mut summary = summary.expect("an entry with rows is listed");
    if let Some(calibration) = calibration {
        summary.calibration = calibration.to_owned();
        summary.assumed = {
            let assumed = catalog.parameters_of_kind(&verb.id, SourceKind::Assumed);
            assumed.map_err(Failure::input)?.count()
        };
    }
    if verb.json {
        return print(&json(&Shown { summary, rows }));
    }
    print(&shown(&summary, &rows))
}

fn shown(summary: &Summary, rows: &[ParameterRow]) -> String {
    let mut table = table(&["parameter", "value", "unit", "kind", "source"]);
    for row in rows {
        table.add_row([
            row.parameter.to_owned(),
            row.value.to_string(),
            row.unit.to_string(),
            row.kind.to_string(),
            row.source.clone(),
        ]);
    }
    align_right(&mut table, [1]);
    let others: Vec<_> = summary.calibrations.iter().filter(|name| **name != summary.calibration).collect();
    let mut calibration = format!("calibration {}", summary.calibration);
    if !others.is_empty() {
        let others: Vec<_> = others.iter().map(|name| format!("{}@{name}", summary.id)).collect();
        calibration = format!("{calibration}; others: {}", others.join(", "));
    }
    format!(
        "{}: {} ({})\n{}\n{calibration}\n\n{}\n\n{} of {} parameters are assumed\n",
        summary.id,
        summary.name,
        summary.class,
        summary.description,
        rendered(&table),
        summary.assumed,
        summary.parameters
    )
}
