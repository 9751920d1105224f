//! A round of a tier: what shards report, what is chosen, what moves.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::select;
use tier0_api::{TierHold, TierReason};
use tier0_policy::tier::{Candidate, Choice, GroupCost, Histogram, Latencies, PaceChange, Room, choose};
use tier0_pool::{MetaRecord, Place, Placement, Volume};
use tier0_units::{ExtentId, Nanos, SECTOR_BYTES};

use super::groups::{TierGroups, slow_groups};
use super::moves::{MoveLimits, Wanted};
use super::{TierPool, Tiering};
use crate::message::command::ShardCommand;
use crate::message::tier::{HotExtent, TierQuery, TierReport, TierRules, VolumeRule};

/// How long a round takes.
const ROUND: Nanos = Nanos::from_secs(5);
/// How long of it extents may begin to move.
const MOVING: Nanos = Nanos::from_secs(4);
/// An extent that has moved stays for so long.
const RESIDENCY: Nanos = Nanos::from_secs(60);
/// The most moves of a round.
const MOVES_MAX: usize = 1024;
/// Of the fast group this part of its slots is kept free, so that what becomes hot need not wait; at least one, and at most so many.
const HEADROOM_PART: u64 = 50;
const HEADROOM_MAX: u64 = 64;

/// What a round has found and chosen.
pub(crate) struct Round {
    /// What the shards know, together.
    pub(crate) report: TierReport,
    /// What is to move, in this order.
    pub(crate) wanted: Vec<Wanted>,
    /// The value from which on an extent moves to the fast group; `None` if none can.
    pub(crate) cutoff: Option<f64>,
    /// What keeps extents from moving there.
    pub(crate) hold: Option<TierHold>,
}

/// Counters of shards at a moment.
#[derive(Clone, Copy, Default)]
pub(super) struct Measured {
    pub(super) slow: Latencies,
    pub(super) fast: Latencies,
}

/// What a round leaves to the next one.
#[derive(Default)]
struct Seen {
    /// Requests that hosts had begun.
    requests: Option<u64>,
    measured: Measured,
}

impl Measured {
    fn since(self, earlier: Measured) -> Measured {
        Measured { slow: self.slow.since(earlier.slow), fast: self.fast.since(earlier.fast) }
    }
}

impl Tiering {
    /// Makes rounds as long as the array runs, while there is something to count.
    pub(crate) async fn keep_tiering(self: Rc<Self>, number: usize) {
        let core = self.core(number);
        let has_placements = core.metadata.state().placements().next().is_some();
        if has_placements {
            self.begin_counting(number);
        }
        let mut seen = Seen::default();
        loop {
            while core.counted_since.get().is_none() {
                core.changed.wait().await;
            }
            let due = self.world.now() + ROUND;
            self.round(number, due, &mut seen).await;
            self.until_due(number, due).await;
        }
    }

    /// Waits for a time, or until a round is due before it.
    pub(crate) async fn until_due(&self, number: usize, time: Nanos) {
        let core = self.core(number);
        while !core.is_due.get() && self.world.now() < time {
            select(pin!(self.world.sleep_until(time)), pin!(core.changed.wait())).await;
        }
    }

    /// Makes a round, which is to end at `due`. `seen` is what the last one has seen.
    async fn round(&self, number: usize, due: Nanos, seen: &mut Seen) {
        let core = self.core(number);
        let began = self.world.now();
        core.is_due.set(false);
        if core.metadata.failure().is_some() {
            return;
        }
        self.forget_ended_pins(number).await;
        let groups = TierGroups::of(core);
        let rules = Arc::new(self.rules(number, groups.as_ref()));
        let report = self.gather(number, &rules).await;
        let is_idle = seen.requests.replace(report.requests) == Some(report.requests);
        let Some(groups) = groups else {
            core.last.replace(Some(Round { report, wanted: Vec::new(), cutoff: None, hold: None }));
            return;
        };
        let before = self.measure(number, groups.fast).await;
        core.compare_groups(before.since(std::mem::replace(&mut seen.measured, before)));
        let lacking = core.lacking.take();
        let round = self.decide(number, &groups, report, lacking).await;
        let wanted = round.wanted.clone();
        core.last.replace(Some(round));
        let until = if is_idle { due } else { began + MOVING };
        let limits = MoveLimits { per_s: core.moves_per_s(is_idle || lacking > 0), until };
        if !wanted.is_empty() && self.balance.mix_groups(number).await.is_err() {
            return;
        }
        let moved = self.carry_out(number, &groups, &wanted, limits).await;
        if moved > 0 && !is_idle {
            let after = self.measure(number, groups.fast).await;
            if self.world.now() >= due {
                // The drives took longer than a round for what has begun in one.
                core.slow_down();
                return;
            }
            self.until_due(number, due).await;
            let end = self.measure(number, groups.fast).await;
            core.learn(after.since(before), end.since(after));
        }
    }

