//! What the tables of a report mean: tablespaces, files, segments, events, processors.

use std::collections::BTreeMap;

use super::super::csv::plain;
use super::super::error::ReadError;
use super::super::number::number;
use super::{Table, segments};
use crate::evidence::{
    Collector, Counter, Counting, Counts, Format, HostPoint, Identity, Instance, Kind, Level, Measured,
    Object, Sample, kind_of_tablespace,
};

/// The block size where the report does not say.
const BLOCK_BYTES: f64 = 8192.0;

/// What was found so far.
#[derive(Default)]
pub(super) struct Report {
    objects: BTreeMap<Identity, Object>,
    /// The tablespace of each segment.
    homes: BTreeMap<Identity, String>,
    instance: Instance,
    host: Option<HostPoint>,
    cores: Option<f64>,
    elapsed_s: Option<f64>,
    db_time_s: Option<f64>,
    block_bytes: Option<f64>,
    transactions_s: Option<f64>,
    /// Writes of the log and the milliseconds that they took.
    log: Option<(f64, f64)>,
    has_events: bool,
    /// Whether the end of the report was read.
    has_end: bool,
}

impl Report {
    /// A line outside or inside of tables, or a row whose cells were joined: figures that stand beside their names.
    pub(super) fn line(&mut self, line: &str) {
        let minutes = |name: &str| {
            let rest = line.split_once(name)?.1;
            let figure = rest.split("(min").next().filter(|_| rest.contains("(min"))?;
            number(figure.split_whitespace().last()?, false).map(|minutes| minutes * 60.0)
        };
        self.elapsed_s = self.elapsed_s.or_else(|| minutes("Elapsed:"));
        self.db_time_s = self.db_time_s.or_else(|| minutes("DB Time:").or_else(|| minutes("DB time:")));
        let after = |name: &str| {
            let words = line.split_once(name)?.1;
            words.split_whitespace().next().and_then(|word| number(word, false))
        };
        let squeezed = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((_, rest)) = squeezed.split_once("Buffer Hit %:") {
            let share = rest.split_whitespace().next().and_then(|word| number(word, false));
            let share = share.filter(|share| (0.0..=100.0).contains(share));
            if let Some(share) = share {
                self.host.get_or_insert_default().hit_share = Some(share / 100.0);
            }
        }
        self.cores = self.cores.or_else(|| after("(CPUs:")).or_else(|| after("CPUs:"));
        if let Some(size) = after("Std Block Size:") {
            // "8K" is written with the suffix of thousands.
            self.block_bytes = Some(if size >= 1000.0 { size / 1000.0 * 1024.0 } else { size });
        }
        if line.trim_start().starts_with("Transactions:") {
            self.transactions_s = self.transactions_s.or_else(|| after("Transactions:"));
        }
    }

    /// The end of the report.
    pub(super) fn end(&mut self) {
        self.has_end = true;
    }

    /// A table.
    pub(super) fn table(&mut self, table: &Table) {
        for row in &table.rows {
            let line = row.join("  ");
            self.line(&line);
        }
        let heading = table.heading.to_ascii_lowercase();
        let columns: Vec<String> = table.header.iter().map(|name| plain(name)).collect();
        let exactly = |names: &[&str]| columns.iter().position(|column| names.contains(&column.as_str()));
        let with = |word: &str| columns.iter().position(|column| column.contains(word));
        if let (Some(at), Some(row)) = (exactly(&["cpus"]), table.rows.first()) {
            let cores = row.get(at).and_then(|cell| number(cell, false)).filter(|cores| *cores >= 1.0);
            self.cores = self.cores.or(cores);
        }
        if heading.contains("host cpu") && with("idle").is_some() {
            return self.processors(table, with("idle"), with("wio").or_else(|| with("iowait")));
        }
        if let (Some(event), Some(waits)) = (with("event"), with("waits"))
            && let Some(seconds) = columns.iter().position(|column| {
                column.contains("time")
                    && (column.ends_with('s') || column.ends_with("sec"))
                    && !column.contains("outs")
                    && !column.ends_with("ms")
            })
        {
            let is_top = heading.contains("timed") || heading.contains("foreground events by");
            return self.events(table, [event, waits, seconds], with("class"), is_top);
        }
        if heading.contains("segments by physical reads") {
            let reads = with("physicalreads").or_else(|| exactly(&["reads"]));
            if let (Some(name), Some(reads)) = (with("objectname"), reads) {
                let kind = with("objtype").or_else(|| with("type"));
                let names = [with("tablespace"), with("owner"), with("subobject"), kind];
                self.segments(table, names, name, reads);
            }
            return;
        }
        let is_file = heading.contains("file io stat")
            || heading.contains("io by datafile")
            || heading.contains("file-level");
        let is_space = heading.contains("tablespace io stat");
        let (Some(space), Some(reads), Some(writes)) =
            (with("tablespace"), exactly(&["reads"]), exactly(&["writes"]))
        else {
            return;
        };
        if is_space || is_file {
            let file = with("filename").filter(|_| is_file);
            let ms = exactly(&["avrdms", "avgrdms"]).or_else(|| {
                columns.iter().position(|column| column.ends_with("rdms") && !column.contains("1bk"))
            });
            let blocks = with("blksrd");
            self.spaces(table, space, file, [reads, writes], ms, blocks);
        }
    }

