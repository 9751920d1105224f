//! Knowing a drive again that was away, and going on without one that does not answer.
//!
//! What a drive was last seen to take is remembered here: a drive that comes back with less is an older image of itself,
//! and one with another identity is another drive. Nothing here writes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures_util::future::{Either, select};
use tier0_drive::DriveHandle;
use tier0_world::IoError;
use tier0_world::sync::Notify;
use uuid::Uuid;

use super::core::Metadata;
use super::superblock;

/// Who a drive says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The pool.
    pub pool: Uuid,
    /// The member.
    pub member: Uuid,
    /// The generation of its newest superblock.
    pub generation: u64,
    /// The start that wrote it.
    pub start: Option<u64>,
}

impl Seen {
    /// Reads it from a drive's superblock.
    ///
    /// # Errors
    /// A sentence: the drive fails, or has no superblock that can be read.
    pub async fn read(drive: &DriveHandle) -> Result<Seen, String> {
        let newest = superblock::read(drive).await.map_err(|error| error.to_string())?;
        let newest = newest.ok_or_else(|| format!("drive {:?} has no superblock", drive.info().name))?;
        if newest.is_front_lost() {
            return Err(format!("the start of drive {:?} was overwritten", drive.info().name));
        }
        let superblock = newest.superblock;
        Ok(Seen {
            pool: superblock.label.pool,
            member: superblock.member,
            generation: superblock.generation,
            start: superblock.label.starts.current(),
        })
    }
}

/// What drives have taken, and which of them are no longer waited for.
#[derive(Default)]
pub(super) struct Taken {
    /// By member: the generation of the superblock that it has for certain.
    generations: RefCell<BTreeMap<u32, u64>>,
    given_up: RefCell<BTreeSet<u32>>,
    /// Rung when a member is given up.
    bell: Notify,
}

impl Taken {
    /// A member has the superblock of this generation, stable.
    pub(super) fn note(&self, member: u32, generation: u64) {
        self.generations.borrow_mut().insert(member, generation);
    }

    /// Writers of superblocks wait for this member no longer: it is about to be lost.
    pub(super) fn give_up(&self, member: u32) {
        self.given_up.borrow_mut().insert(member);
        self.bell.notify_all();
    }

    /// Waits for `work` on a member's drive, or until the member is given up. A superblock that is being written while its
    /// drive is judged must not keep the judgement from being recorded.
    pub(super) async fn unless_given_up(
        &self,
        member: u32,
        work: impl Future<Output = Result<(), IoError>>,
    ) -> Result<(), IoError> {
        let given_up = async {
            while !self.given_up.borrow().contains(&member) {
                self.bell.wait().await;
            }
        };
        match select(pin!(work), pin!(given_up)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(IoError::Gone),
        }
    }
}

impl Metadata {
    /// The generation of the superblock that a member had for certain, the last time that one was written to it in this
    /// run; none if none was.
    pub fn last_written_to(&self, member: u32) -> Option<u64> {
        self.0.taken.generations.borrow().get(&member).copied()
    }

    /// Whether what was seen on a drive is the member, as it was left.
    ///
    /// # Errors
    /// The sentence that says why not.
    pub fn recognise(&self, member: u32, seen: &Seen) -> Result<(), String> {
        let labels = self.0.labels.borrow();
        let Some(known) = labels.label.members.get(member as usize) else {
            return Err(format!("the pool has no member {member}"));
        };
        if seen.pool != labels.label.pool || seen.member != known.id {
            return Err(format!(
                "what answers in the place of drive {:?} is another drive; bring the right one back",
                known.name
            ));
        }
        let taken = self.0.taken.generations.borrow().get(&member).copied().unwrap_or(0);
        let is_foreign = seen.generation >= taken && !self.is_this_start(seen.start);
        if seen.generation > labels.generation || is_foreign {
            return Err(format!(
                "what answers in the place of drive {:?} is of a copy of the array that was served elsewhere; it is not used, \
                 bring the right one back",
                known.name
            ));
        }
        if seen.generation < taken {
            return Err(format!(
                "drive {:?} came back as an older image of itself (generation {} instead of {taken}); it is not used, fail \
                 it (tier0 drive fail) or bring back what was there",
                known.name, seen.generation
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    /// A superblock was being written to a drive that hung while that drive was judged: the loss waited for the turn to
    /// write superblocks, the task that had the turn waited for the drive, and the drive's guard waited for the
    /// verdict.
    #[test]
    fn a_superblock_that_hangs_is_not_waited_for_once_its_drive_is_given_up() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let world = runtime.world().clone();
        runtime.run(async move {
            let taken = Rc::new(Taken::default());
            let (own, sleeper) = (taken.clone(), world.clone());
            let hangs = async move {
                sleeper.sleep(Nanos::from_secs(1000)).await;
                Ok(())
            };
            let written = world.spawn(async move { own.unless_given_up(3, hangs).await });
            taken.give_up(2);
            world.sleep(Nanos::from_secs(1)).await;
            let begun = world.now();
            taken.give_up(3);
            assert_eq!(written.await, Err(IoError::Gone));
            assert_eq!(world.now(), begun);
            assert_eq!(taken.unless_given_up(4, async { Ok(()) }).await, Ok(()));
        });
    }
}
