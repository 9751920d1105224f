//! Samples of a PostgreSQL, as `tier0 advise collect` writes them.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::error::ReadError;
use crate::evidence::{
    Collector, Counter, Counting, Counts, DevicePoint, Format, HostPoint, Identity, Kind, Level, Measured,
    Object, Sample,
};
use crate::samples::{HostCounters, MARK, PostgresSample, Relation, VERSION, VolumeCounters};

/// The longest line: a first sample of 200,000 relations.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// The most relations.
const RELATIONS_MAX: usize = 200_000;

/// What the lines before have said.
#[derive(Default)]
struct Before {
    relations: BTreeMap<(String, String), Relation>,
    host: Option<HostCounters>,
    volumes: Vec<VolumeCounters>,
    at: Option<f64>,
}

/// Reads it.
pub(super) fn read(file: &str, input: &mut dyn BufRead, to: &mut Collector) -> Result<(), ReadError> {
    let wrong =
        |line: u64, fact: String| ReadError::Wrong { file: file.to_owned(), line, column: None, fact };
    let (mut before, mut number) = (Before::default(), 0);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = std::io::Read::take(&mut *input, LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes);
        let read = read.map_err(|source| ReadError::System { file: file.to_owned(), source })?;
        if read == 0 {
            break;
        }
        number += 1;
        if read as u64 > LINE_BYTES_MAX {
            return Err(wrong(number, "the line is too long; collect the samples again".to_owned()));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let is_cut = bytes.last() != Some(&b'\n');
        let sample: PostgresSample = match serde_json::from_slice(&bytes) {
            Ok(sample) => sample,
            // A kill in the middle of a write: what is complete counts.
            Err(_) if is_cut && number > 1 => break,
            Err(error) => {
                let fact =
                    format!("this is no sample ({error}); remove the line, or collect the samples again");
                return Err(wrong(number, fact));
            }
        };
        if sample.tier0 != MARK || sample.version != VERSION {
            let fact = format!(
                "the sample is of version {}, and this program reads version {VERSION}; use the program that wrote it",
                sample.version
            );
            return Err(wrong(number, fact));
        }
        if before.at.is_some_and(|before| sample.at < before) {
            let fact = "the sample is older than the one before; keep each file's lines as they were written";
            return Err(wrong(number, fact.to_owned()));
        }
        if before.relations.len() + sample.relations.len() > RELATIONS_MAX * 2 {
            let fact = format!("there are more than {RELATIONS_MAX} relations; collect one database");
            return Err(wrong(number, fact));
        }
        to.add(understood(sample, &mut before));
    }
    if number == 0 {
        return Err(wrong(1, "there is no sample; collect for longer".to_owned()));
    }
    Ok(())
}

