//! Samples of a MySQL or a MariaDB, as `tier0 advise collect` writes them.
//!
//! Tables and partitions are files (level `file`). The server as a whole is an object of its own (level `instance`), which is
//! ranked where performance_schema does not count files.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::collected::{self, Around};
use super::error::ReadError;
use crate::evidence::{
    Collector, Counter, Counting, Counts, Format, Identity, Kind, Level, Measured, Object, Sample,
};
use crate::samples::Collected;
use crate::samples::mysql::{FileKind, FileObject, MysqlSample, ServerCounters};

/// What the lines before have said.
#[derive(Default)]
struct Before {
    objects: BTreeMap<[String; 3], FileObject>,
    around: Around,
    /// Whether the first line counts all transactions: one file has one count of them.
    counts_all: Option<bool>,
}

/// Reads it.
pub(super) fn read(file: &str, input: &mut dyn BufRead, to: &mut Collector) -> Result<(), ReadError> {
    let mut before = Before::default();
    collected::read(file, input, |sample| {
        to.add(understood(sample, &mut before));
        before.objects.len()
    })
}

fn understood(from: MysqlSample, before: &mut Before) -> Sample {
    let format = if from.is_mariadb() { Format::Mariadb } else { Format::Mysql };
    let mut sample = Sample::new(format, Counting::SinceStart);
    sample.notes = from.lacks();
    (sample.at, sample.epoch) = (Some(from.at), Some(from.epoch));
    sample.database = from.address;
    if from.full {
        before.objects.clear();
    }
    for object in from.objects {
        before.objects.insert(MysqlSample::key(&object).map(str::to_owned), object);
    }
    sample.objects = before.objects.values().map(|object| of_file(object, from.has_io_times)).collect();
    let server = &from.instance;
    // Where files are not counted, the data is one object of a known size.
    let of_data = |object: &&FileObject| !matches!(object.kind, FileKind::Log | FileKind::Temp);
    let sizes = before.objects.values().filter(of_data).filter_map(|object| object.bytes);
    let bytes = sizes.reduce(|one, other| one + other);
    sample.objects.extend([data(server, from.page_bytes, bytes), redo_log(server, from.has_io_times)]);
    let counts_all = *before.counts_all.get_or_insert(server.transactions.is_some());
    let instance = &mut sample.instance;
    // Without any COMMIT, all statements commit by themselves, and nothing has counted them.
    let commits = server.commits.filter(|commits| *commits > 0.0);
    instance.transactions = if counts_all { server.transactions } else { commits };
    instance.hits = server.page_requests.zip(server.page_misses).map(|(all, missed)| (all - missed).max(0.0));
    instance.reads = server.pages_read;
    (instance.active_ms, instance.cpu_ms) = (server.active_ms, from.processor_ms);
    instance.log_wait_ms = server.log_ms.filter(|_| from.has_io_times);
    if from.has_files {
        sample.notes.push(
            "InnoDB writes pages in the background and does not time these writes, so the waits of its tables are those of reads"
                .to_owned(),
        );
    }
    before.around.since(&mut sample, from.at, from.host, from.volumes);
    sample
}

fn of_file(of: &FileObject, is_timed: bool) -> Object {
    let mut counts = Counts::default();
    counts.set(Counter::Reads, of.reads);
    counts.set(Counter::Writes, of.writes);
    counts.set(Counter::ReadBytes, of.read_bytes);
    counts.set(Counter::WriteBytes, of.write_bytes);
    counts.set(Counter::ReadMs, of.read_ms.filter(|_| is_timed));
    counts.set(Counter::WriteMs, of.write_ms.filter(|_| is_timed));
    counts.set(Counter::SequentialRows, of.scanned_rows);
    counts.set(Counter::IndexRows, of.fetched_rows);
    let kind = of.kind();
    Object {
        identity: Identity {
            // Logs are told beside the objects of any level.
            level: if kind == Kind::Log { Level::Instance } else { Level::File },
            database: of.schema.clone(),
            name: match of.partition.as_str() {
                "" => of.name.clone(),
                partition => format!("{}:{partition}", of.name),
            },
            path: of.path.clone(),
        },
        kind,
        table: (kind == Kind::Partition).then(|| of.name.clone()),
        measured: Measured::default(),
        bytes: of.bytes,
        counts,
    }
}

fn of_server(name: &str, kind: Kind, bytes: Option<f64>, counts: Counts) -> Object {
    Object {
        identity: Identity {
            level: Level::Instance,
            database: String::new(),
            name: name.to_owned(),
            path: None,
        },
        kind,
        table: None,
        measured: Measured::default(),
        bytes,
        counts,
    }
}

fn data(server: &ServerCounters, page_bytes: f64, bytes: Option<f64>) -> Object {
    let writes = server.data_writes.map(|all| (all - server.log_writes.unwrap_or(0.0)).max(0.0));
    let counts = Counts::default()
        .with(Counter::Reads, server.data_reads)
        .with(Counter::ReadBytes, server.data_read_bytes)
        .with(Counter::Writes, writes)
        .with(Counter::WriteBytes, server.pages_written.map(|pages| pages * page_bytes));
    of_server("all data of InnoDB", Kind::Data, bytes, counts)
}

fn redo_log(server: &ServerCounters, is_timed: bool) -> Object {
    let counts = Counts::default()
        .with(Counter::Writes, server.log_writes)
        .with(Counter::WriteBytes, server.log_bytes)
        .with(Counter::WriteMs, server.log_ms.filter(|_| is_timed));
    of_server("redo log", Kind::Log, None, counts)
}
