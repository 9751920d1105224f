//! What is known of a device, without I/O.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use tier0_units::{Nanos, PAGE_SECTORS, SECTOR_BYTES};
use tier0_world::{PlantedBug, planted};

use crate::admission::Admission;
use crate::budget::Budget;
use crate::checkpoint::Dirty;
use crate::doorkeeper::Doorkeeper;
use crate::entry::{Entry, Line};
use crate::fill::Offered;
use crate::header::Header;
use crate::line::{LINE_SECTORS, Spot, Spread};
use crate::place::{FlashPlace, Shape};
use crate::status::FlashRoom;
use crate::table::{RRPV_LONG, Table};

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It answers reads, and nothing is written to it before its epoch is renewed.
    Waiting,
    /// It serves.
    On,
    /// It serves no more; the owner is told.
    Failed,
    /// It serves no more, and the owner knows.
    Off,
}

/// A line whose data are being written.
pub(crate) struct Filling {
    pub(crate) line: Line,
    /// It was struck out meanwhile, so it does not come in.
    pub(crate) is_struck: bool,
}

/// What is known of a device.
pub(crate) struct State {
    pub(crate) mode: Mode,
    pub(crate) place: Rc<FlashPlace>,
    pub(crate) shape: Shape,
    pub(crate) spread: Spread,
    pub(crate) header: Header,
    pub(crate) table: Table,
    pub(crate) admission: Admission,
    /// What has changed at lines and is in no record yet. The last change of a line counts.
    pub(crate) pending: BTreeMap<Line, Option<Entry>>,
    /// Counts changes that may have to be durable: what is pending, and what the next header says.
    pub(crate) changes: u64,
    /// How many there were when something was struck out last.
    pub(crate) struck: u64,
    /// So many are durable.
    pub(crate) logged: u64,
    /// So many are to be durable.
    pub(crate) demanded: u64,
    /// Lines that gave way, each with the count of changes by which that is durable.
    pub(crate) leaving: Vec<(u64, u64)>,
    /// Since when lines are there of which no record tells, though there is no hurry.
    pub(crate) unlogged_since: Option<Nanos>,
    /// Position after the last record whose map pages are known.
    pub(crate) log_end: u64,
    pub(crate) dirty: Dirty,
    /// Lines that wait to be written.
    pub(crate) queue: VecDeque<Offered>,
    /// Lines that are being written, by number.
    pub(crate) filling: BTreeMap<u64, Filling>,
    /// Places that are being written.
    pub(crate) writing: BTreeSet<Line>,
    /// Places that are being read, and how often.
    pub(crate) reading: BTreeMap<Line, u32>,
    /// Reads in a row that took too long, each begun after the one before had.
    pub(crate) slow_reads: u32,
    /// When the last of these had.
    pub(crate) slow_since: Nanos,
    pub(crate) paused_until: Nanos,
}

/// A line that was struck out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Struck {
    /// How many places it had.
    pub(crate) places: u64,
    /// Whether it was read lately, and not only when it came in.
    pub(crate) was_read: bool,
}

impl State {
    pub(crate) fn new(place: FlashPlace, shape: Shape, header: Header, budget: Budget) -> State {
        State {
            mode: Mode::Waiting,
            place: Rc::new(place),
            shape,
            spread: Spread::new(shape.sets),
            header,
            table: Table::new(shape.sets, shape.ways),
            admission: Admission::new(shape.lines(), budget),
            pending: BTreeMap::new(),
            changes: 0,
            struck: 0,
            logged: 0,
            demanded: 0,
            leaving: Vec::new(),
            unlogged_since: None,
            log_end: 0,
            dirty: Dirty::default(),
            queue: VecDeque::new(),
            filling: BTreeMap::new(),
            writing: BTreeSet::new(),
            reading: BTreeMap::new(),
            slow_reads: 0,
            slow_since: Nanos::ZERO,
            paused_until: Nanos::ZERO,
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        matches!(self.mode, Mode::Failed | Mode::Off)
    }

    /// Room for data, bytes.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.shape.lines() * LINE_SECTORS * 512
    }

    /// The same, and what it has of its drive for which there is no use.
    pub(crate) fn room(&self) -> FlashRoom {
        let unused_bytes = self.shape.unused_pages(&self.place) * PAGE_SECTORS * SECTOR_BYTES;
        FlashRoom { used_bytes: self.room_bytes(), unused_bytes }
    }

    /// Whether nobody reads or writes a place.
    pub(crate) fn is_idle(&self, line: Line) -> bool {
        !self.writing.contains(&line) && !self.reading.contains_key(&line)
    }

    /// Whether a set has a place that is empty and idle.
    pub(crate) fn has_empty(&self, set: u32) -> bool {
        self.table.has_empty(set, |line| self.is_idle(line))
    }

    /// Something has changed that is to be in a record.
    pub(crate) fn change(&mut self, line: Line, entry: Option<Entry>) {
        self.changes += 1;
        self.pending.insert(line, entry);
    }

    /// What was at a place is not believed any more, and this is to be durable after the next settling.
    pub(crate) fn remove(&mut self, line: Line) {
        self.table.set(line, None);
        if !planted(PlantedBug::FlashStrikeNotLogged) {
            self.change(line, None);
            self.struck = self.changes;
        }
    }

    /// What is at a place gives way to another line.
    pub(crate) fn evict(&mut self, line: Line) -> bool {
        let Some(entry) = self.table.get(line) else { return false };
        self.table.set(line, None);
        self.change(line, None);
        if let Some(x) = self.spread.number(line.set, entry.tag) {
            self.leaving.push((x, self.changes));
        }
        true
    }

    /// Changes up to this count are durable.
    pub(crate) fn has_logged(&mut self, count: u64) {
        self.logged = self.logged.max(count);
        let logged = self.logged;
        self.leaving.retain(|(_, count)| *count > logged);
    }

    /// A line changes: it is not there, nor comes in, any more.
    pub(crate) fn strike(&mut self, x: u64) -> Struck {
        let mut struck = Struck::default();
        let Some(spot) = self.spread.place(x) else { return struck };
        if let Some(filling) = self.filling.get_mut(&x) {
            filling.is_struck = true;
        }
        if !self.queue.is_empty() {
            self.queue.retain(|offered| offered.x != x);
        }
        // One that gave way is not in memory, and is still on the device until a record says otherwise.
        let left = self.leaving.iter().filter(|(other, _)| *other == x).map(|(_, count)| *count).max();
        self.struck = self.struck.max(left.unwrap_or(0));
        while let Some((line, entry)) = self.table.find(spot) {
            self.remove(line);
            struck.places += 1;
            struck.was_read |= entry.rrpv < RRPV_LONG;
        }
        struck
    }

    /// Where a line is, if all of these pages of it are there.
    pub(crate) fn lookup(&self, x: u64, halves: u8) -> Option<(Line, Entry)> {
        let spot = self.spread.place(x)?;
        self.table.find(spot).filter(|(_, entry)| entry.valid & halves == halves)
    }

    pub(crate) fn spot(&self, x: u64) -> Option<Spot> {
        self.spread.place(x)
    }

    /// The device serves no more: lets go of its memory.
    pub(crate) fn clear(&mut self, mode: Mode) {
        self.mode = mode;
        self.table = Table::new(self.shape.sets, 0);
        self.admission.doorkeeper = Doorkeeper::new(0);
        self.pending.clear();
        self.queue.clear();
        self.filling.clear();
        self.leaving.clear();
        self.dirty = Dirty::default();
    }
}
