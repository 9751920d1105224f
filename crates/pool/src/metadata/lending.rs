//! Slots and allocation numbers for those who write: lent in memory, so that a crash gives them back by itself.
//!
//! A slot can be lent if no extent has it, it is not lent already, and its last unmapping is stable. What was lent
//! becomes an extent's when a commit maps it, or comes back.

use std::collections::BTreeSet;
use std::ops::Range;

use super::core::{Core, Metadata};
use crate::state::{BitSet, PoolState, SlotHome};
use crate::{MetaError, MetaRecord, PoolError, SlotRun};

pub(super) struct Lending {
    /// Slots that cannot be lent: extents have them, or they are lent, or their unmapping is not stable.
    taken: BitSet,
    /// Those of them that were lent for thick volumes and that no extent has yet.
    for_thick: BTreeSet<u64>,
    /// No slot below this can be lent.
    from: u64,
    next_allocation: u64,
}

impl Lending {
    pub(super) fn new(state: &PoolState) -> Lending {
        let (taken, next_allocation) = (state.used_slots().clone(), state.allocation_end());
        Lending { taken, for_thick: BTreeSet::new(), from: 0, next_allocation }
    }

    /// What accepted records change: new sets have new slots, and mapped slots are taken, whichever task mapped them.
    pub(super) fn follow(&mut self, state: &PoolState, records: &[MetaRecord]) {
        self.taken.grow(state.slot_count());
        for record in records {
            if let MetaRecord::MapExtents(runs) = record {
                for slot in runs.iter().flat_map(|run| run.run.iter()) {
                    self.taken.insert(slot.1.slot);
                    self.for_thick.remove(&slot.1.slot);
                }
            }
        }
        self.next_allocation = self.next_allocation.max(state.allocation_end());
    }

    fn give_back(&mut self, run: SlotRun) {
        for slot in run.first..run.first + run.count {
            self.taken.remove(slot);
            self.for_thick.remove(&slot);
        }
        self.from = self.from.min(run.first);
    }

    /// Free slots, and how many of them thick volumes have reserved and not borrowed.
    fn free(&self, state: &PoolState) -> (u64, u64) {
        let free = self.taken.bound() - self.taken.count();
        (free, state.reserved_slot_count().saturating_sub(self.for_thick.len() as u64))
    }

    /// Whether thick volumes may reserve what these records reserve: what was lent to thin ones is theirs, mapped or
    /// not, because data that was acknowledged may wait for it.
    pub(super) fn check(&self, state: &PoolState, records: &[MetaRecord]) -> Result<(), MetaError> {
        let wanted: u64 = records.iter().map(|record| reserved_by(state, record)).sum();
        let (free, reserved) = self.free(state);
        let free = free.saturating_sub(reserved);
        if wanted > free { Err(MetaError::NoSpace { wanted, free }) } else { Ok(()) }
    }

    fn take(&mut self, count: u64) -> Vec<SlotRun> {
        let mut runs: Vec<SlotRun> = Vec::new();
        for _ in 0..count {
            let Some(slot) = self.taken.next_missing(self.from) else { break };
            self.taken.insert(slot);
            self.from = slot + 1;
            match runs.last_mut() {
                Some(run) if run.first + run.count == slot => run.count += 1,
                _ => runs.push(SlotRun { first: slot, count: 1 }),
            }
        }
        runs
    }
}

/// Slots that a record reserves for a thick volume.
fn reserved_by(state: &PoolState, record: &MetaRecord) -> u64 {
    match record {
        MetaRecord::VolumeCreated(volume) if !volume.thin => state.extents_of(volume.sectors),
        MetaRecord::VolumeResized { volume, sectors } => match state.volume(*volume) {
            Some(volume) if !volume.thin => {
                state.extents_of(*sectors).saturating_sub(state.extents_of(volume.sectors))
            }
            _ => 0,
        },
        _ => 0,
    }
}

/// Allocation numbers that a start leaves out at most, 2^40: starts of copies of a pool give different ones, and there are
/// enough for eight million starts.
const SKIPPED_BITS: u32 = 40;

