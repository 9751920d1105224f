//! What follows from the rest of a state: whose every chunklet is, and which slots are taken. Deriving it anew proves
//! the invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tier0_units::{ExtentId, SlotRef};

use crate::ChunkletAddress;
use crate::state::{
    Away, BitSet, Inventory, LogCopy, MemberState, MetaError, PoolState, RebuildSource, SetGroup, Tenant,
    Tenants, are_placed, check, group::GROUPS_MAX,
};

/// Whose a chunklet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A column's.
    Set { set: u32, column: u32 },
    /// A column's that is being rebuilt there.
    Target { set: u32, column: u32 },
    /// The write log's.
    Log,
    /// The flash read cache's.
    FlashCache,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Set { set, column } => write!(f, "column {column} of set {set}"),
            Owner::Target { set, column } => write!(f, "the rebuild of column {column} of set {set}"),
            Owner::Log => write!(f, "the write log"),
            Owner::FlashCache => write!(f, "the flash cache"),
        }
    }
}

/// What follows from the rest of a state.
pub(crate) struct Derived {
    pub(crate) owners: BTreeMap<ChunkletAddress, Owner>,
    pub(crate) slots: Tenants,
}

/// How far the proof of a map is.
pub(crate) struct MapProof {
    /// Slots that extents have.
    seen: BitSet,
    /// How many extents have them.
    extents: u64,
    /// The next volume and extent.
    from: Option<(u32, u32)>,
    /// Those seen in other groups than their volume's.
    away: Away,
}

impl PoolState {
    /// Proves all invariants anew from the records, and that what was derived along the way is right.
    pub fn verify(&self) -> Result<(), MetaError> {
        let mut proof = self.begin_proof()?;
        while !self.prove(&mut proof, usize::MAX)? {}
        Ok(())
    }

    /// Begins to prove all invariants as [`PoolState::verify`] does, and does so for all but the map. The state must not
    /// change before [`PoolState::prove`] has ended.
    pub(crate) fn begin_proof(&self) -> Result<MapProof, MetaError> {
        if self.derive_all_but_map()? != self.inventory.owners {
            let fact = "the list of chunklets does not match their owners".to_owned();
            return Err(MetaError::Contradiction { fact });
        }
        let seen = BitSet::new(self.slot_count_of_batches());
        Ok(MapProof { seen, extents: 0, from: Some((0, 0)), away: Away::default() })
    }

    /// Goes on with so many extents; true at the end.
    pub(crate) fn prove(&self, proof: &mut MapProof, extents: usize) -> Result<bool, MetaError> {
        let mut left = extents;
        while let Some((first_volume, first)) = proof.from.take() {
            let Some((&volume, map)) = self.maps.range(first_volume..).next() else { break };
            let first = if volume == first_volume { first } else { 0 };
            for (index, slot) in map.iter_from(first) {
                if left == 0 {
                    proof.from = Some((volume, index));
                    return Ok(false);
                }
                left -= 1;
                let extent = ExtentId { volume, index };
                self.check_mapped(extent, slot)?;
                proof.extents += 1;
                if let Some(group) = self.group_if_away(volume, slot.slot) {
                    proof.away.add(volume, group);
                }
                if !proof.seen.insert(slot.slot) && !self.slots.is_shared(slot.slot) {
                    return Err(MetaError::SlotTaken { slot: slot.slot });
                }
                self.prove_owner(extent, slot)?;
            }
            proof.from = volume.checked_add(1).map(|next| (next, 0));
        }
        if self.slots.count() != proof.seen.count()
            || self.slots.extent_count() != proof.extents
            || self.slots.bound() != proof.seen.bound()
            || self.away != proof.away
        {
            return Err(self.slots_differ());
        }
        self.check_reserved(&self.slots)?;
        Ok(true)
    }

    /// An extent is among those that have its slot, and if it is not the only one, it can have it together with the first.
    fn prove_owner(&self, extent: ExtentId, slot: SlotRef) -> Result<(), MetaError> {
        if !self.owners(slot.slot).any(|owner| owner == extent) {
            return Err(self.slots_differ());
        }
        let first = self.slots.extent(slot.slot).expect("it has extents");
        if first == extent {
            return Ok(());
        }
        if self.slot(first) != Some(slot) {
            return Err(self.slots_differ());
        }
        let (of, by) = (self.check_volume(first.volume)?, self.check_volume(extent.volume)?);
        match of.family() == by.family() && of.thin && by.thin {
            true => Ok(()),
            false => Err(MetaError::NotOfFamily { volume: by.number, other: of.number }),
        }
    }

    fn slots_differ(&self) -> MetaError {
        MetaError::Contradiction { fact: "the list of slots in use does not match the map".to_owned() }
    }

