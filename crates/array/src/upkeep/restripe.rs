//! A shard's part in restriping: its extents move to other slots, a few at once while no host is served.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use tier0_control::message::command::Move;
use tier0_control::message::control::ControlMessage;
use tier0_units::SECTOR_BYTES;
use tier0_volume::owner;
use tier0_world::IoError;

use super::pace::Pace;
use crate::pool_shard::PoolShard;
use crate::shard::Shard;

/// Extents of a shard that are on their way at once: each has up to 1 MiB in memory, and all share a transaction.
const MOVES_AT_ONCE: usize = 8;

impl Shard {
    /// Moves those of the extents that are this shard's, at most so many bytes per second, until it is to halt; how many
    /// have moved.
    pub(crate) async fn move_extents(
        self: &Rc<Self>,
        number: usize,
        moves: &Arc<[Move]>,
        rate: Option<u64>,
        halt: &AtomicBool,
    ) -> u64 {
        let pool = self.pool(number).clone();
        let mut pace = Pace::new(&self.world, &self.activity, rate);
        let own =
            |one: &&Move| owner(one.family, u64::from(one.extent.index), self.peers.len()) == self.index;
        let own: Vec<Move> = moves.iter().filter(own).copied().collect();
        let (mut rest, mut moved) = (&own[..], 0);
        while !rest.is_empty() {
            let begun = self.world.now();
            let at_once = if pace.is_yielding() || rate.is_some() { 1 } else { MOVES_AT_ONCE };
            let (some, more) = rest.split_at(at_once.min(rest.len()));
            rest = more;
            let some = some.iter().map(|one| self.try_move(number, &pool, one, halt));
            moved += join_all(some).await.into_iter().filter(|moved| *moved).count() as u64;
            if !halt.load(Ordering::SeqCst) {
                pace.rest(begun, pool.extent_sectors * SECTOR_BYTES).await;
            }
        }
        moved
    }

    /// Moves an extent and gives back the slot that it does not have then; whether it has moved.
    async fn try_move(&self, number: usize, pool: &PoolShard, one: &Move, halt: &AtomicBool) -> bool {
        let result = if halt.load(Ordering::SeqCst) { Ok(false) } else { self.move_extent(pool, one).await };
        let moved = result.unwrap_or_else(|error| {
            tracing::warn!("{} keeps its slot for now: {error}", self.extent_name(pool, one.extent));
            false
        });
        let slot = if moved { one.from } else { one.to };
        pool.mapping.tell(ControlMessage::GiveBack { pool: number, slot });
        moved
    }

    async fn move_extent(&self, pool: &PoolShard, one: &Move) -> Result<bool, IoError> {
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
