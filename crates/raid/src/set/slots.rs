//! Extent slots: the pool's space in pieces of one extent, numbered so that neighbours lie on different sets and low
//! numbers lie on the disks' outer tracks.
//!
//! A slot is a whole number of rows of one set, so an extent shares no parity with another and the shard that owns the
//! extent owns its rows. Sets are taken in bands that together use every drive once; slot after slot walks through a
//! band's sets, row by row, so a volume is striped over all drives and still lies in one stretch on each.

use std::ops::Range;
use std::sync::OnceLock;

use crate::layout::Row;
use crate::set::grow_list::GrowList;
use crate::set::{RaidSets, SetIndex};

/// Where a slot lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPlace {
    /// The set.
    pub set: SetIndex,
    /// Its first sector among the set's data sectors.
    pub first_sector: u64,
}

/// The arithmetic from slots to sets. It grows with its sets while others use it: slots keep their numbers.
#[derive(Debug)]
pub struct SlotMap {
    /// Never empty; a pool that grew has several.
    groups: GrowList<OnceLock<Group>>,
    slots_per_set: u64,
    slot_sectors: u64,
    rows_per_slot: u64,
}

/// Sets that were added together: their slots follow those of the group before.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_set: u64,
    sets: u64,
    sets_per_band: u64,
}

impl SlotMap {
    /// Slots for extents of `extent_sectors` over `sets`, whose chunklets come from `drives` drives.
    pub fn new(sets: &RaidSets, extent_sectors: u64, drives: usize) -> SlotMap {
        let count = u64::from(sets.count());
        let band = ((drives / sets.layout().columns()) as u64).clamp(1, count.max(1));
        SlotMap::of_groups(sets, extent_sectors, [(count, band)])
    }

    /// Slots over sets that were added in groups of so many sets, in bands of so many.
    pub fn of_groups(
        sets: &RaidSets,
        extent_sectors: u64,
        groups: impl IntoIterator<Item = (u64, u64)>,
    ) -> SlotMap {
        let layout = sets.layout();
        let row_sectors = layout.data_units_per_row() as u64 * layout.stripe_unit().0;
        let rows_per_slot = extent_sectors.div_ceil(row_sectors);
        let mut first_set = 0;
        let place = |(sets, sets_per_band): (u64, u64)| {
            let group = Group { first_set, sets, sets_per_band };
            first_set += sets;
            OnceLock::from(group)
        };
        let groups: Vec<OnceLock<Group>> = groups.into_iter().map(place).collect();
        assert!(first_set == u64::from(sets.count()), "the groups hold {first_set} of {} sets", sets.count());
        SlotMap {
            groups: GrowList::new(groups),
            slots_per_set: sets.rows() / rows_per_slot,
            slot_sectors: rows_per_slot * row_sectors,
            rows_per_slot,
        }
    }

    /// So many sets have joined behind those that are there, in bands of so many. Called by one thread at a time, after
    /// [`RaidSets::append`] and before anybody is told of their slots.
    pub fn append(&self, sets: u64, sets_per_band: u64) {
        let first_set = self.groups().last().map_or(0, |last| last.first_set + last.sets);
        let group = Group { first_set, sets, sets_per_band };
        self.groups.append(|place| place.set(group).expect("nothing was there"));
    }

