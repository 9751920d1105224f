//! Believing members again that were lost: the last resort, by the administrator's decision and never by itself.
//!
//! Who is readmitted is written as if it had never left: its superblock says that it serves, and so does the checkpoint
//! that opening writes. Until both are complete the superblocks say also in which generation it was lost; a start that
//! finds that takes it for lost, as before, and the decision has to be taken again.

use std::collections::BTreeSet;

use tier0_drive::DriveHandle;

use super::open::{Inspected, MISSING_STEPS};
use super::survey::{FoundMember, FoundPool, StaleMember, Standing};
use crate::state::MemberState;
use crate::{MetaError, MetaRecord, PoolError};

/// In the label of a member that is being believed again: it was not lost, but put back to an older state.
pub(super) const NEVER_LOST: u64 = 1;

/// A member that is there and not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unbelieved {
    /// Its place among the members.
    pub place: u32,
    /// The generation of its own superblock.
    pub generation: u64,
    /// Whether it was put back to an older image, and is not called lost.
    pub is_rolled_back: bool,
}

impl FoundPool {
    /// The members that are there and not believed, and could be believed again: no member serves under their names.
    pub fn unbelieved(&self) -> Vec<Unbelieved> {
        let serving: BTreeSet<&String> = self
            .members
            .iter()
            .map(|found| &found.member)
            .filter(|m| m.is_active())
            .map(|m| &m.name)
            .collect();
        let one = |(place, found): (u32, &FoundMember)| {
            // What a copy of the array has acknowledged was never this one's.
            let stale = found.stale.as_ref().filter(|stale| !stale.is_of_a_copy)?;
            let is_rolled_back = found.standing == Standing::RolledBack;
            let is_free = is_rolled_back
                || found.standing == Standing::Overwritten
                || !serving.contains(&found.member.name);
            let generation = stale.generation;
            is_free.then_some(Unbelieved { place, generation, is_rolled_back })
        };
        (0u32..).zip(&self.members).filter_map(one).collect()
    }

    /// The drive of a member that is there and not believed.
    pub fn unbelieved_drive(&self, place: u32) -> Option<DriveHandle> {
        Some(self.members.get(place as usize)?.stale.as_ref()?.drive.clone())
    }

    /// Whether a member is there and was served elsewhere: its drive belongs to a copy of the array.
    pub fn is_of_a_copy(&self, place: u32) -> bool {
        let found = self.members.get(place as usize).and_then(|found| found.stale.as_ref());
        found.is_some_and(|stale| stale.is_of_a_copy)
    }

    /// The generation of the superblocks in which a member left service. [`u64::MAX`] where it serves, or should and is not
    /// there, or is there as it was earlier: the pool went on with it. Where that was not recorded, it is the one after
    /// that of its own superblock; 1, the earliest there can be, if that is not there either.
    pub fn left_in(&self, place: u32) -> u64 {
        let Some(found) = self.members.get(place as usize) else { return 1 };
        let after_own = || found.stale.as_ref().map_or(1, |stale| stale.generation + 1);
        match found.standing {
            Standing::Present | Standing::Missing | Standing::RolledBack | Standing::Overwritten => u64::MAX,
            Standing::Stale | Standing::Lost | Standing::Removed => {
                self.label.lost_in.get(&place).copied().unwrap_or_else(after_own)
            }
        }
    }

    /// The generation of the superblocks until which a drive holds what was true: the one in which it left service, but
    /// earlier where it was put back to an older state, which its own superblock shows.
    pub fn holds_until(&self, place: u32) -> u64 {
        let own = self.members.get(place as usize).and_then(|found| found.stale.as_ref());
        let left_in = self.left_in(place);
        // A start that misses a drive leaves out a generation, in which the drive may have been asked for nothing.
        let steps = if self.label.starts.begins_with(left_in) { MISSING_STEPS } else { 1 };
        left_in.min(own.map_or(u64::MAX, |stale| stale.generation + steps))
    }

