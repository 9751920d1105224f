//! Giving the write log its copies back after a drive that held one is lost, or is to leave; and bringing them back onto
//! the drives that the array file names for it, when those serve again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tier0_journal::COPIES_MAX;
use tier0_pool::{
    ChunkletAddress, DriveClass, DriveRole, LogCopy, LogPlacement, LogRing, Member, MemberState, MetaRecord,
    PoolState,
};
use tier0_units::{ByteCount, SECTOR_BYTES, counted, named};
use tier0_world::IoError;

use super::{Caches, CachesPool};
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::command::ShardCommand;
use crate::repair::placement::Placement;

impl Caches {
    /// Puts every copy of the log that lies on a drive that does not serve, or is to leave, onto another drive, as far as
    /// there is room: first the content, then the record that it counts. A copy that is whole is given up after that,
    /// where a ring may have one copy more. One that was given up for another that did not come to be is made again, where
    /// it was if need be. When all that is done, a copy that lies elsewhere than the array file says moves there, if a drive
    /// that it names serves and has room.
    ///
    /// # Errors
    /// When a copy could not be completed: it can be tried again.
    pub(crate) async fn restore_log(self: &Rc<Self>, number: usize) -> Result<(), IoError> {
        let core = self.core(number);
        loop {
            let planned = {
                let state = core.metadata.state();
                plan(
                    &state,
                    &self.repair.core(number).log_copies_given_up(),
                    &core.log_members_wanted(&state),
                )
            };
            let Some(Plan { placement, from, to, is_whole, rings_are_full }) = planned else { return Ok(()) };
            if is_whole && rings_are_full {
                self.repair.core(number).give_up_log_copy(from).await?;
                self.drop_log_copies(number, from as usize).await;
            }
            let member = to as usize;
            if let Err(error) = self.make_log_copy(number, placement, (from, to)).await {
                // A copy that does not count takes the place of one that could.
                self.drop_log_copies(number, member).await;
                return Err(error);
            }
            let confirmed =
                self.ask_all(|reply| ShardCommand::ConfirmLogCopy { pool: number, member, reply }).await;
            for confirmed in confirmed {
                confirmed.unwrap_or(Err(IoError::Gone))?;
            }
            if is_whole {
                self.drop_log_copies(number, from as usize).await;
            }
            self.repair.core(number).log_copy_counts(from, to);
            let (name, drive) = (&self.pools[number].name, core.drive_name(to));
            tracing::info!("pool {name:?}: drive {drive:?} has a copy of the write log");
        }
    }

    /// What the array file says of where logs are to lie.
    pub(crate) fn follow_log_drives(&self, named: &BTreeMap<String, Vec<String>>) {
        for pool in &self.by_pool {
            if let Some(drives) = named.get(&pool.name) {
                pool.log_drives.borrow_mut().clone_from(drives);
            }
        }
    }

    /// Has the write log move to the drives of these names, one copy after the other, while it is in use.
    ///
    /// # Errors
    /// It cannot lie there, and nothing moves.
    pub(crate) fn move_log(self: &Rc<Self>, pool: Option<&str>, drives: &[String]) -> Done {
        let number = self.pool_meant(pool)?;
        let (core, pool) = (self.core(number), &self.pools[number].name);
        {
            let state = core.metadata.state();
            let copies = state.log().rings.first().map_or(0, |ring| ring.copies.len());
            let different: BTreeSet<&String> = drives.iter().collect();
            if drives.len() != copies || different.len() != copies {
                return Err(AdminError::new(format!(
                    "the write log of pool {pool:?} has {}; name that many different drives",
                    counted(copies as u64, "drive")
                )));
            }
            for name in drives {
                check_takes_log(&state, pool, name)?;
            }
        }
        *core.log_drives.borrow_mut() = drives.to_vec();
        self.repair.start_rebuilds(number);
        Ok(format!(
            "moving the write log of pool {pool} to {}; \"tier0 status\" shows its progress; if the array file has \
             log_drives, change it too, or the log moves back at the next start",
            named("drive", drives)
        ))
    }

    /// A copy of the log on a drive that is never believed again must not be the one a ring lives on.
    pub(crate) async fn drop_log_copies(&self, pool: usize, member: usize) {
        if self.upkeep.get() {
            self.ask_all(|reply| ShardCommand::DropLogCopies { pool, member, reply }).await;
        }
    }

