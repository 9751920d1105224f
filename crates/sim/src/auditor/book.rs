//! Which versions the sectors of a volume may hold, while writes come and go and the array crashes.
//!
//! A write is certainly overwritten only by one that began after it had ended, was acknowledged, and covers the sector
//! for certain. Writes that overlapped in time may have landed in any order. A write that failed, or was under way in a
//! crash, may have landed or not.
//!
//! Two questions differ where a cache is volatile: what may a read find now (overwritten by what was acknowledged), and
//! what may be found after a crash (overwritten by what is stable). So a version stays in the book until something
//! stable has overwritten it.

use std::collections::BTreeMap;

/// Moments of the auditor: it counts the beginnings and ends of requests.
pub(super) type Moment = u64;

/// A version that a sector may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    version: u32,
    /// It reads as zeros.
    zero: bool,
    /// Acknowledged or not, it may have left the sector alone.
    may_skip: bool,
    began: Moment,
    /// Nothing while it is under way.
    ended: Option<Moment>,
    acknowledged: bool,
    stable: bool,
}

impl Entry {
    /// A write that begins.
    pub(super) fn begun(version: u32, zero: bool, may_skip: bool, began: Moment) -> Entry {
        Entry { version, zero, may_skip, began, ended: None, acknowledged: false, stable: false }
    }

    /// What a sector certainly holds since `moment`.
    fn certain(version: u32, zero: bool, moment: Moment, stable: bool) -> Entry {
        let ended = Some(moment);
        Entry { version, zero, may_skip: false, began: moment, ended, acknowledged: true, stable }
    }

    /// Whether nothing of `other` can be left if this one counts.
    fn overwrites(&self, other: &Entry) -> bool {
        self.acknowledged && !self.may_skip && other.ended.is_some_and(|ended| self.began > ended)
    }
}

/// A sector at rest: one version, whether it is zeros, for certain and stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settled {
    version: u32,
    zero: bool,
}

/// The versions of all sectors of a volume.
#[derive(Clone, Debug)]
pub(super) struct Book {
    settled: Vec<Settled>,
    /// Sectors of which more is to be said, in the order in which their writes began.
    busy: BTreeMap<u64, Vec<Entry>>,
}

impl Book {
    /// `sectors` sectors of zeros.
    pub(super) fn new(sectors: usize) -> Book {
        Book { settled: vec![Settled { version: 0, zero: true }; sectors], busy: BTreeMap::new() }
    }

    pub(super) fn sectors(&self) -> u64 {
        self.settled.len() as u64
    }

    /// Sectors that may hold something other than zeros.
    pub(super) fn in_use(&self) -> u64 {
        let settled = |sector: &u64| !self.settled[*sector as usize].zero;
        let busy =
            |sector: &u64| self.busy.get(sector).map(|entries| entries.iter().any(|entry| !entry.zero));
        (0..self.sectors()).filter(|sector| busy(sector).unwrap_or_else(|| settled(sector))).count() as u64
    }

    /// A write of the sector begins.
    pub(super) fn begin(&mut self, sector: u64, entry: Entry) {
        let settled = self.settled[sector as usize];
        let before = Entry::certain(settled.version, settled.zero, 0, true);
        self.busy.entry(sector).or_insert_with(|| vec![before]).push(entry);
    }

    /// The write of that version ended.
    pub(super) fn end(&mut self, sector: u64, version: u32, now: Moment, acknowledged: bool, stable: bool) {
        let entries = self.busy.get_mut(&sector).expect("a sector with a write under way is busy");
        let entry = entries.iter_mut().find(|entry| entry.version == version && entry.ended.is_none());
        let entry = entry.expect("a write under way is in the book");
        entry.ended = Some(now);
        entry.acknowledged = acknowledged;
        entry.stable = acknowledged && stable;
        self.tidy(sector);
    }

    /// A flush that began at `began` was acknowledged.
    pub(super) fn flush(&mut self, began: Moment) {
        for entries in self.busy.values_mut() {
            for entry in entries.iter_mut().filter(|entry| entry.acknowledged) {
                entry.stable |= entry.ended.is_some_and(|ended| ended < began);
            }
        }
        self.tidy_all();
    }

    /// The array died: of what is not stable nothing is certain any more.
    pub(super) fn crash(&mut self, now: Moment) {
        for entry in self.busy.values_mut().flatten().filter(|entry| !entry.stable) {
            entry.acknowledged = false;
            entry.ended = Some(now);
        }
        self.tidy_all();
    }

    /// The sector was seen with this version while no write was under way: it holds it for certain.
    pub(super) fn observe(&mut self, sector: u64, version: u32, now: Moment, stable: bool) {
        let Some(entries) = self.busy.get_mut(&sector) else { return };
        let Some(seen) = entries.iter().position(|entry| entry.version == version) else { return };
        let seen = entries.remove(seen);
        entries.push(Entry::certain(version, seen.zero, now, stable));
        self.tidy(sector);
    }

    /// Appends what a read of this very moment may find; true if no write is under way.
    pub(super) fn readable(&self, sector: u64, found: &mut Vec<(u32, bool)>) -> bool {
        let Some(entries) = self.busy.get(&sector) else {
            let settled = self.settled[sector as usize];
            found.push((settled.version, settled.zero));
            return true;
        };
        let hidden = |entry: &Entry| entries.iter().any(|other| other.overwrites(entry));
        found.extend(entries.iter().filter(|entry| !hidden(entry)).map(|entry| (entry.version, entry.zero)));
        entries.iter().all(|entry| entry.ended.is_some())
    }

    fn tidy_all(&mut self) {
        let sectors: Vec<u64> = self.busy.keys().copied().collect();
        for sector in sectors {
            self.tidy(sector);
        }
    }

    /// Drops what something stable has overwritten. A sector with one stable version left, or with one version left
    /// that no other can be taken for, is at rest.
    fn tidy(&mut self, sector: u64) {
        let entries = self.busy.get_mut(&sector).expect("it is busy");
        let stable: Vec<Entry> = entries.iter().filter(|entry| entry.stable).copied().collect();
        entries.retain(|entry| !stable.iter().any(|other| other.overwrites(entry)));
        if let [Entry { version, zero, ended: Some(_), .. }] = entries[..] {
            self.settled[sector as usize] = Settled { version, zero };
            self.busy.remove(&sector);
        }
    }
}
