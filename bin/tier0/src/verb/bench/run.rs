//! `tier0 bench run`: users who run transactions.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::Args;
use tier0_api::{AdminReply, AdminRequest, IoReport};
use tier0_bench::BenchError;
use tier0_bench::run::run as run_load;

use super::load::Load;
use super::{Database, page, report, watched};
use crate::cli::Global;
use crate::control::{Addressee, ask_socket, misunderstood};
use crate::failure::Failure;
use crate::output::{json, print};
use crate::verb::lab::check_writable;

const EXAMPLES: &str = "\
Examples:
  tier0 bench run --dsn postgres://localhost/bench --users 16
  tier0 bench run --dsn postgres://localhost/bench --users 8 --array array.toml
      with what the array of the database counts, side by side
  tier0 bench run --dsn postgres://localhost/bench --users 50 --rate 100 --json
      100 transactions per second arrive in all; response times count from the
      arrival
  tier0 bench run --dsn postgres://localhost/dss --users 4 --one-pass
      decision support: four streams run all queries once
  tier0 bench run --dsn postgres://localhost/bench --html run.html
      with a page of charts and tables
  tier0 bench run --dsn postgres://localhost/bench --users 100 --think spec
      terminals of the specification, about 21 s for each transaction

The load is the one that the database has. NOPM: committed New-Orders per minute, about 43 % of all commits. Transactions
that the server refuses (serialization failure, deadlock) are repeated and
counted as retries; any other error ends the run. Ctrl-C ends it early, with a
report. Columns and limits: docs/bench.md.";

/// What to run.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    #[command(flatten)]
    database: Database,
    /// The load that the database must have [default: the one that it has]
    #[arg(long = "load", value_name = "LOAD")]
    wanted: Option<tier0_bench::load::Load>,
    #[command(flatten)]
    load: Load,
    /// The array under the database: its array file or control socket
    #[arg(long, value_name = "ARRAY")]
    array: Option<PathBuf>,
    /// Write the report as one HTML page too, with charts over time
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs and reports.
pub(crate) fn run(verb: &Run, global: &Global) -> Result<(), Failure> {
    let address = verb.database.address()?;
    let options = verb.load.options(verb.wanted);
    let array = verb.array.as_deref().map(Array::of).transpose()?;
    // An array that cannot be asked now is a mistake; later it is a gap in the report.
    if let Some(array) = &array {
        array.ask()?;
    }
    verb.html.as_deref().map_or(Ok(()), check_writable)?;
    let ask = || match &array {
        Some(array) => array.ask().map_err(|failure| failure.text().unwrap_or_default()),
        None => Err("no array was named (--array)".to_owned()),
    };
    let ask: tier0_bench::run::AskArray<'_> = &ask;
    let mut failed = Ok(());
    let (report, _) =
        watched(global, |watch| match run_load(&address, &options, array.is_some().then_some(ask), watch) {
            Err(BenchError::Ended { cause, report }) => {
                failed = Err(*cause);
                Ok(*report)
            }
            ended => ended,
        })?;
    print(&if verb.json { json(&report) } else { report::text(&report) })?;
    let written = verb.html.as_deref().map_or(Ok(()), |path| page::write(&report, path));
    failed?;
    written?;
    match report.ended_early {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Who answers for the array.
pub(super) enum Array {
    /// The server of an array file.
    File(Box<Addressee>),
    /// The server that listens at a control socket.
    Socket(PathBuf),
}

impl Array {
    /// Of an array file or a socket.
    pub(super) fn of(path: &Path) -> Result<Array, Failure> {
        let is_socket = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
        match is_socket {
            true => Ok(Array::Socket(path.to_owned())),
            false => Addressee::of(path).map(|server| Array::File(Box::new(server))),
        }
    }

    /// What its volumes did.
    pub(super) fn ask(&self) -> Result<IoReport, Failure> {
        let reply = match self {
            Array::File(server) => server.ask(&AdminRequest::Io)?,
            Array::Socket(path) => ask_socket(path, &AdminRequest::Io)?,
        };
        match reply {
            AdminReply::Io(report) => Ok(*report),
            _ => Err(misunderstood()),
        }
    }
}
