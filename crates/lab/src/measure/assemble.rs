//! From a configuration to its array in a world: the engine's own array, with the path of the lab around it.

use std::rc::Rc;

use tier0_array::Volume;
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::build;
use tier0_catalog::{ArraySpec, DriveSpec};
use tier0_description::{
    Description, DriveDescription, FlashCacheDescription, GroupDescription, PoolDescription,
    VolumeDescription,
};
use tier0_raid::layout::{Layout, RaidConfig};
use tier0_units::{ByteCount, SectorCount};
use tier0_world::VirtualRuntime;

use super::Bench;
use crate::LabError;
use crate::path::{BackEnd, FrontEnd, FrontEndCosts, Group, Member, Usage};
use crate::study::{Configuration, Setup};
use crate::work::Counters;

/// Sizes of volumes are whole multiples of this.
const VOLUME_STEP: ByteCount = ByteCount::mib(1);

/// Arrays that share a load, in a world.
pub(super) struct Assembled {
    pub(super) group: Rc<Group<Volume>>,
    engines: Vec<Engine>,
}

impl Assembled {
    /// What the arrays have done so far.
    pub(super) fn counters(&self) -> impl Future<Output = Counters> + use<> {
        let (group, engines) = (self.group.clone(), self.engines.clone());
        async move {
            let mut counters = Counters::default();
            for (member, engine) in group.members().iter().zip(&engines) {
                counters.add(&engine.io_report().await, &member.back_end.drive_stats());
            }
            counters
        }
    }
}

impl Bench {
    fn array(&self, setup: &Setup) -> Result<&ArraySpec, LabError> {
        Ok(self.catalog.array(&setup.array)?)
    }

    /// What a configuration can hold: the drives' data space, without redundancy, of all members.
    ///
    /// # Errors
    /// [`LabError`] where the configuration is impossible.
    pub fn usable(&self, configuration: &Configuration) -> Result<ByteCount, LabError> {
        let setup = &configuration.setup;
        let drive = self.catalog.drive_by_reference(&setup.drive)?;
        let space = data_space(setup, &drive, &self.layout(configuration)?);
        Ok(ByteCount((space * f64::from(setup.members)) as u64))
    }

    /// What the drives of a configuration draw with this usage, in watts: between idle and under load, by the time in which
    /// they are at work. Controllers and enclosures are not in it.
    ///
    /// # Errors
    /// [`LabError`] where the drive is not known.
    pub fn drive_watts(&self, configuration: &Configuration, usage: &Usage) -> Result<f64, LabError> {
        let setup = &configuration.setup;
        let (idle, active) = match self.catalog.drive_by_reference(&setup.drive)? {
            DriveSpec::Disk(disk) => (disk.parameters.idle_w.value, disk.parameters.active_w.value),
            DriveSpec::Flash(flash) => (flash.parameters.idle_w.value, flash.parameters.active_w.value),
            DriveSpec::Nvram(_) => return Ok(0.0),
        };
        let busy = usage.drives_busy().clamp(0.0, 1.0);
        Ok(f64::from(setup.drives_in_all()) * (idle + (active - idle) * busy))
    }

    fn layout(&self, configuration: &Configuration) -> Result<Layout, LabError> {
        Layout::new(&self.raid(configuration)?)
            .map_err(|source| LabError::Raid { configuration: configuration.id.clone(), source })
    }

    fn raid(&self, configuration: &Configuration) -> Result<RaidConfig, LabError> {
        let setup = &configuration.setup;
        let unit_kib = self.array(setup)?.parameters.stripe_unit_kib.value;
        Ok(RaidConfig {
            level: setup.raid,
            set_size: setup.set_size as usize,
            stripe_unit: SectorCount::in_bytes(ByteCount((unit_kib * 1024.0) as u64)),
            raid50_groups: setup.groups as usize,
        })
    }

