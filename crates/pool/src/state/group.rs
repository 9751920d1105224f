//! Groups of a pool's sets: sets of a group have a level, width and stripe unit of their own.

use serde::{Deserialize, Serialize};

use crate::RaidRecord;
use crate::state::{Geometry, MetaError, PoolState, check};

/// The most groups of a pool.
pub const GROUPS_MAX: usize = 16;

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
}

impl SetGroup {
    /// Chunklets of a set.
    pub fn columns(&self) -> u32 {
        self.raid.set_size
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
        }
    }
}

/// Whether a group is the first: it goes without saying.
pub(super) fn is_first_group(group: &u32) -> bool {
    *group == 0
}

impl PoolState {
    /// The groups of sets, by number.
    pub fn groups(&self) -> &[SetGroup] {
        &self.inventory.groups
    }

    /// The name of a group; none where the pool has no named ones.
    pub fn name_of_group(&self, group: u32) -> Option<&str> {
        self.inventory
            .groups
            .get(group as usize)
            .filter(|_| self.has_groups())
            .map(|group| group.name.as_str())
    }

    /// A group by its name.
    pub fn group_named(&self, name: &str) -> Option<u32> {
        let place = self.inventory.groups.iter().position(|group| group.name == name)?;
        Some(place as u32)
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

    pub(super) fn check_group_added(&self, group: &SetGroup) -> Result<(), MetaError> {
        check::name("group", &group.name)?;
        if self.group_named(&group.name).is_some() || self.inventory.groups[0].name.is_empty() {
            return Err(MetaError::Exists { what: "group", name: group.name.clone() });
        }
        if self.inventory.groups.len() >= GROUPS_MAX {
            let fact = format!("a pool has at most {GROUPS_MAX} groups; use another pool");
            return Err(MetaError::Geometry { fact });
        }
        self.check_group_shape(group)
    }

    pub(super) fn check_group_named(&self, group: u32, name: &str) -> Result<(), MetaError> {
        check::name("group", name)?;
        self.check_group(group)?;
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