    fn processors(&mut self, table: &Table, idle: Option<usize>, wait: Option<usize>) {
        let share = |at: Option<usize>| {
            let text = table.rows.first()?.get(at?)?;
            number(text, false).map(|percent| (percent / 100.0).clamp(0.0, 1.0))
        };
        let host = self.host.get_or_insert_default();
        host.io_wait = share(wait);
        // What waits for I/O is part of idle in these reports.
        host.busy = share(idle).map(|idle| 1.0 - idle);
    }

    fn events(&mut self, table: &Table, columns: [usize; 3], class: Option<usize>, is_top: bool) {
        for row in &table.rows {
            let cell = |at: usize| row.get(at).map(String::as_str).unwrap_or_default();
            let event = cell(columns[0]).to_ascii_lowercase();
            let Some(seconds) = number(cell(columns[2]), false).filter(|seconds| *seconds >= 0.0) else {
                continue;
            };
            let waits = number(cell(columns[1]), false);
            // The log writer's own waits are those of the storage; commits wait for them and for each other.
            if event == "log file parallel write" || event == "log file sync" && self.log.is_none() {
                self.log = waits.map(|waits| (waits, seconds * 1e3));
            }
            if !is_top {
                continue;
            }
            self.has_events = true;
            let class = class.map(|at| cell(at).to_ascii_lowercase()).unwrap_or_default();
            let is_io = class == "user i/o"
                || ["db file", "direct path", "read by other session"]
                    .iter()
                    .any(|name| event.starts_with(name))
                    && !event.contains("parallel write");
            let add = |sum: &mut Option<f64>| *sum = Some(sum.unwrap_or(0.0) + seconds * 1e3);
            if is_io {
                add(&mut self.instance.io_wait_ms);
            } else if event == "log file sync" {
                add(&mut self.instance.log_wait_ms);
            } else if event == "db cpu" || event == "cpu time" {
                add(&mut self.instance.cpu_ms);
            }
        }
    }

    fn segments(
        &mut self,
        table: &Table,
        [space, owner, part, kind]: [Option<usize>; 4],
        name: usize,
        reads: usize,
    ) {
        for row in &table.rows {
            let cell = |at: Option<usize>| at.and_then(|at| row.get(at)).cloned().unwrap_or_default();
            let Some(blocks) = number(&cell(Some(reads)), false).filter(|reads| *reads >= 0.0) else {
                continue;
            };
            let (object, part, kind) = (cell(Some(name)), cell(part), cell(kind).to_ascii_uppercase());
            if object.is_empty() || object == "** MISSING **" {
                continue;
            }
            let whole = if part.is_empty() { object.clone() } else { format!("{object}:{part}") };
            let kind = match kind.as_str() {
                kind if kind.starts_with("INDEX") => Kind::Index,
                _ if !part.is_empty() => Kind::Partition,
                _ => Kind::Table,
            };
            let identity = Identity { level: Level::Segment, database: cell(owner), name: whole, path: None };
            self.homes.insert(identity.clone(), cell(space));
            self.add(Object {
                identity,
                kind,
                table: Some(object).filter(|_| !part.is_empty()),
                measured: Measured::default(),
                bytes: None,
                counts: Counts::default().with(Counter::Reads, blocks),
            });
        }
    }

