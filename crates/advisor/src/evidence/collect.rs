//! From samples to evidence: differences of consecutive samples, summed; restarts found by counters that fell.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counts::{Counter, Counts};
use super::devices::{Device, DeviceSums, Host};
use super::object::{Identity, Level, Measured, Object};
use crate::samples::DatabaseAddress;

use super::sample::{Counting, Format, Instance, Sample, Trap};

/// The most objects of one format over all samples: a file of ever new names is no report.
const OBJECTS_MAX: usize = 500_000;

/// Data of which so much is read by scans is scanned.
const SCANNED: f64 = 0.9;

/// Where evidence is from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Source {
    /// The file.
    pub file: String,
    /// What it is.
    pub format: Format,
    /// How many samples it has.
    pub samples: u64,
}

/// What is known of a database, its host and its storage over a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// The files.
    pub sources: Vec<Source>,
    /// Objects of every level.
    pub objects: Vec<Object>,
    /// Seconds over which objects and instance were counted, if known.
    pub seconds: Option<f64>,
    /// Whether the counts of objects are of a period; else they run since the start of the database.
    pub is_period: bool,
    /// How often the database was restarted in between.
    pub restarts: u64,
    /// The instance over the period.
    pub instance: Instance,
    /// The host.
    pub host: Host,
    /// Devices.
    pub devices: Vec<Device>,
    /// Traps in the files.
    pub traps: Vec<Trap>,
    /// What else the reader should know.
    pub notes: Vec<String>,
    /// The database, where its samples say which: that of the last one.
    pub database: Option<DatabaseAddress>,
}

/// Takes samples and sums what happened between them.
#[derive(Default)]
pub struct Collector {
    sources: Vec<Source>,
    groups: BTreeMap<Format, Group>,
    devices: DeviceSums,
    traps: Vec<Trap>,
    notes: Vec<String>,
    database: Option<DatabaseAddress>,
}

/// The samples of one format, in their order.
#[derive(Default)]
struct Group {
    /// The last counters since a start.
    last: Option<Last>,
    /// Sums over all intervals.
    sums: BTreeMap<Identity, Object>,
    instance: Instance,
    seconds: Option<f64>,
    intervals: u64,
    restarts: u64,
    /// Samples that are older than the one before.
    disordered: u64,
    /// Counts of objects that found no place.
    left_out: u64,
}

struct Last {
    at: Option<f64>,
    seconds: Option<f64>,
    epoch: Option<String>,
    objects: BTreeMap<Identity, Object>,
    instance: Instance,
}

impl Last {
    fn counts(&self) -> impl Iterator<Item = (&Identity, &Counts)> {
        self.objects.iter().map(|(identity, object)| (identity, &object.counts))
    }

    /// Whether the other sample is the same one: equal counters, and no time between them.
    fn is_same(&self, other: &Last) -> bool {
        (self.at, self.seconds, &self.epoch) == (other.at, other.seconds, &other.epoch)
            && self.instance == other.instance
            && self.counts().eq(other.counts())
    }
}

impl Collector {
    /// Notes a file; what is added next is of it.
    pub fn begin(&mut self, file: &str, format: Format) {
        self.sources.push(Source { file: file.to_owned(), format, samples: 0 });
    }

    /// Adds a sample. Samples of one format come in the order of their times.
    pub fn add(&mut self, sample: Sample) {
        if let Some(source) = self.sources.last_mut() {
            source.samples += 1;
        }
        let seconds = (sample.counting == Counting::Interval).then_some(sample.seconds).flatten();
        if let Some(database) = &sample.database {
            let is_other = self.database.as_ref().is_some_and(|known| !known.is_same(database));
            let note = "samples of two databases are mixed; give those of one";
            if is_other && !self.notes.iter().any(|known| known == note) {
                self.notes.push(note.to_owned());
            }
            self.database = Some(database.clone());
        }
        if let Some(host) = &sample.host {
            self.devices.add_host(host, seconds);
        }
        if sample.host.is_some() || !sample.devices.is_empty() {
            self.devices.add_interval(seconds);
        }
        self.devices.add_cores(sample.cores);
        sample.devices.iter().for_each(|device| self.devices.add_device(device, seconds));
        self.traps.extend(sample.traps.iter().cloned());
        for note in &sample.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        if !sample.objects.is_empty() || sample.instance != Instance::default() {
            let is_new = self.groups.entry(sample.format).or_default().add(sample);
            if let Some(source) = self.sources.last().filter(|_| !is_new) {
                self.notes.push(format!(
                    "{}: the samples are the same: all counters are those of the sample before, and no time lies between them, so they \
                     count as one; give a later one",
                    source.file
                ));
            }
        }
    }

