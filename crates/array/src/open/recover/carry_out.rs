//! Doing what was decided. The order, so that a crash in between leaves a pool that no start opens and that can be
//! assembled again:
//!
//! | step | writes |
//! |---|---|
//! | copies of the log that do not count, on members that are believed again | zeros |
//! | the pool is opened: superblocks, a checkpoint | members serve again; columns that must be made anew are marked |
//! | blank drives join, where the log needs them | superblocks, records |
//! | a new log, empty | its headers |
//! | the log's place | a record |

use std::cell::RefCell;
use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_pool::{LogCopy, MetaRecord};
use tier0_units::Lba;
use tier0_world::{BufMut, IoError, World};

use super::log;
use super::plan::{Plan, Steps};
use crate::ArrayError;
use crate::log_lane::format_ring;

/// Sectors that are overwritten at once: 1 MiB.
const WIPE_SECTORS: u64 = 2048;

impl Plan {
    /// Writes what the plan says.
    pub(super) async fn carry_out(self, world: &World) -> Result<(), ArrayError> {
        let Some(Steps { inspected, readmitted, rings, placement, newcomers }) = self.steps else {
            return Ok(());
        };
        let pool = self.recovery.pool;
        for copy in log::stale_copies(inspected.state(), &rings, |member| readmitted.contains(&member)) {
            let Some(drive) = inspected.drive(copy.member) else { continue };
            wipe(drive, copy).await.map_err(|source| drive_error(drive, source))?;
        }
        let lost: Rc<RefCell<Vec<u32>>> = Rc::default();
        let hook = lost.clone();
        let metadata =
            inspected.open(world, Rc::new(move |member, _| hook.borrow_mut().push(member))).await?;
        for (member, drive) in newcomers {
            metadata.add_member(drive, member).await?;
        }
        if let Some(placement) = placement {
            let renewed = placement.rings.iter().zip(&rings).filter(|(_, fate)| !fate.is_kept());
            for (ring, _) in renewed {
                let state = metadata.state().clone();
                let places: Vec<LogCopy> = log::writable(&state, ring).copied().collect();
                format_ring(world, &pool, ring, places, |member| metadata.drive(member)).await?;
            }
            metadata.commit(vec![MetaRecord::LogPlaced(placement)]).await?;
        }
        let lost = lost.borrow();
        let Some(member) = lost.first() else { return Ok(()) };
        let name = metadata.state().member(*member).map(|member| member.name.clone()).unwrap_or_default();
        Err(ArrayError::Recovery {
            pool,
            fact: format!("drive {name:?} failed during a write; repair or replace it, and try again"),
        })
    }
}

/// Fills a copy of the log with zeros.
async fn wipe(drive: &DriveHandle, copy: &LogCopy) -> Result<(), IoError> {
    let end = copy.first_sector + copy.sectors;
    let mut at = copy.first_sector;
    while at < end {
        let sectors = WIPE_SECTORS.min(end - at);
        let zeros = BufMut::zeroed(sectors as u32, drive.world().width()).freeze();
        drive.write(Lba(at), zeros, false).await?;
        at += sectors;
    }
    drive.flush().await
}

fn drive_error(drive: &DriveHandle, source: IoError) -> ArrayError {
    ArrayError::Pool(tier0_pool::PoolError::Drive { drive: drive.info().name.clone(), source })
}
