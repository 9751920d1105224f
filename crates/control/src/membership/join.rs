//! Drives that join while the array runs: one more, or one that takes the place of another.

use std::path::Path;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_api::{EventKind, Subject};
use tier0_description::names::quoted;
use tier0_description::{DriveDescription, is_name};
use tier0_drive::DriveHandle;
use tier0_plan::members_max;
use tier0_pool::metadata::superblock;
use tier0_pool::{DriveClass, Member, MemberState, MetaRecord, PoolError, foreign};
use tier0_units::{ByteCount, Nanos, SECTOR_BYTES};
use uuid::Uuid;

use super::Membership;
use crate::admin::{AdminError, drive_class};
use crate::context::Done;
use crate::membership::arrival::{NewPlace, Origin};
use crate::membership::departed::departed_from;
use crate::membership::opener::{NewDrive, NotOpened};
use crate::membership::removal::lacking;
use crate::message::command::ShardCommand;
use crate::pool::ALL_PLACES;
use crate::pool::{can_return, not_written};
use crate::repair::guard_arbiter::MemberArbiter;

/// How long a drive that joins may take to have what another program left on it erased: 20 MiB at most.
const ERASE_LIMIT: Nanos = Nanos::from_secs(30);

/// What a member to be is made of beside its drive.
#[derive(Clone, Copy)]
pub(super) struct Joining<'a> {
    pub(super) name: &'a str,
    pub(super) new: Option<&'a NewDrive>,
    /// The member that it was, or replaces.
    pub(super) before: Option<u32>,
}

/// What a drive is to lie on belongs to one that serves.
fn serves_already(new: &str, serving: &str, pool: &str) -> AdminError {
    AdminError::new(format!(
        "what drive {new:?} is to lie on is drive {serving:?} of pool {pool:?}, which serves, or a copy of it; name another \
         file or device"
    ))
}

impl Membership {
    pub(crate) async fn add_drive(
        self: &Rc<Self>,
        pool: Option<&str>,
        group: Option<&str>,
        place: NewPlace,
    ) -> Done {
        let number = self.pool_meant(pool)?;
        let (name, path) = (place.name.clone(), place.path.clone());
        let group = self.group_meant(number, group)?;
        self.join(number, group, place, None).await?;
        let pool = &self.pools[number].name;
        Ok(format!(
            "drive {name} is in pool {pool}: its chunklets are spares; \"tier0 pool grow\" makes space of them. The \
             next start finds it at {path:?} without a change of the array file"
        ))
    }

    /// The group of a pool's sets that an administrator means: the named one, or the only one.
    fn group_meant(&self, number: usize, group: Option<&str>) -> Result<u32, AdminError> {
        let state = self.core(number).metadata.state();
        let pool = &self.pools[number].name;
        let known = || quoted(state.group_names());
        match group {
            None if state.groups_there().count() == 1 => Ok(state.default_group()),
            None => Err(AdminError::new(format!(
                "pool {pool:?} has the groups {}; choose one with --group",
                known()
            ))),
            Some(name) if !state.has_groups() => {
                Err(AdminError::new(format!("pool {pool:?} has no named groups; omit --group {name}")))
            }
            Some(name) => match state.group_named(name) {
                Some(group) if state.group_stays(group) => Ok(group),
                Some(_) => Err(AdminError::new(format!(
                    "group {name:?} is leaving pool {pool:?}; use another group, or let it stay (tier0 pool remove-group {name} \
                     --cancel)"
                ))),
                None => {
                    Err(AdminError::new(format!("pool {pool:?} has no group {name:?}; it has {}", known())))
                }
            },
        }
    }

    /// Opens a drive and makes it a member in the metadata and in every shard, for a group of sets. If it is to take the
    /// place of a member that serves, there must be room for all that this one holds.
    pub(crate) async fn join(
        self: &Rc<Self>,
        number: usize,
        group: u32,
        place: NewPlace,
        instead_of: Option<u32>,
    ) -> Result<(), AdminError> {
        let _turn = self.turn.acquire(1).await;
        let new = self.open_new(number, &place).await?;
        match instead_of {
            Some(leaving) => self.check_room_with(number, leaving, &place.name, &new)?,
            None => {
                let joining = Joining { name: &place.name, new: Some(&new), before: None };
                let member = self.new_member((number, group), joining, &new.drive, Uuid::max());
                let state = self.core(number).metadata.state();
                state.check_member_leaves_room(&member)?;
            }
        }
        let own = new.class;
        let other = self.member_of_another_class(number, group, instead_of, own);
        let origin = instead_of.map_or(Origin::New, |replaced| Origin::Replaces { replaced });
        self.bring_in((number, group), &place.name, new, origin).await?;
        if let (Some((other, class)), Some(own)) = (other, own) {
            let (class, other_class) = (drive_class(own), drive_class(class));
            let kind = EventKind::DriveClassDiffers { class, other, other_class };
            self.tell(Subject::drive(&place.name), kind);
        }
        Ok(())
    }

