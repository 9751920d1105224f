//! The options that describe a load, and the load that they describe.

use std::path::PathBuf;

use clap::Args;
use tier0_toml::Misread;
use tier0_units::{ByteCount, Nanos};
use tier0_workload::spec::{
    Arrival, ClosedLoop, LoadSpec, OpenLoop, RunLimits, StreamSpec, ThinkTime, VerifySpec, parse_duration,
};
use tier0_workload::stats::SteadyCriterion;

use crate::failure::Failure;
use crate::requests::RequestOptions;
use crate::text_file;

/// What to ask for, how often, and for how long.
#[derive(Args, Debug)]
pub(crate) struct LoadOptions {
    /// A load description (TOML) instead of the options below
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "block", "read", "pattern", "users", "queue_depth", "think_time", "rate", "outstanding", "start", "length",
        "alignment", "durable", "time", "ios", "bytes", "precision", "warm_up", "steady", "verify", "fresh", "seed",
        "interval", "errors_max",
    ])]
    load: Option<PathBuf>,

    #[command(flatten)]
    requests: RequestOptions,

    /// Closed loop: users, each waiting for its requests to complete
    #[arg(short, long, value_name = "N", default_value_t = 1, help_heading = "Arrival")]
    users: u32,
    /// Closed loop: requests that each user keeps outstanding
    #[arg(short = 'd', long, value_name = "N", default_value_t = 1, help_heading = "Arrival")]
    queue_depth: u32,
    /// Closed loop: pause before the next request, as in 10ms or exponential:10ms
    #[arg(long, value_name = "TIME", default_value = "none", help_heading = "Arrival")]
    think_time: ThinkTime,
    /// Open loop instead: requests per second on average, whatever the target does (Poisson)
    #[arg(long, value_name = "IOPS", value_parser = iops, help_heading = "Arrival",
          conflicts_with_all = ["users", "queue_depth", "think_time"])]
    rate: Option<f64>,
    /// Open loop: requests at the target at once; later ones wait, and their wait counts
    #[arg(long, value_name = "N", requires = "rate", help_heading = "Arrival")]
    outstanding: Option<u32>,

    /// Measure this long [default: 60s, without another limit]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    time: Option<Nanos>,
    /// Number of requests to measure
    #[arg(long, value_name = "N", help_heading = "Limits")]
    ios: Option<u64>,
    /// Number of bytes to measure
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    bytes: Option<ByteCount>,
    /// End early once the mean latencies are known to this precision (95 % confidence)
    #[arg(long, value_name = "PERCENT", help_heading = "Limits")]
    precision: Option<f64>,
    /// Failed requests to tolerate before the run ends
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Limits")]
    errors_max: u64,
    /// Run this long before the measurement begins [default: 0s; a modelled array is settled instead]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    warm_up: Option<Nanos>,
    /// Begin the measurement once the latency is steady, at most a minute later
    #[arg(long, help_heading = "Limits")]
    steady: bool,
    /// Length of one row of the series in the JSON report
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration,
          help_heading = "Limits")]
    interval: Nanos,

    /// Write blocks that carry address, version and seed; check every read, and all written blocks at the end
    #[arg(long, help_heading = "Verification")]
    verify: bool,
    /// Expect zeros in blocks that this run has not written yet
    #[arg(long, requires = "verify", help_heading = "Verification")]
    fresh: bool,
}

/// Reads requests per second.
fn iops(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "it is no number; use requests per second without a unit, as in 500".to_owned())
}

impl LoadOptions {
    /// The load, checked as far as it can be without its target, and whether a modelled array is to be settled for it: unless a
    /// warm-up is given, or data is checked, of which settling would write some.
    pub(super) fn load(&self) -> Result<(LoadSpec, bool), Failure> {
        let load = match &self.load {
            Some(path) => read_file(path)?,
            None => self.spec(),
        };
        load.validate().map_err(Failure::input)?;
        let says_how = self.warm_up.is_some() || load.warm_up > Nanos::ZERO || load.steady.is_some();
        let settles = !says_how && load.verify.is_none();
        Ok((load, settles))
    }

    fn spec(&self) -> LoadSpec {
        let stream = StreamSpec { arrival: self.arrival(), ..self.requests.stream() };
        LoadSpec {
            seed: self.requests.seed,
            warm_up: self.warm_up.unwrap_or(Nanos::ZERO),
            steady: self.steady.then(SteadyCriterion::default),
            interval: self.interval,
            verify: self.verify.then_some(VerifySpec { fresh: self.fresh, sweep: true }),
            ..LoadSpec::single(stream, self.limits())
        }
    }

    fn arrival(&self) -> Arrival {
        match self.rate {
            None => Arrival::ClosedLoop(ClosedLoop {
                users: self.users,
                queue_depth: self.queue_depth,
                think_time: self.think_time,
            }),
            Some(rate) => {
                let open = OpenLoop::at(rate);
                let outstanding_max = self.outstanding.unwrap_or(open.outstanding_max);
                Arrival::OpenLoop(OpenLoop { outstanding_max, ..open })
            }
        }
    }

    fn limits(&self) -> RunLimits {
        let any = self.time.is_some() || self.ios.is_some() || self.bytes.is_some();
        RunLimits {
            time: if any { self.time } else { RunLimits::default().time },
            ios: self.ios,
            bytes: self.bytes,
            precision_percent: self.precision,
            errors_max: self.errors_max,
        }
    }
}

fn read_file(path: &std::path::Path) -> Result<LoadSpec, Failure> {
    let shown = path.display();
    let text = text_file::read(path)?;
    tier0_toml::read(&text).map_err(|Misread { line, field, fact }| {
        Failure::Input(format!("{shown}, line {line}, {field}: {fact}; docs/load-file.md lists all fields"))
    })
}
