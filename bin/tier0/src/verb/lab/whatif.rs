//! `tier0 lab whatif`: what a change of the array, the host or the database would bring.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use serde::Serialize;
use tier0_lab::LabError;
use tier0_lab::report::{Provenance, whatif_html, whatif_terminal};
use tier0_lab::whatif::CaseFigures;
use tier0_lab::whatif::search::SearchResult;

use super::parse_threads;
use super::run::{check_writable, commit, failure};
use crate::cli::Global;
use crate::driving::{live_line, tell_step};
use crate::failure::Failure;
use crate::output::{json, print, terminal_width};

const EXAMPLES: &str = "\
Examples:
  tier0 lab whatif my-database.toml
      the database, the array as it is, and the alternatives of the file
  tier0 lab whatif my-database.toml --html whatif.html
      the same as one HTML file
  tier0 lab whatif --example > my-database.toml
      a file to begin with (docs/whatif.md explains it)

With a [search] table in the file, the cheapest drives that hold a rate of
transactions within a response time are searched too (docs/whatif.md).";

/// An example that is also in the documentation.
const EXAMPLE: &str = include_str!("../../../../../studies/whatif-example.toml");

/// Predicts alternatives.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhatIf {
    /// A file with a database, its host, the array and the alternatives
    #[arg(value_name = "FILE", required_unless_present = "example")]
    file: Option<PathBuf>,
    /// Print a file to begin with
    #[arg(long, conflicts_with_all = ["file", "html", "json", "threads"])]
    example: bool,
    /// Also write a report to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Number of simulation threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What JSON has of a file with a search.
#[derive(Serialize)]
struct Searched {
    cases: Vec<CaseFigures>,
    search: SearchResult,
}

/// Does it.
pub(crate) fn run(verb: &WhatIf, global: &Global) -> Result<(), Failure> {
    let Some(file) = verb.file.as_ref().filter(|_| !verb.example) else { return print(EXAMPLE) };
    if let Some(path) = &verb.html {
        check_writable(path)?;
    }
    let whatif = tier0_lab::whatif::WhatIf::load(file).map_err(failure)?;
    let bar = live_line(global.quiet == 0);
    let (all, done) = (whatif.cases.len(), AtomicUsize::new(0));
    let show = global.quiet == 0;
    tell_step(&bar, show, format!("simulating {all} cases"));
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = verb.threads.map_or_else(cores, NonZeroUsize::get);
    let reports = whatif.run(threads, &|name| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        tell_step(&bar, show, format!("simulating, {done} of {all} cases done: {name}"));
    });
    let reports = reports.map_err(failure)?;
    let search = whatif.search.as_ref().map(|search| {
        let told = |what: &str| tell_step(&bar, show, format!("searching, simulating {what}"));
        search.run(threads, &told)
    });
    bar.finish_and_clear();
    let search = search.transpose().map_err(failure)?;
    let provenance = Provenance {
        command: format!("tier0 lab whatif {}", file.display()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(),
    };
    if let Some(path) = &verb.html {
        let page = whatif_html(&whatif, &reports, search.as_ref(), &provenance).map_err(failure)?;
        let written = std::fs::write(path, page);
        written.map_err(|source| Failure::run(LabError::Write { path: path.clone(), source }))?;
    }
    if verb.json {
        let cases = tier0_lab::whatif::figures(&whatif, &reports);
        return print(&match search {
            Some(search) => json(&Searched { cases, search }),
            None => json(&cases),
        });
    }
    print(&whatif_terminal(&whatif, &reports, search.as_ref(), &provenance, terminal_width()))
}
