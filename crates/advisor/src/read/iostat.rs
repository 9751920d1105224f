//! `iostat -x`: old and new sets of columns, several reports. The first report of several is since boot and is left out.

use std::io::BufRead;

use super::error::ReadError;
use super::lines::Lines;
use super::number::number;
use super::sar::timed;
use super::time::seconds_of;
use crate::evidence::{Collector, Counting, DevicePoint, Format, HostPoint, Sample};

/// The most devices of a report.
const DEVICES_MAX: usize = 65_536;
/// Sectors of `rsec/s` and `wsec/s`, bytes.
const SECTOR: f64 = 512.0;
/// Seconds.
const DAY: f64 = 86_400.0;

/// Whether a line is the header of devices.
pub(super) fn is_header(line: &str) -> bool {
    let begins = line.starts_with("Device");
    // `-xs` has one row of sums: tps, kB/s, await.
    let is_told_apart = line.contains("r/s") && line.contains("w/s");
    begins && line.contains("%util") && (is_told_apart || line.contains("tps"))
}

#[derive(Default)]
struct Report {
    at: Option<f64>,
    host: Option<HostPoint>,
    devices: Vec<DevicePoint>,
}

impl Report {
    fn is_empty(&self) -> bool {
        self.host.is_none() && self.devices.is_empty()
    }
}

/// Reads it.
pub(super) fn read(file: &str, input: &mut dyn BufRead, to: &mut Collector) -> Result<(), ReadError> {
    let mut lines = Lines::new(file, input);
    let mut report = Report::default();
    let mut reports = 0_u64;
    let mut first: Option<Report> = None;
    let mut before: Option<f64> = None;
    let mut cores: Option<f64> = None;
    let mut columns: Vec<String> = Vec::new();
    let mut expects_cpu = false;
    // Ends a report: the first one is kept until there is a second.
    let mut end = |report: &mut Report, before: &mut Option<f64>, to: &mut Collector, cores: Option<f64>| {
        if report.is_empty() {
            return;
        }
        let done = std::mem::take(report);
        reports += 1;
        if reports == 1 {
            *before = done.at;
            first = Some(done);
            return;
        }
        first = None;
        deliver(done, before, cores, to);
    };
    while let Some(line) = lines.next()? {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with("Linux") && line.contains("CPU)") {
            cores = cores_of(&line);
        } else if line.starts_with("avg-cpu") {
            // The processors begin a report, unless a time did.
            if report.host.is_some() || !report.devices.is_empty() {
                end(&mut report, &mut before, to, cores);
            }
            columns = words.iter().skip(1).map(|word| (*word).to_owned()).collect();
            expects_cpu = true;
        } else if expects_cpu {
            expects_cpu = false;
            report.host = Some(processors(&columns, &words, &lines)?);
        } else if line.starts_with("Device") {
            if !is_header(&line) {
                return Err(lines.wrong("these are not the columns of -x; run iostat -x"));
            }
            if !report.devices.is_empty() {
                end(&mut report, &mut before, to, cores);
            }
            columns = words.iter().skip(1).map(|word| (*word).to_owned()).collect();
        } else if words.is_empty() {
            if !report.devices.is_empty() {
                columns.clear();
            }
        } else if let Some(at) = time_of(&line) {
            end(&mut report, &mut before, to, cores);
            report.at = Some(at);
        } else if columns.last().is_some_and(|column| column == "%util") {
            if report.devices.len() >= DEVICES_MAX {
                return Err(lines.wrong(format!("a report has more than {DEVICES_MAX} devices; name fewer")));
            }
            report.devices.push(device(&columns, &words, &lines)?);
        }
    }
    end(&mut report, &mut before, to, cores);
    if let Some(only) = first {
        let mut sample = sample_of(only, cores);
        sample.notes.push(
            "iostat: one report only, which is the mean since boot; run \"iostat -x 10\" during the load"
                .to_owned(),
        );
        to.add(sample);
        return Ok(());
    }
    if reports == 0 {
        return Err(lines.wrong("no report was found; run \"iostat -x 10\" and keep what it prints"));
    }
    Ok(())
}

/// The time of a report: a date and a time, or in old versions `Time: 03:49:57 PM`.
fn time_of(line: &str) -> Option<f64> {
    match line.strip_prefix("Time:") {
        Some(time) => timed(time).filter(|(_, rest)| rest.is_empty()).map(|(at, _)| at),
        None => seconds_of(line),
    }
}

