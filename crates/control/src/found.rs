//! Pages that were found wrong: which drive, which byte, whose data.
//!
//! What is found on a drive in a pass of a scrub, or in a minute without one, is one event of its kind, told at the first page
//! and brought up to date with the others: an event a page would drive all other events out of the status. The file of events
//! and the log, where nothing is brought up to date, get it again at most once a minute and at the end of the pass.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use tier0_api::Severity;
use tier0_integrity::{TableEvent, TableFault};
use tier0_raid::io::{PageFault, RepairEvent, RepairSource};
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS, SECTOR_BYTES, SectorCount};

use super::events::EventId;
use super::{Control, PoolCore};

/// Findings behind the first of which an event names the places; the others are counted.
const NAMED_MAX: usize = 4;
/// What is found within this time without a scrub is one event; and how often the file of events gets what was added to one.
const INTERVAL: Nanos = Nanos::from_secs(60);

/// What was found in a pool since the start.
#[derive(Default)]
pub(super) struct Found {
    /// By member: pages repaired and pages that nothing could make good.
    pages: RefCell<BTreeMap<u32, (u64, u64)>>,
    /// Members that gave something wrong without an error, and may have more: no scrub has read everything since.
    untrue: RefCell<BTreeSet<u32>>,
    /// The events to which findings are added, by member.
    open: RefCell<BTreeMap<(u32, Kind), Batch>>,
    /// Whether what goes on is a pass of a scrub.
    in_pass: Cell<bool>,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Repaired,
    Lost,
    Table,
}

/// Findings that one event tells.
struct Batch {
    event: EventId,
    drive: String,
    /// What the event says of the first one.
    first: String,
    /// Where others are.
    others: Vec<String>,
    /// How many those are.
    others_count: u64,
    /// How many of them the file of events has been told.
    passed_on: u64,
    /// When the event was told.
    since: Nanos,
    /// When the file of events was told last.
    passed_on_at: Nanos,
}

impl Batch {
    fn text(&self) -> String {
        let Batch { first, others, others_count, .. } = self;
        if *others_count == 0 {
            return first.clone();
        }
        let rest = if *others_count > others.len() as u64 { ", and more" } else { "" };
        format!("{first}; {others_count} more since, at {}{rest}", others.join(", "))
    }
}

impl Kind {
    fn severity(self) -> Severity {
        match self {
            Kind::Repaired | Kind::Table => Severity::Warning,
            Kind::Lost => Severity::Critical,
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Kind::Repaired | Kind::Table => "run \"tier0 scrub\" to find whether there are more",
            Kind::Lost => "restore what is lost from a backup (\"tier0 status\" lists it)",
        }
    }
}

impl Found {
    /// Pages repaired on a member's drive, and pages on it that nothing could make good.
    pub(super) fn pages_on(&self, member: u32) -> (u64, u64) {
        self.pages.borrow().get(&member).copied().unwrap_or_default()
    }

    /// Members that gave something wrong without an error, as a drive does that was put back to an older image; those not
    /// that a scrub has read whole since.
    pub(super) fn untrue(&self) -> BTreeSet<u32> {
        self.untrue.borrow().clone()
    }

    /// A pass of a scrub has read everything that every member has.
    pub(super) fn all_read(&self) {
        self.untrue.borrow_mut().clear();
    }

    fn count(&self, member: u32, repaired: bool) {
        let mut pages = self.pages.borrow_mut();
        let (good, lost) = pages.entry(member).or_default();
        *(if repaired { good } else { lost }) += 1;
    }
}

impl Control {
    /// A pass of a scrub begins: what it finds are events of its own.
    pub(super) fn begin_findings(&self, number: usize) {
        self.end_findings(number);
        self.core(number).found.in_pass.set(true);
    }

    /// The pass has ended, or what was found lately is told to the end.
    pub(super) fn end_findings(&self, number: usize) {
        let found = &self.core(number).found;
        found.in_pass.set(false);
        let open = found.open.take();
        for ((_, kind), mut batch) in open {
            self.pass_on_findings(kind, &mut batch);
        }
    }

    /// Has the file of events told what was added in the last interval, and ends events that are no scrub's.
    pub(super) fn look_at_findings(&self, number: usize) {
        let found = &self.core(number).found;
        let now = self.world.now();
        let mut open = found.open.take();
        for ((_, kind), batch) in &mut open {
            if now.saturating_sub(batch.passed_on_at) >= INTERVAL {
                self.pass_on_findings(*kind, batch);
            }
        }
        open.retain(|_, batch| found.in_pass.get() || now.saturating_sub(batch.since) < INTERVAL);
        *found.open.borrow_mut() = open;
    }

    fn pass_on_findings(&self, kind: Kind, batch: &mut Batch) {
        batch.passed_on_at = self.world.now();
        if std::mem::replace(&mut batch.passed_on, batch.others_count) == batch.others_count {
            return;
        }
        self.tell_listeners(kind.severity(), format!("drive {}", batch.drive), batch.text(), kind.remedy());
    }

    /// Something was found on a member's drive: `what` it is, and `place`, where it is.
    fn tell_found(&self, number: usize, member: u32, kind: Kind, what: String, place: String) {
        self.look_at_findings(number);
        let core = self.core(number);
        let mut open = core.found.open.borrow_mut();
        if let Some(batch) = open.get_mut(&(member, kind)) {
            tracing::debug!("drive {}: {what}", batch.drive);
            batch.others_count += 1;
            if batch.others.len() < NAMED_MAX {
                batch.others.push(place);
            }
            self.events.bring_up_to_date(batch.event, batch.text());
            return;
        }
        let (drive, now) = (core.drive_name(member), self.world.now());
        let event = self.tell_first(
            kind.severity(),
            format!("drive {drive}"),
            what.clone(),
            kind.remedy().to_owned(),
        );
        let batch = Batch {
            event,
            drive,
            first: what,
            others: Vec::new(),
            others_count: 0,
            passed_on: 0,
            since: now,
            passed_on_at: now,
        };
        open.insert((member, kind), batch);
    }
}

