//! Making the loss of a drive known: the drives that are left remember it before anything is acknowledged on top of
//! it.
//!
//! One task of the first shard writes the superblocks, one loss after the other; shards report to it and wait.

use std::future::Future;
use std::pin::Pin;

use tier0_drive::DriveHandle;
use tier0_pool::superblock::{self, Superblock};
use tier0_raid::io::FailureReport;
use tier0_world::IoError;
use tier0_world::sync::{MailReceiver, MailSender, oneshot};

/// A drive is lost.
pub(crate) struct Loss {
    pool: usize,
    member: usize,
    done: oneshot::Sender<()>,
}

/// A shard's way to the control task.
#[derive(Clone)]
pub(crate) struct LossReporter {
    pub(crate) pool: usize,
    pub(crate) control: MailSender<Loss>,
}

impl FailureReport for LossReporter {
    fn report(&self, member: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        let (done, waiting) = oneshot::channel();
        self.control.send(Loss { pool: self.pool, member, done });
        Box::pin(async move {
            // The control task ends only with the array.
            let _ = waiting.await;
        })
    }
}

/// What the drives of a pool remember, as the control task keeps it. Drives without superblocks (modelled ones in
/// virtual time) have none to write.
pub(crate) struct PoolMemory {
    pub(crate) superblock: Superblock,
    pub(crate) drives: Vec<Option<DriveHandle>>,
    pub(crate) persistent: bool,
}

/// Writes what is reported, until nobody can report any more.
pub(crate) async fn remember_losses(mut pools: Vec<PoolMemory>, mut inbox: MailReceiver<Loss>) {
    while let Some(loss) = inbox.receive().await {
        let pool = &mut pools[loss.pool];
        let member = &mut pool.superblock.record.members[loss.member];
        if !member.lost {
            member.lost = true;
            if pool.persistent {
                persist(pool).await;
            }
        }
        let _ = loss.done.send(());
    }
}

/// Writes the record to every drive that is left. A drive that fails here is noticed by its next command; a majority
/// is not asked for, because the generation tells which record is the newest.
pub(crate) async fn persist(pool: &mut PoolMemory) {
    pool.superblock.generation += 1;
    for (member, drive) in pool.superblock.record.members.iter().zip(&pool.drives) {
        let Some(drive) = drive.as_ref().filter(|_| !member.lost) else { continue };
        let own = Superblock { member: member.id, ..pool.superblock.clone() };
        if let Err(error) = superblock::write(drive, &own).await {
            tracing::error!("{error}");
        }
    }
}
