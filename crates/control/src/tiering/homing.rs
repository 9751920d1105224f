//! Extents that lie in a group that is neither their volume's nor one where the tier has moved them: they go home. They are what is
//! left of a migration ([`crate::volumes::migrate`]), or of a volume that the tier does not move any more. Which they are is in the
//! map, so a restart forgets none of them.

use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::select;
use tier0_api::{EventKind, TierReason};
use tier0_pool::{PoolState, Volume};
use tier0_units::{ExtentId, Nanos, SECTOR_BYTES};

use super::groups::TierGroups;
use super::moves::{EXTENTS_AT_ONCE, Wanted};
use super::{TierPool, Tiering};
use crate::balance::mover::{Begun, Purpose};
use crate::context::{Done, TURN};
use crate::message::command::Pacing;
use crate::volumes::migrate::Migrated;

/// Extents that begin to move together. Each batch uses the rate and the group that are set by then, and moves by hand can go between
/// two batches.
const BATCH: usize = 16;
/// How often is looked whether something is away where nothing tells of it.
const LOOK: Nanos = Nanos::from_secs(60);
/// When it is tried again where nothing could move: there was no room, columns were rebuilt, or batches were on the extents.
const RETRY: Nanos = Nanos::from_secs(1);

impl Tiering {
    /// Moves a volume, and what was cloned from it, to another group of its pool.
    pub(crate) async fn migrate(&self, name: &str, group: &str) -> Done {
        let taken = |pool: usize, group: u32, is_thin: bool| {
            let promised = self.core(pool).promised_in(group, None);
            // What comes home leaves the reserve free, so it must not be given to a thick volume either.
            let kept = if is_thin || promised > 0 { self.space.core(pool).kept_slots(group) } else { 0 };
            promised + kept
        };
        let Migrated { pool, names, bytes, are_unplaced } =
            self.volumes.change_group(name, group, taken).await?;
        // What was kept for the volumes in the group of before is not needed there.
        self.space.recall_slot_reserves(pool).await;
        self.core(pool).homing.notify_all();
        let others: Vec<&str> = names.iter().map(String::as_str).filter(|other| *other != name).collect();
        let clones = match others.as_slice() {
            [] => String::new(),
            others => format!(" and what it shares space with ({})", others.join(", ")),
        };
        let unplaced = match are_unplaced {
            true => "; its place and its pins do not count there and are forgotten",
            false => "",
        };
        Ok(match bytes.0 {
            0 => format!("volume {name}{clones} is in group {group}{unplaced}"),
            _ => format!(
                "volume {name}{clones} moves to group {group}: {bytes:#}{unplaced}; \"tier0 status\" shows what is left, and \
                 migrating it back cancels it"
            ),
        })
    }

    /// Moves extents home as long as the array runs.
    pub(crate) async fn keep_homing(self: Rc<Self>, number: usize) {
        let core = self.core(number);
        let mut were_away: Vec<u32> = Vec::new();
        loop {
            self.end_leaving(number).await;
            let strayed = core.volumes_with_strays();
            self.tell_arrived(number, &were_away, &strayed);
            were_away = strayed;
            if were_away.is_empty() && core.metadata.state().groups_that_leave().next().is_some() {
                self.world.sleep(RETRY).await;
                continue;
            }
            if were_away.is_empty() {
                // What is fast may change with the drives of a group.
                select(pin!(core.homing.wait()), pin!(self.world.sleep(LOOK))).await;
                continue;
            }
            let is_rebuilding = self.repair.is_rebuilding(number);
            if is_rebuilding || self.bring_home(number, &were_away).await == 0 {
                if !is_rebuilding {
                    self.tell_stuck(number).await;
                }
                self.world.sleep(RETRY).await;
            }
        }
    }

    /// Tells of volumes of which nothing is away any more.
    fn tell_arrived(&self, number: usize, before: &[u32], now: &[u32]) {
        let state = self.core(number).metadata.state();
        let arrived = before.iter().filter(|volume| !now.contains(volume));
        for volume in arrived.filter_map(|volume| state.volume(*volume)) {
            let group = state.name_of_group(volume.group).unwrap_or_default().to_owned();
            let kind = EventKind::VolumeMigrated { volume: volume.name.clone(), group };
            self.tell(self.pool_subject(number), kind);
        }
    }

    /// Moves what is away of these volumes, as far as there is room; how many extents have moved.
    async fn bring_home(&self, number: usize, volumes: &[u32]) -> u64 {
        let core = self.core(number);
        let (mut moved, mut full) = (0, BTreeSet::new());
        for volume in volumes {
            let mut next = Some(0);
            while let Some(first) = next {
                if self.repair.is_rebuilding(number) {
                    return moved;
                }
                let (extents, home, last) = core.strays(*volume, first, self.batch(number));
                next = last;
                let (some, is_full) = self.move_home(number, &extents, home).await;
                moved += some;
                if is_full {
                    full.insert(home);
                    break;
                }
                self.world.sleep(TURN).await;
            }
        }
        for home in &full {
            // Shards may have in reserve what thick volumes were promised.
            self.space.recall_slot_reserves(number).await;
            // What a tier has moved there gives way.
            if let Some(make_room) = self.space.core(number).room_maker.get() {
                make_room(*home);
            }
        }
        core.note_full(&full, self.world.now());
        moved
    }

