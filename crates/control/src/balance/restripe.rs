//! Restriping: after a pool has grown, extents move from the sets that hold most to those that hold least, until all hold
//! the same, give or take one.
//!
//! Nothing remembers how far it is but the map itself: whatever has moved has moved, and a start that finds a grown pool
//! uneven goes on. One extent's move is the business of its shard and of the write cache there; here is decided which
//! moves where. While columns are being rebuilt nothing moves.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tier0_api::RestripeStatus;
use tier0_pool::PoolState;
use tier0_units::{ByteCount, ExtentId, Nanos, SECTOR_BYTES, SlotRef};
use tier0_world::sync::Semaphore;

use super::{Balance, BalancePool};
use crate::admin::AdminError;
use crate::balance::mover::{Purpose, count_moved};
use crate::context::{Done, TURN};
use crate::message::command::{Move, Pacing, ShardCommand};

/// Extents that are looked at before others have their turn.
const EXTENTS_AT_ONCE: usize = 4096;
/// How often one looks whether a rebuild has ended.
const REBUILD_LOOK: Nanos = Nanos::from_secs(1);
/// Sets may differ by this share of their slots, and by two slots in any case, before a start goes on by itself: between
/// times deletions leave them uneven, too.
const UNEVEN_SHARE: u32 = 8;

/// How far the restriping of a pool is.
#[derive(Default)]
pub(crate) struct RestripeProgress {
    running: Cell<bool>,
    stopping: Cell<bool>,
    /// A rebuild came in between since the last pass began, or sets joined: there has to be another pass.
    goes_on: Cell<bool>,
    done: Cell<u64>,
    total: Cell<u64>,
    begun: Cell<Nanos>,
}

/// How many slots of each set are in use. Extents stay in the group in which they lie.
#[derive(Default)]
struct Fill {
    /// By set: its group, and the slots in use.
    sets: Vec<(u32, u32)>,
    /// By group: sets that may take more, those with the fewest first.
    targets: BTreeMap<u32, BTreeSet<(u32, u32)>>,
}

impl Fill {
    fn new(sets: Vec<(u32, u32)>) -> Fill {
        let mut targets: BTreeMap<u32, BTreeSet<(u32, u32)>> = BTreeMap::new();
        for (set, (group, used)) in (0u32..).zip(&sets) {
            targets.entry(*group).or_default().insert((*used, set));
        }
        Fill { sets, targets }
    }

    /// By group, the slots in use of its sets.
    fn by_group(&self) -> impl Iterator<Item = (u32, Vec<u32>)> {
        let used_in =
            |group: u32| self.sets.iter().filter(move |(own, _)| *own == group).map(|(_, used)| *used);
        self.targets.keys().map(move |group| (*group, used_in(*group).collect()))
    }

    /// By how much the fullest set of a group exceeds its emptiest, where that is more than `tolerated` says of the group.
    fn is_uneven(&self, tolerated: impl Fn(u32) -> u32) -> bool {
        self.by_group().any(|(group, used)| {
            let (least, most) = (used.iter().min(), used.iter().max());
            most.zip(least).is_some_and(|(most, least)| most - least > tolerated(group))
        })
    }

    /// Slots that sets hold above the average of their group.
    fn surplus(&self) -> u64 {
        let of_group = |(_, used): (u32, Vec<u32>)| {
            let total: u64 = used.iter().map(|used| u64::from(*used)).sum();
            let average = total.div_ceil(used.len().max(1) as u64);
            used.iter().map(|used| u64::from(*used).saturating_sub(average)).sum::<u64>()
        };
        self.by_group().map(of_group).sum()
    }

    /// The set that should take a slot of this one, if that makes them more even. Sets that the pool has got since are
    /// left to the next pass.
    fn target_for(&self, set: u32) -> Option<u32> {
        let (group, used) = self.sets.get(set as usize)?;
        let (least, target) = *self.targets.get(group)?.first()?;
        (*used >= least + 2).then_some(target)
    }

    fn shift(&mut self, from: u32, to: u32) {
        for (set, more) in [(from, false), (to, true)] {
            let (group, used) = &mut self.sets[set as usize];
            let before = *used;
            *used = if more { before + 1 } else { before - 1 };
            let targets = self.targets.entry(*group).or_default();
            if targets.remove(&(before, set)) {
                targets.insert((*used, set));
            }
        }
    }

