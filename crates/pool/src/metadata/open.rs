//! Opening a pool that was found: the newest checkpoint, every record after it, and everything proved; then the pool
//! goes on with what is there.
//!
//! | step | writes |
//! |---|---|
//! | the newest valid checkpoint of all carriers that are there | |
//! | its journal; the records after the checkpoint, each checked; the invariants | |
//! | the caller checks that the pool can go on so | |
//! | members that are missing, and those that fail, are lost from now on | superblocks in the newest format; where anything changes, two generations on: one may have been begun on a drive that is missing |
//! | that generation is complete | superblocks that say so |
//! | carriers without the newest checkpoint get it, so that the next one overwrites no valid one | a checkpoint |
//! | a new journal on as many carriers as there should be | see `rollover` |

use tier0_drive::DriveHandle;
use tier0_journal::header::{HeaderPlace as JournalHeader, decode as decode_journal_header};
use tier0_journal::{Inspected as JournalContent, Region, Ring, RingError};
use tier0_units::{Lba, PAGE_SECTORS};
use tier0_world::{BufMut, IoError, PayloadWidth, World};
use uuid::Uuid;

use super::checkpoints::{self, Copies};
use super::core::{Core, LossHook, Metadata};
use super::journal::{self, region};
use super::labels::{Labels, set_state};
use super::page_io;
use super::pages::Pages;
use super::superblock;
use super::survey::{FoundPool, Standing};
use crate::checkpoint::Header;
use crate::error::names;
use crate::features::IN_SUPERBLOCKS;
use crate::record;
use crate::state::{MemberState, PoolState};
use crate::{MetaRecord, PoolError};

/// Steps of the superblocks' generation when members are found missing.
pub(super) const MISSING_STEPS: u64 = 2;

impl FoundPool {
    /// Opens the pool with the members that are there; those that are missing are lost from now on. Nothing is written
    /// before everything is read and proved.
    pub async fn open(self, world: &World, on_loss: LossHook) -> Result<Metadata, PoolError> {
        self.open_if(world, on_loss, |_| Ok(())).await
    }

    /// As [`FoundPool::open`], if `check` admits the state that the pool would go on with, missing members taken out.
    /// Otherwise nothing is written.
    pub async fn open_if(
        self,
        world: &World,
        on_loss: LossHook,
        check: impl FnOnce(&PoolState) -> Result<(), PoolError>,
    ) -> Result<Metadata, PoolError> {
        let inspected = self.inspect(world).await?;
        check(inspected.state())?;
        inspected.open(world, on_loss).await
    }

    /// Reads and proves everything that the pool would go on with, and writes nothing.
    pub async fn inspect(self, world: &World) -> Result<Inspected, PoolError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let pool = self.label.name.clone();
        self.label.features.check_writable(IN_SUPERBLOCKS, || format!("the superblock of pool {pool:?}"))?;
        if !superblock::fits(&self.label) {
            return Err(PoolError::LabelTooLarge);
        }
        let carriers: Vec<(u32, DriveHandle)> = self
            .label
            .carriers
            .iter()
            .filter_map(|place| Some((*place, self.members[*place as usize].drive.clone()?)))
            .collect();
        let newest = checkpoints::newest(&pool, self.label.pool, &self.label.area, &carriers).await?;
        let mut lost = newest.failed.clone();
        let mut pages = Pages::new(newest.table());
        if newest.is_unpaged() {
            pages.note_all(&newest.state);
        }
        let header = newest.header;
        let (mut state, copies) = newest.into_parts();
        let journal = Journal { world, pool: &pool, header, area_of: &self };
        journal.replay(&carriers, &mut lost, &mut state, &mut pages).await?;
        page_io::prove(world, &state).await?;
        let carriers_before = self.label.carriers.clone();
        let mut found = self;
        found.take_in(state.members());
        let mut opening = Opening { found, state, header, copies, pages, lost, carriers_before };
        let before: Vec<bool> = opening.found.label.members.iter().map(crate::Member::is_active).collect();
        let is_changed = opening.reconcile()?;
        let lost_now = |(place, member): &(u32, &crate::Member)| {
            before[*place as usize] && member.state == MemberState::Lost
        };
        let members = (0u32..).zip(opening.state.members());
        let newly_lost = members.filter(lost_now).map(|(place, _)| place).collect();
        Ok(Inspected { opening, is_changed, newly_lost })
    }
}

