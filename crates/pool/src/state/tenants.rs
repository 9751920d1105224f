//! Whose every slot is: the map the other way round.

use std::collections::BTreeSet;

use tier0_units::ExtentId;

use crate::state::BitSet;
use crate::state::slot_set::{SlotSet, SlotStretch};

const NO_EXTENT: ExtentId = ExtentId { volume: 0, index: 0 };

/// The slots that have extents, and which. Extents that have a slot together have the same number in their volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenants {
    used: SlotSet,
    /// By slot: the extent that has it, of several the one of the lowest volume; [`NO_EXTENT`] where it is free.
    extents: Vec<ExtentId>,
    /// Slots with the volumes of their further extents, ascending.
    further: BTreeSet<(u32, u32)>,
}

impl Tenants {
    /// These slots, all free.
    pub(crate) fn new(stretches: Vec<SlotStretch>) -> Tenants {
        let used = SlotSet::new(stretches);
        let extents = vec![NO_EXTENT; used.bits().bound() as usize];
        Tenants { used, extents, further: BTreeSet::new() }
    }

    /// The slots that have extents.
    pub(crate) fn used(&self) -> &BitSet {
        self.used.bits()
    }

    /// The same, by group.
    pub(crate) fn used_by_group(&self) -> &SlotSet {
        &self.used
    }

    /// How many slots of a group have extents, and how many are free.
    pub(crate) fn counts_of(&self, group: u32) -> (u64, u64) {
        self.used.counts_of(group)
    }

    /// The group of a slot. Panics if there is no such slot.
    pub(crate) fn group_of(&self, slot: u64) -> u32 {
        self.used.group_of(slot)
    }

    /// How many slots there are.
    pub(crate) fn bound(&self) -> u64 {
        self.used.bits().bound()
    }

    /// How many have extents.
    pub(crate) fn count(&self) -> u64 {
        self.used.bits().count()
    }

    /// How many extents have slots.
    pub(crate) fn extent_count(&self) -> u64 {
        self.count() + self.further.len() as u64
    }

    /// Whether a slot has an extent.
    pub(crate) fn contains(&self, slot: u64) -> bool {
        self.used.contains(slot)
    }

    /// The extent that has a slot, of several the one of the lowest volume.
    pub(crate) fn extent(&self, slot: u64) -> Option<ExtentId> {
        self.used.contains(slot).then(|| self.extents[slot as usize])
    }

    /// All extents that have a slot, by their volumes.
    pub(crate) fn owners(&self, slot: u64) -> impl Iterator<Item = ExtentId> {
        let first = self.extent(slot);
        let index = first.map_or(0, |extent| extent.index);
        let others = self.further_of(slot).map(move |volume| ExtentId { volume, index });
        first.into_iter().chain(others)
    }

    /// Whether several extents have a slot.
    pub(crate) fn is_shared(&self, slot: u64) -> bool {
        self.further_of(slot).next().is_some()
    }

    fn further_of(&self, slot: u64) -> impl Iterator<Item = u32> {
        // Slots have numbers below 2^32.
        let slot = slot as u32;
        self.further.range((slot, 0)..=(slot, u32::MAX)).map(|(_, volume)| *volume)
    }

    /// Gives a free slot to an extent; false if another one has it, which keeps it. Panics if there is no such slot.
    pub(crate) fn insert(&mut self, slot: u64, extent: ExtentId) -> bool {
        let fresh = self.used.insert(slot);
        if fresh {
            self.extents[slot as usize] = extent;
        }
        fresh
    }

    /// Gives a slot to one more extent; false if it is free, or an extent of another number or this one has it.
    pub(crate) fn join(&mut self, slot: u64, extent: ExtentId) -> bool {
        let Some(first) = self.extent(slot).filter(|first| first.index == extent.index) else { return false };
        if first.volume == extent.volume {
            return false;
        }
        if extent.volume < first.volume {
            self.extents[slot as usize] = extent;
        }
        self.further.insert((slot as u32, extent.volume.max(first.volume)))
    }

    /// A volume's extent has this slot no more, which is free if it was the only one; false if it did not have it.
    pub(crate) fn remove(&mut self, slot: u64, volume: u32) -> bool {
        let Some(first) = self.extent(slot) else { return false };
        if first.volume != volume {
            return self.further.remove(&(slot as u32, volume));
        }
        let next = self.further_of(slot).next();
        match next {
            Some(next) => {
                self.further.remove(&(slot as u32, next));
                self.extents[slot as usize].volume = next;
            }
            None => {
                self.used.remove(slot);
                self.extents[slot as usize] = NO_EXTENT;
            }
        }
        true
    }

    /// Appends free slots until there are these.
    pub(crate) fn grow(&mut self, stretches: Vec<SlotStretch>) {
        self.used.grow(stretches);
        self.extents.resize(self.used.bits().bound() as usize, NO_EXTENT);
    }

    /// Takes the last slots away until there are these; those that go must be free.
    pub(crate) fn shrink(&mut self, stretches: Vec<SlotStretch>) {
        self.used.shrink(stretches);
        self.extents.truncate(self.used.bits().bound() as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use tier0_world::Random;

    use super::*;

    #[test]
    fn owners_come_and_go_as_a_plain_map_has_them() {
        let mut random = Random::new(5, 0);
        let mut tenants = Tenants::new(vec![SlotStretch { group: 0, end: 6 }]);
        // By slot: the number of its extents, and their volumes.
        let mut model: BTreeMap<u64, (u32, BTreeSet<u32>)> = BTreeMap::new();
        for _ in 0..20_000 {
            let (slot, volume, index) = (random.below(6), random.below(5) as u32, random.below(2) as u32);
            let extent = ExtentId { volume, index };
            match random.below(3) {
                0 => {
                    let fresh = !model.contains_key(&slot);
                    assert_eq!(tenants.insert(slot, extent), fresh);
                    if fresh {
                        model.insert(slot, (index, BTreeSet::from([volume])));
                    }
                }
                1 => {
                    let known = model.get_mut(&slot).filter(|(number, _)| *number == index);
                    assert_eq!(tenants.join(slot, extent), known.is_some_and(|(_, all)| all.insert(volume)));
                }
                _ => {
                    let was = model.get_mut(&slot).is_some_and(|(_, all)| all.remove(&volume));
                    model.retain(|_, (_, all)| !all.is_empty());
                    assert_eq!(tenants.remove(slot, volume), was);
                }
            }
            for slot in 0..6 {
                let known = model.get(&slot);
                let owners = known.into_iter().flat_map(|(index, all)| {
                    all.iter().map(|volume| ExtentId { volume: *volume, index: *index })
                });
                assert!(tenants.owners(slot).eq(owners));
                assert_eq!(tenants.is_shared(slot), known.is_some_and(|(_, all)| all.len() > 1));
            }
            assert_eq!(tenants.count(), model.len() as u64);
            assert_eq!(tenants.extent_count(), model.values().map(|(_, all)| all.len() as u64).sum::<u64>());
        }
    }
}
