//! An array of a description in virtual time, under a load: its drives are the catalogue's models.
//!
//! Nothing real is opened or written.

use std::rc::Rc;

use tier0_array::Volume;
use tier0_array::engine::Born;
use tier0_array::simulated::{ModelShelf, SimulatedOptions, build};
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::ByteCount;
use tier0_workload::spec::LoadSpec;
use tier0_workload::stats::{LoadReport, Progress};
use tier0_world::{PayloadWidth, VirtualRuntime};

use crate::driving::{REFRESH, drive};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::unwritten;

/// An array ready to be simulated any number of times.
pub(crate) struct Twin {
    description: Description,
    shelf: ModelShelf,
    read_cache: Option<ByteCount>,
}

impl Twin {
    /// Prepares the models that the array's drives need. With a size for its read cache, what was read stays in memory.
    pub(crate) fn new(
        catalog: &Catalog,
        description: Description,
        read_cache: Option<ByteCount>,
    ) -> Result<Twin, Failure> {
        let mut shelf = ModelShelf::default();
        shelf.prepare(catalog, &description)?;
        Ok(Twin { description, shelf, read_cache })
    }

    /// Runs `load` on the volume called `volume`, or on the first, of a fresh array.
    pub(crate) fn load(
        &self,
        volume: Option<&str>,
        load: LoadSpec,
        signals: &Signals,
        listener: impl FnMut(&Progress) + 'static,
    ) -> Result<LoadReport, Failure> {
        let width = if load.verify.is_some() { PayloadWidth::REAL } else { PayloadWidth::NONE };
        let (runtime, volume) = self.build(volume, load.seed, width)?;
        let world = runtime.world().clone();
        let signals = signals.clone();
        runtime.run(async move {
            unwritten::tell(&volume, &load, "leave thin out of the array file: thick volumes are full").await;
            drive(&world, Rc::new(volume), load, &signals, REFRESH, listener).await
        })
    }

    /// A fresh array in a world of its own, its volumes full, and the volume called `volume` or its first.
    pub(crate) fn build(
        &self,
        volume: Option<&str>,
        seed: u64,
        width: PayloadWidth,
    ) -> Result<(VirtualRuntime, Volume), Failure> {
        let runtime = VirtualRuntime::new(seed, width);
        let options = SimulatedOptions { read_cache: self.read_cache, ..Born::Full.into() };
        let building = build(runtime.world(), &self.description, &self.shelf, options, |_, drive| drive);
        let array = runtime.run(building)?;
        let volume = self.choose(array.volumes, volume)?;
        Ok((runtime, volume))
    }

    fn choose(&self, volumes: Vec<Volume>, name: Option<&str>) -> Result<Volume, Failure> {
        let array = &self.description.name;
        let names: Vec<String> = volumes.iter().map(|volume| volume.name().to_string()).collect();
        let chosen = volumes.into_iter().find(|volume| name.is_none_or(|name| *volume.name() == *name));
        chosen.ok_or_else(|| {
            Failure::Input(match name {
                Some(name) => {
                    format!("array {array} has no volume {name:?}; it has {}", names.join(", "))
                }
                None => format!("array {array} has no volume; add a [[volume]] to its file"),
            })
        })
    }
}
