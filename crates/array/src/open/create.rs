//! Creating an array: checks first, then the drive files that are asked for, then the superblocks.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use tier0_catalog::Catalog;
use tier0_pool::superblock::{self, Superblock};
use tier0_pool::{Found, MemberRecord, identify};
use tier0_raid::io::LostDrives;
use tier0_units::SectorCount;
use uuid::Uuid;

use super::{Medium, OpenArray, OpenPool, in_real_world};
use crate::description::DriveDescription;
use crate::models::Model;
use crate::plan::PoolPlan;
use crate::{ArrayError, Description};

/// How an array is created.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions {
    /// Overwrite drives that hold something.
    pub force: bool,
}

/// Creates the array of `description` on its drives. Drive files that do not exist and have a size are created; on
/// failure they are removed again, and nothing else has been written.
pub fn create(description: &Description, options: CreateOptions) -> Result<OpenArray, ArrayError> {
    let mut media: Vec<Option<Arc<Medium>>> = Vec::new();
    for (number, drive) in description.drives.iter().enumerate() {
        let to_be_made = drive.size.is_some() && drive.path.as_ref().is_some_and(|path| !path.exists());
        media.push(if to_be_made { None } else { Some(Arc::new(Medium::open(drive, number)?)) });
    }
    if !options.force {
        check_unused(&media)?;
    }
    let plans = plan_pools(description, &media)?;
    let mut made = MadeFiles(Vec::new());
    for (number, drive) in description.drives.iter().enumerate() {
        if media[number].is_none() {
            made.make(drive)?;
            media[number] = Some(Arc::new(Medium::open(drive, number)?));
        }
    }
    let pools = plans.into_iter().zip(&description.pools).map(|(plan, pool)| {
        let media: Vec<_> = pool.drives.iter().map(|drive| media[*drive].clone()).collect();
        let lost = LostDrives::new(media.len());
        OpenPool { plan, generation: 1, media, lost }
    });
    let pools: Vec<OpenPool> = pools.collect();
    for pool in &pools {
        write_superblocks(pool)?;
    }
    made.0.clear();
    let cores = cores_of(description, &pools)?;
    Ok(OpenArray { name: description.name.clone(), cores, pools, warnings: Vec::new() })
}

/// Shards for an array: what the description says, else one per core; one where drives are modelled, because a
/// mechanism cannot be in two threads.
pub(super) fn cores_of(description: &Description, pools: &[OpenPool]) -> Result<usize, ArrayError> {
    let machine = std::thread::available_parallelism().map_or(1, usize::from);
    let modelled =
        pools.iter().flat_map(|pool| pool.media.iter().flatten()).find(|medium| medium.is_modelled());
    match (modelled, description.cores) {
        (Some(medium), Some(cores)) if cores > 1 => Err(ArrayError::Unusable {
            drive: medium.name().to_owned(),
            fact: "is modelled, which needs an array on one core; set array.cores = 1".into(),
        }),
        (Some(_), _) => Ok(1),
        (None, cores) => Ok(cores.unwrap_or(machine)),
    }
}

/// Pools are planned with the sizes of the drives that are there and of those that are to be made.
fn plan_pools(description: &Description, media: &[Option<Arc<Medium>>]) -> Result<Vec<PoolPlan>, ArrayError> {
    let mut plans = Vec::new();
    for (number, pool) in description.pools.iter().enumerate() {
        let mut members = Vec::new();
        for &drive in &pool.drives {
            let sectors = match &media[drive] {
                Some(medium) => medium.sectors(),
                None => size_of_new(&description.drives[drive])?,
            };
            let name = description.drives[drive].name.clone();
            members.push(MemberRecord { id: Uuid::new_v4(), name, sectors: sectors.0, lost: false });
        }
        let mut plan = PoolPlan::of_new_pool(&description.name, pool, members, Uuid::new_v4())?;
        for volume in description.volumes.iter().filter(|volume| volume.pool == number) {
            plan.add_volume(volume, Uuid::new_v4())?;
        }
        plans.push(plan);
    }
    Ok(plans)
}

fn size_of_new(drive: &DriveDescription) -> Result<SectorCount, ArrayError> {
    let size = SectorCount::in_bytes(drive.size.expect("a file to be made has a size"));
    match &drive.model {
        Some(id) => Ok(size.min(Model::of(&Catalog::embedded(), id)?.sectors())),
        None => Ok(size),
    }
}

fn check_unused(media: &[Option<Arc<Medium>>]) -> Result<(), ArrayError> {
    for medium in media.iter().flatten().filter(|medium| medium.is_persistent()) {
        let opened = medium.clone();
        let found = in_real_world(|world| async move {
            Ok::<_, ArrayError>(identify(&opened.plain_drive(&world)?).await?)
        })??;
        let drive = medium.name().to_owned();
        match found {
            Found::Blank => {}
            Found::Foreign => return Err(ArrayError::Foreign { drive }),
            Found::Member(superblock) => {
                let record = superblock.record;
                return Err(ArrayError::Taken { drive, pool: record.name, array: record.array });
            }
        }
    }
    Ok(())
}

/// Writes both copies of every member's superblock, so that no older one survives anywhere.
pub(super) fn write_superblocks(pool: &OpenPool) -> Result<(), ArrayError> {
    let members = pool.plan.record.members.iter().zip(&pool.media);
    for (member, medium) in
        members.filter_map(|(member, medium)| medium.clone().map(|medium| (member, medium)))
    {
        if !medium.is_persistent() {
            continue;
        }
        let own = Superblock { member: member.id, ..pool.superblock() };
        in_real_world(|world| async move {
            let drive = medium.plain_drive(&world)?;
            superblock::write(&drive, &own).await?;
            superblock::write(&drive, &Superblock { generation: own.generation + 1, ..own }).await?;
            Ok::<_, ArrayError>(())
        })??;
    }
    Ok(())
}

/// Files that were made and are removed again unless all goes well.
struct MadeFiles(Vec<PathBuf>);

impl MadeFiles {
    /// Makes a drive's file with its space allocated, so that a full disk shows now and not under a database. Behind
    /// a model the file is sparse: it is as large as the modelled drive, usually much larger than what is written.
    fn make(&mut self, drive: &DriveDescription) -> Result<(), ArrayError> {
        let path = drive.path.clone().expect("a file to be made has a path");
        let bytes = drive.size.expect("a file to be made has a size").0;
        let made = OpenOptions::new().write(true).create_new(true).open(&path).and_then(|file| {
            self.0.push(path.clone());
            if drive.model.is_some() {
                return file.set_len(bytes);
            }
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
                Err(Errno::OPNOTSUPP) => file.set_len(bytes),
                result => Ok(result?),
            }
        });
        made.map_err(|source| ArrayError::CreateFile { path, source })
    }
}

impl Drop for MadeFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}
