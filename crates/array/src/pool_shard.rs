//! One pool in one shard: its slots, its map, its log and its write cache.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_cache::{WriteBack, WriteBackOptions, ring_settings};
use tier0_drive::DriveHandle;
use tier0_integrity::{IntegrityCounts, SlotIo, SlotIoOptions};
use tier0_journal::{CopyState, LossReport, Recovered, Region, Ring, RingError, Settings};
use tier0_pool::{LogCopy, LogRing, PoolState};
use tier0_raid::io::{FailureReport, LostDrives, Members, RaidIo};
use tier0_units::{ByteCount, ExtentId, Lba, Nanos};
use tier0_volume::owner;
use tier0_world::sync::MailSender;
use tier0_world::{IoError, World};

use crate::ArrayError;
use crate::born::Born;
use crate::mapping::ShardMapping;
use crate::message::control::ControlMessage;
use crate::plan::PoolShape;
use crate::reporter::{FoundReport, LossReporter};

/// A pool in a shard.
pub(crate) struct PoolShard {
    pub(crate) extent_sectors: u64,
    pub(crate) slot_io: SlotIo,
    pub(crate) mapping: Rc<ShardMapping>,
    pub(crate) write_back: WriteBack,
    /// What tables and dirty pages may take.
    pub(crate) memory: ShardMemory,
    /// None in a pool without a log.
    log: Option<ShardLog>,
}

/// The log of a pool in a shard.
struct ShardLog {
    ring: Ring,
    losses: Rc<LogLosses>,
}

/// What every shard needs to know of a pool to start it; the same for all of them.
#[derive(Clone)]
pub(crate) struct PoolSeed {
    /// The pool's number in the array.
    pub(crate) number: usize,
    pub(crate) state: Arc<PoolState>,
    pub(crate) shape: PoolShape,
    pub(crate) lost: Arc<LostDrives>,
    /// Of a pool that is new, so that there is no log to be recovered.
    pub(crate) born: Option<Born>,
    pub(crate) memory: ShardMemory,
}

/// Memory that a pool has in a shard, for slot tables and dirty pages together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardMemory(ByteCount);

impl Default for ShardMemory {
    /// 320 MiB: 256 MiB of dirty pages, and the tables of 64 GiB of data beside them.
    fn default() -> ShardMemory {
        ShardMemory(ByteCount::mib(320))
    }
}

impl ShardMemory {
    /// The least.
    const MIN: ByteCount = ByteCount::mib(16);

    /// An equal share of what an array has.
    pub(crate) fn share_of(memory: ByteCount, shards: usize, pools: usize) -> ShardMemory {
        let shares = (shards * pools.max(1)) as u64;
        ShardMemory(ByteCount(memory.0 / shares).max(ShardMemory::MIN))
    }

    pub(crate) fn bytes(self) -> ByteCount {
        self.0
    }

    /// What dirty pages may take of it at most; tables have the rest, and what dirty pages do not need.
    fn dirty_pages(self) -> ByteCount {
        ByteCount(self.0.0 / 5 * 4)
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
        let log = match state.log().rings.get(id.index) {
            Some(place) => Some(open_log(world, seed, place, &drives, &reporter).await?),
            None => None,
        };
        let drive_count = drives.iter().flatten().count();
        let members = Members::new(drives, seed.lost.clone(), Rc::new(reporter));
        let counts = Rc::new(IntegrityCounts::new(seed.shape.slots.clone()));
        let (number, told) = (seed.number, control.clone());
        counts
            .tell_tables(move |event| told.send(ControlMessage::TableFound { pool: number, event: *event }));
        let report = FoundReport { pool: seed.number, counts: counts.clone(), control: control.clone() };
        let raid = RaidIo::with_report(seed.shape.sets.clone(), members, Rc::new(report));
        let short_id = u64::from_le_bytes(state.id().as_bytes()[..8].try_into().expect("eight bytes"));
        let slots = seed.shape.slots.clone();
        let slot_io = SlotIo::new(raid, slots, short_id, slot_io_options(drive_count, seed), counts);
        let exists = |extent: ExtentId| {
            let volume = state.volume(extent.volume);
            volume.is_some_and(|volume| u64::from(extent.index) < state.extents_of(volume.sectors))
        };
        let owns = |extent: ExtentId| owner(extent.volume, u64::from(extent.index), id.shards) == id.index;
        let claims = state.volumes().map(|volume| (volume.number, volume.claim()));
        let mapping = ShardMapping::new(seed.number, control.clone(), seed.shape.clone(), claims);
        learn_extents(world, state, &mapping, owns).await;
        let options =
            WriteBackOptions { memory_max: seed.memory.dirty_pages(), ..WriteBackOptions::default() };
        let (log, entries) = match log {
            None => (None, None),
            Some(OpenLog { ring, entries, losses }) => (Some(ShardLog { ring, losses }), entries),
        };
        let write_back = match (&log, entries) {
            (None, _) => WriteBack::without_log(world, slot_io.clone(), mapping.clone(), options),
            (Some(log), None) => {
                WriteBack::new(world, log.ring.clone(), slot_io.clone(), mapping.clone(), options)
            }
            (Some(log), Some(entries)) => {
                let recovered = WriteBack::recover(
                    world,
                    log.ring.clone(),
                    slot_io.clone(),
                    mapping.clone(),
                    options,
                    &entries,
                    exists,
                );
                let failed = |error: tier0_cache::RecoverError| ArrayError::Recovery {
                    pool: state.name().to_owned(),
                    fact: error.to_string(),
                };
                let (write_back, report) = recovered.await.map_err(failed)?;
                tracing::debug!(shard = id.index, ?report, "the log is recovered");
                write_back
            }
        };
        write_back.start();
        Ok(Rc::new(PoolShard {
            extent_sectors: state.geometry().extent_sectors,
            slot_io,
            mapping,
            write_back,
            memory: seed.memory,
            log,
        }))
    }

