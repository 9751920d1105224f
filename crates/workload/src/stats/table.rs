//! A report as a table for people.

use std::fmt::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use tier0_units::{Nanos, counted};

use super::{EndedBy, LoadReport, Summary};

/// Requests per second with thousands separated: `12,345`, and with decimals below 100.
pub(super) fn format_iops(iops: f64) -> String {
    if iops < 100.0 {
        return format!("{iops:.1}");
    }
    let digits = format!("{iops:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl LoadReport {
    /// The figures of the run: a table of reads, writes and all, a row per stream where there are several,
    /// and whatever must be said about them. Ends with a line feed.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_header(["", "IOPS", "MB/s", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
        if self.streams.len() > 1 {
            for stream in &self.streams {
                add(&mut table, &format!("{} read", stream.name), stream.read.as_ref());
                add(&mut table, &format!("{} write", stream.name), stream.write.as_ref());
            }
        }
        add(&mut table, "read", self.read.as_ref());
        add(&mut table, "write", self.write.as_ref());
        add(&mut table, "all", Some(&self.all));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut text = table.trim_fmt();
        text.push_str("\n\n");
        self.notes(&mut text).expect("writing to a string cannot fail");
        text
    }

    fn notes(&self, text: &mut String) -> fmt::Result {
        let ended_by = match self.ended_by {
            EndedBy::Time => "time limit reached",
            EndedBy::Ios => "request limit reached",
            EndedBy::Bytes => "byte limit reached",
            EndedBy::Precision => "precision reached",
            EndedBy::Stopped => "stopped",
            EndedBy::Standstill => "the target completes requests in zero time",
            EndedBy::Overload => "the target cannot sustain the rate",
            EndedBy::Errors => "too many requests failed",
            EndedBy::Mismatch => "data mismatch",
        };
        let measured = Nanos::from_secs_f64(self.measured_s);
        write!(
            text,
            "{}, {:.1} MB in {measured}",
            counted(self.all.ios, "request"),
            self.all.bytes as f64 / 1e6
        )?;
        // Without a warm-up, the first request still takes its while to be made.
        if self.warm_up_s > 1e-3 {
            write!(text, " after a warm-up of {}", Nanos::from_secs_f64(self.warm_up_s))?;
        }
        writeln!(text, "; ended: {ended_by}")?;
        if let Some(steady) = self.steady.filter(|steady| !steady.reached) {
            let waited = Nanos::from_secs_f64(steady.waited_s);
            writeln!(text, "no steady state after {waited}; the figures may still drift")?;
        }
        if let Some(transient_s) =
            self.transient_s.filter(|transient_s| *transient_s > self.measured_s / 10.0)
        {
            let transient = Nanos::from_secs_f64(transient_s);
            writeln!(text, "the first {transient} look like warm-up; increase warm_up by that")?;
        }
        if let Some(rate) = self.rate.filter(|rate| rate.is_behind) {
            let (asked, answered) = (format_iops(rate.asked_iops), format_iops(rate.answered_iops));
            let waiting = counted(rate.waiting, "request");
            writeln!(
                text,
                "the target fell behind: asked {asked} IOPS, answered {answered} IOPS, {waiting} waiting at the end"
            )?;
        }
        let failed = self.errors.reads + self.errors.writes;
        if failed > 0 {
            let first = self.errors.first.as_deref().unwrap_or("reason unknown");
            writeln!(text, "{} failed, the first: {first}", counted(failed, "request"))?;
        }
        let Some(verify) = &self.verify else { return Ok(()) };
        match &verify.first {
            Some(first) => writeln!(
                text,
                "{} read back wrong, the first: {first}",
                counted(verify.sectors_wrong, "sector")
            ),
            None => writeln!(text, "{} verified", counted(verify.sectors_checked, "sector")),
        }
    }
}

fn add(table: &mut Table, name: &str, summary: Option<&Summary>) {
    let Some(summary) = summary else { return };
    let latency = |ns: u64| Nanos(ns).to_string();
    table.add_row([
        name.to_owned(),
        format_iops(summary.iops),
        format!("{:.1}", summary.megabytes_per_s),
        latency(summary.latency_ns_mean.round() as u64),
        latency(summary.latency_ns_p50),
        latency(summary.latency_ns_p90),
        latency(summary.latency_ns_p99),
        latency(summary.latency_ns_p99_9),
        latency(summary.latency_ns_p99_99),
        latency(summary.latency_ns_max),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (iops, text) in [(0.0, "0.0"), (99.94, "99.9"), (999.6, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(format_iops(iops), text);
        }
    }
}
