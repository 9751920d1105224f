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

use crate::io::locks::{RowGuard, RowLocks};
use crate::layout::{ColumnMask, Piece, Row};
use crate::set::{RaidSets, SetIndex};

/// The I/O of one shard on the sets of one pool; clones share it.
///
/// A row may be written by one shard only: its locks are this shard's.
#[derive(Clone)]
pub struct RaidIo(Rc<Inner>);

struct Inner {
    sets: Arc<RaidSets>,
    members: Members,
    locks: Rc<RowLocks>,
}

impl RaidIo {
    /// I/O on `sets`, whose chunklets are on `members`.
    pub fn new(sets: Arc<RaidSets>, members: Members) -> RaidIo {
        RaidIo(Rc::new(Inner { sets, members, locks: Rc::new(RowLocks::new()) }))
    }

    /// The sets.
    pub fn sets(&self) -> &RaidSets {
        &self.0.sets
    }

    /// The drives.
    pub fn members(&self) -> &Members {
        &self.0.members
    }

    /// The columns of a set that cannot be had in `row`: their drives are lost, or they are not rebuilt there yet.
    #[inline]
    pub fn lost_columns(&self, set: SetIndex, row: Row) -> ColumnMask {
        self.members().lost_columns(self.sets(), set, row)
    }

    /// Locks the parity group of a piece.
    async fn lock_group(&self, set: SetIndex, piece: &Piece) -> RowGuard {
        let layout = self.sets().layout();
        let sectors = layout.row_sectors().0 / layout.groups() as u64;
        let first = piece.row.0 * layout.row_sectors().0 + u64::from(piece.group.0) * sectors;
        self.0.locks.lock(set, first, first + sectors).await
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
            |set| self.sets().layout().survives(self.members().impaired_columns(self.sets(), SetIndex(set)));
        if (0..self.sets().count()).all(survives) { Ok(()) } else { Err(IoError::RedundancyLost) }
    }
}
