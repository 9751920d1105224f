//! Free chunklets, and which of them a lost column should move to.

use std::ops::Range;

use crate::ChunkletAddress;
use crate::state::{Owner, PoolState};

impl PoolState {
    /// Free chunklets of a member, the ones kept for rebuilding included; none where it does not serve.
    pub fn free_chunklets(&self, member: u32) -> u64 {
        match self.member(member) {
            Some(drive) if drive.is_active() => {
                self.geometry.chunklets(drive.sectors) - self.owned(member).count() as u64
            }
            _ => 0,
        }
    }

    /// The free chunklet of a member with the lowest number at or above `from`.
    pub fn free_chunklet(&self, member: u32, from: u32) -> Option<ChunkletAddress> {
        let drive = self.member(member).filter(|drive| drive.is_active())?;
        let count = self.geometry.chunklets(drive.sectors);
        let mut index = from;
        for (chunklet, _) in self.owned(member).filter(|(chunklet, _)| chunklet.index >= from) {
            if chunklet.index > index {
                break;
            }
            index = chunklet.index + 1;
        }
        (u64::from(index) < count).then_some(ChunkletAddress { drive: member, index })
    }

    /// The free chunklets of a member in runs, the lowest first; none where it does not serve.
    pub fn free_runs(&self, member: u32) -> Vec<Range<u32>> {
        let mut runs = Vec::new();
        let mut from = 0;
        while let Some(first) = self.free_chunklet(member, from) {
            let next_owned =
                self.owned(member).map(|(chunklet, _)| chunklet.index).find(|i| *i > first.index);
            let count = self.geometry.chunklets(self.inventory.members[member as usize].sectors) as u32;
            let end = next_owned.unwrap_or(count);
            runs.push(first.index..end);
            from = end;
        }
        runs
    }

    /// Whether a member has columns of sets, or takes some over.
    pub fn has_columns(&self, member: u32) -> bool {
        self.owned(member).any(|(_, owner)| !matches!(owner, Owner::Log))
    }

    /// Where a lost column of a set should be rebuilt: on the member that the set does not use, of the class of the
    /// lost one if there is such a member, with the most free chunklets. Called for set after set, with the records
    /// applied in between, this spreads a rebuild over all drives. None if there is no free chunklet.
    pub fn choose_spare(&self, set: u32, column: u32) -> Option<ChunkletAddress> {
        let lost = self.member(self.column(set, column).drive)?;
        let used: Vec<u32> = (0..self.geometry.columns())
            .zip(self.drives_of(set))
            .filter(|(other, _)| *other != column)
            .map(|(_, drive)| drive)
            .collect();
        let candidates = self.members_by_place().filter(|(place, _)| !used.contains(place));
        let weighted = candidates.filter_map(|(place, member)| {
            let free = self.free_chunklets(place);
            (free > 0).then_some((member.class == lost.class, free, std::cmp::Reverse(place)))
        });
        let (_, _, std::cmp::Reverse(place)) = weighted.max()?;
        self.free_chunklet(place, 0)
    }

    /// The columns that are on members that do not serve and are not being rebuilt on one that does: set and column.
    pub fn lost_columns(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = (0..self.set_count()).flat_map(|set| (0..self.geometry.columns()).map(move |c| (set, c)));
        all.filter(|(set, column)| {
            let target = self.rebuild(*set, *column).map(|rebuild| rebuild.target);
            !self.is_active(target.unwrap_or_else(|| self.column(*set, *column)).drive)
        })
    }

    /// The chunklets of a member that somebody has, in order.
    pub(crate) fn owned(&self, member: u32) -> impl Iterator<Item = (&ChunkletAddress, &Owner)> {
        let first = ChunkletAddress { drive: member, index: 0 };
        let last = ChunkletAddress { drive: member, index: u32::MAX };
        self.inventory.owners.range(first..=last)
    }
}
