//! The state of a run at one moment, and the line that shows it.

use std::fmt;

use tier0_units::Nanos;

use super::table::format_iops;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the measurement, for a fixed time.
    WarmUp,
    /// Before the measurement, until it is steady.
    Settling,
    /// In the measurement.
    Measuring,
    /// After the measurement, reading back what was written.
    Sweeping,
}

/// The state of a run; its `Display` is a line without colour, at most 100 columns wide.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Where the run stands.
    pub phase: Phase,
    /// Since the run began.
    pub elapsed: Nanos,
    /// How much of the present phase is done, 0 to 1, where its end is known.
    pub done: Option<f64>,
    /// An estimate of what is left of the run, where its end is known.
    pub left: Option<Nanos>,
    /// Answered requests per second since the last progress.
    pub iops: f64,
    /// Millions of bytes per second since then.
    pub megabytes_per_s: f64,
    /// The mean latency of reads since then, where any were answered.
    pub read_latency: Option<Nanos>,
    /// The mean latency of writes since then, where any were answered.
    pub write_latency: Option<Nanos>,
    /// Failed requests so far.
    pub errors: u64,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase {
            Phase::WarmUp => "warming up",
            Phase::Settling => "settling",
            Phase::Measuring => "measuring",
            Phase::Sweeping => "checking",
        };
        write!(f, "{:>7}  {phase:<10}", self.elapsed.to_string())?;
        if let Some(done) = self.done {
            write!(f, " {:>3.0}%", done * 100.0)?;
        }
        write!(f, "  {:>9} IOPS  {:>7.1} MB/s", format_iops(self.iops), self.megabytes_per_s)?;
        for (name, latency) in [("read", self.read_latency), ("write", self.write_latency)] {
            if let Some(latency) = latency {
                write!(f, "  {name} {latency}")?;
            }
        }
        if self.errors > 0 {
            write!(f, "  {} failed", self.errors)?;
        }
        match self.left {
            Some(left) => write!(f, "  {} left", whole_seconds(left)),
            None => Ok(()),
        }
    }
}

fn whole_seconds(time: Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_known() {
        let mut progress = Progress {
            phase: Phase::Measuring,
            elapsed: Nanos::from_secs(12),
            done: Some(0.2),
            left: Some(Nanos::from_secs(48)),
            iops: 5037.0,
            megabytes_per_s: 41.26,
            read_latency: Some(Nanos::from_micros(12_300)),
            write_latency: None,
            errors: 0,
        };
        let line = "12.0 s  measuring   20%      5,037 IOPS     41.3 MB/s  read 12.3 ms  48 s left";
        assert_eq!(progress.to_string().trim_start(), line);
        progress.errors = 2;
        progress.left = Some(Nanos::from_secs(3700));
        assert!(progress.to_string().ends_with("2 failed  1 h 1 min left"));
    }
}
