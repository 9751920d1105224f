//! Room in a pool's groups: slots that are free, and those of them that thick volumes have reserved.

use crate::record::MappedRun;
use crate::state::{ExtentMap, MetaError, PoolState, Tenants, Volume};

impl PoolState {
    /// All slots of the pool.
    pub fn slot_count(&self) -> u64 {
        self.slots.bound()
    }

    /// All slots of a group.
    pub fn slot_count_of(&self, group: u32) -> u64 {
        let (used, free) = self.slots.counts_of(group);
        used + free
    }

    /// The slots of a group that have extents.
    pub fn used_slot_count_of(&self, group: u32) -> u64 {
        self.slots.counts_of(group).0
    }

    /// Slots without an extent.
    pub fn free_slot_count(&self) -> u64 {
        self.slots.bound() - self.slots.count()
    }

    /// Slots of a group without an extent.
    pub fn free_slot_count_of(&self, group: u32) -> u64 {
        self.slots.counts_of(group).1
    }

    /// Extents of thick volumes that have no slot yet: so many free slots are theirs.
    pub fn reserved_slot_count(&self) -> u64 {
        self.volumes().map(|volume| self.reserved_by(volume)).sum()
    }

    /// The same of a group's volumes, in their group.
    pub fn reserved_slot_count_of(&self, group: u32) -> u64 {
        let own = self.volumes().filter(|volume| volume.group == group);
        own.map(|volume| self.reserved_by(volume)).sum()
    }

    /// Slots of a group that are neither used nor reserved.
    pub fn room_in(&self, group: u32) -> u64 {
        self.free_slot_count_of(group).saturating_sub(self.reserved_slot_count_of(group))
    }

    /// Extents of a thick volume that have no slot yet.
    fn reserved_by(&self, volume: &Volume) -> u64 {
        match volume.thin {
            true => 0,
            false => {
                self.extents_of(volume.sectors) - self.maps.get(&volume.number).map_or(0, ExtentMap::count)
            }
        }
    }

    /// Whether so many slots of a group are free and not reserved for thick volumes.
    pub(super) fn check_space(&self, group: u32, wanted: u64) -> Result<(), MetaError> {
        match self.room_in(group) {
            free if wanted > free => Err(MetaError::NoSpace { wanted, free }),
            _ => Ok(()),
        }
    }

    /// Whether there is room for what these runs map, whose slots there are: an extent of a thick volume takes what was
    /// reserved for it in its group, and a slot wherever it is.
    pub(super) fn check_room_for(&self, runs: &[MappedRun]) -> Result<(), MetaError> {
        let mut wanted = vec![0i64; self.groups().len()];
        for MappedRun { volume, run } in runs {
            for (_, slot) in run.iter() {
                wanted[self.slots.group_of(slot.slot) as usize] += 1;
            }
            let volume = &self.inventory.volumes[volume];
            if !volume.thin {
                wanted[volume.group as usize] -= i64::from(run.count);
            }
        }
        let lacking = (0u32..).zip(wanted).filter(|(_, wanted)| *wanted > 0);
        lacking.into_iter().try_for_each(|(group, wanted)| self.check_space(group, wanted as u64))
    }

    /// Whether what thick volumes have reserved is there, in every group.
    pub(super) fn check_reserved(&self, slots: &Tenants) -> Result<(), MetaError> {
        for group in 0..self.groups().len() as u32 {
            let (wanted, (_, free)) = (self.reserved_slot_count_of(group), slots.counts_of(group));
            if wanted > free {
                return Err(MetaError::NoSpace { wanted, free });
            }
        }
        Ok(())
    }
}
