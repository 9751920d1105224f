//! `tier0 bench prepare`: creates and loads the tables of a load.

use clap::Args;
use tier0_bench::prepare::{PrepareOptions, Prepared, prepare, remove};
use tier0_units::{ByteCount, counted};

use super::scale::Size;
use super::{Database, watched};
use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{json, print};

const EXAMPLES: &str = "\
Examples:
  tier0 bench prepare --dsn postgres://localhost/bench --warehouses 10
  tier0 bench prepare --dsn host=/run/postgresql --warehouses 100 --jobs 4
      through a unix socket, with four connections; the database has the
      user's name unless --dsn or PGDATABASE says otherwise
  tier0 bench prepare --dsn postgres://localhost/trades --load brokerage \
      --customers 1000
      a brokerage database (in the form of TPC-E), about 1 GB
  tier0 bench prepare --dsn postgres://localhost/dss --load decision-support \
      --scale-factor 1
      a decision-support database (in the form of TPC-H), about 1.7 GB
  tier0 bench prepare --dsn postgres://localhost/bench --drop
      remove the tables that an earlier prepare created

A warehouse takes about 110 MB. Rows are loaded in parts, each in one
transaction: after Ctrl-C or a crash, the same command loads the rest. A higher
number of warehouses adds some; the size of other loads is fixed. A database has
one load, and must exist; tables of other programs are never changed.";

/// What to load.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Prepare {
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    size: Size,
    /// Connections that load at the same time
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,
    /// Seed of the random rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Remove the tables of an earlier prepare first, of whatever load; without a size, only remove them
    #[arg(long)]
    drop: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Loads.
pub(crate) fn run(verb: &Prepare, global: &Global) -> Result<(), Failure> {
    let address = verb.database.address()?;
    if verb.drop {
        let (found, signals) = watched(global, |watch| remove(&address, watch))?;
        let text = match found {
            Some(load) => format!("removed the {load} tables of the {address}"),
            None => format!("the {address} has no tables of a load"),
        };
        if !verb.size.is_given() {
            return print(&match verb.json {
                true => json(&serde_json::json!({ "result": "done", "text": text })),
                false => format!("{text}\n"),
            });
        }
        if signals.raised() {
            return Err(Failure::Interrupted);
        }
    }
    let options = PrepareOptions { scale: verb.size.scale(false)?, jobs: verb.jobs, seed: verb.seed };
    let (prepared, _) = watched(global, |watch| prepare(&address, &options, watch))?;
    print(&match verb.json {
        true => json(&prepared),
        false => words(&prepared),
    })
}

fn words(prepared: &Prepared) -> String {
    let Prepared { database, scale, parts, parts_loaded, sent_bytes, seconds, size_bytes, workload } =
        prepared;
    let size = ByteCount(*size_bytes);
    match *parts_loaded {
        0 => format!(
            "the {database} has {workload} of {scale} ({size} with indexes); nothing was left to load\n"
        ),
        loaded => format!(
            "loaded {} in {seconds:.1} s ({:.1} MB/s of rows); the {database} has {workload} of {scale}, {size} with indexes\n",
            if loaded == *parts {
                "everything".to_owned()
            } else {
                counted(u64::from(loaded), "missing part")
            },
            *sent_bytes as f64 / 1e6 / seconds
        ),
    }
}
