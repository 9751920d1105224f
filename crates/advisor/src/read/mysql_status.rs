//! `show global status` of MySQL and MariaDB, and the same by `mysqladmin extended-status`: data and log of an instance.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::error::ReadError;
use super::lines::Lines;
use super::number::number;
use crate::evidence::{
    Collector, Counter, Counting, Counts, Format, Identity, Kind, Level, Measured, Object, Sample,
};

/// The most variables that are kept.
const VARIABLES_MAX: usize = 10_000;
/// Bytes of a page where the status does not say.
const PAGE_BYTES: f64 = 16_384.0;

/// Reads of data: I/Os, or where only a part of the status was kept, pages that were not in the buffer pool.
const READS: [&str; 2] = ["innodb_data_reads", "innodb_buffer_pool_reads"];

/// Whether a line has reads of data.
pub(super) fn has_reads(line: &str) -> bool {
    variable(line).is_some_and(|(name, value)| {
        READS.iter().any(|reads| name.eq_ignore_ascii_case(reads)) && number(value, false).is_some()
    })
}

/// A line of either form: name and value.
fn variable(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_matches('|').trim();
    let (name, value) = line
        .split_once('|')
        .or_else(|| line.split_once('\t'))
        .or_else(|| line.split_once(','))
        .or_else(|| line.split_once(char::is_whitespace))?;
    let (name, value) = (name.trim().trim_matches('"'), value.trim().trim_matches('"'));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some((name, value))
}

/// Reads it.
pub(super) fn read(file: &str, input: &mut dyn BufRead, to: &mut Collector) -> Result<(), ReadError> {
    let mut lines = Lines::new(file, input);
    let mut values: BTreeMap<String, f64> = BTreeMap::new();
    // `mysqladmin -i10 extended-status` prints one status after the other; each begins with the same name.
    let mut first: Option<String> = None;
    while let Some(line) = lines.next()? {
        let Some((name, value)) = variable(&line) else { continue };
        let name = name.to_ascii_lowercase();
        if values.contains_key(&name) && first.as_ref() == Some(&name) {
            to.add(sample(&std::mem::take(&mut values)));
        }
        if let Some(value) = number(value, false).filter(|value| *value >= 0.0) {
            if values.len() >= VARIABLES_MAX {
                return Err(
                    lines.wrong(format!("there are more than {VARIABLES_MAX} variables; give one status"))
                );
            }
            first.get_or_insert_with(|| name.clone());
            values.insert(name, value);
        }
    }
    if !READS.iter().any(|name| values.contains_key(*name)) {
        return Err(lines.wrong("Innodb_data_reads is missing; give the output of \"show global status\""));
    }
    to.add(sample(&values));
    Ok(())
}

fn sample(values: &BTreeMap<String, f64>) -> Sample {
    let get = |name: &str| values.get(name).copied();
    let page = get("innodb_page_size").unwrap_or(PAGE_BYTES);
    let mut sample = Sample::new(Format::MysqlStatus, Counting::SinceStart);
    sample.seconds = get("uptime");
    let log_bytes = get("innodb_os_log_written");
    let log_writes = get("innodb_log_writes");
    let without = |all: Option<f64>, log: Option<f64>| Some((all? - log.unwrap_or(0.0)).max(0.0));
    sample.instance.transactions =
        get("com_commit").zip(get("com_rollback")).map(|(commits, rollbacks)| commits + rollbacks);
    sample.instance.hits = get("innodb_buffer_pool_read_requests")
        .zip(get("innodb_buffer_pool_reads"))
        .map(|(requests, reads)| (requests - reads).max(0.0));
    sample.instance.reads = get("innodb_pages_read").or_else(|| get("innodb_buffer_pool_reads"));
    sample.instance.log_bytes = log_bytes;
    let identity = |name: &str| Identity {
        level: Level::Instance,
        database: "innodb".to_owned(),
        name: name.to_owned(),
        path: None,
    };
    let data = Counts::default()
        .with(Counter::Reads, READS.iter().find_map(|name| get(name)))
        .with(Counter::ReadBytes, get("innodb_data_read"))
        .with(Counter::Writes, without(get("innodb_data_writes"), log_writes))
        .with(Counter::WriteBytes, get("innodb_pages_written").map(|pages| pages * page))
        .with(Counter::Hits, sample.instance.hits);
    let log = Counts::default().with(Counter::Writes, log_writes).with(Counter::WriteBytes, log_bytes);
    let pages = get("innodb_buffer_pool_pages_total");
    if let Some(pages) = pages {
        sample.notes.push(format!("the buffer pool has {:.1} GB", pages * page / 1e9));
    }
    for (name, kind, counts) in [("data", Kind::Data, data), ("log", Kind::Log, log)] {
        sample.objects.push(Object {
            identity: identity(name),
            kind,
            table: None,
            bytes: None,
            measured: Measured::default(),
            counts,
        });
    }
    sample.notes.push(
        "MySQL's status counts data and log of the whole instance and no waits; tables are not told apart"
            .to_owned(),
    );
    sample
}
