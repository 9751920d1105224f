//! One pool in one shard: its slots, its map, and a lane of the write log with its cache for each group of sets.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::try_join_all;
use tier0_cache::{Belongs, ReadCache, ReadCacheOptions, WriteBackOptions};
use tier0_control::message::control::ControlMessage;
use tier0_drive::DriveHandle;
use tier0_integrity::{IntegrityCounts, SlotIo, SlotIoOptions};
use tier0_plan::PoolShape;
use tier0_pool::{LogCopy, PoolState};
use tier0_raid::io::{LostDrives, Members, RaidIo};
use tier0_units::{ByteCount, ExtentId, Nanos};
use tier0_volume::{Budget, owner};
use tier0_world::sync::MailSender;
use tier0_world::{IoError, World};

use crate::ArrayError;
use crate::born::Born;
use crate::flash_cache::{FlashSeed, ShardFlashCache, memory_for_tables};
use crate::heat::ShardHeat;
use crate::log_lane::{LogLane, open_log};
use crate::mapping::ShardMapping;
use crate::reporter::{FoundReport, LossReporter};

/// A pool in a shard.
pub(crate) struct PoolShard {
    pub(crate) extent_sectors: u64,
    pub(crate) slot_io: SlotIo,
    pub(crate) mapping: Rc<ShardMapping>,
    /// What tables, dirty and clean pages may take.
    pub(crate) memory: ShardMemory,
    /// Clean pages, where they are kept.
    pub(crate) read_cache: Option<Rc<ReadCache>>,
    /// Clean pages on flash, in a pool whose state outlives the process.
    pub(crate) flash_cache: Option<Rc<ShardFlashCache>>,
    /// How hot its extents are.
    pub(crate) heat: Rc<ShardHeat>,
    /// One for each group of sets, or a single one for all.
    lanes: Vec<LogLane>,
}

/// What every shard needs to know of a pool to start it; the same for all of them.
#[derive(Clone)]
pub(crate) struct PoolSeed {
    /// The pool's number in the array.
    pub(crate) number: usize,
    pub(crate) state: Arc<PoolState>,
    /// By volume: what hosts may ask of it, where it has ceilings.
    pub(crate) budgets: BTreeMap<u32, Arc<Budget>>,
    pub(crate) shape: PoolShape,
    pub(crate) lost: Arc<LostDrives>,
    /// Of a pool that is new, so that there is no log to be recovered.
    pub(crate) born: Option<Born>,
    pub(crate) memory: ShardMemory,
    /// How clean pages are kept, if they are.
    pub(crate) read_cache: Option<ReadCacheOptions>,
    /// How many times a day its flash cache may be written over, if it has one.
    pub(crate) flash_writes_per_day: u32,
}

/// Memory that a pool has in a shard, for slot tables, dirty and clean pages together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardMemory {
    bytes: ByteCount,
    /// What dirty pages may take of it, where that is not a share.
    dirty_max: Option<ByteCount>,
}

impl Default for ShardMemory {
    /// 320 MiB: 256 MiB of dirty pages, and the tables of 64 GiB of data beside them.
    fn default() -> ShardMemory {
        ShardMemory::of(ByteCount::mib(320))
    }
}

impl ShardMemory {
    /// The least.
    const MIN: ByteCount = ByteCount::mib(16);

    /// An equal share of what an array has.
    pub(crate) fn share_of(memory: ByteCount, shards: usize, pools: usize) -> ShardMemory {
        let shares = (shards * pools.max(1)) as u64;
        ShardMemory::of(ByteCount(memory.0 / shares).max(ShardMemory::MIN))
    }

    const fn of(bytes: ByteCount) -> ShardMemory {
        ShardMemory { bytes, dirty_max: None }
    }

    /// As much more as the tables of a flash cache of this size may take.
    pub(crate) fn with_flash_tables(self, flash: ByteCount) -> ShardMemory {
        self.with_more(memory_for_tables(flash))
    }

    /// More memory, of which dirty pages get nothing: what a read cache does is to be seen apart from what a smaller write cache
    /// does.
    pub(crate) fn with_more(self, more: ByteCount) -> ShardMemory {
        let dirty_max = Some(self.dirty_pages(false));
        ShardMemory { bytes: ByteCount(self.bytes.0 + more.0), dirty_max }
    }

    pub(crate) fn bytes(self) -> ByteCount {
        self.bytes
    }

    /// What dirty pages may take of it at most; tables have the rest, and what dirty pages do not need. Where clean pages are
    /// kept a tenth is theirs.
    fn dirty_pages(self, has_read_cache: bool) -> ByteCount {
        self.dirty_max.unwrap_or(ByteCount(self.bytes.0 / 10 * if has_read_cache { 7 } else { 8 }))
    }

