//! Writing superblocks: the loss of a drive is known to all others before anything is acknowledged that it lacks.

use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_journal::LossReport;
use tier0_units::Lba;
use tier0_world::{IoError, PlantedBug, planted};

use super::core::{Core, Metadata};
use super::starts::Starts;
use super::superblock::{self, PoolLabel, Superblock};
use crate::features::{Features, GROUPS, LOST_PAGES};
use crate::state::{Member, MemberState, PATH_BYTES_MAX, PoolState};
use crate::{MetaRecord, PoolError};

/// What the superblocks say, and where each drive's newest one is.
pub(super) struct Labels {
    pub(super) generation: u64,
    /// The last generation that all members have which it calls active.
    pub(super) complete: u64,
    pub(super) label: PoolLabel,
    /// By member: the copy, 0 or 1, that the next superblock is written to first.
    pub(super) next_copy: Vec<u64>,
}

impl Labels {
    /// The label of a state that was never written.
    pub(super) fn of(state: &PoolState, carriers: Vec<u32>) -> Labels {
        let label = PoolLabel {
            pool: state.id(),
            array: state.array().to_owned(),
            name: state.name().to_owned(),
            area: state.geometry().area,
            carriers,
            members: state.members().to_vec(),
            features: Features {
                incompatible: if state.has_groups() { GROUPS } else { 0 },
                ..Features::NONE
            }
            .of_next_superblock(),
            settled: 0,
            lost_in: BTreeMap::new(),
            given_up: BTreeMap::new(),
            starts: Starts::default(),
        };
        Labels { generation: 0, complete: 0, next_copy: vec![0; label.members.len()], label }
    }
}

impl Core {
    /// Changes the label and writes it to every member that serves, `steps` generations on. Members that fail this are
    /// lost and written as such in their turn. Ends when all that are left have it; returns who was lost on the way.
    pub(super) async fn publish(
        &self,
        steps: u64,
        change: impl FnOnce(&mut PoolLabel),
    ) -> Result<Vec<(u32, IoError)>, PoolError> {
        {
            let mut labels = self.labels.borrow_mut();
            labels.generation += steps;
            let Labels { generation, complete, label, .. } = &mut *labels;
            let gone = |label: &PoolLabel, place: usize| !label.members[place].is_active();
            let before: Vec<bool> = (0..label.members.len()).map(|place| gone(label, place)).collect();
            change(label);
            label.features = label.features.of_next_superblock();
            label.settled = *complete;
            let newly = (0..label.members.len()).filter(|place| gone(label, *place));
            let newly: Vec<usize> = newly.filter(|place| before.get(*place) != Some(&true)).collect();
            label.lost_in.extend(newly.into_iter().map(|place| (place as u32, *generation)));
        }
        let mut lost = Vec::new();
        if !self.persistent {
            return Ok(lost);
        }
        loop {
            let failed = self.write_labels().await?;
            let mut labels = self.labels.borrow_mut();
            if failed.is_empty() {
                labels.complete = labels.generation;
                return Ok(lost);
            }
            labels.generation += 1;
            let generation = labels.generation;
            for (member, error) in failed {
                set_state(&mut labels.label, member, MemberState::Lost);
                labels.label.lost_in.insert(member, generation);
                lost.push((member, error));
            }
        }
    }

