//! A dry run of a creation: the layout that [`create`](super::create()) would make of an array file, and what it would overwrite.
//!
//! Drives that are there are opened and read as by a creation. Nothing is written, and no file is made.

use std::sync::Arc;

use serde::Serialize;
use tier0_catalog::Catalog;
use tier0_description::{Description, DriveDescription};
use tier0_plan::{Lanes, PoolDrives};
use tier0_units::SectorCount;
use uuid::Uuid;

use super::create::{check_no_log, check_unused, is_to_be_made, memory_among_others, open_free, plan};
use super::identity::check_distinct;
use super::layout::PoolLayout;
use super::{Medium, cores::cores_of};
use crate::ArrayError;
use crate::engine::new_state;
use crate::simulated::ModelShelf;

/// What a creation would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rehearsal {
    /// Cores that the array would run on.
    pub cores: usize,
    /// The layout of its pools.
    pub pools: Vec<PoolLayout>,
    /// Drives whose files would be made.
    pub files_to_make: Vec<String>,
    /// Drives that hold something, which is overwritten only where that is agreed to.
    pub overwrites: Vec<HeldDrive>,
}

/// A drive that holds something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldDrive {
    /// Its name.
    pub drive: String,
    /// What a creation would say of it: the fact and the remedy.
    pub text: String,
}

/// Whether all drives of a description are models without a place for data: such an array runs in virtual time alone.
pub fn is_virtual(description: &Description) -> bool {
    description.drives.iter().all(|drive| drive.path.is_none() && drive.ram.is_none())
}

/// What [`create`](super::create()) would do with this description. Arrays in memory and of modelled drives, which nothing
/// creates, are laid out too, as they would be served or simulated.
///
/// # Errors
/// Why `create` would refuse it, other than for what drives hold.
pub fn rehearse_creation(description: &Description) -> Result<Rehearsal, ArrayError> {
    if is_virtual(description) {
        return simulated(description);
    }
    check_distinct(&description.drives)?;
    if description.drives.iter().all(|drive| drive.path.is_none()) {
        return in_memory(description);
    }
    if let Some(ram) = description.drives.iter().find(|drive| drive.path.is_none() && drive.ram.is_some()) {
        return Err(memory_among_others(ram));
    }
    let mut media: Vec<Option<Arc<Medium>>> = Vec::new();
    for (number, drive) in description.drives.iter().enumerate() {
        media.push(if is_to_be_made(drive) { None } else { Some(Arc::new(open_free(drive, number)?)) });
    }
    let (cores, states) = plan(description, &media)?;
    let to_make = description.drives.iter().zip(&media).filter(|(_, medium)| medium.is_none());
    Ok(Rehearsal {
        cores,
        pools: states.iter().map(PoolLayout::of).collect(),
        files_to_make: to_make.map(|(drive, _)| drive.name.clone()).collect(),
        overwrites: held(description, &media)?,
    })
}

/// What the drives hold.
///
/// # Errors
/// A drive that fails.
fn held(description: &Description, media: &[Option<Arc<Medium>>]) -> Result<Vec<HeldDrive>, ArrayError> {
    let mut held = Vec::new();
    for medium in media.iter().flatten() {
        match check_unused(&[Some(medium.clone())], Some(&description.name)) {
            Ok(()) => {}
            Err(error) if error.is_about_content() => {
                held.push(HeldDrive { drive: medium.name().to_owned(), text: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(held)
}

fn in_memory(description: &Description) -> Result<Rehearsal, ArrayError> {
    check_no_log(description)?;
    let cores = cores_of(description, std::iter::empty())?;
    let sizes = description.drives.iter().map(memory_sectors).collect::<Result<Vec<u64>, _>>()?;
    laid_out(description, &sizes, cores)
}

/// Sectors of a drive in memory, which its model may limit.
fn memory_sectors(drive: &DriveDescription) -> Result<u64, ArrayError> {
    let size = SectorCount::in_bytes(drive.ram.unwrap_or_default());
    match &drive.model {
        Some(id) => Ok(size.min(crate::models::Model::of(&Catalog::embedded(), id)?.sectors()).0),
        None => Ok(size.0),
    }
}

fn simulated(description: &Description) -> Result<Rehearsal, ArrayError> {
    let mut shelf = ModelShelf::default();
    shelf.prepare(&Catalog::embedded(), description)?;
    laid_out(description, &shelf.sectors_of(description)?, 1)
}

/// The layout on drives of these sizes, which hold nothing.
fn laid_out(description: &Description, sizes: &[u64], cores: usize) -> Result<Rehearsal, ArrayError> {
    let pools = (0..description.pools.len()).map(|number| {
        let own = PoolDrives::of(&description.pools[number]).all.iter().map(|place| sizes[*place]).collect();
        let state = new_state(description, number, own, (cores, Lanes::PerGroup), Uuid::new_v4)?;
        Ok(PoolLayout::of(&state))
    });
    let pools = pools.collect::<Result<Vec<_>, ArrayError>>()?;
    Ok(Rehearsal { cores, pools, files_to_make: Vec::new(), overwrites: Vec::new() })
}