    /// A set takes no more.
    fn close(&mut self, set: u32) {
        let (group, used) = self.sets[set as usize];
        self.targets.entry(group).or_default().remove(&(used, set));
    }
}

impl Balance {
    /// Starts or stops the restriping of a pool.
    pub(crate) fn restripe(self: &Rc<Self>, pool: Option<&str>, rate: Option<ByteCount>, stop: bool) -> Done {
        let number = self.pool_meant(pool)?;
        if rate == Some(ByteCount(0)) {
            return Err(AdminError::new(
                "a rebalance at rate 0 would never end; omit the rate for full speed, or stop it (--stop)",
            ));
        }
        let name = &self.pools[number].name;
        let progress = &self.core(number).restripe;
        match (stop, progress.running.get()) {
            (true, false) => {
                Err(AdminError::unchanged(format!("no rebalance of pool {name} is running; nothing to stop")))
            }
            (true, true) => {
                progress.stopping.set(true);
                Ok(format!("rebalance of pool {name} stopped; it resumes on request, or at the next start"))
            }
            (false, _) if self.start_restripe(number, rate.map(|rate| rate.0)) => {
                Ok(format!("rebalance of pool {name} started; \"tier0 status\" shows its progress"))
            }
            (false, true) => Err(AdminError::new(format!(
                "pool {name:?} is already being rebalanced; \"tier0 status\" shows its progress, --stop stops it"
            ))),
            (false, false) => Err(AdminError::failed("the array is starting; try again")),
        }
    }

    /// Goes on with what a stop or a crash has interrupted.
    pub(crate) fn resume_restripe(self: &Rc<Self>, number: usize) {
        let core = self.core(number);
        if !has_grown(&core.metadata.state()) {
            return;
        }
        let balance = self.clone();
        let look = async move {
            let core = balance.core(number);
            let fill = balance.fill(core).await;
            let tolerated = |group: u32| {
                let state = core.metadata.state();
                (state.groups()[group as usize].slots_per_set / UNEVEN_SHARE).max(2)
            };
            if fill.is_uneven(tolerated) {
                balance.start_restripe(number, None);
            }
        };
        self.world.spawn(look).detach();
    }

    /// Starts moving; false if it is going on, or cannot begin yet. What goes on makes another pass then, because sets may have
    /// joined that this one does not know.
    pub(crate) fn start_restripe(self: &Rc<Self>, number: usize, rate: Option<u64>) -> bool {
        let progress = &self.core(number).restripe;
        progress.goes_on.set(true);
        if !self.upkeep.get() || progress.running.replace(true) {
            return false;
        }
        progress.stopping.set(false);
        progress.done.set(0);
        progress.total.set(0);
        progress.begun.set(self.world.now());
        let balance = self.clone();
        let work = async move {
            // What a crash has left in the log may have slots that the metadata do not know yet. A log that has failed will
            // stop the moves as well.
            let _ = balance.ask_all(|reply| ShardCommand::Settle { pool: number, reply }).await;
            // What is written meanwhile makes sets uneven again.
            let progress = &balance.core(number).restripe;
            while progress.goes_on.take() {
                let moved = balance.restripe_pass(number, rate).await;
                progress.goes_on.set(!progress.stopping.get() && (moved > 0 || progress.goes_on.get()));
            }
            progress.running.set(false);
        };
        self.world.spawn(work).detach();
        true
    }

    /// Goes through all extents once; how many have moved.
    async fn restripe_pass(self: &Rc<Self>, number: usize, rate: Option<u64>) -> u64 {
        let core = self.core(number);
        let progress = &core.restripe;
        let mut fill = self.fill(core).await;
        progress.total.set(progress.done.get() + fill.surplus());
        let mut moved = 0;
        let mut from = Some(ExtentId { volume: 0, index: 0 });
        while let Some(first) = from {
            while self.repair.is_rebuilding(number) && !progress.stopping.get() {
                progress.pass_again();
                self.world.sleep(REBUILD_LOOK).await;
            }
            if progress.stopping.get() || core.metadata.failure().is_some() || !fill.is_uneven(|_| 1) {
                break;
            }
            let (extents, next) = scan(&core.metadata.state(), first, EXTENTS_AT_ONCE);
            from = next;
            moved += self.move_some(number, self.choose(core, extents, &fill), &mut fill, rate).await;
            self.world.sleep(TURN).await;
        }
        moved
    }

