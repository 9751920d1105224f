//! Room in a pool's groups: slots that are free, and those of them that thick volumes have reserved.

use crate::record::MappedRun;
use crate::state::{ExtentMap, MetaError, PoolState, Tenants, Volume};

impl PoolState {
    /// All slots of the pool, those of groups that are gone included.
    pub fn slot_count(&self) -> u64 {
        self.slots.bound()
    }

    /// All slots of a group; none if it is gone.
    pub fn slot_count_of(&self, group: u32) -> u64 {
        self.used_slot_count_of(group) + self.free_slot_count_of(group)
    }

    /// The slots of a group that have extents.
    pub fn used_slot_count_of(&self, group: u32) -> u64 {
        self.slots.counts_of(group).0
    }

    /// Slots of a group without an extent; none if it is gone.
    pub fn free_slot_count_of(&self, group: u32) -> u64 {
        if self.group_is_gone(group) {
            return 0;
        }
        self.slots.counts_of(group).1
    }

    /// Extents of thick volumes that have no slot in their group: so many free slots are theirs. One that lies in another group
    /// can always come back.
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

    /// How many extents of a volume have slots.
    pub fn mapped_extents(&self, volume: u32) -> u64 {
        self.maps.get(&volume).map_or(0, ExtentMap::count)
    }

    /// Extents of a thick volume that have no slot in its group.
    fn reserved_by(&self, volume: &Volume) -> u64 {
        if volume.thin {
            return 0;
        }
        let mapped = self.mapped_extents(volume.number);
        let away: u64 = self.away_of(volume.number).map(|(_, count)| count).sum();
        self.extents_of(volume.sectors) - (mapped - away)
    }

    /// Whether so many slots of a group are free and not reserved for thick volumes.
    pub(super) fn check_space(&self, group: u32, wanted: u64) -> Result<(), MetaError> {
        match self.room_in(group) {
            free if wanted > free => Err(MetaError::NoSpace { wanted, free }),
            _ => Ok(()),
        }
    }

    /// Whether there is room for what these runs map, whose slots there are: in its group, an extent of a thick volume takes what
    /// was reserved for it; elsewhere it takes what nobody has reserved.
    pub(super) fn check_room_for(&self, runs: &[MappedRun]) -> Result<(), MetaError> {
        let mut wanted = vec![0i64; self.groups().len()];
        for MappedRun { volume, run } in runs {
            let volume = &self.inventory.volumes[volume];
            for (_, slot) in run.iter() {
                let group = self.slots.group_of(slot.slot);
                // Its own reservation.
                if volume.thin || group != volume.group {
                    wanted[group as usize] += 1;
                }
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
