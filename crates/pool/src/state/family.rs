//! Families of volumes: whose extents may have slots together, and which do.

use std::collections::{BTreeMap, BTreeSet};

use tier0_units::{ExtentId, SlotRef};

use crate::record::SharedRun;
use crate::state::{FAMILY_VOLUMES_MAX, MetaError, PoolState, Volume};

/// Who has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tenant {
    /// The slot's allocation number.
    pub(crate) allocation: u64,
    /// The extent, of several the one of the lowest volume.
    pub(crate) extent: ExtentId,
    /// The branches of its family whose extents have the slot, a bit each; none where it is the only one.
    pub(crate) branches: u128,
}

impl PoolState {
    /// The extents that have a slot, by their volumes.
    pub fn owners(&self, slot: u64) -> impl Iterator<Item = ExtentId> {
        self.slots.owners(slot)
    }

    /// Whether several extents have a slot: it must not be written to.
    pub fn is_shared(&self, slot: u64) -> bool {
        self.slots.is_shared(slot)
    }

    /// Whether there is or was a volume of another one's family.
    pub(crate) fn has_families(&self) -> bool {
        self.inventory.has_families
    }

    /// The family of a volume; one that is gone is taken for the first of its own.
    pub fn family_of(&self, volume: u32) -> u32 {
        self.volume(volume).map_or(volume, Volume::family)
    }

    /// The lowest number of a branch that no volume of a family has; none if there are too many, or there is no such family.
    pub fn free_branch(&self, family: u32) -> Option<u8> {
        let taken: BTreeSet<u8> = self.family(family).map(Volume::branch_number).collect();
        (1..FAMILY_VOLUMES_MAX).find(|number| !taken.contains(number)).filter(|_| !taken.is_empty())
    }

    /// The names of the other volumes of a volume's family.
    pub fn family_names(&self, volume: &Volume) -> Vec<String> {
        let others = self.family(volume.family()).filter(|other| other.number != volume.number);
        others.map(|other| other.name.clone()).collect()
    }

    /// The volumes of a family.
    pub fn family(&self, family: u32) -> impl Iterator<Item = &Volume> {
        self.volumes().filter(move |volume| volume.family() == family)
    }

    /// Who has a slot; none if it is free.
    pub(crate) fn tenant(&self, slot: u64) -> Option<Tenant> {
        let extent = self.slots.extent(slot)?;
        let branch = |owner: ExtentId| {
            let volume = self.volume(owner.volume).expect("an extent is of a volume");
            1u128 << volume.branch_number()
        };
        let branches = if self.is_shared(slot) { self.owners(slot).map(branch).sum() } else { 0 };
        Some(Tenant { allocation: self.slot(extent)?.allocation, extent, branches })
    }

    /// The volumes by family and branch.
    pub(crate) fn volumes_by_branch(&self) -> BTreeMap<(u32, u8), u32> {
        self.volumes().map(|volume| ((volume.family(), volume.branch_number()), volume.number)).collect()
    }

    /// The extents that branches of an extent's family have of the same number, by their volumes; `by_branch` has these.
    pub(crate) fn extents_of_branches(
        &self,
        extent: ExtentId,
        branches: u128,
        by_branch: &BTreeMap<(u32, u8), u32>,
    ) -> Result<Vec<ExtentId>, MetaError> {
        let volume = self.volume(extent.volume).ok_or(MetaError::NoVolume { volume: extent.volume })?;
        let family = volume.family();
        let named = (0..FAMILY_VOLUMES_MAX).filter(|branch| branches >> branch & 1 == 1);
        let found = named.map(|branch| {
            let volume = by_branch.get(&(family, branch)).ok_or_else(|| {
                let fact = format!("slots are of branch {branch} of volume {family}, which has none");
                MetaError::Contradiction { fact }
            })?;
            Ok(ExtentId { volume: *volume, index: extent.index })
        });
        let mut extents: Vec<ExtentId> = found.collect::<Result<_, _>>()?;
        extents.sort_unstable();
        Ok(extents)
    }