    /// Opens a drive that is to join a pool, and could. What was made for it goes when this is dropped.
    pub(super) async fn open_new(&self, number: usize, place: &NewPlace) -> Result<NewDrive, AdminError> {
        let opener = self.opener.as_ref().ok_or_else(|| AdminError::new("drives join as handles here"))?;
        if !is_name(&place.name) {
            return Err(AdminError::new(format!(
                "{:?} is no name; use 1 to 64 letters, digits, '-', '_' or '.'",
                place.name
            )));
        }
        self.check_is_nobodys(place)?;
        // Verbs name a drive and no pool.
        if let Ok((number, place, state)) = self.member_named(&place.name) {
            return Err(self.name_is_taken(number, place, state));
        }
        let description = DriveDescription {
            name: place.name.clone(),
            path: Some(place.path.clone()),
            size: place.size,
            ram: None,
            model: None,
            class: place.class,
        };
        let opened = opener.open(description, place.force).await;
        let new = opened.map_err(|error| self.not_opened(number, place, error))?;
        self.check_serves_nowhere(&place.name, &new.drive).await?;
        Ok(new)
    }

    /// The drive whose place a new one takes, or the first of its group, where that is of another class than the device says
    /// that the new one is.
    fn member_of_another_class(
        &self,
        number: usize,
        group: u32,
        instead_of: Option<u32>,
        class: Option<DriveClass>,
    ) -> Option<(String, DriveClass)> {
        let state = self.core(number).metadata.state();
        let other = match instead_of {
            Some(leaving) => state.member(leaving),
            None => state.members().iter().find(|member| member.is_active() && member.group == group),
        };
        let other = other.filter(|other| class.is_some_and(|class| class != other.class))?;
        Some((other.name.clone(), other.class))
    }

    /// A drive has this name, and when another one can have it. A drive that joins under the name of a lost one is taken for
    /// that one, so a name is free when its drive is forgotten.
    fn name_is_taken(&self, number: usize, place: u32, state: MemberState) -> AdminError {
        let name = self.core(number).drive_name(place);
        let leaves = self.core(number).metadata.state().member(place).is_some_and(|known| known.leaving);
        AdminError::new(match (state, leaves) {
            (MemberState::Active, true) => format!(
                "drive {name:?} is leaving, and its name is free when what it holds is copied and it is forgotten (tier0 status); \
                 wait for that, or use another name"
            ),
            (MemberState::Lost, true) => format!(
                "drive {name:?} is lost and being removed, and its name is free when what it held is rebuilt and it is forgotten \
                 (tier0 status); wait for that, or use another name"
            ),
            (MemberState::Lost, false) => format!(
                "drive {name:?} is lost, and its name is free when it is forgotten; use another name, or remove it (tier0 drive \
                 remove ARRAY {name}), which forgets it as soon as what it held is rebuilt"
            ),
            (MemberState::Active | MemberState::Removed, _) => {
                format!("there is a drive {name:?} already; use another name")
            }
        })
    }

    /// Why a drive that is to join cannot be opened.
    fn not_opened(&self, number: usize, place: &NewPlace, error: NotOpened) -> AdminError {
        let known = match &error {
            NotOpened::Missing(_) if place.size.is_none() => {
                return AdminError::new(format!(
                    "there is nothing at {:?}; correct the path, or add --size to have a file made there for drive {:?}",
                    place.path, place.name
                ));
            }
            NotOpened::HeldHere { member, .. } => self.known_as(&place.name, *member),
            NotOpened::Foreign(_) => {
                self.is_no_drive(number, place).or_else(|| self.had_departed(&place.path))
            }
            NotOpened::Missing(_) | NotOpened::Other(_) => None,
        };
        known.unwrap_or_else(|| error.into())
    }

