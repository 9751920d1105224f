//! From a configuration to its array in a world: the engine's own array, with the path of the lab around it.

use std::rc::Rc;

use tier0_array::description::{DriveDescription, PoolDescription, VolumeDescription};
use tier0_array::engine::Born;
use tier0_array::simulated::build;
use tier0_array::{Description, Volume};
use tier0_catalog::{ArraySpec, DriveSpec};
use tier0_drive::flash::FlashModel;
use tier0_drive::{Content, DriveHandle, FlashDrive};
use tier0_raid::layout::{Layout, RaidConfig};
use tier0_units::{ByteCount, SectorCount};
use tier0_world::VirtualRuntime;

use super::Bench;
use crate::LabError;
use crate::path::{BackEnd, FrontEnd, FrontEndCosts, Group, Member, WriteBuffer};
use crate::study::{Configuration, Setup};

/// Sizes of volumes are whole multiples of this.
const VOLUME_STEP: ByteCount = ByteCount::mib(1);

impl Bench {
    fn array(&self, setup: &Setup) -> Result<&ArraySpec, LabError> {
        Ok(self.catalog.array(&setup.array)?)
    }

    /// The array of one member, as the engine takes it.
    pub(super) fn describe(&self, configuration: &Configuration) -> Result<Description, LabError> {
        let setup = &configuration.setup;
        let array = &self.array(setup)?.parameters;
        let drive = self.catalog.drive_by_reference(&setup.drive)?;
        let raid = RaidConfig {
            level: setup.raid,
            set_size: setup.set_size as usize,
            stripe_unit: SectorCount::in_bytes(ByteCount((array.stripe_unit_kib.value * 1024.0) as u64)),
            raid50_groups: setup.groups as usize,
        };
        let layout = Layout::new(&raid)
            .map_err(|source| LabError::Raid { configuration: configuration.id.clone(), source })?;
        let named = |n: u32| DriveDescription {
            name: format!("drive{n}"),
            path: None,
            size: None,
            ram: None,
            model: Some(setup.drive.clone()),
        };
        let size = volume_size(setup, &drive, &layout);
        let volume = |n: u32| VolumeDescription {
            name: format!("volume{n}"),
            pool: 0,
            sectors: SectorCount::in_bytes(size),
            thin: false,
            write_cache: None,
        };
        Ok(Description {
            name: configuration.id.clone(),
            cores: None,
            keep_awake: false,
            pause_timeout: tier0_units::Nanos::from_secs(120),
            witness: None,
            search: Vec::new(),
            drives: (0..setup.drives).map(named).collect(),
            pools: vec![PoolDescription {
                name: "pool".to_owned(),
                drives: (0..setup.drives as usize).collect(),
                raid,
                chunklet_sectors: None,
                extent_sectors: None,
                spare_drives: 0,
                checksums: false,
                log: false,
                log_sectors: None,
                log_drives: Vec::new(),
                space: Default::default(),
            }],
            volumes: (0..setup.volumes).map(volume).collect(),
            listen: Vec::new(),
            socket_access: Default::default(),
            control_access: Default::default(),
            control: None,
            warnings: Vec::new(),
        })
    }

    /// The array in a world, with its front end, write buffer and back end.
    pub(super) fn assemble(
        &self,
        runtime: &VirtualRuntime,
        description: &Description,
        configuration: &Configuration,
    ) -> Result<Group<Volume>, LabError> {
        let (world, setup) = (runtime.world(), &configuration.setup);
        let array = &self.array(setup)?.parameters;
        let link = &self.catalog.link(&array.front_end_link.value)?.parameters;
        let drive = self.catalog.drive_by_reference(&setup.drive)?;
        let costs = FrontEndCosts::of(array, link, matches!(drive, DriveSpec::Flash(_)));
        let retimed = self.retimed(configuration, &drive)?;
        let pages = setup.destage_pages as usize;
        let member = |_| {
            let destaging = setup.write_buffer.map(|_| pages as u64);
            let back_end = BackEnd::new(world, array, setup.drives as usize, destaging);
            let built = build(world, description, &self.shelf, Born::Full, |number, drive| {
                let retimed = retimed.as_ref().map(|model| {
                    let model = model.clone_with_seed(number as u64);
                    DriveHandle::new(FlashDrive::new(
                        world,
                        &drive.info().name,
                        model,
                        Content::memory(world),
                    ))
                });
                back_end.attach(number, retimed.unwrap_or(drive))
            });
            let built = runtime.run(built).map_err(|source| LabError::Array {
                configuration: configuration.id.clone(),
                source: Box::new(source),
            })?;
            let volumes: Rc<[Volume]> = built.volumes.into();
            let buffer = setup
                .write_buffer
                .map(|size| WriteBuffer::new(world, volumes.clone(), SectorCount::in_bytes(size).0, pages));
            Ok(Member { front_end: FrontEnd::new(world, costs), back_end, volumes, buffer })
        };
        Ok(Group::new((0..setup.members).map(member).collect::<Result<_, LabError>>()?))
    }

    /// The model that stands in for the catalogue's, where the setup changes it.
    fn retimed(
        &self,
        configuration: &Configuration,
        drive: &DriveSpec,
    ) -> Result<Option<FlashModel>, LabError> {
        let (Some(read_us), DriveSpec::Flash(flash)) = (configuration.setup.flash_read_us, drive) else {
            return Ok(None);
        };
        let model = self.retimed.model(flash, read_us);
        model.map(Some).map_err(|source| LabError::Flash { configuration: configuration.id.clone(), source })
    }
}

/// The size of a volume: given, or the used share of the drives' data space over the volumes.
fn volume_size(setup: &Setup, drive: &DriveSpec, layout: &Layout) -> ByteCount {
    if let Some(size) = setup.volume_size {
        return size;
    }
    let data_share = layout.data_units_per_row() as f64 / layout.columns() as f64;
    let space = drive.capacity().bytes().0 as f64 * f64::from(setup.drives) * data_share;
    let used = space * setup.used_percent.unwrap_or(0.0) / 100.0 / f64::from(setup.volumes);
    ByteCount((used as u64 / VOLUME_STEP.0).max(1) * VOLUME_STEP.0)
}