    /// Writes the label to every member that serves; those that fail.
    async fn write_labels(&self) -> Result<Vec<(u32, IoError)>, PoolError> {
        let writes: Vec<_> = {
            let labels = self.labels.borrow();
            let serving = (0u32..).zip(&labels.label.members).filter(|(_, member)| member.is_active());
            let with_drive = serving.filter_map(|(place, member)| Some((place, member, self.drive(place)?)));
            with_drive
                .map(|(place, member, drive)| {
                    let superblock = Superblock {
                        generation: labels.generation,
                        member: member.id,
                        label: labels.label.clone(),
                    };
                    let copy = labels.next_copy[place as usize];
                    let last = self.last_copy(&drive, member);
                    async move {
                        let written = superblock::write(&drive, &superblock, copy, last);
                        let result = self.taken.unless_given_up(place, written).await;
                        if result.is_ok() {
                            self.taken.note(place, superblock.generation);
                        }
                        (place, copy, result)
                    }
                })
                .collect()
        };
        let count = writes.len();
        let mut failed = Vec::new();
        for (place, copy, result) in join_all(writes).await {
            match result {
                Ok(()) => self.labels.borrow_mut().next_copy[place as usize] = 1 - copy,
                Err(error) => failed.push((place, error)),
            }
        }
        if failed.len() == count { Err(self.fail()) } else { Ok(failed) }
    }

    /// Where the last copy of a member's superblock lies; none where a chunklet has the place.
    pub(super) fn last_copy(&self, drive: &DriveHandle, member: &Member) -> Option<Lba> {
        let end = self.state.borrow().geometry().data_end(member.sectors);
        superblock::last_copy(drive.info().sectors).filter(|at| at.0 >= end)
    }

    /// The first sector behind all that a member uses.
    pub(super) fn end_of(&self, drive: &DriveHandle, member: &Member) -> Lba {
        let behind = |last: Lba| Lba(last.0 + superblock::COPY_SECTORS);
        let data_end = || Lba(self.state.borrow().geometry().data_end(member.sectors));
        self.last_copy(drive, member).map_or_else(data_end, behind)
    }

    /// Makes known that a member is lost; ends when the superblocks of all others say so.
    pub(super) async fn lose(self: &Rc<Self>, member: u32, error: IoError) -> Result<(), PoolError> {
        // The task that has the turn may be waiting for this very drive.
        self.taken.give_up(member);
        let turn = self.label_turn.acquire(1).await;
        let serves = self.labels.borrow().label.members.get(member as usize).is_some_and(|m| m.is_active());
        if !serves {
            return self.check_works();
        }
        let mut lost = vec![(member, error)];
        if planted(PlantedBug::ForgetLoss) {
            set_state(&mut self.labels.borrow_mut().label, member, MemberState::Lost);
        } else {
            let change = |label: &mut PoolLabel| set_state(label, member, MemberState::Lost);
            lost.extend(self.publish(1, change).await?);
        }
        drop(turn);
        self.settle(&lost);
        Ok(())
    }

    /// What follows from losses that the superblocks know.
    pub(super) fn settle(self: &Rc<Self>, lost: &[(u32, IoError)]) {
        for (member, error) in lost {
            tracing::warn!(member, %error, pool = self.pool_name(), "a drive is lost");
            self.drives.borrow_mut()[*member as usize] = None;
            self.drop_carrier(*member);
            let record = MetaRecord::MemberLost { member: *member };
            if planted(PlantedBug::ForgetLoss) {
                let _ = self.state.borrow_mut().apply_all(&[record]);
            } else {
                // Durable with the next commits; the superblocks know already.
                drop(self.enqueue(vec![record]));
            }
            (self.on_loss)(*member, *error);
        }
        if !lost.is_empty() {
            self.replenish_carriers();
        }
    }

    /// Publishes a label that says the same but for `change`, and settles the losses on the way.
    pub(super) async fn publish_and_settle(
        self: &Rc<Self>,
        steps: u64,
        change: impl FnOnce(&mut PoolLabel),
    ) -> Result<(), PoolError> {
        let turn = self.label_turn.acquire(1).await;
        let lost = self.publish(steps, change).await?;
        drop(turn);
        self.settle(&lost);
        Ok(())
    }
}

impl Metadata {
    /// Gives the superblocks of all members a new generation, so that an older image of one of them can be told from it.
    ///
    /// # Errors
    /// When nothing can be committed any more.
    pub async fn mark(&self) -> Result<(), PoolError> {
        // A task of its own, so that it goes on if the caller does not wait.
        let core = self.0.clone();
        self.0.world.spawn(async move { core.publish_and_settle(1, |_| {}).await }).await
    }

