//! Perfmon as CSV (`relog -f csv`, `typeperf`): a column for each counter, a row for each interval.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::csv::Csv;
use super::error::ReadError;
use super::number::{is_none, number};
use super::time::seconds_of;
use crate::evidence::{Collector, Counting, DevicePoint, Format, HostPoint, Sample};

/// A counter that is used.
#[derive(Clone, Copy)]
enum What {
    Processor,
    ProcessorQueue,
    Batches,
    Hit,
    Disk(Field),
}

#[derive(Clone, Copy)]
enum Field {
    Queue,
    ReadSeconds,
    WriteSeconds,
    TransferSeconds,
    Reads,
    Writes,
    Transfers,
    Bytes,
    Idle,
}

/// What a column `\\HOST\Object(Instance)\Counter` is, and of which disk.
fn what(header: &str) -> Option<(What, String)> {
    let path = header.trim_start_matches('\\');
    let (_, path) = path.split_once('\\')?;
    let (object, counter) = path.rsplit_once('\\')?;
    let (object, instance) = match object.split_once('(') {
        Some((object, instance)) => (object, instance.trim_end_matches(')')),
        None => (object, ""),
    };
    let (object, counter) = (object.to_ascii_lowercase(), counter.trim().to_ascii_lowercase());
    let is_disk = object == "physicaldisk" || object == "logicaldisk";
    let disk = |field| Some((What::Disk(field), instance.to_owned()));
    match counter.as_str() {
        "% processor time" if object.starts_with("processor") && instance.ends_with("_Total") => {
            Some((What::Processor, String::new()))
        }
        "processor queue length" => Some((What::ProcessorQueue, String::new())),
        "batch requests/sec" => Some((What::Batches, String::new())),
        "buffer cache hit ratio" => Some((What::Hit, String::new())),
        _ if !is_disk || instance == "_Total" => None,
        "avg. disk queue length" => disk(Field::Queue),
        "avg. disk sec/read" => disk(Field::ReadSeconds),
        "avg. disk sec/write" => disk(Field::WriteSeconds),
        "avg. disk sec/transfer" => disk(Field::TransferSeconds),
        "disk reads/sec" => disk(Field::Reads),
        "disk writes/sec" => disk(Field::Writes),
        "disk transfers/sec" => disk(Field::Transfers),
        "disk bytes/sec" => disk(Field::Bytes),
        "% idle time" => disk(Field::Idle),
        _ => None,
    }
}

/// Reads it.
pub(super) fn read(
    file: &str,
    input: &mut dyn BufRead,
    delimiter: u8,
    to: &mut Collector,
) -> Result<(), ReadError> {
    let mut csv = Csv::open(file, input, delimiter)?;
    csv.may_be_cut = true;
    let counters: Vec<(usize, What, String)> = csv
        .header
        .iter()
        .enumerate()
        .filter_map(|(at, header)| what(header).map(|(what, disk)| (at, what, disk)))
        .collect();
    if counters.is_empty() {
        return Err(csv.wrong(
            None,
            "no counter is known by its English name, such as \\PhysicalDisk(0 C:)\\Avg. Disk sec/Read; collect the counters \
             of processor, physical disks and SQL Server, on a system in another language by their English names",
        ));
    }
    let mut before: Option<f64> = None;
    let mut rows = 0_u64;
    while csv.next()? {
        rows += 1;
        let text = csv.text(0);
        let Some(at) = seconds_of(&text) else {
            let short: String = text.chars().take(40).collect();
            let fact = format!("{short:?} is not a time; export times as MM/DD/YYYY hh:mm:ss, as relog does");
            return Err(csv.wrong(csv.header.first().map(String::as_str), fact));
        };
        let mut sample = Sample::new(Format::Perfmon, Counting::Interval);
        sample.seconds = before.map(|before| at - before).filter(|seconds| *seconds > 0.0);
        let mut host = HostPoint::default();
        let mut disks: BTreeMap<&str, DevicePoint> = BTreeMap::new();
        for (column, what, disk) in &counters {
            let text = csv.text(*column);
            if is_none(&text) {
                continue;
            }
            // Perfmon separates no thousands: a comma is a decimal one, whatever separates the columns.
            let Some(value) = number(&text, true) else {
                let short: String = text.chars().take(40).collect();
                let fact = format!("{short:?} is not a number; export the counters again with relog");
                return Err(csv.wrong(Some(&csv.header[*column]), fact));
            };
            match what {
                What::Processor => host.busy = Some((value / 100.0).clamp(0.0, 1.0)),
                What::ProcessorQueue => host.run_queue = Some(value),
                What::Hit => host.hit_share = Some((value / 100.0).clamp(0.0, 1.0)),
                What::Batches => {
                    // A rate: what was counted needs the interval.
                    sample.instance.transactions = sample.seconds.map(|seconds| value * seconds);
                }
                What::Disk(field) => {
                    let point = disks
                        .entry(disk)
                        .or_insert_with(|| DevicePoint { name: disk.clone(), ..DevicePoint::default() });
                    match field {
                        Field::Queue => point.queue = Some(value),
                        Field::ReadSeconds => point.read_ms = Some(value * 1e3),
                        Field::WriteSeconds => point.write_ms = Some(value * 1e3),
                        Field::TransferSeconds => point.io_ms = Some(value * 1e3),
                        Field::Reads => point.reads_s = Some(value),
                        Field::Writes => point.writes_s = Some(value),
                        Field::Transfers => point.ios_s = Some(value),
                        Field::Bytes => point.bytes_s = Some(value),
                        Field::Idle => point.busy = Some((1.0 - value / 100.0).clamp(0.0, 1.0)),
                    }
                }
            }
        }
        before = Some(at);
        // A mean of no I/Os is written as 0 seconds, which is no latency.
        for point in disks.values_mut() {
            point.read_ms = point.read_ms.filter(|_| point.reads_s != Some(0.0));
            point.write_ms = point.write_ms.filter(|_| point.writes_s != Some(0.0));
            point.io_ms = point.io_ms.filter(|_| point.ios_s != Some(0.0));
        }
        sample.host = Some(host);
        sample.devices = disks.into_values().collect();
        // The counters of an instance here are of intervals; they do not say which objects.
        to.add(sample);
    }
    if rows == 0 {
        return Err(csv.wrong(None, "there are no rows; collect for the time of the load"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_known_by_their_names() {
        let disk = what(r"\\DB1\PhysicalDisk(1 D:)\Avg. Disk sec/Read").expect("a disk");
        assert_eq!(disk.1, "1 D:");
        assert!(what(r"\\DB1\PhysicalDisk(_Total)\Avg. Disk sec/Read").is_none(), "it hides spikes");
        assert!(what(r"\\DB1\Processor(_Total)\% Processor Time").is_some());
        assert!(what(r"\\DB1\Processor Information(0,_Total)\% Processor Time").is_some());
        assert!(what(r"\\DB1\Process(sqlservr)\% Processor Time").is_none());
        assert!(what(r"\\DB1\MSSQL$X:Buffer Manager\Buffer cache hit ratio").is_some());
        assert!(what("(PDH-CSV 4.0) (W. Europe Standard Time)(-120)").is_none());
    }
}