impl Core {
    /// Leaves out allocation numbers at random: no table and no intent of a copy of the pool that was served elsewhere
    /// speaks of those that this start gives.
    pub(super) fn skip_allocations(&self) {
        let mut lending = self.lending.borrow_mut();
        let skipped = self.world.nonce() >> (u64::BITS - SKIPPED_BITS);
        lending.next_allocation = lending.next_allocation.saturating_add(skipped);
    }

    /// These slots are free, and that is stable. One that a later commit of the same slot mapped again stays taken.
    pub(super) fn free(&self, runs: &[SlotRun]) {
        let (state, mut lending) = (self.state.borrow(), self.lending.borrow_mut());
        for run in runs {
            if !state.used_slots().contains(run.first) {
                lending.give_back(*run);
            }
        }
    }
}

impl Metadata {
    /// Lends up to `count` slots, the lowest first: fewer, or none, where no more are free. Slots that thick volumes have
    /// reserved are not lent.
    pub fn lend_slots(&self, count: u64) -> Vec<SlotRun> {
        let (state, mut lending) = (self.0.state.borrow(), self.0.lending.borrow_mut());
        let (free, reserved) = lending.free(&state);
        lending.take(count.min(free.saturating_sub(reserved)))
    }

    /// Lends up to `count` slots that thick volumes have reserved, for their extents.
    pub fn lend_reserved_slots(&self, count: u64) -> Vec<SlotRun> {
        let (state, mut lending) = (self.0.state.borrow(), self.0.lending.borrow_mut());
        let (_, reserved) = lending.free(&state);
        let runs = lending.take(count.min(reserved));
        lending.for_thick.extend(runs.iter().flat_map(|run| run.first..run.first + run.count));
        runs
    }

    /// Lends the lowest free slot of a set; none where it has none, or where thick volumes have reserved all that is free.
    pub fn lend_slot_of(&self, set: u32) -> Option<u64> {
        let (state, mut lending) = (self.0.state.borrow(), self.0.lending.borrow_mut());
        let (free, reserved) = lending.free(&state);
        if free <= reserved {
            return None;
        }
        let homes = (0..state.geometry().slots_per_set).map(|index| SlotHome { set, index });
        let slot =
            homes.filter_map(|home| state.slot_at(home)).find(|slot| !lending.taken.contains(*slot))?;
        lending.taken.insert(slot);
        Some(slot)
    }

    /// Takes lent slots back that no extent has got.
    pub fn return_slots(&self, runs: &[SlotRun]) {
        let (state, mut lending) = (self.0.state.borrow(), self.0.lending.borrow_mut());
        for slot in runs.iter().flat_map(|run| run.first..run.first + run.count) {
            assert!(!state.used_slots().contains(slot), "slot {slot} has an extent and cannot be returned");
            lending.give_back(SlotRun { first: slot, count: 1 });
        }
    }

    /// Slots that can be lent now, what thick volumes have reserved included.
    pub fn lendable_slots(&self) -> u64 {
        let lending = self.0.lending.borrow();
        lending.taken.bound() - lending.taken.count()
    }

    /// Slots that thin volumes can be lent now.
    pub fn free_slots(&self) -> u64 {
        let (state, lending) = (self.0.state.borrow(), self.0.lending.borrow());
        let (free, reserved) = lending.free(&state);
        free.saturating_sub(reserved)
    }

    /// Slots that were lent, not for thick volumes, and that no extent has got, or whose unmapping is not stable yet.
    pub fn lent_slots(&self) -> u64 {
        let (state, lending) = (self.0.state.borrow(), self.0.lending.borrow());
        let known = state.used_slots().count() + lending.for_thick.len() as u64;
        lending.taken.count().saturating_sub(known)
    }

    /// Reserves `count` allocation numbers, never given before; ends when no later opening can give them again. They
    /// are not scarce: take many thousands at once.
    pub async fn reserve_allocations(&self, count: u64) -> Result<Range<u64>, PoolError> {
        let first = {
            let mut lending = self.0.lending.borrow_mut();
            let first = lending.next_allocation;
            lending.next_allocation = first.saturating_add(count);
            first
        };
        let end = first.saturating_add(count);
        self.commit(vec![MetaRecord::AllocationsReserved { end }]).await?;
        Ok(first..end)
    }
}
