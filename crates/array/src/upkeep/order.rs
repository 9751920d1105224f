//! Orders of the control task to a shard.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tier0_cache::WriteBackStatus;
use tier0_pool::LogCopy;
use tier0_units::{ExtentId, PAGE_SECTORS, SlotRef, WriteCache};
use tier0_world::IoError;
use tier0_world::sync::{MailSender, oneshot};

use super::rebuild::RebuiltColumn;
use super::restripe::Move;
use super::scrub::ScrubShared;
use crate::control::{ControlMessage, MemberJudge};
use crate::open::Medium;
use crate::pool_shard::PoolShard;
use crate::real::guarded_drive;
use crate::shard::Shard;

/// An order.
pub(crate) enum Order {
    /// Rebuild this shard's slots of a column; ends when none is missing.
    Rebuild { pool: usize, column: RebuiltColumn, reply: oneshot::Sender<Result<(), IoError>> },
    /// Scrub this shard's slots.
    Scrub {
        pool: usize,
        /// Bytes per second at most.
        rate: Option<u64>,
        shared: Arc<ScrubShared>,
        reply: oneshot::Sender<()>,
    },
    /// Destage what recovery has found in this shard's log.
    Settle { pool: usize, reply: oneshot::Sender<Result<(), IoError>> },
    /// Move extents to other slots; how many of this shard's have moved.
    MoveExtents {
        pool: usize,
        moves: Arc<[Move]>,
        /// Bytes per second at most.
        rate: Option<u64>,
        /// Begin no more of them.
        halt: Arc<AtomicBool>,
        reply: oneshot::Sender<u64>,
    },
    /// Give hosts these errors instead of letting them wait: whoever waits for a drive, and writers that do not fit into
    /// the log; none where they are to wait.
    Refuse { pool: usize, waiting: Option<IoError>, full: Option<IoError>, reply: oneshot::Sender<()> },
    /// Say how a pool does here.
    Report { pool: usize, reply: oneshot::Sender<ShardReport> },
    /// A volume's writes are acknowledged in another way from now on; what was acknowledged before is made stable
    /// first.
    SetMode {
        /// The volume's number in the array.
        volume: u32,
        mode: WriteCache,
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// Give back the free slots that this shard has in stock.
    GiveBackStock { pool: usize, reply: oneshot::Sender<Vec<SlotRef>> },
    /// Give back the slots of extents that hosts have emptied and that wait to be destaged.
    Reclaim { pool: usize, reply: oneshot::Sender<()> },
    /// Do without the copies of this shard's log that lie on a lost drive.
    DropLogCopies { pool: usize, member: usize, reply: oneshot::Sender<()> },
    /// Make one more copy of this shard's log, whose place is that of the shard's number, equal to the others.
    AddLogCopy {
        pool: usize,
        /// By shard.
        places: Vec<LogCopy>,
        reply: oneshot::Sender<Result<(), IoError>>,
    },
    /// The metadata name the copy on that drive: it counts.
    ConfirmLogCopy { pool: usize, member: usize, reply: oneshot::Sender<Result<(), IoError>> },
    /// A drive joins a pool.
    Join {
        pool: usize,
        /// Its place.
        member: usize,
        medium: Arc<Medium>,
        /// Whom its guard asks.
        control: MailSender<ControlMessage>,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

/// How a pool does in one shard.
pub(crate) struct ShardReport {
    pub(crate) write_back: WriteBackStatus,
    /// Copies of this shard's log that count.
    pub(crate) log_copies: u32,
    pub(crate) pages_repaired: u64,
    pub(crate) pages_unrecoverable: u64,
    /// Those that are lost now, and how many are not among them.
    pub(crate) lost: Vec<LostSectors>,
    pub(crate) lost_left_off: u64,
    /// Slots in stock that thin volumes have not used.
    pub(crate) stock_slots: u64,
}

impl Order {
    pub(crate) async fn carry_out(self, shard: &Rc<Shard>) {
        // Whoever ordered may be gone; then nobody needs the answer.
        match self {
            Order::Rebuild { pool, column, reply } => {
                let result = shard.rebuild_column(pool, column).await;
                let _ = reply.send(result);
            }
            Order::Scrub { pool, rate, shared, reply } => {
                shard.scrub_slots(pool, rate, &shared).await;
                let _ = reply.send(());
            }
            Order::Settle { pool, reply } => {
                let _ = reply.send(shard.pool(pool).write_back.settle_recovered().await);
            }
            Order::MoveExtents { pool, moves, rate, halt, reply } => {
                let _ = reply.send(shard.move_extents(pool, &moves, rate, &halt).await);
            }
            Order::Refuse { pool, waiting, full, reply } => {
                let write_back = &shard.pool(pool).write_back;
                write_back.refuse(waiting);
                write_back.refuse_when_full(full);
                let _ = reply.send(());
            }
            Order::Report { pool, reply } => {
                let _ = reply.send(report(shard.pool(pool)));
            }
            Order::SetMode { volume, mode, reply } => {
                let result = match shard.volume(volume) {
                    Ok(volume) => volume.set_mode(mode).await,
                    Err(error) => Err(error),
                };
                let _ = reply.send(result);
            }
            Order::GiveBackStock { pool, reply } => {
                let _ = reply.send(shard.pool(pool).mapping.give_back_stock());
            }
            Order::Reclaim { pool, reply } => {
                // Where the log has failed, nothing is given back.
                let _ = shard.pool(pool).write_back.reclaim().await;
                let _ = reply.send(());
            }
            Order::DropLogCopies { pool, member, reply } => {
                shard.pool(pool).drop_log_copies(member);
                let _ = reply.send(());
            }
            Order::AddLogCopy { pool, places, reply } => {
                let added = shard.pool(pool).add_log_copy(&places[shard.index]).await;
                let _ = reply.send(added);
            }
            Order::ConfirmLogCopy { pool, member, reply } => {
                let _ = reply.send(shard.pool(pool).confirm_log_copy(member));
            }
            Order::Join { pool, member, medium, control, reply } => {
                let joined = guarded_drive(&medium, &shard.world).map(|drive| {
                    MemberJudge::appoint(&drive, pool, member, &control);
                    shard.pool(pool).slot_io.raid().members().add(member, drive);
                });
                let _ = reply.send(joined.map_err(|error| error.to_string()));
            }
        }
    }
}

/// Sectors of a volume, by its number, that no copy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostSectors {
    pub(crate) volume: u32,
    pub(crate) sectors: Range<u64>,
}

/// Lost pages by where their volumes have them.
fn lost_sectors(pool: &PoolShard) -> Vec<LostSectors> {
    let ranges = pool.slot_io.counts().unrecoverable_ranges();
    if ranges.is_empty() {
        return Vec::new();
    }
    let owners: BTreeMap<u64, ExtentId> =
        pool.mapping.extents().into_iter().map(|(extent, slot)| (slot.slot, extent)).collect();
    let of_volume = |(slot, pages): (u64, Range<u32>)| {
        let extent = owners.get(&slot)?;
        let sector = |page| u64::from(extent.index) * pool.extent_sectors + u64::from(page) * PAGE_SECTORS;
        Some(LostSectors { volume: extent.volume, sectors: sector(pages.start)..sector(pages.end) })
    };
    ranges.into_iter().filter_map(of_volume).collect()
}

fn report(pool: &PoolShard) -> ShardReport {
    let counts = pool.slot_io.counts();
    let live = |state: &tier0_journal::CopyState| *state == tier0_journal::CopyState::Live;
    ShardReport {
        write_back: pool.write_back.status(),
        log_copies: pool.log_copies().iter().filter(|state| live(state)).count() as u32,
        pages_repaired: counts.repaired_by_copy()
            + counts.repaired_by_parity()
            + counts.repaired_parity()
            + counts.repaired_tables(),
        pages_unrecoverable: counts.unrecoverable(),
        lost: lost_sectors(pool),
        lost_left_off: counts.unrecoverable_left_off(),
        stock_slots: pool.mapping.thin_stock(),
    }
}

impl Shard {
    /// A pool of this shard.
    pub(crate) fn pool(&self, number: usize) -> &Rc<PoolShard> {
        &self.pools[number]
    }
}
