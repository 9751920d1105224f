//! The last resort: what can be assembled of a pool that no start opens, what may be lost then, and doing it.
//!
//! A start believes no drive that was lost and goes on without no write log. Here the administrator decides otherwise:
//! as few members as the RAID sets need are believed again with what they hold, the freshest ([`choice`]), and a write
//! log all copies of which are gone begins anew ([`log`]). What that may lose is listed by volume and address
//! ([`losses`]). Looking writes nothing. What a set does not need of a member that is believed again is made anew from
//! the others.

mod carry_out;
mod choice;
mod cut;
mod log;
mod losses;
mod plan;

use serde::Serialize;
use tier0_description::{Description, Mismatch};
use tier0_drive::DriveHandle;
use tier0_drive::guard::{Guard, Health, Patience};
use tier0_pool::metadata::{FoundPool, OtherDrive, Standing, Survey, survey_without};
use tier0_pool::{History, Member, PoolError};
use tier0_world::World;
use uuid::Uuid;

pub use losses::{ByteRange, VolumeLoss};
use plan::{Blank, Plan};

use super::assemble::named_drives;
use super::opening::Opening;
use super::{OpenOptions, in_real_world};
use crate::ArrayError;

/// What can be assembled of a pool, and what may be lost then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// The pool.
    pub pool: String,
    /// Why it cannot be assembled; none where it can.
    pub obstacle: Option<String>,
    /// Whether there is anything to decide: otherwise a start opens the pool.
    pub is_needed: bool,
    /// The generation of the pool's superblocks.
    pub generation: u64,
    /// Its drives, by place.
    pub drives: Vec<DriveRole>,
    /// What leaves drives of it out, as it was given: names and paths.
    #[serde(skip)]
    pub without: Vec<String>,
    /// What may be lost, by volume; those that lose nothing are listed too. Empty where the metadata cannot be read.
    pub volumes: Vec<VolumeLoss>,
    /// What else should be known, a sentence each.
    pub notes: Vec<String>,
}

/// A drive, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriveRole {
    /// Its name.
    pub name: String,
    /// Its part.
    pub role: Role,
    /// The generation of its own superblock, where it is there and is not believed by a start.
    pub generation: Option<u64>,
}

/// The part of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It is there and believed.
    Believed,
    /// It is there, was lost or put back to an older image, and is believed again.
    Readmitted,
    /// It is there, was lost, and is not needed.
    Stale,
    /// It is there, was put back to an older image, and is not needed.
    RolledBack,
    /// It is there, its front was overwritten, and it is not needed.
    Overwritten,
    /// It should serve and is not there.
    Missing,
    /// The administrator asks to do without it.
    LeftOut,
    /// It is lost and not there.
    Lost,
    /// It is there, and went on without the drives of the other history.
    OneHistory,
    /// It is there, and went on without the drives of the first history, or belongs to a copy of the array that was served
    /// elsewhere.
    OtherHistory,
    /// It left the pool.
    Left,
    /// It is blank and joins to hold the write log.
    Joins,
}

/// What the administrator asks for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    /// Drives that are not to be believed, by name or by path.
    without: &'a [String],
    accepts_loss: bool,
}