    /// Does without the copies of this shard's log on a drive that is lost.
    pub(crate) fn drop_log_copies(&self, member: usize) {
        let Some(log) = &self.log else { return };
        for (copy, holder) in log.losses.members.borrow().iter().enumerate() {
            if *holder == member {
                log.ring.drop_copy(copy);
            }
        }
    }

    /// How each copy of the log stands.
    pub(crate) fn log_copies(&self) -> Vec<CopyState> {
        self.log.as_ref().map(|log| log.ring.copies()).unwrap_or_default()
    }

    /// Makes a new copy of this shard's log equal to the others; it counts once it is confirmed. It takes the number of a
    /// copy that is lost, or the next one.
    pub(crate) async fn add_log_copy(&self, place: &LogCopy) -> Result<(), IoError> {
        let log = self.log.as_ref().ok_or(IoError::Unsupported)?;
        let members = self.slot_io.raid().members();
        let drive = members.drive(place.member as usize).cloned().ok_or(IoError::Gone)?;
        let region = Region { drive, first: Lba(place.first_sector), sectors: place.sectors };
        let member = place.member as usize;
        // What an earlier attempt has left.
        self.drop_log_copies(member);
        let copies = log.ring.copies();
        let is_lost = |copy: &CopyState| *copy == CopyState::Lost;
        let copy = copies.iter().position(is_lost).unwrap_or(copies.len());
        {
            let mut members = log.losses.members.borrow_mut();
            match members.get_mut(copy) {
                Some(holder) => *holder = member,
                None => members.push(member),
            }
        }
        // The other shards' copies went to the drive in the same round, so its loss is everybody's.
        log.ring.add_copy(copy, region).await.map_err(|error| {
            tracing::warn!("copy {copy} of the write log cannot be completed: {error}");
            IoError::Gone
        })
    }

    /// The metadata name the copy on this drive.
    pub(crate) fn confirm_log_copy(&self, member: usize) -> Result<(), IoError> {
        let log = self.log.as_ref().ok_or(IoError::Unsupported)?;
        let copies = log.ring.copies();
        let holders = log.losses.members.borrow().clone();
        let is_it = |(holder, state): &(&usize, &CopyState)| **holder == member && **state != CopyState::Lost;
        let copy = holders.iter().zip(&copies).position(|one| is_it(&one)).ok_or(IoError::Gone)?;
        log.ring.confirm_copy(copy).map_err(|_| IoError::Gone)
    }
}

/// Rows per drive that destaging has under way at once: enough for a disk's queue to find short ways, and few enough for
/// the log's writes behind them in the same queue.
const ROWS_PER_DRIVE: usize = 8;
/// Extents that are looked at in a turn of a start.
const EXTENTS_AT_ONCE: u64 = 4096;
/// How long others have their turn.
const TURN: Nanos = Nanos::from_micros(1);

/// What destaging may have under way.
fn slot_io_options(drive_count: usize, seed: &PoolSeed) -> SlotIoOptions {
    SlotIoOptions {
        memory_bytes: seed.memory.0.0 as usize,
        rows_in_flight: ROWS_PER_DRIVE * drive_count,
        checksums: seed.state.geometry().checksums,
        born_full: seed.born == Some(Born::Full),
    }
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
                mapping.learn(extent, slot);
            }
            seen += 1;
            if seen.is_multiple_of(EXTENTS_AT_ONCE) {
                world.sleep(TURN).await;
            }
        }
    }
}

