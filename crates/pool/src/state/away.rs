//! Extents that lie in another group of sets than the one of their volume.

use std::collections::{BTreeMap, BTreeSet};

use tier0_units::{ExtentId, SlotRef};

use crate::record::MappedRun;
use crate::state::{MetaError, PoolState};

/// How many extents of a volume lie in a group that is not its own: by volume and group. Zeros are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Away(BTreeMap<(u32, u32), u64>);

impl Away {
    pub(crate) fn add(&mut self, volume: u32, group: u32) {
        *self.0.entry((volume, group)).or_default() += 1;
    }

    fn remove(&mut self, volume: u32, group: u32) {
        let count = self.0.get_mut(&(volume, group)).expect("it was counted when it was mapped");
        *count -= 1;
        if *count == 0 {
            self.0.remove(&(volume, group));
        }
    }

    /// A volume with so many extents is of another group from now on.
    pub(crate) fn change_home(&mut self, volume: u32, extents: u64, before: u32, now: u32) {
        if before == now {
            return;
        }
        let at_home = extents - self.of(volume).map(|(_, count)| count).sum::<u64>();
        self.0.remove(&(volume, now));
        if at_home > 0 {
            self.0.insert((volume, before), at_home);
        }
    }

    fn of(&self, volume: u32) -> impl Iterator<Item = (u32, u64)> {
        self.0.range((volume, 0)..=(volume, u32::MAX)).map(|((_, group), count)| (*group, *count))
    }
}

impl PoolState {
    /// Whether extents may lie in other groups than their volume's.
    pub fn is_mixed(&self) -> bool {
        self.inventory.is_mixed
    }

    /// How many extents of a volume lie in groups that are not its own: group and count.
    pub fn away_of(&self, volume: u32) -> impl Iterator<Item = (u32, u64)> {
        self.away.of(volume)
    }

    /// The groups in which extents of this group's volumes lie, the group itself included.
    pub fn groups_reached_from(&self, group: u32) -> BTreeSet<u32> {
        let own = self.volumes().filter(|volume| volume.group == group);
        own.flat_map(|volume| self.away.of(volume.number)).map(|(other, _)| other).chain([group]).collect()
    }

    /// An extent, unmapped until now, has this slot; what it had before otherwise.
    pub(crate) fn map_in(&mut self, extent: ExtentId, slot: SlotRef) -> Option<SlotRef> {
        let before = self.maps.get_mut(&extent.volume)?.insert(extent.index, slot);
        if before.is_none() {
            self.count_away(extent.volume, slot, Away::add);
        }
        before
    }

    /// An extent has its slot no more.
    pub(crate) fn map_out(&mut self, extent: ExtentId) -> Option<SlotRef> {
        let slot = self.maps.get_mut(&extent.volume)?.remove(extent.index)?;
        self.count_away(extent.volume, slot, Away::remove);
        Some(slot)
    }

    /// A volume is gone, and its extents with it.
    pub(crate) fn forget_away(&mut self, volume: u32) {
        self.away.0.retain(|(of, _), _| *of != volume);
    }

    fn count_away(&mut self, volume: u32, slot: SlotRef, count: impl Fn(&mut Away, u32, u32)) {
        if let Some(group) = self.group_if_away(volume, slot.slot) {
            count(&mut self.away, volume, group);
        }
    }

    /// The group of a slot, if it is not that of this volume. There must be such a slot.
    pub(crate) fn group_if_away(&self, volume: u32, slot: u64) -> Option<u32> {
        if !self.has_groups() {
            return None;
        }
        let group = self.slot_home(slot).map(|home| self.group_number_of(home.set))?;
        (self.inventory.volumes[&volume].group != group).then_some(group)
    }

    /// Whether the slots of these runs are of groups that there are, and in which extents of their volumes may lie.
    pub(crate) fn check_groups_of(&self, runs: &[MappedRun]) -> Result<(), MetaError> {
        for slot in runs.iter().flat_map(|one| one.run.iter()).map(|(_, slot)| slot.slot) {
            self.check_slot_is_there(slot)?;
        }
        if self.is_mixed() {
            return Ok(());
        }
        for MappedRun { volume, run } in runs {
            let strays = |(_, slot): &(u32, SlotRef)| self.group_if_away(*volume, slot.slot).is_some();
            if let Some((index, slot)) = run.iter().find(strays) {
                let fact =
                    format!("extent {index} of volume {volume} gets slot {} of another group", slot.slot);
                return Err(MetaError::Contradiction { fact });
            }
        }
        Ok(())
    }
}
