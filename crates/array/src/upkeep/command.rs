//! A shard carries out the commands of the control task.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_api::TablesStatus;
use tier0_control::MemberArbiter;
use tier0_control::message::command::{LostSectors, ShardCommand, ShardReport};
use tier0_control::message::control::ControlMessage;
use tier0_drive::DriveHandle;
use tier0_units::{ExtentId, PAGE_SECTORS};
use tier0_world::IoError;
use tier0_world::sync::MailSender;

use crate::log_lane::LogLane;
use crate::pool_shard::PoolShard;
use crate::shard::Shard;

impl Shard {
    /// Does what the control task orders of a pool.
    pub(crate) async fn carry_out_for_pool(self: &Rc<Self>, command: ShardCommand) {
        // The control task may have stopped waiting; then the answer is dropped.
        match command {
            ShardCommand::Rebuild { pool, column, reply } => {
                let result = self.rebuild_column(pool, column).await;
                let _ = reply.send(result);
            }
            ShardCommand::Scrub { pool, rate, shared, reply } => {
                self.scrub_slots(pool, rate, &shared).await;
                let _ = reply.send(());
            }
            ShardCommand::ScrubReplayed { pool, reply } => {
                self.scrub_replayed(pool).await;
                let _ = reply.send(());
            }
            ShardCommand::Settle { pool, reply } => {
                let _ = reply.send(self.pool(pool).settle_recovered().await);
            }
            ShardCommand::MoveExtent { pool, one, pacing, reply } => {
                self.move_extent(pool, &one, pacing, |moved| _ = reply.send(moved)).await;
            }
            ShardCommand::Tier { pool, query } => self.pool(pool).heat.answer(query, &self.activity).await,
            ShardCommand::Refuse { pool, lanes, reply } => {
                for (lane, refused) in self.pool(pool).lanes().iter().zip(lanes) {
                    lane.write_back.refuse(refused.waiting);
                    lane.write_back.refuse_when_full(refused.full.then_some(IoError::NoSpace));
                }
                let _ = reply.send(());
            }
            ShardCommand::Report { pool, reply } => {
                let _ = reply.send(report(self.pool(pool)));
            }
            ShardCommand::Stats { pool, reply } => {
                let _ = reply.send(self.pool_stats(pool));
            }
            ShardCommand::SetCaching { pool, changes, reply } => {
                let _ = reply.send(self.set_caching(pool, &changes).await);
            }
            ShardCommand::ReturnSlotReserve { pool, reply } => {
                let _ = reply.send(self.pool(pool).mapping.return_slot_reserves());
            }
            ShardCommand::Reclaim { pool, group, reply } => {
                let pool = self.pool(pool);
                let lanes = match group {
                    Some(group) => std::slice::from_ref(pool.lane(group)),
                    None => pool.lanes(),
                };
                // Where a log has failed, nothing is given back.
                join_all(lanes.iter().map(|lane| lane.write_back.reclaim())).await;
                let _ = reply.send(());
            }
            ShardCommand::GiveUpDrive { pool, member, reply } => {
                let drive = self.pool(pool).slot_io.raid().members().drive(member);
                drive.and_then(|drive| drive.guard()).inspect(|guard| guard.give_up());
                let _ = reply.send(());
            }
            ShardCommand::DropLogCopies { pool, member, reply } => {
                self.pool(pool).drop_log_copies(member);
                let _ = reply.send(());
            }
            ShardCommand::PlaceFlashCache { pool, device, reply } => {
                let placed = match &self.pool(pool).flash_cache {
                    Some(cache) => cache.place(&device).await,
                    None => Err("a pool without a write log has no flash cache".to_owned()),
                };
                let _ = reply.send(placed);
            }
            ShardCommand::CheckFlashCache { pool, placement, reply } => {
                let cache = self.pool(pool).flash_cache.as_ref();
                let _ = reply.send(cache.map_or(Ok(()), |cache| cache.check_fits(&placement)));
            }
            ShardCommand::DropFlashCache { pool, member, reply } => {
                if let Some(cache) = &self.pool(pool).flash_cache {
                    cache.forgo(member as u32).await;
                }
                let _ = reply.send(());
            }
            ShardCommand::AddLogCopy { pool, places, reply } => {
                let lanes = self.pool(pool).lanes().len();
                let own = &places[self.index * lanes..][..lanes];
                let added = self.pool(pool).add_log_copies(own).await;
                let _ = reply.send(added);
            }
            ShardCommand::ConfirmLogCopy { pool, member, reply } => {
                let _ = reply.send(self.pool(pool).confirm_log_copies(member));
            }
            ShardCommand::CloseDrive { pool, member, reply } => {
                let drive = self.pool(pool).slot_io.raid().members().drive(member);
                drive.inspect(|drive| drive.close());
                let _ = reply.send(());
            }
            ShardCommand::Join { pool, member, source, control, reply } => {
                let drive = source.drive_in(&self.world);
                let _ = reply.send(drive.map(|drive| self.take_drive(pool, member, drive, &control)));
            }
        }
    }

    /// A drive of this shard's own is the member of a pool at this place from now on.
    pub(crate) fn take_drive(
        &self,
        pool: usize,
        member: usize,
        drive: DriveHandle,
        control: &MailSender<ControlMessage>,
    ) {
        MemberArbiter::appoint(&drive, pool, member, control);
        self.pool(pool).slot_io.raid().members().add(member, drive);
    }

    /// A pool of this shard.
    pub(crate) fn pool(&self, number: usize) -> &Rc<PoolShard> {
        &self.pools[number]
    }
}

/// Lost pages by where their volumes have them.
fn lost_sectors(pool: &PoolShard) -> Vec<LostSectors> {
    let ranges = pool.slot_io.counts().unrecoverable_ranges();
    if ranges.is_empty() {
        return Vec::new();
    }
    let mut owners: BTreeMap<u64, Vec<ExtentId>> = BTreeMap::new();
    for (extent, slot) in pool.mapping.extents() {
        owners.entry(slot.slot).or_default().push(extent);
    }
    let of_volumes = |(slot, pages): (u64, Range<u32>)| {
        let sector = |extent: &ExtentId, page| {
            u64::from(extent.index) * pool.extent_sectors + u64::from(page) * PAGE_SECTORS
        };
        let lost = move |extent: &ExtentId| LostSectors {
            volume: extent.volume,
            sectors: sector(extent, pages.start)..sector(extent, pages.end),
        };
        owners.get(&slot).into_iter().flatten().map(lost)
    };
    ranges.into_iter().flat_map(of_volumes).collect()
}

fn report(pool: &PoolShard) -> ShardReport {
    let counts = pool.slot_io.counts();
    ShardReport {
        lanes: pool.lanes().iter().map(|lane| lane.write_back.status()).collect(),
        log_copies: pool.lanes().iter().map(LogLane::live_copies).min().unwrap_or(0) as u32,
        pages_repaired: counts.repaired_by_copy()
            + counts.repaired_by_parity()
            + counts.repaired_parity()
            + counts.repaired_tables(),
        pages_unrecoverable: counts.unrecoverable(),
        lost: lost_sectors(pool),
        lost_left_off: counts.unrecoverable_left_off(),
        tables: tables(pool),
        slot_reserve_slots: pool.mapping.thin_slot_reserve(),
    }
}

fn tables(pool: &PoolShard) -> TablesStatus {
    let lookups = pool.slot_io.table_lookups();
    TablesStatus {
        bytes: pool.slot_io.table_memory_bytes() as u64,
        memory_bytes: pool.memory.bytes().0,
        asked: lookups.asked,
        read: lookups.read,
    }
}