fn deliver(report: Report, before: &mut Option<f64>, cores: Option<f64>, to: &mut Collector) {
    let at = report.at;
    let mut sample = sample_of(report, cores);
    let apart = at.zip(*before).map(|(at, before)| at - before);
    // Times without a date pass midnight.
    let apart = apart.map(|apart| if apart < 0.0 { apart + DAY } else { apart });
    sample.seconds = apart.filter(|seconds| *seconds > 0.0);
    *before = at.or(*before);
    to.add(sample);
}

fn sample_of(report: Report, cores: Option<f64>) -> Sample {
    let mut sample = Sample::new(Format::Iostat, Counting::Interval);
    (sample.host, sample.devices, sample.cores) = (report.host, report.devices, cores);
    sample
}

/// `(4 CPU)` at the end of the first line.
pub(super) fn cores_of(line: &str) -> Option<f64> {
    let (_, count) = line.rsplit_once('(')?;
    number(count.split_whitespace().next()?, false).filter(|cores| *cores >= 1.0)
}

fn figure(word: &str, column: &str, lines: &Lines<'_>) -> Result<f64, ReadError> {
    number(word, true).filter(|value| *value >= 0.0).ok_or_else(|| {
        let short: String = word.chars().take(40).collect();
        lines.wrong(format!("{short:?} in the column {column} is not a number; give the whole report"))
    })
}

fn processors(columns: &[String], words: &[&str], lines: &Lines<'_>) -> Result<HostPoint, ReadError> {
    if words.len() != columns.len() {
        return Err(lines.wrong("the line of processors is cut; give the whole report"));
    }
    let mut host = HostPoint::default();
    let mut idle = None;
    for (column, word) in columns.iter().zip(words) {
        let share = figure(word, column, lines)? / 100.0;
        match column.as_str() {
            "%idle" => idle = Some(share),
            "%iowait" => host.io_wait = Some(share),
            _ => {}
        }
    }
    host.busy = idle.map(|idle| (1.0 - idle - host.io_wait.unwrap_or(0.0)).clamp(0.0, 1.0));
    Ok(host)
}

fn device(columns: &[String], words: &[&str], lines: &Lines<'_>) -> Result<DevicePoint, ReadError> {
    // Old versions broke the line after a long name; the names of devices have no blanks.
    if words.len() != columns.len() + 1 {
        return Err(lines.wrong(format!(
            "the line of device {:?} has {} figures for {} columns; give the whole report",
            words[0].chars().take(40).collect::<String>(),
            words.len() - 1,
            columns.len()
        )));
    }
    let mut point = DevicePoint { name: words[0].to_owned(), ..DevicePoint::default() };
    let (mut read_bytes, mut write_bytes) = (None, None);
    for (column, word) in columns.iter().zip(&words[1..]) {
        let value = figure(word, column, lines)?;
        match column.as_str() {
            "r/s" => point.reads_s = Some(value),
            "w/s" => point.writes_s = Some(value),
            "rkB/s" => read_bytes = Some(value * 1024.0),
            "wkB/s" => write_bytes = Some(value * 1024.0),
            "rMB/s" => read_bytes = Some(value * 1024.0 * 1024.0),
            "wMB/s" => write_bytes = Some(value * 1024.0 * 1024.0),
            "rsec/s" => read_bytes = Some(value * SECTOR),
            "wsec/s" => write_bytes = Some(value * SECTOR),
            "tps" => point.ios_s = Some(value),
            "kB/s" => point.bytes_s = Some(value * 1024.0),
            "MB/s" => point.bytes_s = Some(value * 1024.0 * 1024.0),
            "r_await" => point.read_ms = Some(value),
            "w_await" => point.write_ms = Some(value),
            "await" => point.io_ms = Some(value),
            "aqu-sz" | "avgqu-sz" => point.queue = Some(value),
            "%util" => point.busy = Some((value / 100.0).min(1.0)),
            _ => {}
        }
    }
    point.bytes_s = read_bytes.zip(write_bytes).map(|(read, written)| read + written).or(point.bytes_s);
    // A mean of no I/Os is written as 0 ms, which is no latency.
    point.read_ms = point.read_ms.filter(|_| point.reads_s != Some(0.0));
    point.write_ms = point.write_ms.filter(|_| point.writes_s != Some(0.0));
    let ios = point.ios_s.or_else(|| Some(point.reads_s? + point.writes_s?));
    point.io_ms = point.io_ms.filter(|_| ios != Some(0.0));
    Ok(point)
}
