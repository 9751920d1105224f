//! Slots and allocation numbers for those who write: for shards whose slot reserves are empty, and for extents that move.

use std::pin::pin;

use futures_util::future::select;
use tier0_pool::{Claim, PoolError, SlotRun};
use tier0_units::{Nanos, SlotRef};

use super::{Space, SpacePool};
use crate::message::command::ShardCommand;

/// Allocation numbers that are reserved at once: one metadata record for so many new extents.
const ALLOCATIONS_RESERVED: u64 = 1 << 16;
/// The most slots that are allocated at once: enough that asking is rare, few enough that none lie idle for long.
const BATCH_MAX: u64 = 64;
/// A batch is at most this share of what is left for every shard, so that the last slots are not hoarded.
const BATCH_SHARE: u64 = 4;
/// For so long slots are waited for if none is free and some will come: a thick volume was promised its slots, and what a tier
/// has moved to a group gives way.
const THICK_LIMIT: Nanos = Nanos::from_secs(10);
/// The same for a thin volume where none is known to come.
const THIN_LIMIT: Nanos = Nanos::from_millis(1);
/// Slots that are on their way to a shard when reserves are recalled are in its reserve after this. It doubles with each recall.
const RECALL_PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// The longest.
const RECALL_PAUSE_MAX: Nanos = Nanos::from_millis(100);
/// How long one waits for what hosts have discarded.
const RECLAIM_LIMIT: Nanos = Nanos::from_secs(5);

impl Space {
    /// Slots for a shard that has none.
    pub(crate) async fn replenish(&self, pool: usize, claim: Claim) -> Vec<SlotRef> {
        if !self.upkeep.get() {
            // Shards are recovering, and cannot be asked to give back: no one gets more than it needs.
            return self.core(pool).allocate_slots(claim, None).await;
        }
        let (core, shards) = (self.core(pool), Some(self.shards.len()));
        let slots = core.allocate_slots(claim, shards).await;
        if !slots.is_empty() {
            return slots;
        }
        let slots = self.recall_and_allocate(pool, claim).await;
        if !slots.is_empty() {
            return slots;
        }
        self.reclaim(pool, claim.group).await;
        let comes = core.room_maker.get().is_some_and(|make| make(claim.group));
        let until = self.world.now() + if claim.thin && !comes { THIN_LIMIT } else { THICK_LIMIT };
        let mut pause = RECALL_PAUSE_MIN;
        loop {
            let slots = core.allocate_slots(claim, shards).await;
            if !slots.is_empty() {
                return slots;
            }
            let slots = self.recall_and_allocate(pool, claim).await;
            // What is being discarded comes back, however long that takes.
            let none_comes = self.world.now() >= until && core.discards.pending(claim.group) == 0;
            if !slots.is_empty() || none_comes {
                return slots;
            }
            // Slots may be on their way to a shard that needs fewer, or their unmapping is not stable yet.
            select(pin!(core.metadata.slots_returned().wait()), pin!(self.world.sleep(pause))).await;
            pause = Nanos(pause.0 * 2).min(RECALL_PAUSE_MAX);
        }
    }

    /// Slots of those that shards have in reserve, or that are free by then.
    async fn recall_and_allocate(&self, pool: usize, claim: Claim) -> Vec<SlotRef> {
        self.recall_slot_reserves(pool).await;
        self.core(pool).allocate_slots(claim, Some(self.shards.len())).await
    }

    /// Has shards destage what hosts have discarded of a group, whose slots come back then; while drives are away, not for
    /// long.
    async fn reclaim(&self, pool: usize, group: u32) {
        // Extents of any group may lie in this one.
        let group = Some(group).filter(|_| !self.core(pool).metadata.state().is_mixed());
        let reclaimed = pin!(self.ask_all(|reply| ShardCommand::Reclaim { pool, group, reply }));
        select(reclaimed, pin!(self.world.sleep(RECLAIM_LIMIT))).await;
    }

    /// Takes back the slot reserves of all shards: one of them needs what another one does not.
    pub(crate) async fn recall_slot_reserves(&self, pool: usize) {
        for slots in
            self.ask_all(|reply| ShardCommand::ReturnSlotReserve { pool, reply }).await.into_iter().flatten()
        {
            self.core(pool).take_back(slots);
        }
    }
}

impl SpacePool {
    /// Numbers for `count` allocations, never used before and never again, whatever happens: a power cut must not let
    /// a number that some table on a drive has name another tenant.
    async fn allocations(&self, count: u64) -> Result<u64, PoolError> {
        let _turn = self.reserving.acquire(1).await;
        let missing = {
            let numbers = self.allocations.borrow();
            numbers.end - numbers.start < count
        };
        if missing {
            *self.allocations.borrow_mut() =
                self.metadata.reserve_allocations(count.max(ALLOCATIONS_RESERVED)).await?;
        }
        let mut numbers = self.allocations.borrow_mut();
        numbers.start += count;
        Ok(numbers.start - count)
    }