    /// How many extents begin to move together: no more than a second's worth, where a rate is set.
    fn batch(&self, number: usize) -> usize {
        let state = self.core(number).metadata.state();
        let extent_bytes = state.geometry().extent_sectors * SECTOR_BYTES;
        match state.tier().rate_bytes_per_s {
            0 => BATCH,
            rate => ((rate / extent_bytes) as usize).clamp(1, BATCH),
        }
    }

    /// Moves extents to a group; how many have moved, and whether it has no room for more.
    async fn move_home(&self, number: usize, extents: &[ExtentId], group: u32) -> (u64, bool) {
        let rate = self.core(number).metadata.state().tier().rate_bytes_per_s;
        let by_shard = rate.div_ceil(self.shards.len().max(1) as u64);
        let pacing = Pacing::Yielding { rate: Some(by_shard).filter(|rate| *rate > 0) };
        let to_fast = TierGroups::of(self.core(number)).is_some_and(|groups| groups.fast == group);
        let mut under_way = Vec::new();
        let mut is_full = false;
        for extent in extents {
            match self.balance.begin_placing(number, *extent, group, (Purpose::Return, pacing)).await {
                Begun::UnderWay(task) => {
                    let wanted = Wanted { extent: *extent, to_fast, reason: TierReason::Placed, value: 0.0 };
                    under_way.push((wanted, task));
                }
                Begun::NotNeeded => {}
                Begun::NoRoom => {
                    is_full = true;
                    break;
                }
            }
        }
        (self.end_of((number, group), under_way).await, is_full)
    }
}

impl TierPool {
    /// Slots of a group that are promised to extents of its thin volumes that are on their way home, but for those that come from one
    /// group. Thick volumes have theirs reserved. What clones have together is counted for each of them.
    pub(super) fn promised_in(&self, home: u32, but_from: Option<u32>) -> u64 {
        let state = self.metadata.state();
        let groups = TierGroups::of(&self.pool);
        let thin = state.volumes().filter(|volume| volume.thin && volume.group == home);
        let strays = |volume: &Volume| -> u64 {
            let away = state.away_of(volume.number).filter(|(other, _)| Some(*other) != but_from);
            away.filter(|(other, _)| is_stray_in(&state, volume, *other, groups.as_ref()))
                .map(|(_, count)| count)
                .sum()
        };
        thin.filter(|volume| !volume.is_unfinished()).map(strays).sum()
    }

    fn volumes_with_strays(&self) -> Vec<u32> {
        let state = self.metadata.state();
        let groups = TierGroups::of(&self.pool);
        let has_some = |volume: &&Volume| strays_of(&state, volume, groups.as_ref()) > 0;
        state.volumes().filter(has_some).map(|volume| volume.number).collect()
    }

    /// Of some extents of a volume from the one of number `first` on, up to `most` that are to go home; its group; where to go on.
    fn strays(&self, volume: u32, first: u32, most: usize) -> (Vec<ExtentId>, u32, Option<u32>) {
        let state = self.metadata.state();
        let groups = TierGroups::of(&self.pool);
        let Some(known) = state.volume(volume) else { return (Vec::new(), 0, None) };
        let mut found = Vec::new();
        let own = state.map(volume).into_iter().flat_map(|map| map.iter_from(first));
        for (number, (index, slot)) in own.enumerate() {
            if number == EXTENTS_AT_ONCE || found.len() == most {
                return (found, known.group, Some(index));
            }
            if is_stray_in(&state, known, self.shape.slots.group_of(slot.slot), groups.as_ref()) {
                found.push(ExtentId { volume, index });
            }
        }
        (found, known.group, None)
    }
}

/// Whether an extent of a volume has no business in a group. Where something is said of the volume's place, what lies in the fast
/// group is the tier's business.
fn is_stray_in(state: &PoolState, volume: &Volume, group: u32, groups: Option<&TierGroups>) -> bool {
    let is_tiers = groups.is_some_and(|all| group == all.fast && all.slow.contains_key(&volume.group))
        && !state.placement(volume.number).is_default();
    group != volume.group && !is_tiers
}

/// How many extents of a volume are to go home.
fn strays_of(state: &PoolState, volume: &Volume, groups: Option<&TierGroups>) -> u64 {
    let away = state.away_of(volume.number);
    away.filter(|(group, _)| is_stray_in(state, volume, *group, groups)).map(|(_, count)| count).sum()
}

/// What of a volume is on its way to its group, in a pool with these groups of a tier.
pub(crate) fn migrating_bytes(state: &PoolState, volume: &Volume, groups: Option<&TierGroups>) -> u64 {
    strays_of(state, volume, groups) * state.geometry().extent_sectors * SECTOR_BYTES
}