    fn spaces(
        &mut self,
        table: &Table,
        space: usize,
        file: Option<usize>,
        [reads, writes]: [usize; 2],
        ms: Option<usize>,
        blocks: Option<usize>,
    ) {
        let block = self.block_bytes.unwrap_or(BLOCK_BYTES);
        for row in &table.rows {
            let cell =
                |at: Option<usize>| at.and_then(|at| row.get(at)).map(String::as_str).unwrap_or_default();
            let figure = |at: Option<usize>| number(cell(at), false).filter(|value| *value >= 0.0);
            let (name, count) = (cell(Some(space)).to_owned(), figure(Some(reads)));
            if name.is_empty() || count.is_none() {
                continue;
            }
            let path = file.map(|at| cell(Some(at)).to_owned());
            let mut counts = Counts::default();
            counts.set(Counter::Reads, count);
            counts.set(Counter::Writes, figure(Some(writes)));
            counts.set(Counter::ReadMs, count.zip(figure(ms)).map(|(reads, ms)| reads * ms));
            counts.set(
                Counter::ReadBytes,
                count.zip(figure(blocks)).map(|(reads, blocks)| reads * blocks * block),
            );
            let kind = kind_of_tablespace(&name);
            let short = path.as_deref().and_then(|path| path.rsplit(['/', '\\']).next()).map(str::to_owned);
            let identity = Identity {
                level: if path.is_some() { Level::File } else { Level::Tablespace },
                database: if path.is_some() { name.clone() } else { String::new() },
                name: short.unwrap_or(name),
                path,
            };
            self.add(Object {
                identity,
                kind,
                table: None,
                bytes: None,
                measured: Measured::default(),
                counts,
            });
        }
    }

    fn add(&mut self, object: Object) {
        // A table that goes on over pages, or that a report of a cluster has for each instance.
        match self.objects.get_mut(&object.identity) {
            Some(known) => known.counts.add(&object.counts),
            None => _ = self.objects.insert(object.identity.clone(), object),
        }
    }

    /// Hands on what was found in a report of so many lines.
    pub(super) fn deliver(mut self, file: &str, lines: u64, to: &mut Collector) -> Result<(), ReadError> {
        if self.objects.is_empty() && !self.has_events {
            return Err(ReadError::Wrong {
                file: file.to_owned(),
                line: lines.max(1),
                column: None,
                fact: "the report ends without tables of events, tablespaces, files or segments; it may be cut off, so create it again"
                    .to_owned(),
            });
        }
        let mut sample = Sample::new(Format::Awr, Counting::Interval);
        sample.seconds = self.elapsed_s;
        if !self.has_end {
            sample.notes.push(format!(
                "{file} has no end and may be cut off; what stands before line {lines} is used, so create the report again"
            ));
        }
        if self.elapsed_s.is_none() {
            sample
                .notes
                .push("the report does not say \"Elapsed\", so rates and gains are not known".to_owned());
        }
        if let Some((writes, ms)) = self.log {
            let identity = Identity {
                level: Level::Tablespace,
                database: String::new(),
                name: "redo log".to_owned(),
                path: None,
            };
            let counts = Counts::default().with(Counter::Writes, writes).with(Counter::WriteMs, ms);
            self.add(Object {
                identity,
                kind: Kind::Log,
                table: None,
                bytes: None,
                measured: Measured::default(),
                counts,
            });
        }
        self.instance.active_ms = self.db_time_s.map(|seconds| seconds * 1e3);
        self.instance.transactions =
            self.transactions_s.zip(self.elapsed_s).map(|(per_s, seconds)| per_s * seconds);
        if self.objects.keys().any(|identity| identity.level == Level::Segment) {
            let block = self.block_bytes.unwrap_or(BLOCK_BYTES);
            sample.notes.extend(segments::share_out(&mut self.objects, &self.homes, block));
        }
        sample.objects = self.objects.into_values().collect();
        (sample.instance, sample.host, sample.cores) = (self.instance, self.host, self.cores);
        to.add(sample);
        Ok(())
    }
}
