//! `sar -u`, `-q` and `-d` as text: tables whose lines begin with a time.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::error::ReadError;
use super::iostat::cores_of;
use super::lines::Lines;
use super::number::number;
use crate::evidence::{Collector, Counting, DevicePoint, Format, Sample};

/// The most lines of devices of one time.
const DEVICES_MAX: usize = 65_536;

/// Which table the lines are of.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Processors,
    Queue,
    Devices,
    Other,
}

/// Words of a table that are known, by which it is recognised.
pub(super) fn is_header(words: &[&str]) -> bool {
    table_of(words).is_some_and(|of| of != Of::Other)
}

fn table_of(words: &[&str]) -> Option<Of> {
    let has = |word: &str| words.contains(&word);
    if has("CPU") && has("%idle") && has("%iowait") {
        Some(Of::Processors)
    } else if has("runq-sz") {
        Some(Of::Queue)
    } else if has("DEV") && has("tps") && has("%util") {
        Some(Of::Devices)
    } else {
        words
            .first()
            .is_some_and(|word| word.contains(['%', '/']) || word.chars().all(char::is_uppercase))
            .then_some(Of::Other)
    }
}

/// Seconds of the day of the time that a line begins with, and the other words.
pub(super) fn timed(line: &str) -> Option<(f64, Vec<&str>)> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let time = *words.first()?;
    let parts: Vec<f64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [mut hour, minute, second] = parts[..] else { return None };
    words.remove(0);
    match words.first().copied() {
        Some("AM") => {
            hour %= 12.0;
            words.remove(0);
        }
        Some("PM") => {
            hour = hour % 12.0 + 12.0;
            words.remove(0);
        }
        _ => {}
    }
    Some((hour * 3600.0 + minute * 60.0 + second, words))
}

/// Reads it.
pub(super) fn read(file: &str, input: &mut dyn BufRead, to: &mut Collector) -> Result<(), ReadError> {
    let mut lines = Lines::new(file, input);
    let mut columns: Vec<String> = Vec::new();
    let mut table = Of::Other;
    let mut cores = None;
    // By the time of a line; tables of one time come one after the other, and times in order within a table.
    let mut last: BTreeMap<u8, f64> = BTreeMap::new();
    let mut current: Option<(u8, f64, Sample)> = None;
    let mut found = false;
    while let Some(line) = lines.next()? {
        if line.starts_with("Linux") && line.contains("CPU)") {
            cores = cores_of(&line);
            continue;
        }
        // Averages repeat what the lines have said.
        let Some((at, words)) = timed(&line).filter(|_| !line.starts_with("Average")) else { continue };
        if words.is_empty() || line.contains("LINUX RESTART") {
            continue;
        }
        if words.iter().all(|word| number(word, true).is_none()) {
            // Of memory, for one: a table that is not known ends the one before all the same.
            table = table_of(&words).unwrap_or(Of::Other);
            columns = words.iter().map(|word| (*word).to_owned()).collect();
            // The first time of a table has no line before it: the header's own is its begin.
            last.entry(table as u8).or_insert(at);
            continue;
        }
        if table == Of::Other {
            continue;
        }
        found = true;
        if words.len() != columns.len() {
            return Err(lines.wrong(format!(
                "the line has {} columns and its header {}; give the whole report",
                words.len(),
                columns.len()
            )));
        }
        if current.as_ref().is_none_or(|(of, then, _)| *of != table as u8 || *then != at) {
            if let Some((_, _, sample)) = current.take() {
                to.add(sample);
            }
            let mut sample = Sample::new(Format::Sar, Counting::Interval);
            sample.cores = cores;
            let before = last.insert(table as u8, at);
            // Midnight passes.
            sample.seconds =
                before.map(|before| (at - before).rem_euclid(86_400.0)).filter(|seconds| *seconds > 0.0);
            current = Some((table as u8, at, sample));
        }
        let Some((_, _, sample)) = &mut current else { continue };
        row(table, &columns, &words, sample, &lines)?;
    }
    if let Some((_, _, sample)) = current {
        to.add(sample);
    }
    if !found {
        return Err(lines.wrong("no table of processors or devices was found; run sar -u -d -p"));
    }
    Ok(())
}

/// Kilobytes, also as `sar --human` writes them: `7.9k`, `1.2M`.
fn kilobytes(word: &str) -> Option<f64> {
    let units = [('k', 1.0), ('M', 1024.0), ('G', 1024.0 * 1024.0), ('T', 1024.0 * 1024.0 * 1024.0)];
    let of = |(unit, factor)| Some(number(word.strip_suffix(unit)?, true)? * factor);
    units.into_iter().find_map(of).or_else(|| number(word, true))
}

fn row(
    table: Of,
    columns: &[String],
    words: &[&str],
    sample: &mut Sample,
    lines: &Lines<'_>,
) -> Result<(), ReadError> {
    let value = |names: &[&str]| -> Result<Option<f64>, ReadError> {
        let Some(at) = columns.iter().position(|column| names.contains(&column.as_str())) else {
            return Ok(None);
        };
        let figure = match columns[at].ends_with("kB/s") {
            true => kilobytes(words[at]),
            false => number(words[at], true),
        };
        match figure {
            Some(value) if value >= 0.0 => Ok(Some(value)),
            _ => {
                let short: String = words[at].chars().take(40).collect();
                let column = &columns[at];
                Err(lines.wrong(format!(
                    "{short:?} in the column {column} is not a number; give the whole report"
                )))
            }
        }
    };
    match table {
        Of::Processors => {
            let cpu = columns.iter().position(|column| column == "CPU").map(|at| words[at]);
            if cpu != Some("all") {
                return Ok(());
            }
            let (idle, wait) = (value(&["%idle"])?, value(&["%iowait"])?);
            let host = sample.host.get_or_insert_default();
            host.io_wait = wait.map(|wait| wait / 100.0);
            host.busy = idle.map(|idle| (1.0 - (idle + wait.unwrap_or(0.0)) / 100.0).clamp(0.0, 1.0));
        }
        Of::Queue => sample.host.get_or_insert_default().run_queue = value(&["runq-sz"])?,
        Of::Devices => {
            if sample.devices.len() >= DEVICES_MAX {
                return Err(lines.wrong(format!("one time has more than {DEVICES_MAX} devices; name fewer")));
            }
            let name = columns.iter().position(|column| column == "DEV").map_or("", |at| words[at]);
            let kilobytes = value(&["rkB/s"])?.zip(value(&["wkB/s"])?);
            let sectors = value(&["rd_sec/s"])?.zip(value(&["wr_sec/s"])?);
            let ios = value(&["tps"])?;
            sample.devices.push(DevicePoint {
                name: name.to_owned(),
                ios_s: ios,
                bytes_s: kilobytes
                    .map(|(read, written)| (read + written) * 1024.0)
                    .or(sectors.map(|(read, written)| (read + written) * 512.0)),
                io_ms: value(&["await"])?.filter(|_| ios != Some(0.0)),
                queue: value(&["aqu-sz", "avgqu-sz"])?,
                busy: value(&["%util"])?.map(|busy| (busy / 100.0).min(1.0)),
                ..DevicePoint::default()
            });
        }
        Of::Other => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_clocks_are_read() {
        assert_eq!(timed("12:10:01 AM all 1.0").map(|(at, _)| at), Some(601.0));
        assert_eq!(timed("01:10:01 PM all 1.0").map(|(at, _)| at), Some(47_401.0));
        assert_eq!(timed("13:10:01 all 1.0").map(|(at, words)| (at, words.len())), Some((47_401.0, 2)));
        assert!(timed("Average: all 1.0").is_none());
    }
}
