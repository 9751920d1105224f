//! Drives that join and leave a pool that is open.

use std::pin::pin;

use futures_util::future::{Either, select};
use tier0_drive::DriveHandle;
use tier0_units::Nanos;
use tier0_world::IoError;

use super::core::Metadata;
use super::labels::set_state;
use super::superblock::{self, PoolLabel, Superblock};
use crate::foreign::erase_unused;
use crate::state::{Member, MemberState};
use crate::{MetaRecord, PoolError};

/// How long a drive that joins may take for its superblocks.
const JOIN_LIMIT: Nanos = Nanos::from_secs(30);

impl Metadata {
    /// Makes a drive a member; its place. The superblocks say so first, the journal follows. What other programs left where a
    /// member holds nothing is erased before.
    /// `member` is new: active, and with an identity that no member had.
    ///
    /// # Errors
    /// The drive fails, or does not take its superblocks within [`JOIN_LIMIT`], or the label has no room.
    pub async fn add_member(&self, drive: DriveHandle, member: Member) -> Result<u32, PoolError> {
        let core = self.0.clone();
        let task = async move {
            let turn = core.label_turn.acquire(1).await;
            let record = MetaRecord::MemberAdded(member.clone());
            core.state.borrow().check(&record)?;
            let (superblock, place) = {
                let labels = core.labels.borrow();
                let mut label = labels.label.clone();
                label.members.push(member.clone());
                // As `publish` will write it to the others.
                (label.features, label.settled) = (label.features.of_next_superblock(), labels.complete);
                if !superblock::fits_with_starts(&label) {
                    return Err(PoolError::LabelTooLarge);
                }
                let place = label.members.len() as u32 - 1;
                (Superblock { generation: labels.generation + 1, member: member.id, label }, place)
            };
            let failed = |source| PoolError::Drive { drive: drive.info().name.clone(), source };
            if core.persistent {
                // No older superblock survives; no other member knows of the drive yet.
                let last = core.last_copy(&drive, &member);
                let writes = async {
                    erase_unused(&drive, core.end_of(&drive, &member)).await?;
                    superblock::write_last(&drive, &superblock, last).await?;
                    superblock::write(&drive, &superblock, 1, None).await
                };
                // No verdict is passed on a drive that is no member, and no loss of another can be recorded meanwhile.
                match select(pin!(writes), pin!(core.world.sleep(JOIN_LIMIT))).await {
                    Either::Left((written, _)) => written.map_err(failed)?,
                    Either::Right(_) => return Err(failed(IoError::Timeout)),
                }
            }
            core.labels.borrow_mut().next_copy.push(1);
            core.drives.borrow_mut().push(core.persistent.then_some(drive));
            let lost = core.publish(1, |label| label.members.push(member)).await?;
            let commit = core.enqueue(vec![record]);
            drop(turn);
            core.settle(&lost);
            commit.await?;
            core.replenish_carriers();
            Ok(place)
        };
        self.0.world.spawn(task).await
    }

    /// Takes a member out that holds nothing the pool needs any more. Here the journal says so first: opening completes
    /// what a crash leaves half done, and until then nothing can be placed on the member again.
    pub async fn remove_member(&self, member: u32) -> Result<(), PoolError> {
        self.commit(vec![MetaRecord::MemberRemoved { member }]).await?;
        let core = self.0.clone();
        let change = async move {
            let turn = core.label_turn.acquire(1).await;
            let change = |label: &mut PoolLabel| set_state(label, member, MemberState::Removed);
            let lost = core.publish(1, change).await?;
            core.drives.borrow_mut()[member as usize] = None;
            drop(turn);
            core.drop_carrier(member);
            core.settle(&lost);
            core.replenish_carriers();
            Ok(())
        };
        self.0.world.spawn(change).await
    }
}
