//! Slots and allocation numbers for those who write: allocated in memory, so that a crash gives them back by itself.
//!
//! A slot can be allocated if no extent has it, it is not allocated already, and its last unmapping is stable. What was allocated
//! becomes an extent's when a commit maps it, or comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use tier0_world::sync::Notify;

use super::core::{Core, Metadata};
use crate::state::{Claim, PoolState, SlotHome, SlotSet};
use crate::{MetaError, MetaRecord, PoolError, SlotRun};

pub(super) struct Allocator {
    /// Slots that cannot be allocated: extents have them, or they are allocated, or their unmapping is not stable.
    taken: SlotSet,
    /// Those of them that were allocated for thick volumes and that no extent has yet.
    for_thick: BTreeSet<u64>,
    /// By group: none of its slots below this can be allocated.
    from: Vec<u64>,
    next_allocation: u64,
}

impl Allocator {
    pub(super) fn new(state: &PoolState) -> Allocator {
        let (taken, next_allocation) = (state.used_by_group().clone(), state.allocation_end());
        let from = vec![0; state.groups().len()];
        Allocator { taken, for_thick: BTreeSet::new(), from, next_allocation }
    }

    /// What accepted records change: new sets have new slots, and mapped slots are taken, whichever task mapped them.
    pub(super) fn follow(&mut self, state: &PoolState, records: &[MetaRecord]) {
        if self.taken.bits().bound() != state.slot_count() {
            self.taken.grow(state.slot_stretches());
        }
        self.from.resize(state.groups().len(), 0);
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
        if run.count > 0 {
            let from = &mut self.from[self.taken.group_of(run.first) as usize];
            *from = run.first.min(*from);
        }
    }

    /// Slots of a group that can be allocated, and how many of them thick volumes have reserved and were not allocated. One that does
    /// not stay has none.
    fn free(&self, state: &PoolState, group: u32) -> (u64, u64) {
        if !state.group_stays(group) {
            return (0, 0);
        }
        let (_, free) = self.taken.counts_of(group);
        (free, state.reserved_slot_count_of(group).saturating_sub(self.allocated_for_thick(group)))
    }

    /// Slots of a group that are allocated for thick volumes and that no extent has yet.
    fn allocated_for_thick(&self, group: u32) -> u64 {
        self.for_thick.iter().filter(|slot| self.taken.group_of(**slot) == group).count() as u64
    }

    /// Whether thick volumes may reserve what these records reserve: what was allocated to thin ones is theirs, mapped or
    /// not, because data that was acknowledged may wait for it.
    pub(super) fn check(&self, state: &PoolState, records: &[MetaRecord]) -> Result<(), MetaError> {
        let mut wanted: BTreeMap<u32, u64> = BTreeMap::new();
        for (group, slots) in records.iter().filter_map(|record| reserved_by(state, record)) {
            *wanted.entry(group).or_default() += slots;
        }
        let lacks = |(group, wanted): (u32, u64)| {
            let (free, reserved) = self.free(state, group);
            let free = free.saturating_sub(reserved);
            (wanted > free).then_some(MetaError::NoSpace { wanted, free })
        };
        wanted.into_iter().find_map(lacks).map_or(Ok(()), Err)
    }

    fn take(&mut self, group: u32, count: u64) -> Vec<SlotRun> {
        let mut runs: Vec<SlotRun> = Vec::new();
        for _ in 0..count {
            let from = &mut self.from[group as usize];
            let Some(slot) = self.taken.next_missing(group, *from) else { break };
            self.taken.insert(slot);
            *from = slot + 1;
            match runs.last_mut() {
                Some(run) if run.first + run.count == slot => run.count += 1,
                _ => runs.push(SlotRun { first: slot, count: 1 }),
            }
        }
        runs
    }
}

/// Slots that a record reserves for a thick volume, and the group in which.
fn reserved_by(state: &PoolState, record: &MetaRecord) -> Option<(u32, u64)> {
    match record {
        MetaRecord::VolumeCreated(volume) if !volume.thin => {
            Some((volume.group, state.extents_of(volume.sectors)))
        }
        // A thick volume has no clones.
        MetaRecord::FamilyGroupChanged { family, group } => {
            let volume = state.volume(*family).filter(|volume| !volume.thin && volume.group != *group)?;
            Some((*group, state.wanted_in(volume, *group)))
        }
        MetaRecord::VolumeResized { volume, sectors } => {
            let volume = state.volume(*volume).filter(|volume| !volume.thin)?;
            let more = state.extents_of(*sectors).saturating_sub(state.extents_of(volume.sectors));
            Some((volume.group, more))
        }
        _ => None,
    }
}

/// Allocation numbers that a start leaves out at most, 2^40: starts of copies of a pool give different ones, and there are
/// enough for eight million starts.
const SKIPPED_BITS: u32 = 40;

impl Core {
    /// Leaves out allocation numbers at random: no table and no intent of a copy of the pool that was served elsewhere
    /// speaks of those that this start gives.
    pub(super) fn skip_allocations(&self) {
        let mut allocator = self.allocator.borrow_mut();
        let skipped = self.world.nonce() >> (u64::BITS - SKIPPED_BITS);
        allocator.next_allocation = allocator.next_allocation.saturating_add(skipped);
    }

