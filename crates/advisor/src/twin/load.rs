//! What the samples show of a load, for each transaction.

use crate::advice::{Advice, Verdict};
use crate::evidence::{Counter, Evidence, Format, Kind, Object};
use crate::gain::{Model, computing, waits_of};

/// Objects that are modelled one by one; the others are joined.
const OBJECTS_MAX: usize = 48;
/// I/Os of a unit where the samples count no transactions.
const UNIT_IOS: f64 = 10.0;
/// The most I/Os of a transaction; a longer one is cut into units.
const TRANSACTION_IOS_MAX: f64 = 1000.0;
/// Sessions that wait for storage, where the samples do not show how many do: few, some, many.
const UNKNOWN: [f64; 3] = [4.0, 16.0, 64.0];
/// The smallest object of a case.
const BYTES_MIN: f64 = 1024.0 * 1024.0;
/// The largest read.
const READ_MAX: f64 = 1024.0 * 1024.0;
/// A database's reads are not all served by the page cache.
const REACHES_MIN: f64 = 0.05;

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The engine of the case.
    pub engine: &'static str,
    /// Its objects, without the log.
    pub objects: Vec<LoadObject>,
    /// What is counted.
    pub unit: Unit,
    /// Units per second, as they were measured.
    pub units_s: f64,
    /// Bytes of the log for each unit.
    pub log_bytes: Option<f64>,
    /// Processors.
    pub cores: f64,
    /// Processor time of a unit, milliseconds of a core.
    pub processor_ms: f64,
    /// Time of a unit in which its session neither computes nor waits for storage, milliseconds.
    pub other_ms: f64,
    /// Sessions at work at the same time.
    pub users: Users,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// An object of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadObject {
    /// Its name, which no other has.
    pub name: String,
    /// Its size.
    pub bytes: f64,
    /// Reads of a unit.
    pub reads: f64,
    /// Bytes of a read, where they are more than a page.
    pub read_bytes: Option<f64>,
    /// Pages that a unit writes.
    pub writes: f64,
    /// Whether the plan moves it.
    pub moves: bool,
}

/// What a load counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Transactions of the database.
    Transaction,
    /// A number of I/Os, because transactions were not counted.
    Ios,
}

/// Sessions at work: a band, and what is most likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    /// At least.
    pub low: u32,
    /// Most likely.
    pub middle: u32,
    /// At most.
    pub high: u32,
    /// Whether the samples show them.
    pub is_measured: bool,
}

impl Users {
    /// The different numbers, the most likely first.
    pub fn band(&self) -> Vec<u32> {
        let mut band = vec![self.middle];
        [self.low, self.high].into_iter().for_each(|one| {
            if !band.contains(&one) {
                band.push(one);
            }
        });
        band
    }
}

