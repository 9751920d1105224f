//! Drives that were lost and answer again.
//!
//! Such a drive joins as a new member, because what it holds may be old. Its columns are rebuilt where they were: of what
//! the others cannot recover it may hold the only right copy. Columns that a spare has taken over stay there, unless pages were
//! lost by then: those are moved back, page by page past what lies there. Nothing else is put in these places as long
//! ([`tier0_pool::PoolState::returning`]). If it was lost while this array ran,
//! and is as it was left, the shards know which slots have changed since ([`tier0_integrity::SlotIo`]), and only those are
//! written.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use tier0_api::{EventKind, Subject};
use tier0_description::DriveDescription;
use tier0_drive::DriveHandle;
use tier0_pool::metadata::superblock::{self, Newest, Superblock};
use tier0_pool::{ChunkletAddress, MemberState, MetaRecord};
use tier0_units::SectorCount;
use tier0_world::IoError;

use super::{Membership, MembershipPool};
use crate::admin::AdminError;
use crate::context::Done;
use crate::membership::arrival::{Content, Origin};
use crate::membership::opener::NotOpened;
use crate::membership::original_array::PathSource;
use crate::pool::ALL_PLACES;
use crate::pool::Pool;
use crate::repair::placement::Placement;

impl Membership {
    /// Takes back a drive that was lost and answers again; its old place is forgotten. It lies at `path`, or where the array
    /// file has it, or where it was last. With `force` also one that went on by itself meanwhile: what it holds of that is
    /// lost.
    pub(crate) async fn rejoin_drive(
        self: &Rc<Self>,
        name: &str,
        path: Option<PathBuf>,
        in_file: Option<PathBuf>,
        force: bool,
    ) -> Done {
        let (number, place, state) = self.member_named(name)?;
        if state == MemberState::Active {
            return Err(AdminError::new(format!(
                "drive {name:?} is in service; there is nothing to take back"
            )));
        }
        let leaving = self.core(number).metadata.state().member(place).is_some_and(|lost| lost.leaving);
        if leaving {
            return Err(AdminError::new(format!(
                "drive {name:?} is being removed, and is forgotten when what it held is on the others; to take it back, keep it \
                 first (tier0 drive remove --stop), or add it as a new one afterwards (tier0 drive add --force)"
            )));
        }
        let opener = self.opener.as_ref().ok_or_else(|| AdminError::new("drives join as handles here"))?;
        let (id, remembered, sectors, group, class) = {
            let state = self.core(number).metadata.state();
            let lost = state.member(place).expect("it was found");
            (lost.id, lost.path.clone(), lost.sectors, lost.group, lost.class)
        };
        let named_in_file = in_file.clone();
        let (path, said) = match path {
            Some(path) => (path, PathSource::Administrator),
            None => match (opener.find(id).await, in_file) {
                // It may have been moved, and found at the start.
                (Some(found), Some(in_file)) if in_file == found => (found, PathSource::Administrator),
                (Some(found), _) => (found, PathSource::Superblocks),
                (None, Some(in_file)) if opener.gone(vec![in_file.clone()]).await.is_empty() => {
                    (in_file, PathSource::Administrator)
                }
                (None, _) => (remembered.into(), PathSource::Superblocks),
            },
        };
        if path.as_os_str().is_empty() {
            return Err(AdminError::new(format!(
                "it is not known where drive {name:?} lies; say so with --path"
            )));
        }
        let _turn = self.turn.acquire(1).await;
        let description = DriveDescription {
            name: name.to_owned(),
            path: Some(path.clone()),
            size: None,
            ram: None,
            model: None,
            class: Some(class),
        };
        let new = opener.open(description, true).await.map_err(|error| match error {
            NotOpened::Missing(_) => AdminError::new(format!(
                "drive {name:?} is not at {path:?}; put it back there, say with --path where it lies, or put another drive in \
                 its place (tier0 drive replace)"
            )),
            error => error.into(),
        })?;
        let (has, had) = (new.drive.info().sectors, SectorCount(sectors));
        if has < had {
            return Err(AdminError::new(format!(
                "drive {name:?} held {:#}, and {path:?} holds {:#}; give it its size back, or put another drive in its place (tier0 \
                 drive replace)",
                had.bytes(),
                has.bytes()
            )));
        }
        self.check_serves_nowhere(name, &new.drive).await?;
        self.check_is_no_original(number, (name, &path), &new, said).await?;
        let content = self.content_of(number, place, &new.drive).await;
        let content = content.map_err(|error| AdminError::failed(error.to_string()))?.ok_or_else(|| {
            AdminError::new(format!(
                "what lies at {path:?} is not drive {name:?} as it was lost, but another one, or an older copy of it; to use it \
                 in its place all the same, overwrite it under another name (tier0 drive replace ARRAY {name} --name NEW \
                 --path {path:?} --force)"
            ))
        })?;
        if !force && let Some(generation) = self.went_on_alone(number, &new.drive).await {
            return Err(AdminError::Held(format!(
                "drive {name:?} at {path:?} was served elsewhere without this array (generation {generation}), and what was \
                 acknowledged there is not here; look at it first where this array is not connected, or give that up and make \
                 the drive anew (--force)"
            )));
        }
        let elsewhere = named_in_file.filter(|named| *named != path).map_or(String::new(), |named| {
            format!("; it lies at {path:?}, and the array file says {named:?}: correct its path in the file")
        });
        let brought =
            self.bring_in((number, group), name, new, Origin::Returns { from: place, content }).await;
        self.repair.finish_rejoins(number).await?;
        self.repair.start_rebuilds(number);
        brought?;
        let pool = self.pools[number].name.clone();
        self.tell(Subject::drive(name), EventKind::DriveReturned { pool });
        Ok(match content {
            Content::Unchanged => {
                format!(
                    "drive {name} is back; what has changed since is rebuilt, as \"tier0 status\" shows{elsewhere}"
                )
            }
            Content::Unknown => {
                format!(
                    "drive {name} is back; all that it lacks is rebuilt, as \"tier0 status\" shows{elsewhere}"
                )
            }
        })
    }

