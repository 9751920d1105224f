//! `tier0 lab profile`: I/Os per second under a latency limit, on anything that `tier0 load` can drive.

use clap::Args;
use serde::Serialize;
use tier0_lab::profile::{ProfilePlan, ProfileProgress, ProfileReport};
use tier0_lab::search::SearchPlan;
use tier0_units::Nanos;
use tier0_workload::spec::parse_duration;

use crate::cli::Global;
use crate::driving::{Shown, live_line};
use crate::failure::Failure;
use crate::output::{json, print, terminal_width, thousands};
use crate::requests::RequestOptions;
use crate::signals::Signals;
use crate::target::{Target, TargetOptions};

const EXAMPLES: &str = "\
Examples:
  tier0 lab profile modelled.toml --limit 20ms --read 70
  tier0 lab profile nbd://localhost/lun0 --limit 1ms
  tier0 lab profile /dev/sdb --limit 10ms --block 64KiB --time 10s --json

The number of outstanding requests is raised until the mean latency of reads or
of writes exceeds the limit. A modelled array is settled for each number: write
cache in balance, read caches warm, flash buffers full.";

/// Searches for the limit.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Profile {
    #[command(flatten)]
    target: TargetOptions,
    /// Latency limit, for the mean of reads and for the mean of writes
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = parse_duration)]
    limit: Nanos,
    /// Measure each number of outstanding requests at most this long [default: 5s; for a settled modelled array as many requests as
    /// in a study]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    time: Option<Nanos>,
    /// End a measurement early once the mean latencies are known to this precision
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    precision: f64,
    /// Run this long before each measurement [default: 1s; a modelled array is settled instead]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    warm_up: Option<Nanos>,
    /// Highest number of outstanding requests to try
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=65536))]
    outstanding_max: u32,
    #[command(flatten)]
    requests: RequestOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result for JSON.
#[derive(Serialize)]
struct Outcome<'a> {
    target: &'a str,
    /// What was asked for, in words.
    requests: String,
    #[serde(flatten)]
    report: &'a ProfileReport,
}

/// Searches.
pub(crate) fn run(verb: &Profile, global: &Global) -> Result<(), Failure> {
    if verb.limit == Nanos::ZERO {
        return Err(Failure::Input("a limit of zero is never kept; raise --limit".to_owned()));
    }
    let plan = verb.plan();
    let load = plan.load(1);
    load.validate().map_err(Failure::input)?;
    let signals = Signals::catch()?;
    let target = Target::open(&verb.target, &load)?;
    let bar = live_line(global.quiet == 0);
    let line = bar.clone();
    let show = move |progress: &ProfileProgress| line.set_prefix(words(progress));
    let profiled = target.profile(plan, &signals, Shown::on(&bar), show);
    bar.finish_and_clear();
    target.close();
    let (name, report) = (&verb.target.target, profiled?);
    print(&match verb.json {
        true => json(&Outcome { target: name, requests: verb.requests.words(), report: &report }),
        false => format!("{name}\n\n{}", tier0_lab::report::profile(&report, terminal_width())),
    })
}

impl Profile {
    fn plan(&self) -> ProfilePlan {
        let plan = ProfilePlan::new(self.requests.stream(), self.limit.as_millis_f64());
        ProfilePlan {
            search: SearchPlan { outstanding_max: self.outstanding_max, ..plan.search },
            warm_up: self.warm_up,
            probe_time: self.time,
            precision_percent: Some(self.precision),
            seed: self.requests.seed,
            ..plan
        }
    }
}

fn words(progress: &ProfileProgress) -> String {
    let last = progress.last.map_or(String::new(), |last| {
        let (iops, latency) = (thousands(last.iops), last.worse_latency_ms());
        format!("; {} gave {iops} IOPS at {latency:.2} ms", last.outstanding)
    });
    let left =
        progress.left.map_or(String::new(), |left| format!("; about {:.0} s left", left.as_secs_f64()));
    format!("probe {} with {} outstanding{last}{left} ", progress.done + 1, progress.outstanding)
}
