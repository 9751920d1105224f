//! What stands against creating an array, as far as its file and the sizes of its drives tell. Nothing is written, and what
//! the drives hold is not looked at.

use std::path::Path;

use rustix::fs::statvfs;
use tier0_catalog::Catalog;
use tier0_units::{ByteCount, SectorCount};
use uuid::Uuid;

use crate::engine::new_state;
use crate::models::Model;
use crate::open::Medium;
use crate::plan::drives_of;
use crate::{ArrayError, Description};

/// Whether the pools and volumes of `description` have room on its drives: those that are there, and those that would be made.
/// Where the size of one cannot be known, nothing is said.
///
/// # Errors
/// What [`create`](crate::open::create) would refuse.
pub fn rehearse_creation(description: &Description) -> Result<(), ArrayError> {
    if let Some(pool) = description.pools.iter().find(|pool| !pool.checksums) {
        return Err(ArrayError::WithoutChecksums { pool: pool.name.clone() });
    }
    let Some(sizes) = sizes_of(description)? else { return Ok(()) };
    let machine = std::thread::available_parallelism().map_or(1, usize::from);
    let is_modelled = description.drives.iter().any(|drive| drive.model.is_some());
    let cores = if is_modelled { 1 } else { description.cores.unwrap_or(machine) };
    for (number, pool) in description.pools.iter().enumerate() {
        let own = drives_of(pool).0.into_iter().map(|place| sizes[place]).collect();
        new_state(description, number, own, cores, Uuid::new_v4)?;
    }
    Ok(())
}

/// The sizes of the drives in sectors; none where one is not there and is not to be made.
fn sizes_of(description: &Description) -> Result<Option<Vec<u64>>, ArrayError> {
    let mut sizes = Vec::new();
    for (number, drive) in description.drives.iter().enumerate() {
        let is_there = drive.path.as_ref().is_some_and(|path| path.exists());
        let size = match (is_there, drive.size) {
            (true, _) => Medium::open(drive, number)?.sectors().0,
            (false, Some(size)) => {
                if drive.model.is_none() {
                    check_room(drive.path.as_deref(), size)?;
                }
                let modelled =
                    drive.model.as_ref().map(|id| Model::of(&Catalog::embedded(), id)).transpose()?;
                let sectors = SectorCount::in_bytes(size);
                modelled.map_or(sectors, |model| sectors.min(model.sectors())).0
            }
            (false, None) => return Ok(None),
        };
        sizes.push(size);
    }
    Ok(Some(sizes))
}

/// A file that is to be made has room. Of one without bounds, the plan alone would take long.
fn check_room(path: Option<&Path>, size: ByteCount) -> Result<(), ArrayError> {
    let directory = path.and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    // A directory that is not there is told when the file is made.
    let Ok(about) = statvfs(directory) else { return Ok(()) };
    let free = ByteCount(about.f_bavail.saturating_mul(about.f_frsize));
    match size > free {
        true => Err(ArrayError::NoRoom { directory: directory.to_owned(), needed: size, free }),
        false => Ok(()),
    }
}
