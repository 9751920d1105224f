//! The bookkeeping of a write cache. No I/O, no waiting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tier0_journal::Position;
use tier0_units::{ExtentId, Nanos, SlotRef};
use tier0_world::IoError;

use crate::FlushCounts;
use crate::pages::{DirtyPages, RecordId};
use crate::rate::DestageRate;
use crate::records::Records;

/// Totals since the start.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) written_pages: u64,
    pub(crate) flushed: FlushCounts,
    pub(crate) failures: u64,
}

/// An extent that could not be destaged. What the failed batch may have left half done is finished by the next that
/// succeeds, or after a power cut from its intents, so these and their data are kept until then.
pub(crate) struct DestageFailure {
    /// When it is tried again.
    pub(crate) due: Nanos,
    /// Failures in a row.
    pub(crate) failures: u32,
    pub(crate) error: IoError,
    pub(crate) floor: Option<Position>,
    /// The pages that may be half destaged: all of them are tried again together, whatever is their newest content.
    pub(crate) pages: BTreeSet<u32>,
    pub(crate) pins: Vec<RecordId>,
}

/// What the destager is to do next, in the order of addresses.
#[derive(Default)]
pub(crate) struct Pass {
    /// Slots and their extents, ascending.
    pub(crate) extents: VecDeque<(u64, ExtentId)>,
    /// Rows with a page of a record before this number are taken.
    pub(crate) cutoff: u64,
    /// Of an extent that is taken, rows with a page of a record before this number come along: not below `cutoff`.
    pub(crate) along: u64,
}

pub(crate) struct State {
    pub(crate) pages: DirtyPages,
    pub(crate) records: Records,
    /// The version of the record with number 0.
    pub(crate) first_version: u64,
    /// Slots that were allocated and are not committed.
    pub(crate) fresh: BTreeMap<ExtentId, SlotRef>,
    /// Extents whose slots are being given back: they read as zeros, and writers wait.
    pub(crate) emptied: BTreeSet<ExtentId>,
    /// Extents that a batch is on, or that move.
    pub(crate) busy: BTreeSet<ExtentId>,
    /// Extents that were written and whose slots others have too: the slots that were allocated for their copies.
    pub(crate) copies: BTreeMap<ExtentId, SlotRef>,
    /// How many of them are being copied.
    pub(crate) copying: usize,
    /// Volumes whose extents keep their slots.
    pub(crate) held: BTreeSet<u32>,
    /// Extents that a caller waits for.
    pub(crate) urgent: BTreeSet<ExtentId>,
    pub(crate) failed: BTreeMap<ExtentId, DestageFailure>,
    pub(crate) pass: Pass,
    /// Per batch with intents: a position that none of them is before.
    pub(crate) floors: BTreeMap<u64, Position>,
    pub(crate) batches_begun: u64,
    /// The batches under way, by number.
    pub(crate) in_flight: BTreeSet<u64>,
    /// By batch under way: blocks of intents that it may still send into the log.
    pub(crate) intents_due: BTreeMap<u64, u64>,
    /// Pages with data whose newest content is zeros that are not stable yet.
    pub(crate) voided_pages: u64,
    pub(crate) draining: usize,
    /// Not before this time destages what has merely aged.
    pub(crate) next_aged: Nanos,
    /// The destager found nothing that it could take, though there are dirty pages, or none at all.
    pub(crate) starved: bool,
    /// The destager waits for pages to age.
    pub(crate) waiting_for_age: bool,
    pub(crate) reserved_pages: u64,
    pub(crate) reserved_blocks: u64,
    /// How fast pages are destaged.
    pub(crate) destage_rate: DestageRate,
    /// How fast the log gets rid of pages, destaged or superseded: the rate at which writers can go on for long.
    pub(crate) room_rate: DestageRate,
    pub(crate) counts: Counts,
    pub(crate) last_failure: Option<IoError>,
    pub(crate) log_failure: Option<IoError>,
    /// Nothing of the log is released, because others have not yet taken over what is theirs.
    pub(crate) holds_log: bool,
    started: bool,
    stopped: bool,
}

impl State {
    pub(crate) fn new(age_max: Nanos, first_version: u64) -> State {
        State {
            pages: DirtyPages::default(),
            records: Records::new(age_max),
            first_version,
            fresh: BTreeMap::new(),
            emptied: BTreeSet::new(),
            busy: BTreeSet::new(),
            copies: BTreeMap::new(),
            copying: 0,
            held: BTreeSet::new(),
            urgent: BTreeSet::new(),
            failed: BTreeMap::new(),
            pass: Pass::default(),
            floors: BTreeMap::new(),
            batches_begun: 0,
            in_flight: BTreeSet::new(),
            intents_due: BTreeMap::new(),
            voided_pages: 0,
            draining: 0,
            next_aged: Nanos::ZERO,
            starved: false,
            waiting_for_age: false,
            reserved_pages: 0,
            reserved_blocks: 0,
            destage_rate: DestageRate::default(),
            room_rate: DestageRate::default(),
            counts: Counts::default(),
            last_failure: None,
            log_failure: None,
            holds_log: true,
            started: false,
            stopped: false,
        }
    }

    /// False if it was started before.
    pub(crate) fn start(&mut self) -> bool {
        self.holds_log = false;
        self.stopped = false;
        !std::mem::replace(&mut self.started, true)
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether the destager is to end; it may be started again afterwards.
    pub(crate) fn ends(&mut self) -> bool {
        let ends = self.stopped && self.in_flight.is_empty() && self.copying == 0;
        self.started &= !ends;
        ends
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// A position that no intent is before that may have to be replayed.
    pub(crate) fn intents_floor(&self) -> Option<Position> {
        let failed = self.failed.values().filter_map(|failure| failure.floor);
        self.floors.values().copied().chain(failed).min()
    }

    /// The failure, if nothing is left to destage of the first `records` records but what has failed.
    pub(crate) fn only_failure(&self, records: u64) -> Option<IoError> {
        let oldest = self.records.iter_from(self.records.first());
        let mut needed = oldest
            .take_while(|(sequence, _)| *sequence < records)
            .filter(|(_, record)| record.is_needed())
            .map(|(_, record)| {
                self.failed.get(&record.extent).filter(|_| !self.busy.contains(&record.extent))
            });
        let first = needed.next()??;
        needed.all(|failure| failure.is_some()).then_some(first.error)
    }

    /// The oldest record that is needed: its number and its extent.
    pub(crate) fn oldest(&self) -> Option<(u64, ExtentId)> {
        let mut records = self.records.iter_from(self.records.first());
        records.find(|(_, record)| record.is_needed()).map(|(sequence, record)| (sequence, record.extent))
    }

    /// A batch begins.
    pub(crate) fn begin_rates(&mut self, now: Nanos) {
        self.destage_rate.begin(now);
        self.room_rate.begin(now);
    }

    /// A batch of `pages` pages has ended, and the log is released.
    pub(crate) fn end_rates(&mut self, now: Nanos, pages: u64) {
        let busy = !self.in_flight.is_empty();
        self.destage_rate.end(now, pages, busy);
        self.room_rate.end(now, self.records.take_gone_pages(), busy);
    }

    /// A batch, or a record that superseded them, does not need these records any more.
    pub(crate) fn unpin_all(&mut self, records: impl IntoIterator<Item = RecordId>) {
        for record in records {
            self.records.unpin(record);
        }
    }
}