/// A pool that was read and proved, and not written to.
pub struct Inspected {
    pub(super) opening: Opening,
    is_changed: bool,
    newly_lost: Vec<u32>,
}

impl Inspected {
    /// What the pool would go on with, members that are missing taken out.
    pub fn state(&self) -> &PoolState {
        &self.opening.state
    }

    /// The members that served until now and would be recorded as lost, by place.
    pub fn newly_lost(&self) -> &[u32] {
        &self.newly_lost
    }

    /// Whether a member is there although it is not believed: was put back to an older image of itself, or overwritten at the
    /// front. It goes on nowhere else.
    pub fn is_stale_member(&self, place: u32) -> bool {
        let found = self.opening.found.members.get(place as usize);
        found.is_some_and(|found| matches!(found.standing, Standing::RolledBack | Standing::Overwritten))
    }

    /// Whether the administrator does without a member.
    pub fn is_done_without(&self, member: &crate::Member) -> bool {
        self.opening.found.is_done_without(member)
    }

    /// The generation of the superblock that counts.
    pub fn counting_generation(&self) -> u64 {
        self.opening.found.counting
    }

    /// The members that carry the metadata, those that are newly lost left out.
    pub fn carriers(&self) -> &[u32] {
        &self.opening.found.label.carriers
    }

    /// The members that carried it before.
    pub fn carriers_before(&self) -> &[u32] {
        &self.opening.carriers_before
    }

    /// The drive of a member that is there and believed.
    pub fn drive(&self, place: u32) -> Option<&DriveHandle> {
        self.opening.found.members.get(place as usize)?.drive.as_ref()
    }

    /// Opens the pool: the first writes.
    pub async fn open(self, world: &World, on_loss: LossHook) -> Result<Metadata, PoolError> {
        self.opening.go_on(world, on_loss, self.is_changed).await
    }
}

/// The journal that goes on from a checkpoint.
struct Journal<'a> {
    world: &'a World,
    pool: &'a str,
    header: Header,
    area_of: &'a FoundPool,
}

/// What lies in the journal's place on a carrier.
enum Place {
    /// The journal, and no other.
    Wanted,
    /// No journal at all.
    Nothing,
    /// An older one of this pool, or parts of the new one beside it: the new one was never complete.
    Older,
    /// A newer one, or another pool's: the checkpoint is not the newest there was.
    Foreign,
    /// It cannot be read, and may be any of these.
    Unreadable,
}