    /// Has every shard make a copy of its ring on a drive equal to the others, and then the metadata name them.
    async fn make_log_copy(
        self: &Rc<Self>,
        number: usize,
        placement: LogPlacement,
        (from, to): (u32, u32),
    ) -> Result<(), IoError> {
        let _under_way = self.repair.core(number).place(Placement::LogCopy { from, to })?;
        let copy_of = |ring: &LogRing| ring.copies.iter().find(|copy| copy.member == to).copied();
        let places: Vec<LogCopy> =
            placement.rings.iter().map(|ring| copy_of(ring).expect("it was planned")).collect();
        let command = |reply| ShardCommand::AddLogCopy { pool: number, places: places.clone(), reply };
        for added in self.ask_all(command).await {
            added.unwrap_or(Err(IoError::Gone))?;
        }
        let core = self.core(number);
        let role = core.role_beside_log(to);
        core.commit(role.into_iter().chain([MetaRecord::LogPlaced(placement)]).collect()).await
    }
}

/// Whether a copy of the log lies on the drive of this name, or could.
fn check_takes_log(state: &PoolState, pool: &str, name: &str) -> Result<(), AdminError> {
    let mut known = state.members_by_place().filter(|(_, member)| member.name == name && member.takes_more());
    let Some((place, _)) = known.next() else {
        return Err(AdminError::new(format!(
            "pool {pool:?} has no drive {name:?} that is online and not being removed; \"tier0 status\" \
             lists its drives"
        )));
    };
    let chunklets = chunklets_of_a_copy(state);
    let holds = state.log().copies().any(|copy| copy.member == place);
    if holds || state.free_run(place, chunklets).is_some() {
        return Ok(());
    }
    Err(AdminError::new(format!(
        "drive {name:?} lacks the {:#} of contiguous free space for a copy of the write log of pool {pool:?}; \
         name another drive, or add one (tier0 drive add)",
        ByteCount(chunklets * state.geometry().chunklet_sectors * SECTOR_BYTES)
    )))
}

impl CachesPool {
    /// The members whose drives are to hold the log, as far as the pool has them.
    pub(crate) fn log_members_wanted(&self, state: &PoolState) -> BTreeSet<u32> {
        let wanted = self.log_drives.borrow();
        let is_wanted =
            |member: &Member| member.state != MemberState::Removed && wanted.contains(&member.name);
        (0u32..).zip(state.members()).filter(|(_, one)| is_wanted(one)).map(|(place, _)| place).collect()
    }

    /// The record by which a drive stays one of data that gets a copy of the log for which it was not given: its use would say
    /// otherwise as long as it has no columns.
    fn role_beside_log(&self, member: u32) -> Option<MetaRecord> {
        let state = self.metadata.state();
        let is_by_use = state.member(member).is_some_and(|known| known.role == DriveRole::ByUse);
        let is_wanted = self.log_members_wanted(&state).contains(&member);
        let stays = is_by_use && !is_wanted && state.is_for_data(member);
        stays.then_some(MetaRecord::MemberRole { member, role: DriveRole::Data })
    }

    /// A new drive takes the place of another, also as a drive of the log.
    pub(crate) fn replace_log_drive(&self, old: &str, new: &str) {
        let mut wanted = self.log_drives.borrow_mut();
        wanted.iter_mut().filter(|drive| *drive == old).for_each(|drive| new.clone_into(drive));
    }
}

/// A copy of all rings that moves.
struct Plan {
    placement: LogPlacement,
    /// The member that has it.
    from: u32,
    /// The member that will have it.
    to: u32,
    /// The copy that is there goes on counting until the new one does.
    is_whole: bool,
    /// No ring can have one copy more.
    rings_are_full: bool,
}