    /// Takes back a drive that was lost under this name in a pool, answers again and has come as a handle: it joins as a new
    /// member, and what it lacks is rebuilt. One that is not the lost one joins as any other. `give_to_shards` makes it the
    /// member of that place in every shard, before anything is placed on it.
    ///
    /// # Errors
    /// It cannot join, or what it lacks cannot be rebuilt.
    pub(crate) async fn rejoin_handle(
        self: &Rc<Self>,
        pool: usize,
        name: &str,
        drive: DriveHandle,
        give_to_shards: impl FnOnce(usize, &DriveHandle),
    ) -> Result<(), AdminError> {
        let _turn = self.turn.acquire(1).await;
        let before = self.lost_member(pool, name);
        let content = match before {
            Some(place) => self.content_of(pool, place, &drive).await?,
            None => None,
        };
        let _rejoining = before.map(|place| self.core(pool).rejoins(place));
        let group = before.map_or(0, |place| self.group_of_member(pool, place));
        let member = self.admit_drive((pool, group), name, drive.clone(), before).await?;
        give_to_shards(member, &drive);
        if let (Some(place), Some(content)) = (before, content) {
            let returned = self.return_columns(pool, (place, content), member as u32).await;
            returned.map_err(|error| AdminError::failed(error.to_string()))?;
            self.pool(pool).set_leaving(place, true).await?;
        }
        self.member_joined(pool);
        Ok(())
    }

    /// The generation to which a drive went on by itself, if it did and that was not given up.
    async fn went_on_alone(&self, number: usize, drive: &DriveHandle) -> Option<u64> {
        let own = superblock::read(drive).await.ok()??.superblock;
        self.core(number).metadata.went_on_alone(&own).then_some(own.generation)
    }

    /// The place of the newest lost member of this name.
    fn lost_member(&self, number: usize, name: &str) -> Option<u32> {
        let state = self.core(number).metadata.state();
        let places = (0u32..).zip(state.members());
        let lost = places.filter(|(_, member)| member.name == name && member.state == MemberState::Lost);
        lost.map(|(place, _)| place).last()
    }

    /// The group of sets that a member is of.
    pub(crate) fn group_of_member(&self, number: usize, place: u32) -> u32 {
        self.core(number).metadata.state().member(place).map_or(0, |member| member.group)
    }

