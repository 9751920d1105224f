//! `tier0 advise`: which data of a database belongs on flash, from the reports that its administrator has.

mod apply;
mod check;
mod collect;
mod example;
mod extents;
mod input;
mod interrupt;
mod mysql;
mod pinning;
mod plan;
mod postgres;
mod postgres_views;
mod processors;
mod relations;
mod text;
mod twin;
mod volumes;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tier0_advisor::advice::advise;
use tier0_advisor::report::{Provenance, html};

use self::input::Input;
use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{escaped_lines, json, print};
use crate::verb::lab::{check_writable, commit};

const EXAMPLES: &str = "\
Examples:
  tier0 advise --example my-database
      write an example: two samples of file statistics, and Perfmon
  tier0 advise before.csv after.csv perfmon.csv --cores 16 --flash 400GB
      two samples, and the host of the same time
  tier0 advise before.csv after.csv perfmon.csv --html advice.html
      how much flash it takes, as one HTML file

Files are recognised by their content: SQL Server file statistics as CSV
(the known report, sys.dm_io_virtual_file_stats, sp_BlitzFirst), execution
statistics of objects, Perfmon CSV (relog -f csv), iostat -x, sar -u -d, Oracle
AWR and Statspack (text or HTML), MySQL status, and samples of PostgreSQL, MySQL
or MariaDB that \"tier0 advise collect\" has taken. Give two samples of counters, the earlier one
first; their difference counts. What was not measured reads \"not measured\".
docs/advise.md explains the answer.";

/// Advises.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Advise {
    /// Reports of the database and its host
    #[arg(value_name = "FILE", required_unless_present = "example")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: Input,
    /// Also write a report to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write example files into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "html", "json"])]
    example: Option<PathBuf>,
    #[command(subcommand)]
    verb: Option<AdviseVerb>,
}

/// What else to do.
#[derive(Debug, Subcommand)]
enum AdviseVerb {
    /// Take samples of a running PostgreSQL, MySQL or MariaDB
    Collect(collect::Collect),
    /// Plan what to move to flash, with the statements that move it
    Plan(Box<plan::PlanVerb>),
    /// Carry out a plan on a running PostgreSQL: move tables, or pin their files
    Apply(apply::Apply),
    /// Compare what a plan predicted with what was measured afterwards
    Check(Box<check::Check>),
}

/// Does it.
pub(crate) fn run(verb: &Advise, global: &Global) -> Result<(), Failure> {
    match &verb.verb {
        Some(AdviseVerb::Collect(collect)) => return collect::run(collect, global),
        Some(AdviseVerb::Plan(plan)) => return plan::run(plan, global),
        Some(AdviseVerb::Apply(apply)) => return apply::run(apply, global),
        Some(AdviseVerb::Check(check)) => return check::run(check),
        None => {}
    }
    if let Some(directory) = &verb.example {
        return example::write(directory);
    }
    if let Some(path) = &verb.html {
        check_writable(path)?;
    }
    let (evidence, question) = verb.input.read(&verb.files)?;
    let advice = advise(&evidence, &question);
    if let Some(path) = &verb.html {
        let provenance = Provenance {
            command: std::iter::once("tier0".to_owned())
                .chain(std::env::args().skip(1))
                .collect::<Vec<_>>()
                .join(" "),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(),
        };
        let page = html(&advice, &provenance)
            .map_err(|error| Failure::Run(format!("the report cannot be made: {error}; use --json")))?;
        // Names of objects must not command the terminal of a pager either.
        std::fs::write(path, escaped_lines(&page)).map_err(|error| {
            Failure::Run(format!("cannot write the report to {}: {error}; name another file", path.display()))
        })?;
    }
    match verb.json {
        true => print(&json(&advice)),
        false => print(&text::text(&advice)),
    }
}