    /// Where no member that has the metadata serves, believes the drives again that were overwritten at the front: what
    /// is wrong on them shows by its checksums. Those too for which that was broken off before. Their places; none
    /// where one serves.
    pub fn readmit_overwritten(&mut self) -> Vec<u32> {
        if !matches!(self.problem, Some(PoolError::NoQuorum { .. } | PoolError::NoCarrier { .. })) {
            return Vec::new();
        }
        let is_meant = |one: &Unbelieved| match self.members[one.place as usize].standing {
            Standing::Overwritten => true,
            standing => standing == Standing::RolledBack && self.is_half_recovered,
        };
        let places: Vec<u32> =
            self.unbelieved().iter().filter(|one| is_meant(one)).map(|one| one.place).collect();
        places.iter().for_each(|place| _ = self.readmit(*place));
        if !places.is_empty() {
            self.problem = self.quorum_problem();
        }
        places
    }

    /// Believes a member again that is there: with what it holds, whatever it has missed. Nothing is written before the
    /// pool is opened. False if it is not one of [`FoundPool::unbelieved`].
    pub fn readmit(&mut self, place: u32) -> bool {
        if !self.unbelieved().iter().any(|member| member.place == place) {
            return false;
        }
        let since = match self.left_in(place) {
            u64::MAX => NEVER_LOST,
            left_in => left_in,
        };
        let found = &mut self.members[place as usize];
        let Some(StaleMember { drive, next_copy, .. }) = found.stale.take() else { return false };
        found.member.state = MemberState::Active;
        found.standing = Standing::Present;
        found.drive = Some(drive);
        found.next_copy = next_copy;
        found.is_readmitted = true;
        // Until all labels and the metadata know that it serves, the labels know that it did not.
        self.label.lost_in.insert(place, since);
        self.label.members[place as usize].state = MemberState::Active;
        self.is_uneven = true;
        true
    }
}

impl Inspected {
    /// Ends rebuilds whose targets have everything, so that no set counts as lacking two columns where it lacks one.
    ///
    /// # Errors
    /// [`PoolError`] where the state refuses it.
    pub fn finish_rebuilds(&mut self) -> Result<(), PoolError> {
        let state = &mut self.opening.state;
        let columns = state.rebuilds().map(|(set, column, _)| {
            // The administrator has accepted that something is lost.
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages: true }
        });
        let complete: Vec<MetaRecord> = columns.filter(|record| state.check(record).is_ok()).collect();
        Ok(state.apply_all(&complete)?)
    }

    /// No flash cache is believed any more: it may hold what no drive does. The epochs of its devices go on by `step`.
    ///
    /// # Errors
    /// [`PoolError`] where the state refuses it.
    pub fn disown_flash_cache(&mut self, step: u64) -> Result<(), PoolError> {
        let state = &mut self.opening.state;
        let mut placement = state.flash_cache().clone();
        if placement.devices.is_empty() {
            return Ok(());
        }
        placement.devices.iter_mut().for_each(|device| device.epoch = device.epoch.saturating_add(step));
        Ok(state.apply_all(&[MetaRecord::FlashCachePlaced(placement)])?)
    }

    /// Has columns rebuilt where they lie: what they hold is not believed, although their drive is. Set and column each.
    ///
    /// # Errors
    /// [`PoolError`] where there is no such column, or it cannot be rebuilt there.
    pub fn rebuild_in_place(&mut self, columns: &[(u32, u32)]) -> Result<(), PoolError> {
        let state = &mut self.opening.state;
        columns.iter().try_for_each(|(set, column)| state.rebuild_in_place(*set, *column))?;
        Ok(state.verify()?)
    }

    /// Ends the rebuilds of columns elsewhere, so that what they hold where they lie is believed. Set and column each.
    ///
    /// # Errors
    /// [`PoolError`] where a column's drive does not serve.
    pub fn believe_columns(&mut self, columns: &[(u32, u32)]) -> Result<(), PoolError> {
        let state = &mut self.opening.state;
        let believed: Result<(), MetaError> =
            columns.iter().try_for_each(|(set, column)| state.believe_column(*set, *column));
        believed?;
        Ok(state.verify()?)
    }
}
