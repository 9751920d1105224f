//! Whether chunklets, columns and rings can be as a record says.

use std::collections::{BTreeMap, BTreeSet};

use crate::ChunkletAddress;
use crate::state::derive::taken;
use crate::state::{LogPlacement, MemberState, MetaError, PoolState, SetGroup};

/// The most copies of a ring.
const RING_COPIES_MAX: usize = 3;
/// The most chunklets that all copies of all rings lie in: 64 GiB for each of three copies with the smallest chunklets
/// that are chosen, 1 MiB. It bounds what a damaged record can make the program do.
const LOG_CHUNKLETS_MAX: u64 = 3 << 16;
/// Rings start and end at whole pages.
const RING_ALIGNMENT_SECTORS: u64 = tier0_units::PAGE_SECTORS;

impl PoolState {
    pub(crate) fn check_member(&self, place: u32) -> Result<&crate::state::Member, MetaError> {
        let count = self.inventory.members.len();
        self.member(place).ok_or(MetaError::NoMember { member: place, count })
    }

    pub(crate) fn check_active(&self, place: u32) -> Result<(), MetaError> {
        let member = self.check_member(place)?;
        let state = match member.state {
            MemberState::Active => return Ok(()),
            MemberState::Lost => "lost",
            MemberState::Removed => "removed",
        };
        Err(MetaError::MemberState { name: member.name.clone(), state })
    }

    pub(crate) fn check_column(&self, set: u32, column: u32) -> Result<(), MetaError> {
        let (sets, batch) = (self.set_count(), self.batch_of(set));
        let columns = batch.map_or(0, |batch| batch.group.columns());
        if column >= columns {
            return Err(MetaError::NoColumn { set, column, sets, columns });
        }
        Ok(())
    }

    pub(crate) fn check_chunklet_exists(&self, chunklet: ChunkletAddress) -> Result<(), MetaError> {
        let count = self.geometry.chunklets(self.check_member(chunklet.drive)?.sectors);
        if u64::from(chunklet.index) >= count {
            return Err(MetaError::ChunkletOutside { chunklet, count });
        }
        Ok(())
    }

    /// A chunklet that may be given to an owner.
    pub(crate) fn check_chunklet_free(&self, chunklet: ChunkletAddress) -> Result<(), MetaError> {
        self.check_active(chunklet.drive)?;
        let member = self.check_member(chunklet.drive)?;
        if member.leaving {
            return Err(MetaError::MemberState { name: member.name.clone(), state: "leaving" });
        }
        self.check_chunklet_exists(chunklet)?;
        match self.inventory.owners.get(&chunklet) {
            Some(owner) => Err(taken(chunklet, *owner)),
            None => Ok(()),
        }
    }

    /// The drives that a set's columns are on, the targets of rebuilds in the place of what they replace.
    pub(crate) fn drives_of(&self, set: u32) -> impl Iterator<Item = u32> {
        (0..self.group_of(set).columns()).map(move |column| self.place_of(set, column).drive)
    }

    pub(crate) fn check_drives_differ(&self, set: u32) -> Result<(), MetaError> {
        let mut drives = BTreeSet::new();
        match self.drives_of(set).find(|drive| !drives.insert(*drive)) {
            Some(drive) => Err(same_drive(set, drive)),
            None => Ok(()),
        }
    }

    pub(crate) fn check_sets_added(
        &self,
        columns: &[ChunkletAddress],
        sets_per_band: u32,
        group: u32,
    ) -> Result<&SetGroup, MetaError> {
        let (number, group) = (group, self.check_group_stays(group)?);
        let (first, width) = (self.set_count(), group.columns() as usize);
        let sets = columns.len() / width;
        let whole = columns.len().is_multiple_of(width) && sets > 0 && sets_per_band > 0;
        let count = self.slot_count_of_batches() + sets as u64 * u64::from(group.slots_per_set);
        if !whole || sets_per_band as usize > sets || count > u64::from(u32::MAX) {
            let fact = format!(
                "cannot be added: {} chunklets in sets of {width}, bands of {sets_per_band}, {count} slots; a pool has whole sets, bands of 1 to all sets and fewer than 2^32 slots",
                columns.len()
            );
            return Err(MetaError::BadSet { set: first, fact });
        }
        let mut seen = BTreeSet::new();
        let mut per_drive: BTreeMap<u32, u64> = BTreeMap::new();
        for (set_number, set) in (first..).zip(columns.chunks(width)) {
            let mut drives = BTreeSet::new();
            for chunklet in set {
                self.check_chunklet_free(*chunklet)?;
                self.check_of_group(chunklet.drive, number)?;
                if !seen.insert(*chunklet) {
                    return Err(MetaError::ChunkletTaken {
                        chunklet: *chunklet,
                        owner: "another column of the same record".to_owned(),
                    });
                }
                if !drives.insert(chunklet.drive) {
                    return Err(same_drive(set_number, chunklet.drive));
                }
                *per_drive.entry(chunklet.drive).or_default() += 1;
            }
        }
        per_drive.into_iter().try_for_each(|(drive, taken)| self.check_spares(drive, taken))?;
        Ok(group)
    }

    /// A drive has columns of its own group's sets alone.
    pub(crate) fn check_of_group(&self, drive: u32, group: u32) -> Result<(), MetaError> {
        let member = self.check_member(drive)?;
        match member.group == group {
            true => Ok(()),
            false => {
                Err(MetaError::OtherGroup { name: member.name.clone(), group: member.group, wanted: group })
            }
        }
    }

