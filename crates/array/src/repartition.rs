//! The write log has a part for each lane of each shard. If the number of shards changes, or if a group was added, the log is
//! destaged and split again (decision 0002).
//!
//! 1. The pool is opened with the shards that it had; what they recover from the log is destaged, and nothing is served.
//! 2. One record places the new parts, void, where the old ones lie. From then on nothing of the old ones is read.
//! 3. The next opening makes void parts ([`crate::engine`]), then records that they are made.
//!
//! A cut before the record leaves the old log, one after it a void one: either opens. Nothing is copied, so a log that is
//! full moves no data but to where it was going anyway.
//!
//! What it does not do: it changes nothing of a pool that lacks drives, for then the log waits for none of them to be
//! whole again, nor of one whose drives have no space for what the log holds; such an array runs on as many shards as
//! before.

use std::pin::pin;

use futures_util::future::{Either, select};
use tier0_drive::DriveHandle;
use tier0_plan::{parts_of, ring_sectors_min};
use tier0_pool::metadata::Inspected;
use tier0_pool::{LogCopy, LogPlacement, LogRing, MemberState, PoolState};
use tier0_units::{Nanos, SectorCount};
use tier0_world::sync::mailbox;
use tier0_world::{PlantedBug, World, planted};
use uuid::Uuid;

use crate::ArrayError;
use crate::engine::Engine;
use crate::opened_pool::OpenedPool;

/// How often is looked whether drives have space.
const LOOK: Nanos = Nanos::from_secs(1);
/// For so long a drive may have none before the log stays as it is.
const SPACE_PATIENCE: Nanos = Nanos::from_secs(5);

/// What became of the wish for another number of shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repartition {
    /// Every pool's log has a part for each.
    Done,
    /// The log stays as it is; why.
    Kept(String),
}

/// Empties and cuts the logs of pools that were examined, all of one array, where they have another number of parts. Where
/// one cannot be, none is. `id` makes identities.
///
/// # Errors
/// When a log cannot be emptied: it is as it was.
pub(crate) async fn repartition(
    world: &World,
    pools: Vec<Inspected>,
    shards: usize,
    mut id: impl FnMut() -> Uuid,
) -> Result<Repartition, ArrayError> {
    // A repartition that was cut off between two pools must come to an end: such an array runs on no number of shards.
    let parts = |pool: &Inspected| pool.state().log().shards();
    let is_due = pools.iter().any(|pool| parts(pool) != parts(&pools[0]));
    let mut placements = Vec::new();
    for pool in &pools {
        match cut(pool.state(), shards, is_due, &mut id) {
            Ok(placement) => placements.push(placement),
            Err(fact) if is_due => {
                return Err(ArrayError::Recovery { pool: pool.state().name().to_owned(), fact });
            }
            Err(why) => return Ok(Repartition::Kept(why)),
        }
    }
    let mut emptied = Vec::new();
    for (pool, placement) in pools.into_iter().zip(placements) {
        let Some(placement) = placement else { continue };
        let name = pool.state().name().to_owned();
        match empty(world, pool).await? {
            Ok(engine) => emptied.push((name, engine, placement)),
            Err(fact) if is_due => return Err(ArrayError::Recovery { pool: name, fact }),
            Err(fact) => return Ok(Repartition::Kept(format!("pool {name:?}: {fact}"))),
        }
    }
    for (name, engine, placement) in emptied {
        engine.stop_destaging();
        engine.place_log(0, placement).await.map_err(|error| not_emptied(&name, &error))?;
    }
    Ok(Repartition::Done)
}

/// Why the logs of an array cannot be cut for so many shards; none where they can, or are.
pub(crate) fn why_kept(states: &[PoolState], shards: usize) -> Option<String> {
    states.iter().find_map(|state| cut(state, shards, false, Uuid::new_v4).err())
}

/// Whether the log of a pool that has run on so many shards can be cut so that groups have lanes of their own that share one.
pub(crate) fn lacks_lanes(state: &PoolState) -> bool {
    cut(state, state.log().shards(), false, Uuid::new_v4).is_ok_and(|placement| placement.is_some())
}

