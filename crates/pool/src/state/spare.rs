//! Free chunklets, and which of them a lost column should move to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::ChunkletAddress;
use crate::state::{DriveClass, Member, Owner, PoolState};

/// A member that could have a column.
struct Candidate {
    place: u32,
    class: DriveClass,
    /// No other column of the set is to return there with what only it may hold.
    is_left_alone: bool,
    /// No other column of the set belongs there.
    is_nobodys_home: bool,
}

impl PoolState {
    /// Free chunklets of a member, the ones kept for rebuilding included, but not those to which columns may return; none
    /// where it does not serve, or is to leave.
    pub fn free_chunklets(&self, member: u32) -> u64 {
        match self.member(member) {
            Some(drive) if drive.takes_more() => {
                self.ownerless_chunklets(member) - self.reserved(member).len() as u64
            }
            _ => 0,
        }
    }

    /// Chunklets of a member that have no owner.
    pub(crate) fn ownerless_chunklets(&self, member: u32) -> u64 {
        let all = self.member(member).map_or(0, |drive| self.geometry.chunklets(drive.sectors));
        all - self.owned(member).count() as u64
    }

    /// Whether a member has less free than it is to keep for rebuilding.
    pub fn spares_are_short(&self, member: u32) -> bool {
        self.free_chunklets(member) < self.spares_of(member)
    }

    /// Chunklets that a member keeps free for rebuilding.
    pub fn spares_of(&self, member: u32) -> u64 {
        let group = self.member(member).and_then(|member| self.groups().get(member.group as usize));
        group.filter(|group| !group.is_gone()).map_or(0, |group| group.spare_chunklets)
    }

    /// Chunklets of a member that the pool uses.
    pub fn used_chunklets(&self, member: u32) -> u64 {
        self.owned(member).count() as u64
    }

    /// The free chunklet of a member with the lowest number at or above `from`.
    pub fn free_chunklet(&self, member: u32, from: u32) -> Option<ChunkletAddress> {
        let drive = self.member(member).filter(|drive| drive.takes_more())?;
        let count = self.geometry.chunklets(drive.sectors);
        let (mut owned, reserved) = (self.owned_from(member, from).peekable(), self.reserved(member));
        let mut index = from;
        while owned.next_if_eq(&index).is_some() || reserved.contains(&index) {
            index += 1;
        }
        (u64::from(index) < count).then_some(ChunkletAddress { drive: member, index })
    }

    /// The free chunklets of a member in runs, the lowest first; none where it does not serve.
    pub fn free_runs(&self, member: u32) -> Vec<Range<u32>> {
        let (mut runs, reserved) = (Vec::new(), self.reserved(member));
        let mut from = 0;
        while let Some(first) = self.free_chunklet(member, from) {
            let next_reserved = reserved.range(first.index..).next().copied();
            let next_taken =
                self.owned_from(member, first.index).next().into_iter().chain(next_reserved).min();
            let count = self.geometry.chunklets(self.inventory.members[member as usize].sectors) as u32;
            let end = next_taken.unwrap_or(count);
            runs.push(first.index..end);
            from = end;
        }
        runs
    }

    /// The first of `count` free chunklets of a member that lie side by side.
    pub fn free_run(&self, member: u32, count: u64) -> Option<ChunkletAddress> {
        let run = self.free_runs(member).into_iter().find(|run| run.len() as u64 >= count)?;
        Some(ChunkletAddress { drive: member, index: run.start })
    }

    /// Whether a member has columns of sets, or takes some over.
    pub fn has_columns(&self, member: u32) -> bool {
        self.owned(member).any(|(_, owner)| matches!(owner, Owner::Set { .. } | Owner::Target { .. }))
    }

    /// Free chunklets by member.
    pub(super) fn free_by_member(&self) -> BTreeMap<u32, u64> {
        self.members_by_place().map(|(place, _)| (place, self.free_chunklets(place))).collect()
    }

    /// Where a lost column of a set, or one that is to leave its drive, should go: to the drive that replaces its own if it
    /// can, or else to the member that the set does not use, of the class of the present one if there is such a member, with
    /// the most free chunklets; only where no other is left, to one to which another column of the set is to return. A column
    /// that a drive of data still has does not go to one that is not for data ([`PoolState::is_for_data`]). Called for set
    /// after set, with the records applied in between, this spreads a rebuild over all drives. Where no chunklet is free, the one is left that is kept for the column itself. A column that was moving
    /// from a drive that serves goes back to where it is.
    pub fn choose_spare(&self, set: u32, column: u32) -> Option<ChunkletAddress> {
        let lost = self.member(self.column(set, column).drive)?;
        let back = self.place_to_go_back(set, column);
        // One that is to leave stays where it is only if there is no other place.
        if lost.takes_more() && back.is_some() {
            return back;
        }
        if let Some(home) = self.place_at_home(set, column) {
            return Some(home);
        }
        let place = self.choose_drive(set, column, lost.class, |place| self.free_chunklets(place));
        let free = place.and_then(|place| self.free_chunklet(place, 0));
        free.or_else(|| self.own_place(set, column)).or(back)
    }

    /// The chunklet that a column has on a drive that serves, while the drive that it was moving to is lost: it can be rebuilt
    /// where it is.
    pub(crate) fn place_to_go_back(&self, set: u32, column: u32) -> Option<ChunkletAddress> {
        let under_way = self.rebuild(set, column)?;
        let own = self.column(set, column);
        (!self.is_active(under_way.target.drive) && self.is_active(own.drive)).then_some(own)
    }