    /// What clean pages may take of it at most: tables keep a fifth.
    pub(crate) fn clean_pages(self) -> ByteCount {
        ByteCount(self.bytes.0 / 5 * 4)
    }
}

/// Which shard of how many.
#[derive(Clone, Copy)]
pub(crate) struct ShardId {
    pub(crate) index: usize,
    pub(crate) shards: usize,
}

impl PoolShard {
    /// Starts a pool in a shard: recovers its log, and takes over where the last crash left it.
    pub(crate) async fn start(
        world: &World,
        id: ShardId,
        seed: &PoolSeed,
        drives: Vec<Option<DriveHandle>>,
        control: &MailSender<ControlMessage>,
    ) -> Result<Rc<PoolShard>, ArrayError> {
        let state = &seed.state;
        let reporter = LossReporter { pool: seed.number, control: control.clone() };
        let mut logs = Vec::new();
        for place in state.log().of_shard(id.index) {
            logs.push(open_log(world, seed, place, &drives, &reporter).await?);
        }
        let drive_count = drives.iter().flatten().count();
        let members = Members::new(drives, seed.lost.clone(), Rc::new(reporter));
        let counts = Rc::new(IntegrityCounts::new(seed.shape.slots.clone()));
        let (number, told) = (seed.number, control.clone());
        counts
            .tell_tables(move |event| told.send(ControlMessage::TableError { pool: number, event: *event }));
        let report = FoundReport { pool: seed.number, counts: counts.clone(), control: control.clone() };
        let raid = RaidIo::with_report(seed.shape.sets.clone(), members, Rc::new(report));
        let short_id = u64::from_le_bytes(state.id().as_bytes()[..8].try_into().expect("eight bytes"));
        let slots = seed.shape.slots.clone();
        let slot_io = SlotIo::new(raid, slots, short_id, slot_io_options(drive_count, seed), counts);
        let claims = state.volumes().map(|volume| (volume.number, volume.claim()));
        let mapping = ShardMapping::new(seed.number, control.clone(), seed.shape.clone(), claims);
        let owns = |extent: ExtentId| {
            owner(state.family_of(extent.volume), u64::from(extent.index), id.shards) == id.index
        };
        learn_extents(world, state, &mapping, owns).await;
        let count = state.log().lanes as usize;
        let dirty_max = seed.memory.dirty_pages(seed.read_cache.is_some());
        let memory_max = ByteCount(dirty_max.0 / count as u64);
        let options = WriteBackOptions { memory_max, ..WriteBackOptions::default() };
        let read_cache = seed.read_cache.map(|options| ReadCache::new(options, world.width())).transpose();
        let read_cache = read_cache.map(|cache| cache.map(Rc::new)).map_err(|source| ArrayError::System {
            what: "there is no memory for the read cache".into(),
            source,
        })?;
        let flash_cache = match logs.is_empty() {
            true => None,
            false => {
                let seed = FlashSeed {
                    id,
                    pool: seed.number,
                    state,
                    is_new: seed.born.is_some(),
                    writes_per_day: seed.flash_writes_per_day,
                    members: slot_io.raid().members().clone(),
                    memory: slot_io.memory_share(),
                    memory_max: seed.memory.bytes(),
                };
                let slots = mapping.extents().into_iter().map(|(_, slot)| slot.slot).collect();
                Some(ShardFlashCache::start(world, seed, control, &slots).await)
            }
        };
        let heat = ShardHeat::new(world, &mapping, &seed.shape);
        let mut logs = logs.into_iter();
        let mut lanes = Vec::new();
        for lane in 0..count {
            let belongs = |extent: ExtentId| match state.volume(extent.volume) {
                Some(volume) if u64::from(extent.index) < state.extents_of(volume.sectors) => {
                    match owns(extent) && state.log().lane_of(volume.group) == lane {
                        true => Belongs::Here,
                        false => Belongs::Elsewhere,
                    }
                }
                _ => Belongs::Nowhere,
            };
            let slots = if count > 1 { slots_in_lane(&slot_io, state, lane) } else { slot_io.clone() };
            let started = LogLane::start(world, state.name(), logs.next(), slots, &mapping, options, belongs);
            let started = started.await?;
            read_cache.iter().for_each(|cache| started.write_back.keep_reads(cache.clone()));
            started.write_back.count_accesses(heat.clone());
            if let Some(flash) = &flash_cache {
                let groups = 0..state.groups().len() as u32;
                let fills = groups.map(|group| state.has_disks(group)).collect();
                started.write_back.keep_on_flash(flash.cache.clone(), fills);
            }
            lanes.push(started);
        }
        Ok(Rc::new(PoolShard {
            extent_sectors: state.geometry().extent_sectors,
            slot_io,
            mapping,
            memory: seed.memory,
            read_cache,
            flash_cache,
            heat,
            lanes,
        }))
    }

