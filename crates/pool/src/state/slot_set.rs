//! A set of slots that knows how many it has of each group's.

use crate::state::{BitSet, PoolState};

/// Neighbouring slots of one group; they begin where the stretch before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotStretch {
    pub(crate) group: u32,
    pub(crate) end: u64,
}

/// A set of a pool's slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotSet {
    slots: BitSet,
    /// Those of batches, in order.
    stretches: Vec<SlotStretch>,
    /// By group: how many are in it.
    counts: Vec<u64>,
}

impl SlotSet {
    /// An empty set of these slots.
    pub(crate) fn new(stretches: Vec<SlotStretch>) -> SlotSet {
        let mut set = SlotSet::default();
        set.grow(stretches);
        set
    }

    pub(crate) fn bits(&self) -> &BitSet {
        &self.slots
    }

    /// The group of a slot. Panics if there is no such slot.
    pub(crate) fn group_of(&self, slot: u64) -> u32 {
        self.stretches.iter().find(|stretch| slot < stretch.end).expect("there is such a slot").group
    }

    pub(crate) fn contains(&self, slot: u64) -> bool {
        self.slots.contains(slot)
    }

    /// Puts a slot in; false if it was there.
    pub(crate) fn insert(&mut self, slot: u64) -> bool {
        let fresh = self.slots.insert(slot);
        if fresh {
            let group = self.group_of(slot);
            self.counts[group as usize] += 1;
        }
        fresh
    }

    /// Takes a slot out; false if it was not there.
    pub(crate) fn remove(&mut self, slot: u64) -> bool {
        let there = self.slots.remove(slot);
        if there {
            let group = self.group_of(slot);
            self.counts[group as usize] -= 1;
        }
        there
    }

    /// How many of a group's slots are in it, and how many are not.
    pub(crate) fn counts_of(&self, group: u32) -> (u64, u64) {
        let there = self.counts.get(group as usize).copied().unwrap_or(0);
        (there, self.slots_of(group).map(|(first, end)| end - first).sum::<u64>() - there)
    }

    /// The lowest slot of a group at or above `from` that is not in it.
    pub(crate) fn next_missing(&self, group: u32, from: u64) -> Option<u64> {
        self.slots_of(group)
            .filter(|(_, end)| from < *end)
            .find_map(|(first, end)| self.slots.next_missing(from.max(first)).filter(|slot| *slot < end))
    }

    /// The slots of a group: first and end.
    fn slots_of(&self, group: u32) -> impl Iterator<Item = (u64, u64)> {
        let firsts = std::iter::once(0).chain(self.stretches.iter().map(|stretch| stretch.end));
        let own = firsts.zip(&self.stretches).filter(move |(_, stretch)| stretch.group == group);
        own.map(|(first, stretch)| (first, stretch.end))
    }

    /// There are these slots from now on, those of before among them; nothing is added to the set.
    pub(crate) fn grow(&mut self, stretches: Vec<SlotStretch>) {
        self.slots.grow(stretches.last().map_or(0, |last| last.end));
        let groups = stretches.iter().map(|stretch| stretch.group as usize + 1).max().unwrap_or(0);
        self.counts.resize(groups.max(self.counts.len()), 0);
        self.stretches = stretches;
    }

    /// As [`SlotSet::grow`], of fewer slots; none of those that go may be in the set.
    pub(crate) fn shrink(&mut self, stretches: Vec<SlotStretch>) {
        self.slots.shrink(stretches.last().map_or(0, |last| last.end));
        let groups = stretches.iter().map(|stretch| stretch.group as usize + 1).max().unwrap_or(0);
        self.counts.truncate(groups);
        self.stretches = stretches;
    }
}

impl PoolState {
    /// The slots of a group, in order.
    pub fn slots_of_group(&self, group: u32) -> impl Iterator<Item = u64> {
        let firsts = std::iter::once(0).chain(self.slot_stretches().into_iter().map(|stretch| stretch.end));
        let own = firsts.zip(self.slot_stretches()).filter(move |(_, stretch)| stretch.group == group);
        own.flat_map(|(first, stretch)| first..stretch.end)
    }

    /// The slots of all batches, by group.
    pub(crate) fn slot_stretches(&self) -> Vec<SlotStretch> {
        let mut stretches: Vec<SlotStretch> = Vec::new();
        for (batch, placed) in self.inventory.batches.iter().zip(self.placed_batches()) {
            match stretches.last_mut().filter(|last| last.group == batch.group) {
                Some(last) => last.end = placed.end_slot(),
                None => stretches.push(SlotStretch { group: batch.group, end: placed.end_slot() }),
            }
        }
        stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_counted_and_found_by_group() {
        let stretch = |group, end| SlotStretch { group, end };
        let mut set = SlotSet::new(vec![stretch(0, 10), stretch(1, 15)]);
        for slot in [0, 1, 2, 10, 11] {
            assert!(set.insert(slot) && !set.insert(slot));
        }
        assert_eq!((set.counts_of(0), set.counts_of(1), set.counts_of(2)), ((3, 7), (2, 3), (0, 0)));
        assert_eq!((set.next_missing(0, 0), set.next_missing(1, 0)), (Some(3), Some(12)));
        (3..10).for_each(|slot| assert!(set.insert(slot)));
        assert_eq!((set.next_missing(0, 0), set.next_missing(0, 12)), (None, None));
        set.grow(vec![stretch(0, 10), stretch(1, 15), stretch(0, 20)]);
        assert_eq!(
            (set.counts_of(0), set.next_missing(0, 0), set.next_missing(0, 17)),
            ((10, 5), Some(15), Some(17))
        );
        assert!(set.insert(15) && set.remove(15) && set.remove(0) && !set.remove(0));
        assert_eq!(
            (set.next_missing(0, 0), set.next_missing(0, 1), set.counts_of(0)),
            (Some(0), Some(15), (9, 6))
        );
        set.shrink(vec![stretch(0, 10)]);
    }

    #[test]
    #[should_panic(expected = "there is such a slot")]
    fn a_slot_that_is_not_there_has_no_group() {
        SlotSet::new(vec![SlotStretch { group: 0, end: 5 }]).group_of(5);
    }
}
