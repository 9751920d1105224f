//! Batches of sets, and the arithmetic from slots to sets: sets that were added together are numbered together, and so are
//! their slots.

use crate::state::{PoolState, SetGroup, SlotHome};

/// Sets of a group that were added together. Slots are numbered batch after batch; inside of a batch, slot after slot walks
/// through the sets of a band, so that neighbours lie on different sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBatch {
    /// The group.
    pub group: u32,
    /// How many sets.
    pub sets: u32,
    /// How many of them make a band, at least 1.
    pub sets_per_band: u32,
}

/// A batch where it lies among the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedBatch<'a> {
    pub(crate) group: &'a SetGroup,
    pub(crate) sets: u32,
    sets_per_band: u32,
    pub(crate) first_set: u32,
    /// The place of its first column among the columns of all sets.
    pub(crate) first_column: usize,
    first_slot: u64,
}

impl PlacedBatch<'_> {
    /// Whether a set is in it, or before it.
    pub(crate) fn reaches(&self, set: u32) -> bool {
        set - self.first_set < self.sets
    }

    /// The slot behind its last one.
    pub(crate) fn end_slot(&self) -> u64 {
        self.first_slot + self.slots()
    }

    /// Its slots.
    pub(crate) fn slots(&self) -> u64 {
        u64::from(self.sets) * u64::from(self.group.slots_per_set)
    }

    /// The place of a column among the columns of all sets.
    pub(crate) fn column_index(&self, set: u32, column: u32) -> usize {
        self.first_column + (set - self.first_set) as usize * self.group.columns() as usize + column as usize
    }

    /// Where a slot of the batch lies.
    fn home(&self, slot: u64) -> SlotHome {
        let slot = slot - self.first_slot;
        let band_slots = u64::from(self.sets_per_band) * u64::from(self.group.slots_per_set);
        let (band, inside) = (slot / band_slots, slot % band_slots);
        let first_set = band * u64::from(self.sets_per_band);
        let width = u64::from(self.sets_per_band).min(u64::from(self.sets) - first_set);
        let set = self.first_set + (first_set + inside % width) as u32;
        SlotHome { set, index: (inside / width) as u32 }
    }

    /// The number of a slot of one of its sets: the inverse of `home`.
    fn slot(&self, home: SlotHome) -> u64 {
        let inside = home.set - self.first_set;
        let first_set = inside / self.sets_per_band * self.sets_per_band;
        let width = self.sets_per_band.min(self.sets - first_set);
        self.first_slot
            + u64::from(first_set) * u64::from(self.group.slots_per_set)
            + u64::from(home.index) * u64::from(width)
            + u64::from(inside - first_set)
    }
}

/// Whether batches are of groups that there are, and have so many columns: [`placed`] asks for it.
pub(crate) fn are_placed(groups: &[SetGroup], batches: &[SetBatch], columns: u64) -> bool {
    let is_sound = |batch: &SetBatch| {
        (batch.group as usize) < groups.len() && (1..=batch.sets).contains(&batch.sets_per_band)
    };
    let width = |batch: &SetBatch| u64::from(groups[batch.group as usize].columns());
    batches.iter().all(is_sound)
        && batches.iter().map(|batch| u64::from(batch.sets)).sum::<u64>() <= u64::from(u32::MAX)
        && batches.iter().map(|batch| u64::from(batch.sets) * width(batch)).sum::<u64>() == columns
}

/// Batches where they lie. [`are_placed`] must hold.
pub(crate) fn placed<'a>(
    groups: &'a [SetGroup],
    batches: &'a [SetBatch],
) -> impl Iterator<Item = PlacedBatch<'a>> {
    let (mut first_set, mut first_column, mut first_slot) = (0, 0, 0);
    batches.iter().map(move |batch| {
        let SetBatch { group, sets, sets_per_band } = *batch;
        let group = &groups[group as usize];
        let placed = PlacedBatch { group, sets, sets_per_band, first_set, first_column, first_slot };
        first_set += sets;
        first_column += sets as usize * group.columns() as usize;
        first_slot += placed.slots();
        placed
    })
}

impl PoolState {
    /// The batches in which sets were added.
    pub fn batches(&self) -> &[SetBatch] {
        &self.inventory.batches
    }

