//! The options that say what requests of a load look like, shared by `load` and `lab profile`.

use clap::Args;
use tier0_units::ByteCount;
use tier0_workload::spec::{BlockMix, Pattern, Portion, StreamSpec};

/// What to ask for.
#[derive(Args, Debug)]
pub(crate) struct RequestOptions {
    /// Block size, or a mix of sizes with weights, as in "8KiB:70 64KiB:30"
    #[arg(short, long, value_name = "MIX", default_value = "8KiB", help_heading = "Requests")]
    block: BlockMix,
    /// Percentage of reads
    #[arg(short, long, value_name = "PERCENT", default_value_t = 100.0, value_parser = percent, help_heading = "Requests")]
    read: f64,
    /// Access pattern: random, sequential, zipf:THETA, or hot-cold:ACCESSES/SPACE in percent
    #[arg(short, long, value_name = "PATTERN", default_value = "random", help_heading = "Requests")]
    pattern: Pattern,
    /// Start of the range, as a size or a percentage of the target
    #[arg(long, value_name = "PORTION", default_value = "0B", help_heading = "Requests")]
    start: Portion,
    /// Length of the range [default: to the target's end]
    #[arg(long, value_name = "PORTION", help_heading = "Requests")]
    length: Option<Portion>,
    /// Alignment of the requests [default: their size]
    #[arg(long, value_name = "SIZE", help_heading = "Requests")]
    alignment: Option<ByteCount>,
    /// Acknowledge writes only when they are durable (FUA, forced unit access)
    #[arg(long, help_heading = "Requests")]
    durable: bool,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Requests")]
    pub(crate) seed: u64,
}

/// Reads a percentage.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "it is no percentage; use a number from 0 to 100".to_owned())
}

impl RequestOptions {
    /// What is asked for, in words.
    pub(crate) fn words(&self) -> String {
        let durable = if self.durable { ", durable writes" } else { "" };
        format!("{}, {} % reads, {}{durable}", self.block, self.read, self.pattern)
    }

    /// The stream, without its arrivals.
    pub(crate) fn stream(&self) -> StreamSpec {
        StreamSpec {
            block: self.block.clone(),
            read_percent: self.read,
            pattern: self.pattern,
            start: self.start,
            length: self.length,
            alignment: self.alignment,
            durable: self.durable,
            ..StreamSpec::default()
        }
    }
}
