//! Groups of a pool's sets: sets of a group have a level, width and stripe unit of their own.

use serde::{Deserialize, Serialize};

use tier0_units::counted;

use crate::state::{Geometry, MetaError, PoolState, check};
use crate::{ChunkletAddress, RaidRecord};

/// The most groups of a pool.
pub const GROUPS_MAX: usize = 16;

/// Whether a group of sets is to stay in its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupStage {
    /// It is.
    #[default]
    Stays,
    /// It is to leave: it serves what lies in it and gets nothing new.
    Leaves,
    /// It has left: its sets have no columns, and their slots are never used again. It keeps its number, and they keep theirs.
    Gone,
}

impl GroupStage {
    const ALL: [GroupStage; 3] = [GroupStage::Stays, GroupStage::Leaves, GroupStage::Gone];

    /// Its number on drives.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<GroupStage> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// What the sets of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetGroup {
    /// Its name; empty where a pool has this group alone and does not name it.
    pub name: String,
    /// Their level and shape.
    pub raid: RaidRecord,
    /// Extent slots of each.
    pub slots_per_set: u32,
    /// Chunklets of every drive that new sets leave free for rebuilding.
    pub spare_chunklets: u64,
    /// Whether it is to stay.
    #[serde(skip)]
    pub stage: GroupStage,
}

impl SetGroup {
    /// Chunklets of a set; none if the group is gone.
    pub fn columns(&self) -> u32 {
        if self.is_gone() { 0 } else { self.raid.set_size }
    }

    /// Whether it is in its pool and is to stay there.
    pub fn stays(&self) -> bool {
        self.stage == GroupStage::Stays
    }

    /// Whether it has left its pool.
    pub fn is_gone(&self) -> bool {
        self.stage == GroupStage::Gone
    }
}

impl Geometry {
    /// The group that a pool is created with.
    pub(crate) fn first_group(&self) -> SetGroup {
        SetGroup {
            name: String::new(),
            raid: self.raid.clone(),
            slots_per_set: self.slots_per_set,
            spare_chunklets: self.spare_chunklets,
            stage: GroupStage::Stays,
        }
    }
}

/// Whether a group is the first: it goes without saying.
pub(super) fn is_first_group(group: &u32) -> bool {
    *group == 0
}

impl PoolState {
    /// The groups of sets, by number, those that are gone included.
    pub fn groups(&self) -> &[SetGroup] {
        &self.inventory.groups
    }

    /// The groups that the pool has, with their numbers, those that are to leave included.
    pub fn groups_there(&self) -> impl Iterator<Item = (u32, &SetGroup)> {
        (0..).zip(&self.inventory.groups).filter(|(_, group)| !group.is_gone())
    }