    /// All that was added. `period` is the time between two samples that have no times of their own.
    pub fn finish(self, period: Option<f64>) -> Evidence {
        let mut evidence = Evidence {
            sources: self.sources,
            traps: self.traps,
            notes: self.notes,
            database: self.database,
            ..Evidence::default()
        };
        evidence.is_period = true;
        // Those without objects last: their time is not that of what is ranked.
        let (with, without): (Vec<_>, Vec<_>) =
            self.groups.into_iter().partition(|(_, group)| group.has_objects());
        for (format, group) in with.into_iter().chain(without) {
            group.finish(format, period, &mut evidence);
        }
        (evidence.host, evidence.devices) = self.devices.finish();
        evidence
    }
}

impl Group {
    fn has_objects(&self) -> bool {
        !self.sums.is_empty() || self.last.as_ref().is_some_and(|last| !last.objects.is_empty())
    }

    /// Adds a sample; whether it is another than the one before.
    fn add(&mut self, sample: Sample) -> bool {
        let objects: BTreeMap<Identity, Object> =
            sample.objects.into_iter().map(|object| (object.identity.clone(), object)).collect();
        if sample.counting == Counting::Interval {
            self.intervals += 1;
            self.lengthen(sample.seconds);
            self.instance.add(sample.instance);
            objects.into_values().for_each(|object| self.sum(object));
            return true;
        }
        let now = Last {
            at: sample.at,
            seconds: sample.seconds,
            epoch: sample.epoch,
            objects,
            instance: sample.instance,
        };
        if self.last.as_ref().is_some_and(|last| last.is_same(&now)) {
            return false;
        }
        if let Some(last) = self.last.take() {
            match now.at.zip(last.at).is_some_and(|(now, then)| now < then) {
                true => self.disordered += 1,
                false => self.add_difference(&last, &now),
            }
        }
        self.last = Some(now);
        true
    }

    fn add_difference(&mut self, last: &Last, now: &Last) {
        self.intervals += 1;
        let fell = |(identity, object): (&Identity, &Object)| {
            last.objects.get(identity).is_some_and(|then| object.counts.fell_below(&then.counts))
        };
        let apart = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        let any_fell = now.instance.fell_below(last.instance) || now.objects.iter().any(fell);
        if let Some((epoch, before)) = now.epoch.as_ref().zip(last.epoch.as_ref()) {
            let restarted = epoch != before && any_fell;
            self.restarts += u64::from(restarted);
            self.lengthen(apart(now.at, last.at));
            self.add_of_each(last, now, restarted);
            return;
        }
        let restarted = any_fell || now.seconds.zip(last.seconds).is_some_and(|(now, then)| now < then);
        if restarted {
            // All counters began again somewhere in between; what they have now was counted since then.
            self.restarts += 1;
            let since = now.seconds.or_else(|| apart(now.at, last.at));
            self.lengthen(since);
            self.instance.add(now.instance);
            now.objects.values().for_each(|object| self.sum(object.clone()));
            return;
        }
        self.lengthen(apart(now.at, last.at).or_else(|| apart(now.seconds, last.seconds)));
        self.add_of_each(last, now, false);
    }