/// The first copy that lies on a drive that does not serve, or else one that was given up, or else one on a drive that is
/// to leave, or else one on a drive that is not `wanted` where another one is, and where it could go; `None` if all is
/// well or there is no room.
fn plan(state: &PoolState, given_up: &BTreeSet<u32>, wanted: &BTreeSet<u32>) -> Option<Plan> {
    let ring = state.log().rings.first()?;
    let holders = || ring.copies.iter().map(|copy| copy.member);
    let leaves = |member: &u32| state.member(*member).is_some_and(|member| member.leaving);
    let lost = || holders().find(|member| !state.is_active(*member));
    let lacking = || holders().find(|member| given_up.contains(member));
    let place = place_for(state, None, wanted);
    let is_better = place.is_some_and(|start| wanted.contains(&start.drive));
    let astray = || holders().find(|member| is_better && !wanted.contains(member));
    let from = lost().or_else(lacking).or_else(|| holders().find(leaves)).or_else(astray)?;
    let is_whole = state.is_active(from) && !given_up.contains(&from);
    let sectors = ring.copies.first()?.sectors;
    let Some(start) = place else {
        // Only the place where it was is left, and no ring reads what lies there.
        let stays = state.member(from).is_some_and(|member| member.takes_more() && !is_whole);
        let again =
            || Plan { placement: state.log().clone(), from, to: from, is_whole, rings_are_full: false };
        return stays.then(again);
    };
    let mut placement = state.log().clone();
    for (number, ring) in (0u64..).zip(&mut placement.rings) {
        let first_sector = state.geometry().chunklet_start(start) + number * sectors;
        let copy = ring.copies.iter_mut().find(|copy| copy.member == from)?;
        *copy = LogCopy { member: start.drive, first_sector, sectors };
    }
    let rings_are_full = ring.copies.len() >= COPIES_MAX;
    Some(Plan { placement, from, to: start.drive, is_whole, rings_are_full })
}

/// Where one more copy of all rings could go, on a drive that has none; the best is one that is `wanted`.
fn place_for(state: &PoolState, but: Option<u32>, wanted: &BTreeSet<u32>) -> Option<ChunkletAddress> {
    let chunklets = chunklets_of_a_copy(state);
    let holds = |member: u32| state.log().copies().any(|other| other.member == member);
    let usable =
        |(place, member): &(u32, &Member)| member.takes_more() && !holds(*place) && but != Some(*place);
    let mut candidates: Vec<u32> =
        (0u32..).zip(state.members()).filter(usable).map(|(place, _)| place).collect();
    candidates.sort_by_key(|place| {
        let class = state.member(*place).map(|member| member.class);
        (!wanted.contains(place), class, std::cmp::Reverse(state.free_chunklets(*place)))
    });
    candidates.into_iter().find_map(|member| state.free_run(member, chunklets))
}

/// Whether one more copy of the log could go somewhere.
pub(crate) fn has_room_for_copy(state: &PoolState) -> bool {
    place_for(state, None, &BTreeSet::new()).is_some()
}

fn chunklets_of_a_copy(state: &PoolState) -> u64 {
    let rings = &state.log().rings;
    let sectors = rings.first().and_then(|ring| ring.copies.first()).map_or(0, |copy| copy.sectors);
    (sectors * rings.len() as u64).div_ceil(state.geometry().chunklet_sectors)
}

/// That a copy of the log that a member of flash has goes to a disk when the member leaves, and to which; `None` if it does
/// not.
pub(crate) fn goes_to_disk(state: &PoolState, member: u32, wanted: &BTreeSet<u32>) -> Option<String> {
    let is_flash = |member: u32| state.member(member).is_some_and(|known| known.class == DriveClass::Flash);
    let has_one = state.log().copies().any(|copy| copy.member == member);
    let to = place_for(state, Some(member), wanted).filter(|_| has_one && is_flash(member))?.drive;
    let name = state.member(to).map_or("", |known| known.name.as_str());
    (!is_flash(to)).then(|| {
        format!(
            "its copy of the write log goes to drive {name}, a disk, so durable writes become slower: add a flash drive and \
             move it there (tier0 drive add --class flash, then tier0 pool log)"
        )
    })
}

/// How many chunklets side by side lack for the copy of the log that a member has, if it is to leave.
pub(crate) fn chunklets_homeless(state: &PoolState, member: u32) -> u64 {
    let has_one = state.log().copies().any(|copy| copy.member == member);
    if has_one && place_for(state, Some(member), &BTreeSet::new()).is_none() {
        chunklets_of_a_copy(state)
    } else {
        0
    }
}