    /// Derives chunklets' owners and the tenants of slots, and checks everything else on the way.
    pub(crate) fn derive(&self) -> Result<Derived, MetaError> {
        let owners = self.derive_all_but_map()?;
        let slots = self.derive_slots()?;
        Ok(Derived { owners, slots })
    }

    /// Derives chunklets' owners, and checks everything but the map.
    pub(crate) fn derive_all_but_map(&self) -> Result<BTreeMap<ChunkletAddress, Owner>, MetaError> {
        self.geometry.check()?;
        check::name("array", &self.array)?;
        check::name("pool", &self.name)?;
        self.verify_groups()?;
        self.verify_members()?;
        let owners = self.derive_owners()?;
        self.verify_volumes()?;
        self.check_fits()?;
        Ok(owners)
    }

    /// Takes the extents of a page of a checkpoint's map into a state that has none of them yet.
    pub(crate) fn take_in(&mut self, page: &[(SlotRef, Tenant)]) -> Result<(), MetaError> {
        let has_shared = page.iter().any(|(_, tenant)| tenant.branches != 0);
        let by_branch = if has_shared { self.volumes_by_branch() } else { BTreeMap::new() };
        for (slot, tenant) in page {
            let owners = match tenant.branches {
                0 => vec![tenant.extent],
                branches => self.extents_of_branches(tenant.extent, branches, &by_branch)?,
            };
            if owners.first() != Some(&tenant.extent) {
                let fact = format!("{} is not the first extent of slot {}", tenant.extent, slot.slot);
                return Err(MetaError::Contradiction { fact });
            }
            for extent in owners {
                self.check_mapped(extent, *slot)?;
                if !self.slots.insert(slot.slot, extent) && !self.slots.join(slot.slot, extent) {
                    return Err(MetaError::SlotTaken { slot: slot.slot });
                }
                if self.map_in(extent, *slot).is_some() {
                    return Err(MetaError::ExtentMapped { extent });
                }
            }
        }
        Ok(())
    }

    /// Whether there can be such an extent and such a slot.
    fn check_mapped(&self, extent: ExtentId, slot: SlotRef) -> Result<(), MetaError> {
        let volume = self.volume(extent.volume).ok_or(MetaError::NoVolume { volume: extent.volume })?;
        if u64::from(extent.index) >= self.extents_of(volume.sectors) {
            return Err(MetaError::ExtentOutside { extent });
        }
        let count = self.slot_count_of_batches();
        if slot.slot >= count {
            return Err(MetaError::SlotOutside { slot: slot.slot, count });
        }
        self.check_slot_is_there(slot.slot)?;
        if !self.is_mixed() && self.group_if_away(extent.volume, slot.slot).is_some() {
            let fact = format!("{extent} lies in another group than its volume");
            return Err(MetaError::Contradiction { fact });
        }
        if slot.allocation == 0 || slot.allocation >= self.allocation_end {
            let (allocation, end) = (slot.allocation, self.allocation_end);
            return Err(MetaError::Allocation { allocation, end });
        }
        Ok(())
    }

    fn verify_groups(&self) -> Result<(), MetaError> {
        let groups = &self.inventory.groups;
        let mut names = BTreeSet::new();
        for group in groups {
            let is_named = groups.len() == 1 || check::name("group", &group.name).is_ok();
            // The name of one that is gone can be another's.
            let is_fresh = group.is_gone() || names.insert(&group.name);
            if !is_named || !is_fresh || groups.len() > GROUPS_MAX {
                return Err(MetaError::Exists { what: "group", name: group.name.clone() });
            }
            self.check_group_shape(group)?;
        }
        match groups.iter().any(SetGroup::stays) {
            true => Ok(()),
            false => Err(MetaError::Contradiction { fact: "no group of its sets stays".to_owned() }),
        }
    }

    fn verify_members(&self) -> Result<(), MetaError> {
        let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
        for member in &self.inventory.members {
            check::name("drive", &member.name)?;
            self.check_group(member.group)?;
            // A drive that was lost may have joined again under its name.
            let fresh = !member.is_active() || names.insert(&member.name);
            if !ids.insert(member.id) || !fresh {
                return Err(MetaError::Exists { what: "drive", name: member.name.clone() });
            }
        }
        Ok(())
    }

