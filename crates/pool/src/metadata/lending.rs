//! Slots and allocation numbers for those who write: lent in memory, so that a crash gives them back by itself.
//!
//! A slot can be lent if no extent has it, nobody has borrowed it, and its last unmapping is stable. What was lent
//! becomes an extent's when a commit maps it, or comes back.

use std::ops::Range;

use super::core::{Core, Metadata};
use crate::state::{BitSet, PoolState};
use crate::{MetaRecord, PoolError, SlotRun};

pub(super) struct Lending {
    /// Slots that cannot be lent: extents have them, or somebody borrowed them, or their unmapping is not stable.
    taken: BitSet,
    /// No slot below this can be lent.
    from: u64,
    next_allocation: u64,
}

impl Lending {
    pub(super) fn new(state: &PoolState) -> Lending {
        Lending { taken: state.used_slots().clone(), from: 0, next_allocation: state.allocation_end() }
    }

    /// What accepted records change: new sets have new slots, and mapped slots are taken whoever mapped them.
    pub(super) fn follow(&mut self, state: &PoolState, records: &[MetaRecord]) {
        self.taken.grow(state.slot_count());
        for record in records {
            if let MetaRecord::MapExtents(runs) = record {
                for slot in runs.iter().flat_map(|run| run.run.iter()) {
                    self.taken.insert(slot.1.slot);
                }
            }
        }
        self.next_allocation = self.next_allocation.max(state.allocation_end());
    }

    fn give_back(&mut self, run: SlotRun) {
        for slot in run.first..run.first + run.count {
            self.taken.remove(slot);
        }
        self.from = self.from.min(run.first);
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

impl Core {
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
        let (reserved, mut lending) =
            (self.0.state.borrow().reserved_slot_count(), self.0.lending.borrow_mut());
        let free = lending.taken.bound() - lending.taken.count();
        lending.take(count.min(free.saturating_sub(reserved)))
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
