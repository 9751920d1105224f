//! Whether a record can be true.

use tier0_units::{ExtentId, SectorCount};

use crate::checkpoint;
use crate::record::{ExtentRun, MappedRun, MetaRecord};
use crate::state::WEIGHT_DEFAULT;
use crate::state::batch::PlacedBatch;
use crate::state::{
    CacheSwitches, Member, MemberState, MetaError, PATH_BYTES_MAX, PoolState, TEXT_BYTES_MAX, Volume,
};

/// Drives for which growth leaves room.
const MEMBERS_KEPT: u64 = 8;

impl PoolState {
    /// Whether `record` can be true after all that is: what it contradicts otherwise.
    pub fn check(&self, record: &MetaRecord) -> Result<(), MetaError> {
        match record {
            MetaRecord::MapExtents(runs) => self.check_map(runs),
            MetaRecord::UnmapExtents(runs) => self.check_unmap(runs),
            MetaRecord::ShareExtents(runs) => self.check_shared(runs),
            MetaRecord::SlotsRebuilt { set, column, ranges } => {
                self.check_column(*set, *column)?;
                if self.rebuild(*set, *column).is_none() {
                    return Err(MetaError::NotRebuilding { set: *set, column: *column });
                }
                let count = self.group_of(*set).slots_per_set;
                match ranges.iter().find(|range| range.start >= range.end || range.end > count) {
                    Some(range) => Err(MetaError::BadSlots { start: range.start, end: range.end, count }),
                    None => Ok(()),
                }
            }
            MetaRecord::AllocationsReserved { end } => {
                forward("the end of allocation numbers", self.allocation_end, *end)
            }
            MetaRecord::ScrubCursor(cursor) => {
                forward("the number of scrubs", self.scrub.passes, cursor.passes)
            }
            MetaRecord::MemberLost { member } => self.check_active(*member),
            MetaRecord::MemberAdded(member) => self.check_member_added(member),
            MetaRecord::MemberRemoved { member } => self.check_member_removed(*member),
            MetaRecord::MemberLeaving { member, .. } => match self.check_member(*member)?.state {
                MemberState::Removed => self.check_active(*member),
                MemberState::Active | MemberState::Lost => Ok(()),
            },
            // Paths take no room that anything else needs.
            MetaRecord::MemberMoved { member, path } => {
                self.check_member(*member)?;
                match path.len() <= PATH_BYTES_MAX {
                    true => Ok(()),
                    false => Err(MetaError::PathTooLong { member: *member, bytes: path.len() }),
                }
            }
            MetaRecord::MemberRole { member, .. } => self.check_member(*member).map(|_| ()),
            MetaRecord::MemberReplaced { member, by } => self.check_replaced(*member, *by),
            MetaRecord::SetsAdded { columns, sets_per_band, group } => {
                let group = self.check_sets_added(columns, *sets_per_band, *group)?;
                let sets = columns.len() as u64 / u64::from(group.columns());
                let slots = sets * u64::from(group.slots_per_set);
                let batch = checkpoint::BATCH_BYTES + checkpoint::of_group_bytes(self);
                let bytes = columns.len() as u64 * checkpoint::CHUNKLET_BYTES + batch;
                self.check_growth(bytes, sets * checkpoint::rebuild_bytes(group), slots)
            }
            MetaRecord::GroupAdded(group) => {
                self.check_group_added(group)?;
                let stage = u64::from(checkpoint::stages_bytes(self) > 0);
                self.check_growth(checkpoint::group_bytes(group) + stage, 0, 0)
            }
            MetaRecord::GroupNamed { group, name } => {
                self.check_group_named(*group, name)?;
                let first = if self.has_groups() { 0 } else { checkpoint::groups_bytes(self) };
                self.check_growth(first + name.len() as u64, 0, 0)
            }
            MetaRecord::GroupLeaving { group, leaving } => {
                self.check_group_leaving(*group, *leaving)?;
                self.check_growth(checkpoint::stages_growth(self), 0, 0)
            }
            MetaRecord::GroupRemoved { group } => self.check_group_removed(*group),
            MetaRecord::ColumnRebuilding { set, column, target } => {
                self.check_rebuilding(*set, *column, *target)?;
                self.check_room(checkpoint::rebuild_bytes(self.group_of(*set)))
            }
            MetaRecord::ColumnEvacuating { set, column, target } => {
                self.check_rebuilding(*set, *column, *target)?;
                self.check_active(self.column(*set, *column).drive)?;
                self.check_room(checkpoint::rebuild_bytes(self.group_of(*set)))
            }
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages: _ } => {
                self.check_rebuilt(*set, *column)
            }
            MetaRecord::VolumeCreated(volume) => self.check_volume_created(volume),
            MetaRecord::VolumeDeleted { volume } => self.check_volume(*volume).map(|_| ()),
            MetaRecord::FamilyGroupChanged { family, group } => self.check_family_group(*family, *group),
            MetaRecord::VolumeResized { volume, sectors } => self.check_resized(*volume, *sectors),
            MetaRecord::VolumeRenamed { volume, name } => {
                self.check_volume(*volume)?;
                self.check_volume_name(name)?;
                self.check_growth(name.len() as u64, 0, 0)
            }
            MetaRecord::ModeChanged { volume, .. } => self.check_volume(*volume).map(|_| ()),
            MetaRecord::ReadCacheChanged { volume, read_cache } => {
                self.check_volume(*volume)?;
                self.check_switched(!*read_cache)
            }
            MetaRecord::PoolCacheChanged(switches) => {
                self.check_switched(*switches != CacheSwitches::default())
            }
            MetaRecord::LogPlaced(log) => {
                self.check_log(log)?;
                self.check_room(checkpoint::log_bytes(log))
            }
            MetaRecord::FlashCachePlaced(placement) => {
                self.check_flash_cache(placement)?;
                self.check_room(checkpoint::flash_cache_bytes(placement))
            }
            // They take no room that anything else needs.
            MetaRecord::PlacementChanged { volume, placement } => self.check_placement(*volume, placement),
            MetaRecord::TierChanged(_) => Ok(()),
            MetaRecord::CeilingsChanged { volume, ceilings } => {
                self.check_ceilings(*volume, *ceilings)?;
                match ceilings.are_none() || !self.ceilings(*volume).are_none() {
                    true => Ok(()),
                    false => self.check_growth(checkpoint::CEILINGS_GROWTH, 0, 0),
                }
            }
            MetaRecord::WeightChanged { volume, weight } => {
                self.check_weight(*volume, *weight)?;
                match *weight == WEIGHT_DEFAULT || self.weight(*volume) != WEIGHT_DEFAULT {
                    true => Ok(()),
                    false => self.check_growth(checkpoint::WEIGHTS_GROWTH, 0, 0),
                }
            }
            MetaRecord::GroupsMixed {} => match self.has_groups() {
                true => Ok(()),
                false => {
                    let fact = "extents of several groups in a pool of one".to_owned();
                    Err(MetaError::Contradiction { fact })
                }
            },
        }
    }

    fn check_map(&self, runs: &[MappedRun]) -> Result<(), MetaError> {
        let mut extents: Vec<(u32, u64, u64)> = Vec::with_capacity(runs.len());
        let mut slots: Vec<(u64, u64)> = Vec::with_capacity(runs.len());
        let mut allocations: Vec<(u64, u64)> = Vec::with_capacity(runs.len());
        for MappedRun { volume, run } in runs {
            self.check_extents(*volume, run.index, run.count)?;
            let (count, slot) = (u64::from(run.count), run.slot);
            let bound = self.slots.bound();
            if slot.slot >= bound || count > bound - slot.slot {
                return Err(MetaError::SlotOutside {
                    slot: slot.slot.saturating_add(count - 1),
                    count: bound,
                });
            }
            let end = self.allocation_end;
            if slot.allocation == 0 || slot.allocation >= end || count > end - slot.allocation {
                return Err(MetaError::Allocation { allocation: slot.allocation, end });
            }
            self.check_run_is_free(*volume, run)?;
            extents.push((*volume, u64::from(run.index), run.end()));
            slots.push((slot.slot, slot.slot + count));
            allocations.push((slot.allocation, slot.allocation + count));
        }
        extents.sort_unstable();
        if let Some(pair) = extents.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].2 > pair[1].1) {
            return Err(MetaError::ExtentMapped {
                extent: ExtentId { volume: pair[1].0, index: pair[1].1 as u32 },
            });
        }
        if let Some(slot) = overlap(&mut slots) {
            return Err(MetaError::SlotTaken { slot });
        }
        if let Some(allocation) = overlap(&mut allocations) {
            return Err(MetaError::Allocation { allocation, end: self.allocation_end });
        }
        self.check_groups_of(runs)?;
        self.check_room_for(runs)
    }

    fn check_run_is_free(&self, volume: u32, run: &crate::state::Run) -> Result<(), MetaError> {
        for (index, slot) in run.iter() {
            if self.maps[&volume].get(index).is_some() {
                return Err(MetaError::ExtentMapped { extent: ExtentId { volume, index } });
            }
            if self.slots.contains(slot.slot) {
                return Err(MetaError::SlotTaken { slot: slot.slot });
            }
        }
        Ok(())
    }

    fn check_unmap(&self, runs: &[ExtentRun]) -> Result<(), MetaError> {
        let mut seen: Vec<(u64, u64)> = Vec::with_capacity(runs.len());
        for ExtentRun { first, count } in runs {
            self.check_extents(first.volume, first.index, *count)?;
            for index in first.index..first.index + count {
                let extent = ExtentId { volume: first.volume, index };
                if self.slot(extent).is_none() {
                    return Err(MetaError::ExtentUnmapped { extent });
                }
            }
            let key = u64::from(first.volume) << 32 | u64::from(first.index);
            seen.push((key, key + u64::from(*count)));
        }
        match overlap(&mut seen) {
            Some(key) => Err(MetaError::ExtentUnmapped {
                extent: ExtentId { volume: (key >> 32) as u32, index: key as u32 },
            }),
            None => Ok(()),
        }
    }

    /// Whether a volume has these extents; there must be at least one.
    pub(super) fn check_extents(&self, volume: u32, index: u32, count: u32) -> Result<(), MetaError> {
        let extents = self.extents_of(self.check_volume(volume)?.sectors);
        let end = u64::from(index) + u64::from(count);
        if count == 0 || end > extents {
            let index = u32::try_from(end.max(1) - 1).unwrap_or(u32::MAX);
            return Err(MetaError::ExtentOutside { extent: ExtentId { volume, index } });
        }
        Ok(())
    }

    pub(super) fn check_volume(&self, number: u32) -> Result<&Volume, MetaError> {
        self.volume(number).ok_or(MetaError::NoVolume { volume: number })
    }

    pub(crate) fn check_volume_size(&self, sectors: u64) -> Result<(), MetaError> {
        let max = self.geometry.extent_sectors.saturating_mul(u64::from(u32::MAX)).min(SectorCount::MOST.0);
        if sectors == 0 || sectors > max {
            return Err(MetaError::BadSize { what: "a volume", sectors, max });
        }
        Ok(())
    }

    fn check_volume_name(&self, wanted: &str) -> Result<(), MetaError> {
        name("volume", wanted)?;
        match self.volume_named(wanted) {
            Some(_) => Err(MetaError::Exists { what: "volume", name: wanted.to_owned() }),
            None => Ok(()),
        }
    }

    /// Whether there is room for the switches, where one of them is off now and none was before.
    fn check_switched(&self, off: bool) -> Result<(), MetaError> {
        match off && !self.has_switches() {
            true => self.check_growth(checkpoint::switches_bytes(self), 0, 0),
            false => Ok(()),
        }
    }

    fn check_volume_created(&self, volume: &Volume) -> Result<(), MetaError> {
        let next = self.inventory.next_volume;
        if volume.number < next || volume.number == u32::MAX {
            return Err(MetaError::VolumeNumber { volume: volume.number, next });
        }
        self.check_volume_name(&volume.name)?;
        if self.volumes().any(|other| other.id == volume.id) {
            return Err(MetaError::Exists { what: "volume", name: volume.id.to_string() });
        }
        if !volume.read_cache {
            let fact = "a record of its own switches a volume's read cache off".to_owned();
            return Err(MetaError::Contradiction { fact });
        }
        self.check_volume_size(volume.sectors)?;
        self.check_group_stays(volume.group)?;
        self.check_branch(volume)?;
        if !volume.thin {
            self.check_space(volume.group, self.extents_of(volume.sectors))?;
        }
        let switch = if self.has_switches() { checkpoint::SWITCH_BYTES } else { 0 };
        let more = checkpoint::volume_bytes(volume) + checkpoint::of_group_bytes(self) + switch;
        let families = match volume.branch {
            Some(_) if !self.has_families() => checkpoint::families_bytes(self),
            Some(_) => checkpoint::BRANCH_BYTES,
            None if self.has_families() => checkpoint::BRANCH_BYTES,
            None => 0,
        };
        self.check_growth(more + families, 0, 0)
    }

    fn check_resized(&self, number: u32, sectors: u64) -> Result<(), MetaError> {
        let volume = self.check_volume(number)?;
        self.check_volume_size(sectors)?;
        let (before, after) = (self.extents_of(volume.sectors), self.extents_of(sectors));
        if after < before {
            let first = u32::try_from(after).expect("a volume has fewer than 2^32 extents");
            if let Some((index, _)) = self.maps[&number].iter_from(first).next() {
                return Err(MetaError::ExtentMapped { extent: ExtentId { volume: number, index } });
            }
        } else if !volume.thin {
            self.check_space(volume.group, after - before)?;
        }
        Ok(())
    }

    fn check_member_added(&self, member: &Member) -> Result<(), MetaError> {
        name("drive", &member.name)?;
        // A drive that was lost may join again: its old place keeps the name until it is forgotten.
        let mut serving = self.inventory.members.iter().filter(|other| other.is_active());
        let same_name = serving.any(|other| other.name == member.name);
        if same_name || self.inventory.members.iter().any(|other| other.id == member.id) {
            return Err(MetaError::Exists { what: "drive", name: member.name.clone() });
        }
        if !member.is_active() {
            return Err(MetaError::MemberState {
                name: member.name.clone(),
                state: "new and out of service",
            });
        }
        if member.sectors > SectorCount::MOST.0 {
            let max = SectorCount::MOST.0;
            return Err(MetaError::BadSize { what: "a drive", sectors: member.sectors, max });
        }
        let geometry = &self.geometry;
        let spare = self.check_group_is_there(member.group)?.spare_chunklets;
        let chunklets = geometry.chunklet_sectors.saturating_mul(spare.saturating_add(1));
        let needed = geometry.area.data_start_sectors.saturating_add(chunklets);
        if member.sectors < needed {
            return Err(MetaError::MemberTooSmall {
                name: member.name.clone(),
                sectors: member.sectors,
                needed,
            });
        }
        // The room that `check_room` keeps: between this check and the record, nothing else can take it.
        self.check_room_of(self.bytes_of(member), 0, 0)
    }

    /// Whether a new member leaves the room that a rebuild in every set takes. One that is to take the place of another is
    /// not asked for that.
    ///
    /// # Errors
    /// It does not: volumes must be deleted before.
    pub fn check_member_leaves_room(&self, member: &Member) -> Result<(), MetaError> {
        // A rebuild leaves room for a member as well.
        let kept = self.bytes_for_rebuilds(0).saturating_add(self.bytes_of_any());
        self.check_room_of(self.bytes_of(member), kept, 0)
    }

    fn bytes_of(&self, member: &Member) -> u64 {
        checkpoint::member_bytes(member) + checkpoint::of_group_bytes(self)
    }

    /// The most that a member takes.
    fn bytes_of_any(&self) -> u64 {
        checkpoint::MEMBER_BYTES_MAX + checkpoint::of_group_bytes(self)
    }

    /// What a rebuild in every set takes beside those that there are, and `more` of sets that are new.
    fn bytes_for_rebuilds(&self, more: u64) -> u64 {
        let of_batch = |batch: PlacedBatch<'_>| {
            u64::from(batch.sets).saturating_mul(checkpoint::rebuild_bytes(batch.group))
        };
        let there = self.placed_batches().filter(|batch| !batch.group.is_gone());
        let all = there.map(of_batch).fold(more, u64::saturating_add);
        all.saturating_sub(checkpoint::rebuilds_bytes(self))
    }

    fn check_member_removed(&self, place: u32) -> Result<(), MetaError> {
        let member = self.check_member(place)?;
        if member.state == MemberState::Removed {
            return Err(MetaError::MemberState { name: member.name.clone(), state: "removed" });
        }
        let first = crate::ChunkletAddress { drive: place, index: 0 };
        let last = crate::ChunkletAddress { drive: place, index: u32::MAX };
        match self.inventory.owners.range(first..=last).next() {
            Some((_, owner)) => {
                Err(MetaError::MemberInUse { name: member.name.clone(), what: owner.to_string() })
            }
            None => Ok(()),
        }
    }

    /// Whether what an administrator wishes leaves room for what must be possible after it: a rebuild in every set, with so
    /// many bytes in those that it brings with so many slots, and some new drives.
    fn check_growth(&self, more: u64, rebuilds: u64, slots: u64) -> Result<(), MetaError> {
        let kept = self.bytes_for_rebuilds(rebuilds).saturating_add(MEMBERS_KEPT * self.bytes_of_any());
        self.check_room_of(more, kept, slots)
    }

    /// Whether the largest checkpoint still fits with so many bytes more, and a new member beside them.
    fn check_room(&self, more: u64) -> Result<(), MetaError> {
        self.check_room_of(more, self.bytes_of_any(), 0)
    }

    fn check_room_of(&self, more: u64, kept: u64, slots: u64) -> Result<(), MetaError> {
        let pages = checkpoint::page_count(self.slot_count_of_batches().saturating_add(slots));
        let (places, table) = checkpoint::most_places(pages, self.has_families());
        let room = self.geometry.area.body_bytes_max(places);
        let fixed = checkpoint::fixed_bytes(self).saturating_add(table);
        let bytes = fixed.saturating_add(more).saturating_add(kept);
        if bytes > room {
            return Err(MetaError::TooLarge { bytes, room });
        }
        Ok(())
    }

    /// Whether the largest checkpoint of the state as it is fits.
    pub(crate) fn check_fits(&self) -> Result<(), MetaError> {
        self.check_room_of(0, 0, 0)
    }
}

/// Whether a name can be one.
pub(crate) fn name(what: &'static str, name: &str) -> Result<(), MetaError> {
    if name.is_empty() || name.len() > TEXT_BYTES_MAX {
        let name = name.chars().take(TEXT_BYTES_MAX).collect();
        return Err(MetaError::BadName { what, name });
    }
    Ok(())
}

fn forward(what: &'static str, from: u64, to: u64) -> Result<(), MetaError> {
    if to < from { Err(MetaError::Backwards { what, from, to }) } else { Ok(()) }
}

/// Where two of these ranges overlap.
pub(super) fn overlap(ranges: &mut [(u64, u64)]) -> Option<u64> {
    ranges.sort_unstable();
    ranges.windows(2).find(|pair| pair[0].1 > pair[1].0).map(|pair| pair[1].0)
}
