//! Samples of a PostgreSQL, as `tier0 advise collect` writes them.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::collected::{self, Around};
use super::error::ReadError;
use crate::evidence::{
    Collector, Counter, Counting, Counts, Format, Identity, Kind, Level, Measured, Object, Sample,
};
use crate::samples::Collected;
use crate::samples::postgres::{PostgresSample, Relation};

/// What the lines before have said.
#[derive(Default)]
struct Before {
    relations: BTreeMap<(String, String), Relation>,
    around: Around,
}

/// Reads it.
pub(super) fn read(file: &str, input: &mut dyn BufRead, to: &mut Collector) -> Result<(), ReadError> {
    let mut before = Before::default();
    collected::read(file, input, |sample| {
        to.add(understood(sample, &mut before));
        before.relations.len()
    })
}

fn understood(from: PostgresSample, before: &mut Before) -> Sample {
    let mut sample = Sample::new(Format::Postgresql, Counting::SinceStart);
    sample.notes = from.lacks();
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
    sample.notes.push(
        "PostgreSQL counts reads from the operating system, whose page cache may serve them; compare with the device's own".to_owned(),
    );
    before.around.since(&mut sample, from.at, from.host, from.volumes);
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
