//! Which extents are to move, and how they do.

use std::ops::Range;

use futures_util::future::join_all;
use tier0_api::TierReason;
use tier0_pool::{Place, Placement};
use tier0_units::{ExtentId, Nanos, SECTOR_BYTES};

use super::groups::TierGroups;
use super::history::Made;
use super::{TierPool, Tiering};
use crate::balance::mover::{Begun, Purpose};
use crate::context::TURN;
use crate::message::command::Pacing;

/// Extents that are looked at before others have their turn.
pub(super) const EXTENTS_AT_ONCE: usize = 4096;

/// An extent that is to move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// Which.
    pub(crate) extent: ExtentId,
    /// Whether to the fast group; otherwise to its volume's.
    pub(crate) to_fast: bool,
    /// Why.
    pub(crate) reason: TierReason,
    /// Its value.
    pub(crate) value: f64,
}

/// How fast extents may move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MoveLimits {
    /// How many may begin in a second; as many as there are, if none is given.
    pub(crate) per_s: Option<f64>,
    /// None begins after this.
    pub(crate) until: Nanos,
}

impl Tiering {
    /// Up to so many extents that lie elsewhere than an administrator has placed or pinned them.
    pub(crate) async fn placed_elsewhere(
        &self,
        number: usize,
        groups: &TierGroups,
        most: usize,
    ) -> Vec<Wanted> {
        let core = self.core(number);
        let now = self.world.unix_s();
        let mut wanted = Vec::new();
        let mut volumes = core.volumes_to_look_at(groups);
        // What goes back to its own group makes room for the rest.
        volumes.sort_by_key(|(_, placement)| placement.place != Place::Home);
        for (volume, placement) in volumes {
            let mut next = Some(0);
            while let Some(first) = next {
                let (some, last) = core.astray((volume, &placement), first, groups.fast, now);
                wanted.extend(some);
                if wanted.len() >= most {
                    wanted.truncate(most);
                    return wanted;
                }
                next = last;
                self.world.sleep(TURN).await;
            }
        }
        wanted
    }

    /// Moves extents in this order, as far as the limits and the room allow, or until the next round is due at once; how many have
    /// moved.
    pub(crate) async fn carry_out(
        &self,
        number: usize,
        groups: &TierGroups,
        wanted: &[Wanted],
        limits: MoveLimits,
    ) -> u64 {
        let mut under_way = Vec::new();
        let mut due = self.world.now();
        let mut moved = 0;
        for one in wanted {
            self.until_due(number, due.min(limits.until)).await;
            let is_over = self.world.now() >= limits.until || self.core(number).is_due.get();
            if is_over || self.repair.is_rebuilding(number) {
                break;
            }
            if let Some(per_s) = limits.per_s {
                due = self.world.now() + Nanos((1e9 / per_s) as u64);
            }
            let purpose = if one.reason == TierReason::Placed { Purpose::Placement } else { Purpose::Tier };
            let how = (purpose, Pacing::Free);
            let Some(group) = self.core(number).target(groups, one) else { continue };
            let mut begun = self.balance.begin_placing(number, one.extent, group, how).await;
            if matches!(begun, Begun::NoRoom) {
                // What makes room may be under way.
                moved += self.end_of((number, groups.fast), std::mem::take(&mut under_way)).await;
                begun = self.balance.begin_placing(number, one.extent, group, how).await;
            }
            if let Begun::UnderWay(task) = begun {
                under_way.push((*one, task));
            }
        }
        moved + self.end_of((number, groups.fast), under_way).await
    }

    /// Waits for moves between a fast group and others, and remembers them; how many have moved.
    pub(super) async fn end_of(
        &self,
        (number, fast): (usize, u32),
        moves: Vec<(Wanted, impl Future<Output = bool>)>,
    ) -> u64 {
        let core = self.core(number);
        let ends = moves.into_iter().map(|(wanted, end)| async move {
            let has_moved = end.await;
            core.note_end(&wanted, fast, has_moved, self.world.now());
            u64::from(has_moved)
        });
        join_all(ends).await.into_iter().sum()
    }
}

impl TierPool {
    fn note_end(&self, wanted: &Wanted, fast: u32, has_moved: bool, at: Nanos) {
        let mut history = self.history.borrow_mut();
        if !has_moved {
            return history.add_failure();
        }
        let Wanted { extent, to_fast, reason, value } = *wanted;
        let bytes = self.metadata.state().geometry().extent_sectors * SECTOR_BYTES;
        history.add(Made { at, extent, to_fast, reason, value }, bytes);
        if to_fast {
            let all = self.metadata.state().slot_count_of(fast);
            self.allowance.borrow_mut().spend(all);
        }
    }

    /// The group to which an extent is to move; `None` if its volume is gone.
    fn target(&self, groups: &TierGroups, one: &Wanted) -> Option<u32> {
        if one.to_fast {
            return Some(groups.fast);
        }
        self.metadata.state().volume(one.extent.volume).map(|volume| volume.group)
    }

    /// Volumes that may have extents elsewhere than they are to be, with their placements.
    fn volumes_to_look_at(&self, groups: &TierGroups) -> Vec<(u32, Placement)> {
        let state = self.metadata.state();
        let is_needed = |placement: &Placement| placement.place == Place::Fast || !placement.pins.is_empty();
        let own = state.volumes().filter(|volume| groups.slow.contains_key(&volume.group));
        let all = own.map(|volume| (volume.number, state.placement(volume.number)));
        all.filter(|(_, placement)| is_needed(placement)).collect()
    }

    /// Of some extents of a volume from the one of number `first` on, those that lie elsewhere than they are to; and where to go on.
    fn astray(
        &self,
        (volume, placement): (u32, &Placement),
        first: u32,
        fast: u32,
        now_unix_s: u64,
    ) -> (Vec<Wanted>, Option<u32>) {
        let state = self.metadata.state();
        let mut last = None;
        let mut found = Vec::new();
        let map = state.map(volume);
        for (number, (index, slot)) in map.into_iter().flat_map(|map| map.iter_from(first)).enumerate() {
            if number == EXTENTS_AT_ONCE {
                last = Some(index);
                break;
            }
            let is_fast = self.shape.slots.group_of(slot.slot) == fast;
            let to_fast = match placement.of(index, now_unix_s) {
                Place::Fast if !is_fast => true,
                Place::Home if is_fast => false,
                Place::Fast | Place::Home | Place::Auto => continue,
            };
            let extent = ExtentId { volume, index };
            // Of several extents that have a slot, the first says where it lies.
            if state.owners(slot.slot).next() != Some(extent) {
                continue;
            }
            found.push(Wanted { extent, to_fast, reason: TierReason::Placed, value: 0.0 });
        }
        (found, last)
    }

    /// The ranges of a volume that are pinned now.
    pub(crate) fn pinned(placement: &Placement, now_unix_s: u64) -> Vec<Range<u32>> {
        let holding = placement.pins.iter().filter(|pin| pin.holds_at(now_unix_s));
        holding.map(|pin| pin.extents.clone()).collect()
    }
}