    /// Adds what was counted between two samples. What fell began again, and the rest went on: PostgreSQL keeps its counters over
    /// an orderly restart, and a table that was made again begins at 0.
    fn add_of_each(&mut self, last: &Last, now: &Last, restarted: bool) {
        self.instance.add(now.instance.since(last.instance, restarted));
        for (identity, object) in &now.objects {
            let counts = match last.objects.get(identity) {
                Some(then) if !object.counts.fell_below(&then.counts) => object.counts.since(&then.counts),
                // It is new, or new again: all that it has was counted in between.
                _ => object.counts,
            };
            self.sum(Object { counts, ..object.clone() });
        }
    }

    fn lengthen(&mut self, seconds: Option<f64>) {
        if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
            self.seconds = Some(self.seconds.unwrap_or(0.0) + seconds);
        }
    }

    fn sum(&mut self, object: Object) {
        let is_full = self.sums.len() >= OBJECTS_MAX;
        match self.sums.get_mut(&object.identity) {
            Some(sum) => {
                sum.counts.add(&object.counts);
                sum.bytes = object.bytes.or(sum.bytes);
                sum.table = object.table.or(sum.table.take());
            }
            None if is_full => self.left_out += 1,
            None => _ = self.sums.insert(object.identity.clone(), object),
        }
    }

    fn finish(mut self, format: Format, period: Option<f64>, evidence: &mut Evidence) {
        if self.intervals == 0
            && let Some(last) = self.last.take()
        {
            // One sample: since the start, whatever loads there were.
            evidence.is_period = false;
            evidence.notes.push(format!(
                "{}: one sample only, so its counters run since the start of the database and mix all loads; give two samples \
                 of one load",
                format.words()
            ));
            self.seconds = last.seconds;
            self.instance = last.instance;
            self.sums = last.objects;
        }
        if self.restarts > 0 {
            evidence.notes.push(format!(
                "{}: counters fell or began again between samples ({} time{}), so the database was restarted, or the files are not in the order of their \
                 times; what was counted before each restart is missing",
                format.words(),
                self.restarts,
                if self.restarts == 1 { "" } else { "s" }
            ));
        }
        if self.disordered > 0 {
            evidence.notes.push(format!(
                "{}: the files are not in the order of their times, so what lies between them is not known; give the earlier one first",
                format.words()
            ));
        }
        if self.left_out > 0 {
            evidence.notes.push(format!(
                "{}: there are more than {OBJECTS_MAX} objects, and the others are left out",
                format.words()
            ));
        }
        self.share_out(evidence);
        evidence.restarts += self.restarts;
        let seconds = self.seconds.or(period);
        let has_objects = !self.sums.is_empty();
        let measured = Measured { seconds, format: Some(format) };
        self.sums.values_mut().for_each(|object| object.measured = measured);
        // The time of what is ranked; the counters of an instance are of it, or are brought to it.
        match (evidence.seconds, seconds) {
            (None, _) => evidence.seconds = seconds,
            (Some(of), Some(own)) if !has_objects => self.instance.scale(of / own),
            (Some(of), Some(own)) => {
                evidence.instance.scale(own / of);
                evidence.seconds = Some(own);
            }
            (Some(_), None) => {}
        }
        evidence.instance.add(self.instance);
        evidence.objects.extend(self.sums.into_values());
    }
}

impl Group {
    /// Shares the times and writes that only the instance has counted out over its objects: times by reads, writes by changed rows.
    fn share_out(&mut self, evidence: &mut Evidence) {
        let shares: [(Counter, Option<f64>, Counter, &str); 2] = [
            (
                Counter::ReadMs,
                self.instance.read_ms,
                Counter::Reads,
                "read times of tables are shares of the database's, by reads",
            ),
            (
                Counter::Writes,
                self.instance.data_writes,
                Counter::ChangedRows,
                "writes of tables are shares of the database's, by changed rows: an estimate",
            ),
        ];
        for (what, total, by, note) in shares {
            let Some(total) = total else { continue };
            let weighs =
                |object: &Object| object.counts.get(what).is_none().then(|| object.counts.get(by)).flatten();
            let all: f64 = self.sums.values().filter_map(weighs).sum();
            if all <= 0.0 {
                continue;
            }
            for object in self.sums.values_mut() {
                if let Some(weight) = weighs(object) {
                    object.counts.set(what, Some(total * weight / all));
                }
            }
            evidence.notes.push(note.to_owned());
        }
    }
}

