//! Several records as one: all of them become true, or none.

use tier0_units::{ExtentId, SlotRef};

use crate::record::{ExtentRun, MappedRun, MetaRecord, ScrubCursor};
use crate::state::{Away, Inventory, MetaError, PoolState};

/// What brings a state back to where it was. The map is put back extent by extent, the rest by a copy that is made
/// only if a record changes it.
struct Undo {
    allocation_end: u64,
    scrub: ScrubCursor,
    inventory: Option<Box<Inventory>>,
    away: Away,
    /// What extents had before, oldest change first.
    extents: Vec<(ExtentId, Option<SlotRef>)>,
    /// Slots that became rebuilt before the copy was made: set, column, slot.
    rebuilt: Vec<(u32, u32, u32)>,
}

impl PoolState {
    /// Makes all `records` true in order, or changes nothing and says which of them cannot be.
    pub fn apply_all(&mut self, records: &[MetaRecord]) -> Result<(), MetaError> {
        // Nothing can fail after the last record's check.
        let Some((last, front)) = records.split_last() else { return Ok(()) };
        let mut undo = Undo {
            allocation_end: self.allocation_end,
            scrub: self.scrub,
            inventory: None,
            away: self.away.clone(),
            extents: Vec::new(),
            rebuilt: Vec::new(),
        };
        for record in front {
            if let Err(error) = self.check(record) {
                self.go_back(undo);
                return Err(error);
            }
            undo.remember(self, record);
            self.apply(record.clone());
        }
        match self.check(last) {
            Ok(()) => self.apply(last.clone()),
            Err(error) => {
                self.go_back(undo);
                return Err(error);
            }
        }
        Ok(())
    }

    fn go_back(&mut self, undo: Undo) {
        self.allocation_end = undo.allocation_end;
        self.scrub = undo.scrub;
        for (extent, before) in undo.extents.into_iter().rev() {
            let map = self.maps.entry(extent.volume).or_default();
            if let Some(now) = map.remove(extent.index) {
                self.slots.remove(now.slot, extent.volume);
            }
            if let Some(before) = before {
                map.insert(extent.index, before);
                let returns = self.slots.insert(before.slot, extent) || self.slots.join(before.slot, extent);
                debug_assert!(returns, "{extent} had {before:?}");
            }
        }
        if let Some(inventory) = undo.inventory {
            self.inventory = *inventory;
            self.maps.retain(|volume, _| self.inventory.volumes.contains_key(volume));
            for volume in self.inventory.volumes.keys() {
                self.maps.entry(*volume).or_default();
            }
        }
        for (set, column, slot) in undo.rebuilt {
            if let Some(rebuild) = self.inventory.rebuilds.get_mut(&(set, column)) {
                rebuild.rebuilt.remove(u64::from(slot));
            }
        }
        self.slots.shrink(self.slot_stretches());
        self.away = undo.away;
    }
}

impl Undo {
    fn remember(&mut self, state: &PoolState, record: &MetaRecord) {
        match record {
            MetaRecord::MapExtents(runs) => {
                let extents = runs.iter().flat_map(|MappedRun { volume, run }| {
                    run.iter().map(|(index, _)| (ExtentId { volume: *volume, index }, None))
                });
                self.extents.extend(extents);
            }
            MetaRecord::UnmapExtents(runs) => {
                let extents = runs.iter().flat_map(|ExtentRun { first, count }| {
                    (first.index..first.index + count).map(|index| ExtentId { volume: first.volume, index })
                });
                self.extents.extend(extents.map(|extent| (extent, state.slot(extent))));
            }
            MetaRecord::ShareExtents(runs) => {
                let shared = runs.iter().flat_map(|run| state.shared_by(run));
                self.extents.extend(shared.map(|(extent, _)| (extent, None)));
            }
            MetaRecord::SlotsRebuilt { set, column, ranges } if self.inventory.is_none() => {
                let known = &state.inventory.rebuilds[&(*set, *column)].rebuilt;
                let fresh = ranges.iter().cloned().flatten().filter(|slot| !known.contains(u64::from(*slot)));
                self.rebuilt.extend(fresh.map(|slot| (*set, *column, slot)));
            }
            // The copy has the bits as they were.
            MetaRecord::SlotsRebuilt { .. } => {}
            MetaRecord::AllocationsReserved { .. } | MetaRecord::ScrubCursor(_) => {}
            record => {
                if let MetaRecord::VolumeDeleted { volume } = record {
                    let extents = state.maps[volume].iter();
                    let extents =
                        extents.map(|(index, slot)| (ExtentId { volume: *volume, index }, Some(slot)));
                    self.extents.extend(extents);
                }
                self.inventory.get_or_insert_with(|| Box::new(state.inventory.clone()));
            }
        }
    }
}
