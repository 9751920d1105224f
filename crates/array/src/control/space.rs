//! The space of a pool: what of it is taken, when the administrator is told, and what thin volumes do not get.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::future::{join_all, select};
use tier0_pool::{Member, PoolState, Reserve, Space, SpaceRules, SpaceWarning};
use tier0_units::{Nanos, SECTOR_BYTES, SectorCount, counted};

use super::admin::Done;
use super::{Control, Guarded};
use crate::admin::{AdminError, Severity, SpaceStatus};
use crate::message::command::{ShardCommand, ShardReport};

/// How far below a rule, as a part of the pool, its warning may be told again: what comes and goes around it is told once.
const SLACK_PART: u64 = 50;
/// How long a status waits for what hosts have discarded.
const COLLECT_LIMIT: Nanos = Nanos::from_secs(1);
/// The most urgent of the warnings while writes are served.
const FULL_PERCENT: u8 = 100;

/// The chunklets that a pool keeps free for rebuilding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spares {
    /// Free ones of the drives that hold data and stay, once what leaves is on them.
    free: u64,
    /// As many as they are to keep, as the pool was created.
    kept: u64,
}

impl Spares {
    /// Those of a pool, as they are when the columns on drives that leave, or are lost, have found their places.
    pub(super) fn of(state: &PoolState) -> Spares {
        let geometry = state.geometry();
        let holds_log = |place| state.log().copies().any(|copy| copy.member == place);
        let for_data = state.members_by_place().filter(|(place, member)| {
            member.takes_more() && (state.has_columns(*place) || !holds_log(*place))
        });
        let mut spares = Spares { free: 0, kept: 0 };
        for (place, member) in for_data {
            spares.free += state.free_chunklets(place);
            let kept = state.groups()[member.group as usize].spare_chunklets;
            spares.kept += kept.min(geometry.chunklets(member.sectors));
        }
        let stays = |place: u32| state.member(place).is_some_and(Member::takes_more);
        let homeless =
            state.all_columns().filter(|(set, column)| !stays(state.place_of(*set, *column).drive)).count()
                as u64;
        // What moves has two places until it has.
        let moving = state.rebuilds().filter(|(set, column, _)| stays(state.column(*set, *column).drive));
        let free = spares.free + moving.count() as u64;
        Spares { free: free.saturating_sub(homeless), ..spares }
    }

    /// What is to be told where there are fewer than are to be kept.
    pub(super) fn shortage(&self) -> Option<String> {
        (self.free < self.kept)
            .then(|| format!("spares: {} of {} are free", self.free, counted(self.kept, "chunklet")))
    }
}

impl Guarded {
    /// Slots of a group that thin volumes do not get: the reserve, of which each group keeps its share.
    pub(super) fn kept_slots(&self, group: u32) -> u64 {
        let state = self.metadata.state();
        let kept = self.space_rules.borrow().reserve.of(Space::of(&state).usable);
        let share = u128::from(kept.0) * u128::from(state.slot_count_of(group));
        let share = share.div_ceil(u128::from(state.slot_count().max(1))) as u64;
        share.div_ceil(state.geometry().extent_sectors * SECTOR_BYTES)
    }

    /// What is taken, with what shards use of what they were lent and have not mapped yet.
    pub(super) fn space(&self, reports: &[ShardReport]) -> Space {
        let in_stock = reports.iter().map(|report| report.stock_slots).sum();
        self.space_with_lent(self.metadata.lent_slots().saturating_sub(in_stock))
    }

    fn space_with_lent(&self, slots: u64) -> Space {
        let state = self.metadata.state();
        Space::of(&state).with_more(slots * state.geometry().extent_sectors * SECTOR_BYTES)
    }

    /// The space for the status. A pool that is paused gets no remedies, which it could not follow.
    pub(super) fn space_status(&self, space: &Space, is_paused: bool) -> SpaceStatus {
        let rules = self.space_rules.borrow();
        let told = |warning: &SpaceWarning| match is_paused {
            true => warning.in_two().0,
            false => warning.to_string(),
        };
        SpaceStatus {
            usable_bytes: space.usable.0,
            used_bytes: space.used.0,
            reserved_bytes: space.reserved.0,
            kept_bytes: rules.reserve.of(space.usable).0,
            provisioned_bytes: space.promised.0,
            warnings: space.warnings(&rules).iter().map(told).collect(),
        }
    }
}