    /// The names of the groups that the pool has; none where they have no names.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups_there().filter(|_| self.has_groups()).map(|(_, group)| group.name.as_str())
    }

    /// The numbers of the groups that stay.
    pub fn groups_that_stay(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.inventory.groups).filter(|(_, group)| group.stays()).map(|(number, _)| number)
    }

    /// The numbers of the groups that are to leave.
    pub fn groups_that_leave(&self) -> impl Iterator<Item = u32> {
        let leaving = |group: &SetGroup| group.stage == GroupStage::Leaves;
        (0..).zip(&self.inventory.groups).filter(move |(_, group)| leaving(group)).map(|(number, _)| number)
    }

    /// Whether a group has left the pool.
    pub fn has_lost_groups(&self) -> bool {
        self.inventory.groups.iter().any(SetGroup::is_gone)
    }

    /// Whether this group has left the pool.
    pub fn group_is_gone(&self, group: u32) -> bool {
        self.inventory.groups.get(group as usize).is_some_and(SetGroup::is_gone)
    }

    /// Whether the pool has such a group, and it is to stay.
    pub fn group_stays(&self, group: u32) -> bool {
        self.inventory.groups.get(group as usize).is_some_and(SetGroup::stays)
    }

    /// The group of what says nothing of one: the first that stays.
    pub fn default_group(&self) -> u32 {
        self.groups_that_stay().next().unwrap_or(0)
    }

    /// The name of a group; none where the pool has no named ones, or the group is gone.
    pub fn name_of_group(&self, group: u32) -> Option<&str> {
        self.inventory
            .groups
            .get(group as usize)
            .filter(|group| self.has_groups() && !group.is_gone())
            .map(|group| group.name.as_str())
    }

    /// A group by its name. The name of one that is gone can be another's.
    pub fn group_named(&self, name: &str) -> Option<u32> {
        self.groups_there().find(|(_, group)| group.name == name).map(|(number, _)| number)
    }

    /// Names the group that a pool is created with. To be called before anything is made of the state.
    ///
    /// # Errors
    /// It is no name.
    pub fn name_first_group(&mut self, name: &str) -> Result<(), MetaError> {
        check::name("group", name)?;
        self.inventory.groups[0].name = name.to_owned();
        Ok(())
    }

    /// Whether there is more than one group, or one that has a name: who does not know of groups must not touch the pool.
    pub fn has_groups(&self) -> bool {
        self.inventory.groups.len() > 1 || !self.inventory.groups[0].name.is_empty()
    }

    pub(super) fn check_group(&self, group: u32) -> Result<&SetGroup, MetaError> {
        let count = self.inventory.groups.len();
        self.inventory.groups.get(group as usize).ok_or(MetaError::NoGroup { group, count })
    }

    /// A group that something new can be of.
    pub(super) fn check_group_stays(&self, group: u32) -> Result<&SetGroup, MetaError> {
        let known = self.check_group(group)?;
        match known.stage {
            GroupStage::Stays => Ok(known),
            GroupStage::Leaves => Err(MetaError::GroupLeaves { name: known.name.clone() }),
            GroupStage::Gone => Err(MetaError::GroupGone { name: known.name.clone() }),
        }
    }

    /// A group that the pool has.
    pub(super) fn check_group_is_there(&self, group: u32) -> Result<&SetGroup, MetaError> {
        let known = self.check_group(group)?;
        match known.is_gone() {
            false => Ok(known),
            true => Err(MetaError::GroupGone { name: known.name.clone() }),
        }
    }

    /// Whether a slot, one of those of the batches, is of a group that the pool has.
    pub(super) fn check_slot_is_there(&self, slot: u64) -> Result<(), MetaError> {
        if !self.inventory.groups.iter().any(SetGroup::is_gone) {
            return Ok(());
        }
        let home = self.slot_home(slot);
        home.map_or(Ok(()), |home| self.check_group_is_there(self.group_number_of(home.set)).map(|_| ()))
    }

    /// Whether a group can begin to leave, or stay after all: no volume is of one that leaves.
    pub(super) fn check_group_leaving(&self, group: u32, leaving: bool) -> Result<(), MetaError> {
        let known = self.check_group_is_there(group)?;
        if !leaving {
            return Ok(());
        }
        let still_needed = |what: String| Err(MetaError::GroupInUse { name: known.name.clone(), what });
        if let Some(volume) = self.volumes().find(|volume| volume.group == group) {
            return still_needed(format!("volume {:?} is of it", volume.name));
        }
        match self.groups_that_stay().any(|other| other != group) {
            true => Ok(()),
            false => still_needed("no other group stays".to_owned()),
        }
    }

    /// Whether a group that is to leave can be gone: nothing lies in it.
    pub(super) fn check_group_removed(&self, group: u32) -> Result<(), MetaError> {
        let known = self.check_group_is_there(group)?;
        let still_needed = |what: String| Err(MetaError::GroupInUse { name: known.name.clone(), what });
        if known.stays() {
            return still_needed("it is to stay".to_owned());
        }
        let used = self.used_slot_count_of(group);
        if used > 0 {
            return still_needed(format!("{} lie in it", counted(used, "extent")));
        }
        match self.rebuilds().find(|(set, ..)| self.group_number_of(*set) == group) {
            Some((set, column, _)) => {
                still_needed(format!("column {column} of its set {set} is being rebuilt"))
            }
            None => Ok(()),
        }
    }

    /// A group is gone, and its columns are free.
    pub(super) fn remove_group(&mut self, group: u32) {
        let of_group = |state: &PoolState, set: u32| state.group_number_of(set) == group;
        let kept: Vec<ChunkletAddress> = self
            .all_columns()
            .zip(&self.inventory.columns)
            .filter(|((set, _), _)| !of_group(self, *set))
            .map(|(_, chunklet)| *chunklet)
            .collect();
        let all = self.all_columns().zip(&self.inventory.columns);
        let freed: Vec<ChunkletAddress> =
            all.filter(|((set, _), _)| of_group(self, *set)).map(|(_, chunklet)| *chunklet).collect();
        for chunklet in freed {
            self.inventory.owners.remove(&chunklet);
        }
        let mut left_behind = std::mem::take(&mut self.inventory.left_behind);
        left_behind.retain(|_, (set, _)| !of_group(self, *set));
        let mut displaced = std::mem::take(&mut self.inventory.displaced);
        displaced.retain(|(set, _), _| !of_group(self, *set));
        let inventory = &mut self.inventory;
        (inventory.columns, inventory.left_behind, inventory.displaced) = (kept, left_behind, displaced);
        inventory.groups[group as usize].stage = GroupStage::Gone;
    }

    pub(super) fn check_group_added(&self, group: &SetGroup) -> Result<(), MetaError> {
        check::name("group", &group.name)?;
        if self.group_named(&group.name).is_some() || self.inventory.groups[0].name.is_empty() {
            return Err(MetaError::Exists { what: "group", name: group.name.clone() });
        }
        if self.inventory.groups.len() >= GROUPS_MAX {
            let left = self.inventory.groups.iter().filter(|group| group.is_gone()).count();
            let counted = match left {
                0 => String::new(),
                left => format!(", and the {left} that have left it count"),
            };
            let fact = format!(
                "a pool has at most {GROUPS_MAX} groups in its life{counted}; add drives to one that it has, or use another pool"
            );
            return Err(MetaError::Geometry { fact });
        }
        self.check_group_shape(group)
    }

    pub(super) fn check_group_named(&self, group: u32, name: &str) -> Result<(), MetaError> {
        check::name("group", name)?;
        self.check_group_is_there(group)?;
        match self.group_named(name) {
            Some(_) => Err(MetaError::Exists { what: "group", name: name.to_owned() }),
            None => Ok(()),
        }
    }

    /// Whether sets of a group can be made of the pool's chunklets.
    pub(super) fn check_group_shape(&self, group: &SetGroup) -> Result<(), MetaError> {
        let SetGroup { raid, slots_per_set, spare_chunklets, .. } = group.clone();
        Geometry { raid, slots_per_set, spare_chunklets, ..self.geometry.clone() }.check()
    }
}
