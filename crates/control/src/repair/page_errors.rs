//! Pages that were found wrong: which drive, which byte, whose data.
//!
//! What is found on a drive in a pass of a scrub, or in a minute without one, is one event of its kind, told at the first page
//! and brought up to date with the others: an event a page would drive all other events out of the status. The file of events
//! and the log, where nothing is brought up to date, get it again at most once a minute and at the end of the pass.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use tier0_api::event::{self as api, PageFound, PagesFound, PlaceFound};
use tier0_api::{EventKind, Subject};
use tier0_integrity::{TableEvent, TableFault};
use tier0_raid::io::{PageFault, RepairEvent, RepairSource};
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS, SECTOR_BYTES, SectorCount};

use super::{Repair, RepairPool};
use crate::events::EventNumber;

/// Findings behind the first of which an event names the places; the others are counted.
const NAMED_MAX: usize = 4;
/// What is found within this time without a scrub is one event; and how often the file of events gets what was added to one.
const INTERVAL: Nanos = Nanos::from_secs(60);

/// What was found in a pool since the start.
#[derive(Default)]
pub(crate) struct PageErrors {
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
    event: EventNumber,
    drive: String,
    found: PagesFound,
    /// How many others the file of events has been told.
    passed_on: u64,
    /// When the event was told.
    since: Nanos,
    /// When the file of events was told last.
    passed_on_at: Nanos,
}

impl Kind {
    fn event(self, found: PagesFound) -> EventKind {
        match self {
            Kind::Repaired => EventKind::PagesRepaired(found),
            Kind::Lost => EventKind::PagesLost(found),
            Kind::Table => EventKind::ChecksumsRepaired(found),
        }
    }
}

impl PageErrors {
    /// Pages repaired on a member's drive, and pages on it that nothing could make good.
    pub(crate) fn pages_on(&self, member: u32) -> (u64, u64) {
        self.pages.borrow().get(&member).copied().unwrap_or_default()
    }

    /// Members that gave something wrong without an error, as a drive does that was put back to an older image; those not
    /// that a scrub has read whole since.
    pub(crate) fn untrue(&self) -> BTreeSet<u32> {
        self.untrue.borrow().clone()
    }

    /// A pass of a scrub has read everything that every member has.
    pub(crate) fn all_read(&self) {
        self.untrue.borrow_mut().clear();
    }

    fn count(&self, member: u32, repaired: bool) {
        let mut pages = self.pages.borrow_mut();
        let (good, lost) = pages.entry(member).or_default();
        *(if repaired { good } else { lost }) += 1;
    }
}

impl Repair {
    /// A pass of a scrub begins: what it finds are events of its own.
    pub(crate) fn begin_findings(&self, number: usize) {
        self.end_findings(number);
        self.core(number).page_errors.in_pass.set(true);
    }

    /// The pass has ended, or what was found lately is told to the end.
    pub(crate) fn end_findings(&self, number: usize) {
        let found = &self.core(number).page_errors;
        found.in_pass.set(false);
        let open = found.open.take();
        for ((_, kind), mut batch) in open {
            self.pass_on_findings(kind, &mut batch);
        }
    }

    /// Has the file of events told what was added in the last interval, and ends events that are no scrub's.
    pub(crate) fn look_at_findings(&self, number: usize) {
        let found = &self.core(number).page_errors;
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
        let count = batch.found.others_count;
        if std::mem::replace(&mut batch.passed_on, count) == count {
            return;
        }
        self.tell_listeners(Subject::drive(&batch.drive), &kind.event(batch.found.clone()));
    }

    /// Something was found on a member's drive.
    fn tell_found(&self, number: usize, member: u32, kind: Kind, page: PageFound) {
        self.look_at_findings(number);
        let core = self.core(number);
        let mut open = core.page_errors.open.borrow_mut();
        if let Some(batch) = open.get_mut(&(member, kind)) {
            tracing::debug!("drive {}: {page:?}", batch.drive);
            let found = &mut batch.found;
            found.others_count += 1;
            if found.others.len() < NAMED_MAX {
                found.others.push(page.place);
            }
            self.events.bring_up_to_date(batch.event, &kind.event(found.clone()));
            return;
        }
        let (drive, now) = (core.drive_name(member), self.world.now());
        let found = PagesFound { first: page, others: Vec::new(), others_count: 0 };
        let event = self.tell_first(Subject::drive(&drive), &kind.event(found.clone()));
        let batch = Batch { event, drive, found, passed_on: 0, since: now, passed_on_at: now };
        open.insert((member, kind), batch);
    }
}

impl Repair {
    /// A page was wrong.
    pub(crate) fn note_page_error(&self, number: usize, event: &RepairEvent) {
        let core = self.core(number);
        let chunklet = core.shape.sets.chunklet(event.set, event.column);
        core.page_errors.count(chunklet.drive, event.source.is_some());
        if event.fault != PageFault::Unreadable {
            core.page_errors.untrue.borrow_mut().insert(chunklet.drive);
        }
        let (_, start) = core.shape.sets.place(event.set, event.column);
        let lba = start + SectorCount(event.column_page * PAGE_SECTORS);
        let fault = match event.fault {
            PageFault::Rot => api::PageFault::Checksum,
            PageFault::Unreadable => api::PageFault::Unreadable,
            PageFault::CopiesDiffer => api::PageFault::CopiesDiffer,
            PageFault::ParityDiffers => api::PageFault::ParityDiffers,
        };
        let volume = core.owner_of(event).map(|(name, sector)| (name, sector, PAGE_SECTORS));
        let kind = if event.source.is_some() { Kind::Repaired } else { Kind::Lost };
        let place = PlaceFound { byte: lba.0 * SECTOR_BYTES, volume };
        let is_overwritten = event.source == Some(RepairSource::Overwritten);
        self.tell_found(number, chunklet.drive, kind, PageFound { place, fault, is_overwritten });
    }
}

impl Repair {
    /// A copy of a slot's table was wrong, and is written again.
    pub(crate) fn note_table_error(&self, number: usize, event: &TableEvent) {
        let core = self.core(number);
        let member = event.member as u32;
        let (drive, byte) = (core.drive_name(member), event.lba.0 * SECTOR_BYTES);
        let fault = match event.fault {
            TableFault::Unreadable => api::PageFault::Unreadable,
            TableFault::Damaged => api::PageFault::Damaged,
            TableFault::Stale => {
                tracing::info!(
                    drive,
                    byte,
                    "a copy of checksums is older than the others, and is written again"
                );
                return;
            }
        };
        core.page_errors.count(member, true);
        let place = PlaceFound { byte, volume: None };
        self.tell_found(number, member, Kind::Table, PageFound { place, fault, is_overwritten: false });
    }

    /// No copy of a slot's table is right.
    pub(crate) fn note_table_lost(&self, number: usize, slot: u64) {
        let core = self.core(number);
        let sectors = core.metadata.state().geometry().extent_sectors;
        let Some((name, extent)) = core.tenant_of(slot) else { return };
        let sector = u64::from(extent.index) * sectors;
        let kind = EventKind::ChecksumsLost { volume: name, sector, sectors };
        self.tell(self.pool_subject(number), kind);
    }
}

impl RepairPool {
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