    /// How the drive of a lost member was left; `None` if this is another drive.
    async fn content_of(
        &self,
        number: usize,
        place: u32,
        drive: &DriveHandle,
    ) -> Result<Option<Content>, tier0_pool::PoolError> {
        let found = superblock::read(drive).await?;
        let metadata = &self.core(number).metadata;
        let state = metadata.state();
        let Some(lost) = state.member(place) else { return Ok(None) };
        let is_it = |own: &Superblock| {
            // A crash may have come after it got the superblock of its next identity, and before another drive knew.
            let is_known = state.members().iter().any(|member| member.id == own.member);
            let named = own.label.members.iter().find(|member| member.id == own.member);
            let has_begun = !is_known && named.is_some_and(|member| member.name == lost.name);
            own.label.pool == state.id() && (own.member == lost.id || has_begun)
        };
        let is_lost = |own: &Superblock| own.member == lost.id;
        let is_whole = !drive.was_cut() && !found.as_ref().is_some_and(Newest::is_front_lost);
        let own = found.map(|newest| newest.superblock).filter(is_it);
        let is_newest = |own: &Superblock| {
            metadata.last_written_to(place) == Some(own.generation) && metadata.is_of_this_start(own)
        };
        Ok(own.map(|own| match is_whole && is_lost(&own) && is_newest(&own) {
            true => Content::Unchanged,
            false => Content::Unknown,
        }))
    }

    /// Has the columns that a lost member had rebuilt at the same chunklets of another place, which is the same drive. Those
    /// that were rebuilt elsewhere while pages were lost are moved back, so that what only it holds is seen.
    pub(crate) async fn return_columns(
        &self,
        number: usize,
        (from, content): (u32, Content),
        to: u32,
    ) -> Result<(), IoError> {
        let core = self.core(number);
        let columns: Vec<(u32, u32, ChunkletAddress)> = {
            let state = core.metadata.state();
            state.returning(from).collect()
        };
        let is_as_it_was = content == Content::Unchanged;
        if is_as_it_was {
            self.repair.core(number).unverified.add(from);
        }
        let mut returned = 0;
        for (set, column, old) in columns {
            let _alone = core.column_places.acquire(ALL_PLACES).await;
            let target = ChunkletAddress { drive: to, index: old.index };
            let (record, was_nowhere_else) = {
                let state = core.metadata.state();
                // What a spare had of it by then was written there alone, and is known as changed nowhere.
                let was_nowhere_else =
                    state.column(set, column) == old && state.rebuild(set, column).is_none();
                (state.return_record((set, column), target), was_nowhere_else)
            };
            let Some(record) = record else { continue };
            let (index, place) = Pool::column(set, column);
            let placing = Placement::Column { set: index, column: place, to };
            let _under_way = self.repair.core(number).place(placing)?;
            let is_whole = matches!(record, MetaRecord::ColumnEvacuating { .. });
            if is_as_it_was && was_nowhere_else {
                self.repair.core(number).returned.borrow_mut().insert((set, column), target);
            }
            core.commit(vec![record]).await?;
            match is_whole {
                true => core.shape.sets.start_evacuation(index, place, target),
                false => core.shape.sets.start_rebuild(index, place, target),
            }
            returned += 1;
        }
        let drive = core.drive_name(to);
        tracing::info!(drive, columns = returned, is_as_it_was, "columns are rebuilt where they were");
        Ok(())
    }

    /// Has columns return that could not when their drive was taken back: a crash came, or they were being rebuilt or moved
    /// elsewhere.
    pub(crate) async fn resume_returns(&self, number: usize) -> Result<(), IoError> {
        for (from, to) in self.core(number).due_returns() {
            self.return_columns(number, (from, Content::Unknown), to).await?;
        }
        Ok(())
    }
}

impl MembershipPool {
    /// Until this is dropped, the drive of a lost member joins: not every shard has it yet.
    pub(crate) fn rejoins(&self, lost: u32) -> Rejoining<'_> {
        self.rejoining.set(Some(lost));
        Rejoining(&self.rejoining)
    }

    /// Lost members of which columns can return, each with the member that its drive is now.
    pub(crate) fn due_returns(&self) -> Vec<(u32, u32)> {
        let state = self.metadata.state();
        let is_due = |(from, to): &(u32, u32)| {
            let returns = |(set, column, old): (u32, u32, ChunkletAddress)| {
                let target = ChunkletAddress { drive: *to, index: old.index };
                state.return_record((set, column), target).is_some()
            };
            state.returning(*from).any(returns)
        };
        let joining = self.rejoining.get().and_then(|place| state.member(place)).map(|member| &*member.name);
        let members = state.members_by_place().filter(|(_, member)| Some(&*member.name) != joining);
        let members = members.map(|(place, _)| place);
        members.filter_map(|place| Some((place, state.serves_as(place)?))).filter(is_due).collect()
    }
}

/// The drive of a lost member joins.
pub(crate) struct Rejoining<'a>(&'a Cell<Option<u32>>);

impl Drop for Rejoining<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
