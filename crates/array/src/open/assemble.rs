//! Finding an array again: open what might be its drives, read who they are, open the pools.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use tier0_drive::{DriveHandle, OpenError};
use tier0_pool::metadata::{FoundMember, FoundPool, Metadata, OtherDrive, Standing, Survey, survey};
use tier0_pool::{LogRing, MetaRecord, PoolError, PoolState, RaidRecord};
use tier0_units::SectorCount;
use tier0_world::World;
use uuid::Uuid;

use super::create::memory_among_others;
use super::{Kind, Medium, OpenArray, OpenPool, create, in_real_world};
use crate::description::{DriveDescription, PoolDescription, grown_in_file};
use crate::engine::check_survives;
use crate::open::CreateOptions;
use crate::plan::{check_fits, new_volume, record_of};
use crate::{ArrayError, Description};

/// Opens the array of `description`. Pools on RAM drives, which remember nothing, are created anew. Volumes of the
/// description that a pool does not have yet are created; volumes it has are served whether described or not.
pub fn open(description: &Description) -> Result<OpenArray, ArrayError> {
    if description.drives.iter().all(|drive| drive.path.is_none()) {
        return create(description, CreateOptions::default());
    }
    if let Some(ram) = description.drives.iter().find(|drive| drive.path.is_none()) {
        return Err(memory_among_others(ram));
    }
    let media = open_media(description)?;
    let (opened, wanted) = (media.clone(), description.clone());
    let found = in_real_world(|world| async move { look(&world, &opened, &wanted).await })??;
    let shards = found.states.iter().map(|state| state.log().rings.len()).max().unwrap_or(1);
    let mut warnings = found.warnings;
    if let Some(cores) = description.cores.filter(|cores| *cores != shards) {
        warnings.push(format!(
            "array.cores is {cores}, and the array was created for {shards}: its log has as many parts; it runs on {shards}"
        ));
    }
    Ok(OpenArray {
        name: description.name.clone(),
        cores: shards,
        keep_awake: description.keep_awake,
        pause_timeout: description.pause_timeout,
        pools: found.states.iter().map(OpenPool::of_state).collect(),
        kind: Kind::Protected { media, pools: found.states.iter().map(PoolState::id).collect() },
        warnings,
    })
}

/// The array as its drives tell.
struct Found {
    states: Vec<PoolState>,
    warnings: Vec<String>,
}