    /// Which drive of the array it is that another one is to lie on, and what can be done with it: nothing where it serves,
    /// and one that has left cannot be taken back.
    fn known_as(&self, new: &str, id: Uuid) -> Option<AdminError> {
        self.pools.iter().find_map(|pool| {
            let state = pool.metadata.state();
            let (place, member) = (0u32..).zip(state.members()).find(|(_, member)| member.id == id)?;
            let (name, pool) = (&member.name, &pool.name);
            if member.is_active() {
                return Some(serves_already(new, name, pool));
            }
            can_return(&state, place).then(|| {
                AdminError::Held(format!(
                    "what drive {new:?} is to lie on is drive {name:?} of pool {pool:?}, which is lost, and the server still \
                     holds it; take it back (tier0 drive rejoin), or use it as a blank one (--force)"
                ))
            })
        })
    }

    /// A file that holds something and could be no drive of the pool, so that it must not be overwritten for one. It has just
    /// been opened.
    fn is_no_drive(&self, number: usize, place: &NewPlace) -> Option<AdminError> {
        let bytes = std::fs::metadata(&place.path).ok().filter(|about| about.is_file())?.len();
        let least = {
            let state = self.core(number).metadata.state();
            let geometry = state.geometry();
            (geometry.area.data_start_sectors + geometry.chunklet_sectors) * SECTOR_BYTES
        };
        (bytes < least || !bytes.is_multiple_of(SECTOR_BYTES)).then(|| {
            AdminError::new(format!(
                "{:?} is no drive: it is a file of {bytes} bytes, and a drive of pool {:?} has whole sectors and at least {:#}; \
                 name another file or device",
                place.path,
                self.pools[number].name,
                ByteCount(least)
            ))
        })
    }

    /// What lies at a path and is not tier0's was a drive of this array there, which has left, if there was one.
    fn had_departed(&self, path: &Path) -> Option<AdminError> {
        self.pools.iter().find_map(|pool| {
            let state = pool.metadata.state();
            let member = departed_from(&state, path)?;
            Some(AdminError::Held(format!(
                "{path:?} is where drive {:?} lay until it left pool {:?}, and what it holds the array does not need; add \
                 --force to overwrite it",
                member.name, pool.name
            )))
        })
    }

    /// Whether a member could be emptied if this drive were in the pool. It is not yet.
    fn check_room_with(
        &self,
        number: usize,
        leaving: u32,
        name: &str,
        new: &NewDrive,
    ) -> Result<(), AdminError> {
        let drive = &new.drive;
        let mut state = self.core(number).metadata.state().clone();
        if !state.is_active(leaving) {
            return Ok(());
        }
        let group = state.member(leaving).map_or(0, |member| member.group);
        let joining = Joining { name, new: Some(new), before: Some(leaving) };
        let joined = self.new_member((number, group), joining, drive, Uuid::max());
        state.apply_all(&[MetaRecord::MemberAdded(joined)])?;
        let Some(lacking) = lacking(&state, leaving) else { return Ok(()) };
        Err(AdminError::new(format!(
            "drive {name:?} of {:#} cannot take the place of {:?} of {:#}: {lacking}; name a larger one, or add another one \
             first (tier0 drive add)",
            drive.info().sectors.bytes(),
            self.core(number).drive_name(leaving),
            ByteCount(state.member(leaving).map_or(0, |old| old.sectors) * SECTOR_BYTES),
        )))
    }

    /// A member to be of a pool and group, on this drive; of the class of the group's others if nothing tells its own, and for
    /// what the one is for that it was or replaces.
    pub(super) fn new_member(
        &self,
        (number, group): (usize, u32),
        joining: Joining<'_>,
        drive: &DriveHandle,
        id: Uuid,
    ) -> Member {
        let Joining { name, new, before } = joining;
        let state = self.core(number).metadata.state();
        let path = new.and_then(|new| new.medium.path());
        let namesake = state.members().iter().find(|member| member.group == group);
        Member {
            id,
            name: name.to_owned(),
            sectors: drive.info().sectors.0,
            class: new
                .and_then(|new| new.class)
                .or_else(|| namesake.map(|member| member.class))
                .unwrap_or(DriveClass::Disk),
            state: MemberState::Active,
            leaving: false,
            role: before
                .and_then(|before| state.member(before))
                .map(|before| before.role)
                .unwrap_or_default(),
            group,
            path: path.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_default(),
        }
    }

