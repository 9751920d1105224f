//! The demo's tables: the run second by second, and what was measured beside what is predicted.

use std::fmt::Write;

use tier0_units::{ByteCount, Nanos};
use tier0_workload::stats::{LoadReport, Phase, Progress, Summary};

use super::compare::Prediction;
use super::{COLUMNS, paragraph};
use crate::output::{print, thousands};

/// One row per second while a run goes on.
pub(super) struct LiveTable {
    shown: bool,
    started: bool,
}

impl LiveTable {
    /// Prints rows only if `shown`.
    pub(super) fn new(shown: bool) -> LiveTable {
        LiveTable { shown, started: false }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, progress: &Progress) {
        if !self.shown {
            return;
        }
        let mut text = String::new();
        if !self.started {
            self.started = true;
            text += &line(["second", "IOPS", "MB/s", "read", "write", ""]);
        }
        let latency = |mean: Option<Nanos>| mean.map_or(String::new(), |mean| mean.to_string());
        let phase = match progress.phase {
            Phase::WarmUp => "warm-up",
            Phase::Settling => "settling",
            Phase::Measuring => "",
            Phase::Sweeping => "checking all that was written",
        };
        text += &line([
            &format!("{:.0}", progress.elapsed.as_secs_f64()),
            &thousands(progress.iops),
            &format!("{:.0}", progress.megabytes_per_s),
            &latency(progress.read_latency),
            &latency(progress.write_latency),
            phase,
        ]);
        // Where stdout is closed, the tables that follow say so.
        let _ = print(&text);
    }
}

fn line(cells: [&str; 6]) -> String {
    let [second, iops, megabytes, read, write, phase] = cells;
    let line = format!(" {second:>6}  {iops:>9}  {megabytes:>6}  {read:>8}  {write:>8}  {phase}");
    format!("{}\n", line.trim_end())
}

/// One sentence on what verification saw.
pub(super) fn verified(report: &LoadReport) -> String {
    let Some(verify) = &report.verify else { return String::new() };
    let sectors = thousands(verify.sectors_checked as f64);
    format!("\n{sectors} sectors were read back and checked: none was wrong.\n")
}

/// What was measured, and under it what each kind of drive is predicted to do.
pub(super) fn side_by_side(measured: &LoadReport, predicted: &[Prediction]) -> String {
    let mut rows = row(["the same array on", "volume", "IOPS", "read", "p99", "write", "p99"]);
    writeln!(rows, "{}", "─".repeat(COLUMNS - 1)).expect("writing to a string cannot fail");
    let mut add = |on: &str, bytes: u64, report: &LoadReport| {
        let mean = |summary: &Option<Summary>| match summary {
            Some(summary) => Nanos(summary.latency_ns_mean as u64).to_string(),
            None => String::new(),
        };
        let p99 = |summary: &Option<Summary>| match summary {
            Some(summary) => Nanos(summary.latency_ns_p99).to_string(),
            None => String::new(),
        };
        rows += &row([
            on,
            &rounded(bytes),
            &thousands(report.all.iops),
            &mean(&report.read),
            &p99(&report.read),
            &mean(&report.write),
            &p99(&report.write),
        ]);
    };
    add("these files", measured.target_bytes, measured);
    for prediction in predicted {
        add(&format!("4 x {}", prediction.drive), prediction.volume_bytes, &prediction.report);
    }
    let Some(last) = predicted.last() else {
        return format!("{rows}\n{}\n", paragraph("Measured through NBD."));
    };
    let classes: Vec<String> =
        predicted.iter().map(|known| format!("{} ({})", known.drive, known.class)).collect();
    let text = format!(
        "These files: measured through NBD. The others: predicted, with the same engine in virtual time on drives of the \
         catalogue, without network and processors: {}. \"tier0 catalog show {}\" tells what is known of a drive, and what \
         is assumed.",
        classes.join(", "),
        last.drive
    );
    format!("{rows}\n{}\n", paragraph(&text))
}

fn row(cells: [&str; 7]) -> String {
    let [on, volume, iops, read, read_p99, write, write_p99] = cells;
    format!(" {on:<22} {volume:>8} {iops:>9} {read:>8} {read_p99:>8} {write:>8} {write_p99:>8}\n")
}

/// A size for people: whole GB above 10 GB, whole TB above 10 TB.
fn rounded(bytes: u64) -> String {
    const GB: u64 = 1_000_000_000;
    const TB: u64 = 1000 * GB;
    match bytes {
        0..10_000_000_000 => ByteCount(bytes).to_string(),
        10_000_000_000..10_000_000_000_000 => format!("{} GB", bytes.div_ceil(GB)),
        _ => format!("{} TB", bytes.div_ceil(TB)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows were 82 columns wide, and a terminal of 80 cut them.
    #[test]
    fn rows_fit_a_terminal() {
        let widest =
            ["4 x sas-15k-146gb-sff", "9999 GB", "1,000,000", "99.9 ms", "99.9 ms", "99.9 ms", "99.9 ms"];
        let live = ["1000", "1,000,000", "10000", "99.9 ms", "99.9 ms", "checking all that was written"];
        for text in [row(widest), line(live)] {
            assert!(text.trim_end().chars().count() < COLUMNS, "{text}");
        }
    }
}
