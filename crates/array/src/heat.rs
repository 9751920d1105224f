//! How hot the extents of a pool are in one shard, and how long hosts wait for its groups.
//!
//! What hosts read is counted, up to 64 KiB at a time, and what is destaged, up to 32 KiB: longer accesses are scans and loads, which
//! flash serves no better. Where several extents have a slot, its first extent is counted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tier0_cache::{AccessCounter, Mapping};
use tier0_control::message::tier::{HotExtent, TierQuery, TierReport, TierRules};
use tier0_plan::PoolShape;
use tier0_policy::tier::{Accesses, HeatMap, Latencies};
use tier0_units::{ExtentId, Nanos, SlotRef};
use tier0_world::World;

use crate::mapping::ShardMapping;
use crate::pool_shard::TURN;
use crate::upkeep::pace::Activity;

/// The longest access that counts, sectors: 64 KiB.
const SECTORS_MAX: u64 = 128;
/// Pages of the longest write that counts: 32 KiB, for a longer run is a part of something that is written in order.
const RUN_MAX: u32 = 8;
/// Extents that are looked at before others have their turn.
const EXTENTS_AT_ONCE: usize = 4096;

/// The heat of a pool in a shard.
pub(crate) struct ShardHeat {
    world: World,
    mapping: Rc<ShardMapping>,
    shape: PoolShape,
    is_on: Cell<bool>,
    map: RefCell<HeatMap>,
    /// By group.
    latencies: RefCell<BTreeMap<u32, Latencies>>,
}

impl ShardHeat {
    /// Nothing is counted before the control task asks.
    pub(crate) fn new(world: &World, mapping: &Rc<ShardMapping>, shape: &PoolShape) -> Rc<ShardHeat> {
        Rc::new(ShardHeat {
            world: world.clone(),
            mapping: mapping.clone(),
            shape: shape.clone(),
            is_on: Cell::new(false),
            map: RefCell::default(),
            latencies: RefCell::default(),
        })
    }

    /// Answers the control task.
    pub(crate) async fn answer(&self, query: TierQuery, activity: &Activity) {
        // The control task may have stopped waiting; then the answer is dropped.
        match query {
            TierQuery::Report { rules, reply } => {
                let report = self.report(&rules).await;
                let _ = reply.send(TierReport { requests: activity.count(), ..report });
            }
            TierQuery::Latencies { reply } => {
                let known = self.latencies.borrow();
                let groups = known.keys().last().map_or(0, |last| last + 1);
                let of = |group| known.get(&group).copied().unwrap_or_default();
                let _ = reply.send((0..groups).map(of).collect());
            }
            TierQuery::HeatOf { extent, reply } => {
                self.advance();
                let first = self.counted(extent);
                let _ = reply.send(self.map.borrow().of(first.volume, first.index));
            }
        }
    }

    /// A volume is gone.
    pub(crate) fn forget(&self, volume: u32) {
        self.map.borrow_mut().forget(volume);
    }

    fn advance(&self) {
        self.map.borrow_mut().advance(self.world.now().0 as f64 / 1e9);
    }

