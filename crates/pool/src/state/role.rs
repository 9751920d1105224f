//! What drives are for: data of volumes, or the write log and the flash cache alone.
//!
//! The array file says it of the drives that it names, at each start; the metadata keep it for all others. A drive that is
//! not for data takes a column only where that restores redundancy and no drive of data can, and keeps it only until one
//! can ([`PoolState::moves_to_data_drives`]).

use serde::{Deserialize, Serialize};

use crate::state::{ColumnMove, DriveClass, Member, Owner, PoolState};

/// What a drive is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriveRole {
    /// Nothing says it: for data, unless it has no columns and was given the write log, or a part of the flash cache.
    #[default]
    ByUse,
    /// Data of volumes, and whatever else it is given.
    Data,
    /// The write log or the flash cache, and no data.
    Auxiliary,
}

impl DriveRole {
    const ALL: [DriveRole; 3] = [DriveRole::ByUse, DriveRole::Data, DriveRole::Auxiliary];

    /// Whether nothing says it.
    pub(crate) fn is_by_use(&self) -> bool {
        *self == DriveRole::ByUse
    }

    /// Its number on drives.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<DriveRole> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl PoolState {
    /// Whether a member is for data of volumes. One of which nothing says it is for data unless it has no columns and was
    /// given the write log, or a part of the flash cache.
    pub fn is_for_data(&self, member: u32) -> bool {
        match self.member(member).map_or(DriveRole::ByUse, |known| known.role) {
            DriveRole::Data => true,
            DriveRole::Auxiliary => false,
            DriveRole::ByUse => {
                let holds_log = || self.log().copies().any(|copy| copy.member == member);
                self.has_columns(member) || !holds_log() && self.flash_cache().on(member).is_none()
            }
        }
    }

    /// The classes of the active drives that hold data of a group.
    pub fn data_classes(&self, group: u32) -> impl Iterator<Item = DriveClass> {
        let is_own = move |(place, member): &(u32, &Member)| {
            member.is_active() && self.has_columns(*place) && (!self.has_groups() || member.group == group)
        };
        self.members_by_place().filter(is_own).map(|(_, member)| member.class)
    }

    /// Whether a group has disks among the drives that hold its data.
    pub fn has_disks(&self, group: u32) -> bool {
        self.data_classes(group).any(|class| class == DriveClass::Disk)
    }

    /// How many columns of sets a member has, those that are on their way to it included.
    pub fn columns_on(&self, member: u32) -> u64 {
        let is_column = |owner: &Owner| matches!(owner, Owner::Set { .. } | Owner::Target { .. });
        self.owned(member).filter(|(_, owner)| is_column(owner)).count() as u64
    }

    /// The members that serve, are not for data, and have columns of sets; how many columns each.
    pub fn misplaced_columns(&self) -> impl Iterator<Item = (u32, u64)> {
        let astray = |(place, member): &(u32, &Member)| member.is_active() && !self.is_for_data(*place);
        let counted =
            self.members_by_place().filter(astray).map(|(place, _)| (place, self.columns_on(place)));
        counted.filter(|(_, columns)| *columns > 0)
    }

    /// The columns on drives that serve and are not for data which a drive of data could take, and which one.
    pub fn moves_to_data_drives(&self) -> Vec<ColumnMove> {
        let sources: Vec<u32> = self.misplaced_columns().map(|(place, _)| place).collect();
        if sources.is_empty() {
            return Vec::new();
        }
        let mut free = self.free_by_member();
        let mut moves = Vec::new();
        for (set, column) in self.all_columns() {
            let source = self.column(set, column).drive;
            if !sources.contains(&source) || self.rebuild(set, column).is_some() {
                continue;
            }
            let left = |place: u32| free.get(&place).copied().unwrap_or(0);
            let Some(to) = self.choose_data_drive(set, column, left) else { continue };
            free.entry(to).and_modify(|left| *left -= 1);
            moves.push(ColumnMove { set, column, to });
        }
        moves
    }
}