    /// What has ended by now is not remembered.
    async fn forget_ended_pins(&self, number: usize) {
        let now = self.world.unix_s();
        let core = self.core(number);
        let ended: Vec<_> = {
            let state = core.metadata.state();
            let shorter = |(volume, placement): (u32, &Placement)| {
                let left = placement.clone().at(now);
                (left != *placement).then_some((volume, left))
            };
            state.placements().filter_map(shorter).collect()
        };
        let record = |(volume, placement)| MetaRecord::PlacementChanged { volume, placement };
        if !ended.is_empty() {
            // They do not hold in any case.
            let _ = core.commit(ended.into_iter().map(record).collect()).await;
            core.homing.notify_all();
        }
    }

    fn rules(&self, number: usize, groups: Option<&TierGroups>) -> TierRules {
        let core = self.core(number);
        let state = core.metadata.state();
        let slow = slow_groups(core, &state);
        let now = self.world.unix_s();
        let rule = |volume: &Volume| {
            let small_write = slow.get(&volume.group).map(GroupCost::small_write)?;
            let placement = state.placement(volume.number);
            let pinned = TierPool::pinned(&placement, now);
            Some((volume.number, VolumeRule { is_auto: placement.place == Place::Auto, pinned, small_write }))
        };
        TierRules {
            fast: groups.map(|groups| groups.fast),
            volumes: state.volumes().filter_map(rule).collect(),
            most: MOVES_MAX / self.shards.len().max(1),
            value_of_residents: groups.map_or(0.0, |groups| 2.0 * groups.move_costs().promotion),
        }
    }

    /// What all shards know.
    async fn gather(&self, number: usize, rules: &Arc<TierRules>) -> TierReport {
        let reports = self
            .ask_all(|reply| ShardCommand::Tier {
                pool: number,
                query: TierQuery::Report { rules: rules.clone(), reply },
            })
            .await;
        let mut all = TierReport::default();
        for report in reports.into_iter().flatten() {
            all.hot.extend(report.hot);
            all.cold.extend(report.cold);
            all.slow.merge(&report.slow);
            all.fast.merge(&report.fast);
            all.requests += report.requests;
            all.memory_bytes += report.memory_bytes;
        }
        all.hot.sort_by(|one, other| other.value.total_cmp(&one.value));
        all.cold.sort_by(|one, other| one.value.total_cmp(&other.value));
        all
    }

    /// How long hosts have waited for the drives of each kind of group, in all shards.
    pub(super) async fn measure(&self, number: usize, fast: u32) -> Measured {
        let query = |reply| ShardCommand::Tier { pool: number, query: TierQuery::Latencies { reply } };
        let mut all = Measured::default();
        for latencies in self.ask_all(query).await.into_iter().flatten() {
            for (group, one) in (0..).zip(latencies) {
                let sum = if group == fast { &mut all.fast } else { &mut all.slow };
                *sum = sum.and(one);
            }
        }
        all
    }

    /// What is to move: first what was placed by hand, then what the policy chooses. So many slots others need in the fast group.
    async fn decide(&self, number: usize, groups: &TierGroups, report: TierReport, lacking: u64) -> Round {
        let core = self.core(number);
        let by_hand = self.placed_elsewhere(number, groups, MOVES_MAX).await;
        let by_hand = self.with_room(number, groups, by_hand, report.cold.len());
        let demand = by_hand.iter().filter(|wanted| wanted.to_fast).count() as u64 + lacking;
        let recent = core.history.borrow().since(self.world.now().saturating_sub(RESIDENCY));
        let candidates = |all: &[HotExtent]| -> Vec<Candidate<ExtentId>> {
            let settled = all.iter().filter(|one| !recent.contains(&one.extent));
            settled.map(|one| Candidate { key: one.extent, value: one.value }).collect()
        };
        let (hot, mut cold) = (candidates(&report.hot), candidates(&report.cold));
        if lacking > 0 {
            // Others wait: what has come just now gives way too.
            cold = report.cold.iter().map(|one| Candidate { key: one.extent, value: one.value }).collect();
        }
        core.allowance.borrow_mut().advance(self.world.now());
        let slots = core.metadata.state().slot_count_of(groups.fast);
        let allowed = core.allowance.borrow().slots(slots);
        let mut hold = self.hold(number, allowed);
        let most = if hold.is_some() || lacking > 0 { 0 } else { allowed as usize };
        let headroom = (slots / HEADROOM_PART).clamp(1, HEADROOM_MAX) + demand;
        let kept = self.space.core(number).kept_slots(groups.fast);
        let room = Room { free: core.metadata.free_slots(groups.fast), headroom: headroom + kept };
        let choice = choose(&hot, &cold, room, groups.move_costs(), most);
        if hold.is_none() && room.free == 0 && report.cold.is_empty() {
            hold = Some(TierHold::NoRoom);
        }
        let cutoff = Some(choice.cutoff).filter(|cutoff| cutoff.is_finite());
        let is_on = core.metadata.state().tier().is_on;
        let by_policy = if is_on || demand > 0 { in_order(choice, room.free) } else { Vec::new() };
        let wanted = join(by_hand, by_policy);
        Round { report, wanted, cutoff, hold }
    }