/// Opens what may be drives of the array; what is missing is told later, by the drives that are there.
pub(super) fn open_media(description: &Description) -> Result<Vec<Arc<Medium>>, ArrayError> {
    let mut media = Vec::new();
    for (number, drive) in places(description)?.into_iter().enumerate() {
        match Medium::open(&drive, number) {
            Ok(medium) => media.push(Arc::new(medium)),
            Err(ArrayError::Open(OpenError::Missing { .. } | OpenError::System { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(media)
}

/// Reads who the drives are, checks that the array can go on, and brings in what the description adds.
async fn look(world: &World, media: &[Arc<Medium>], description: &Description) -> Result<Found, ArrayError> {
    let drives: Vec<DriveHandle> =
        media.iter().map(|medium| medium.plain_drive(world)).collect::<Result<_, _>>()?;
    let Survey { pools: mut candidates, others } = survey(drives).await;
    let mut warnings: Vec<String> = Vec::new();
    tell_others(others, &mut warnings)?;
    let mut chosen = Vec::new();
    for pool in &description.pools {
        chosen.push(take_pool(&mut candidates, description, pool, &mut warnings)?);
    }
    // All pools are there: only now is anything written.
    let mut states = Vec::new();
    for (number, (pool, found)) in description.pools.iter().zip(chosen).enumerate() {
        check_label(pool, &found)?;
        let missing = missing_names(&found);
        let refused = Cell::new(None);
        let check = |state: &PoolState| {
            check_survives(state)?;
            check_description(description, number, state).map_err(|error| {
                let fact = error.to_string();
                refused.set(Some(error));
                PoolError::Unopenable { fact }
            })
        };
        let opened = found.open_if(world, Rc::new(|_, _| {}), check).await;
        let metadata = opened.map_err(|error| match (refused.take(), error) {
            (Some(refused), _) => refused,
            (None, PoolError::Unopenable { .. }) => ArrayError::Missing {
                pool: pool.name.clone(),
                missing,
                level: pool.raid.level.name().to_owned(),
            },
            (None, error) => error.into(),
        })?;
        add_volumes(&metadata, description, number, &mut warnings).await?;
        states.push(metadata.state().clone());
    }
    Ok(Found { states, warnings })
}

/// Tells of drives that are in no pool.
pub(super) fn tell_others(others: Vec<OtherDrive>, warnings: &mut Vec<String>) -> Result<(), ArrayError> {
    for other in others {
        match other {
            OtherDrive::Blank(drive) => {
                warnings.push(format!("drive {:?} is blank and in no pool", drive.info().name));
            }
            OtherDrive::Foreign(drive) => {
                let name = &drive.info().name;
                warnings.push(format!("drive {name:?} holds data that is not tier0's and is left alone"));
            }
            OtherDrive::Unreadable(_, error @ (PoolError::TooNew { .. } | PoolError::Features { .. })) => {
                return Err(error.into());
            }
            OtherDrive::Unreadable(_, error) => warnings.push(error.to_string()),
        }
    }
    Ok(())
}

/// The pool of this name, with the newest superblock where there are several.
pub(super) fn take_pool(
    candidates: &mut Vec<FoundPool>,
    description: &Description,
    pool: &PoolDescription,
    warnings: &mut Vec<String>,
) -> Result<FoundPool, ArrayError> {
    let ours = |found: &FoundPool| found.label.array == description.name && found.label.name == pool.name;
    let mut places: Vec<usize> = (0..candidates.len()).filter(|i| ours(&candidates[*i])).collect();
    if places.len() > 1 {
        warnings.push(format!(
            "the drives hold {} pools called {:?}; the one that was changed most is served",
            places.len(),
            pool.name
        ));
    }
    places.sort_by_key(|place| candidates[*place].generation);
    let place = places.pop().ok_or_else(|| ArrayError::NoPool { pool: pool.name.clone() })?;
    let found = candidates.remove(place);
    for member in &found.members {
        let name = &member.member.name;
        match member.standing {
            Standing::Missing => warnings.push(format!(
                "drive {name:?} of pool {:?} is missing; the pool goes on without it and will not believe it again",
                pool.name
            )),
            Standing::Stale => warnings.push(format!(
                "drive {name:?} was taken out of pool {:?} and what it holds is stale; it is not used",
                pool.name
            )),
            Standing::Present | Standing::Lost | Standing::Removed => {}
        }
    }
    Ok(found)
}

/// The drives of a pool that do not serve.
fn missing_names(found: &FoundPool) -> String {
    let away = |member: &&FoundMember| !matches!(member.standing, Standing::Present | Standing::Removed);
    let names: Vec<String> =
        found.members.iter().filter(away).map(|member| format!("{:?}", member.member.name)).collect();
    format!("drives {}", names.join(", "))
}

/// What cannot be opened at all is told in the array's words.
pub(super) fn check_label(pool: &PoolDescription, found: &FoundPool) -> Result<(), ArrayError> {
    match &found.problem {
        Some(PoolError::Twice { first, second }) => {
            Err(ArrayError::Twice { first: first.clone(), second: second.clone() })
        }
        Some(PoolError::NoQuorum { missing, .. }) => Err(ArrayError::Missing {
            pool: pool.name.clone(),
            missing: format!("drives {missing}"),
            level: pool.raid.level.name().to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Everything of the description that the pool as it would go on refuses: found before anything is written, so that
/// drives that are away are not lost to a pool that does not open.
fn check_description(description: &Description, number: usize, state: &PoolState) -> Result<(), ArrayError> {
    let pool = &description.pools[number];
    check_same_shape(pool, &state.geometry().raid)?;
    check_log(state)?;
    let mut with_new = None;
    for volume in description.volumes.iter().filter(|volume| volume.pool == number) {
        match state.volume_named(&volume.name) {
            Some(known) if known.sectors < volume.sectors.0 => {
                let name = &pool.name;
                return Err(grown_in_file(name, &volume.name, SectorCount(known.sectors), volume.sectors));
            }
            Some(_) => {}
            None => {
                let state = with_new.get_or_insert_with(|| state.clone());
                check_fits(state, volume)?;
                let record = new_volume(state, volume, Uuid::new_v4());
                state.apply_all(&[record])?;
            }
        }
    }
    Ok(())
}

/// A copy of every ring of the write log must be there.
fn check_log(state: &PoolState) -> Result<(), ArrayError> {
    let is_gone = |ring: &&LogRing| !ring.copies.iter().any(|copy| state.is_active(copy.member));
    let Some(ring) = state.log().rings.iter().find(is_gone) else { return Ok(()) };
    let names = ring.copies.iter().filter_map(|copy| state.member(copy.member));
    let names: Vec<String> = names.map(|member| format!("{:?}", member.name)).collect();
    Err(ArrayError::NoLog { pool: state.name().to_owned(), drives: names.join(", ") })
}

/// What the description says of a pool must be what the pool is.
pub(crate) fn check_same_shape(pool: &PoolDescription, known: &RaidRecord) -> Result<(), ArrayError> {
    let wanted = record_of(&pool.raid);
    let words = |raid: &RaidRecord| {
        let unit = SectorCount(u64::from(raid.stripe_unit_sectors)).bytes();
        format!("{} sets of {} drives with stripe units of {unit}", raid.level, raid.set_size)
    };
    if wanted == *known {
        return Ok(());
    }
    Err(ArrayError::Changed { pool: pool.name.clone(), fact: words(known), wanted: words(&wanted) })
}

/// Creates the description's volumes that the pool does not have, and changes write caches that it names. A volume may
/// have grown since the description was written.
async fn add_volumes(
    metadata: &Metadata,
    description: &Description,
    number: usize,
    warnings: &mut Vec<String>,
) -> Result<(), ArrayError> {
    for volume in description.volumes.iter().filter(|volume| volume.pool == number) {
        let known = metadata.state().volume_named(&volume.name).cloned();
        let record = match known {
            Some(known) if known.sectors < volume.sectors.0 => {
                let pool = &description.pools[number].name;
                return Err(grown_in_file(pool, &volume.name, SectorCount(known.sectors), volume.sectors));
            }
            Some(known) if known.sectors > volume.sectors.0 => {
                let (now, before) = (SectorCount(known.sectors).bytes(), volume.sectors.bytes());
                let name = &known.name;
                warnings.push(format!(
                    "volume {name:?} has grown to {now}, and the array file still says {before}; correct the file"
                ));
                continue;
            }
            Some(known) => match volume.write_cache.filter(|wanted| *wanted != known.write_cache) {
                Some(write_cache) => MetaRecord::ModeChanged { volume: known.number, write_cache },
                None => continue,
            },
            None => {
                let state = metadata.state();
                check_fits(&state, volume)?;
                new_volume(&state, volume, Uuid::new_v4())
            }
        };
        metadata.commit(vec![record]).await?;
    }
    Ok(())
}

/// Where drives may be: the paths of the description, then whatever lies in the directories to search.
fn places(description: &Description) -> Result<Vec<DriveDescription>, ArrayError> {
    let mut seen: BTreeMap<PathBuf, ()> = BTreeMap::new();
    let mut places = Vec::new();
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    for drive in &description.drives {
        let path = drive.path.as_ref().expect("checked: every drive has a path");
        seen.insert(real(path), ());
        places.push(drive.clone());
    }
    for directory in &description.search {
        let listing = std::fs::read_dir(directory).map_err(|source| ArrayError::System {
            what: format!("array.search: directory {directory:?} cannot be read"),
            source,
        })?;
        let mut paths: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            let is_drive = std::fs::metadata(&path).is_ok_and(|metadata| !metadata.is_dir());
            if is_drive && seen.insert(real(&path), ()).is_none() {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                places.push(DriveDescription { name, path: Some(path), size: None, ram: None, model: None });
            }
        }
    }
    Ok(places)
}
