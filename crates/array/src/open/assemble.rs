//! Finding an array again: open what might be its drives, read who they are, check everything. Nothing is written here;
//! the shards open what was found ([`crate::real`]).

use std::path::Path;
use std::sync::Arc;

use tier0_control::{Witness, departed_from};
use tier0_description::facts::PoolFacts;
use tier0_description::names::{drives, quoted};
use tier0_description::{
    Description, DriveDescription, KnownGroups, Mismatch, PoolDescription, VolumeDescription, not_created,
    not_in_file, size_differs,
};
use tier0_drive::DriveHandle;
use tier0_drive::guard::{Guard, Health, Patience};
use tier0_plan::{check_fits, new_volume, placement_of, roles_of, switches_of};
use tier0_pool::metadata::{FoundPool, OtherDrive, Standing, Survey, survey_without};
use tier0_pool::{Member, MetaRecord, PoolError, PoolState, SetGroup};
use tier0_units::SectorCount;
use tier0_world::World;
use uuid::Uuid;

use super::consent::Consents;
use super::cores::{cores_of, kept_text};
use super::create::memory_among_others;
use super::examine::{examine, prove_log};
use super::missing::{AtHand, is_named};
use super::opening::Opening;
use super::{Kind, Medium, OpenArray, OpenOptions, OpenPool, ToOpen, create, in_real_world};
use crate::ArrayError;
use crate::open::CreateOptions;
use crate::repartition::why_kept;

/// Finds the array of `description`. Pools on RAM drives, which remember nothing, are created anew. Volumes of the
/// description that a pool does not have yet are created when it runs; volumes it has are served whether described or
/// not. Nothing is written.
///
/// # Errors
/// Why it would not run.
pub fn open(description: &Description, options: &OpenOptions) -> Result<OpenArray, ArrayError> {
    if is_memory(description) {
        return create(description, CreateOptions::default());
    }
    check_no_memory(description)?;
    let Finding { media, found, consents } = find(description, options)?;
    let cores = shards_of(&found.states);
    let cores_wanted = cores_of(description, media.iter())?;
    let ids = found.states.iter().map(PoolState::id);
    let pools = ids.zip(found.additions).map(|(id, additions)| ToOpen { id, additions }).collect();
    Ok(OpenArray {
        name: description.name.clone(),
        cores,
        cores_wanted,
        keep_awake: description.keep_awake,
        events: None,
        memory: description.memory,
        pause_timeout: description.pause_timeout,
        space: description.space_rules(),
        log_drives: description.log_drives(),
        caches: description.caches(),
        pools: found.states.iter().map(OpenPool::of_state).collect(),
        kind: Kind::Lasting { media, pools, consents },
        warnings: found.warnings,
        doubts: found.doubts,
    })
}

/// What opening the array of `description` would warn of, as [`open`] would with these options; nothing is written.
///
/// # Errors
/// Why it would be refused.
pub fn rehearse(description: &Description, options: &OpenOptions) -> Result<Vec<String>, ArrayError> {
    if is_memory(description) {
        return create(description, CreateOptions::default()).map(|array| array.warnings);
    }
    check_no_memory(description)?;
    let Finding { media, found, .. } = find(description, options)?;
    let (before, wanted) = (shards_of(&found.states), cores_of(description, media.iter())?);
    let kept = why_kept(&found.states, wanted).map(|why| kept_text(before, wanted, &why));
    let told = found.warnings.into_iter().chain(found.doubts).chain(kept);
    Ok(told.chain(witness_fault(description)?).collect())
}

/// The pools of an array whose drives last, as they would go on, each with what the description adds; nothing is written.
///
/// # Errors
/// Why it would not run.
pub(super) fn find_pools(
    description: &Description,
    options: &OpenOptions,
) -> Result<Vec<(PoolState, Vec<MetaRecord>)>, ArrayError> {
    check_no_memory(description)?;
    let Found { states, additions, .. } = find(description, options)?.found;
    Ok(states.into_iter().zip(additions).collect())
}

/// On how many shards an array has run.
fn shards_of(states: &[PoolState]) -> usize {
    states.iter().map(|state| state.log().shards()).max().unwrap_or(1)
}