fn understood(from: PostgresSample, before: &mut Before) -> Sample {
    let mut sample = Sample::new(Format::Postgresql, Counting::SinceStart);
    (sample.at, sample.epoch) = (Some(from.at), Some(from.epoch));
    sample.database = from.address;
    if from.full {
        before.relations.clear();
    }
    for relation in from.relations {
        before.relations.insert((relation.schema.clone(), relation.name.clone()), relation);
    }
    sample.objects = before.relations.values().map(object).collect();
    let database = &from.database;
    sample.objects.push(Object {
        identity: Identity {
            level: Level::Instance,
            database: String::new(),
            name: "write-ahead log".to_owned(),
            path: None,
        },
        kind: Kind::Log,
        table: None,
        measured: Measured::default(),
        bytes: None,
        counts: Counts::default()
            .with(Counter::Writes, database.log_writes)
            .with(Counter::WriteBytes, database.log_bytes)
            .with(Counter::WriteMs, database.log_ms.filter(|_| from.has_log_times)),
    });
    let instance = &mut sample.instance;
    instance.transactions = database.transactions;
    (instance.hits, instance.reads) = (database.hits, database.reads);
    (instance.active_ms, instance.cpu_ms) = (database.active_ms, from.processor_ms);
    instance.read_ms = database.read_ms.filter(|_| from.has_io_times);
    instance.io_wait_ms = instance.read_ms.zip(database.write_ms).map(|(read, written)| read + written);
    instance.log_wait_ms = database.log_ms.filter(|_| from.has_log_times);
    (instance.data_writes, instance.log_bytes) = (database.written, database.log_bytes);
    if !from.has_io_times {
        sample.notes.push(
            "track_io_timing is off, so waits of PostgreSQL read \"not measured\"; switch it on (alter system set track_io_timing = on)"
                .to_owned(),
        );
    }
    if !from.has_log_times {
        sample
            .notes
            .push("track_wal_io_timing is off, so waits for the log read \"not measured\"".to_owned());
    }
    sample.notes.push(
        "PostgreSQL counts reads from the operating system, whose page cache may serve them; compare with the device's own".to_owned(),
    );
    let seconds = before.at.map(|before| from.at - before).filter(|seconds| *seconds > 0.0);
    sample.seconds = None;
    if let Some(now) = from.host {
        sample.cores = Some(now.cores);
        sample.host = before.host.and_then(|then| host(then, now));
    }
    if let Some(seconds) = seconds {
        let known = |name: &str| before.volumes.iter().find(|volume| volume.name == name);
        sample.devices =
            from.volumes.iter().filter_map(|now| Some(volume(known(&now.name)?, now, seconds))).collect();
    }
    (before.host, before.volumes, before.at) = (from.host, from.volumes, Some(from.at));
    sample
}

fn object(relation: &Relation) -> Object {
    let mut counts = Counts::default();
    counts.set(Counter::Reads, relation.reads);
    counts.set(Counter::Hits, relation.hits);
    counts.set(Counter::SequentialRows, relation.scanned_rows);
    counts.set(Counter::IndexRows, relation.fetched_rows);
    counts.set(Counter::ChangedRows, relation.changed_rows);
    Object {
        identity: Identity {
            level: Level::Segment,
            database: relation.schema.clone(),
            name: relation.name.clone(),
            path: None,
        },
        kind: match (&relation.table, &relation.partition_of) {
            (Some(_), _) => Kind::Index,
            (None, Some(_)) => Kind::Partition,
            (None, None) => Kind::Table,
        },
        table: relation.table.clone().or_else(|| relation.partition_of.clone()),
        measured: Measured::default(),
        bytes: relation.bytes,
        counts,
    }
}

fn host(then: HostCounters, now: HostCounters) -> Option<HostPoint> {
    let all = now.all - then.all;
    (all > 0.0 && now.busy >= then.busy).then(|| HostPoint {
        busy: Some(((now.busy - then.busy) / all).clamp(0.0, 1.0)),
        io_wait: Some(((now.io_wait - then.io_wait) / all).clamp(0.0, 1.0)),
        ..HostPoint::default()
    })
}

fn volume(then: &VolumeCounters, now: &VolumeCounters, seconds: f64) -> DevicePoint {
    // After a restart of the array its counters begin again.
    let since = |now: f64, then: f64| if now >= then { now - then } else { now };
    let (reads, writes) = (since(now.reads, then.reads), since(now.writes, then.writes));
    let (read_ms, write_ms) = (since(now.read_ms, then.read_ms), since(now.write_ms, then.write_ms));
    DevicePoint {
        name: format!("volume {}", now.name),
        reads_s: Some(reads / seconds),
        writes_s: Some(writes / seconds),
        bytes_s: Some(since(now.bytes, then.bytes) / seconds),
        read_ms: (reads > 0.0).then(|| read_ms / reads),
        write_ms: (writes > 0.0).then(|| write_ms / writes),
        // Little's law.
        queue: Some((read_ms + write_ms) / 1e3 / seconds),
        ..DevicePoint::default()
    }
}
