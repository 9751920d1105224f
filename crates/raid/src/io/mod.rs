//! Reading and writing RAID sets: parity, mirrors, and service without the drives that are lost.
//!
//! Write through: a write ends when every column has it. What a power cut between two columns leaves behind is not
//! repaired here; that is the write-back log's task.
//!
//! A drive that fails a write is lost to the whole array from then on, and the write is not acknowledged before the
//! other drives know it ([`FailureReport`]). A sector that cannot be read is recovered from the rest of its row.

mod locks;
mod members;
mod read;
mod scratch;
mod stripe;
mod write;

use std::rc::Rc;
use std::sync::Arc;

use tier0_world::IoError;

pub use members::{FailureReport, LostDrives, Members};

use crate::io::locks::RowLocks;
use crate::set::{RaidSets, SetIndex};

/// The I/O of one shard on the sets of one pool; clones share it.
///
/// A row may be written by one shard only: its locks are this shard's.
#[derive(Clone)]
pub struct RaidIo(Rc<Inner>);

struct Inner {
    sets: Arc<RaidSets>,
    members: Members,
    locks: RowLocks,
}

impl RaidIo {
    /// I/O on `sets`, whose chunklets are on `members`.
    pub fn new(sets: Arc<RaidSets>, members: Members) -> RaidIo {
        RaidIo(Rc::new(Inner { sets, members, locks: RowLocks::new() }))
    }

    /// The sets.
    pub fn sets(&self) -> &RaidSets {
        &self.0.sets
    }

    /// The drives.
    pub fn members(&self) -> &Members {
        &self.0.members
    }

    /// Makes every completed write of the pool stable.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when a drive could not, and the others do not make up for it.
    pub async fn flush(&self) -> Result<(), IoError> {
        if self.members().flush().await {
            return Ok(());
        }
        let survives =
            |set| self.sets().layout().survives(self.members().lost_columns(self.sets(), SetIndex(set)));
        if (0..self.sets().count()).all(survives) { Ok(()) } else { Err(IoError::RedundancyLost) }
    }
}