    /// Of what was placed by hand as much as finds room, so that what does not keeps nothing else from moving.
    fn with_room(
        &self,
        number: usize,
        groups: &TierGroups,
        mut wanted: Vec<Wanted>,
        may_give_way: usize,
    ) -> Vec<Wanted> {
        let leave = wanted.iter().filter(|one| !one.to_fast).count();
        let free = self.core(number).metadata.free_slots(groups.fast);
        let free = free.saturating_sub(self.space.core(number).kept_slots(groups.fast)) as usize;
        let mut room = free + leave + may_give_way;
        wanted.retain(|one| {
            let fits = !one.to_fast || room > 0;
            room -= usize::from(fits && one.to_fast);
            fits
        });
        wanted
    }

    fn hold(&self, number: usize, allowed: u64) -> Option<TierHold> {
        let core = self.core(number);
        match () {
            () if !core.metadata.state().tier().is_on => Some(TierHold::Off),
            () if self.repair.is_rebuilding(number) => Some(TierHold::Rebuild),
            () if core.is_fast_slower.get() => Some(TierHold::FastIsSlower),
            () if allowed == 0 => Some(TierHold::DailyWrites),
            () => None,
        }
    }
}

/// What the policy chooses, so that what makes room comes before what needs it.
fn in_order(choice: Choice<ExtentId>, free: u64) -> Vec<Wanted> {
    let to = |to_fast: bool, reason: TierReason| {
        move |one: Candidate<ExtentId>| Wanted { extent: one.key, to_fast, reason, value: one.value }
    };
    let mut promotions = choice.promotions.into_iter().map(to(true, TierReason::Hot));
    let mut demotions = choice.demotions.into_iter().map(to(false, TierReason::GivesWay));
    let mut all: Vec<Wanted> = promotions.by_ref().take(free as usize).collect();
    loop {
        let (down, up) = (demotions.next(), promotions.next());
        if down.is_none() && up.is_none() {
            return all;
        }
        all.extend(down);
        all.extend(up);
    }
}

/// What was placed by hand goes first, but after what makes room for it.
fn join(by_hand: Vec<Wanted>, by_policy: Vec<Wanted>) -> Vec<Wanted> {
    let (down, up): (Vec<Wanted>, Vec<Wanted>) = by_hand.into_iter().partition(|wanted| !wanted.to_fast);
    let mut all = down;
    let (mut by_policy, mut up) = (by_policy.into_iter().peekable(), up.into_iter());
    while up.len() > 0 {
        all.extend(by_policy.next_if(|wanted| !wanted.to_fast));
        all.extend(up.next());
    }
    all.extend(by_policy);
    all
}

impl TierPool {
    /// How many moves may begin in a second.
    fn moves_per_s(&self, is_idle: bool) -> Option<f64> {
        let state = self.metadata.state();
        let rate = state.tier().rate_bytes_per_s;
        let extent_bytes = (state.geometry().extent_sectors * SECTOR_BYTES) as f64;
        let by_rate = (rate > 0).then(|| (rate as f64 / extent_bytes).max(1e-3));
        let by_pace = (!is_idle).then(|| self.pace.get().per_s());
        match (by_rate, by_pace) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Moves took so long that nothing could be compared.
    fn slow_down(&self) {
        let mut pace = self.pace.get();
        pace.halve();
        self.pace.set(pace);
    }

    /// What hosts waited for while extents moved, and while none did.
    fn learn(&self, moving: Measured, quiet: Measured) {
        let mut pace = self.pace.get();
        let change = pace.learn(quiet.slow, moving.slow);
        self.pace.set(pace);
        if change == PaceChange::Halved {
            tracing::debug!(pool = self.name, per_s = pace.per_s(), "moves slow down for hosts");
        }
    }
}

impl TierPool {
    /// Whether hosts waited longer for the fast group. Where too little was asked of one of them, it is not.
    fn compare_groups(&self, lately: Measured) {
        let means = lately.slow.mean_ns().zip(lately.fast.mean_ns());
        self.is_fast_slower.set(means.is_some_and(|(slow, fast)| fast >= slow));
    }
}

impl Round {
    /// The share of the value of all extents that lies in the fast group; `None` if nothing was accessed.
    pub(crate) fn share_on_fast(&self) -> Option<f64> {
        let (slow, fast) = (self.report.slow.value(), self.report.fast.value());
        (slow + fast > 0.0).then(|| fast / (slow + fast))
    }

    /// The extents of both groups by value.
    pub(crate) fn all_extents(&self) -> Histogram {
        let mut all = self.report.slow.clone();
        all.merge(&self.report.fast);
        all
    }
}