    /// The extents in sets that hold more than others, with their sets; of those that have a slot together one.
    fn choose(
        &self,
        core: &BalancePool,
        extents: Vec<(ExtentId, SlotRef)>,
        fill: &Fill,
    ) -> Vec<(ExtentId, SlotRef, u32)> {
        let state = core.metadata.state();
        let in_set = |(extent, slot): (ExtentId, SlotRef)| {
            let set = state.slot_home(slot.slot)?.set;
            state.owners(slot.slot).next().filter(|first| *first == extent)?;
            fill.target_for(set).map(|_| (extent, slot, set))
        };
        extents.into_iter().filter_map(in_set).collect()
    }

    /// Moves those that still make the sets more even, until the restripe is to stop or a rebuild begins; how many have moved.
    async fn move_some(
        self: &Rc<Self>,
        number: usize,
        extents: Vec<(ExtentId, SlotRef, u32)>,
        fill: &mut Fill,
        rate: Option<u64>,
    ) -> u64 {
        let core = self.core(number);
        let share = rate.map(|rate| (rate / self.shards.len() as u64).max(1));
        // A move with a rate rests in its shard, and a rebuild waits for every move that is under way: only one for each shard.
        let slow = rate.map(|_| Semaphore::new(self.shards.len() as u64));
        let (mut under_way, mut recalled) = (Vec::new(), false);
        for (extent, from, set) in extents {
            let alone = match &slow {
                Some(slow) => Some(slow.acquire(1).await),
                None => None,
            };
            let permit = core.mover.enter(Purpose::Balance).await;
            if core.restripe.stopping.get() {
                break;
            }
            if self.repair.is_rebuilding(number) {
                core.restripe.pass_again();
                break;
            }
            let Some(to) = self.allocate_for(number, set, fill, &mut recalled).await else { continue };
            let family = core.metadata.state().family_of(extent.volume);
            let balance = self.clone();
            under_way.push(self.world.spawn(async move {
                let _permits = (alone, permit);
                let pacing = Pacing::Yielding { rate: share };
                let moved = balance.move_extent(number, Move { extent, family, from, to }, pacing).await;
                let progress = &balance.core(number).restripe;
                progress.done.set(progress.done.get() + u64::from(moved));
                moved
            }));
        }
        count_moved(under_way).await
    }

    /// A slot for an extent of this set in the set that has fewest, if that makes them more even.
    async fn allocate_for(
        &self,
        number: usize,
        set: u32,
        fill: &mut Fill,
        recalled: &mut bool,
    ) -> Option<SlotRef> {
        while let Some(target) = fill.target_for(set) {
            if let Some(to) = self.allocate_in(number, target, recalled).await {
                fill.shift(set, target);
                return Some(to);
            }
            fill.close(target);
        }
        None
    }

    /// A free slot of a set. Shards have some in their slot reserves, which are recalled, once, before the set counts as full.
    async fn allocate_in(&self, number: usize, set: u32, recalled: &mut bool) -> Option<SlotRef> {
        let allocated = self.space.core(number).allocate_in(set).await;
        if allocated.is_some() || std::mem::replace(recalled, true) {
            return allocated;
        }
        self.space.recall_slot_reserves(number).await;
        self.space.core(number).allocate_in(set).await
    }

    /// How full the sets are, those included that join while this counts.
    async fn fill(&self, core: &BalancePool) -> Fill {
        let mut sets = Vec::new();
        while let Some(count) = core.used_slots(sets.len() as u32) {
            let group = core.metadata.state().group_number_of(sets.len() as u32);
            sets.push((group, count));
            self.world.sleep(TURN).await;
        }
        Fill::new(sets)
    }
}

impl RestripeProgress {
    /// A rebuild keeps extents from moving: there has to be another pass when it has ended.
    pub(crate) fn pass_again(&self) {
        self.goes_on.set(true);
    }
}

