//! A shard's part in moving extents to other slots: a few at once while no host is served.

use std::cell::RefCell;
use std::rc::Rc;

use tier0_control::message::command::{Move, Pacing};
use tier0_control::message::control::ControlMessage;
use tier0_units::SECTOR_BYTES;
use tier0_world::sync::Semaphore;
use tier0_world::{IoError, World};

use super::pace::{Activity, Pace};
use crate::pool_shard::PoolShard;
use crate::shard::Shard;

/// Extents of a shard that are on their way at once: each has up to 1 MiB in memory, and all share a transaction.
const MOVES_AT_ONCE: u64 = 8;

/// The moves of a shard: how many are under way, and their pace.
pub(crate) struct Moving {
    /// For moves that yield to hosts: they keep theirs while they rest.
    places: Semaphore,
    /// For others.
    free_places: Semaphore,
    pace: RefCell<Pace>,
}

impl Moving {
    /// None yet; they yield to `activity`.
    pub(crate) fn new(world: &World, activity: &Activity) -> Moving {
        Moving {
            places: Semaphore::new(MOVES_AT_ONCE),
            free_places: Semaphore::new(MOVES_AT_ONCE),
            pace: RefCell::new(Pace::new(world, activity, None)),
        }
    }
}

impl Shard {
    /// Moves an extent and gives back the slot that it does not have then. `told` is called with whether it has moved; then the
    /// shard rests, as `pacing` says.
    pub(crate) async fn move_extent(
        self: &Rc<Self>,
        number: usize,
        one: &Move,
        pacing: Pacing,
        told: impl FnOnce(bool),
    ) {
        let _place = match pacing {
            Pacing::Yielding { rate } => {
                let alone = rate.is_some() || self.moving.pace.borrow().is_yielding();
                self.moving.places.acquire(if alone { MOVES_AT_ONCE } else { 1 }).await
            }
            Pacing::Free => self.moving.free_places.acquire(1).await,
        };
        let pool = self.pool(number).clone();
        let begun = self.world.now();
        let moved = self.try_move(&pool, one).await.unwrap_or_else(|error| {
            tracing::warn!("{} keeps its slot for now: {error}", self.extent_name(&pool, one.extent));
            false
        });
        let slot = if moved { one.from } else { one.to };
        pool.mapping.tell(ControlMessage::GiveBack { pool: number, slot });
        told(moved);
        let Pacing::Yielding { rate } = pacing else { return };
        let rest = self.moving.pace.borrow_mut().rest_after(begun, pool.extent_sectors * SECTOR_BYTES, rate);
        self.world.sleep(rest).await;
    }

    async fn try_move(&self, pool: &PoolShard, one: &Move) -> Result<bool, IoError> {
        let Move { extent, from, to, .. } = *one;
        // A volume that is deleted meanwhile keeps the slot until it is read no more.
        let Some(pinned) = pool.mapping.pin(extent, from) else { return Ok(false) };
        pool.mapping.declare_fresh(to);
        let moved = pool.lane_of(extent).write_back.relocate(extent, from, to).await?;
        drop(pinned);
        if moved {
            pool.mapping.until_unpinned(&[from]).await;
        }
        Ok(moved)
    }
}