    /// Looks at all extents, with turns for others.
    async fn report(&self, rules: &TierRules) -> TierReport {
        self.advance();
        let begins = !self.is_on.replace(true);
        let (mut report, mut hot, mut cold) = (TierReport::default(), Vec::new(), Vec::new());
        for (volume, rule) in &rules.volumes {
            let mut next = Some(0);
            while let Some(first) = next {
                let some = self.mapping.extents_from(*volume, first, EXTENTS_AT_ONCE);
                next = some.last().filter(|_| some.len() == EXTENTS_AT_ONCE).map(|(index, _)| index + 1);
                for (index, slot) in some {
                    let extent = ExtentId { volume: *volume, index };
                    if self.counted(extent) != extent {
                        continue;
                    }
                    let is_fast = Some(self.shape.slots.group_of(slot.slot)) == rules.fast;
                    if begins && is_fast {
                        let reads = rules.value_of_residents as f32;
                        self.map.borrow_mut().add(*volume, index, Accesses { reads, writes: 0.0 });
                    }
                    let accesses = self.map.borrow().of(*volume, index);
                    let value = rule.value(accesses);
                    let (all, candidates) = match is_fast {
                        true => (&mut report.fast, &mut cold),
                        false => (&mut report.slow, &mut hot),
                    };
                    all.add(value);
                    // What lies on flash already and is cold costs a place; what lies on disks costs nothing.
                    if rule.lets_move(index) && (is_fast || value >= 1.0) {
                        candidates.push(HotExtent { extent, slot, accesses, value });
                    }
                }
                keep_first(&mut hot, rules.most, |one, other| other.value.total_cmp(&one.value));
                keep_first(&mut cold, rules.most, |one, other| one.value.total_cmp(&other.value));
                self.world.sleep(TURN).await;
            }
        }
        TierReport { hot, cold, memory_bytes: self.map.borrow().memory_bytes() as u64, ..report }
    }

    /// The extent for which accesses to an extent count.
    fn counted(&self, extent: ExtentId) -> ExtentId {
        match self.mapping.slot_of(extent) {
            Some(slot) if self.mapping.is_shared(slot) => self.mapping.owners(extent)[0],
            _ => extent,
        }
    }
}

/// Sorts, and keeps so many.
fn keep_first<T>(all: &mut Vec<T>, most: usize, order: impl Fn(&T, &T) -> std::cmp::Ordering) {
    all.sort_by(order);
    all.truncate(most);
}

impl AccessCounter for ShardHeat {
    fn is_on(&self) -> bool {
        self.is_on.get()
    }

    fn read(&self, extent: ExtentId, slot: SlotRef, sectors: u64, took: Option<Nanos>) {
        if sectors > SECTORS_MAX {
            return;
        }
        if let Some(took) = took {
            let mut latencies = self.latencies.borrow_mut();
            let own = latencies.entry(self.shape.slots.group_of(slot.slot)).or_default();
            *own = own.and(Latencies { count: 1, total_ns: took.0 });
        }
        let counted = self.counted(extent);
        self.map.borrow_mut().count_read(counted.volume, counted.index);
    }

    fn written(&self, extent: ExtentId, pages: &mut dyn Iterator<Item = u32>) {
        let runs = short_runs(pages);
        if runs > 0 {
            self.map.borrow_mut().count_writes(extent.volume, extent.index, runs);
        }
    }
}

/// How many runs of neighbours there are among these pages that count. Where pages lie together in long runs they come from a
/// load or a scan, of which a batch may have taken a rest: nothing of them counts.
fn short_runs(pages: &mut dyn Iterator<Item = u32>) -> u32 {
    let (mut runs, mut short, mut length, mut all, mut last) = (0, 0, 0, 0, None);
    for page in pages {
        if last.is_some_and(|last| page != last + 1) {
            short += u32::from(length <= RUN_MAX);
            runs += 1;
            length = 0;
        }
        length += 1;
        all += 1;
        last = Some(page);
    }
    if last.is_some() {
        short += u32::from(length <= RUN_MAX);
        runs += 1;
    }
    if all > runs * RUN_MAX { 0 } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_no_writes_that_count() {
        let runs = |pages: &[u32]| short_runs(&mut pages.iter().copied());
        assert_eq!(runs(&[]), 0);
        assert_eq!(runs(&[7]), 1);
        assert_eq!(runs(&[1, 2, 4, 9, 10]), 3);
        let whole: Vec<u32> = (0..256).collect();
        assert_eq!(runs(&whole), 0);
        assert_eq!(runs(&[whole.as_slice(), &[300, 302]].concat()), 0, "a load, and its rests");
        assert_eq!(runs(&whole[..8]), 1);
        assert_eq!(runs(&whole[..9]), 0);
        let blocks: Vec<u32> = (0..20).flat_map(|block| [block * 8, block * 8 + 1]).collect();
        assert_eq!(runs(&blocks), 20);
    }
}
