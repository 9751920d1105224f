//! Rolling over: a checkpoint that contains everything, then a new and empty journal, on as many carriers as there
//! should be.
//!
//! | step | if the power goes after it |
//! |---|---|
//! | where a new carrier has no checkpoint: one, of the old journal, on old and new carriers | the old journal is replayed |
//! | commits wait; those under way become stable | the same |
//! | a checkpoint that names the new journal, on old and new carriers: what has changed since | it is the newest; its journal is not there yet, so it is empty |
//! | superblocks name the new carriers | the same |
//! | the new journal, in the place of the old one | it is recovered |
//! | commits go on | |

use std::rc::Rc;

use tier0_journal::{Ring, RingError, Settings};
use tier0_world::{IoError, PlantedBug, planted};
use uuid::Uuid;

use super::carriers;
use super::core::{Core, Metadata};
use super::journal::{self, region};
use super::labels::JournalLosses;
use crate::PoolError;

impl Metadata {
    /// Writes anew all that the drives keep of the pool: every superblock, a checkpoint, and a journal, which is empty
    /// then. What a drive has forgotten of them without telling is there again. Commits wait meanwhile.
    ///
    /// # Errors
    /// [`PoolError`] when no drive takes it; then nothing can be committed any more.
    pub async fn renew(&self) -> Result<(), PoolError> {
        if !self.0.persistent {
            return Ok(());
        }
        // A task of its own, so that it goes on if the caller does not wait.
        let core = self.0.clone();
        let work = async move {
            core.publish_and_settle(1, |_| {}).await?;
            // All pages, while commits go on.
            core.pages.borrow_mut().note_all(&core.state.borrow());
            core.checkpoint(&[]).await?;
            core.roll_over().await
        };
        self.0.world.spawn(work).await
    }
}

impl Core {
    /// Begins a new journal.
    pub(super) async fn roll_over(self: &Rc<Self>) -> Result<(), PoolError> {
        let lacking = self.choose_carriers();
        if lacking.iter().any(|member| !self.journal.borrow().holders.contains(member)) {
            self.checkpoint(&lacking).await?;
        }
        let _turn = self.checkpoint_turn.acquire(1).await;
        self.check_works()?;
        let ring = self.journal.borrow_mut().ring.take();
        while self.journal.borrow().under_way > 0 {
            self.changed.wait().await;
        }
        self.check_works()?;
        // The next journal lies in the same place.
        if let Some(ring) = ring.filter(|_| !planted(PlantedBug::HurryRollover)) {
            ring.quiet().await;
        }
        let chosen = self.choose_carriers();
        self.write_last_checkpoint(&chosen).await?;
        // Who failed on the way is no carrier.
        let chosen: Vec<u32> = chosen.into_iter().filter(|member| self.drive(*member).is_some()).collect();
        if self.labels.borrow().label.carriers != chosen {
            self.publish_and_settle(1, |label| {
                label.carriers = chosen
                    .iter()
                    .copied()
                    .filter(|member| label.members[*member as usize].is_active())
                    .collect();
            })
            .await?;
        }
        let ring = self.format_journal().await?;
        {
            let mut journal = self.journal.borrow_mut();
            journal.position = 0;
            journal.ring = Some(ring);
        }
        self.drop_lost_carriers();
        self.begin_waiting();
        Ok(())
    }

    /// The members that are to carry the metadata.
    pub(super) fn choose_carriers(&self) -> Vec<u32> {
        let present = self.labels.borrow().label.carriers.clone();
        carriers::choose(&self.state.borrow(), &present, |member| self.drive(member).is_some())
    }

    /// Writes the checkpoint that contains everything and names a journal that does not exist yet.
    async fn write_last_checkpoint(self: &Rc<Self>, carriers: &[u32]) -> Result<(), PoolError> {
        let id = {
            let mut journal = self.journal.borrow_mut();
            journal.id = self.new_journal_id(journal.generation + 1);
            journal.id
        };
        self.write_checkpoint((id, 0), carriers).await
    }

    /// An identity that no journal of this pool had.
    fn new_journal_id(&self, generation: u64) -> Uuid {
        let random = self.world.random(generation).bits() ^ self.labels.borrow().generation.rotate_left(32);
        journal::identity(self.state.borrow().id(), generation, random)
    }

    /// Makes the journal on all carriers that are left; those that fail are lost.
    async fn format_journal(self: &Rc<Self>) -> Result<Ring, PoolError> {
        loop {
            let carriers = self.labels.borrow().label.carriers.clone();
            let (area, id) = (self.state.borrow().geometry().area, self.journal.borrow().id);
            let with_drive: Vec<_> =
                carriers.iter().filter_map(|member| Some((*member, self.drive(*member)?))).collect();
            if with_drive.is_empty() {
                return Err(self.fail());
            }
            let carriers: Vec<u32> = with_drive.iter().map(|(member, _)| *member).collect();
            let regions = with_drive.into_iter().map(|(_, drive)| region(drive, &area)).collect();
            let losses = Rc::new(JournalLosses { core: Rc::downgrade(self), carriers: carriers.clone() });
            match Ring::format(&self.world, regions, id, Settings::default(), losses).await {
                Ok(ring) => {
                    self.journal.borrow_mut().carriers = carriers;
                    return Ok(ring);
                }
                Err(RingError::Drive { copy, source }) => self.lose(carriers[copy], source).await?,
                Err(RingError::AllCopiesLost { source }) => self.lose_all(&carriers, source).await?,
                Err(source) => {
                    self.fail();
                    return Err(PoolError::Journal { pool: self.pool_name(), source });
                }
            }
        }
    }

    async fn lose_all(self: &Rc<Self>, members: &[u32], error: IoError) -> Result<(), PoolError> {
        for member in members {
            self.lose(*member, error).await?;
        }
        Ok(())
    }
}
