//! The space of a pool: what of it is taken, when the administrator is told, and what thin volumes do not get.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::future::{join_all, select};
use tier0_api::{EventKind, Finding, FindingKind, SpaceStatus, Subject};
use tier0_pool::{Member, PoolState, Reserve, SpaceRules, SpaceWarning};
use tier0_units::{ByteCount, Nanos, SECTOR_BYTES, SectorCount};

use super::{Space, SpacePool};
use crate::admin::{AdminError, space_level};
use crate::context::Done;
use crate::message::command::{ShardCommand, ShardReport};
use crate::report::lacking_groups;

/// How far below a rule, as a part of the pool, its warning may be told again: what comes and goes around it is told once.
const SLACK_PART: u64 = 50;
/// How long a status waits for what hosts have discarded.
const COLLECT_LIMIT: Nanos = Nanos::from_secs(1);
/// The most urgent of the warnings while writes are served.
const FULL_PERCENT: u8 = 100;

/// The chunklets that a pool keeps free for rebuilding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spares {
    /// Free ones of the drives that hold data and stay, once what leaves is on them.
    free: u64,
    /// As many as they are to keep, as the pool was created.
    kept: u64,
}

impl Spares {
    /// Those of a group's drives, as they are when the columns on drives that leave, or are lost, have found their places.
    fn of(state: &PoolState, group: u32) -> Spares {
        let geometry = state.geometry();
        let for_data = state.members_by_place().filter(|(place, member)| {
            member.group == group && member.takes_more() && state.is_for_data(*place)
        });
        let mut spares = Spares { free: 0, kept: 0 };
        let kept = state.groups()[group as usize].spare_chunklets;
        for (place, member) in for_data {
            spares.free += state.free_chunklets(place);
            spares.kept += kept.min(geometry.chunklets(member.sectors));
        }
        let stays = |place: u32| state.member(place).is_some_and(Member::takes_more);
        let is_own = |set: u32| state.group_number_of(set) == group;
        let columns = state.all_columns().filter(|(set, _)| is_own(*set));
        let homeless = columns.filter(|(set, column)| !stays(state.place_of(*set, *column).drive));
        // What moves has two places until it has.
        let rebuilds = state.rebuilds().filter(|(set, ..)| is_own(*set));
        let moving = rebuilds.filter(|(set, column, _)| stays(state.column(*set, *column).drive));
        let free = spares.free + moving.count() as u64;
        Spares { free: free.saturating_sub(homeless.count() as u64), ..spares }
    }

    /// What is to be told where a pool, or a group of its sets, has fewer than are to be kept.
    pub(crate) fn shortage(state: &PoolState) -> Option<FindingKind> {
        state.groups_that_stay().find_map(|number| {
            let Spares { free, kept } = Spares::of(state, number);
            let group = state.name_of_group(number).map(str::to_owned);
            let add_to = lacking_groups(state);
            (free < kept).then_some(FindingKind::SparesLacking { group, free, kept, add_to })
        })
    }
}

/// What fills by itself: a group of a pool's sets, for the volumes that lie on it.
pub(crate) struct Part {
    /// Its name, where the pool has named groups.
    pub(crate) name: Option<String>,
    pub(crate) space: tier0_pool::Space,
    /// What of it a tier moves elsewhere when it is needed.
    lent: ByteCount,
    /// Those of the pool, with the group's share of the reserve.
    pub(crate) rules: SpaceRules,
}

impl Part {
    /// What an administrator should know, the worst first.
    pub(crate) fn warnings(&self) -> Vec<SpaceWarning> {
        self.space_without_lent().warnings(&self.rules)
    }

    fn space_without_lent(&self) -> tier0_pool::Space {
        let used = ByteCount(self.space.used.0.saturating_sub(self.lent.0));
        tier0_pool::Space { used, ..self.space }
    }

    /// A warning as a finding.
    pub(crate) fn finding(&self, warning: &SpaceWarning) -> FindingKind {
        FindingKind::Space { level: space_level(warning), group: self.name.clone() }
    }

    /// The urgency of the worst that is to be told.
    fn urgency(&self) -> u8 {
        self.warnings().iter().map(SpaceWarning::urgency).max().unwrap_or(0)
    }