    /// The array of one member, as the engine takes it.
    pub(crate) fn describe(&self, configuration: &Configuration) -> Result<Description, LabError> {
        let setup = &configuration.setup;
        let array = &self.array(setup)?.parameters;
        let drive = self.catalog.drive_by_reference(&setup.drive)?;
        let (raid, layout) = (self.raid(configuration)?, self.layout(configuration)?);
        let named = |n: u32| DriveDescription {
            name: format!("drive{n}"),
            path: None,
            size: None,
            ram: None,
            model: Some(setup.drive.clone()),
            class: None,
        };
        let mut drives: Vec<DriveDescription> = (0..setup.drives).map(named).collect();
        let mut log_drives = Vec::new();
        if setup.write_cache.is_some() {
            log_drives.push(drives.len());
            let model = Some(array.write_cache.value.clone());
            drives.push(DriveDescription { name: "cache".to_owned(), model, ..named(0) });
        }
        let size = volume_size(setup, &drive, &layout);
        let volume = |n: u32| VolumeDescription {
            name: format!("volume{n}"),
            pool: 0,
            sectors: SectorCount::in_bytes(size),
            thin: false,
            write_cache: None,
            read_cache: None,
            group: None,
        };
        Ok(Description {
            name: configuration.id.clone(),
            cores: None,
            memory: None,
            keep_awake: false,
            pause_timeout: tier0_units::Nanos::from_secs(120),
            witness: None,
            search: Vec::new(),
            drives,
            pools: vec![PoolDescription {
                name: "pool".to_owned(),
                drives: (0..setup.drives as usize).collect(),
                groups: vec![GroupDescription {
                    name: String::new(),
                    drives: (0..setup.drives as usize).collect(),
                    raid,
                    spare_drives: 0,
                }],
                chunklet_sectors: None,
                extent_sectors: None,
                checksums: false,
                log: setup.write_cache.is_some(),
                log_sectors: setup.write_cache.map(|size| SectorCount::in_bytes(size).0),
                log_drives,
                space: Default::default(),
                read_cache: None,
                write_cache: None,
                read_cache_policy: None,
                flash_cache: FlashCacheDescription::default(),
            }],
            volumes: (0..setup.volumes).map(volume).collect(),
            listen: Vec::new(),
            socket_access: Default::default(),
            control_access: Default::default(),
            events: None,
            control: None,
            warnings: Vec::new(),
        })
    }

    /// The array in a world, with its front end and back end.
    pub(super) fn assemble(
        &self,
        runtime: &VirtualRuntime,
        description: &Description,
        configuration: &Configuration,
    ) -> Result<Assembled, LabError> {
        let (world, setup) = (runtime.world(), &configuration.setup);
        let array = &self.array(setup)?.parameters;
        let link = &self.catalog.link(&array.front_end_link.value)?.parameters;
        let drive = self.catalog.drive_by_reference(&setup.drive)?;
        let costs = FrontEndCosts::of(array, link, matches!(drive, DriveSpec::Flash(_)));
        let drives = setup.drives as usize;
        let (mut members, mut engines) = (Vec::new(), Vec::new());
        for _ in 0..setup.members {
            let back_end = BackEnd::new(world, array, drives);
            // The write cache is the controllers' own and lies on no bus.
            let attach = |number, drive| if number < drives { back_end.attach(number, drive) } else { drive };
            let built = runtime.run(build(world, description, &self.shelf, Born::Full, attach));
            let built = built.map_err(|source| LabError::Array {
                configuration: configuration.id.clone(),
                source: Box::new(source),
            })?;
            let front_end = FrontEnd::new(world, costs);
            members.push(Member { front_end, back_end, volumes: built.volumes.into() });
            engines.push(built.engine);
        }
        Ok(Assembled { group: Rc::new(Group::new(members)), engines })
    }
}

/// Bytes that one member's drives have for data.
fn data_space(setup: &Setup, drive: &DriveSpec, layout: &Layout) -> f64 {
    let data_share = layout.data_units_per_row() as f64 / layout.columns() as f64;
    drive.capacity().bytes().0 as f64 * f64::from(setup.drives) * data_share
}

/// The size of a volume: given, or the used share of the drives' data space over the volumes.
fn volume_size(setup: &Setup, drive: &DriveSpec, layout: &Layout) -> ByteCount {
    if let Some(size) = setup.volume_size {
        return size;
    }
    let used = data_space(setup, drive, layout) * setup.used_percent.unwrap_or(0.0)
        / 100.0
        / f64::from(setup.volumes);
    ByteCount((used as u64 / VOLUME_STEP.0).max(1) * VOLUME_STEP.0)
}
