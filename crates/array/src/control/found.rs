//! Pages that were found wrong: which drive, which byte, whose data.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tier0_integrity::{TableEvent, TableFault};
use tier0_raid::io::{PageFault, RepairEvent, RepairSource};
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS, SECTOR_BYTES, SectorCount};

use super::{Control, Guarded};
use crate::admin::Severity;

/// Findings that become events in an interval; the others are counted.
const TOLD_MAX: u32 = 16;
/// The interval.
const INTERVAL: Nanos = Nanos::from_secs(60);

/// What was found in a pool since the start.
#[derive(Default)]
pub(super) struct Found {
    /// By member: pages repaired and pages that nothing could make good.
    pages: RefCell<BTreeMap<u32, (u64, u64)>>,
    /// When the interval began, and how many were told in it.
    told: std::cell::Cell<(Nanos, u32)>,
}

impl Found {
    /// Pages repaired on a member's drive, and pages on it that nothing could make good.
    pub(super) fn pages_on(&self, member: u32) -> (u64, u64) {
        self.pages.borrow().get(&member).copied().unwrap_or_default()
    }

    fn count(&self, member: u32, repaired: bool) {
        let mut pages = self.pages.borrow_mut();
        let (good, lost) = pages.entry(member).or_default();
        *(if repaired { good } else { lost }) += 1;
    }

    /// Whether one more may become an event.
    fn may_tell(&self, now: Nanos) -> bool {
        let (since, told) = self.told.get();
        let (since, told) = if now.saturating_sub(since) >= INTERVAL { (now, 0) } else { (since, told) };
        self.told.set((since, told + 1));
        told < TOLD_MAX
    }
}

impl Control {
    /// A page was wrong.
    pub(super) fn note_found(&self, number: usize, event: &RepairEvent) {
        let guarded = self.guarded(number);
        let chunklet = guarded.shape.sets.chunklet(event.set, event.column);
        guarded.found.count(chunklet.drive, event.source.is_some());
        if !guarded.found.may_tell(self.world.now()) {
            return;
        }
        let (_, start) = guarded.shape.sets.place(event.set, event.column);
        let lba = start + SectorCount(event.column_page * PAGE_SECTORS);
        let fault = match event.fault {
            PageFault::Rot => "fails its checksum",
            PageFault::Unreadable => "cannot be read",
            PageFault::CopiesDiffer => "differs from its copies",
            PageFault::ParityDiffers => "contradicts its data",
        };
        let whose = guarded.owner_of(event).map_or_else(String::new, |(name, sector)| {
            format!(", volume {name} sectors {sector}+{PAGE_SECTORS}")
        });
        let became = match event.source {
            Some(RepairSource::Overwritten) => "it was about to be overwritten",
            Some(_) => "it was repaired",
            None => "no copy is right",
        };
        let what = format!("the page at byte {}{whose} {fault}; {became}", lba.0 * SECTOR_BYTES);
        let (severity, remedy) = match event.source {
            Some(_) => (Severity::Warning, "run \"tier0 scrub\" to find whether there are more"),
            None => (Severity::Critical, "restore what it held from a backup"),
        };
        self.tell(severity, format!("drive {}", guarded.drive_name(chunklet.drive)), what, remedy);
    }
}

impl Control {
    /// A copy of a slot's table was wrong, and is written again.
    pub(super) fn note_table_found(&self, number: usize, event: &TableEvent) {
        let guarded = self.guarded(number);
        let member = event.member as u32;
        let (drive, byte) = (guarded.drive_name(member), event.lba.0 * SECTOR_BYTES);
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
        guarded.found.count(member, true);
        if guarded.found.may_tell(self.world.now()) {
            let what = format!(
                "the copy of checksums at byte {byte} {fault}; it was written again from another copy"
            );
            let remedy = "run \"tier0 scrub\" to find whether there are more";
            self.tell(Severity::Warning, format!("drive {drive}"), what, remedy);
        }
    }

    /// No copy of a slot's table is right.
    pub(super) fn note_table_lost(&self, number: usize, slot: u64) {
        let guarded = self.guarded(number);
        let sectors = guarded.metadata.state().geometry().extent_sectors;
        let Some((name, extent)) = guarded.tenant_of(slot) else { return };
        let what = format!(
            "volume {name} sectors {}+{sectors}: no copy of their checksums is right; reads of them fail until they are written again",
            u64::from(extent.index) * sectors
        );
        let remedy = "restore what they held from a backup";
        self.tell(Severity::Critical, format!("pool {}", self.pools[number].name), what, remedy);
    }
}

impl Guarded {
    /// The volume that has a slot, and which of its extents lies there.
    fn tenant_of(&self, slot: u64) -> Option<(String, ExtentId)> {
        let state = self.metadata.state();
        state.volumes().find_map(|volume| {
            let mut extents = state.map(volume.number)?.iter();
            let (index, _) = extents.find(|(_, mapped)| mapped.slot == slot)?;
            Some((volume.name.clone(), ExtentId { volume: volume.number, index }))
        })
    }

    /// The volume that a data page belongs to, and its sector there.
    fn owner_of(&self, event: &RepairEvent) -> Option<(String, u64)> {
        let page = event.page?;
        let pages_per_slot = self.shape.slots.slot_sectors() / PAGE_SECTORS;
        let slot = self.shape.slots.slots_of(event.set).nth((page / pages_per_slot) as usize)?;
        let (volume, extent) = self.tenant_of(slot)?;
        let within = page % pages_per_slot * PAGE_SECTORS;
        let extent_sectors = self.metadata.state().geometry().extent_sectors;
        Some((volume, u64::from(extent.index) * extent_sectors + within))
    }
}
