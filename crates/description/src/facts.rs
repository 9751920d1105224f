//! What pools are: everything that an array file says of them, with the values that count.
//!
//! The pools' metadata know it, of an array that runs and of drives that are read without being opened.

use std::path::PathBuf;

use tier0_pool::{
    CacheSwitches, Ceilings, DriveClass, GroupStage, Member, MemberState, Place as VolumePlace, PoolState,
    SetGroup, SpaceRules,
};
use tier0_units::{SECTOR_BYTES, WriteCache};
use uuid::Uuid;

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFacts {
    /// Its name.
    pub name: String,
    /// The RAID level of its sets.
    pub raid: String,
    /// Drives of a set.
    pub set_size: usize,
    /// RAID 5 groups of a RAID 50 set; 1 at other levels.
    pub groups: usize,
    /// Bytes of a stripe unit.
    pub stripe_unit_bytes: u64,
    /// Bytes of a chunklet.
    pub chunklet_bytes: u64,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Chunklets that stay free on each drive for rebuilding.
    pub spare_chunklets: u64,
    /// Chunklets of the smallest drive.
    pub chunklets_min: u64,
    /// Whether pages carry checksums.
    pub checksums: bool,
    /// Bytes of the write log on each of its drives.
    pub log_bytes: u64,
    /// Parts of the log: one for each shard that the array was created for.
    pub log_parts: usize,
    /// The groups of its sets where they have names; none where all sets are as above.
    pub set_groups: Vec<GroupFacts>,
    /// The groups that have left it.
    pub gone_groups: Vec<GroupFacts>,
    /// Its drives, those that are lost included.
    pub drives: Vec<DriveFacts>,
    /// Its volumes.
    pub volumes: Vec<VolumeFacts>,
    /// Its switches over the caches of its volumes.
    pub cache: CacheSwitches,
    /// When the administrator is told that it fills, and what thin volumes do not get; none of drives that no server
    /// serves.
    pub space: Option<SpaceRules>,
}

/// A group of a pool's sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFacts {
    /// Its name; empty for a pool that is a single group.
    pub name: String,
    /// The level of its sets.
    pub raid: String,
    /// Drives of a set.
    pub set_size: usize,
    /// RAID 5 groups of a RAID 50 set; 1 at other levels.
    pub groups: usize,
    /// Bytes of a stripe unit.
    pub stripe_unit_bytes: u64,
    /// Chunklets that stay free on each of its drives for rebuilding.
    pub spare_chunklets: u64,
    /// Chunklets of its smallest drive.
    pub chunklets_min: u64,
    /// Whether it is leaving the pool.
    pub leaving: bool,
}

/// A drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveFacts {
    /// Its name.
    pub name: String,
    /// Its identity in the pool; none from a server that does not tell it.
    pub id: Option<Uuid>,
    /// Where it is, or was last.
    pub path: Option<PathBuf>,
    /// Where it was when the server opened it, if its file was moved since.
    pub moved_from: Option<PathBuf>,
    /// Whether its file was deleted, so that it is gone when the server ends.
    pub deleted: bool,
    /// Whether something else lies where the server opened it: its file was moved or deleted, or the path leads elsewhere.
    pub replaced: bool,
    /// Whether what it lies on ends before the size that it had, so that a start does not recognise it.
    pub cut_short: bool,
    /// What kind of drive it is; none from a server that does not tell it.
    pub class: Option<DriveClass>,
    /// Its size.
    pub size_bytes: u64,
    /// Where it stands.
    pub state: DriveState,
    /// Whether all that it holds is being copied to others, after which it is forgotten.
    pub leaving: bool,
    /// Whether it may hold data of volumes.
    pub for_data: bool,
    /// Whether it holds a copy of the write log.
    pub for_log: bool,
    /// What it holds of the flash read cache.
    pub flash_cache_bytes: u64,
    /// The group whose sets it has columns of, where its pool has named ones.
    pub group: Option<String>,
}

/// Where a drive stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveState {
    /// In service.
    Active,
    /// Out of service: failed, missing or declared failed; what it holds is never believed again.
    Lost,
    /// Being emptied.
    Leaving,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFacts {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Whether extents are allocated at the first write.
    pub thin: bool,
    /// When its writes are acknowledged.
    pub write_cache: WriteCache,
    /// Whether its reads use the read cache.
    pub read_cache: bool,
    /// Where its extents are to lie.
    pub place: VolumePlace,
    /// The group of sets that it lies on, where its pool has named ones.
    pub group: Option<String>,
    /// What hosts may ask of it in a second.
    pub ceilings: Ceilings,
    /// What it gets in comparison with others where writers are delayed.
    pub weight: u32,
}

