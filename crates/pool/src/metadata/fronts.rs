//! Whether drives still hold what this start wrote of the metadata: another program may write to them while they serve, or
//! put an older image back. Nothing here writes.
//!
//! What it does not do: it looks at the superblock, the header of the newest checkpoint and the newest frame of the journal.
//! What else was written over shows when the next start reads it, or is written anew by a scrub.

use tier0_drive::DriveHandle;

use super::checkpoints;
use super::core::Metadata;
use super::lineage;
use super::superblock::{self, Newest, Superblock};
use crate::PoolError;
use crate::state::Member;

impl Metadata {
    /// Whether this start wrote a superblock, and no other start of the same pool or of a copy of it.
    pub fn is_of_this_start(&self, superblock: &Superblock) -> bool {
        self.is_this_start(superblock.label.starts.current())
    }

    /// Whether the drive of a superblock of this pool went on by itself, so that it holds what others acknowledged, and that was
    /// not given up.
    pub fn went_on_alone(&self, superblock: &Superblock) -> bool {
        let labels = self.0.labels.borrow();
        let serving = labels.label.members.iter().find(|member| member.is_active());
        serving.is_some_and(|member| {
            let (generation, label) = (labels.generation, labels.label.clone());
            let serving = Superblock { generation, member: member.id, label };
            superblock.label.pool == serving.label.pool && lineage::went_on_alone(superblock, &serving)
        })
    }

    pub(super) fn is_this_start(&self, start: Option<u64>) -> bool {
        start == self.0.labels.borrow().label.starts.current()
    }

    /// Whether the front of a member's drive holds what this start wrote there last. A drive that fails or is no longer a
    /// member counts as one that does: its guard judges it. So does one that was cut short, whose end is not to be asked for.
    pub async fn has_own_front(&self, member: u32) -> bool {
        let Some(drive) = self.drive(member).filter(|drive| !drive.is_cut_short()) else { return true };
        // A newer one may be written while this one is read.
        let taken = self.last_written_to(member);
        match superblock::read(&drive).await {
            Ok(found) if !found.as_ref().is_some_and(|found| self.is_own(member, found, taken)) => false,
            Err(PoolError::Drive { .. }) => true,
            Err(_) => false,
            Ok(_) => self.has_own_checkpoint(member, &drive).await && self.has_own_journal(member).await,
        }
    }

    /// Whether a superblock is the one that the member had for certain, as [`Self::last_written_to`] tells, or a newer one of
    /// this start.
    fn is_own(&self, member: u32, found: &Newest, taken: Option<u64>) -> bool {
        let labels = self.0.labels.borrow();
        let superblock = &found.superblock;
        let is_of =
            |known: &Member| superblock.member == known.id && superblock.label.pool == labels.label.pool;
        !found.is_front_lost()
            && labels.label.members.get(member as usize).is_some_and(is_of)
            && superblock.generation >= taken.unwrap_or(0)
            && self.is_of_this_start(superblock)
    }

    async fn has_own_checkpoint(&self, member: u32, drive: &DriveHandle) -> bool {
        let (id, area) = {
            let state = self.0.state.borrow();
            (state.id(), state.geometry().area)
        };
        let (newest, holds) = {
            let journal = self.0.journal.borrow();
            (journal.complete, journal.holders.contains(&member))
        };
        // The slot of the newest one takes none before the next is complete, and that is newer.
        !holds || checkpoints::has(drive, &area, id, newest).await.unwrap_or(true)
    }

    async fn has_own_journal(&self, member: u32) -> bool {
        let (ring, copy) = {
            let journal = self.0.journal.borrow();
            (journal.ring.clone(), journal.carriers.iter().position(|carrier| *carrier == member))
        };
        let (Some(ring), Some(copy)) = (ring, copy) else { return true };
        let is_overwritten = ring.is_overwritten(copy).await;
        // Another journal may have begun in its place meanwhile.
        let is_same = self.0.journal.borrow().ring.as_ref().is_some_and(|now| now.is(&ring));
        !(is_overwritten && is_same)
    }
}