    /// Whether a volume that is new, or was read, can have its place in a family.
    pub(super) fn check_branch(&self, volume: &Volume) -> Result<(), MetaError> {
        let Some(branch) = volume.branch else { return Ok(()) };
        let fail = |fact: &str| Err(MetaError::Branch { name: volume.name.clone(), fact: fact.to_owned() });
        if branch.number == 0 || branch.number >= FAMILY_VOLUMES_MAX {
            return fail("a branch has a number from 1 to 127");
        }
        if branch.family >= volume.number {
            return fail("the first volume of a family is older than its other volumes");
        }
        let mut is_known = false;
        for other in self.family(branch.family).filter(|other| other.number != volume.number) {
            is_known = true;
            if other.branch_number() == branch.number {
                return fail("another volume of the family has its number");
            }
            if other.group != volume.group {
                return fail("the volumes of a family are of one group");
            }
        }
        match is_known || self.inventory.volumes.contains_key(&volume.number) {
            true => Ok(()),
            false => fail("its family has no volume any more"),
        }
    }

    /// Whether the volumes of a family can be of this group: what a thick one has not written there must find room.
    pub(super) fn check_family_group(&self, family: u32, group: u32) -> Result<(), MetaError> {
        self.check_group_stays(group)?;
        if !self.is_mixed() {
            let fact = format!(
                "volumes of family {family} change their group in a pool whose extents keep to theirs"
            );
            return Err(MetaError::Contradiction { fact });
        }
        let mut has_volumes = false;
        for volume in self.family(family) {
            has_volumes = true;
            if volume.group != group && !volume.thin {
                self.check_space(group, self.wanted_in(volume, group))?;
            }
        }
        if has_volumes { Ok(()) } else { Err(MetaError::NoVolume { volume: family }) }
    }

    /// The slots that a thick volume would reserve in another group, besides those that it has there.
    pub fn wanted_in(&self, volume: &Volume, group: u32) -> u64 {
        let there = self.away_of(volume.number).find(|(other, _)| *other == group);
        self.extents_of(volume.sectors) - there.map_or(0, |(_, count)| count)
    }

    pub(super) fn change_family_group(&mut self, family: u32, group: u32) {
        let numbers: Vec<u32> = self.family(family).map(|volume| volume.number).collect();
        for number in numbers {
            let mapped = self.mapped_extents(number);
            let before = std::mem::replace(&mut self.volume_mut(number).group, group);
            self.away.change_home(number, mapped, before, group);
        }
    }

    pub(super) fn check_shared(&self, runs: &[SharedRun]) -> Result<(), MetaError> {
        let mut wanted: Vec<(u64, u64)> = Vec::with_capacity(runs.len());
        for SharedRun { of, first, count } in runs {
            self.check_extents(*of, first.index, *count)?;
            self.check_extents(first.volume, first.index, *count)?;
            let (of, by) = (self.check_volume(*of)?, self.check_volume(first.volume)?);
            if of.number == by.number || of.family() != by.family() {
                return Err(MetaError::NotOfFamily { volume: by.number, other: of.number });
            }
            // Each of them may need a slot of its own one day, and thick volumes have those reserved.
            if let Some(thick) = [of, by].into_iter().find(|volume| !volume.thin) {
                return Err(MetaError::SharesThick { name: thick.name.clone() });
            }
            let end = u64::from(first.index) + u64::from(*count);
            if let Some((index, _)) = self.maps[&by.number].iter_from(first.index).next()
                && u64::from(index) < end
            {
                return Err(MetaError::ExtentMapped { extent: ExtentId { volume: by.number, index } });
            }
            let key = u64::from(by.number) << 32 | u64::from(first.index);
            wanted.push((key, key + u64::from(*count)));
        }
        match super::check::overlap(&mut wanted) {
            Some(key) => Err(MetaError::ExtentMapped {
                extent: ExtentId { volume: (key >> 32) as u32, index: key as u32 },
            }),
            None => Ok(()),
        }
    }

    /// What a run shares now: extents that get slots, and those.
    pub(crate) fn shared_by(&self, run: &SharedRun) -> impl Iterator<Item = (ExtentId, SlotRef)> {
        let SharedRun { of, first, count } = *run;
        let end = u64::from(first.index) + u64::from(count);
        let own = self.map(of).into_iter().flat_map(move |map| map.iter_from(first.index));
        own.take_while(move |(index, _)| u64::from(*index) < end)
            .map(move |(index, slot)| (ExtentId { volume: first.volume, index }, slot))
    }

    pub(super) fn share(&mut self, run: &SharedRun) {
        let shared: Vec<(ExtentId, SlotRef)> = self.shared_by(run).collect();
        for (extent, slot) in shared {
            let before = self.map_in(extent, slot);
            let joined = self.slots.join(slot.slot, extent);
            assert!(before.is_none() && joined, "{extent} was mapped, or {slot:?} is another extent's");
        }
    }
}
