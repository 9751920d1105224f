//! Finding an array again: open what might be its drives, read who they are, put the pools together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tier0_pool::superblock::Superblock;
use tier0_pool::{Found, identify};
use tier0_raid::io::LostDrives;
use tier0_raid::layout::Layout;
use tier0_units::SectorCount;
use uuid::Uuid;

use super::create::{cores_of, write_superblocks};
use super::{Medium, OpenArray, OpenPool, create, in_real_world};
use crate::description::{DriveDescription, PoolDescription};
use crate::open::CreateOptions;
use crate::plan::{PoolPlan, record_of};
use crate::{ArrayError, Description};

/// Opens the array of `description`. Pools on RAM drives, which remember nothing, are created anew. Volumes of the
/// description that a pool does not have yet are created; volumes it has are served whether described or not.
pub fn open(description: &Description) -> Result<OpenArray, ArrayError> {
    if description.drives.iter().all(|drive| drive.path.is_none()) {
        return create(description, CreateOptions::default());
    }
    if let Some(ram) = description.drives.iter().find(|drive| drive.path.is_none()) {
        let fact = "is memory among drives that are not; make it a file, or all of them memory".into();
        return Err(ArrayError::Unusable { drive: ram.name.clone(), fact });
    }
    let mut candidates = find_candidates(description)?;
    let mut warnings = std::mem::take(&mut candidates.warnings);
    let mut pools = Vec::new();
    for (number, pool) in description.pools.iter().enumerate() {
        let (mut opened, mut changed) = assemble(description, pool, &mut candidates.members, &mut warnings)?;
        for volume in description.volumes.iter().filter(|volume| volume.pool == number) {
            let known = opened.plan.record.volumes.iter().find(|known| known.name == volume.name);
            match known {
                Some(known) if known.sectors != volume.sectors.0 => {
                    return Err(ArrayError::Changed {
                        pool: pool.name.clone(),
                        fact: format!("volume {:?} of {}", volume.name, SectorCount(known.sectors).bytes()),
                        wanted: volume.sectors.bytes().to_string(),
                    });
                }
                Some(_) => {}
                None => {
                    opened.plan.add_volume(volume, Uuid::new_v4())?;
                    changed = true;
                }
            }
        }
        pools.push((opened, changed));
    }
    // All pools are checked: only now is anything written.
    for (pool, changed) in &mut pools {
        if *changed {
            pool.generation += 1;
            write_superblocks(pool)?;
            pool.generation += 1;
        }
    }
    let pools: Vec<OpenPool> = pools.into_iter().map(|(pool, _)| pool).collect();
    let cores = cores_of(description, &pools)?;
    Ok(OpenArray { name: description.name.clone(), cores, pools, warnings })
}

/// A drive that is a member of some pool.
struct Candidate {
    medium: Arc<Medium>,
    superblock: Superblock,
}

struct Candidates {
    members: Vec<Candidate>,
    warnings: Vec<String>,
}

