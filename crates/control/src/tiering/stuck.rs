//! Groups that are to leave and cannot: the groups of the volumes whose extents lie there have no room, or no copy of a page is
//! right, so its extent keeps its slot. Status tells it as long as it is so, and an event once for each cause.

use std::collections::BTreeSet;

use tier0_api::event::GroupHeld;
use tier0_api::{EventKind, FindingKind};
use tier0_pool::PoolState;
use tier0_units::{ExtentId, Nanos};

use super::{TierPool, Tiering};
use crate::message::command::{LostSectors, ShardReport};
use crate::repair::lost_pages::lost_ranges;
use crate::report::Findings;

/// A group without room for so long is told: what a tier has moved there may give way before, and slots come back.
const FULL_TOLD_AFTER: Nanos = Nanos::from_secs(10);
/// How often is looked.
const LOOK: Nanos = Nanos::from_secs(5);
/// Ranges of lost pages that are named.
const RANGES_TOLD: usize = 4;

impl TierPool {
    /// The groups in which the last pass over the extents that are to come home has found no room.
    pub(super) fn note_full(&self, full: &BTreeSet<u32>, now: Nanos) {
        let mut since = self.full_since.borrow_mut();
        since.retain(|home, _| full.contains(home));
        full.iter().for_each(|home| _ = since.entry(*home).or_insert(now));
    }

    /// What was told of a group that leaves, or is to leave no more, is told again another time.
    pub(super) fn forget_stuck(&self, group: u32) {
        self.stuck_told.borrow_mut().retain(|(of, _)| *of != group);
    }

    /// The groups without room for what lies in a group.
    fn full_homes(&self, state: &PoolState, group: u32, now: Nanos) -> Vec<u32> {
        let guests = state
            .volumes()
            .filter(|volume| volume.thin && state.away_of(volume.number).any(|(other, _)| other == group));
        let homes: BTreeSet<u32> = guests.map(|volume| volume.group).collect();
        let since = self.full_since.borrow();
        let is_full =
            |home: &u32| since.get(home).is_some_and(|at| now.saturating_sub(*at) >= FULL_TOLD_AFTER);
        homes.into_iter().filter(is_full).collect()
    }
}

impl Tiering {
    /// Tells why groups cannot leave, of which that was not told.
    pub(super) async fn tell_stuck(&self, number: usize) {
        let (core, now) = (self.core(number), self.world.now());
        if now.saturating_sub(core.stuck_looked.get()) < LOOK {
            return;
        }
        core.stuck_looked.set(now);
        let leaving: Vec<u32> = core.metadata.state().groups_that_leave().collect();
        for group in leaving {
            let full = core.full_homes(&core.metadata.state(), group, now);
            let is_new = |home: &u32| core.stuck_told.borrow_mut().insert((group, Some(*home)));
            let full: Vec<u32> = full.into_iter().filter(is_new).collect();
            let held = held_by_full(&core.metadata.state(), full);
            held.into_iter().for_each(|held| self.tell_held(number, group, held));
            if core.stuck_told.borrow().contains(&(group, None)) {
                continue;
            }
            let reports = self.reports(number).await;
            let held = held_by_lost(&core.metadata.state(), group, &reports);
            if let Some(held) = held {
                core.stuck_told.borrow_mut().insert((group, None));
                self.tell_held(number, group, held);
            }
        }
    }

    fn tell_held(&self, number: usize, group: u32, held: GroupHeld) {
        let name = self.core(number).metadata.state().name_of_group(group).map(str::to_owned);
        let kind = EventKind::GroupCannotLeave { group: name.unwrap_or_default(), held };
        self.tell(self.pool_subject(number), kind);
    }
}

impl Findings {
    /// Groups that are to leave and cannot.
    pub(crate) fn look_at_leaving_groups(
        &mut self,
        state: &PoolState,
        (core, now): (&TierPool, Nanos),
        reports: &[ShardReport],
    ) {
        for group in state.groups_that_leave() {
            let Some(name) = state.name_of_group(group) else { continue };
            let full = held_by_full(state, core.full_homes(state, group, now));
            for held in full.into_iter().chain(held_by_lost(state, group, reports)) {
                self.add(FindingKind::GroupCannotLeave { group: name.to_owned(), held });
            }
        }
    }
}

fn held_by_full(state: &PoolState, full: Vec<u32>) -> Option<GroupHeld> {
    let names = full.into_iter().filter_map(|home| state.name_of_group(home));
    let names: Vec<String> = names.map(str::to_owned).collect();
    (!names.is_empty()).then_some(GroupHeld::Full(names))
}

/// Pages without a right copy in a group, as far as the shards know of them.
fn held_by_lost(state: &PoolState, group: u32, reports: &[ShardReport]) -> Option<GroupHeld> {
    let extent_sectors = state.geometry().extent_sectors;
    let lies_there = |lost: &&LostSectors| {
        let index = (lost.sectors.start / extent_sectors) as u32;
        let slot = state.slot(ExtentId { volume: lost.volume, index });
        let home = slot.and_then(|slot| state.slot_home(slot.slot));
        home.is_some_and(|home| state.group_number_of(home.set) == group)
    };
    let lost = reports.iter().flat_map(|report| &report.lost).filter(lies_there).cloned().collect();
    let (mut ranges, _) = lost_ranges(lost, |number| {
        state.volume(number).map_or_else(String::new, |volume| volume.name.clone())
    });
    let others = ranges.len().saturating_sub(RANGES_TOLD) as u64;
    ranges.truncate(RANGES_TOLD);
    (!ranges.is_empty()).then_some(GroupHeld::Lost { ranges, others })
}