impl BalancePool {
    /// How far restriping is; `None` if none is going on.
    pub(crate) fn restripe_status(&self, now: Nanos) -> Option<RestripeStatus> {
        let progress = &self.restripe;
        let (done, total) = (progress.done.get(), progress.total.get().max(progress.done.get()));
        let slot_bytes = self.metadata.state().geometry().extent_sectors * SECTOR_BYTES;
        let time = now.saturating_sub(progress.begun.get()).0.max(1);
        let rate = u128::from(done * slot_bytes) * 1_000_000_000 / u128::from(time);
        let rate_bytes_per_s = u64::try_from(rate).unwrap_or(u64::MAX);
        progress.running.get().then_some(RestripeStatus {
            slots_done: done,
            slots_total: total,
            rate_bytes_per_s,
            left_s: ((total - done) * slot_bytes).checked_div(rate_bytes_per_s),
        })
    }
}

/// Whether sets have joined a group of a pool since it was created.
fn has_grown(state: &PoolState) -> bool {
    let mut groups = BTreeSet::new();
    !state.batches().iter().all(|batch| groups.insert(batch.group))
}

/// Up to so many mapped extents from `from` on, and where to go on.
fn scan(state: &PoolState, from: ExtentId, most: usize) -> (Vec<(ExtentId, SlotRef)>, Option<ExtentId>) {
    let mut found = Vec::new();
    for volume in state.volumes().map(|volume| volume.number).filter(|number| *number >= from.volume) {
        let first = if volume == from.volume { from.index } else { 0 };
        for (index, slot) in state.map(volume).into_iter().flat_map(|map| map.iter_from(first)) {
            let extent = ExtentId { volume, index };
            if found.len() == most {
                return (found, Some(extent));
            }
            found.push((extent, slot));
        }
    }
    (found, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_pool;

    #[test]
    fn slots_go_to_the_emptiest_until_all_hold_the_same() {
        // Sets 5 and 6 are of another group, and even.
        let mut fill =
            Fill::new([9, 8, 0, 0, 10].map(|used| (0, used)).into_iter().chain([(1, 3), (1, 2)]).collect());
        assert_eq!(fill.surplus(), 9);
        assert!(fill.is_uneven(|_| 9) && !fill.is_uneven(|_| 10) && !fill.is_uneven(|group| 10 - 9 * group));
        fill.close(3);
        let mut shifts = 0;
        for set in [0, 1, 4, 5].into_iter().cycle().take(80) {
            if let Some(target) = fill.target_for(set) {
                assert!(target < 3, "{set} -> {target}");
                fill.shift(set, target);
                shifts += 1;
            }
        }
        assert_eq!(fill.sets.iter().map(|(_, used)| *used).collect::<Vec<_>>(), [7, 7, 6, 0, 7, 3, 2]);
        assert_eq!(shifts, 7);
    }

    #[test]
    fn extents_move_from_the_fullest_sets_until_all_hold_the_same() {
        with_pool(("raid1", 6, 2, 1), |rig| async move {
            rig.fill(&[(0, 7), (1, 2)]).await;
            let sets = rig.used().len();
            assert!(sets > 2, "{:?}", rig.used());
            assert!(rig.control.balance.start_restripe(0, None));
            rig.sleep_s(1).await;
            let used = rig.used();
            let (least, most) = (used.iter().min().copied(), used.iter().max().copied());
            assert!(most <= least.map(|least| least + 1), "{used:?}");
            assert_eq!(used.iter().sum::<u32>(), 9, "{used:?}");
            let home = |slot: &SlotRef| rig.control.context.pool(0).shape.slots.place(slot.slot).set.0;
            let moves = rig.shard.moves.borrow();
            assert!(moves.iter().all(|one| home(&one.from) < 2 && home(&one.to) > 0), "{moves:?}");
            assert_eq!(moves.len(), used.iter().skip(2).sum::<u32>() as usize, "none moves twice");
        });
    }

    #[test]
    fn nothing_moves_while_a_column_is_rebuilt() {
        with_pool(("raid1", 6, 2, 1), |rig| async move {
            rig.fill(&[(0, 8)]).await;
            rig.shard.holds_rebuilds.set(true);
            rig.lose(5).await;
            assert!(rig.control.balance.start_restripe(0, None));
            rig.sleep_s(5).await;
            assert_eq!(rig.shard.moves.borrow().len(), 0);
            rig.release_rebuilds();
            rig.sleep_s(30).await;
            assert!(!rig.control.repair.is_rebuilding(0));
            assert!(rig.used().iter().all(|used| *used <= 3), "{:?}", rig.used());
        });
    }
}