fn is_memory(description: &Description) -> bool {
    description.drives.iter().all(|drive| drive.path.is_none())
}

/// Drives that last and drives that are memory are not of one array.
fn check_no_memory(description: &Description) -> Result<(), ArrayError> {
    let memory = description.drives.iter().find(|drive| drive.path.is_none());
    memory.map_or(Ok(()), |drive| Err(memory_among_others(drive)))
}

/// What is wrong with the witness of `description`, and what to do; none where it could be used, or there is none.
///
/// # Errors
/// The system has no world for it.
pub fn witness_fault(description: &Description) -> Result<Option<String>, ArrayError> {
    let consents = consents_of(description, Vec::new());
    if consents.witness.is_none() {
        return Ok(None);
    }
    in_real_world(|world| async move { consents.witness_fault(&world).await })
}

/// The array as its drives tell.
struct Found {
    /// The pools as they would go on, with what the description adds.
    states: Vec<PoolState>,
    /// What it adds, by pool.
    additions: Vec<Vec<MetaRecord>>,
    warnings: Vec<String>,
    /// Why what is there may not be the newest.
    doubts: Vec<String>,
}

/// An array that was found, and its drives.
struct Finding {
    media: Vec<Arc<Medium>>,
    found: Found,
    consents: Consents,
}

fn find(description: &Description, options: &OpenOptions) -> Result<Finding, ArrayError> {
    let opened = Opening::of(description, options)?;
    let without = opened.without(description, &options.without)?;
    let (media, wanted) = (opened.media.clone(), description.clone());
    let (consents, unopened, named) = (consents_of(description, without), opened.unopened, opened.named);
    let asked = consents.clone();
    let found = in_real_world(|world| async move {
        let at_hand = AtHand { media: &media, named, unopened: &unopened };
        let found = look(&world, &at_hand, &wanted, &asked).await?;
        Ok((at_hand.of_array(&world, &wanted.name).await, found))
    })?;
    let (media, mut found) = found.map_err(|error: ArrayError| match opened.warnings.is_empty() {
        true => error,
        // What could not be opened may be what is missing.
        false => error.with_hints(&opened.warnings),
    })?;
    found.warnings.splice(0..0, opened.warnings);
    Ok(Finding { media, found, consents })
}

/// Who decides at this start that drives are done without.
pub(super) fn consents_of(description: &Description, without: Vec<String>) -> Consents {
    let witness = description.witness.as_deref().map(Witness::new);
    Consents { without, witness }
}

/// The drives in a world of their own, behind guards: one that hangs or fails for a moment is no reason to give it up.
pub(super) fn guarded(world: &World, media: &[Arc<Medium>]) -> Result<Vec<DriveHandle>, ArrayError> {
    let guard = |drive| Guard::new(drive, Patience::default(), Health::new()).handle();
    media.iter().map(|medium| Ok(guard(medium.plain_drive(world)?))).collect()
}