impl Evidence {
    /// The objects that are ranked: the finest level whose reads cover at least half of those of the next coarser one. Finer
    /// ones that cover less leave too much out.
    pub fn ranked(&self) -> Vec<&Object> {
        let of = |level: Level| self.objects.iter().filter(move |object| object.identity.level == level);
        let reads =
            |level: Level| -> f64 { of(level).filter_map(|object| object.counts.get(Counter::Reads)).sum() };
        let mut chosen: Option<Level> = None;
        for level in [Level::Instance, Level::Tablespace, Level::File, Level::Segment] {
            if of(level).next().is_none() {
                continue;
            }
            let is_counted = of(level).any(|object| object.counts.get(Counter::Reads).is_some());
            let covers = chosen.is_none_or(|coarser| is_counted && reads(level) >= 0.5 * reads(coarser));
            if covers {
                chosen = Some(level);
            }
        }
        let mut ranked: Vec<&Object> = chosen.into_iter().flat_map(of).collect();
        if chosen == Some(Level::Segment) {
            ranked.extend(of(Level::Rest));
        }
        // The log is not among tables: it is taken from the level that has it.
        if !ranked.iter().any(|object| object.kind == super::Kind::Log) {
            ranked.extend(
                self.objects.iter().filter(|object| {
                    object.kind == super::Kind::Log && Some(object.identity.level) != chosen
                }),
            );
        }
        ranked
    }

    /// Whether nearly all that is read of data is read by scans.
    pub fn is_scanned(&self) -> bool {
        let ranked = self.ranked();
        let read = |is_scan: bool| -> f64 {
            let of = ranked.iter().filter(|object| {
                object.kind != super::Kind::Log && (object.is_sequential() == Some(true)) == is_scan
            });
            let bytes = |object: &&Object| {
                object.counts.get(Counter::ReadBytes).or(object.counts.get(Counter::Reads)).unwrap_or(0.0)
            };
            of.map(bytes).sum()
        };
        let (scans, others) = (read(true), read(false));
        scans > 0.0 && scans >= SCANNED * (scans + others)
    }

