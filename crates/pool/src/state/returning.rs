//! What a lost member holds that may be needed when its drive is taken back, and the places that are kept for it.
//!
//! A drive that is taken back joins as a new member, under the name that it had. What the lost member holds lies at the same
//! chunklets of the new one. Until that is no longer needed, nothing else is to be put there; no invariant: the code that chooses
//! chunklets leaves them alone.

use std::collections::BTreeSet;

use crate::state::{Member, MemberState, Owner, PoolState};
use crate::{ChunkletAddress, MetaRecord};

impl PoolState {
    /// What a lost member holds that may be needed: columns that were not rebuilt elsewhere, and those that were while pages
    /// were lost. Set, column and chunklet.
    pub fn returning(&self, lost: u32) -> impl Iterator<Item = (u32, u32, ChunkletAddress)> {
        let own = self.owned(lost).filter_map(|(chunklet, owner)| match owner {
            Owner::Set { set, column } => Some((*set, *column, *chunklet)),
            Owner::Target { .. } | Owner::Log | Owner::FlashCache => None,
        });
        own.chain(self.left_behind(lost))
    }

    /// Of these, the columns that were rebuilt elsewhere.
    pub fn left_behind(&self, lost: u32) -> impl Iterator<Item = (u32, u32, ChunkletAddress)> {
        let first = ChunkletAddress { drive: lost, index: 0 };
        let last = ChunkletAddress { drive: lost, index: u32::MAX };
        let of_member = self.inventory.left_behind.range(first..=last);
        of_member.map(|(chunklet, (set, column))| (*set, *column, *chunklet))
    }

    /// The record by which a column begins to return to a chunklet: it moves there from a drive that serves, or is rebuilt. None
    /// if it is there, is being rebuilt or moved to a drive that serves, or cannot be there. A rebuild or a move whose target is
    /// lost comes to no end: the column is rebuilt from the others, for what had been moved by then is at its old place no more.
    pub fn return_record(&self, (set, column): (u32, u32), target: ChunkletAddress) -> Option<MetaRecord> {
        let (from, under_way) = (self.column(set, column), self.rebuild(set, column));
        if under_way.is_some_and(|rebuild| self.is_active(rebuild.target.drive)) || from == target {
            return None;
        }
        let record = match under_way.is_none() && self.is_active(from.drive) {
            true => MetaRecord::ColumnEvacuating { set, column, target },
            false => MetaRecord::ColumnRebuilding { set, column, target },
        };
        self.check(&record).is_ok().then_some(record)
    }

    /// The member that the drive of a lost one serves as, since it was taken back: no two drives have one name otherwise.
    pub fn serves_as(&self, lost: u32) -> Option<u32> {
        let before = self.member(lost).filter(|member| member.state == MemberState::Lost)?;
        let serves = |(_, member): &(u32, &Member)| member.is_active() && member.name == before.name;
        self.members_by_place().find(serves).map(|(place, _)| place)
    }

    /// Where a column that is lost lay, if its drive has returned, and nothing else is there.
    pub(crate) fn own_place(&self, set: u32, column: u32) -> Option<ChunkletAddress> {
        let lost = self.members_by_place().filter(|(_, member)| member.state == MemberState::Lost);
        let held = lost.flat_map(|(lost, _)| self.returning(lost));
        let own = held.filter(|(its_set, its_column, _)| (*its_set, *its_column) == (set, column));
        let on_return = own.filter_map(|(_, _, old)| {
            let drive = self.serves_as(old.drive)?;
            Some(ChunkletAddress { drive, index: old.index })
        });
        let can_be = |target: &ChunkletAddress| self.check_rebuilding(set, column, *target).is_ok();
        on_return.filter(can_be).last()
    }

    /// The members that keep a chunklet for what may be needed of other columns of a set.
    pub(crate) fn drives_kept_for(&self, set: u32, column: u32) -> BTreeSet<u32> {
        let others = (0..self.group_of(set).columns()).filter(|other| *other != column);
        let at_home = others.map(|other| self.column(set, other).drive);
        let is_other = |(its_set, its_column): &(u32, u32)| *its_set == set && *its_column != column;
        let left = self.inventory.left_behind.iter().filter(|(_, whose)| is_other(whose));
        let places = at_home.chain(left.map(|(chunklet, _)| chunklet.drive));
        places.filter_map(|place| self.serves_as(place)).collect()
    }

    /// The numbers of a member's chunklets that are kept for what lies there, and have no owner.
    pub(crate) fn reserved(&self, place: u32) -> BTreeSet<u32> {
        let Some(member) = self.member(place) else { return BTreeSet::new() };
        let count = self.geometry.chunklets(member.sectors);
        let was_it =
            |(_, other): &(u32, &Member)| other.state == MemberState::Lost && other.name == member.name;
        let before = self.members_by_place().filter(was_it).flat_map(|(lost, _)| self.returning(lost));
        let kept = before.map(|(_, _, chunklet)| chunklet.index);
        let is_free = |index: &u32| {
            let chunklet = ChunkletAddress { drive: place, index: *index };
            u64::from(*index) < count && !self.inventory.owners.contains_key(&chunklet)
        };
        kept.filter(is_free).collect()
    }

    /// A column is rebuilt at a chunklet: if it was there before its drive was lost, it has returned.
    pub(crate) fn note_returned(&mut self, (set, column): (u32, u32), target: ChunkletAddress) {
        let members = &self.inventory.members;
        let is_drive_of = |lost: u32| members[lost as usize].name == members[target.drive as usize].name;
        self.inventory.left_behind.retain(|old, whose| {
            *whose != (set, column) || old.index != target.index || !is_drive_of(old.drive)
        });
    }
}
