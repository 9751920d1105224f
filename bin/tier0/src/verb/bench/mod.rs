//! `tier0 bench`: real transactions on a real database.

mod check;
mod compare;
mod load;
mod page;
mod predict;
mod prepare;
mod report;
mod run;
mod scale;
mod scene;

use clap::{Args, Subcommand};
use tier0_bench::BenchError;
use tier0_bench::address::Address;
use tier0_bench::watch::Watch;

use crate::cli::Global;
use crate::failure::Failure;
use crate::logging;
use crate::signals::Signals;

const EXAMPLES: &str = "\
Examples:
  tier0 bench prepare --dsn postgres://localhost/bench --warehouses 10
      load an order-entry database (in the form of TPC-C), about 1.1 GB
  tier0 bench run --dsn postgres://localhost/bench --users 16
      run its transactions for a minute and report
  tier0 bench check --dsn postgres://localhost/bench
      test its consistency, for example after a crash
  tier0 bench predict my-run.toml --array modelled.toml > prediction.json
      predict a run before it is done; compare says how wrong it was
  tier0 bench scene ./scene
      array, file system, PostgreSQL, load and check in one directory, then
      removed; as root

The database is named by --dsn, by TIER0_DSN, or by PGHOST, PGPORT, PGUSER,
PGPASSWORD and PGDATABASE. Connections are not encrypted. A password in --dsn is
visible to other users of this machine: use PGPASSWORD. See docs/bench.md.";

/// What to do.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Bench {
    /// Create and load the tables of a load; continue an interrupted load
    Prepare(prepare::Prepare),
    /// Run transactions and report rates, response times and I/O per transaction
    Run(Box<run::Run>),
    /// Test the consistency conditions of the database
    Check(check::Check),
    /// Predict what a run will measure, and seal the prediction
    Predict(predict::Predict),
    /// Compare two reports of runs, or a prediction with the run
    Compare(compare::Compare),
    /// Set up array, file system and PostgreSQL in a directory, run, check, and remove all of it
    Scene(Box<scene::Scene>),
}

/// Which database.
#[derive(Args, Debug)]
pub(super) struct Database {
    /// The PostgreSQL database: postgres://USER@HOST:PORT/DATABASE or "host=... user=... dbname=..." [default: TIER0_DSN, or
    /// PGHOST, PGPORT, PGUSER, PGDATABASE]
    #[arg(long, value_name = "DSN")]
    dsn: Option<String>,
}

impl Database {
    fn address(&self) -> Result<Address, Failure> {
        Ok(Address::resolve(self.dsn.as_deref(), |name| std::env::var(name).ok())?)
    }
}

/// Does it.
pub(crate) fn run(verb: &Bench, global: &Global) -> Result<(), Failure> {
    match verb {
        Bench::Prepare(prepare) => prepare::run(prepare, global),
        Bench::Run(run) => run::run(run, global),
        Bench::Check(check) => check::run(check, global),
        Bench::Predict(predict) => predict::run(predict, global),
        Bench::Compare(compare) => compare::run(compare),
        Bench::Scene(scene) => scene::run(scene, global),
    }
}

/// Does something that takes long: with progress on stderr, until Ctrl-C.
fn watched<T>(
    global: &Global,
    work: impl FnOnce(Watch<'_>) -> Result<T, BenchError>,
) -> Result<(T, Signals), Failure> {
    let signals = Signals::catch()?;
    let is_quiet = global.quiet > 0;
    let say = |text: &str| {
        if !is_quiet {
            logging::say(text);
        }
    };
    let done = work(Watch { say: &say, is_over: &|| signals.raised() })?;
    Ok((done, signals))
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        match error {
            BenchError::Stopped => Failure::Interrupted,
            error if error.is_input() => Failure::input(error),
            error => Failure::run(error),
        }
    }
}