    /// Share of page requests that the database's memory served.
    pub fn hit_share(&self) -> Option<f64> {
        let of_instance = self.instance.hits.zip(self.instance.reads);
        let share = of_instance.filter(|(hits, reads)| hits + reads > 0.0);
        share.map(|(hits, reads)| hits / (hits + reads)).or(self.host.hit_share)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn sample(at: f64, reads: [f64; 2]) -> Sample {
        let mut sample = Sample::new(Format::VirtualFileStats, Counting::SinceStart);
        sample.at = Some(at);
        for (name, reads) in ["a", "b"].into_iter().zip(reads) {
            sample.objects.push(Object {
                identity: Identity {
                    level: Level::File,
                    database: "db".into(),
                    name: name.into(),
                    path: None,
                },
                kind: Kind::Data,
                table: None,
                measured: Measured::default(),
                bytes: None,
                counts: Counts::default().with(Counter::Reads, reads),
            });
        }
        sample
    }

    fn evidence(samples: impl IntoIterator<Item = Sample>) -> Evidence {
        let mut collector = Collector::default();
        collector.begin("f", Format::VirtualFileStats);
        samples.into_iter().for_each(|sample| collector.add(sample));
        collector.finish(None)
    }

    fn reads(evidence: &Evidence) -> Vec<Option<f64>> {
        evidence.objects.iter().map(|object| object.counts.get(Counter::Reads)).collect()
    }

    #[test]
    fn two_samples_are_subtracted() {
        let evidence = evidence([sample(100.0, [1000.0, 50.0]), sample(160.0, [1600.0, 50.0])]);
        assert_eq!(reads(&evidence), [Some(600.0), Some(0.0)]);
        assert_eq!(evidence.seconds, Some(60.0));
        assert!(evidence.is_period && evidence.restarts == 0);
    }

    /// One object passes its old value again before the second sample; another has not.
    #[test]
    fn a_counter_that_fell_is_a_restart_of_all() {
        let samples =
            [sample(0.0, [1000.0, 50.0]), sample(60.0, [1200.0, 20.0]), sample(90.0, [1300.0, 30.0])];
        let evidence = evidence(samples);
        assert_eq!(reads(&evidence), [Some(1300.0), Some(30.0)]);
        assert_eq!(evidence.restarts, 1);
        assert!(evidence.notes[0].contains("restarted"), "{:?}", evidence.notes);
    }

    /// A table that was made again, and the server's orderly restart, which keeps all counters.
    #[test]
    fn counters_of_a_source_with_epochs_are_followed_one_by_one() {
        let of = |at: f64, reads: [f64; 2], epoch: &str| Sample {
            epoch: Some(epoch.to_owned()),
            ..sample(at, reads)
        };
        let again = evidence([of(0.0, [1e9, 500.0], "1"), of(60.0, [1e9 + 7.0, 20.0], "1")]);
        assert_eq!(reads(&again), [Some(7.0), Some(20.0)]);
        assert_eq!(again.restarts, 0, "{:?}", again.notes);
        let restarted = evidence([of(0.0, [1e9, 500.0], "1"), of(60.0, [1e9 + 7.0, 500.0], "2")]);
        assert_eq!(reads(&restarted), [Some(7.0), Some(0.0)]);
        let crashed = evidence([of(0.0, [1e9, 500.0], "1"), of(60.0, [7.0, 3.0], "2")]);
        assert_eq!((reads(&crashed), crashed.restarts), (vec![Some(7.0), Some(3.0)], 1));
    }

    #[test]
    fn files_in_the_wrong_order_are_named() {
        let evidence = evidence([sample(60.0, [1600.0, 50.0]), sample(0.0, [1000.0, 50.0])]);
        assert!(!evidence.is_period && evidence.restarts == 0);
        assert!(evidence.notes.iter().any(|note| note.contains("give the earlier one first")));
    }

    /// The difference of a sample to itself is 0, which looks as if nothing had waited.
    #[test]
    fn the_same_sample_twice_is_one() {
        let same = || Sample { at: None, ..sample(0.0, [10.0, 20.0]) };
        let twice = evidence([same(), same()]);
        assert!(!twice.is_period);
        assert_eq!(reads(&twice), [Some(10.0), Some(20.0)]);
        assert!(twice.notes[0].starts_with("f: the samples are the same"), "{:?}", twice.notes);
        // The same time, and a later one in which the database had no work.
        let of_one_time = evidence([sample(5.0, [10.0, 20.0]), sample(5.0, [10.0, 20.0])]);
        assert!(!of_one_time.is_period);
        let idle = evidence([sample(5.0, [10.0, 20.0]), sample(65.0, [10.0, 20.0])]);
        assert!(idle.is_period && idle.notes.is_empty(), "{:?}", idle.notes);
        assert_eq!((reads(&idle), idle.seconds), (vec![Some(0.0), Some(0.0)], Some(60.0)));
        let others = evidence([same(), same(), Sample { at: None, ..sample(0.0, [15.0, 20.0]) }]);
        assert!(others.is_period);
        assert_eq!(reads(&others), [Some(5.0), Some(0.0)]);
    }

    #[test]
    fn one_sample_says_that_it_is_one() {
        let evidence = evidence([sample(5.0, [10.0, 20.0])]);
        assert!(!evidence.is_period);
        assert_eq!(reads(&evidence), [Some(10.0), Some(20.0)]);
        assert!(evidence.notes[0].contains("two samples"), "{:?}", evidence.notes);
    }
}