impl Control {
    /// What the array file says of its pools' space.
    pub(crate) fn follow_space_rules(&self, rules: &BTreeMap<String, SpaceRules>) {
        for pool in &self.pools {
            if let Some(rules) = rules.get(&pool.name) {
                *pool.guarded.space_rules.borrow_mut() = rules.clone();
            }
        }
    }

    /// Tells when a pool's space has become more of a concern than was told before.
    pub(super) async fn look_at_space(&self, number: usize) {
        let guarded = self.guarded(number);
        let (told, rules) = (guarded.space_told.get(), guarded.space_rules.borrow().clone());
        // At most, because some of what was lent is in stock: shards are asked only where that might matter.
        let most = guarded.space_with_lent(guarded.metadata.lent_slots());
        if urgency(&most, &rules) > told {
            let space = guarded.space(&self.reports(number).await);
            let now = urgency(&space, &rules);
            if now > told {
                guarded.space_told.set(now);
                self.tell_of_space(number, &space, &rules);
            }
            return;
        }
        let still = urgency(&most.with_more(most.usable.0 / SLACK_PART), &rules);
        if still < told {
            guarded.space_told.set(still);
            if told > FULL_PERCENT && still <= FULL_PERCENT {
                let thing = format!("pool {}", self.pools[number].name);
                self.tell(Severity::Info, thing, "there is space for new data again", "");
            }
        }
    }

    fn tell_of_space(&self, number: usize, space: &Space, rules: &SpaceRules) {
        let warnings = space.warnings(rules);
        let Some(worst) = warnings.first() else { return };
        let severity = if worst.refuses_writes() { Severity::Critical } else { Severity::Warning };
        let (what, remedy) = worst.in_two();
        self.tell(severity, format!("pool {}", self.pools[number].name), what, remedy);
    }

    /// Has what hosts have discarded counted as free, which it otherwise is some time after, when it is destaged. A
    /// pool that is paused is not asked, and the caller waits for [`COLLECT_LIMIT`] at most.
    pub(super) async fn collect_discarded(&self) {
        let pools = (0..self.pools.len()).filter(|number| self.guarded(*number).pauses.since().is_none());
        let collected =
            join_all(pools.map(|pool| self.ask_all(move |reply| ShardCommand::Reclaim { pool, reply })));
        select(pin!(collected), pin!(self.world.sleep(COLLECT_LIMIT))).await;
    }

    /// How a pool does in every shard that answers.
    pub(super) async fn reports(&self, number: usize) -> Vec<ShardReport> {
        let reports = self.ask_all(|reply| ShardCommand::Report { pool: number, reply }).await;
        reports.into_iter().flatten().collect()
    }

    /// What thin volumes do not get from now on.
    pub(super) fn set_reserve(&self, pool: Option<&str>, reserve: Reserve) -> Done {
        let number = self.pool_meant(pool)?;
        let guarded = self.guarded(number);
        let usable = Space::of(&guarded.metadata.state()).usable;
        if reserve.of(usable) > usable {
            return Err(AdminError::new(format!(
                "pool {:?} has {usable}, so {} of it cannot be kept; use a share (10%) or a size below that",
                self.pools[number].name,
                reserve.of(usable)
            )));
        }
        let extent = SectorCount(guarded.metadata.state().geometry().extent_sectors).bytes();
        if matches!(reserve, Reserve::Bytes(bytes) if bytes.0 > 0 && bytes < extent) {
            return Err(AdminError::new(format!(
                "{reserve} is less than one extent ({extent}), in which thin volumes take space, and keeps nothing; use a \
                 share (10%), a larger size, or 0 to keep nothing"
            )));
        }
        let before = std::mem::replace(&mut guarded.space_rules.borrow_mut().reserve, reserve);
        let name = &self.pools[number].name;
        Ok(format!(
            "pool {name} keeps {} of {usable} from thin volumes (before: {}) until it is started again; \
             \"tier0 config\" prints the array file that keeps it so",
            reserve.of(usable),
            before.of(usable)
        ))
    }
}

/// The urgency of the worst that is to be told.
fn urgency(space: &Space, rules: &SpaceRules) -> u8 {
    space.warnings(rules).iter().map(SpaceWarning::urgency).max().unwrap_or(0)
}
