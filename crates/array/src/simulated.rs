//! An array of modelled drives in virtual time: the same engine, no threads.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use tier0_catalog::Catalog;
use tier0_description::{Description, DriveDescription};
use tier0_drive::{Content, DriveHandle};
pub use tier0_plan::Lanes;
use tier0_units::{ByteCount, SectorCount};
use tier0_world::World;

use crate::born::Born;
use crate::engine::{self, Engine};
use crate::models::Model;
use crate::{ArrayError, Volume};

/// Modelled drives by catalogue reference, preconditioned once and shared by all simulations.
#[derive(Clone, Default)]
pub struct ModelShelf(BTreeMap<String, Model>);

impl ModelShelf {
    /// Makes the models that `description` needs.
    pub fn prepare(&mut self, catalog: &Catalog, description: &Description) -> Result<(), ArrayError> {
        for drive in &description.drives {
            let reference = drive.model.as_ref().ok_or_else(|| ArrayError::Unusable {
                drive: drive.name.clone(),
                fact: "has no model, which virtual time needs; add model = \"…\", \"tier0 catalog list\" shows them".into(),
            })?;
            if !self.0.contains_key(reference) {
                self.0.insert(reference.clone(), Model::of(catalog, reference)?);
            }
        }
        Ok(())
    }

    /// The sectors of each drive of a description, in order, for which it was prepared.
    ///
    /// # Errors
    /// A drive without such a model.
    pub(crate) fn sectors_of(&self, description: &Description) -> Result<Vec<u64>, ArrayError> {
        let nvram_sectors = self.nvram_sectors(description).0;
        let sectors = |drive: &DriveDescription| {
            let model = self.model_of(drive)?;
            Ok(if model.is_nvram() { nvram_sectors } else { model.sectors().0 })
        };
        description.drives.iter().map(sectors).collect()
    }

    /// What a write cache offers: a pool keeps its metadata at the front of every drive, and of a write cache they take nothing.
    fn nvram_sectors(&self, description: &Description) -> SectorCount {
        let models = description.drives.iter().filter_map(|drive| self.0.get(drive.model.as_deref()?));
        let others = models.filter(|model| !model.is_nvram()).map(|model| model.sectors());
        others.min().unwrap_or_default()
    }

    fn model_of(&self, drive: &DriveDescription) -> Result<&Model, ArrayError> {
        self.0.get(drive.model.as_deref().unwrap_or_default()).ok_or_else(|| ArrayError::Unusable {
            drive: drive.name.clone(),
            fact: "has a model that was not prepared".into(),
        })
    }
}

/// How an array in virtual time is, beside what its description says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedOptions {
    /// What its volumes hold.
    pub born: Born,
    /// Memory for clean pages, beside the memory for dirty ones; without it nothing that was read is kept. Pools whose read cache
    /// is not switched off share it in equal parts.
    pub read_cache: Option<ByteCount>,
    /// How the groups of sets of a pool share its write cache.
    pub lanes: Lanes,
}

impl From<Born> for SimulatedOptions {
    /// Without a read cache, and with a lane for each group.
    fn from(born: Born) -> SimulatedOptions {
        SimulatedOptions { born, read_cache: None, lanes: Lanes::PerGroup }
    }
}

/// An array in virtual time, whose metadata live only as long as the world.
pub struct SimulatedArray {
    /// The array.
    pub engine: Engine,
    /// Its volumes, in the order of pools and of the description.
    pub volumes: Vec<Volume>,
    /// Its drives, in the order of the description.
    pub drives: Vec<DriveHandle>,
}

/// An array that is being put together.
pub type Building = Pin<Box<dyn Future<Output = Result<SimulatedArray, ArrayError>>>>;

/// Puts together the array of `description` in `world`; every drive needs a model of `shelf`. `wrap` may put something
/// around each drive: a bus, faults.
pub fn build(
    world: &World,
    description: &Description,
    shelf: &ModelShelf,
    options: impl Into<SimulatedOptions>,
    wrap: impl FnMut(usize, DriveHandle) -> DriveHandle,
) -> Building {
    let drives = match make_drives(world, description, shelf, wrap) {
        Ok(drives) => drives,
        Err(error) => return Box::pin(async { Err(error) }),
    };
    let engine = engine::start_new(world, description, &drives, options.into());
    Box::pin(async move {
        let engine = engine.await?;
        Ok(SimulatedArray { volumes: engine.volumes(), engine, drives })
    })
}

fn make_drives(
    world: &World,
    description: &Description,
    shelf: &ModelShelf,
    mut wrap: impl FnMut(usize, DriveHandle) -> DriveHandle,
) -> Result<Vec<DriveHandle>, ArrayError> {
    let mut drives = Vec::new();
    let nvram_sectors = shelf.nvram_sectors(description);
    for (number, drive) in description.drives.iter().enumerate() {
        let model = shelf.model_of(drive)?;
        let content = Content::memory(world);
        let made = model.drive(world, &drive.name, number as u64, content, nvram_sectors);
        drives.push(wrap(number, made));
    }
    Ok(drives)
}
