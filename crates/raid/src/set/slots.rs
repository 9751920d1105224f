//! Extent slots: the pool's space in pieces of one extent, numbered so that neighbours lie on different sets and low
//! numbers lie on the disks' outer tracks.
//!
//! A slot is a whole number of rows of one set, so an extent shares no parity with another and whoever owns the
//! extent owns its rows. Sets are taken in bands that together use every drive once; slot after slot walks through a
//! band's sets, row by row, so a volume is striped over all drives and still lies in one stretch on each.

use std::ops::Range;

use crate::layout::Row;
use crate::set::{RaidSets, SetIndex};

/// Where a slot lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPlace {
    /// The set.
    pub set: SetIndex,
    /// Its first sector among the set's data sectors.
    pub first_sector: u64,
}

/// The arithmetic from slots to sets.
#[derive(Clone, Debug)]
pub struct SlotMap {
    sets: u64,
    sets_per_band: u64,
    slots_per_set: u64,
    slot_sectors: u64,
    rows_per_slot: u64,
}

impl SlotMap {
    /// Slots for extents of `extent_sectors` over `sets`, whose chunklets come from `drives` drives.
    pub fn new(sets: &RaidSets, extent_sectors: u64, drives: usize) -> SlotMap {
        let layout = sets.layout();
        let row_sectors = layout.data_units_per_row() as u64 * layout.stripe_unit().0;
        let rows = sets.rows();
        let rows_per_slot = extent_sectors.div_ceil(row_sectors);
        let count = u64::from(sets.count());
        SlotMap {
            sets: count,
            sets_per_band: ((drives / layout.columns()) as u64).clamp(1, count.max(1)),
            slots_per_set: rows / rows_per_slot,
            slot_sectors: rows_per_slot * row_sectors,
            rows_per_slot,
        }
    }

    /// All slots of the pool.
    pub fn count(&self) -> u64 {
        self.sets * self.slots_per_set
    }

    /// Data sectors a slot has: at least an extent's; what is more lies idle.
    pub fn slot_sectors(&self) -> u64 {
        self.slot_sectors
    }

    /// Where a slot lies.
    #[inline]
    pub fn place(&self, slot: u64) -> SlotPlace {
        debug_assert!(slot < self.count());
        let band_slots = self.sets_per_band * self.slots_per_set;
        let (band, inside) = (slot / band_slots, slot % band_slots);
        let first_set = band * self.sets_per_band;
        let width = self.sets_per_band.min(self.sets - first_set);
        let set = SetIndex((first_set + inside % width) as u32);
        SlotPlace { set, first_sector: inside / width * self.slot_sectors }
    }

    /// The rows of a slot, all in the set of its [`SlotMap::place`].
    pub fn rows(&self, slot: u64) -> Range<Row> {
        let first = self.place(slot).first_sector / self.slot_sectors * self.rows_per_slot;
        Row(first)..Row(first + self.rows_per_slot)
    }

    /// The slots of a set, by ascending rows: the inverse of [`SlotMap::place`].
    pub fn slots_of(&self, set: SetIndex) -> impl Iterator<Item = u64> + use<> {
        let first_set = u64::from(set.0) / self.sets_per_band * self.sets_per_band;
        let width = self.sets_per_band.min(self.sets - first_set);
        let first = first_set * self.slots_per_set + u64::from(set.0) - first_set;
        (0..self.slots_per_set).map(move |place| first + place * width)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tier0_pool::{Chunklets, DATA_START_SECTORS};
    use tier0_units::SectorCount;

    use super::*;
    use crate::layout::{Layout, RaidConfig, RaidLevel};

    #[test]
    fn every_slot_has_its_own_place_and_neighbours_are_on_other_sets() {
        // 7 drives in pairs leave an odd band at the end.
        for (level, columns, drives) in
            [(RaidLevel::Raid10, 2, 7), (RaidLevel::Raid5, 6, 13), (RaidLevel::Raid6, 5, 5)]
        {
            let layout = Layout::new(&RaidConfig::new(level, columns, SectorCount(8))).expect("valid");
            let sizes = (0..drives).map(|_| ("drive", DATA_START_SECTORS + 9 * 1024));
            let sets = RaidSets::form(layout, &mut Chunklets::new(sizes, 1024, 0).expect("large enough"));
            let slots = SlotMap::new(&sets, 64, drives);
            let row = layout.data_units_per_row() as u64 * 8;
            assert!(slots.slot_sectors() >= 64 && slots.slot_sectors() < 64 + row);
            let capacity = 1024 / 8 * row;
            for set in (0..sets.count()).map(SetIndex) {
                let own: Vec<u64> = (0..slots.count()).filter(|slot| slots.place(*slot).set == set).collect();
                assert_eq!(slots.slots_of(set).collect::<Vec<_>>(), own);
            }
            let mut seen = BTreeSet::new();
            for slot in 0..slots.count() {
                let place = slots.place(slot);
                assert!(place.set.0 < sets.count() && place.first_sector + slots.slot_sectors() <= capacity);
                assert!(seen.insert((place.set, place.first_sector)), "slot {slot} overlaps another");
                assert_eq!(slots.rows(slot).start.0 * row, place.first_sector);
                assert_eq!((slots.rows(slot).end.0 - slots.rows(slot).start.0) * row, slots.slot_sectors());
                if slot > 0 && slots.sets_per_band > 1 && slot < slots.count() / 2 {
                    assert_ne!(slots.place(slot - 1).set, place.set);
                }
            }
        }
    }
}