    /// The member on which a column should go on, where every member has so many `free` chunklets.
    fn choose_drive(
        &self,
        set: u32,
        column: u32,
        class: DriveClass,
        free: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        let lies_on = [self.column(set, column).drive, self.place_of(set, column).drive];
        // What was given for the log alone holds data only if nothing else restores redundancy.
        let may_be_any = lies_on.iter().any(|drive| !self.is_active(*drive) || !self.is_for_data(*drive));
        let weighted = self.candidates(set, column).filter_map(|candidate| {
            let (place, is_for_data) = (candidate.place, self.is_for_data(candidate.place));
            let (free, is_class) = (free(place), candidate.class == class);
            let rank = (candidate.is_left_alone, is_for_data, candidate.is_nobodys_home, is_class, free);
            (free > 0 && (is_for_data || may_be_any)).then_some((rank, std::cmp::Reverse(place)))
        });
        weighted.max().map(|(_, std::cmp::Reverse(place))| place)
    }

    /// The member of data on which a column should go on that lies on one that is not for data.
    pub(super) fn choose_data_drive(&self, set: u32, column: u32, free: impl Fn(u32) -> u64) -> Option<u32> {
        let weighted = self.candidates(set, column).filter_map(|candidate| {
            let (place, free) = (candidate.place, free(candidate.place));
            let can_be = free > 0 && candidate.is_left_alone && self.is_for_data(place);
            can_be.then_some((candidate.is_nobodys_home, free, std::cmp::Reverse(place)))
        });
        weighted.max().map(|(.., std::cmp::Reverse(place))| place)
    }

    /// The members that could have a column of a set, as far as the set goes.
    fn candidates(&self, set: u32, column: u32) -> impl Iterator<Item = Candidate> {
        let others = || (0..self.group_of(set).columns()).filter(|other| *other != column);
        let targets = (0..).zip(self.drives_of(set)).filter(|(other, _)| *other != column);
        // What is being evacuated is on two drives until it ends.
        let sources = others().map(|other| self.column(set, other).drive);
        let used: Vec<u32> = targets.map(|(_, drive)| drive).chain(sources).collect();
        let group = self.group_number_of(set);
        let is_own = move |member: &Member| member.group == group;
        let candidates =
            self.members_by_place().filter(move |(place, member)| is_own(member) && !used.contains(place));
        // Another column of the set that is to return to a drive cannot where this one is.
        let kept = self.drives_kept_for(set, column);
        candidates.map(move |(place, member)| Candidate {
            place,
            class: member.class,
            is_left_alone: !kept.contains(&place),
            is_nobodys_home: !self.is_home_of_others((set, column), place),
        })
    }

    /// The columns that are on members that are to leave, and are neither moving nor lost: set and column.
    pub fn leaving_columns(&self) -> impl Iterator<Item = (u32, u32)> {
        self.columns_where(|state, set, column| {
            state.member(state.place_of(set, column).drive).is_some_and(Member::is_being_emptied)
        })
    }

    /// How many of the columns that must move find no place, if this member is to leave too: those that are lost, and
    /// those on members that leave. Nothing is changed.
    pub fn homeless_without(&self, member: u32) -> u64 {
        let mut free = self.free_by_member();
        free.remove(&member);
        let own = self.columns_where(|state, set, column| state.place_of(set, column).drive == member);
        let all = self.lost_columns().chain(self.leaving_columns()).chain(own);
        let all: BTreeSet<(u32, u32)> = all.collect();
        let mut homeless = 0;
        for (set, column) in all {
            let class =
                self.member(self.place_of(set, column).drive).map_or(DriveClass::Disk, |member| member.class);
            let of = |place: u32| free.get(&place).copied().unwrap_or(0);
            match self.choose_drive(set, column, class, of) {
                Some(place) => *free.entry(place).or_default() -= 1,
                None => homeless += 1,
            }
        }
        homeless
    }

    fn columns_where(
        &self,
        is_meant: impl Fn(&PoolState, u32, u32) -> bool,
    ) -> impl Iterator<Item = (u32, u32)> {
        self.all_columns().filter(move |(set, column)| is_meant(self, *set, *column))
    }

    /// The columns that are on members that do not serve and are not being rebuilt on one that does: set and column.
    pub fn lost_columns(&self) -> impl Iterator<Item = (u32, u32)> {
        self.columns_where(|state, set, column| !state.is_active(state.place_of(set, column).drive))
    }

    /// The numbers of a member's chunklets that have an owner, from one on.
    fn owned_from(&self, member: u32, from: u32) -> impl Iterator<Item = u32> {
        let (first, last) = (
            ChunkletAddress { drive: member, index: from },
            ChunkletAddress { drive: member, index: u32::MAX },
        );
        self.inventory.owners.range(first..=last).map(|(chunklet, _)| chunklet.index)
    }

    /// The chunklets of a member that have an owner, in order.
    pub(crate) fn owned(&self, member: u32) -> impl Iterator<Item = (&ChunkletAddress, &Owner)> {
        let first = ChunkletAddress { drive: member, index: 0 };
        let last = ChunkletAddress { drive: member, index: u32::MAX };
        self.inventory.owners.range(first..=last)
    }
}