impl Load {
    /// The load of the samples from which an advice was made.
    ///
    /// # Errors
    /// What the samples lack for it, and the remedy.
    pub fn of(evidence: &Evidence, advice: &Advice) -> Result<Load, String> {
        let seconds = evidence.seconds.ok_or(
            "the twin needs rates, and the time between the samples is not known; give it with --period",
        )?;
        let lacks = "the twin needs the number and the busy share of the processors; give --cores and --cpu";
        let (busy, cores) = (evidence.host.busy.ok_or(lacks)?, evidence.host.cores.ok_or(lacks)?.max(1.0));
        let ranked = evidence.ranked();
        let data: Vec<&Object> = ranked.iter().copied().filter(|object| object.kind != Kind::Log).collect();
        let of_log = ranked.iter().filter(|object| object.kind == Kind::Log);
        let sum = |counter: Counter| {
            let counts = of_log.clone().filter_map(|object| object.counts.get(counter));
            counts.reduce(|one, other| one + other).map(|count| count / seconds)
        };
        let format = data.first().and_then(|object| object.measured.format);
        let engine = engine(format);
        let mut notes = Vec::new();
        let reaches = reaches(evidence, &data, seconds, format, &mut notes);
        let mut objects = objects(&data, seconds, reaches, page_bytes(engine), advice, &mut notes)?;
        let ios_s: f64 = objects.iter().map(|object| object.reads + object.writes).sum();
        if ios_s <= 0.0 {
            return Err(
                "the twin needs rates, and the samples count no I/Os of objects; give two samples of file or table statistics".into(),
            );
        }
        let transactions_s = evidence.instance.transactions.map(|count| count / seconds);
        let transactions_s = transactions_s.filter(|rate| *rate > 0.0 && ios_s / rate <= TRANSACTION_IOS_MAX);
        let (unit, units_s) = match transactions_s {
            Some(rate) => (Unit::Transaction, rate),
            // A commit writes the log, as often as it was written.
            None => (
                Unit::Ios,
                sum(Counter::Writes)
                    .filter(|rate| ios_s / rate <= TRANSACTION_IOS_MAX && *rate > 0.0)
                    .unwrap_or(ios_s / UNIT_IOS),
            ),
        };
        for object in &mut objects {
            object.reads /= units_s;
            object.writes /= units_s;
        }
        let log_s = evidence.instance.log_bytes.map(|bytes| bytes / seconds).or(sum(Counter::WriteBytes));
        let is_written = objects.iter().any(|object| object.writes > 0.0);
        let waits = waits_of(evidence, &ranked);
        let model = Model::of(evidence, &waits, advice.drive.times, None);
        let computing = computing(evidence, seconds, busy * cores);
        let users = users(model.as_ref(), computing, evidence.instance.active_ms.is_some());
        if !users.is_measured {
            notes.push(format!(
                "the samples do not show how many sessions work at the same time, so {} to {} are simulated",
                users.low, users.high
            ));
        }
        Ok(Load {
            engine,
            objects,
            unit,
            units_s,
            log_bytes: log_s
                .map(|bytes| bytes / units_s)
                .filter(|bytes| is_written && (1.0..=READ_MAX * 16.0).contains(bytes)),
            cores,
            processor_ms: (computing / units_s * 1e3).max(1e-3),
            other_ms: model.map_or(0.0, |model| model.other) / units_s * 1e3,
            users,
            notes,
        })
    }

    /// I/Os per second of all data, as they were measured.
    pub fn ios_s(&self) -> f64 {
        self.objects.iter().map(|object| object.reads + object.writes).sum::<f64>() * self.units_s
    }

    /// Bytes of all objects.
    pub fn bytes(&self) -> f64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }
}

/// The engine of a report's database.
fn engine(format: Option<Format>) -> &'static str {
    match format {
        Some(Format::Postgresql) => "postgresql-15",
        Some(Format::MysqlStatus | Format::Mysql | Format::Mariadb) => "innodb",
        Some(Format::Awr) => "oracle-11g",
        _ => "sql-server-2008",
    }
}

/// Bytes of its pages.
fn page_bytes(engine: &str) -> f64 {
    if engine == "innodb" { 16384.0 } else { 8192.0 }
}

/// The share of the reads that reach the storage. PostgreSQL, MySQL and MariaDB count reads from the operating system, whose page
/// cache may serve some; where the array's volumes were sampled too, they say how many.
fn reaches(
    evidence: &Evidence,
    data: &[&Object],
    seconds: f64,
    format: Option<Format>,
    notes: &mut Vec<String>,
) -> f64 {
    let asked: f64 =
        data.iter().filter_map(|object| object.counts.get(Counter::Reads)).sum::<f64>() / seconds;
    let is_collected = matches!(format, Some(Format::Postgresql | Format::Mysql | Format::Mariadb));
    let volumes = evidence.devices.iter().filter(|device| device.name.starts_with("volume "));
    let read = volumes.filter_map(|device| device.reads_s).reduce(|one, other| one + other);
    let Some(read) = read.filter(|_| is_collected && asked > 0.0) else { return 1.0 };
    let share = (read / asked).clamp(REACHES_MIN, 1.0);
    if share < 1.0 {
        notes.push(format!(
            "{:.0} % of the database's reads reached the array; the twin reads so many, and the page cache serves the rest",
            share * 100.0
        ));
    }
    share
}