    pub(crate) fn placed_batches(&self) -> impl Iterator<Item = PlacedBatch<'_>> {
        placed(&self.inventory.groups, &self.inventory.batches)
    }

    /// The batch of a set.
    pub(crate) fn batch_of(&self, set: u32) -> Option<PlacedBatch<'_>> {
        self.placed_batches().find(|batch| batch.reaches(set))
    }

    /// The group of a set. Panics if there is no such set.
    pub fn group_of(&self, set: u32) -> &SetGroup {
        self.batch_of(set).expect("the set is in a batch").group
    }

    /// The number of the group of a set. Panics if there is no such set.
    pub fn group_number_of(&self, set: u32) -> u32 {
        let mut first = 0;
        let own = self.inventory.batches.iter().find(|batch| {
            first += batch.sets;
            set < first
        });
        own.expect("the set is in a batch").group
    }

    /// How many sets there are.
    pub fn set_count(&self) -> u32 {
        self.inventory.batches.iter().map(|batch| batch.sets).sum()
    }

    /// All columns: set and column.
    pub fn all_columns(&self) -> impl Iterator<Item = (u32, u32)> {
        let sets = |batch: &PlacedBatch<'_>| batch.first_set..batch.first_set + batch.sets;
        self.placed_batches().flat_map(move |batch| {
            let width = batch.group.columns();
            sets(&batch).flat_map(move |set| (0..width).map(move |column| (set, column)))
        })
    }

    /// The slots that all batches give.
    pub(crate) fn slot_count_of_batches(&self) -> u64 {
        self.placed_batches().map(|batch| batch.slots()).sum()
    }

    /// Where a slot lies; none behind the last one.
    pub fn slot_home(&self, slot: u64) -> Option<SlotHome> {
        let batch = self.placed_batches().find(|batch| slot < batch.end_slot())?;
        Some(batch.home(slot))
    }

    /// The slot at a place; none if there is no such place.
    pub fn slot_at(&self, home: SlotHome) -> Option<u64> {
        let batch = self.batch_of(home.set)?;
        (home.index < batch.group.slots_per_set).then(|| batch.slot(home))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::RaidRecord;
    use crate::state::GroupStage;

    fn group(columns: u32, slots_per_set: u32) -> SetGroup {
        let raid = RaidRecord { level: "raid5".into(), set_size: columns, groups: 1, stripe_unit_sectors: 8 };
        SetGroup { name: String::new(), raid, slots_per_set, spare_chunklets: 0, stage: GroupStage::Stays }
    }

    fn batch(group: u32, sets: u32, sets_per_band: u32) -> SetBatch {
        SetBatch { group, sets, sets_per_band }
    }

    #[test]
    fn every_slot_has_its_own_place_in_every_batch() {
        let groups = [group(3, 5), group(6, 11)];
        let batches = [batch(0, 7, 3), batch(1, 1, 1), batch(0, 4, 2), batch(1, 5, 3)];
        let of = |set: u32| if set == 7 || set > 11 { 11 } else { 5 };
        let all: u32 = (0..17).map(of).sum();
        let mut homes = BTreeSet::new();
        for slot in 0..u64::from(all) {
            let placed = || placed(&groups, &batches);
            let own = placed().find(|batch| slot < batch.end_slot()).expect("it exists");
            let home = own.home(slot);
            assert!(home.set < 17 && home.index < of(home.set), "{slot}: {home:?}");
            assert!(homes.insert((home.set, home.index)), "slot {slot} overlaps another");
            let back = placed().find(|batch| batch.reaches(home.set)).expect("it exists");
            assert_eq!(back.slot(home), slot);
        }
        assert_eq!(homes.len(), all as usize);
        let columns: Vec<usize> = [0, 6, 7, 8, 11, 12, 16]
            .into_iter()
            .map(|set| {
                let own = placed(&groups, &batches).find(|batch| batch.reaches(set)).expect("it exists");
                own.column_index(set, 1)
            })
            .collect();
        assert_eq!(columns, [1, 19, 22, 28, 37, 40, 64]);
    }

    #[test]
    fn neighbours_lie_on_different_sets_of_a_band() {
        let (groups, batches) = ([group(3, 10)], [batch(0, 6, 3)]);
        let own = placed(&groups, &batches).next().expect("it exists");
        let sets: Vec<u32> = (0..6).map(|slot| own.home(slot).set).collect();
        assert_eq!(sets, [0, 1, 2, 0, 1, 2]);
    }
}
