//! Which versions a unit may hold, while writes come and go and what stores them crashes.
//!
//! A unit is what is written as a whole or not at all: a sector, or a block of which all writes cover whole ones. Its
//! writes have numbers that grow in the order in which they begin.
//!
//! A write is certainly overwritten only by one that began after it had ended, was acknowledged, and covers the unit for
//! certain. Writes that overlapped in time may have landed in any order. A write that failed, or was under way in a
//! crash, may have landed or not.
//!
//! Two questions differ where a cache is volatile: what may a read find now (overwritten by what was acknowledged), and
//! what may be found after a crash (overwritten by what is stable). So a version stays in the book until something
//! stable has overwritten it.
//!
//! What was read once while no write was under way stays until the next write, and so does what a restart has found: who
//! recovers decides by what it reads.
//!
//! A unit at rest takes four bytes. The book draws nothing at random, and knows neither data nor addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::read::{Allowed, Noted, ReadTicket};
use super::write::{Effect, Entry, Moment, Version};

/// The versions of all units of a range.
#[derive(Clone, Debug)]
pub struct Book {
    /// The last version of every unit that is at rest; nothing else can be there, now or after a crash.
    settled: Vec<u32>,
    /// The last write of a unit that left zeros.
    zeroed: BTreeMap<u64, u32>,
    /// Units of which more is to be said.
    busy: BTreeMap<u64, Busy>,
    now: Moment,
    stable_when_acknowledged: bool,
}

/// A unit that may hold one of several versions.
#[derive(Clone, Debug)]
struct Busy {
    /// In the order in which they began.
    entries: Vec<Entry>,
    /// The highest number of all, whether it may still be there or not.
    issued: u32,
}

impl Book {
    /// `units` units, none written. `stable_when_acknowledged` where every acknowledged write survives a crash.
    pub fn new(units: usize, stable_when_acknowledged: bool) -> Book {
        let (zeroed, busy) = (BTreeMap::new(), BTreeMap::new());
        Book { settled: vec![0; units], zeroed, busy, now: 0, stable_when_acknowledged }
    }

    /// How many units there are.
    pub fn units(&self) -> u64 {
        self.settled.len() as u64
    }

    /// The number of the unit's last write that has begun; 0 for none.
    pub fn issued(&self, unit: u64) -> u32 {
        self.busy.get(&unit).map_or(self.settled[unit as usize], |busy| busy.issued)
    }

    /// Whether a write of the unit has ever begun.
    pub fn is_written(&self, unit: u64) -> bool {
        self.issued(unit) > 0
    }

    /// A write of the unit begins. Its number must be higher than those before it.
    pub fn begin_write(&mut self, unit: u64, number: u32, effect: Effect) {
        self.now += 1;
        let before = self.at_rest(unit);
        let busy = self.busy.entry(unit).or_insert_with(|| Busy {
            entries: vec![Entry::certain(before, 0, true)],
            issued: before.number,
        });
        assert!(number > busy.issued, "version {number} of unit {unit} comes after {}", busy.issued);
        busy.issued = number;
        busy.entries.push(Entry::begun(number, effect, self.now));
        if effect != Effect::Stamp {
            self.zeroed.insert(unit, number);
        }
    }

    /// A write under way ended: `acknowledged`, or failed with an unknown outcome. `durable` where its acknowledgement
    /// promised that it is stable.
    pub fn end_write(&mut self, unit: u64, number: u32, acknowledged: bool, durable: bool) {
        self.now += 1;
        let busy = self.busy.get_mut(&unit).expect("a unit with a write under way is busy");
        let under_way = |entry: &&mut Entry| entry.version.number == number && entry.ended.is_none();
        let entry = busy.entries.iter_mut().find(under_way).expect("a write under way is in the book");
        entry.ended = Some(self.now);
        entry.acknowledged = acknowledged;
        entry.stable = acknowledged && (durable || self.stable_when_acknowledged);
        self.tidy(unit);
    }