    fn check_spares(&self, drive: u32, taken: u64) -> Result<(), MetaError> {
        let left = self.ownerless_chunklets(drive).saturating_sub(taken);
        let spare = self.spares_of(drive);
        if left < spare {
            let name = self.inventory.members[drive as usize].name.clone();
            return Err(MetaError::SparesTaken { name, left, spare });
        }
        Ok(())
    }

    pub(crate) fn check_rebuilding(
        &self,
        set: u32,
        column: u32,
        target: ChunkletAddress,
    ) -> Result<(), MetaError> {
        self.check_column(set, column)?;
        if self.place_to_go_back(set, column) != Some(target) {
            self.check_chunklet_free(target)?;
        }
        self.check_of_group(target.drive, self.group_number_of(set))?;
        let columns = 0..self.group_of(set).columns();
        let mut others = columns.zip(self.drives_of(set)).filter(|(other, _)| *other != column);
        match others.find(|(_, drive)| *drive == target.drive) {
            Some((_, drive)) => Err(same_drive(set, drive)),
            None => Ok(()),
        }
    }

    /// Every slot that has an extent must be on the target, and the target's drive must serve.
    pub(crate) fn check_rebuilt(&self, set: u32, column: u32) -> Result<(), MetaError> {
        self.check_column(set, column)?;
        let Some(rebuild) = self.rebuild(set, column) else {
            return Err(MetaError::NotRebuilding { set, column });
        };
        self.check_active(rebuild.target.drive)?;
        let homes = (0..self.group_of(set).slots_per_set).map(|index| crate::SlotHome { set, index });
        for home in homes.filter(|home| !rebuild.rebuilt.contains(u64::from(home.index))) {
            let slot = self.slot_at(home).expect("it is a slot of a set that exists");
            if self.slots.contains(slot) {
                return Err(MetaError::NotRebuilt { set, column, slot });
            }
        }
        Ok(())
    }

    /// Whether a log can be there at all, whatever owns the chunklets.
    pub(crate) fn check_log_shape(&self, log: &LogPlacement) -> Result<(), MetaError> {
        let refuse = |fact: String| Err(MetaError::BadLog { fact });
        let groups = self.groups().len();
        if !(1..=groups).contains(&(log.lanes as usize)) {
            return refuse(format!("it has {} lanes, and the pool {groups} groups of sets", log.lanes));
        }
        if !log.rings.len().is_multiple_of(log.lanes as usize) {
            return refuse(format!("{} rings are not {} for each shard", log.rings.len(), log.lanes));
        }
        let mut ids = BTreeSet::new();
        let mut places: Vec<(u32, u64, u64)> = Vec::new();
        for (number, ring) in log.rings.iter().enumerate() {
            let mut members = BTreeSet::new();
            if !ids.insert(ring.id) || !(1..=RING_COPIES_MAX).contains(&ring.copies.len()) {
                return refuse(format!("ring {number} needs an identity of its own and 1 to 3 copies"));
            }
            for copy in &ring.copies {
                let end = copy.first_sector.checked_add(copy.sectors);
                let geometry = &self.geometry;
                let data_end = geometry.area.data_start_sectors
                    + geometry.chunklets(self.check_member(copy.member)?.sectors) * geometry.chunklet_sectors;
                let aligned = copy.first_sector.is_multiple_of(RING_ALIGNMENT_SECTORS)
                    && copy.sectors.is_multiple_of(RING_ALIGNMENT_SECTORS);
                let inside = copy.first_sector >= geometry.area.data_start_sectors
                    && end.is_some_and(|end| end <= data_end);
                if !aligned || !inside || copy.sectors == 0 {
                    return refuse(format!(
                        "a copy of ring {number} does not lie on whole pages of the chunklets of drive {}",
                        copy.member
                    ));
                }
                if !members.insert(copy.member) {
                    return refuse(format!("two copies of ring {number} lie on drive {}", copy.member));
                }
                places.push((copy.member, copy.first_sector, copy.first_sector + copy.sectors));
            }
        }
        let chunklets =
            places.iter().map(|(_, start, end)| (end - start) / self.geometry.chunklet_sectors + 2);
        if chunklets.fold(0, u64::saturating_add) > LOG_CHUNKLETS_MAX {
            return refuse(format!("it takes more than {LOG_CHUNKLETS_MAX} chunklets; make it smaller"));
        }
        places.sort_unstable();
        let overlap = places.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].2 > pair[1].1);
        match overlap {
            Some(pair) => refuse(format!("two rings overlap on drive {}", pair[0].0)),
            None => Ok(()),
        }
    }

    pub(crate) fn check_log(&self, log: &LogPlacement) -> Result<(), MetaError> {
        self.check_log_shape(log)?;
        let known = &self.inventory.log;
        // More of them need rings that are made anew.
        let has_more = log.lanes > known.lanes && log.rings.iter().all(|ring| ring.is_void);
        if !known.rings.is_empty() && !has_more && known.lanes != log.lanes {
            let fact = format!("it has {} lanes for each shard, and cannot have {}", known.lanes, log.lanes);
            return Err(MetaError::BadLog { fact });
        }
        for copy in log.copies() {
            // A copy that stays where it was may be on a drive that is lost by now.
            let stays = self.inventory.log.copies().any(|known| known == copy);
            if !stays {
                self.check_active(copy.member)?;
            }
            for chunklet in self.chunklets_of(copy) {
                match self.inventory.owners.get(&chunklet) {
                    None | Some(crate::state::Owner::Log) => {}
                    Some(owner) => return Err(taken(chunklet, *owner)),
                }
            }
        }
        Ok(())
    }
}

fn same_drive(set: u32, drive: u32) -> MetaError {
    let fact = format!("would have two columns on drive {drive}; take a chunklet of another drive");
    MetaError::BadSet { set, fact }
}