    /// Free slots for one of so many shards, or a single one of those that recover; empty where there are none, or where the
    /// metadata cannot be written any more. What is kept from thin volumes is not allocated to them; what was acknowledged
    /// before a crash gets its slots nevertheless.
    pub(crate) async fn allocate_slots(&self, claim: Claim, shards: Option<usize>) -> Vec<SlotRef> {
        let left = self.metadata.allocatable_slots(claim.group);
        let count = shards.map_or(1, |shards| (left / (BATCH_SHARE * shards as u64)).clamp(1, BATCH_MAX));
        let kept = if shards.is_some() { self.kept_slots(claim.group) } else { 0 };
        self.allocate(claim, count, kept).await
    }

    /// A slot for an extent that comes home to its volume's group. The reserve stays free: a host may need it first.
    pub(crate) async fn allocate_for_return(&self, claim: Claim) -> Option<SlotRef> {
        self.allocate(claim, 1, self.kept_slots(claim.group)).await.pop()
    }

    async fn allocate(&self, claim: Claim, count: u64, kept: u64) -> Vec<SlotRef> {
        let most = match claim.thin {
            true => self.metadata.free_slots(claim.group).saturating_sub(kept),
            false => u64::MAX,
        };
        let runs = self.metadata.allocate_slots(claim, count.min(most));
        if runs.is_empty() {
            return Vec::new();
        }
        let slots: Vec<u64> = runs.iter().flat_map(|run| run.first..run.first + run.count).collect();
        match self.allocations(slots.len() as u64).await {
            Ok(first) => {
                (first..).zip(slots).map(|(allocation, slot)| SlotRef { slot, allocation }).collect()
            }
            Err(error) => {
                tracing::error!("{error}");
                self.metadata.return_slots(&runs);
                Vec::new()
            }
        }
    }

    /// Takes slots back that a shard was handed and has not used.
    pub(crate) fn take_back(&self, slots: Vec<SlotRef>) {
        let runs: Vec<SlotRun> = slots.iter().map(|slot| SlotRun { first: slot.slot, count: 1 }).collect();
        self.metadata.return_slots(&runs);
    }

    /// Takes a slot back that an extent has left or never got.
    pub(crate) fn give_back(&self, slot: SlotRef) {
        // A move that failed half way, with the metadata: nothing is allocated any more.
        let in_use = self.metadata.state().used_slots().contains(slot.slot);
        if !in_use {
            self.discards.release(&self.metadata, vec![slot.slot]);
        }
    }

    /// Allocates the lowest free slot of a set for an extent that moves there; `None` if the set is full, or where thick
    /// volumes have reserved all that is free.
    pub(crate) async fn allocate_in(&self, set: u32) -> Option<SlotRef> {
        let slot = self.metadata.allocate_slot_of(set)?;
        match self.allocations(1).await {
            Ok(allocation) => Some(SlotRef { slot, allocation }),
            Err(error) => {
                tracing::error!("{error}");
                self.metadata.return_slots(&[SlotRun { first: slot, count: 1 }]);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tier0_pool::Claim;
    use tier0_units::Nanos;

    use crate::testing::with_pool;

    const THIN: Claim = Claim { group: 0, thin: true };

    /// A shard that needs a slot gets those that another one has in reserve.
    #[test]
    fn slot_reserves_are_recalled_when_nothing_else_is_free() {
        with_pool(("raid1", 2, 2, 0), |rig| async move {
            let mut all = Vec::new();
            loop {
                let slots = rig.control.space.core(0).allocate_slots(THIN, Some(1)).await;
                if slots.is_empty() {
                    break;
                }
                all.extend(slots);
            }
            let kept = all.pop().expect("there is a slot");
            rig.shard.slot_reserve.borrow_mut().push(kept);
            let slots = rig.control.space.replenish(0, THIN).await;
            assert_eq!(slots.iter().map(|slot| slot.slot).collect::<Vec<_>>(), [kept.slot]);
            assert!(rig.control.space.replenish(0, THIN).await.is_empty(), "no more are free");
        });
    }

    /// A thick volume waits for slots that are on their way back, and gets them at once when they are there.
    #[test]
    fn who_waits_for_a_slot_gets_it_when_it_is_freed() {
        with_pool(("raid1", 2, 2, 0), |rig| async move {
            rig.make_thick_volume().await;
            let thick = Claim { group: 0, thin: false };
            let core = || rig.control.space.core(0);
            let first = core().allocate_slots(thick, None).await;
            while !core().allocate_slots(thick, Some(1)).await.is_empty() {}
            let freed_at = rig.world.now() + Nanos::from_millis(1234);
            let (world, control) = (rig.world.clone(), rig.control.clone());
            let free = async move {
                world.sleep_until(freed_at).await;
                control.space.core(0).take_back(first);
            };
            rig.world.spawn(free).detach();
            let slots = rig.control.space.replenish(0, thick).await;
            assert_eq!((slots.len(), rig.world.now()), (1, freed_at));
            let begun = rig.world.now();
            assert!(rig.control.space.replenish(0, thick).await.is_empty());
            assert!(rig.world.now() - begun < Nanos::from_secs(11), "that it must turn up is not for ever");
        });
    }
}
