//! A lost member that serves again, as the last resort. No record says so: a checkpoint does.

use crate::state::{BitSet, MemberState, MetaError, Owner, PoolState, Rebuild, RebuildSource};

impl PoolState {
    /// Makes a lost member active again.
    pub(crate) fn readmit(&mut self, place: u32) -> Result<(), MetaError> {
        self.check_member(place)?;
        self.inventory.members[place as usize].state = MemberState::Active;
        self.forget_left_behind(place);
        Ok(())
    }

    /// Begins the rebuild of a column in its own chunklet, in the place of one elsewhere.
    pub(crate) fn rebuild_in_place(&mut self, set: u32, column: u32) -> Result<(), MetaError> {
        self.believe_column(set, column)?;
        let target = self.column(set, column);
        let rebuilt = BitSet::new(u64::from(self.group_of(set).slots_per_set));
        let rebuild = Rebuild { target, rebuilt, source: RebuildSource::Lost };
        self.inventory.rebuilds.insert((set, column), rebuild);
        self.inventory.owners.insert(target, Owner::Target { set, column });
        Ok(())
    }

    /// Ends the rebuild of a column, so that its chunklet counts again.
    pub(crate) fn believe_column(&mut self, set: u32, column: u32) -> Result<(), MetaError> {
        self.check_column(set, column)?;
        let own = self.column(set, column);
        self.check_active(own.drive)?;
        if let Some(rebuild) = self.inventory.rebuilds.remove(&(set, column)) {
            self.inventory.owners.remove(&rebuild.target);
            self.inventory.owners.insert(own, Owner::Set { set, column });
        }
        Ok(())
    }
}
