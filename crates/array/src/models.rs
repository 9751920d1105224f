//! Modelled drives from the catalogue's entries.

use std::sync::Arc;

use tier0_catalog::{Catalog, DriveSpec};
use tier0_drive::disk::{DiskModel, DiskParameters, Geometry};
use tier0_drive::flash::{FlashModel, FlashParameters, Precondition};
use tier0_drive::{Content, DiskDrive, DriveHandle, FlashDrive, NvramDrive, NvramModel};
use tier0_units::{Nanos, SectorCount};
use tier0_world::World;

use crate::ArrayError;

/// A kind of modelled drive, ready to make any number of them; preconditioning is done once.
#[derive(Clone)]
pub struct Model(Kind);

#[derive(Clone)]
enum Kind {
    Disk(Arc<Geometry>, SectorCount),
    Flash(Box<FlashModel>),
    Nvram(NvramModel),
}

impl Model {
    /// The model of a catalogue entry, `id` or `id@calibration`.
    ///
    /// # Errors
    /// When the catalogue has no such drive, or what it says of it makes no model.
    pub fn of(catalog: &Catalog, reference: &str) -> Result<Model, ArrayError> {
        let unusable = |fact: String| ArrayError::Unusable { drive: reference.to_owned(), fact };
        let spec = catalog.drive_by_reference(reference).map_err(|unknown| unusable(unknown.to_string()))?;
        match &spec {
            DriveSpec::Disk(disk) => {
                let parameters =
                    DiskParameters::try_from(&**disk).map_err(|error| unusable(error.to_string()))?;
                let geometry = Geometry::new(parameters).map_err(|error| unusable(error.to_string()))?;
                let capacity = SectorCount(disk.parameters.capacity_sectors()).min(geometry.sectors());
                Ok(Model(Kind::Disk(geometry, capacity)))
            }
            DriveSpec::Flash(flash) => {
                let parameters =
                    FlashParameters::try_from(&**flash).map_err(|error| unusable(error.to_string()))?;
                let mut model =
                    FlashModel::new(parameters, 0).map_err(|error| unusable(error.to_string()))?;
                model.precondition(Precondition::default());
                Ok(Model(Kind::Flash(Box::new(model))))
            }
            DriveSpec::Nvram(nvram) => Ok(Model(Kind::Nvram(NvramModel::from(&**nvram)))),
        }
    }

    /// Its capacity.
    pub fn sectors(&self) -> SectorCount {
        match &self.0 {
            Kind::Disk(_, capacity) => *capacity,
            Kind::Flash(model) => SectorCount::in_bytes(model.parameters().capacity),
            Kind::Nvram(model) => model.capacity(),
        }
    }

    /// Whether it is a write cache, which exists in virtual time alone.
    pub fn is_nvram(&self) -> bool {
        matches!(self.0, Kind::Nvram(_))
    }

    /// A drive of this kind; `number` sets its spindle's phase. A write cache offers `nvram_sectors`.
    pub fn drive(
        &self,
        world: &World,
        name: &str,
        number: u64,
        content: Content,
        nvram_sectors: SectorCount,
    ) -> DriveHandle {
        match &self.0 {
            Kind::Nvram(model) => {
                DriveHandle::new(NvramDrive::new(world, name, model.clone(), nvram_sectors))
            }
            Kind::Disk(geometry, capacity) => {
                let phase = world.random(0x0d15_c000 ^ number).below(geometry.revolution().0.max(1));
                let model = DiskModel::new(geometry.clone(), Nanos(phase));
                DriveHandle::new(DiskDrive::new(world, name, model, *capacity, content))
            }
            Kind::Flash(model) => DriveHandle::new(FlashDrive::new(
                world,
                name,
                model.clone_with_seed(world.random(number).bits()),
                content,
            )),
        }
    }
}