    /// These slots are free, and that is stable. One that a later commit of the same slot mapped again stays taken.
    pub(super) fn free(self: &Rc<Self>, runs: &[SlotRun]) {
        let mut free: Vec<SlotRun> = runs.to_vec();
        free.retain(|run| !self.state.borrow().used_slots().contains(run.first));
        match &*self.on_freed.borrow() {
            Some(hook) if !free.is_empty() => {
                hook(&Metadata(self.clone()), free.iter().map(|run| run.first).collect());
            }
            _ if free.is_empty() => {}
            _ => {
                free.into_iter().for_each(|run| self.allocator.borrow_mut().give_back(run));
                self.slots_returned.notify_all();
            }
        }
    }
}

impl Metadata {
    /// Allocates up to `count` slots, the lowest of the group first: fewer, or none, where no more are free. Thin volumes get
    /// none that thick ones have reserved, and thick ones no others.
    pub fn allocate_slots(&self, claim: Claim, count: u64) -> Vec<SlotRun> {
        let (state, mut allocator) = (self.0.state.borrow(), self.0.allocator.borrow_mut());
        let (free, reserved) = allocator.free(&state, claim.group);
        if free == 0 {
            return Vec::new();
        }
        if claim.thin {
            return allocator.take(claim.group, count.min(free.saturating_sub(reserved)));
        }
        let runs = allocator.take(claim.group, count.min(reserved));
        allocator.for_thick.extend(runs.iter().flat_map(|run| run.first..run.first + run.count));
        runs
    }

    /// Allocates the lowest free slot of a set; `None` if it has none, or where thick volumes have reserved all of its group
    /// that is free.
    pub fn allocate_slot_of(&self, set: u32) -> Option<u64> {
        let (state, mut allocator) = (self.0.state.borrow(), self.0.allocator.borrow_mut());
        let (free, reserved) = allocator.free(&state, state.group_number_of(set));
        if free <= reserved {
            return None;
        }
        let homes = (0..state.group_of(set).slots_per_set).map(|index| SlotHome { set, index });
        let slot =
            homes.filter_map(|home| state.slot_at(home)).find(|slot| !allocator.taken.contains(*slot))?;
        allocator.taken.insert(slot);
        Some(slot)
    }

    /// Takes allocated slots back that no extent has got.
    pub fn return_slots(&self, runs: &[SlotRun]) {
        let (state, mut allocator) = (self.0.state.borrow(), self.0.allocator.borrow_mut());
        for slot in runs.iter().flat_map(|run| run.first..run.first + run.count) {
            assert!(!state.used_slots().contains(slot), "slot {slot} has an extent and cannot be returned");
            allocator.give_back(SlotRun { first: slot, count: 1 });
        }
        drop((state, allocator));
        // Who waits for slots has all reserves recalled in between: that nothing came back is no news.
        if !runs.is_empty() {
            self.0.slots_returned.notify_all();
        }
    }

    /// Rung when slots can be allocated that could not before: they were freed, or have come back. A task that found none and waits
    /// for this before it awaits anything else misses nothing.
    pub fn slots_returned(&self) -> &Notify {
        &self.0.slots_returned
    }

    /// Slots of a group that can be allocated now, what thick volumes have reserved included.
    pub fn allocatable_slots(&self, group: u32) -> u64 {
        self.0.allocator.borrow().taken.counts_of(group).1
    }

    /// Whether no slot of a group has an extent, was allocated, or is still to be freed.
    pub fn is_group_empty(&self, group: u32) -> bool {
        self.0.allocator.borrow().taken.counts_of(group).0 == 0
    }

    /// Slots of a group that thin volumes can get now.
    pub fn free_slots(&self, group: u32) -> u64 {
        let (state, allocator) = (self.0.state.borrow(), self.0.allocator.borrow());
        let (free, reserved) = allocator.free(&state, group);
        free.saturating_sub(reserved)
    }

    /// Slots of a group that were allocated, not for thick volumes, and that no extent has got, or whose unmapping is not stable
    /// yet.
    pub fn allocated_unmapped_slots(&self, group: u32) -> u64 {
        let (state, allocator) = (self.0.state.borrow(), self.0.allocator.borrow());
        let (taken, _) = allocator.taken.counts_of(group);
        taken.saturating_sub(state.used_slot_count_of(group) + allocator.allocated_for_thick(group))
    }

    /// Reserves `count` allocation numbers, never given before; ends when no later opening can give them again. They
    /// are not scarce: take many thousands at once.
    pub async fn reserve_allocations(&self, count: u64) -> Result<Range<u64>, PoolError> {
        let first = {
            let mut allocator = self.0.allocator.borrow_mut();
            let first = allocator.next_allocation;
            allocator.next_allocation = first.saturating_add(count);
            first
        };
        let end = first.saturating_add(count);
        self.commit(vec![MetaRecord::AllocationsReserved { end }]).await?;
        Ok(first..end)
    }
}