    /// Whether pages are remembered of which no copy is right.
    #[must_use]
    pub fn has_lost_pages(&self) -> bool {
        self.0.labels.borrow().label.features.compatible & LOST_PAGES != 0
    }

    /// Remembers on the drives whether there are pages of which no copy is right.
    ///
    /// # Errors
    /// When nothing can be committed any more.
    pub async fn remember_lost_pages(&self, are_there: bool) -> Result<(), PoolError> {
        if self.has_lost_pages() == are_there {
            return Ok(());
        }
        let core = self.0.clone();
        let change = move |label: &mut PoolLabel| match are_there {
            true => label.features.compatible |= LOST_PAGES,
            false => label.features.compatible &= !LOST_PAGES,
        };
        // A task of its own, so that it goes on if the caller does not wait.
        self.0.world.spawn(async move { core.publish_and_settle(1, change).await }).await
    }

    /// Makes known that a member must not be believed any more: ends when the superblocks of all others say so. Then,
    /// and not before, may anything be acknowledged that the member lacks. Nothing happens if it is lost already.
    pub async fn lose(&self, member: u32, error: IoError) -> Result<(), PoolError> {
        // A task of its own, so that it goes on if the caller does not wait.
        let core = self.0.clone();
        self.0.world.spawn(async move { core.lose(member, error).await }).await
    }

    /// Remembers on the drives where members were found: place and path. Paths that are known already change nothing, and
    /// one that is too long counts as not known. Ends when they are stable.
    pub async fn remember_paths(&self, paths: Vec<(u32, String)>) -> Result<(), PoolError> {
        let core = self.0.clone();
        let task = async move {
            let turn = core.label_turn.acquire(1).await;
            let short = |path: String| if path.len() <= PATH_BYTES_MAX { path } else { String::new() };
            let mut paths: Vec<(u32, String)> =
                paths.into_iter().map(|(member, path)| (member, short(path))).collect();
            paths.retain(|(member, path)| {
                core.state.borrow().member(*member).is_some_and(|m| m.path != *path)
            });
            if paths.is_empty() {
                return Ok(());
            }
            let records: Vec<MetaRecord> = paths
                .iter()
                .map(|(member, path)| MetaRecord::MemberMoved { member: *member, path: path.clone() })
                .collect();
            let change = |label: &mut PoolLabel| {
                paths.into_iter().for_each(|(member, path)| label.members[member as usize].path = path);
            };
            let lost = core.publish(1, change).await?;
            let commit = core.enqueue(records);
            drop(turn);
            core.settle(&lost);
            commit.await?;
            Ok(())
        };
        self.0.world.spawn(task).await
    }
}

/// Tells the metadata that a copy of its journal failed.
pub(super) struct JournalLosses {
    pub(super) core: std::rc::Weak<Core>,
    /// The member of each copy.
    pub(super) carriers: Vec<u32>,
}

impl LossReport for JournalLosses {
    fn report(&self, copy: usize, error: IoError) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
        let (core, member) = (self.core.clone(), self.carriers[copy]);
        Box::pin(async move {
            let Some(core) = core.upgrade() else { return };
            if core.lose(member, error).await.is_err() {
                // The other members could not be told, so nothing may be acknowledged: the ring ends here.
                core.end_journal();
            }
        })
    }
}

pub(super) fn set_state(label: &mut PoolLabel, member: u32, state: MemberState) {
    let before = std::mem::replace(&mut label.members[member as usize].state, state);
    // Who was lost and is taken out has been gone since it was lost.
    if (before, state) != (MemberState::Lost, MemberState::Removed) {
        label.lost_in.remove(&member);
    }
    label.carriers.retain(|carrier| *carrier != member);
}
