//! Copy-back: columns that were rebuilt on other drives because theirs was lost go to the drive that replaces it.
//!
//! Of every column that was rebuilt elsewhere it is remembered whose it was, as long as that drive is a member. A drive that
//! replaces it takes that over ([`MetaRecord::MemberReplaced`](crate::MetaRecord::MemberReplaced)), and then the columns move
//! to it while they serve. Nothing depends on it but how evenly the drives are loaded.

use crate::ChunkletAddress;
use crate::state::{ColumnMove, DriveRole, MemberState, MetaError, Owner, PoolState};

impl PoolState {
    /// The member to which a column belongs and on which it does not lie, if there is one.
    pub fn home_of(&self, set: u32, column: u32) -> Option<u32> {
        self.inventory.displaced.get(&(set, column)).copied()
    }

    /// The columns that should move to the drive that replaces theirs, and can: it has a free chunklet, and their set does
    /// not use it.
    pub fn moves_home(&self) -> Vec<ColumnMove> {
        if self.inventory.displaced.is_empty() {
            return Vec::new();
        }
        let mut free = self.free_by_member();
        let mut moves = Vec::new();
        for &(set, column) in self.inventory.displaced.keys() {
            let Some(target) = self.place_at_home(set, column) else { continue };
            let is_idle =
                self.rebuild(set, column).is_none() && self.is_active(self.column(set, column).drive);
            match free.get_mut(&target.drive) {
                Some(left) if is_idle && *left > 0 => *left -= 1,
                _ => continue,
            }
            moves.push(ColumnMove { set, column, to: target.drive });
        }
        moves
    }

    /// A free chunklet for a column on the drive to which it belongs, if it can lie there.
    pub fn place_at_home(&self, set: u32, column: u32) -> Option<ChunkletAddress> {
        let home = self.home_of(set, column)?;
        // What another column may hold there is needed more.
        let is_kept = || self.drives_kept_for(set, column).contains(&home);
        if self.column(set, column).drive == home || !self.is_for_data(home) || is_kept() {
            return None;
        }
        let target = self.free_chunklet(home, 0)?;
        self.check_rebuilding(set, column, target).is_ok().then_some(target)
    }

    /// The columns that belong to a member and do not lie there.
    pub fn displaced_from(&self, member: u32) -> impl Iterator<Item = (u32, u32)> {
        let displaced = self.inventory.displaced.iter();
        displaced.filter(move |(_, home)| **home == member).map(|(column, _)| *column)
    }

    /// Whether other columns of a set belong to a member.
    pub(crate) fn is_home_of_others(&self, (set, column): (u32, u32), member: u32) -> bool {
        let mut of_set = self.inventory.displaced.range((set, 0)..=(set, u32::MAX));
        of_set.any(|((_, other), home)| *other != column && *home == member)
    }

    /// A column has come from one chunklet to another: it is at home, or away from a drive that is lost.
    pub(super) fn note_displaced(&mut self, place: (u32, u32), before: u32, now: u32) {
        let [left, taken] = [before, now].map(|member| &self.inventory.members[member as usize]);
        // A drive that was taken back is another member of the same name.
        let is_lost = left.state == MemberState::Lost && left.name != taken.name;
        // What is not for data is nobody's home.
        let has_left = is_lost && left.role != DriveRole::Auxiliary;
        let displaced = &mut self.inventory.displaced;
        if displaced.get(&place) == Some(&now) {
            displaced.remove(&place);
        } else if has_left {
            displaced.entry(place).or_insert(before);
        }
    }

    /// A member takes the place of another: what belongs there belongs to it.
    pub(super) fn replace_home(&mut self, member: u32, by: u32) {
        if self.inventory.members[by as usize].role == DriveRole::Auxiliary {
            return;
        }
        self.inventory.displaced.values_mut().filter(|home| **home == member).for_each(|home| *home = by);
        let own = self.owned(member).filter_map(|(_, owner)| match owner {
            Owner::Set { set, column } | Owner::Target { set, column } => Some((*set, *column)),
            Owner::Log | Owner::FlashCache => None,
        });
        let is_own = |(set, column): &(u32, u32)| self.column(*set, *column).drive == member;
        let own: Vec<(u32, u32)> = own.filter(is_own).collect();
        for place in own {
            self.inventory.displaced.entry(place).or_insert(by);
        }
    }

    /// A member stays: the columns that lie on it belong to it, also where another member was to replace it.
    pub(super) fn keep_columns_of(&mut self, member: u32) {
        let displaced = std::mem::take(&mut self.inventory.displaced);
        let stays = |(set, column): &(u32, u32)| self.column(*set, *column).drive == member;
        self.inventory.displaced = displaced.into_iter().filter(|(place, _)| !stays(place)).collect();
    }

    /// A member is no longer one: nothing belongs to it.
    pub(super) fn forget_home(&mut self, member: u32) {
        self.inventory.displaced.retain(|_, home| *home != member);
    }

    /// Whether one member can be said to take the place of another.
    pub(super) fn check_replaced(&self, member: u32, by: u32) -> Result<(), MetaError> {
        self.check_active(by)?;
        match self.check_member(member)?.state {
            MemberState::Removed => self.check_active(member),
            MemberState::Active | MemberState::Lost => Ok(()),
        }
    }
}
