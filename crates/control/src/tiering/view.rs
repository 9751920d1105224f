//! What administrators see of a tier.

use tier0_api::{TierCurvePoint, TierExplanation, TierHold, TierIo, TierMove, TierPlan, TierStatus};
use tier0_policy::tier::{Accesses, curve};
use tier0_pool::{PoolState, Volume};
use tier0_units::{ByteCount, ExtentId, SECTOR_BYTES};
use tier0_volume::owner;
use tier0_world::sync::oneshot;

use super::groups::{TierGroups, slow_groups};
use super::history::Made;
use super::moves::Wanted;
use super::round::{Measured, Round};
use super::settings::place_at;
use super::{TierPool, Tiering};
use crate::ShardRequest;
use crate::admin::AdminError;
use crate::message::command::ShardCommand;
use crate::message::tier::{TierQuery, VolumeRule};
use crate::volumes::lifecycle::Meant;

/// Moves of an extent that are told, and next moves of a plan.
const MOVES_TOLD: usize = 32;

impl Tiering {
    /// How the tier of a pool does; `None` if nothing is placed and no plan was asked for.
    pub(crate) fn status(&self, number: usize) -> Option<TierStatus> {
        let core = self.core(number);
        core.counted_since.get()?;
        let groups = TierGroups::of(core)?;
        let state = core.metadata.state();
        let bytes = |slots: u64| slots * state.geometry().extent_sectors * SECTOR_BYTES;
        let away = |volume: &Volume| -> u64 {
            let there = state.away_of(volume.number).filter(|(group, _)| *group == groups.fast);
            there.map(|(_, count)| count).sum()
        };
        let used = state.used_slot_count_of(groups.fast);
        let last = core.last.borrow();
        let round = last.as_ref();
        let tier = state.tier();
        Some(TierStatus {
            fast_group: state.groups()[groups.fast as usize].name.clone(),
            is_on: tier.is_on,
            rate_bytes_per_s: Some(tier.rate_bytes_per_s).filter(|rate| *rate > 0),
            fast_bytes: bytes(state.slot_count_of(groups.fast)),
            fast_used_bytes: bytes(used),
            // Clones have some of them together.
            fast_promoted_bytes: bytes(state.volumes().map(away).sum::<u64>().min(used)),
            cutoff: round.and_then(|round| round.cutoff),
            share_on_fast: round.and_then(|round| round.share_on_fast()),
            moves_wanted: round.map_or(0, |round| round.wanted.len() as u64),
            moves: core.history.borrow().counts(),
            pace_per_s: core.pace.get().per_s(),
            writes_left_bytes: bytes(core.allowance.borrow().slots(state.slot_count_of(groups.fast))),
            hold: core.hold_now(round),
            heat_bytes: round.map_or(0, |round| round.report.memory_bytes),
        })
    }

    /// What the tier of a pool has done; `None` as for its [`status`](Tiering::status).
    pub(crate) async fn io(&self, number: usize) -> Option<TierIo> {
        let TierStatus { fast_group, fast_bytes, fast_used_bytes, fast_promoted_bytes, moves, .. } =
            self.status(number)?;
        let groups = TierGroups::of(self.core(number))?;
        let Measured { slow, fast } = self.measure(number, groups.fast).await;
        Some(TierIo {
            fast_group,
            fast_bytes,
            fast_used_bytes,
            fast_promoted_bytes,
            moves,
            reads_fast: fast.count,
            reads_slow: slow.count,
        })
    }

    /// What the tier knows of the extent at an offset of a volume.
    pub(crate) async fn explain(&self, name: &str, offset: ByteCount) -> Result<TierExplanation, AdminError> {
        let Meant { pool, record, .. } = self.volumes.volume_meant(name)?;
        let core = self.core(pool);
        if offset.0 >= record.sectors * SECTOR_BYTES {
            return Err(AdminError::new(format!(
                "offset {offset} is behind the end of volume {name:?}, which has {:#}; give one inside it",
                ByteCount(record.sectors * SECTOR_BYTES)
            )));
        }
        if core.counted_since.get().is_none() {
            self.begin_counting(pool);
        }
        let extent_bytes = core.metadata.state().geometry().extent_sectors * SECTOR_BYTES;
        let extent = ExtentId { volume: record.number, index: (offset.0 / extent_bytes) as u32 };
        let accesses = self.heat_of(pool, &record, extent).await;
        let now = self.world.unix_s();
        let state = core.metadata.state();
        let small_write = slow_groups(core, &state).get(&record.group).map_or(1.0, |cost| cost.small_write());
        let rule = VolumeRule { is_auto: true, pinned: Vec::new(), small_write };
        let group = state.slot(extent).map(|slot| core.shape.slots.group_of(slot.slot));
        let placement = state.placement(record.number);
        let pin = placement.pins.iter().find(|pin| pin.extents.contains(&extent.index) && pin.holds_at(now));
        let history = core.history.borrow();
        let moves: Vec<TierMove> =
            history.of(extent).take(MOVES_TOLD).map(|made| self.told(core, &state, *made)).collect();
        let last = core.last.borrow();
        Ok(TierExplanation {
            volume: name.to_owned(),
            offset_bytes: u64::from(extent.index) * extent_bytes,
            extent_bytes,
            group: group.map(|group| name_of(&state, group)),
            is_fast: group.is_some() && TierGroups::of(core).map(|groups| groups.fast) == group,
            is_home: group == Some(record.group),
            since_s: moves.first().and_then(|last| last.ago_s),
            place: place_at(&state, record.number, extent.index, now),
            is_pinned: pin.is_some(),
            pinned_until_unix_s: pin.map(|pin| pin.until_unix_s).filter(|until| *until > 0),
            reads: accesses.reads.into(),
            writes: accesses.writes.into(),
            value: rule.value(accesses),
            cutoff: last.as_ref().and_then(|round| round.cutoff),
            hold: core.hold_now(last.as_ref()),
            moves,
        })
    }