impl Journal<'_> {
    /// Applies the records after the checkpoint.
    async fn replay(
        &self,
        carriers: &[(u32, DriveHandle)],
        lost: &mut Vec<(u32, IoError)>,
        state: &mut PoolState,
        pages: &mut Pages,
    ) -> Result<(), PoolError> {
        let Some(recovered) = self.recover(carriers, lost).await? else { return Ok(()) };
        let gap = |fact: String| PoolError::JournalGap { pool: self.pool.to_owned(), fact };
        if recovered.tail.0 > self.header.position {
            let (tail, position) = (recovered.tail, self.header.position);
            return Err(gap(format!("it begins with record {tail}, the checkpoint ends before {position}")));
        }
        for entry in recovered.entries.iter().filter(|entry| entry.position.0 >= self.header.position) {
            let bad = |fact: String| PoolError::BadRecord {
                pool: self.pool.to_owned(),
                position: entry.position.0,
                fact,
            };
            let records = record::decode(&entry.header).ok_or_else(|| bad("it cannot be read".to_owned()))?;
            pages.note(state, &records);
            state.apply_all(&records).map_err(|error| bad(error.to_string()))?;
            pages.note(state, &records);
            page_io::rest(self.world).await;
        }
        Ok(())
    }

    /// Reads the journal; `None` if the power went before it was complete. Nothing of it is made equal: a checkpoint with
    /// all of it, and a new journal, are the first things that opening writes after the labels.
    async fn recover(
        &self,
        carriers: &[(u32, DriveHandle)],
        lost: &mut Vec<(u32, IoError)>,
    ) -> Result<Option<JournalContent>, PoolError> {
        let mut copies: Vec<(u32, DriveHandle)> = Vec::new();
        let (mut is_older, mut foreign, mut unreadable) = (false, None, None);
        for (member, drive) in carriers {
            if lost.iter().any(|(lost, _)| lost == member) {
                continue;
            }
            match self.look(drive).await {
                Ok(Place::Wanted) => copies.push((*member, drive.clone())),
                Ok(Place::Nothing) => {}
                Ok(Place::Older) => is_older = true,
                Ok(Place::Foreign) => foreign = Some(drive.info().name.clone()),
                Ok(Place::Unreadable) => unreadable = Some(drive.info().name.clone()),
                Err(error) => lost.push((*member, error)),
            }
        }
        // Only a drive that is gone is done without: one with a bad sector stays, and is written anew.
        while !copies.is_empty() {
            let regions: Vec<Option<Region>> = copies
                .iter()
                .map(|(_, drive)| Some(region(drive.clone(), &self.area_of.label.area)))
                .collect();
            match Ring::inspect(self.world, regions, self.header.journal).await {
                Ok(recovered) => return Ok(Some(recovered)),
                Err(RingError::Drive { copy, source }) => lost.push((copies.remove(copy).0, source)),
                Err(source) => return Err(PoolError::Journal { pool: self.pool.to_owned(), source }),
            }
        }
        let gap = |fact: String| Err(PoolError::JournalGap { pool: self.pool.to_owned(), fact });
        match (foreign, unreadable) {
            // A new journal is complete on all carriers or on none.
            _ if is_older => Ok(None),
            (_, Some(drive)) => gap(format!("drive {drive:?} cannot read its journal")),
            (Some(drive), None) => gap(format!("drive {drive:?} holds another journal")),
            (None, None) => gap("no drive holds a journal".to_owned()),
        }
    }

    async fn look(&self, drive: &DriveHandle) -> Result<Place, IoError> {
        let start = self.area_of.label.area.journal_start();
        let mut ids: Vec<Uuid> = Vec::new();
        let mut is_unreadable = false;
        for place in 0..2 {
            let at = Lba(start.0 + place * PAGE_SECTORS);
            let (result, buf) = drive.read(at, BufMut::new(PAGE_SECTORS as u32, PayloadWidth::REAL)).await;
            match result {
                Ok(()) => {}
                Err(IoError::Gone) => return Err(IoError::Gone),
                Err(_) => {
                    is_unreadable = true;
                    continue;
                }
            }
            match decode_journal_header(buf.as_slice()) {
                JournalHeader::Valid(header) => ids.push(header.ring),
                // Recovery says so.
                JournalHeader::TooNew(_) => return Ok(Place::Wanted),
                JournalHeader::None => {}
            }
        }
        let wanted = self.header.journal;
        Ok(if is_unreadable && !ids.contains(&wanted) {
            Place::Unreadable
        } else if ids.is_empty() {
            Place::Nothing
        } else if ids.iter().all(|id| *id == wanted) {
            Place::Wanted
        } else if ids.iter().all(|id| *id == wanted || journal::is_older(*id, wanted)) {
            Place::Older
        } else {
            Place::Foreign
        })
    }
}

/// A pool that was read and proved.
pub(super) struct Opening {
    found: FoundPool,
    pub(super) state: PoolState,
    header: Header,
    copies: Copies,
    pages: Pages,
    lost: Vec<(u32, IoError)>,
    carriers_before: Vec<u32>,
}

