//! Reading and writing RAID sets: parity, mirrors, and service without the drives that are lost.
//!
//! There are two ways in. One ([`RaidIo::read`], [`RaidIo::write`]) knows no checksums and writes through: for pools
//! without a log, of which nothing outlives the process. What a power cut between two columns leaves behind is
//! not repaired there. The other works on pages and row by row: [`RaidIo::prepare`] tells the new parity before anything
//! is written, so that it can be logged first, and [`RaidIo::replay_row`] makes a torn row whole from that;
//! [`RaidIo::read_verified`] answers with nothing but what the checksums ([`Expect`]) admit.
//!
//! A drive that fails a write is lost to the whole array from then on, and the write is not acknowledged before the
//! other drives know it ([`FailureReport`]). A sector that cannot be read, or rots, is recovered from the rest of its
//! row and written again ([`RepairReport`]).

mod copies;
mod expect;
mod grid;
mod heal;
mod locks;
mod members;
mod new_pages;
mod patience;
mod prepare;
mod prepared;
mod read;
mod rebuild;
mod report;
mod scratch;
mod scrub;
mod solve;
mod stripe;
mod verified;
mod write;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use tier0_world::IoError;

pub use expect::{Expect, Expected, Unchecked};
pub use members::{FailureReport, LostDrives, Members};
pub use new_pages::Rest;
pub use patience::{Stake, Wait};
pub use prepared::{Prepared, Written};
pub use rebuild::Rebuilt;
pub use report::{PageFault, RepairCounts, RepairEvent, RepairReport, RepairSource};
pub use scrub::ScrubOutcome;

use crate::io::locks::{RowGuard, RowLocks};
use crate::io::patience::Memory;
use crate::layout::{Column, ColumnMask, Piece, Row};
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
    report: Rc<dyn RepairReport>,
    memory: Memory,
}

impl RaidIo {
    /// I/O on `sets`, whose chunklets are on `members`; repairs are counted and not reported.
    pub fn new(sets: Arc<RaidSets>, members: Members) -> RaidIo {
        RaidIo::with_report(sets, members, Rc::new(RepairCounts::default()))
    }

    /// Who is told what was wrong.
    pub fn reported_to(&self) -> &dyn RepairReport {
        self.0.report.as_ref()
    }

    /// I/O on `sets`, whose chunklets are on `members`; `report` is told what was wrong with pages.
    pub fn with_report(sets: Arc<RaidSets>, members: Members, report: Rc<dyn RepairReport>) -> RaidIo {
        RaidIo(Rc::new(Inner {
            sets,
            members,
            locks: Rc::new(RowLocks::new()),
            report,
            memory: Memory::default(),
        }))
    }

    /// The sets.
    pub fn sets(&self) -> &RaidSets {
        &self.0.sets
    }

    /// Patience with what cannot be read and nothing makes up for.
    pub fn wait(&self, stake: Stake) -> Wait<'_> {
        let world = self.members().any().map(|drive| drive.world());
        Wait::new(world, &self.0.memory, stake)
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

    /// Locks a row.
    async fn lock_row(&self, set: SetIndex, row: Row) -> RowGuard {
        let sectors = self.sets().layout(set).row_sectors().0;
        self.0.locks.lock(set, row.0 * sectors, (row.0 + 1) * sectors).await
    }

    /// Locks the parity group of a piece.
    async fn lock_group(&self, set: SetIndex, piece: &Piece) -> RowGuard {
        let layout = self.sets().layout(set);
        let sectors = layout.row_sectors().0 / layout.groups() as u64;
        let first = piece.row.0 * layout.row_sectors().0 + u64::from(piece.group.0) * sectors;
        self.0.locks.lock(set, first, first + sectors).await
    }

    /// Makes every completed write of the pool stable.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when a drive was lost by it, and the others do not make up for it; what a drive fails
    /// with that is not lost.
    pub async fn flush(&self) -> Result<(), IoError> {
        self.flush_sets(self.sets().all()).await
    }

    /// Makes every completed write to these sets stable, on the drives that have their columns.
    ///
    /// # Errors
    /// As [`RaidIo::flush`].
    pub async fn flush_sets(&self, sets: impl IntoIterator<Item = SetIndex>) -> Result<(), IoError> {
        let sets: BTreeSet<SetIndex> = sets.into_iter().collect();
        let places = |set: SetIndex, column: Column| {
            let source = self.sets().source(set, column).map(|chunklet| chunklet.drive as usize);
            [Some(self.sets().place(set, column).0), source].into_iter().flatten()
        };
        let members: BTreeSet<usize> = sets
            .iter()
            .flat_map(|set| self.sets().columns(*set).flat_map(|column| places(*set, column)))
            .collect();
        if self.members().flush_these(members).await? {
            return Ok(());
        }
        let survives = |set: &SetIndex| {
            self.sets().layout(*set).survives(self.members().impaired_columns(self.sets(), *set))
        };
        if sets.iter().all(survives) { Ok(()) } else { Err(IoError::RedundancyLost) }
    }
}