/// Reads who the drives are, and checks that the array can go on and that the description contradicts nothing.
async fn look(
    world: &World,
    at_hand: &AtHand<'_>,
    description: &Description,
    consents: &Consents,
) -> Result<Found, ArrayError> {
    let without = &consents.without;
    let Survey { pools: mut candidates, others } =
        survey_without(guarded(world, at_hand.media)?, without).await;
    let (mut warnings, mut doubts) = (Vec::new(), Vec::new());
    leave_meant(&mut candidates, description, &mut warnings)?;
    // What is done without, by consent or because the pool has lost the drive, need not answer.
    let mut dispensable = without.clone();
    dispensable.extend(candidates.iter().flat_map(|pool| lost_to(pool, description)));
    let lies_there = |drive: &&DriveDescription| {
        let path = drive.path.as_deref().and_then(Path::to_str);
        path.is_some_and(|path| without.iter().any(|one| one == path))
    };
    dispensable.extend(description.drives.iter().filter(lies_there).map(|drive| drive.name.clone()));
    at_hand.check_answers(&dispensable)?;
    let foreign = tell_others(others, description, &dispensable, &mut warnings)?;
    check_known(without, &candidates)?;
    let (mut states, mut additions) = (Vec::new(), Vec::new());
    for (number, pool) in description.pools.iter().enumerate() {
        let found = take_pool(&mut candidates, description, pool, &mut warnings)?;
        let left_behind = left_behind(&found);
        let with_hints = |error: ArrayError| match left_behind.is_empty() {
            true => error,
            false => error.with_hints(&left_behind),
        };
        if found.is_nothing_left() {
            return Err(ArrayError::NothingLeft { pool: pool.name.clone() });
        }
        check_label(pool, &found).map_err(with_hints)?;
        check_without(pool, &found)?;
        at_hand.check_missing(world, description, &found).await?;
        let inspected = examine(world, found, consents).await.map_err(with_hints)?;
        prove_log(world, &inspected).await.map_err(with_hints)?;
        doubts.extend(consents.doubt(world, &inspected).await);
        let groups = groups_of(inspected.state());
        groups.check_same_shape(pool)?;
        warnings.extend(groups.differences(pool));
        let mut state = inspected.state().clone();
        additions.push(add_volumes(&mut state, description, number, &mut warnings)?);
        states.push(state);
    }
    check_names(&states, &additions)?;
    warnings.extend(foreign.iter().map(|path| tell_foreign(path, &states)));
    warnings.extend(never_made(description, &states));
    let facts: Vec<PoolFacts> = states.iter().map(|state| PoolFacts::of(state, |_| None)).collect();
    warnings.extend(description.without_effect(&facts));
    Ok(Found { states, additions, warnings, doubts })
}

/// What is to be done without is some drive of these pools.
fn check_known(without: &[String], pools: &[FoundPool]) -> Result<(), ArrayError> {
    let members = pools.iter().flat_map(|pool| &pool.label.members).map(|member| &member.name);
    let mut names: Vec<&String> = members.chain(pools.iter().flat_map(|pool| &pool.foreign_drives)).collect();
    let places: Vec<&String> = pools.iter().flat_map(FoundPool::places_done_without).collect();
    let Some(drive) = without.iter().find(|one| !names.contains(one) && !places.contains(one)) else {
        return Ok(());
    };
    names.sort();
    names.dedup();
    let known = quoted(names.into_iter().map(String::as_str));
    Err(ArrayError::UnknownDrive { drive: drive.clone(), known })
}

/// Drives of a pool that are there and not used: put back to an older state than others have gone on from, or overwritten.
fn left_behind(found: &FoundPool) -> Vec<String> {
    let tell = |(member, path, generation): (&Member, &str, u64)| {
        format!(
            "{path:?} is an outdated copy of drive {:?} (generation {generation}; the pool has {}), and is \
             not used; put the current one in its place",
            member.name, found.generation
        )
    };
    let overwritten = |(member, path, _): (&Member, &str, u64)| {
        format!(
            "the start of drive {:?} at {path:?} was overwritten, and the drive is not used; find out what wrote to it",
            member.name
        )
    };
    let older = found.stale_members(Standing::RolledBack).map(tell);
    older.chain(found.stale_members(Standing::Overwritten).map(overwritten)).collect()
}

/// No volume is created whose name another pool has: clients would not get what they ask for.
fn check_names(states: &[PoolState], additions: &[Vec<MetaRecord>]) -> Result<(), ArrayError> {
    for (number, record) in
        additions.iter().enumerate().flat_map(|(n, records)| records.iter().map(move |r| (n, r)))
    {
        let MetaRecord::VolumeCreated(volume) = record else { continue };
        let mut others = states.iter().enumerate().filter(|(other, _)| *other != number);
        if let Some((_, other)) = others.find(|(_, state)| state.volume_named(&volume.name).is_some()) {
            let (volume, other) = (volume.name.clone(), other.name().to_owned());
            let pool = states[number].name().to_owned();
            return Err(Mismatch::TwoVolumes { volume, pool, other }.into());
        }
    }
    Ok(())
}

