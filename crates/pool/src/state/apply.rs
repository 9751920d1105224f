//! What a record changes. A record that was not checked before may panic or break the invariants.

use tier0_units::ExtentId;
use tier0_world::{PlantedBug, planted};

use crate::record::{ExtentRun, MappedRun, MetaRecord};
use crate::state::{
    BitSet, ExtentMap, GroupStage, LogPlacement, Member, MemberState, Owner, PoolState, Rebuild,
    RebuildSource, SetBatch, Volume,
};
use crate::{ChunkletAddress, SlotHome};

impl PoolState {
    /// Makes `record` true. It must have passed [`PoolState::check`] just before.
    pub fn apply(&mut self, record: MetaRecord) {
        match record {
            MetaRecord::MapExtents(runs) => runs.into_iter().for_each(|run| self.map_run(run)),
            MetaRecord::UnmapExtents(runs) => runs.into_iter().for_each(|run| self.unmap_run(run)),
            MetaRecord::ShareExtents(runs) => runs.iter().for_each(|run| self.share(run)),
            MetaRecord::SlotsRebuilt { set, column, ranges } => {
                let rebuild = self.inventory.rebuilds.get_mut(&(set, column)).expect("checked");
                for index in ranges.into_iter().flatten() {
                    rebuild.rebuilt.insert(u64::from(index));
                }
            }
            MetaRecord::AllocationsReserved { end } => self.allocation_end = end,
            MetaRecord::ScrubCursor(cursor) => self.scrub = cursor,
            MetaRecord::MemberLost { member } => self.lose_member(member),
            MetaRecord::MemberAdded(member) => self.inventory.members.push(member),
            MetaRecord::MemberRemoved { member } => {
                self.set_member(member, MemberState::Removed);
                self.forget_left_behind(member);
                self.forget_home(member);
            }
            MetaRecord::MemberLeaving { member, leaving } => {
                self.inventory.members[member as usize].leaving = leaving;
                if !leaving {
                    self.keep_columns_of(member);
                }
            }
            MetaRecord::MemberMoved { member, path } => self.inventory.members[member as usize].path = path,
            MetaRecord::MemberRole { member, role } => self.inventory.members[member as usize].role = role,
            MetaRecord::MemberReplaced { member, by } => self.replace_home(member, by),
            MetaRecord::SetsAdded { columns, sets_per_band, group } => {
                self.add_sets(columns, sets_per_band, group);
            }
            MetaRecord::GroupAdded(group) => self.inventory.groups.push(group),
            MetaRecord::GroupNamed { group, name } => self.inventory.groups[group as usize].name = name,
            MetaRecord::GroupLeaving { group, leaving } => {
                let stage = if leaving { GroupStage::Leaves } else { GroupStage::Stays };
                self.inventory.groups[group as usize].stage = stage;
            }
            MetaRecord::GroupRemoved { group } => self.remove_group(group),
            MetaRecord::ColumnRebuilding { set, column, target } => {
                self.start_rebuild(set, column, target, RebuildSource::Lost);
            }
            MetaRecord::ColumnEvacuating { set, column, target } => {
                self.start_rebuild(set, column, target, RebuildSource::Whole);
            }
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages } => {
                self.finish_rebuild(set, column, with_lost_pages);
            }
            MetaRecord::VolumeCreated(volume) => self.create_volume(volume),
            MetaRecord::VolumeDeleted { volume } => self.delete_volume(volume),
            MetaRecord::FamilyGroupChanged { family, group } => self.change_family_group(family, group),
            MetaRecord::VolumeResized { volume, sectors } => {
                self.volume_mut(volume).sectors = sectors;
                let behind = self.extents_of(sectors) as u32..u32::MAX;
                self.place_volume(volume, self.placement(volume).without(&behind));
            }
            MetaRecord::VolumeRenamed { volume, name } => self.volume_mut(volume).name = name,
            MetaRecord::ModeChanged { volume, write_cache } => {
                self.volume_mut(volume).write_cache = write_cache;
            }
            MetaRecord::ReadCacheChanged { volume, read_cache } => {
                self.volume_mut(volume).read_cache = read_cache;
            }
            MetaRecord::PoolCacheChanged(switches) => self.inventory.cache_switches = switches,
            MetaRecord::LogPlaced(log) => self.place_log(log),
            MetaRecord::FlashCachePlaced(placement) => self.place_flash_cache(placement),
            MetaRecord::GroupsMixed {} => self.inventory.is_mixed = true,
            MetaRecord::PlacementChanged { volume, placement } => self.place_volume(volume, placement),
            MetaRecord::TierChanged(settings) => self.inventory.tier = settings,
            MetaRecord::CeilingsChanged { volume, ceilings } => self.set_ceilings(volume, ceilings),
            MetaRecord::WeightChanged { volume, weight } => self.set_weight(volume, weight),
        }
    }

    fn map_run(&mut self, MappedRun { volume, run }: MappedRun) {
        for (index, slot) in run.iter() {
            let before = self.map_in(ExtentId { volume, index }, slot);
            let fresh = self.slots.insert(slot.slot, ExtentId { volume, index });
            assert!(before.is_none() && fresh, "extent {index} of volume {volume} or {slot:?} was mapped");
        }
    }

    fn unmap_run(&mut self, ExtentRun { first, count }: ExtentRun) {
        for index in first.index..first.index + count {
            let slot = self.map_out(ExtentId { index, ..first }).expect("checked");
            assert!(self.slots.remove(slot.slot, first.volume), "the extent had slot {}", slot.slot);
        }
    }

    /// What was being evacuated from it has to be rebuilt; its part of the flash cache is gone.
    fn lose_member(&mut self, member: u32) {
        self.set_member(member, MemberState::Lost);
        if self.flash_cache().on(member).is_some() {
            self.place_flash_cache(self.flash_cache().without(member));
        }
        let own = self.inventory.rebuilds.keys().copied();
        let own: Vec<(u32, u32)> =
            own.filter(|(set, column)| self.column(*set, *column).drive == member).collect();
        for place in own {
            self.inventory.rebuilds.entry(place).and_modify(|rebuild| rebuild.source = RebuildSource::Lost);
        }
    }

    fn set_member(&mut self, member: u32, state: MemberState) {
        self.inventory.members[member as usize].state = state;
    }

    fn add_sets(&mut self, columns: Vec<ChunkletAddress>, sets_per_band: u32, group: u32) {
        let width = self.inventory.groups[group as usize].columns();
        let first = self.set_count();
        for (number, chunklet) in (0u32..).zip(&columns) {
            let owner = Owner::Set { set: first + number / width, column: number % width };
            self.inventory.owners.insert(*chunklet, owner);
        }
        let sets = columns.len() as u32 / width;
        self.inventory.columns.extend(columns);
        self.inventory.batches.push(SetBatch { group, sets, sets_per_band });
        self.slots.grow(self.slot_stretches());
    }

    fn start_rebuild(&mut self, set: u32, column: u32, target: ChunkletAddress, source: RebuildSource) {
        let rebuilt = BitSet::new(u64::from(self.group_of(set).slots_per_set));
        let before = self.inventory.rebuilds.insert((set, column), Rebuild { target, rebuilt, source });
        if let Some(before) = before {
            self.inventory.owners.remove(&before.target);
            // That may have been the column's own place.
            self.inventory.owners.insert(self.column(set, column), Owner::Set { set, column });
        }
        self.inventory.owners.insert(target, Owner::Target { set, column });
    }

    fn finish_rebuild(&mut self, set: u32, column: u32, with_lost_pages: bool) {
        let rebuild = self.inventory.rebuilds.remove(&(set, column)).expect("checked");
        let index = self.column_index(set, column);
        if planted(PlantedBug::WrongChunkletAfterRebuild) {
            self.inventory.owners.remove(&rebuild.target);
            return;
        }
        let before = std::mem::replace(&mut self.inventory.columns[index], rebuild.target);
        self.inventory.owners.remove(&before);
        self.inventory.owners.insert(rebuild.target, Owner::Set { set, column });
        self.note_returned((set, column), rebuild.target);
        self.note_displaced((set, column), before.drive, rebuild.target.drive);
        if !with_lost_pages {
            self.inventory.left_behind.retain(|_, whose| *whose != (set, column));
        } else if self.inventory.members[before.drive as usize].state == MemberState::Lost {
            self.inventory.left_behind.insert(before, (set, column));
        }
    }

    /// A member is lost no longer.
    pub(super) fn forget_left_behind(&mut self, member: u32) {
        self.inventory.left_behind.retain(|chunklet, _| chunklet.drive != member);
    }

    fn create_volume(&mut self, volume: Volume) {
        self.inventory.next_volume = volume.number + 1;
        self.inventory.has_families |= volume.branch.is_some();
        self.maps.insert(volume.number, ExtentMap::default());
        self.inventory.volumes.insert(volume.number, volume);
    }

    fn delete_volume(&mut self, volume: u32) {
        self.inventory.volumes.remove(&volume);
        self.inventory.placements.remove(&volume);
        self.inventory.ceilings.remove(&volume);
        self.inventory.weights.remove(&volume);
        self.forget_away(volume);
        let map = self.maps.remove(&volume).expect("checked");
        for (_, slot) in map.iter() {
            self.slots.remove(slot.slot, volume);
        }
    }

    pub(super) fn volume_mut(&mut self, volume: u32) -> &mut Volume {
        self.inventory.volumes.get_mut(&volume).expect("checked")
    }

    fn place_log(&mut self, log: LogPlacement) {
        let chunklets = |state: &PoolState, log: &LogPlacement| -> Vec<ChunkletAddress> {
            log.copies().flat_map(|copy| state.chunklets_of(copy)).collect()
        };
        for chunklet in chunklets(self, &self.inventory.log) {
            self.inventory.owners.remove(&chunklet);
        }
        for chunklet in chunklets(self, &log) {
            self.inventory.owners.insert(chunklet, Owner::Log);
        }
        self.inventory.log = log;
    }

    /// Forgets that a member is lost: only a planted bug does that.
    pub(crate) fn believe(&mut self, member: u32) {
        if let Some(believed) = self.inventory.members.get_mut(member as usize) {
            believed.state = MemberState::Active;
            self.forget_left_behind(member);
        }
    }

    /// The slots of a set that have extents, by their numbers in the set.
    pub fn used_slots_of(&self, set: u32) -> impl Iterator<Item = u32> {
        (0..self.group_of(set).slots_per_set).filter(move |index| {
            self.slot_at(SlotHome { set, index: *index }).is_some_and(|slot| self.slots.contains(slot))
        })
    }

    /// Members with their places.
    pub fn members_by_place(&self) -> impl Iterator<Item = (u32, &Member)> {
        (0..).zip(&self.inventory.members)
    }
}