    /// What the tier of a pool does next, and what each size of flash would serve.
    pub(crate) fn plan(&self, pool: Option<&str>) -> Result<TierPlan, AdminError> {
        let number = self.pool_meant(pool)?;
        let core = self.core(number);
        if core.counted_since.get().is_none() {
            self.begin_counting(number);
        }
        let groups = TierGroups::of(core);
        let state = core.metadata.state();
        let extent_bytes = state.geometry().extent_sectors * SECTOR_BYTES;
        let last = core.last.borrow();
        let round = last.as_ref();
        let points = round.map(|round| curve(&round.all_extents())).unwrap_or_default();
        let point = |point: tier0_policy::tier::CurvePoint| TierCurvePoint {
            flash_bytes: point.extents * extent_bytes,
            share: point.share,
        };
        let next = round.map(|round| round.wanted.as_slice()).unwrap_or_default();
        let since = core.counted_since.get().unwrap_or_default();
        let fast = groups.map(|groups| groups.fast);
        Ok(TierPlan {
            pool: core.name.clone(),
            fast_group: fast.map(|group| name_of(&state, group)),
            fast_bytes: fast.map_or(0, |group| state.slot_count_of(group) * extent_bytes),
            counted_s: self.world.now().saturating_sub(since).0 / 1_000_000_000,
            next: next.iter().take(MOVES_TOLD).map(|wanted| wanted_move(core, &state, wanted)).collect(),
            hold: core.hold_now(round),
            curve: points.into_iter().map(point).collect(),
            share_on_fast: round.and_then(|round| round.share_on_fast()),
        })
    }

    async fn heat_of(&self, pool: usize, volume: &Volume, extent: ExtentId) -> Accesses {
        let shard = owner(volume.family(), u64::from(extent.index), self.shards.len());
        let (reply, answer) = oneshot::channel();
        let query = TierQuery::HeatOf { extent, reply };
        self.shards[shard].send(ShardRequest::Command(ShardCommand::Tier { pool, query }));
        // A shard that has ended knows nothing.
        answer.await.unwrap_or_default()
    }

    fn told(&self, core: &TierPool, state: &PoolState, made: Made) -> TierMove {
        let Made { at, extent, to_fast, reason, value } = made;
        let ago = self.world.now().saturating_sub(at).0 / 1_000_000_000;
        TierMove { ago_s: Some(ago), ..wanted_move(core, state, &Wanted { extent, to_fast, reason, value }) }
    }
}

impl TierPool {
    /// What keeps extents from moving to the fast group now: as the last round has found it, if the tier is on.
    fn hold_now(&self, last: Option<&Round>) -> Option<TierHold> {
        match self.metadata.state().tier().is_on {
            true => last.and_then(|round| round.hold),
            false => Some(TierHold::Off),
        }
    }
}

fn wanted_move(core: &TierPool, state: &PoolState, wanted: &Wanted) -> TierMove {
    let Wanted { extent, to_fast, reason, value } = *wanted;
    let volume = state
        .volume(extent.volume)
        .map_or_else(|| format!("number {}", extent.volume), |known| known.name.clone());
    let extent_bytes = core.metadata.state().geometry().extent_sectors * SECTOR_BYTES;
    let offset_bytes = u64::from(extent.index) * extent_bytes;
    TierMove { volume, offset_bytes, to_fast, reason, value, ago_s: None }
}

fn name_of(state: &PoolState, group: u32) -> String {
    state.name_of_group(group).unwrap_or("sets").to_owned()
}
