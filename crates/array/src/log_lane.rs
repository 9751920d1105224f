//! A lane of a shard: a write cache with a log of its own, for the extents on one group of a pool's sets.
//!
//! Groups share drives for the log and memory, each lane its part of both. What waits for the drives of one group keeps
//! its lane's log from being released, and no other's (decision 0011).

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use tier0_cache::{Belongs, RecoverError, WriteBack, WriteBackOptions, ring_settings};
use tier0_drive::DriveHandle;
use tier0_integrity::SlotIo;
use tier0_journal::{CopyState, Entry, LossReport, Recovered, Region, Ring, RingError, Settings};
use tier0_pool::{LogCopy, LogRing, PoolState};
use tier0_raid::io::FailureReport;
use tier0_units::{ExtentId, Lba};
use tier0_world::{IoError, World};

use crate::ArrayError;
use crate::mapping::ShardMapping;
use crate::pool_shard::PoolSeed;
use crate::reporter::LossReporter;

/// A lane, started.
pub(crate) struct LogLane {
    pub(crate) write_back: WriteBack,
    /// None in a pool without a log.
    log: Option<LaneLog>,
}

/// The log of a lane.
struct LaneLog {
    ring: Ring,
    losses: Rc<LogLosses>,
}

impl LogLane {
    /// Recovers what `log` holds, and takes over where the last crash left it. `belongs` says of an extent where it belongs.
    pub(crate) async fn start(
        world: &World,
        pool: &str,
        log: Option<OpenLog>,
        slots: SlotIo,
        mapping: &Rc<ShardMapping>,
        options: WriteBackOptions,
        belongs: impl Fn(ExtentId) -> Belongs,
    ) -> Result<LogLane, ArrayError> {
        let mapping = mapping.clone();
        let (write_back, log) = match log {
            None => (WriteBack::without_log(world, slots, mapping, options), None),
            Some(OpenLog { ring, entries: None, losses }) => {
                let write_back = WriteBack::new(world, ring.clone(), slots, mapping, options);
                (write_back, Some(LaneLog { ring, losses }))
            }
            Some(OpenLog { ring, entries: Some(entries), losses }) => {
                let recovered =
                    WriteBack::recover(world, ring.clone(), slots, mapping, options, &entries, belongs);
                let failed = |error: RecoverError| ArrayError::Recovery {
                    pool: pool.to_owned(),
                    fact: error.to_string(),
                };
                let (write_back, report) = recovered.await.map_err(failed)?;
                tracing::debug!(?report, "the log is recovered");
                (write_back, Some(LaneLog { ring, losses }))
            }
        };
        write_back.start();
        Ok(LogLane { write_back, log })
    }

    /// Does without the copies of the log on a drive that is lost.
    pub(crate) fn drop_copies(&self, member: usize) {
        let Some(log) = &self.log else { return };
        for (copy, holder) in log.losses.members.borrow().iter().enumerate() {
            if *holder == member {
                log.ring.drop_copy(copy);
            }
        }
    }

    /// Copies of the log that count.
    pub(crate) fn live_copies(&self) -> usize {
        let copies = self.log.as_ref().map(|log| log.ring.copies()).unwrap_or_default();
        copies.iter().filter(|state| **state == CopyState::Live).count()
    }

    /// Makes a new copy of the log, on this drive, equal to the others; it counts once it is confirmed. It takes the number of
    /// a copy that is lost, or the next one.
    pub(crate) async fn add_copy(&self, place: &LogCopy, drive: DriveHandle) -> Result<(), IoError> {
        let log = self.log.as_ref().ok_or(IoError::Unsupported)?;
        let region = region(place, drive);
        let member = place.member as usize;
        // What an earlier attempt has left.
        self.drop_copies(member);
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
        // The other shards' copies went to the drive in the same round, so all shards lose it.
        log.ring.add_copy(copy, region).await.map_err(|error| {
            tracing::warn!("copy {copy} of the write log cannot be completed: {error}");
            IoError::Gone
        })
    }

    /// The metadata name the copy on this drive.
    pub(crate) fn confirm_copy(&self, member: usize) -> Result<(), IoError> {
        let log = self.log.as_ref().ok_or(IoError::Unsupported)?;
        let copies = log.ring.copies();
        let holders = log.losses.members.borrow().clone();
        let is_it = |(holder, state): &(&usize, &CopyState)| **holder == member && **state != CopyState::Lost;
        let copy = holders.iter().zip(&copies).position(|one| is_it(&one)).ok_or(IoError::Gone)?;
        log.ring.confirm_copy(copy).map_err(|_| IoError::Gone)
    }
}

/// The log of a lane, open.
pub(crate) struct OpenLog {
    ring: Ring,
    /// What was in it; none where it is new.
    entries: Option<Vec<Entry>>,
    losses: Rc<LogLosses>,
}

/// Opens a ring on the copies that are there. A drive that is gone meanwhile is lost, and the others go on; one with a bad
/// sector stays, and what another copy has is written there again.
pub(crate) async fn open_log(
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
        Some(self::region(copy, drive))
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
    let regions =
        copies.iter().map(|copy| Some(region(copy, drive(copy.member)?))).collect::<Option<Vec<Region>>>();
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

/// Where a copy of a ring lies on its drive.
pub(crate) fn region(copy: &LogCopy, drive: DriveHandle) -> Region {
    Region { drive, first: Lba(copy.first_sector), sectors: copy.sectors }
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
