//! The demo's tables: the run second by second, and what was measured beside what is predicted.

use std::fmt::Write;

use tier0_units::{ByteCount, Nanos};
use tier0_workload::stats::{LoadReport, Phase, Progress, Summary};

use super::compare::Prediction;
use crate::output::{align_right, print, rendered, table, thousands};

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
    let mut table = table(&["the same array on", "volume", "IOPS", "read", "p99", "write", "p99", ""]);
    let mut add = |on: String, bytes: u64, report: &LoadReport, kind: &str| {
        let mean = |summary: &Option<Summary>| match summary {
            Some(summary) => Nanos(summary.latency_ns_mean as u64).to_string(),
            None => String::new(),
        };
        let p99 = |summary: &Option<Summary>| match summary {
            Some(summary) => Nanos(summary.latency_ns_p99).to_string(),
            None => String::new(),
        };
        table.add_row([
            on,
            rounded(bytes),
            thousands(report.all.iops),
            mean(&report.read),
            p99(&report.read),
            mean(&report.write),
            p99(&report.write),
            kind.to_owned(),
        ]);
    };
    add("these files".to_owned(), measured.target_bytes, measured, "measured through NBD");
    for prediction in predicted {
        let on = format!("4 x {} ({})", prediction.drive, prediction.class);
        add(on, prediction.volume_bytes, &prediction.report, "predicted");
    }
    align_right(&mut table, 1..7);
    let mut text = format!("{}\n\n", rendered(&table));
    writeln!(
        text,
        "Predicted: the same engine in virtual time on drives of the catalogue, without network and processors;\n\
         \"tier0 catalog show {}\" tells what is known of a drive, and what is assumed.",
        predicted.last().map_or("nvme", |prediction| &prediction.drive)
    )
    .expect("writing to a string cannot fail");
    text
}

/// A size for people: whole GB above 10 GB.
fn rounded(bytes: u64) -> String {
    const GB: u64 = 1_000_000_000;
    if bytes < 10 * GB { ByteCount(bytes).to_string() } else { format!("{} GB", bytes.div_ceil(GB)) }
}