/// The objects, with I/Os per second: the busiest one by one.
fn objects(
    data: &[&Object],
    seconds: f64,
    reaches: f64,
    page: f64,
    advice: &Advice,
    notes: &mut Vec<String>,
) -> Result<Vec<LoadObject>, String> {
    let moves =
        |name: &str| advice.objects.iter().any(|row| row.verdict == Verdict::Flash && row.name == name);
    let known: Vec<f64> = data.iter().filter_map(|object| object.bytes).collect();
    let mean = known.iter().sum::<f64>() / (known.len() as f64).max(1.0);
    let mut unsized_objects = 0;
    let mut all: Vec<LoadObject> = Vec::new();
    for object in data {
        let count = |counter: Counter| object.counts.get(counter).unwrap_or(0.0) / seconds;
        let bytes = object.bytes.unwrap_or_else(|| {
            unsized_objects += 1;
            mean
        });
        let name = object.full_name();
        all.push(LoadObject {
            moves: moves(&name),
            name,
            bytes: bytes.max(BYTES_MIN),
            reads: count(Counter::Reads) * reaches,
            read_bytes: object
                .counts
                .bytes_per_read()
                .filter(|bytes| *bytes >= 2.0 * page)
                .map(|bytes| bytes.min(READ_MAX)),
            writes: count(Counter::Writes),
        });
    }
    if unsized_objects > 0 {
        if known.is_empty() {
            return Err(
                "the twin needs the sizes of the objects, and no report has them; give them with --site"
                    .into(),
            );
        }
        notes.push(format!(
            "{} no size in any report and count as large as the mean of the others",
            if unsized_objects == 1 {
                "1 object has".to_owned()
            } else {
                format!("{unsized_objects} objects have")
            }
        ));
    }
    all.sort_by(|a, b| (b.reads + b.writes).total_cmp(&(a.reads + a.writes)));
    let rest = all.split_off(all.len().min(OBJECTS_MAX));
    for moves in [true, false] {
        let joined = rest.iter().filter(|object| object.moves == moves);
        let joined = joined.cloned().reduce(|one, other| LoadObject {
            bytes: one.bytes + other.bytes,
            reads: one.reads + other.reads,
            writes: one.writes + other.writes,
            ..one
        });
        all.extend(joined.map(|joined| LoadObject {
            name: if moves { "others that move" } else { "others that stay" }.to_owned(),
            read_bytes: None,
            ..joined
        }));
    }
    all.retain(|object| object.reads + object.writes > 0.0 || object.moves);
    distinct(&mut all);
    Ok(all)
}

/// Names that a case can have: each once, and none of those that stand for something else there.
fn distinct(all: &mut [LoadObject]) {
    for at in 0..all.len() {
        let own: String = all[at].name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let is_free = |name: &str, all: &[LoadObject]| {
            !["log", "*"].contains(&name) && !all[..at].iter().any(|other| other.name == name)
        };
        let mut name = own.clone();
        let mut number = 2;
        while !is_free(&name, all) {
            name = format!("{own} ({number})");
            number += 1;
        }
        all[at].name = name;
    }
}