impl Control {
    /// A page was wrong.
    pub(super) fn note_found(&self, number: usize, event: &RepairEvent) {
        let core = self.core(number);
        let chunklet = core.shape.sets.chunklet(event.set, event.column);
        core.found.count(chunklet.drive, event.source.is_some());
        if event.fault != PageFault::Unreadable {
            core.found.untrue.borrow_mut().insert(chunklet.drive);
        }
        let (_, start) = core.shape.sets.place(event.set, event.column);
        let lba = start + SectorCount(event.column_page * PAGE_SECTORS);
        let fault = match event.fault {
            PageFault::Rot => "fails its checksum",
            PageFault::Unreadable => "cannot be read",
            PageFault::CopiesDiffer => "differs from its copies",
            PageFault::ParityDiffers => "contradicts its data",
        };
        let whose = core
            .owner_of(event)
            .map(|(name, sector)| format!("volume {name} sectors {sector}+{PAGE_SECTORS}"));
        let (kind, became) = match event.source {
            Some(RepairSource::Overwritten) => (Kind::Repaired, "it was about to be overwritten"),
            Some(_) => (Kind::Repaired, "it was repaired"),
            None => (Kind::Lost, "no copy is right"),
        };
        let byte = lba.0 * SECTOR_BYTES;
        let of = whose.as_ref().map_or_else(String::new, |whose| format!(", {whose}"));
        let what = format!("the page at byte {byte}{of} {fault}; {became}");
        let of = whose.filter(|_| kind == Kind::Lost).map_or_else(String::new, |whose| format!(" ({whose})"));
        self.tell_found(number, chunklet.drive, kind, what, format!("byte {byte}{of}"));
    }
}

impl Control {
    /// A copy of a slot's table was wrong, and is written again.
    pub(super) fn note_table_found(&self, number: usize, event: &TableEvent) {
        let core = self.core(number);
        let member = event.member as u32;
        let (drive, byte) = (core.drive_name(member), event.lba.0 * SECTOR_BYTES);
        let fault = match event.fault {
            TableFault::Unreadable => "cannot be read",
            TableFault::Damaged => "is damaged",
            TableFault::Stale => {
                tracing::info!(
                    drive,
                    byte,
                    "a copy of checksums is older than the others, and is written again"
                );
                return;
            }
        };
        core.found.count(member, true);
        let what =
            format!("the copy of checksums at byte {byte} {fault}; it was written again from another copy");
        self.tell_found(number, member, Kind::Table, what, format!("byte {byte}"));
    }

    /// No copy of a slot's table is right.
    pub(super) fn note_table_lost(&self, number: usize, slot: u64) {
        let core = self.core(number);
        let sectors = core.metadata.state().geometry().extent_sectors;
        let Some((name, extent)) = core.tenant_of(slot) else { return };
        let what = format!(
            "volume {name} sectors {}+{sectors}: no copy of their checksums is right; reads of them fail until they are written again",
            u64::from(extent.index) * sectors
        );
        let remedy = "restore what they held from a backup";
        self.tell(Severity::Critical, format!("pool {}", self.pools[number].name), what, remedy);
    }
}

impl PoolCore {
    /// The volumes that have a slot, as "db" or "db (and test, which shares it)", and which of their extents lies there.
    fn tenant_of(&self, slot: u64) -> Option<(String, ExtentId)> {
        let state = self.metadata.state();
        let first = state.owners(slot).next()?;
        let owners = state.owners(slot).filter_map(|extent| state.volume(extent.volume));
        let names: Vec<&str> = owners.map(|volume| volume.name.as_str()).collect();
        let name = match names.as_slice() {
            [name, other] => format!("{name} (and {other}, which shares it)"),
            [name, others @ ..] if !others.is_empty() => {
                format!("{name} (and {}, which share it)", others.join(", "))
            }
            names => names.concat(),
        };
        Some((name, first))
    }

    /// The volume that a data page belongs to, and its sector there.
    fn owner_of(&self, event: &RepairEvent) -> Option<(String, u64)> {
        let page = event.page?;
        let pages_per_slot = self.shape.slots.slot_sectors_of(event.set) / PAGE_SECTORS;
        let slot = self.shape.slots.slots_of(event.set).nth((page / pages_per_slot) as usize)?;
        let (volume, extent) = self.tenant_of(slot)?;
        let within = page % pages_per_slot * PAGE_SECTORS;
        let extent_sectors = self.metadata.state().geometry().extent_sectors;
        Some((volume, u64::from(extent.index) * extent_sectors + within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scrub that found many pages drove all other events out of the last ten that status shows.
    #[test]
    fn an_event_counts_what_it_does_not_name() {
        let mut batch = Batch {
            event: EventId::default(),
            drive: "d0".into(),
            first: "the page at byte 1 cannot be read; it was repaired".into(),
            others: Vec::new(),
            others_count: 0,
            passed_on: 0,
            since: Nanos::ZERO,
            passed_on_at: Nanos::ZERO,
        };
        assert_eq!(batch.text(), batch.first);
        (batch.others, batch.others_count) = (vec!["byte 2".into(), "byte 3".into()], 2);
        assert!(batch.text().ends_with("it was repaired; 2 more since, at byte 2, byte 3"));
        batch.others_count = 3;
        assert!(batch.text().ends_with("; 3 more since, at byte 2, byte 3, and more"));
    }
}