/// A shard's log, open.
struct OpenLog {
    ring: Ring,
    /// What was in it; none where it is new.
    entries: Option<Vec<tier0_journal::Entry>>,
    losses: Rc<LogLosses>,
}

/// Opens a ring on the copies that are there. A drive that is gone meanwhile is lost, and the others go on; one with a bad
/// sector stays, and what another copy has is written there again.
async fn open_log(
    world: &World,
    seed: &PoolSeed,
    place: &LogRing,
    drives: &[Option<DriveHandle>],
    reporter: &LossReporter,
) -> Result<OpenLog, ArrayError> {
    let settings = settings(place);
    let losses = Rc::new(LogLosses {
        members: RefCell::new(place.copies.iter().map(|copy| copy.member as usize).collect()),
        reporter: reporter.clone(),
    });
    let failed = |error: RingError| ArrayError::Recovery {
        pool: seed.state.name().to_owned(),
        fact: error.to_string(),
    };
    let region = |copy: &LogCopy| {
        let drive =
            drives[copy.member as usize].clone().filter(|_| !seed.lost.is_lost(copy.member as usize))?;
        Some(Region { drive, first: Lba(copy.first_sector), sectors: copy.sectors })
    };
    if seed.born.is_some() {
        let regions = place.copies.iter().filter_map(region).collect();
        let ring = Ring::format(world, regions, place.id, settings, losses.clone()).await.map_err(failed)?;
        return Ok(OpenLog { ring, entries: None, losses });
    }
    loop {
        let regions: Vec<Option<Region>> = place.copies.iter().map(region).collect();
        if regions.iter().all(Option::is_none) {
            let members = seed.state.members();
            let names: Vec<&str> =
                place.copies.iter().map(|copy| members[copy.member as usize].name.as_str()).collect();
            let pool = seed.state.name().to_owned();
            return Err(ArrayError::NoLog { pool, drives: names.join(", ") });
        }
        match Ring::recover(world, regions, place.id, settings, losses.clone()).await {
            Ok(Recovered { ring, entries, .. }) => {
                return Ok(OpenLog { ring, entries: Some(entries), losses });
            }
            Err(RingError::Drive { copy, source }) => {
                let member = place.copies[copy].member as usize;
                seed.lost.set_lost(member);
                reporter.report(member, source).await;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Makes the empty rings of a new pool, all copies on `drives`, its members in order.
pub(crate) async fn format_logs(
    world: &World,
    drives: &[DriveHandle],
    state: &PoolState,
) -> Result<(), ArrayError> {
    for place in &state.log().rings {
        let drive = |member: u32| drives.get(member as usize).cloned();
        format_ring(world, state.name(), place, place.copies.clone(), drive).await?;
    }
    Ok(())
}

/// Makes one empty ring of a pool, on these of its copies.
pub(crate) async fn format_ring(
    world: &World,
    pool: &str,
    ring: &LogRing,
    copies: Vec<LogCopy>,
    drive: impl Fn(u32) -> Option<DriveHandle>,
) -> Result<(), ArrayError> {
    let failed = |fact: String| ArrayError::Recovery { pool: pool.to_owned(), fact };
    let region = |copy: &LogCopy| {
        let drive = drive(copy.member)?;
        Some(Region { drive, first: Lba(copy.first_sector), sectors: copy.sectors })
    };
    let regions = copies.iter().map(region).collect::<Option<Vec<Region>>>();
    let regions = regions.ok_or_else(|| failed("a drive for its write log is gone".to_owned()))?;
    let formatted = Ring::format(world, regions, ring.id, settings(ring), Rc::new(Unheard)).await;
    formatted.map(|_| ()).map_err(|error| failed(error.to_string()))
}

/// The control task need not be told that a copy fails while the pool is being made: making it fails.
struct Unheard;

impl LossReport for Unheard {
    fn report(&self, _: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async {})
    }
}

fn settings(place: &LogRing) -> Settings {
    ring_settings(place.copies.iter().map(|copy| copy.sectors).min().unwrap_or(0))
}

/// Says which drive it was that a copy of the log lay on.
struct LogLosses {
    /// By copy.
    members: RefCell<Vec<usize>>,
    reporter: LossReporter,
}

impl LossReport for LogLosses {
    fn report(&self, copy: usize, error: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        let member = self.members.borrow()[copy];
        self.reporter.report(member, error)
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
        assert_eq!(ShardMemory::default().dirty_pages(), ByteCount::mib(256));
    }
}