/// Sessions at work, by Little's law.
fn users(model: Option<&Model>, computing: f64, is_active_measured: bool) -> Users {
    let whole = |sessions: f64| (sessions.clamp(1.0, 100_000.0)) as u32;
    let Some(model) = model else {
        let [low, middle, high] = UNKNOWN.map(|waiting| whole((waiting + computing).round()));
        return Users { low, middle, high, is_measured: false };
    };
    let at_work = |writes: f64| -> f64 {
        model.all.iter().map(|waits| waits.waited(writes)).sum::<f64>() + computing + model.other
    };
    let middle = at_work(0.0);
    // Without the database's own count of active time it is open whether sessions wait for writes of data.
    let high = if is_active_measured { middle } else { at_work(1.0) };
    Users {
        low: whole(middle.floor()),
        middle: whole(middle.round()),
        high: whole(high.ceil()),
        is_measured: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{Question, advise};
    use crate::drives::{Disk, FlashDrive};
    use crate::rules::testing;
    use crate::site::Site;

    fn question() -> Question {
        let catalog = tier0_catalog::Catalog::embedded();
        Question {
            flash: Some(50e9),
            drive: FlashDrive::of(&catalog, "ssd-sata").expect("it is there"),
            disk: Disk::of(&catalog, "sas-10k-900gb-sff").expect("it is there"),
            site: Site::default(),
        }
    }

    fn load(evidence: &Evidence) -> Result<Load, String> {
        Load::of(evidence, &advise(evidence, &question()))
    }

    /// 100 s with 8 processors, 30 % busy: 2.4 sessions compute, and 4000 reads of 10 ms and 500 writes of 4 ms are 0.4 and 0.02 waiting.
    fn evidence() -> Evidence {
        let mut scanned = testing::object("scanned", Kind::Data, 900.0, 100.0, 0.0, 20.0);
        scanned.counts = scanned.counts.with(Counter::ReadBytes, 100.0 * 262_144.0);
        let log = testing::object("log", Kind::Log, 5.0, 0.0, 1000.0, 1.0);
        let log = Object { counts: log.counts.with(Counter::WriteBytes, 4e6), ..log };
        let objects = vec![testing::object("log", Kind::Data, 40.0, 4000.0, 500.0, 10.0), scanned, log];
        testing::period(objects, 0.3)
    }

    #[test]
    fn a_load_is_what_each_transaction_takes() {
        let mut evidence = evidence();
        evidence.instance.transactions = Some(2000.0);
        let load = load(&evidence).expect("a load");
        assert_eq!((load.unit, load.units_s, load.cores), (Unit::Transaction, 20.0, 8.0));
        assert!(
            (load.processor_ms - 120.0).abs() < 1e-9,
            "0.3 × 8 of a second for 20: {}",
            load.processor_ms
        );
        let object = &load.objects[0];
        assert!(object.name == "db.log" && object.moves, "{object:?}");
        assert!((object.reads - 2.0).abs() < 1e-9 && (object.writes - 0.25).abs() < 1e-9, "{object:?}");
        assert_eq!(object.read_bytes, None, "a page");
        assert_eq!(load.objects[1].read_bytes, Some(262_144.0));
        assert_eq!(load.log_bytes, Some(2000.0));
        // 2.4 compute, 0.43 wait for data and the log: 2 or 3, and no more if they wait for writes of data too.
        assert_eq!(load.users, Users { low: 2, middle: 3, high: 3, is_measured: true });
    }

    #[test]
    fn without_transactions_a_unit_is_a_write_of_the_log() {
        let load = load(&evidence()).expect("a load");
        assert_eq!((load.unit, load.units_s), (Unit::Ios, 10.0));
    }

    #[test]
    fn what_is_lacking_is_named() {
        let without = |change: fn(&mut Evidence)| {
            let mut evidence = evidence();
            change(&mut evidence);
            load(&evidence).expect_err("it lacks something")
        };
        assert!(without(|evidence| evidence.seconds = None).contains("--period"));
        assert!(without(|evidence| evidence.host.busy = None).contains("--cpu"));
        assert!(
            without(|evidence| evidence.objects.iter_mut().for_each(|object| object.bytes = None))
                .contains("--site")
        );
        assert!(without(|evidence| evidence.objects.clear()).contains("no I/Os"));
    }

    #[test]
    fn unknown_sessions_are_a_band() {
        let users = users(None, 2.4, false);
        assert_eq!((users.low, users.middle, users.high, users.is_measured), (6, 18, 66, false));
        assert_eq!(users.band(), [18, 6, 66]);
    }

    #[test]
    fn names_are_those_that_a_case_can_have() {
        let object = |name: &str| LoadObject {
            name: name.into(),
            bytes: 1e9,
            reads: 1.0,
            read_bytes: None,
            writes: 0.0,
            moves: false,
        };
        let mut all = ["log", "a\u{1b}", "a ", "*"].map(object).to_vec();
        distinct(&mut all);
        let names: Vec<&str> = all.iter().map(|object| object.name.as_str()).collect();
        assert_eq!(names, ["log (2)", "a ", "a  (2)", "* (2)"]);
    }
}