fn find_candidates(description: &Description) -> Result<Candidates, ArrayError> {
    let mut found = Candidates { members: Vec::new(), warnings: Vec::new() };
    for (number, drive) in places(description)?.into_iter().enumerate() {
        let medium = match Medium::open(&drive, number) {
            Ok(medium) => Arc::new(medium),
            Err(ArrayError::Open(
                tier0_drive::OpenError::Missing { .. } | tier0_drive::OpenError::System { .. },
            )) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        let opened = medium.clone();
        let identity = in_real_world(|world| async move {
            Ok::<_, ArrayError>(identify(&opened.plain_drive(&world)?).await)
        })??;
        match identity {
            Ok(Found::Member(superblock)) => {
                found.members.push(Candidate { medium, superblock: *superblock })
            }
            Ok(Found::Blank) => {
                found.warnings.push(format!("drive {:?} is blank and in no pool", medium.name()))
            }
            Ok(Found::Foreign) => {
                found.warnings.push(format!(
                    "drive {:?} holds data that is not tier0's and is left alone",
                    medium.name()
                ));
            }
            Err(error @ tier0_pool::PoolError::TooNew { .. }) => return Err(error.into()),
            Err(error) => found.warnings.push(error.to_string()),
        }
    }
    for (i, first) in found.members.iter().enumerate() {
        let copy = found.members[..i].iter().find(|other| other.superblock.member == first.superblock.member);
        if let Some(copy) = copy {
            return Err(ArrayError::Twice { first: copy.medium.place(), second: first.medium.place() });
        }
    }
    Ok(found)
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

/// Puts a pool together, and says whether its drives have something new to remember.
fn assemble(
    description: &Description,
    pool: &PoolDescription,
    candidates: &mut Vec<Candidate>,
    warnings: &mut Vec<String>,
) -> Result<(OpenPool, bool), ArrayError> {
    let ours = |candidate: &Candidate| {
        let record = &candidate.superblock.record;
        record.array == description.name && record.name == pool.name
    };
    let newest = candidates.iter().filter(|c| ours(c)).max_by_key(|c| c.superblock.generation);
    let newest = newest.ok_or_else(|| ArrayError::NoPool { pool: pool.name.clone() })?.superblock.clone();
    let mut record = newest.record;
    check_unchanged(pool, &record)?;
    let mut media: Vec<Option<Arc<Medium>>> = vec![None; record.members.len()];
    candidates.retain(|candidate| {
        if candidate.superblock.record.id != record.id {
            return true;
        }
        let place = record.members.iter().position(|member| member.id == candidate.superblock.member);
        match place {
            Some(place) if record.members[place].lost => {
                warnings.push(format!(
                    "drive {:?} was taken out of pool {:?} and what it holds is stale; it is not used",
                    candidate.medium.name(),
                    pool.name
                ));
            }
            Some(place) => media[place] = Some(candidate.medium.clone()),
            None => warnings
                .push(format!("drive {:?} is no member of its pool any more", candidate.medium.name())),
        }
        false
    });
    let mut newly_lost = false;
    for (member, medium) in record.members.iter_mut().zip(&media) {
        if medium.is_none() && !member.lost {
            warnings.push(format!(
                "drive {:?} of pool {:?} is missing; the pool goes on without it and will not believe it again",
                member.name, pool.name
            ));
            member.lost = true;
            newly_lost = true;
        }
    }
    let plan = PoolPlan::new(record)?;
    check_survives(pool, &plan)?;
    let lost = LostDrives::new(media.len());
    for (place, member) in plan.record.members.iter().enumerate() {
        if member.lost {
            lost.set_lost(place);
        }
    }
    Ok((OpenPool { plan, generation: newest.generation, media, lost }, newly_lost))
}

/// What the description says of a pool must be what the pool is.
fn check_unchanged(pool: &PoolDescription, record: &tier0_pool::PoolRecord) -> Result<(), ArrayError> {
    let wanted = record_of(&pool.raid);
    let words = |raid: &tier0_pool::RaidRecord| {
        let unit = SectorCount(u64::from(raid.stripe_unit_sectors)).bytes();
        format!("{} sets of {} drives with stripe units of {unit}", raid.level, raid.set_size)
    };
    if wanted != record.raid {
        return Err(ArrayError::Changed {
            pool: pool.name.clone(),
            fact: words(&record.raid),
            wanted: words(&wanted),
        });
    }
    Ok(())
}

/// Every set must do without the members that are lost.
fn check_survives(pool: &PoolDescription, plan: &PoolPlan) -> Result<(), ArrayError> {
    let layout: &Layout = plan.sets.layout();
    let lost_columns = |set: u32| {
        let columns = (0..layout.columns()).map(|column| tier0_raid::layout::Column(column as u8));
        let set = tier0_raid::set::SetIndex(set);
        columns.filter(|column| plan.record.members[plan.sets.place(set, *column).0].lost).collect()
    };
    if (0..plan.sets.count()).all(|set| layout.survives(lost_columns(set))) {
        return Ok(());
    }
    let missing: Vec<String> = plan
        .record
        .members
        .iter()
        .filter(|member| member.lost)
        .map(|member| format!("{:?}", member.name))
        .collect();
    Err(ArrayError::Missing {
        pool: pool.name.clone(),
        missing: format!("drives {}", missing.join(", ")),
        level: plan.record.raid.level.clone(),
    })
}