/// Looks at the pools of a description, or at one of them, and with `accepts_loss` assembles those that need it. Drives
/// that are named in `without` are taken for missing. No server may serve the array. Without `accepts_loss` nothing is
/// written.
///
/// # Errors
/// The drives cannot be looked at, or writing failed: a pool that was not assembled wholly can be assembled again.
pub fn recover(
    description: &Description,
    pool: Option<&str>,
    without: &[String],
    accepts_loss: bool,
) -> Result<Vec<Recovery>, ArrayError> {
    let opening = Opening::of(description, &OpenOptions { without: without.to_vec() })?;
    let (wanted, without) = (description.clone(), opening.without(description, without)?);
    let Opening { media, warnings, .. } = opening;
    let names: Vec<String> = description.pools.iter().map(|pool| pool.name.clone()).collect();
    let names: Vec<String> = names.into_iter().filter(|name| pool.is_none_or(|pool| pool == name)).collect();
    let mut recoveries = in_real_world(|world| async move {
        let drives = super::assemble::guarded(&world, &media)?;
        let path_of = |drive: &DriveHandle| std::path::PathBuf::from(&drive.info().name);
        let name_of = |drive: &DriveHandle| {
            let path = path_of(drive);
            let named = wanted.drives.iter().find(|named| named.path.as_ref() == Some(&path));
            named.map(|named| named.name.clone())
        };
        let rank = |found: &FoundPool| {
            let is_wanted = found.label.array == wanted.name && names.contains(&found.label.name);
            is_wanted.then(|| named_drives(found, &wanted))
        };
        let asked = Asked { without: &without, accepts_loss };
        let mut all = recover_found(&world, drives, name_of, asked, Uuid::new_v4, rank).await?;
        let is_absent = |name: &&String| !all.iter().any(|one| one.pool == **name);
        let absent: Vec<Recovery> = names.iter().filter(is_absent).map(|name| nowhere(name)).collect();
        all.extend(absent);
        Ok::<_, ArrayError>(all)
    })??;
    for one in &mut recoveries {
        one.notes.splice(0..0, warnings.iter().cloned());
    }
    Ok(recoveries)
}

impl ArrayError {
    /// Why drives cannot be looked at, for a caller that starts nothing: there is no consent to give.
    #[must_use]
    pub fn without_a_start(self) -> ArrayError {
        match self {
            ArrayError::LeftBehind { drive, path, moved } => {
                let fact = format!(
                    "is missing; a drive with its identity is at its last path {path:?}, but {moved} moved, \
                     so these may be copies, which must not touch the original; if it belongs to this array, \
                     name its path in the array file, otherwise disconnect or rename it"
                );
                ArrayError::Unusable { drive, fact }
            }
            ArrayError::NotOpened { drive, fact } => {
                let fact = format!(
                    "cannot be examined: {fact}; the drive may still be good: fix this, or remove the drive \
                     from the array file to give it up"
                );
                ArrayError::Unusable { drive, fact }
            }
            error => error,
        }
    }
}

/// A pool that is on no drive.
fn nowhere(name: &str) -> Recovery {
    Recovery {
        pool: name.to_owned(),
        obstacle: Some(Mismatch::NoPool { pool: name.to_owned() }.to_string()),
        is_needed: true,
        generation: 0,
        drives: Vec::new(),
        without: Vec::new(),
        volumes: Vec::new(),
        notes: Vec::new(),
    }
}

/// As [`recover`], for all pools on these drives, in their world.
///
/// # Errors
/// As [`recover`].
pub async fn recover_drives(
    world: &World,
    drives: Vec<DriveHandle>,
    without: &[String],
    accepts_loss: bool,
) -> Result<Vec<Recovery>, ArrayError> {
    let guard = |drive| Guard::new(drive, Patience::default(), Health::new()).handle();
    let mut random = world.random(0x1e);
    let id = || {
        let halves = [random.bits(), random.bits()];
        Uuid::from_u64_pair(halves[0], halves[1])
    };
    let name_of = |drive: &DriveHandle| Some(drive.info().name.clone());
    let asked = Asked { without, accepts_loss };
    recover_found(world, drives.into_iter().map(guard).collect(), name_of, asked, id, |_| Some(0)).await
}

