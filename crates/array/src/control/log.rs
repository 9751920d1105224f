//! Giving the write log its copies back after a drive that held one is lost.

use std::rc::Rc;

use tier0_pool::{ChunkletAddress, LogCopy, LogPlacement, MetaRecord, PoolState};
use tier0_world::IoError;

use super::Control;
use crate::upkeep::Order;

impl Control {
    /// Puts every copy of the log that lies on a drive that does not serve onto another drive, as far as there is room:
    /// first the content, then the record that it counts.
    ///
    /// # Errors
    /// When a copy could not be completed: it can be tried again.
    pub(super) async fn restore_log(self: &Rc<Self>, number: usize) -> Result<(), IoError> {
        let guarded = self.guarded(number);
        loop {
            let planned = plan(&guarded.metadata.state());
            let Some(Plan { copy, placement }) = planned else { return Ok(()) };
            let order = |reply| {
                let places = placement.rings.iter().map(|ring| ring.copies[copy]).collect();
                Order::AddLogCopy { pool: number, copy, places, reply }
            };
            for added in self.ask_all(order).await {
                added.unwrap_or(Err(IoError::Gone))?;
            }
            guarded.commit(vec![MetaRecord::LogPlaced(placement.clone())]).await?;
            let confirmed = self.ask_all(|reply| Order::ConfirmLogCopy { pool: number, copy, reply }).await;
            for confirmed in confirmed {
                confirmed.unwrap_or(Err(IoError::Gone))?;
            }
            tracing::info!(
                "pool {:?}: copy {copy} of the write log is complete again",
                self.pools[number].name
            );
        }
    }
}

/// A copy of all rings that moves.
struct Plan {
    copy: usize,
    placement: LogPlacement,
}

/// The first copy that lies on a drive that does not serve, and where it could go; none where all is well or there is no
/// room.
fn plan(state: &PoolState) -> Option<Plan> {
    let log = state.log();
    let first = log.rings.first()?;
    let copy = (0..first.copies.len())
        .find(|copy| log.rings.iter().any(|ring| !state.is_active(ring.copies[*copy].member)))?;
    let geometry = state.geometry();
    let sectors = first.copies[copy].sectors;
    let chunklets = (sectors * log.rings.len() as u64).div_ceil(geometry.chunklet_sectors);
    let holds = |member: u32| log.copies().any(|other| other.member == member);
    let mut candidates: Vec<u32> = (0u32..)
        .zip(state.members())
        .filter(|(place, member)| member.is_active() && !holds(*place))
        .map(|(place, _)| place)
        .collect();
    candidates.sort_by_key(|place| {
        let class = state.member(*place).map(|member| member.class);
        (class, std::cmp::Reverse(state.free_chunklets(*place)))
    });
    let start = candidates.into_iter().find_map(|member| free_run(state, member, chunklets))?;
    let mut placement = log.clone();
    for (number, ring) in (0u64..).zip(&mut placement.rings) {
        let first_sector = geometry.chunklet_start(start) + number * sectors;
        ring.copies[copy] = LogCopy { member: start.drive, first_sector, sectors };
    }
    Some(Plan { copy, placement })
}

/// The first of `count` free chunklets of a member that lie side by side.
fn free_run(state: &PoolState, member: u32, count: u64) -> Option<ChunkletAddress> {
    let mut first = state.free_chunklet(member, 0)?;
    let mut last = first;
    while u64::from(last.index - first.index) + 1 < count {
        let next = state.free_chunklet(member, last.index + 1)?;
        if next.index != last.index + 1 {
            first = next;
        }
        last = next;
    }
    Some(first)
}