    /// What is to join is no member that serves, reached in another way: a device on its file, another name of its device.
    pub(crate) async fn check_serves_nowhere(
        &self,
        name: &str,
        drive: &DriveHandle,
    ) -> Result<(), AdminError> {
        let own = match superblock::read(drive).await {
            Ok(Some(found)) => found.superblock,
            // A drive that cannot be read may be a member: it must not be erased.
            Err(error @ PoolError::Drive { .. }) => return Err(AdminError::failed(error.to_string())),
            // What has no superblock of this program is no member.
            Ok(None) | Err(_) => return Ok(()),
        };
        for number in self.pools_meant(None)? {
            let state = self.core(number).metadata.state();
            let is_it = |member: &&Member| member.id == own.member && member.is_active();
            if let Some(member) = state.members().iter().find(is_it) {
                return Err(serves_already(name, &member.name, &self.pools[number].name));
            }
        }
        Ok(())
    }

    /// A path at which a drive of the array serves cannot be another drive's.
    fn check_is_nobodys(&self, place: &NewPlace) -> Result<(), AdminError> {
        for number in self.pools_meant(None)? {
            let state = self.core(number).metadata.state();
            let is_it = |member: &&Member| member.is_active() && Path::new(&member.path) == place.path;
            if let Some(member) = state.members().iter().find(is_it) {
                return Err(AdminError::new(format!(
                    "{:?} is drive {:?} of pool {:?} already; name another file or device",
                    place.path, member.name, self.pools[number].name
                )));
            }
        }
        Ok(())
    }

    /// Makes an open drive a member in the metadata and in every shard. If it is as a lost member left it, that one's
    /// columns are rebuilt where they were.
    pub(crate) async fn bring_in(
        self: &Rc<Self>,
        (number, group): (usize, u32),
        name: &str,
        new: NewDrive,
        origin: Origin,
    ) -> Result<(), AdminError> {
        let joining = Joining { name, new: Some(&new), before: origin.before() };
        let candidate = self.candidate((number, group), joining, &new.drive)?;
        if origin.returns().is_none() {
            self.erase_foreign(name, &new.drive).await?;
            let discarded = foreign::discard(&new.drive).await;
            discarded.map_err(|error| AdminError::failed(error.to_string()))?;
        }
        let NewDrive { drive, mut medium, class: _ } = new;
        // The record is on its way from here on, and may arrive although the caller has stopped waiting.
        medium.keep();
        let _rejoining = origin.returns().map(|from| self.core(number).rejoins(from));
        let member = self.admit(number, candidate, drive).await?;
        medium.hold();
        let order = |reply| {
            let control = self.post.clone();
            ShardCommand::Join { pool: number, member, source: medium.source(), control, reply }
        };
        let joined = self.ask_all(order).await.into_iter();
        let joined = joined.map(|result| result.unwrap_or_else(|| Err("the shard has ended".to_owned())));
        if let Err(fact) = joined.collect::<Result<(), String>>() {
            // A member that a shard cannot use must not be given anything.
            self.take_out(number, member as u32).await;
            return Err(AdminError::failed(format!("drive {:?} cannot be used: {fact}", name)));
        }
        match origin {
            Origin::New => {}
            Origin::Replaces { replaced } => self.record_replaced(number, replaced, member as u32).await?,
            Origin::Returns { from, content } => {
                let returned = self.return_columns(number, (from, content), member as u32).await;
                returned.map_err(|error| AdminError::failed(error.to_string()))?;
            }
        }
        self.member_joined(number);
        Ok(())
    }

    /// Makes a drive that has come as a handle a member of a group of a pool. `give_to_shards` makes it the member of that
    /// place in every shard, before anything is placed on it.
    ///
    /// # Errors
    /// The pool does not take it, or its metadata cannot be written.
    pub(crate) async fn join_handle(
        self: &Rc<Self>,
        (pool, group): (usize, u32),
        name: &str,
        drive: DriveHandle,
        give_to_shards: impl FnOnce(usize, &DriveHandle),
    ) -> Result<(), AdminError> {
        let _turn = self.turn.acquire(1).await;
        let member = self.admit_drive((pool, group), name, drive.clone(), None).await?;
        give_to_shards(member, &drive);
        self.member_joined(pool);
        Ok(())
    }