/// The same log in a part for each lane of each of `shards`; none where it has as many. Groups have a lane each, if the log is large
/// enough for that. Drives may be lost only where it `is_due`.
///
/// # Errors
/// Why it cannot be cut for so many shards.
fn cut(
    state: &PoolState,
    shards: usize,
    is_due: bool,
    mut id: impl FnMut() -> Uuid,
) -> Result<Option<LogPlacement>, String> {
    let LogPlacement { rings, lanes } = state.log();
    let has_parts = state.log().shards() == shards;
    // One that is gone needs no lane, but those behind it keep their numbers.
    let groups = state.groups_there().last().map_or(1, |(last, _)| last + 1);
    if has_parts && (rings.is_empty() || *lanes >= groups) {
        return Ok(None);
    }
    let name = state.name();
    let lost = state.members().iter().find(|member| member.state == MemberState::Lost);
    if let Some(away) = lost.filter(|_| !is_due) {
        let why = format!(
            "drive {:?} of pool {name:?} is missing; replace it first (tier0 drive replace)",
            away.name
        );
        return if has_parts { Ok(None) } else { Err(why) };
    }
    let first = rings.first().ok_or_else(|| format!("pool {name:?} has no write log"))?;
    let copies = first.copies.iter().filter(|copy| state.is_active(copy.member));
    let areas: Vec<Area> = copies.map(|copy| Area::of(state, copy.member)).collect();
    let least = ring_sectors_min(state.groups());
    let part = |lanes: u32| {
        let parts = shards as u64 * u64::from(lanes);
        areas.iter().map(|area| area.sectors / parts / 8 * 8).min().unwrap_or(0)
    };
    let lanes = if *lanes < groups && part(groups) >= least { groups } else { *lanes };
    if has_parts && lanes == state.log().lanes {
        return Ok(None);
    }
    let sectors = part(lanes);
    if sectors < least {
        let size = |sectors: u64| SectorCount(sectors).bytes();
        return Err(format!(
            "the write log of pool {name:?} is too small for {}: each needs {:#}, but would have {:#}; the size \
             is fixed when the pool is created (pool.log)",
            parts_of(shards as u64, lanes),
            size(least),
            size(sectors)
        ));
    }
    let ring = |number: u64| LogRing {
        id: id(),
        copies: areas.iter().map(|area| area.part(number, sectors)).collect(),
        is_void: true,
    };
    let parts = shards as u64 * u64::from(lanes);
    Ok(Some(LogPlacement { rings: (0..parts).map(ring).collect(), lanes }))
}

/// Where a member's copies of all parts lie: whole chunklets side by side.
struct Area {
    member: u32,
    first_sector: u64,
    sectors: u64,
}

impl Area {
    fn of(state: &PoolState, member: u32) -> Area {
        let geometry = state.geometry();
        let copies = || state.log().copies().filter(|copy| copy.member == member);
        let first_sector = copies().map(|copy| copy.first_sector).min().unwrap_or(0);
        let end = copies().map(|copy| copy.first_sector + copy.sectors).max().unwrap_or(first_sector);
        let sectors = (end - first_sector).next_multiple_of(geometry.chunklet_sectors);
        Area { member, first_sector, sectors }
    }

    fn part(&self, number: u64, sectors: u64) -> LogCopy {
        LogCopy { member: self.member, first_sector: self.first_sector + number * sectors, sectors }
    }
}

/// Opens a pool with the shards that it had and empties its log.
///
/// # Errors
/// Why it cannot be emptied now: its drives have no space for what the log holds. The log is as it was.
async fn empty(world: &World, pool: Inspected) -> Result<Result<Engine, String>, ArrayError> {
    let (array, name) = (pool.state().array().to_owned(), pool.state().name().to_owned());
    let members = 0..pool.state().members().len() as u32;
    let drives: Vec<DriveHandle> = members.filter_map(|member| pool.drive(member).cloned()).collect();
    let (control, messages) = mailbox();
    let pool = OpenedPool::open(world, 0, pool, Vec::new(), &control).await?;
    let parts = pool.seed.state.log().shards();
    let engine = Engine::assemble(world, array, vec![pool], parts, control, messages).await?;
    if planted(PlantedBug::CutFullLog) {
        return Ok(Ok(engine));
    }
    let drained = match select(pin!(engine.drain()), pin!(lack_of_space(world, &drives))).await {
        Either::Left((drained, _)) => drained,
        Either::Right((drive, _)) => {
            return Ok(Err(format!("there is no space for what its write log holds under drive {drive:?}")));
        }
    };
    drained.map_err(|error| not_emptied(&name, &error))?;
    Ok(Ok(engine))
}

/// Ends when a drive has had no space for [`SPACE_PATIENCE`]: its name.
async fn lack_of_space(world: &World, drives: &[DriveHandle]) -> String {
    let lacks = |drive: &&DriveHandle| drive.guard().is_some_and(|guard| guard.health().snapshot().no_space);
    let mut since = None;
    loop {
        world.sleep(LOOK).await;
        let Some(drive) = drives.iter().find(lacks) else {
            since = None;
            continue;
        };
        if world.turned().saturating_sub(*since.get_or_insert(world.turned())) >= SPACE_PATIENCE {
            return drive.info().name.clone();
        }
    }
}

fn not_emptied(pool: &str, error: &dyn std::fmt::Display) -> ArrayError {
    ArrayError::Recovery {
        pool: pool.to_owned(),
        fact: format!("cannot empty its write log to change the number of cores: {error}"),
    }
}