    /// The urgency if a bit more were taken.
    fn urgency_with_slack(&self) -> u8 {
        let space = self.space.with_more(self.space.usable.0 / SLACK_PART);
        Part { name: None, space, lent: self.lent, rules: self.rules.clone() }.urgency()
    }
}

impl SpacePool {
    /// Slots of a group that thin volumes do not get: the reserve, of which each group that stays keeps its share.
    pub(crate) fn kept_slots(&self, group: u32) -> u64 {
        self.kept_slots_without(group, None)
    }

    /// The same when another group has left.
    fn kept_slots_without(&self, group: u32, leaving: Option<u32>) -> u64 {
        let state = self.metadata.state();
        if !state.group_stays(group) {
            return 0;
        }
        let extent = state.geometry().extent_sectors * SECTOR_BYTES;
        let stay = state.groups_that_stay().filter(|other| Some(*other) != leaving);
        let all: u64 = stay.map(|other| state.slot_count_of(other)).sum();
        let kept = self.rules.borrow().reserve.of(ByteCount(all.saturating_mul(extent)));
        let share = u128::from(kept.0) * u128::from(state.slot_count_of(group));
        let share = share.div_ceil(u128::from(all.max(1))) as u64;
        share.div_ceil(extent)
    }

    /// Slots of a group that are free beside the reserve that it keeps when another group has left, and that reserve.
    pub(crate) fn room_beside_reserve(
        &self,
        reports: &[ShardReport],
        group: u32,
        leaving: Option<u32>,
    ) -> (u64, u64) {
        let kept = self.kept_slots_without(group, leaving);
        let held = self.slots_in_use_unmapped(reports, group);
        (self.metadata.state().room_in(group).saturating_sub(held + kept), kept)
    }

    /// By group what is taken, with what shards use of what was allocated to them and is not mapped yet.
    pub(crate) fn parts(&self, reports: &[ShardReport]) -> Vec<Part> {
        self.parts_with_unmapped(|group| self.slots_in_use_unmapped(reports, group))
    }

    /// Slots of a group that shards use and that are not mapped yet.
    fn slots_in_use_unmapped(&self, reports: &[ShardReport], group: u32) -> u64 {
        let in_reserves: u64 =
            reports.iter().filter_map(|report| report.slot_reserve_slots.get(&group)).sum();
        self.slots_held(group).saturating_sub(in_reserves)
    }

    /// Slots of a group that have no extent and are not free either: those that are being discarded are as good as free.
    fn slots_held(&self, group: u32) -> u64 {
        self.metadata.allocated_unmapped_slots(group).saturating_sub(self.discards.pending(group))
    }

    fn parts_with_unmapped(&self, allocated: impl Fn(u32) -> u64) -> Vec<Part> {
        let state = self.metadata.state();
        let extent = state.geometry().extent_sectors * SECTOR_BYTES;
        let rules = self.rules.borrow();
        let part = |group: u32| {
            let name = state.name_of_group(group).map(str::to_owned);
            let reserve = match &name {
                Some(_) => Reserve::Bytes(ByteCount(self.kept_slots(group) * extent)),
                None => rules.reserve,
            };
            let space = tier0_pool::Space::of_group(&state, group).with_more(allocated(group) * extent);
            let lent = ByteCount(state.lent_to_tier(group) * extent);
            Part { name, space, lent, rules: SpaceRules { reserve, ..rules.clone() } }
        };
        (0..state.groups().len() as u32).map(part).collect()
    }

    /// The space for the status. A pool that is paused gets no remedies, which it could not follow.
    pub(crate) fn space_status(&self, parts: &[Part], is_paused: bool) -> SpaceStatus {
        let rules = self.rules.borrow();
        let subject = Subject::pool(self.metadata.state().name());
        let told = |part: &Part| -> Vec<String> {
            let finding = |warning| Finding::new(subject.clone(), &part.finding(warning), is_paused).text();
            part.warnings().iter().map(finding).collect()
        };
        let all = parts.iter().map(|part| part.space).reduce(|all, space| all.and(&space));
        let space = all.expect("a pool has a group");
        SpaceStatus {
            usable_bytes: space.usable.0,
            used_bytes: space.used.0,
            reserved_bytes: space.reserved.0,
            kept_bytes: rules.reserve.of(space.usable).0,
            provisioned_bytes: space.promised.0,
            warnings: parts.iter().flat_map(told).collect(),
        }
    }
}