impl PoolFacts {
    /// What a state says; `path` knows where the member of a place is.
    pub fn of(state: &PoolState, path: impl Fn(u32) -> Option<PathBuf>) -> PoolFacts {
        let geometry = state.geometry();
        let raid = &geometry.raid;
        let holds_log = |place| state.log().copies().any(|copy| copy.member == place);
        let log_bytes = |place| {
            let copies = state.log().copies().filter(move |copy| copy.member == place);
            copies.map(|copy| copy.sectors * SECTOR_BYTES).sum::<u64>()
        };
        let there = || {
            let members = (0u32..).zip(state.members());
            members.filter(|(_, member)| member.state != MemberState::Removed)
        };
        let drive = |(place, member): (u32, &Member)| DriveFacts {
            name: member.name.clone(),
            id: Some(member.id),
            path: path(place),
            moved_from: None,
            deleted: false,
            replaced: false,
            cut_short: false,
            class: Some(member.class),
            size_bytes: member.sectors * SECTOR_BYTES,
            state: if member.is_active() { DriveState::Active } else { DriveState::Lost },
            leaving: member.leaving,
            for_data: state.is_for_data(place),
            for_log: holds_log(place),
            flash_cache_bytes: state.flash_cache_bytes(place),
            group: state.name_of_group(member.group).map(str::to_owned),
        };
        let group = |(number, group): (u32, &SetGroup)| GroupFacts {
            name: group.name.clone(),
            raid: group.raid.level.clone(),
            set_size: group.raid.set_size as usize,
            groups: group.raid.groups as usize,
            stripe_unit_bytes: u64::from(group.raid.stripe_unit_sectors) * SECTOR_BYTES,
            spare_chunklets: group.spare_chunklets,
            chunklets_min: there()
                .filter(|(_, member)| member.group == number)
                .map(|(_, member)| geometry.chunklets(member.sectors))
                .min()
                .unwrap_or(0),
            leaving: group.stage == GroupStage::Leaves,
        };
        let set_groups = state.groups_there().filter(|_| state.has_groups()).map(group).collect();
        let gone_groups = (0..).zip(state.groups()).filter(|(_, group)| group.is_gone()).map(group).collect();
        PoolFacts {
            name: state.name().to_owned(),
            raid: raid.level.clone(),
            set_size: raid.set_size as usize,
            groups: raid.groups as usize,
            stripe_unit_bytes: u64::from(raid.stripe_unit_sectors) * SECTOR_BYTES,
            chunklet_bytes: geometry.chunklet_sectors * SECTOR_BYTES,
            extent_bytes: geometry.extent_sectors * SECTOR_BYTES,
            spare_chunklets: geometry.spare_chunklets,
            chunklets_min: there().map(|(_, member)| geometry.chunklets(member.sectors)).min().unwrap_or(0),
            checksums: geometry.checksums,
            log_bytes: there().map(|(place, _)| log_bytes(place)).max().unwrap_or(0),
            log_parts: state.log().shards(),
            set_groups,
            gone_groups,
            drives: there().map(drive).collect(),
            volumes: state
                .volumes()
                .filter(|one| !one.is_unfinished())
                .map(|one| volume(state, one))
                .collect(),
            cache: state.cache_switches(),
            space: None,
        }
    }

    /// The groups of its sets, a single one without a name among them.
    pub(crate) fn groups(&self) -> Vec<GroupFacts> {
        let single = || GroupFacts {
            name: String::new(),
            raid: self.raid.clone(),
            set_size: self.set_size,
            groups: self.groups,
            stripe_unit_bytes: self.stripe_unit_bytes,
            spare_chunklets: self.spare_chunklets,
            chunklets_min: self.chunklets_min,
            leaving: false,
        };
        if self.set_groups.is_empty() { vec![single()] } else { self.set_groups.clone() }
    }

    /// Whether a group of this name is leaving the pool, or has left it and no other one has its name.
    pub(crate) fn leaves(&self, group: &str) -> Option<&'static str> {
        match self.set_groups.iter().find(|one| one.name == group) {
            Some(one) => one.leaving.then_some("is leaving"),
            None => self.gone_groups.iter().any(|one| one.name == group).then_some("has left"),
        }
    }

    /// Whether groups are leaving the pool or have left it, and none that stays has drives of flash alone.
    pub(crate) fn has_lost_flash(&self) -> bool {
        let is_flash = |group: &GroupFacts| {
            let mut own = self.drives.iter().filter(|drive| self.is_of_group(drive, group)).peekable();
            own.peek().is_some() && own.all(|drive| drive.class == Some(DriveClass::Flash))
        };
        let has_lost_some = !self.gone_groups.is_empty() || self.set_groups.iter().any(|group| group.leaving);
        has_lost_some && !self.set_groups.iter().any(|group| !group.leaving && is_flash(group))
    }

    /// Whether a drive holds data of a group's sets.
    pub(crate) fn is_of_group(&self, drive: &DriveFacts, group: &GroupFacts) -> bool {
        drive.for_data && (self.set_groups.is_empty() || drive.group.as_ref() == Some(&group.name))
    }
}

impl GroupFacts {
    /// How many drives' worth of chunklets the spares are, as the group was created: what a file says of so many drives,
    /// where that makes the chunklets that each of its `members` keeps. How many drives it was created with is not
    /// remembered, so the number may otherwise be rounded. No more than an array file of its drives can say.
    pub(crate) fn spare_drives(&self, members: usize, in_file: Option<(u32, usize)>) -> u32 {
        let (kept, smallest) = (self.spare_chunklets, self.chunklets_min);
        if kept == 0 || smallest == 0 {
            return 0;
        }
        let worth = kept * members as u64;
        let least = (worth / smallest).max(1);
        let may_be = |spares: u64, drives: u64| {
            let makes_them = (smallest * spares).div_ceil(drives.max(1)) == kept;
            makes_them || (least..=worth.div_ceil(smallest)).contains(&spares)
        };
        let named = in_file.map(|(spares, drives)| (u64::from(spares), drives as u64));
        let created =
            named.filter(|(spares, drives)| may_be(*spares, *drives)).map_or(least, |(spares, _)| spares);
        created.min(members.saturating_sub(self.set_size) as u64) as u32
    }
}

fn volume(state: &PoolState, volume: &tier0_pool::Volume) -> VolumeFacts {
    VolumeFacts {
        name: volume.name.clone(),
        size_bytes: volume.sectors * SECTOR_BYTES,
        thin: volume.thin,
        write_cache: volume.write_cache,
        read_cache: volume.read_cache,
        place: state.placement(volume.number).place,
        group: state.name_of_group(volume.group).map(str::to_owned),
        ceilings: state.ceilings(volume.number),
        weight: state.weight(volume.number),
    }
}
