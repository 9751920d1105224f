//! `tier0 lab profile`: I/Os per second under a latency limit, on anything that `tier0 load` can drive.

use clap::Args;
use serde::Serialize;
use tier0_lab::profile::{ProfilePlan, ProfileProgress, ProfileReport};
use tier0_lab::search::SearchPlan;
use tier0_units::Nanos;
use tier0_workload::spec::{Arrival, LoadSpec, RunLimits, StreamSpec, parse_duration};

use crate::cli::Global;
use crate::driving::live_line;
use crate::failure::Failure;
use crate::output::{align_right, json, print, rendered, table, thousands};
use crate::requests::RequestOptions;
use crate::target::{Target, TargetOptions};

const EXAMPLES: &str = "\
Examples:
  tier0 lab profile modelled.toml --limit 20ms --read 70
  tier0 lab profile nbd://localhost/lun0 --limit 1ms
  tier0 lab profile /dev/sdb --limit 10ms --block 64KiB --time 10s --json

More and more requests are kept outstanding until the mean latency of the reads
or of the writes passes the limit.";

/// Searches for the limit.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Profile {
    #[command(flatten)]
    target: TargetOptions,
    /// The greatest mean latency of reads and of writes
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = parse_duration)]
    limit: Nanos,
    /// Measure each number of outstanding requests at most this long
    #[arg(short, long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    time: Nanos,
    /// End a measurement early once the mean latencies are known to so many percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    precision: f64,
    /// Run this long before each measurement
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    warm_up: Nanos,
    /// The most outstanding requests to try
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
    #[serde(flatten)]
    report: &'a ProfileReport,
}

/// Searches.
pub(crate) fn run(verb: &Profile, global: &Global) -> Result<(), Failure> {
    if verb.limit == Nanos::ZERO {
        return Err(Failure::Input("a limit of zero is never kept; raise --limit".to_owned()));
    }
    let load = verb.one_probe();
    load.validate().map_err(Failure::input)?;
    let target = Target::open(&verb.target, &load)?;
    let bar = live_line(global.quiet == 0);
    let shown = bar.clone();
    let profiled = target.profile(verb.plan(), move |progress| shown.set_message(line(progress)));
    bar.finish_and_clear();
    target.close();
    let (name, report) = (&verb.target.target, profiled?);
    print(&if verb.json { json(&Outcome { target: name, report: &report }) } else { text(name, &report) })
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

    /// The load of one probe, to see what is wrong with it and whether it writes.
    fn one_probe(&self) -> LoadSpec {
        let stream = StreamSpec { arrival: Arrival::queue_depth(1), ..self.requests.stream() };
        let limits = RunLimits { precision_percent: Some(self.precision), ..RunLimits::time(self.time) };
        LoadSpec { seed: self.requests.seed, warm_up: self.warm_up, ..LoadSpec::single(stream, limits) }
    }
}

fn line(progress: &ProfileProgress) -> String {
    let last = progress.last.map_or(String::new(), |last| {
        let (iops, latency) = (thousands(last.iops), last.worse_latency_ms());
        format!("; {} gave {iops} IOPS at {latency:.2} ms", last.outstanding)
    });
    let left = progress.left.as_secs_f64();
    format!(
        "probe {} with {} outstanding{last}; about {left:.0} s left",
        progress.done + 1,
        progress.outstanding
    )
}

fn text(name: &str, report: &ProfileReport) -> String {
    let mut table = table(&["outstanding", "IOPS", "MB/s", "read ms", "write ms", ""]);
    let latency = |ms: Option<f64>| ms.map_or(String::new(), |ms| format!("{ms:.3}"));
    for probe in &report.found.probes {
        let passed = if probe.worse_latency_ms() > report.latency_limit_ms { "above the limit" } else { "" };
        table.add_row([
            probe.outstanding.to_string(),
            thousands(probe.iops),
            format!("{:.1}", probe.megabytes_per_s),
            latency(probe.read_latency_ms),
            latency(probe.write_latency_ms),
            passed.to_owned(),
        ]);
    }
    align_right(&mut table, 0..5);
    format!("{name}\n\n{}\n\n{}\n", rendered(&table), report.sentence())
}