impl Space {
    /// What the array file says of its pools' space.
    pub(crate) fn follow_rules(&self, rules: &BTreeMap<String, SpaceRules>) {
        for pool in &self.by_pool {
            if let Some(rules) = rules.get(&pool.name) {
                *pool.rules.borrow_mut() = rules.clone();
            }
        }
    }

    /// Tells when a pool's space has become more of a concern than was told before.
    pub(crate) async fn look_at_space(&self, number: usize) {
        let core = self.core(number);
        let told = |group: u32| core.told.borrow().get(&group).copied().unwrap_or(0);
        // At most, because some of what was allocated is in slot reserves: shards are asked only where that might matter.
        let most = core.parts_with_unmapped(|group| core.slots_held(group));
        let (mut more, mut rest) = (Vec::new(), Vec::new());
        for (group, part) in (0u32..).zip(&most) {
            if part.urgency() > told(group) { more.push(group) } else { rest.push((group, part)) }
        }
        for (group, part) in rest {
            let (told, still) = (told(group), part.urgency_with_slack());
            if still < told {
                core.told.borrow_mut().insert(group, still);
                if told > FULL_PERCENT && still <= FULL_PERCENT {
                    let kind = EventKind::SpaceAvailable { group: part.name.clone() };
                    self.tell(self.pool_subject(number), kind);
                }
            }
        }
        if more.is_empty() {
            return;
        }
        let now = core.parts(&self.reports(number).await);
        for group in more {
            let part = &now[group as usize];
            if part.urgency() > told(group) {
                core.told.borrow_mut().insert(group, part.urgency());
                self.tell_of_space(number, part);
            }
        }
    }

    fn tell_of_space(&self, number: usize, part: &Part) {
        let Some(worst) = part.warnings().into_iter().next() else { return };
        let kind = EventKind::Space { level: space_level(&worst), group: part.name.clone() };
        self.tell(self.pool_subject(number), kind);
    }

    /// Has what hosts have discarded counted as free, which it otherwise is some time after, when it is destaged. A
    /// pool that is paused is not asked, and the caller waits for [`COLLECT_LIMIT`] at most.
    pub(crate) async fn collect_discarded(&self) {
        let pools = (0..self.pools.len()).filter(|number| self.core(*number).pauses.since().is_none());
        let collected = join_all(
            pools.map(|pool| self.ask_all(move |reply| ShardCommand::Reclaim { pool, group: None, reply })),
        );
        select(pin!(collected), pin!(self.world.sleep(COLLECT_LIMIT))).await;
    }

    /// What thin volumes do not get from now on.
    pub(crate) fn set_reserve(&self, pool: Option<&str>, reserve: Reserve) -> Done {
        let number = self.pool_meant(pool)?;
        let core = self.core(number);
        let usable = tier0_pool::Space::of(&core.metadata.state()).usable;
        if reserve.of(usable) > usable {
            return Err(AdminError::new(format!(
                "pool {:?} has {usable}, so {} of it cannot be reserved; use a share (10%) or a smaller size",
                self.pools[number].name,
                reserve.of(usable)
            )));
        }
        let extent = SectorCount(core.metadata.state().geometry().extent_sectors).bytes();
        if matches!(reserve, Reserve::Bytes(bytes) if bytes.0 > 0 && bytes < extent) {
            return Err(AdminError::new(format!(
                "{reserve} is less than one extent ({extent}), the allocation unit of thin volumes, and \
                 reserves nothing; use a share (10%), a larger size, or 0 for no reserve"
            )));
        }
        let before = std::mem::replace(&mut core.rules.borrow_mut().reserve, reserve);
        let name = &self.pools[number].name;
        if before == reserve {
            let is = reserve.of(usable);
            return Err(AdminError::unchanged(format!(
                "reserve of pool {name} is {is} of {usable} already; nothing changed"
            )));
        }
        Ok(format!(
            "reserve of pool {name} is {} of {usable} (before: {}) until the next start; to keep it, replace \
             the array file by the output of \"tier0 config\"",
            reserve.of(usable),
            before.of(usable)
        ))
    }
}
