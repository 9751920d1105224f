//! `tier0 load`: drives a load against a target and reports throughput and response times.

mod histogram;
mod options;

use clap::Args;
use serde::Serialize;
use tier0_workload::stats::LoadReport;

use self::options::LoadOptions;
use crate::cli::Global;
use crate::driving::{Shown, live_line, verdict};
use crate::failure::Failure;
use crate::output::{json, print};
use crate::signals::Signals;
use crate::target::{Target, TargetOptions};
use crate::twin::{ArrayState, Settling};

const EXAMPLES: &str = "\
Examples:
  tier0 load nbd://localhost/lun0 --queue-depth 32 --time 30s
      random reads from an NBD export
  tier0 load 'nbd+unix:///lun0?socket=tier0.sock' --read 70 --overwrite
      through a unix socket, with writes
  tier0 load /dev/sdb --block 64KiB --pattern sequential
      a block device
  tier0 load disk.img --read 50 --verify --overwrite --ios 100000
      a file, every block checked
  tier0 load nbd://localhost/lun0 --rate 5000 --warm-up 10s --json
      an open loop, the report as JSON
  tier0 load modelled.toml --read 70 --users 64
      an array of modelled drives, in virtual time; nothing real is touched.
      Without --warm-up its caches are settled before the measurement
  tier0 load nbd://localhost/lun0 --load oltp.toml --overwrite
      a load from a load file

A load file is TOML: the concurrent streams, and the limits of the run.
docs/load-file.md lists all fields and their defaults.
  warm_up = \"5s\"
  limits = { time = \"60s\" }
  [[stream]]
  name = \"oltp\"
  block = \"8KiB:90 64KiB:10\"
  read_percent = 70
  pattern = \"hot-cold:80/20\"
  arrival = { closed_loop = { users = 32 } }
  [[stream]]
  name = \"log\"
  block = \"4KiB\"
  read_percent = 0
  pattern = \"sequential\"
  start = \"90%\"
  durable = true";

/// Drives a load and reports throughput and response times.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Load {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    options: LoadOptions,
    /// Also print a latency histogram
    #[arg(long, conflicts_with = "json")]
    histogram: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result for JSON.
#[derive(Serialize)]
struct Outcome<'a> {
    target: &'a str,
    #[serde(flatten)]
    report: &'a LoadReport,
    /// Of a modelled array: whether the figures are of a steady state.
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<&'a ArrayState>,
}

/// Runs the load.
pub(crate) fn run(verb: &Load, global: &Global) -> Result<(), Failure> {
    let (load, settles) = verb.options.load()?;
    let signals = Signals::catch()?;
    let target = Target::open(&verb.target, &load)?;
    let bar = live_line(global.quiet == 0);
    let settling = if settles { Settling::Whole } else { Settling::Not };
    let ran = target.run(load, settling, &signals, Shown::on(&bar));
    bar.finish_and_clear();
    target.close();
    let (name, (report, state)) = (&verb.target.target, ran?);
    if verb.json {
        print(&json(&Outcome { target: name, report: &report, array: state.as_ref() }))?;
    } else {
        let histogram = if verb.histogram { histogram::bars(&report.all.histogram) } else { String::new() };
        let steady = state.map_or(String::new(), |state| state.sentence() + "\n");
        print(&format!("{name}\n{}{steady}{histogram}", report.table()))?;
    }
    verdict(&report)
}
