//! Whose every slot is: the map the other way round.

use tier0_units::ExtentId;

use crate::state::BitSet;
use crate::state::slot_set::{SlotSet, SlotStretch};

const NOBODY: ExtentId = ExtentId { volume: 0, index: 0 };

/// The slots that have extents, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenants {
    used: SlotSet,
    /// By slot; [`NOBODY`] where it is free.
    extents: Vec<ExtentId>,
}

impl Tenants {
    /// These slots, all free.
    pub(crate) fn new(stretches: Vec<SlotStretch>) -> Tenants {
        let used = SlotSet::new(stretches);
        let extents = vec![NOBODY; used.bits().bound() as usize];
        Tenants { used, extents }
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

    /// Whether a slot has an extent.
    pub(crate) fn contains(&self, slot: u64) -> bool {
        self.used.contains(slot)
    }

    /// The extent that has a slot.
    pub(crate) fn extent(&self, slot: u64) -> Option<ExtentId> {
        self.used.contains(slot).then(|| self.extents[slot as usize])
    }

    /// Gives a slot to an extent; false if another one has it, which keeps it. Panics if there is no such slot.
    pub(crate) fn insert(&mut self, slot: u64, extent: ExtentId) -> bool {
        let fresh = self.used.insert(slot);
        if fresh {
            self.extents[slot as usize] = extent;
        }
        fresh
    }

    /// Frees a slot; false if it was free.
    pub(crate) fn remove(&mut self, slot: u64) -> bool {
        let there = self.used.remove(slot);
        if there {
            self.extents[slot as usize] = NOBODY;
        }
        there
    }

    /// Appends free slots until there are these.
    pub(crate) fn grow(&mut self, stretches: Vec<SlotStretch>) {
        self.used.grow(stretches);
        self.extents.resize(self.used.bits().bound() as usize, NOBODY);
    }

    /// Takes the last slots away until there are these; those that go must be free.
    pub(crate) fn shrink(&mut self, stretches: Vec<SlotStretch>) {
        self.used.shrink(stretches);
        self.extents.truncate(self.used.bits().bound() as usize);
    }
}