    /// A flush begins.
    pub fn begin_flush(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// The flush that began at `began` was acknowledged: what was acknowledged before it began is stable. (A flush that
    /// failed promises nothing.)
    pub fn end_flush(&mut self, began: Moment) {
        for entry in self.busy.values_mut().flat_map(|busy| &mut busy.entries) {
            entry.stable |= entry.acknowledged && entry.ended.is_some_and(|ended| ended < began);
        }
        self.tidy_all();
    }

    /// What stores the units died: nothing is under way any more, and of what is not stable nothing is certain.
    pub fn crash(&mut self) {
        self.now += 1;
        for entry in self.busy.values_mut().flat_map(|busy| &mut busy.entries).filter(|entry| !entry.stable) {
            entry.acknowledged = false;
            entry.ended = Some(self.now);
        }
        self.tidy_all();
    }

    /// A read of these units begins. Whatever is written from now on will get a number above `numbered`, where the units
    /// share their numbers; 0 where each counts for itself.
    pub fn begin_read(&self, units: Range<u64>, numbered: u32, ticket: &mut ReadTicket) {
        ticket.first = units.start;
        ticket.units.clear();
        ticket.known.clear();
        for unit in units {
            let quiet = self.readable(unit, &mut ticket.known);
            let above = self.issued(unit).max(numbered);
            ticket.units.push(Noted { above, quiet, known_end: ticket.known.len() });
        }
    }

    /// What a read that ends now may have found in one of its units.
    pub fn allowed<'a>(&self, ticket: &'a ReadTicket, unit: u64) -> Allowed<'a> {
        let (noted, known) = ticket.noted(unit);
        let issued = self.issued(unit);
        let at_rest = noted.quiet && issued <= noted.above;
        let mut known = Cow::Borrowed(known);
        if at_rest && known.len() > 1 {
            // Another read may have decided meanwhile what is there.
            let mut decided = Vec::new();
            self.readable(unit, &mut decided);
            known = Cow::Owned(decided);
        }
        let zeroed_since = self.zeroed.get(&unit).copied().filter(|number| *number > noted.above);
        Allowed { known, above: noted.above, up_to: issued.max(noted.above), zeroed_since, at_rest }
    }

    /// The read has found this version of what is `allowed`: if no write was under way, nothing else is there.
    pub fn observe(&mut self, unit: u64, allowed: &Allowed<'_>, number: u32) {
        if allowed.at_rest && allowed.known.len() > 1 {
            self.decide(unit, number, self.stable_when_acknowledged);
        }
    }

    /// A restart after a crash has found this version, which is allowed: it will survive the next crash too.
    pub fn recovered(&mut self, unit: u64, number: u32) {
        self.decide(unit, number, true);
    }

    /// The unit holds this version for certain. Its write stays in the book too: a flush that began before may yet tell that
    /// nothing older will come back.
    fn decide(&mut self, unit: u64, number: u32, stable: bool) {
        let Some(busy) = self.busy.get_mut(&unit) else { return };
        let seen = busy.entries.iter().find(|entry| entry.version.number == number);
        let Some(version) = seen.map(|entry| entry.version) else { return };
        self.now += 1;
        busy.entries.push(Entry::certain(version, self.now, stable));
        self.tidy(unit);
    }

    /// Appends what a read of this very moment may find; true if no write is under way.
    fn readable(&self, unit: u64, found: &mut Vec<Version>) -> bool {
        let Some(Busy { entries, .. }) = self.busy.get(&unit) else {
            found.push(self.at_rest(unit));
            return true;
        };
        let overwritten = entries.iter().filter_map(Entry::overwrites_since).max();
        let start = found.len();
        for entry in entries.iter().filter(|entry| !entry.is_overwritten_by(overwritten)) {
            if !found[start..].contains(&entry.version) {
                found.push(entry.version);
            }
        }
        entries.iter().all(|entry| entry.ended.is_some())
    }

    /// What a unit holds that is not busy.
    fn at_rest(&self, unit: u64) -> Version {
        let number = self.settled[unit as usize];
        Version { number, zero: number == 0 || self.zeroed.get(&unit) == Some(&number) }
    }

    fn tidy(&mut self, unit: u64) {
        if let Some(number) = self.busy.get_mut(&unit).and_then(Busy::tidy) {
            self.settled[unit as usize] = number;
            self.busy.remove(&unit);
        }
    }

    fn tidy_all(&mut self) {
        let Book { settled, busy, .. } = self;
        busy.retain(|unit, busy| {
            let at_rest = busy.tidy();
            at_rest.into_iter().for_each(|number| settled[*unit as usize] = number);
            at_rest.is_none()
        });
    }
}

impl Busy {
    /// Drops what something stable has overwritten. Gives the version if it is the only one left, and the last.
    ///
    /// (Were it not the last, the number of the last would be forgotten, and given again.)
    fn tidy(&mut self) -> Option<u32> {
        let stable = self.entries.iter().filter(|entry| entry.stable);
        let overwritten = stable.filter_map(Entry::overwrites_since).max();
        self.entries.retain(|entry| !entry.is_overwritten_by(overwritten));
        match self.entries[..] {
            [Entry { version, ended: Some(_), .. }] if version.number == self.issued => Some(version.number),
            _ => None,
        }
    }
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod walk;