    /// A drive that has come as a handle takes the place of the drive of another name, from which everything is copied first
    /// where it serves. `give_to_shards` makes it the member of that place in every shard, before anything is placed on it.
    ///
    /// # Errors
    /// The pool does not take it, there is no such drive, or the metadata cannot be written.
    pub(crate) async fn replace_handle(
        self: &Rc<Self>,
        old: &str,
        name: &str,
        drive: DriveHandle,
        give_to_shards: impl FnOnce(usize, usize, &DriveHandle),
    ) -> Result<(), AdminError> {
        let (pool, replaced, _) = self.member_named(old)?;
        {
            let _turn = self.turn.acquire(1).await;
            let group = self.group_of_member(pool, replaced);
            let member = self.admit_drive((pool, group), name, drive.clone(), Some(replaced)).await?;
            give_to_shards(pool, member, &drive);
            self.record_replaced(pool, replaced, member as u32).await?;
            self.member_joined(pool);
        }
        self.retire(pool, (old, replaced), name).await.map(|_| ())
    }

    /// Records that a member takes the place of another one: the columns of that one belong to it, and that one leaves, if
    /// nothing stands against that. Both are one transaction: after a crash the columns of a drive that stayed would go to
    /// the other one.
    async fn record_replaced(&self, number: usize, replaced: u32, by: u32) -> Result<(), AdminError> {
        let core = self.core(number);
        self.caches.core(number).replace_log_drive(&core.drive_name(replaced), &core.drive_name(by));
        // A task that has chosen a chunklet of it has recorded that by then.
        let _alone = core.column_places.acquire(ALL_PLACES).await;
        // Of another one that was replaced before, its successor may have been lost and forgotten meanwhile.
        let record = MetaRecord::MemberReplaced { member: replaced, by };
        let could_be = core.metadata.state().check(&record).is_ok();
        if !could_be {
            return Ok(());
        }
        let leaves = {
            let state = core.metadata.state();
            let has_room = !state.is_active(replaced) || lacking(&state, replaced).is_none();
            has_room && !core.may_be_needed(replaced)
        };
        let leaving = leaves.then_some(MetaRecord::MemberLeaving { member: replaced, leaving: true });
        core.commit([record].into_iter().chain(leaving).collect()).await.map_err(not_written)
    }

    /// Makes a drive a member of a pool, for what the member `before` it is for, if there is one; its place. Every shard must
    /// get it before [`Membership::member_joined`].
    pub(crate) async fn admit_drive(
        &self,
        (number, group): (usize, u32),
        name: &str,
        drive: DriveHandle,
        before: Option<u32>,
    ) -> Result<usize, AdminError> {
        let candidate = self.candidate((number, group), Joining { name, new: None, before }, &drive)?;
        self.admit(number, candidate, drive).await
    }

    /// The member that a drive would be.
    ///
    /// # Errors
    /// The pool does not take it, and nothing was written.
    fn candidate(
        &self,
        (number, group): (usize, u32),
        joining: Joining<'_>,
        drive: &DriveHandle,
    ) -> Result<Member, AdminError> {
        let name = joining.name;
        let state = self.core(number).metadata.state();
        if state.members().len() >= self.pools[number].lost.room() {
            return Err(AdminError::new(format!(
                "drive {name:?} cannot join: {} drives have joined since the array was started, and it has room for no more; \
                 start it again",
                members_max(0)
            )));
        }
        let member = self.new_member((number, group), joining, drive, self.new_id());
        state.check(&MetaRecord::MemberAdded(member.clone()))?;
        Ok(member)
    }

    /// Erases what another program or pool left on a drive, which the administrator lets the pool have. All checks come before.
    async fn erase_foreign(&self, name: &str, drive: &DriveHandle) -> Result<(), AdminError> {
        match select(pin!(foreign::erase(drive)), pin!(self.world.sleep(ERASE_LIMIT))).await {
            Either::Left((erased, _)) => erased.map_err(|error| AdminError::failed(error.to_string())),
            Either::Right(_) => Err(AdminError::failed(format!(
                "drive {name:?} was not erased within {} s, and did not join; look at what the system says of it, and try again",
                ERASE_LIMIT.0 / Nanos::from_secs(1).0
            ))),
        }
    }

    async fn admit(&self, number: usize, candidate: Member, drive: DriveHandle) -> Result<usize, AdminError> {
        let core = self.core(number);
        let member = core.metadata.add_member(drive.clone(), candidate).await?;
        MemberArbiter::appoint(&drive, number, member as usize, &self.post);
        core.pauses.watch(member, &drive);
        Ok(member as usize)
    }

    /// A drive has joined a pool in every shard: what waits for a spare gets one, and the flash cache its part.
    pub(crate) fn member_joined(self: &Rc<Self>, number: usize) {
        self.repair.start_rebuilds(number);
        self.caches.restore_flash_cache(number);
    }
}