impl Opening {
    /// Makes state and label agree on the members, and takes those out that are missing. Whether the superblocks must
    /// be written.
    fn reconcile(&mut self) -> Result<bool, PoolError> {
        let known = self.state.members().len();
        let mut is_changed = self.found.is_uneven;
        let label = &mut self.found.label;
        for (place, found) in (0u32..).zip(&self.found.members) {
            if tier0_world::planted(tier0_world::PlantedBug::BelieveStaleDrive) && found.drive.is_some() {
                label.members[place as usize].state = MemberState::Active;
                self.state.believe(place);
            }
            if place as usize >= known {
                let member = crate::Member { state: MemberState::Active, ..found.member.clone() };
                self.state.apply_all(&[MetaRecord::MemberAdded(member)])?;
            }
            if found.is_readmitted && self.state.members()[place as usize].state == MemberState::Lost {
                self.state.readmit(place)?;
            }
            if self.state.members()[place as usize].id != label.members[place as usize].id {
                return Err(PoolError::Unopenable {
                    fact: format!(
                        "the metadata of pool {:?} and its superblocks know different drives in place {place}: they are of \
                         two histories; connect other drives of it, or start without those that do not belong here",
                        label.name
                    ),
                });
            }
            let known = self.state.members()[place as usize].state;
            let failed = self.lost.iter().any(|(lost, _)| *lost == place);
            let agreed = match label.members[place as usize].state {
                _ if known == MemberState::Removed => MemberState::Removed,
                MemberState::Active if failed || found.drive.is_none() => MemberState::Lost,
                MemberState::Active => known,
                state => state,
            };
            is_changed |= label.members[place as usize].state != agreed;
            if label.members[place as usize].state != agreed {
                set_state(label, place, agreed);
                if agreed != MemberState::Active {
                    label.lost_in.entry(place).or_insert(self.found.generation + MISSING_STEPS);
                }
            }
            // The label is written first.
            let path = &label.members[place as usize].path;
            if !path.is_empty() && *path != self.state.members()[place as usize].path {
                let path = path.clone();
                self.state.apply_all(&[MetaRecord::MemberMoved { member: place, path }])?;
            }
            if agreed == MemberState::Lost && known == MemberState::Active {
                self.state.apply_all(&[MetaRecord::MemberLost { member: place }])?;
            }
        }
        let serving = (0u32..)
            .zip(&self.found.members)
            .filter(|(place, found)| label.members[*place as usize].is_active() && found.drive.is_some());
        if serving.count() == 0 {
            let missing = names(label.members.iter().map(|member| &member.name));
            let (pool, active) = (label.name.clone(), label.members.len());
            return Err(PoolError::NoQuorum { pool, active, present: 0, missing });
        }
        Ok(is_changed)
    }

    /// Writes what opening has to write.
    async fn go_on(self, world: &World, on_loss: LossHook, is_changed: bool) -> Result<Metadata, PoolError> {
        let Opening { found, state, header, copies, pages, .. } = self;
        let serves = |place: usize| found.label.members[place].is_active();
        let drives = found.members.iter().enumerate();
        let drives = drives.map(|(place, member)| member.drive.clone().filter(|_| serves(place))).collect();
        let next_copy = found.members.iter().map(|member| member.next_copy).collect();
        let carriers = found.label.carriers.clone();
        let are_readmitted = found.members.iter().any(|member| member.is_readmitted);
        let complete = if is_changed { found.label.settled } else { found.generation };
        let generation = found.generation;
        let labels = Labels { generation, complete, label: found.label, next_copy };
        let core = Core::new(world, state, pages, labels, drives, true, on_loss);
        core.skip_allocations();
        // In today's format, whatever it was. The second says that the first is complete: an image of a drive from before
        // this opening is older than that.
        let steps = if is_changed { MISSING_STEPS } else { 1 };
        let first = generation + steps;
        core.publish_and_settle(steps, |label| label.starts.begin(world, first)).await?;
        core.publish_and_settle(1, |_| {}).await?;
        {
            let mut journal = core.journal.borrow_mut();
            journal.generation = header.generation;
            journal.id = header.journal;
            journal.carriers = carriers;
        }
        let holders = copies.complete(&core).await?;
        {
            let mut journal = core.journal.borrow_mut();
            (journal.complete, journal.holders) = (header.generation, holders);
        }
        core.roll_over().await?;
        if are_readmitted {
            // Who was believed again serves from now on.
            core.publish_and_settle(1, |label| {
                let serves: Vec<bool> = label.members.iter().map(crate::Member::is_active).collect();
                label.lost_in.retain(|place, _| !serves[*place as usize]);
            })
            .await?;
        }
        core.replenish_carriers();
        Ok(Metadata(core))
    }
}
