//! Whose every slot is: the map the other way round.

use tier0_units::ExtentId;

use crate::state::BitSet;

const NOBODY: ExtentId = ExtentId { volume: 0, index: 0 };

/// The slots that have extents, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenants {
    used: BitSet,
    /// By slot; [`NOBODY`] where it is free.
    extents: Vec<ExtentId>,
}

impl Tenants {
    /// So many free slots.
    pub(crate) fn new(slots: u64) -> Tenants {
        Tenants { used: BitSet::new(slots), extents: vec![NOBODY; slots as usize] }
    }

    /// The slots that have extents.
    pub(crate) fn used(&self) -> &BitSet {
        &self.used
    }

    /// How many slots there are.
    pub(crate) fn bound(&self) -> u64 {
        self.used.bound()
    }

    /// How many have extents.
    pub(crate) fn count(&self) -> u64 {
        self.used.count()
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

    /// Appends free slots until there are so many.
    pub(crate) fn grow(&mut self, slots: u64) {
        self.used.grow(slots);
        self.extents.resize(slots as usize, NOBODY);
    }

    /// Takes the last slots away until there are so many; those that go must be free.
    pub(crate) fn shrink(&mut self, slots: u64) {
        self.used.shrink(slots);
        self.extents.truncate(slots as usize);
    }
}