    fn derive_owners(&self) -> Result<BTreeMap<ChunkletAddress, Owner>, MetaError> {
        let Inventory { columns, rebuilds, left_behind, displaced, log, flash_cache, .. } = &self.inventory;
        self.check_batches()?;
        let mut owners = BTreeMap::new();
        for ((set, column), chunklet) in self.all_columns().zip(columns) {
            self.own(&mut owners, *chunklet, Owner::Set { set, column })?;
            self.check_of_group(chunklet.drive, self.group_number_of(set))?;
        }
        for (&(set, column), rebuild) in rebuilds {
            self.check_column(set, column)?;
            if rebuild.rebuilt.bound() != u64::from(self.group_of(set).slots_per_set) {
                return Err(MetaError::NotRebuilding { set, column });
            }
            if rebuild.source == RebuildSource::Whole {
                self.check_active(self.column(set, column).drive)?;
            }
            if rebuild.target == self.column(set, column) {
                // It is rebuilt where it lies.
                owners.remove(&rebuild.target);
            }
            self.own(&mut owners, rebuild.target, Owner::Target { set, column })?;
            self.check_of_group(rebuild.target.drive, self.group_number_of(set))?;
        }
        for (chunklet, (set, column)) in left_behind {
            self.check_column(*set, *column)?;
            self.check_chunklet_exists(*chunklet)?;
            if self.check_member(chunklet.drive)?.state != MemberState::Lost {
                let fact = format!("it remembers what a drive that is not lost ({}) held", chunklet.drive);
                return Err(MetaError::Contradiction { fact });
            }
        }
        for ((set, column), home) in displaced {
            self.check_column(*set, *column)?;
            if self.check_member(*home)?.state == MemberState::Removed {
                let fact = format!("columns belong to a drive that was removed ({home})");
                return Err(MetaError::Contradiction { fact });
            }
        }
        for (volume, placement) in self.placements() {
            self.check_placement(volume, placement)?;
        }
        for set in 0..self.set_count() {
            self.check_drives_differ(set)?;
        }
        self.check_log_shape(log)?;
        for chunklet in log.copies().flat_map(|copy| self.chunklets_of(copy)) {
            // Rings share chunklets.
            match owners.insert(chunklet, Owner::Log) {
                None | Some(Owner::Log) => {}
                Some(owner) => return Err(taken(chunklet, owner)),
            }
        }
        self.check_flash_cache_shape(flash_cache)?;
        for chunklet in flash_cache.addresses() {
            self.own(&mut owners, chunklet, Owner::FlashCache)?;
        }
        Ok(owners)
    }

    /// The batches are of groups that there are, and hold the columns that there are.
    fn check_batches(&self) -> Result<(), MetaError> {
        let Inventory { groups, batches, columns, .. } = &self.inventory;
        match are_placed(groups, batches, columns.len() as u64) {
            true => Ok(()),
            false => {
                let fact = "its groups do not match the table of chunklets".to_owned();
                Err(MetaError::BadSet { set: 0, fact })
            }
        }
    }

    fn own(
        &self,
        owners: &mut BTreeMap<ChunkletAddress, Owner>,
        chunklet: ChunkletAddress,
        owner: Owner,
    ) -> Result<(), MetaError> {
        self.check_chunklet_exists(chunklet)?;
        match owners.insert(chunklet, owner) {
            None => Ok(()),
            Some(owner) => Err(taken(chunklet, owner)),
        }
    }

    /// The chunklets in which a copy of a ring lies. The copy must have been checked.
    pub(crate) fn chunklets_of(&self, copy: &LogCopy) -> impl Iterator<Item = ChunkletAddress> + use<> {
        let first = copy.first_sector - self.geometry.area.data_start_sectors;
        let last = first + copy.sectors - 1;
        let (size, drive) = (self.geometry.chunklet_sectors, copy.member);
        (first / size..=last / size).map(move |index| ChunkletAddress { drive, index: index as u32 })
    }

    fn verify_volumes(&self) -> Result<(), MetaError> {
        let Inventory { volumes, next_volume, .. } = &self.inventory;
        let mut names = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for (number, volume) in volumes {
            check::name("volume", &volume.name)?;
            self.check_volume_size(volume.sectors)?;
            self.check_group_stays(volume.group)?;
            self.check_branch(volume)?;
            if !names.insert(&volume.name) || !ids.insert(volume.id) || *number != volume.number {
                return Err(MetaError::Exists { what: "volume", name: volume.name.clone() });
            }
            if *number >= *next_volume {
                return Err(MetaError::VolumeNumber { volume: *number, next: *next_volume });
            }
        }
        if self.maps.keys().ne(volumes.keys()) {
            let fact = "a volume has no map, or a map no volume".to_owned();
            return Err(MetaError::Contradiction { fact });
        }
        Ok(())
    }

    /// The tenants of slots, none of which has several extents; only called when their number is known to be within the
    /// metadata area's room.
    fn derive_slots(&self) -> Result<Tenants, MetaError> {
        let mut slots = Tenants::new(self.slot_stretches());
        for (&volume, map) in &self.maps {
            for (index, slot) in map.iter() {
                let extent = ExtentId { volume, index };
                self.check_mapped(extent, slot)?;
                if !slots.insert(slot.slot, extent) {
                    return Err(MetaError::SlotTaken { slot: slot.slot });
                }
            }
        }
        self.check_reserved(&slots)?;
        Ok(slots)
    }
}

pub(crate) fn taken(chunklet: ChunkletAddress, owner: Owner) -> MetaError {
    MetaError::ChunkletTaken { chunklet, owner: owner.to_string() }
}