    /// How many groups of sets there are.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(group_of)
    }

    /// All slots of the pool.
    pub fn count(&self) -> u64 {
        self.groups().map(|group| group.sets * self.slots_per_set).sum()
    }

    /// Data sectors a slot has: at least an extent's; what is more lies idle.
    pub fn slot_sectors(&self) -> u64 {
        self.slot_sectors
    }

    /// Where a slot lies.
    #[inline]
    pub fn place(&self, slot: u64) -> SlotPlace {
        debug_assert!(slot < self.count());
        let mut slot = slot;
        let mut number = 0;
        let mut group = group_of(self.groups.get(0));
        // A caller that has the slot has been told of its group.
        while slot >= group.sets * self.slots_per_set {
            slot -= group.sets * self.slots_per_set;
            number += 1;
            group = group_of(self.groups.get(number));
        }
        let band_slots = group.sets_per_band * self.slots_per_set;
        let (band, inside) = (slot / band_slots, slot % band_slots);
        let first_set = band * group.sets_per_band;
        let width = group.sets_per_band.min(group.sets - first_set);
        let set = SetIndex((group.first_set + first_set + inside % width) as u32);
        SlotPlace { set, first_sector: inside / width * self.slot_sectors }
    }

    /// The rows of a slot, all in the set of its [`SlotMap::place`].
    pub fn rows(&self, slot: u64) -> Range<Row> {
        let first = self.place(slot).first_sector / self.slot_sectors * self.rows_per_slot;
        Row(first)..Row(first + self.rows_per_slot)
    }

    /// The slots of a set, by ascending rows: the inverse of [`SlotMap::place`].
    pub fn slots_of(&self, set: SetIndex) -> impl Iterator<Item = u64> + use<> {
        let set = u64::from(set.0);
        let holds = |group: &&Group| (group.first_set..group.first_set + group.sets).contains(&set);
        let group = self.groups().find(holds).expect("the set is in a group");
        let inside = set - group.first_set;
        let first_of_band = inside / group.sets_per_band * group.sets_per_band;
        let width = group.sets_per_band.min(group.sets - first_of_band);
        let first = (group.first_set + first_of_band) * self.slots_per_set + inside - first_of_band;
        (0..self.slots_per_set).map(move |place| first + place * width)
    }
}

fn group_of(place: &OnceLock<Group>) -> &Group {
    place.get().expect("a group is there before it is counted")
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
                if slot > 0 && group_of(slots.groups.get(0)).sets_per_band > 1 && slot < slots.count() / 2 {
                    assert_ne!(slots.place(slot - 1).set, place.set);
                }
            }
        }
    }
    #[test]
    fn a_pool_that_grew_keeps_its_slots() {
        let layout = Layout::new(&RaidConfig::new(RaidLevel::Raid5, 3, SectorCount(8))).expect("valid");
        let sizes = (0..7).map(|_| ("drive", DATA_START_SECTORS + 9 * 1024));
        let sets = RaidSets::form(layout, &mut Chunklets::new(sizes, 1024, 0).expect("large enough"));
        let count = u64::from(sets.count());
        let (old, new) = (13, count - 13);
        let grown = SlotMap::of_groups(&sets, 64, [(old, 2), (new, 1)]);
        // The same, grown while it is in use.
        let table = sets.table();
        let live = RaidSets::from_table(layout, 1024, &table[..13 * 3], 0).expect("valid");
        let slots = SlotMap::of_groups(&live, 64, [(old, 2)]);
        let early: Vec<SlotPlace> = (0..slots.count()).map(|slot| slots.place(slot)).collect();
        live.append(&table[13 * 3..]).expect("valid");
        slots.append(new, 1);
        assert_eq!(slots.count(), grown.count());
        let places = |map: &SlotMap| (0..map.count()).map(|slot| map.place(slot)).collect::<Vec<_>>();
        assert_eq!(places(&slots), places(&grown));
        assert_eq!(places(&slots)[..early.len()], early);
        let slots_per_set = grown.count() / count;
        let mut seen = BTreeSet::new();
        for slot in 0..grown.count() {
            let place = grown.place(slot);
            assert_eq!(u64::from(place.set.0) < old, slot < old * slots_per_set, "slot {slot}");
            assert!(seen.insert((place.set, place.first_sector)));
        }
        for set in (0..sets.count()).map(SetIndex) {
            let own: Vec<u64> = (0..grown.count()).filter(|slot| grown.place(*slot).set == set).collect();
            assert_eq!(grown.slots_of(set).collect::<Vec<_>>(), own);
        }
    }
}