/// As [`recover`], of the pools that have a rank; of several of one name, of the one with the highest.
async fn recover_found(
    world: &World,
    drives: Vec<DriveHandle>,
    name_of: impl Fn(&DriveHandle) -> Option<String>,
    asked: Asked<'_>,
    mut id: impl FnMut() -> Uuid,
    rank: impl Fn(&FoundPool) -> Option<usize>,
) -> Result<Vec<Recovery>, ArrayError> {
    let Survey { mut pools, others } = survey_without(drives, asked.without).await;
    let (mut blanks, mut notes) = (Vec::new(), Vec::new());
    for other in others {
        match other {
            OtherDrive::Blank(drive) => {
                blanks.extend(name_of(&drive).map(|name| Blank { name, drive }));
            }
            OtherDrive::Foreign(drive) => {
                notes.push(format!("drive {:?} holds data that is not tier0's", drive.info().name));
            }
            OtherDrive::Unreadable(_, error) => notes.push(error.to_string()),
        }
    }
    pools.retain(|found| rank(found).is_some());
    pools.sort_by(|one, other| {
        let by_name = one.label.name.cmp(&other.label.name);
        by_name.then(rank(other).cmp(&rank(one))).then(other.generation.cmp(&one.generation))
    });
    // Of several pools of one name the one counts whose drives the array file names, as at a start.
    pools.dedup_by(|older, newer| older.label.name == newer.label.name);
    let mut recoveries = Vec::new();
    for found in pools {
        let left_out = left_out(&found);
        let places: Vec<String> = found.places_done_without().cloned().collect();
        let mut plan = Plan::of(world, found, &blanks, &mut id).await?;
        plan.recovery.notes.splice(0..0, notes.iter().cloned());
        plan.recovery.drives = once_each(plan.recovery.drives);
        let is_left_out = |drive: &&mut DriveRole| left_out.contains(&drive.name);
        plan.recovery.drives.iter_mut().filter(is_left_out).for_each(|drive| drive.role = Role::LeftOut);
        let names = asked.without.iter().filter(|name| left_out.contains(name)).cloned();
        plan.recovery.without = names.chain(places).collect();
        recoveries.push(plan.recovery.clone());
        if asked.accepts_loss && plan.recovery.is_needed && plan.recovery.obstacle.is_none() {
            plan.carry_out(world).await?;
        }
    }
    Ok(recoveries)
}

/// Every drive once: one that was taken back, or whose name another one has by now, has old places in the pool.
fn once_each(drives: Vec<DriveRole>) -> Vec<DriveRole> {
    let is_old = |drive: &DriveRole| matches!(drive.role, Role::Left | Role::Lost);
    let is_now = |drive: &DriveRole| drives.iter().any(|other| other.name == drive.name && !is_old(other));
    let last = |drive: &DriveRole| drives.iter().rfind(|other| other.name == drive.name);
    let counts = |drive: &&DriveRole| match is_now(drive) {
        true => !is_old(drive),
        false => last(drive).is_some_and(|last| std::ptr::eq(last, *drive)),
    };
    drives.iter().filter(counts).cloned().collect()
}

/// The names of the members that are not believed because the administrator asks for that.
fn left_out(found: &FoundPool) -> Vec<String> {
    let unbelieved = found.members.iter().filter(|one| one.standing != Standing::Present);
    let left_out = unbelieved.filter(|one| found.is_done_without(&one.member));
    left_out.map(|one| one.member.name.clone()).collect()
}

/// The parts of a pool's drives, before the administrator decided anything.
fn roles(found: &FoundPool) -> Vec<DriveRole> {
    let unbelieved = found.unbelieved();
    // Neither of two histories is the right one.
    let history_of = |name: &str| {
        let Some(PoolError::Split { one, other, .. }) = &found.problem else { return None };
        let is_in = |history: &History| history.drives.iter().any(|drive| drive == name);
        match (is_in(one), is_in(other)) {
            (true, _) => Some(Role::OneHistory),
            (_, true) => Some(Role::OtherHistory),
            _ => None,
        }
    };
    let of = |(place, (member, standing)): (u32, (&Member, Standing))| DriveRole {
        name: member.name.clone(),
        role: match standing {
            _ if found.is_of_a_copy(place) => Role::OtherHistory,
            Standing::Present => history_of(&member.name).unwrap_or(Role::Believed),
            Standing::Missing => Role::Missing,
            Standing::Lost => Role::Lost,
            Standing::Stale => history_of(&member.name).unwrap_or(Role::Stale),
            Standing::RolledBack => Role::RolledBack,
            Standing::Overwritten => Role::Overwritten,
            Standing::Removed => Role::Left,
        },
        generation: unbelieved.iter().find(|one| one.place == place).map(|one| one.generation),
    };
    (0u32..).zip(found.members.iter().map(|one| (&one.member, one.standing))).map(of).collect()
}
