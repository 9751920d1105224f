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
    batches: GrowList<OnceLock<Batch>>,
    extent_sectors: u64,
}

/// Sets of one shape that join a pool together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoiningSets {
    /// How many.
    pub sets: u32,
    /// In bands of so many.
    pub sets_per_band: u32,
    /// The number of their group.
    pub group: u32,
}

/// Sets that were added together, of one shape: their slots follow those of the batch before.
#[derive(Clone, Copy, Debug)]
struct Batch {
    first_set: u64,
    sets: u64,
    sets_per_band: u64,
    group: u32,
    first_slot: u64,
    slots_per_set: u64,
    slot_sectors: u64,
    rows_per_slot: u64,
}

impl Batch {
    /// Sets from `first_set` on, whose slots begin with `first_slot`.
    fn new(
        raid: &RaidSets,
        extent_sectors: u64,
        (first_set, first_slot): (u64, u64),
        joining: JoiningSets,
    ) -> Batch {
        let set = SetIndex(first_set as u32);
        let layout = raid.layout(set);
        let row_sectors = layout.data_units_per_row() as u64 * layout.stripe_unit().0;
        let rows_per_slot = extent_sectors.div_ceil(row_sectors);
        Batch {
            first_set,
            sets: u64::from(joining.sets),
            sets_per_band: u64::from(joining.sets_per_band),
            group: joining.group,
            first_slot,
            slots_per_set: raid.rows(set) / rows_per_slot,
            slot_sectors: rows_per_slot * row_sectors,
            rows_per_slot,
        }
    }

    fn slots(&self) -> u64 {
        self.sets * self.slots_per_set
    }

    /// Where the next one begins: its first set and slot.
    fn end(&self) -> (u64, u64) {
        (self.first_set + self.sets, self.first_slot + self.slots())
    }
}

impl SlotMap {
    /// Slots for extents of `extent_sectors` over `sets`, all of one shape, whose chunklets come from `drives` drives.
    pub fn new(sets: &RaidSets, extent_sectors: u64, drives: usize) -> SlotMap {
        let columns = sets.layout(SetIndex(0)).columns();
        let sets_per_band = ((drives / columns) as u32).clamp(1, sets.count().max(1));
        let all = JoiningSets { sets: sets.count(), sets_per_band, group: 0 };
        SlotMap::of_batches(sets, extent_sectors, [all])
    }

    /// Slots over sets that were added in these batches.
    pub fn of_batches(
        sets: &RaidSets,
        extent_sectors: u64,
        batches: impl IntoIterator<Item = JoiningSets>,
    ) -> SlotMap {
        let mut next = (0, 0);
        let place = |joining: JoiningSets| {
            let batch = Batch::new(sets, extent_sectors, next, joining);
            next = batch.end();
            OnceLock::from(batch)
        };
        let batches: Vec<OnceLock<Batch>> = batches.into_iter().map(place).collect();
        assert!(next.0 == u64::from(sets.count()), "the batches hold {} of {} sets", next.0, sets.count());
        SlotMap { batches: GrowList::new(batches), extent_sectors }
    }

    /// Sets have joined behind those that are there. Called by one thread at a time, after [`RaidSets::append`] and before a
    /// shard is told of their slots.
    pub fn append(&self, raid: &RaidSets, joining: JoiningSets) {
        let next = self.batches().last().map_or((0, 0), Batch::end);
        let batch = Batch::new(raid, self.extent_sectors, next, joining);
        self.batches.append(|place| place.set(batch).expect("nothing was there"));
    }

    /// How many batches of sets there are.
    pub fn batch_count(&self) -> usize {
        self.batches.len()
    }

    fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.batches.iter().map(batch_of)
    }

    /// The batch of a slot. A caller that has the slot has been told of its batch.
    #[inline]
    fn of(&self, slot: u64) -> &Batch {
        let first = batch_of(self.batches.get(0));
        if slot < first.slots() {
            return first;
        }
        let others = (1..self.batches.len()).map(|number| batch_of(self.batches.get(number)));
        others.into_iter().find(|batch| slot < batch.end().1).expect("the slot is in a batch")
    }

    /// The batch of a set.
    fn of_set(&self, set: SetIndex) -> &Batch {
        let set = u64::from(set.0);
        let holds = |batch: &&Batch| (batch.first_set..batch.first_set + batch.sets).contains(&set);
        self.batches().find(holds).expect("the set is in a batch")
    }

    /// All slots of the pool.
    pub fn count(&self) -> u64 {
        self.batches().map(Batch::slots).sum()
    }

    /// The group of a slot's set.
    #[inline]
    pub fn group_of(&self, slot: u64) -> u32 {
        self.of(slot).group
    }

    /// Data sectors that a slot has: at least an extent's; what is more lies idle.
    #[inline]
    pub fn slot_sectors(&self, slot: u64) -> u64 {
        self.of(slot).slot_sectors
    }

    /// Data sectors that a slot of a set has.
    pub fn slot_sectors_of(&self, set: SetIndex) -> u64 {
        self.of_set(set).slot_sectors
    }

    /// Slots that a set has.
    pub fn slots_per_set(&self, set: SetIndex) -> u64 {
        self.of_set(set).slots_per_set
    }

    /// Where a slot lies.
    #[inline]
    pub fn place(&self, slot: u64) -> SlotPlace {
        let batch = self.of(slot);
        let slot = slot - batch.first_slot;
        let band_slots = batch.sets_per_band * batch.slots_per_set;
        let (band, inside) = (slot / band_slots, slot % band_slots);
        let first_set = band * batch.sets_per_band;
        let width = batch.sets_per_band.min(batch.sets - first_set);
        let set = SetIndex((batch.first_set + first_set + inside % width) as u32);
        SlotPlace { set, first_sector: inside / width * batch.slot_sectors }
    }

    /// The rows of a slot, all in the set of its [`SlotMap::place`].
    pub fn rows(&self, slot: u64) -> Range<Row> {
        let batch = self.of(slot);
        let first = self.place(slot).first_sector / batch.slot_sectors * batch.rows_per_slot;
        Row(first)..Row(first + batch.rows_per_slot)
    }

    /// The slots of a set, by ascending rows: the inverse of [`SlotMap::place`].
    pub fn slots_of(&self, set: SetIndex) -> impl Iterator<Item = u64> + use<> {
        let batch = self.of_set(set);
        let inside = u64::from(set.0) - batch.first_set;
        let first_of_band = inside / batch.sets_per_band * batch.sets_per_band;
        let width = batch.sets_per_band.min(batch.sets - first_of_band);
        let first = batch.first_slot + first_of_band * batch.slots_per_set + inside - first_of_band;
        (0..batch.slots_per_set).map(move |place| first + place * width)
    }
}

fn batch_of(place: &OnceLock<Batch>) -> &Batch {
    place.get().expect("a batch is there before it is counted")
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
            let slot_sectors = slots.slot_sectors(0);
            assert!(slot_sectors >= 64 && slot_sectors < 64 + row);
            let capacity = 1024 / 8 * row;
            for set in (0..sets.count()).map(SetIndex) {
                let own: Vec<u64> = (0..slots.count()).filter(|slot| slots.place(*slot).set == set).collect();
                assert_eq!(slots.slots_of(set).collect::<Vec<_>>(), own);
            }
            let mut seen = BTreeSet::new();
            for slot in 0..slots.count() {
                let place = slots.place(slot);
                assert!(place.set.0 < sets.count() && place.first_sector + slot_sectors <= capacity);
                assert!(seen.insert((place.set, place.first_sector)), "slot {slot} overlaps another");
                assert_eq!(slots.rows(slot).start.0 * row, place.first_sector);
                assert_eq!((slots.rows(slot).end.0 - slots.rows(slot).start.0) * row, slot_sectors);
                if slot > 0 && batch_of(slots.batches.get(0)).sets_per_band > 1 && slot < slots.count() / 2 {
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
        let (old, new) = (13, sets.count() - 13);
        let joining = |sets, sets_per_band, group| JoiningSets { sets, sets_per_band, group };
        let grown = SlotMap::of_batches(&sets, 64, [joining(old, 2, 0), joining(new, 1, 3)]);
        // The same, grown while it is in use.
        let table = sets.table();
        let shape = *sets.shape(SetIndex(0));
        let live = RaidSets::from_table(shape, 1024, &table[..13 * 3]).expect("valid");
        let slots = SlotMap::of_batches(&live, 64, [joining(old, 2, 0)]);
        let early: Vec<SlotPlace> = (0..slots.count()).map(|slot| slots.place(slot)).collect();
        live.append(&shape, &table[13 * 3..]).expect("valid");
        slots.append(&live, joining(new, 1, 3));
        assert_eq!(slots.count(), grown.count());
        let places = |map: &SlotMap| (0..map.count()).map(|slot| map.place(slot)).collect::<Vec<_>>();
        assert_eq!(places(&slots), places(&grown));
        assert_eq!(places(&slots)[..early.len()], early);
        let slots_per_set = grown.count() / count;
        let mut seen = BTreeSet::new();
        for slot in 0..grown.count() {
            let place = grown.place(slot);
            let is_old = slot < u64::from(old) * slots_per_set;
            assert_eq!((place.set.0 < old, slots.group_of(slot) == 0), (is_old, is_old), "slot {slot}");
            assert!(seen.insert((place.set, place.first_sector)));
        }
        for set in (0..sets.count()).map(SetIndex) {
            let own: Vec<u64> = (0..grown.count()).filter(|slot| grown.place(*slot).set == set).collect();
            assert_eq!(grown.slots_of(set).collect::<Vec<_>>(), own);
        }
    }
}