/// Drives of the description that are not there and are no members: adding them to the file alone does nothing.
fn never_made(description: &Description, states: &[PoolState]) -> Vec<String> {
    let is_member = |name: &str| states.iter().flat_map(PoolState::members).any(|member| member.name == name);
    let absent = description
        .drives
        .iter()
        .filter(|drive| !is_member(&drive.name) && drive.path.as_deref().is_some_and(|path| !path.exists()));
    let tell = |drive: &DriveDescription| {
        format!(
            "drive {:?} of the array file does not exist and is in no pool; add it with \"tier0 drive add\"",
            drive.name
        )
    };
    absent.map(tell).collect()
}

/// The drives that a pool of the description has lost, or has let go, and that did not join again.
fn lost_to<'a>(pool: &'a FoundPool, description: &Description) -> impl Iterator<Item = String> + use<'a> {
    let is_ours = pool.label.array == description.name;
    let serves =
        |name: &str| pool.label.members.iter().any(|member| member.name == name && member.is_active());
    let lost = pool.label.members.iter().filter(move |member| is_ours && !serves(&member.name));
    lost.map(|member| member.name.clone())
}

/// Tells of drives that are in no pool, but of those that hold what is not tier0's; where these lie. Those that are dispensable
/// may be unreadable.
fn tell_others(
    others: Vec<OtherDrive>,
    description: &Description,
    dispensable: &[String],
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, ArrayError> {
    let mut foreign = Vec::new();
    for other in others {
        match other {
            // A directory to search holds what it likes.
            OtherDrive::Blank(drive) | OtherDrive::Foreign(drive)
                if !is_named(description, &drive.info().name) => {}
            OtherDrive::Blank(drive) => {
                warnings.push(format!("drive {:?} is blank and in no pool", drive.info().name));
            }
            OtherDrive::Foreign(drive) => foreign.push(drive.info().name.clone()),
            OtherDrive::Unreadable(
                drive,
                error @ (PoolError::TooNew { .. } | PoolError::Features { .. }),
            ) if is_named(description, &drive.info().name) => {
                return Err(error.into());
            }
            // That it cannot be read does not mean that it is gone.
            OtherDrive::Unreadable(drive, error @ PoolError::Drive { .. }) => {
                let path = Path::new(&drive.info().name);
                let named = description.drives.iter().find(|named| named.path.as_deref() == Some(path));
                match named.filter(|named| !dispensable.contains(&named.name)) {
                    Some(named) => {
                        let (drive, fact) = (named.name.clone(), error.to_string());
                        return Err(ArrayError::NotOpened { drive, fact });
                    }
                    None => warnings.push(error.to_string()),
                }
            }
            OtherDrive::Unreadable(_, error) => warnings.push(error.to_string()),
        }
    }
    Ok(foreign)
}

/// What is to be said of what lies at a path of the file and has no superblock: a drive that has left lost its own.
fn tell_foreign(path: &str, states: &[PoolState]) -> String {
    let left = states.iter().find_map(|state| Some((state, departed_from(state, Path::new(path))?)));
    match left {
        Some((state, member)) => format!(
            "{path:?} is in no pool since drive {:?} was removed from pool {:?}, and is not used; remove it \
             from the array file, or use it again (tier0 drive add --force)",
            member.name,
            state.name()
        ),
        None => format!("drive {path:?} holds data that is not tier0's, and is not used"),
    }
}

/// Of several pools of one name the one stays whose drives the array file names; which of them was changed more often says
/// nothing, for an array that is out of use may have been started more often.
///
/// # Errors
/// Where the file does not tell them apart.
fn leave_meant(
    candidates: &mut Vec<FoundPool>,
    description: &Description,
    warnings: &mut Vec<String>,
) -> Result<(), ArrayError> {
    for pool in &description.pools {
        let is_ours = |found: &FoundPool| is_ours(found, description, pool);
        let (ours, others) = std::mem::take(candidates).into_iter().partition(is_ours);
        *candidates = others;
        candidates.extend(the_meant(ours, description, pool, warnings)?);
    }
    Ok(())
}

/// Of pools of one name those whose drives the array file names; there is at most one of them.
fn the_meant(
    ours: Vec<FoundPool>,
    description: &Description,
    pool: &PoolDescription,
    warnings: &mut Vec<String>,
) -> Result<Vec<FoundPool>, ArrayError> {
    if ours.len() < 2 {
        return Ok(ours);
    }
    let counted: Vec<(usize, FoundPool)> =
        ours.into_iter().map(|found| (named_drives(&found, description), found)).collect();
    let count = counted.len();
    let most = counted.iter().map(|(named, _)| *named).max().unwrap_or(0);
    let (meant, others): (Vec<_>, Vec<_>) = counted.into_iter().partition(|(named, _)| *named == most);
    if let [(_, one), (_, other), ..] = &meant[..] {
        let (one, other) = (places_of(one), places_of(other));
        return Err(ArrayError::TwoPools { pool: pool.name.clone(), one, other });
    }
    let others: Vec<String> = others.iter().map(|(_, found)| places_of(found)).collect();
    warnings.push(format!(
        "there are {count} pools named {:?}: using the one whose drives the array file names; those at {} \
         are not used",
        pool.name,
        others.join(", ")
    ));
    Ok(meant.into_iter().map(|(_, found)| found).collect())
}

fn is_ours(found: &FoundPool, description: &Description, pool: &PoolDescription) -> bool {
    found.label.array == description.name && found.label.name == pool.name
}

/// How many of a pool's drives lie where the array file has one.
pub(super) fn named_drives(found: &FoundPool, description: &Description) -> usize {
    found.paths().filter(|path| is_named(description, path)).count()
}

fn places_of(found: &FoundPool) -> String {
    quoted(found.paths())
}

/// The pool of this name.
fn take_pool(
    candidates: &mut Vec<FoundPool>,
    description: &Description,
    pool: &PoolDescription,
    warnings: &mut Vec<String>,
) -> Result<FoundPool, ArrayError> {
    let place = candidates.iter().position(|found| is_ours(found, description, pool));
    let place = place.ok_or_else(|| no_pool(candidates, description, pool))?;
    let found = candidates.remove(place);
    for member in &found.members {
        let name = &member.member.name;
        match member.standing {
            Standing::Missing => warnings.push(format!(
                "drive {name:?} of pool {:?} is missing; the pool starts without it and will treat it as stale",
                pool.name
            )),
            Standing::Stale => warnings.push(format!(
                "drive {name:?} was taken out of pool {:?} and is stale; it is not used",
                pool.name
            )),
            Standing::RolledBack => warnings.push(format!(
                "drive {name:?} of pool {:?} was restored to an older state; it counts as lost, and is not used",
                pool.name
            )),
            Standing::Overwritten => warnings.push(format!(
                "the start of drive {name:?} of pool {:?} was overwritten; it counts as lost, and is not \
                 used: find out what wrote to it, then return it (tier0 drive rejoin)",
                pool.name
            )),
            Standing::Present | Standing::Lost | Standing::Removed => {}
        }
    }
    warnings.extend(found.given_up.iter().map(|(name, path)| {
        format!(
            "{path:?} claims to be drive {name:?} of pool {:?}, added while the others were absent; its \
             changes were discarded, and it is not used: disconnect it, or use it again (tier0 drive add --force)",
            pool.name
        )
    }));
    Ok(found)
}

/// Why a pool is not there: the drives hold others, perhaps under another name, or none.
fn no_pool(candidates: &[FoundPool], description: &Description, pool: &PoolDescription) -> ArrayError {
    // What the description names besides is served as that.
    let is_named = |found: &&FoundPool| {
        found.label.array == description.name
            && description.pools.iter().any(|one| one.name == found.label.name)
    };
    let others = candidates.iter().filter(|found| !is_named(found));
    let others: Vec<String> =
        others.map(|found| format!("pool {:?} of array {:?}", found.label.name, found.label.array)).collect();
    let (pool, array) = (pool.name.clone(), description.name.clone());
    match others.is_empty() {
        true => Mismatch::NoPool { pool }.into(),
        false => ArrayError::OtherPool { pool, array, found: others.join(", ") },
    }
}

/// Drives that the administrator does without must not be present.
fn check_without(pool: &PoolDescription, found: &FoundPool) -> Result<(), ArrayError> {
    let mut present = found.standing(Standing::Present);
    match present.find(|(_, member)| found.is_done_without(member)) {
        Some((_, member)) => {
            Err(ArrayError::NotWithout { drive: member.name.clone(), pool: pool.name.clone() })
        }
        None => Ok(()),
    }
}

/// What cannot be opened at all is told in the array's words.
fn check_label(pool: &PoolDescription, found: &FoundPool) -> Result<(), ArrayError> {
    let missing = || {
        let not_used = [Standing::Missing, Standing::RolledBack, Standing::Overwritten].into_iter();
        drives(not_used.flat_map(|standing| found.standing(standing)).map(|(_, member)| member.name.as_str()))
    };
    match &found.problem {
        Some(split @ PoolError::Split { .. }) => Err(ArrayError::Pool(split.clone())),
        Some(PoolError::Twice { first, second }) => {
            Err(ArrayError::Twice { first: first.clone(), second: second.clone() })
        }
        Some(PoolError::NoQuorum { .. }) => {
            Err(ArrayError::Missing { pool: pool.name.clone(), missing: missing(), level: pool.levels() })
        }
        Some(PoolError::NoCarrier { .. }) => Err(ArrayError::Missing {
            pool: pool.name.clone(),
            missing: format!("{}, including all that hold its metadata", missing()),
            level: pool.levels(),
        }),
        _ => Ok(()),
    }
}

/// The groups of a pool, those that have left it included.
fn groups_of(state: &PoolState) -> KnownGroups {
    let named = |group: &SetGroup| (group.name.clone(), group.raid.clone());
    let (gone, there): (Vec<&SetGroup>, Vec<&SetGroup>) =
        state.groups().iter().partition(|group| group.is_gone());
    KnownGroups { there: there.into_iter().map(named).collect(), gone: gone.into_iter().map(named).collect() }
}

/// The group that a volume of the file names, if it leaves the pool or can have left it: the file is older than that.
fn group_left<'a>(state: &PoolState, volume: &'a VolumeDescription) -> Option<&'a str> {
    let name = volume.group.as_deref()?;
    let left = match state.group_named(name) {
        Some(group) => !state.group_stays(group),
        None => state.has_lost_groups(),
    };
    left.then_some(name)
}

