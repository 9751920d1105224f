//! The pool's unchanging measures, and the arithmetic from slots to sets.

use serde::{Deserialize, Serialize};

use crate::state::MetaError;
use crate::{ChunkletAddress, MetadataArea, RaidRecord};

/// What is fixed when a pool is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Sectors of a chunklet.
    pub chunklet_sectors: u64,
    /// Sectors of an extent, and of the user's data in a slot.
    pub extent_sectors: u64,
    /// Extent slots of a set.
    pub slots_per_set: u32,
    /// Chunklets of every member that new sets leave free for rebuilding.
    pub spare_chunklets: u64,
    /// The sets' level and shape.
    pub raid: RaidRecord,
    /// Whether data at rest has checksums (slot tables at the front of every column).
    pub checksums: bool,
    /// The metadata's places on every drive.
    pub area: MetadataArea,
}

/// Sets that were added together. Slots are numbered group after group; inside of a group, slot after slot walks
/// through the sets of a band, so that neighbours lie on different sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetGroup {
    /// How many sets.
    pub sets: u32,
    /// How many of them make a band, at least 1.
    pub sets_per_band: u32,
}

/// Where a slot lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotHome {
    /// The set.
    pub set: u32,
    /// The slot's number in the set, by ascending rows.
    pub index: u32,
}

impl Geometry {
    /// Chunklets of a set.
    pub fn columns(&self) -> u32 {
        self.raid.set_size
    }

    /// Whole chunklets of a drive of this size.
    pub fn chunklets(&self, sectors: u64) -> u64 {
        let count = sectors.saturating_sub(self.area.data_start_sectors) / self.chunklet_sectors;
        count.min(u64::from(u32::MAX))
    }

    /// The first sector behind the chunklets of a drive of this size.
    pub(crate) fn data_end(&self, sectors: u64) -> u64 {
        self.area.data_start_sectors + self.chunklets(sectors) * self.chunklet_sectors
    }

    /// The first sector of a chunklet.
    pub fn chunklet_start(&self, chunklet: ChunkletAddress) -> u64 {
        self.area.data_start_sectors + u64::from(chunklet.index) * self.chunklet_sectors
    }

    pub(crate) fn check(&self) -> Result<(), MetaError> {
        let refuse = |fact: &str| Err(MetaError::Geometry { fact: fact.to_owned() });
        let raid = &self.raid;
        if self.chunklet_sectors == 0 || self.extent_sectors == 0 || self.slots_per_set == 0 {
            return refuse("chunklets, extents or sets are empty; choose larger chunklets");
        }
        if self.chunklet_sectors > u64::MAX / (1 << 32) {
            return refuse("chunklets have at most 2^32 - 1 sectors; choose smaller ones");
        }
        // A set's columns hold an extent at least.
        if self.extent_sectors > self.chunklet_sectors.saturating_mul(u64::from(raid.set_size)) {
            return refuse("an extent is larger than a set; choose smaller extents or larger chunklets");
        }
        // A column has at least one sector of every slot, so more slots than this are damage.
        if u64::from(self.slots_per_set) > self.chunklet_sectors {
            return refuse("a set has more slots than a chunklet has sectors; choose larger extents");
        }
        if raid.set_size == 0 || raid.set_size > 256 || raid.groups == 0 || raid.stripe_unit_sectors == 0 {
            return refuse(
                "sets have 1 to 256 columns, at least one group and stripe units that are not empty",
            );
        }
        if !self.area.is_sound() {
            return refuse("the metadata's places overlap or are too small; let them be planned");
        }
        Ok(())
    }
}

impl SetGroup {
    /// Slots of the group.
    pub fn slots(&self, slots_per_set: u32) -> u64 {
        u64::from(self.sets) * u64::from(slots_per_set)
    }

    /// Where the group's slot number `slot` lies; the set is counted from the group's first.
    fn home(&self, slot: u64, slots_per_set: u32) -> SlotHome {
        let band_slots = u64::from(self.sets_per_band) * u64::from(slots_per_set);
        let (band, inside) = (slot / band_slots, slot % band_slots);
        let first_set = band * u64::from(self.sets_per_band);
        let width = u64::from(self.sets_per_band).min(u64::from(self.sets) - first_set);
        SlotHome { set: (first_set + inside % width) as u32, index: (inside / width) as u32 }
    }

    /// The number of a slot of a set of the group: the inverse of `home`.
    fn slot(&self, home: SlotHome, slots_per_set: u32) -> u64 {
        let first_set = home.set / self.sets_per_band * self.sets_per_band;
        let width = self.sets_per_band.min(self.sets - first_set);
        u64::from(first_set) * u64::from(slots_per_set)
            + u64::from(home.index) * u64::from(width)
            + u64::from(home.set - first_set)
    }
}

/// Where a slot lies; none behind the last.
pub(crate) fn home_of(groups: &[SetGroup], slots_per_set: u32, slot: u64) -> Option<SlotHome> {
    let (mut first_set, mut left) = (0, slot);
    for group in groups {
        let slots = group.slots(slots_per_set);
        if left < slots {
            let home = group.home(left, slots_per_set);
            return Some(SlotHome { set: first_set + home.set, ..home });
        }
        left -= slots;
        first_set += group.sets;
    }
    None
}

/// The slot at a place; none if there is no such set or index.
pub(crate) fn slot_at(groups: &[SetGroup], slots_per_set: u32, home: SlotHome) -> Option<u64> {
    if home.index >= slots_per_set {
        return None;
    }
    let (mut first_slot, mut set) = (0, home.set);
    for group in groups {
        if set < group.sets {
            return Some(first_slot + group.slot(SlotHome { set, ..home }, slots_per_set));
        }
        set -= group.sets;
        first_slot += group.slots(slots_per_set);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_slot_has_its_own_place_in_every_group() {
        let groups = [
            SetGroup { sets: 7, sets_per_band: 3 },
            SetGroup { sets: 1, sets_per_band: 4 },
            SetGroup { sets: 4, sets_per_band: 2 },
        ];
        let mut homes = BTreeSet::new();
        for slot in 0..12 * 5 {
            let home = home_of(&groups, 5, slot).expect("it exists");
            assert!(home.set < 12 && home.index < 5);
            assert!(homes.insert((home.set, home.index)), "slot {slot} overlaps another");
            assert_eq!(slot_at(&groups, 5, home), Some(slot));
        }
        assert_eq!(home_of(&groups, 5, 60), None);
        assert_eq!(slot_at(&groups, 5, SlotHome { set: 12, index: 0 }), None);
        assert_eq!(slot_at(&groups, 5, SlotHome { set: 0, index: 5 }), None);
    }

    #[test]
    fn neighbours_lie_on_different_sets_of_a_band() {
        let groups = [SetGroup { sets: 6, sets_per_band: 3 }];
        let sets: Vec<u32> =
            (0..6).filter_map(|slot| home_of(&groups, 10, slot)).map(|home| home.set).collect();
        assert_eq!(sets, [0, 1, 2, 0, 1, 2]);
    }
}