    /// By group of sets, or a single one for all.
    pub(crate) fn lanes(&self) -> &[LogLane] {
        &self.lanes
    }

    /// The lane of a group of sets.
    pub(crate) fn lane(&self, group: u32) -> &LogLane {
        self.lanes.get(group as usize).unwrap_or(&self.lanes[0])
    }

    /// The lane of an extent.
    pub(crate) fn lane_of(&self, extent: ExtentId) -> &LogLane {
        self.lane_of_volume(extent.volume)
    }

    /// The lane of a volume, by its number in the pool.
    pub(crate) fn lane_of_volume(&self, volume: u32) -> &LogLane {
        self.lane(self.mapping.group_of(volume))
    }

    /// Destages what recovery has found in this shard's log.
    pub(crate) async fn settle_recovered(&self) -> Result<(), IoError> {
        let settled = self.lanes.iter().map(|lane| lane.write_back.settle_recovered());
        try_join_all(settled).await.map(|_| ())
    }

    /// Does without the copies of this shard's log on a drive that is lost.
    pub(crate) fn drop_log_copies(&self, member: usize) {
        self.lanes.iter().for_each(|lane| lane.drop_copies(member));
    }

    /// Makes new copies of this shard's log, one for each lane, equal to the others.
    pub(crate) async fn add_log_copies(&self, places: &[LogCopy]) -> Result<(), IoError> {
        let members = self.slot_io.raid().members();
        for (lane, place) in self.lanes.iter().zip(places) {
            let drive = members.drive(place.member as usize).cloned().ok_or(IoError::Gone)?;
            lane.add_copy(place, drive).await?;
        }
        Ok(())
    }

    /// The metadata name the copies on this drive.
    pub(crate) fn confirm_log_copies(&self, member: usize) -> Result<(), IoError> {
        self.lanes.iter().try_for_each(|lane| lane.confirm_copy(member))
    }
}

/// Rows per drive that destaging has under way at once: enough for a disk's queue to find short ways, and few enough for
/// the log's writes behind them in the same queue.
const ROWS_PER_DRIVE: usize = 8;
/// Extents that are looked at in a turn of a start.
const EXTENTS_AT_ONCE: u64 = 4096;
/// How long others have their turn.
pub(crate) const TURN: Nanos = Nanos::from_micros(1);

/// What destaging may have under way.
fn slot_io_options(drive_count: usize, seed: &PoolSeed) -> SlotIoOptions {
    SlotIoOptions {
        memory_bytes: seed.memory.bytes.0 as usize,
        rows_in_flight: ROWS_PER_DRIVE * drive_count,
        checksums: seed.state.geometry().checksums,
        born_full: seed.born == Some(Born::Full),
    }
}

/// The slots as a lane's batches use them: as much under way as the drives of its group can have.
fn slots_in_lane(slots: &SlotIo, state: &PoolState, lane: usize) -> SlotIo {
    let of_group = |member: &&tier0_pool::Member| member.is_active() && member.group as usize == lane;
    let drives = state.members().iter().filter(of_group).count().max(1);
    slots.in_lane(ROWS_PER_DRIVE * drives)
}

/// Tells a shard which slots its extents have, with turns for others.
async fn learn_extents(
    world: &World,
    state: &PoolState,
    mapping: &ShardMapping,
    owns: impl Fn(ExtentId) -> bool,
) {
    let mut seen = 0u64;
    for volume in state.volumes().map(|volume| volume.number) {
        for (index, slot) in state.map(volume).into_iter().flat_map(|map| map.iter()) {
            let extent = ExtentId { volume, index };
            if owns(extent) {
                mapping.learn(extent, slot, state.is_shared(slot.slot));
            }
            seen += 1;
            if seen.is_multiple_of(EXTENTS_AT_ONCE) {
                world.sleep(TURN).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_and_pools_share_memory_alike() {
        let share = |bytes, shards, pools| ShardMemory::share_of(bytes, shards, pools).bytes();
        assert_eq!(share(ByteCount::gib(2), 4, 2), ByteCount::mib(256));
        assert_eq!(share(ByteCount::mib(64), 64, 1), ByteCount::mib(16), "less is no use");
        assert_eq!(ShardMemory::default().dirty_pages(false), ByteCount::mib(256));
        assert_eq!(ShardMemory::default().dirty_pages(true), ByteCount::mib(224));
        let with_reads = ShardMemory::default().with_more(ByteCount::gib(1));
        assert_eq!(with_reads.dirty_pages(true), ByteCount::mib(256), "as much as without");
        assert_eq!(with_reads.bytes(), ByteCount::mib(320 + 1024));
    }
}