/// The records that create the description's volumes that the pool does not have, switch caches as it says, and tell what the
/// drives are for that it names.
/// A volume may have grown since the description was written.
fn add_volumes(
    state: &mut PoolState,
    description: &Description,
    number: usize,
    warnings: &mut Vec<String>,
) -> Result<Vec<MetaRecord>, ArrayError> {
    let switches = switches_of(state, &description.pools[number]).into_iter();
    let mut records: Vec<MetaRecord> = switches.chain(roles_of(state, description, number)).collect();
    state.apply_all(&records)?;
    for volume in description.volumes.iter().filter(|volume| volume.pool == number) {
        let own = match state.volume_named(&volume.name) {
            Some(known) => {
                if known.sectors != volume.sectors.0 {
                    warnings.push(size_differs(&known.name, SectorCount(known.sectors), volume.sectors));
                }
                let mut own = MetaRecord::switch_caches(known, volume.read_cache, volume.write_cache);
                let ceilings = state.ceilings(known.number);
                own.extend(MetaRecord::limit(known.number, ceilings, volume.ceilings));
                own.extend(MetaRecord::weigh(known.number, state.weight(known.number), volume.weight));
                own.extend(placement_of(state, known.number, volume));
                own
            }
            None if let Some(group) = group_left(state, volume) => {
                warnings.push(not_created(&volume.name, &description.pools[number].name, group));
                continue;
            }
            None => {
                check_fits(state, volume)?;
                warnings.push(format!(
                    "volume {:?} ({}) is in the array file but not in pool {:?}: creating it, empty",
                    volume.name,
                    volume.sectors.bytes(),
                    description.pools[number].name
                ));
                new_volume(state, volume, Uuid::new_v4())
            }
        };
        state.apply_all(&own)?;
        records.extend(own);
    }
    let in_file =
        |name: &str| description.volumes.iter().any(|volume| volume.pool == number && volume.name == name);
    warnings.extend(
        state
            .volumes()
            .filter(|volume| !in_file(&volume.name) && !volume.is_unfinished())
            .map(|volume| not_in_file(&volume.name, SectorCount(volume.sectors))),
    );
    Ok(records)
}
