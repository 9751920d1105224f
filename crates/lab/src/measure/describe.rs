//! From a configuration to the description of its array, as the engine takes it: drives, pools, groups of sets, volumes and
//! their switches.
//!
//! Groups of sets are one pool, and their write cache is the pool's log. Where they share one write cache as in an array with
//! a cache in its storage processors, volumes that do not use it write past it: their groups are a pool of their own, without
//! a log. Under the product's lanes such volumes pass their own lane.

use tier0_catalog::{ArraySpec, DriveSpec};
use tier0_description::{
    Description, DriveDescription, FlashCacheDescription, GroupDescription, PoolDescription,
    VolumeDescription,
};
use tier0_raid::layout::{Layout, RaidConfig};
use tier0_units::{ByteCount, Nanos, SectorCount, WriteCache};

use super::Bench;
use crate::LabError;
use crate::study::{Configuration, SetGroup, Setup, Switches};

/// Sizes of volumes are whole multiples of this.
const VOLUME_STEP: ByteCount = ByteCount::mib(1);

/// A group of sets of a configuration, with what the catalogue says of its drives.
pub(super) struct Part {
    pub(super) sets: SetGroup,
    pub(super) drive: DriveSpec,
    raid: RaidConfig,
    layout: Layout,
    /// The switches of its volumes.
    volumes: Switches,
    /// What these and the array's leave on.
    both: Switches,
}

impl Part {
    /// Whether its writes go into a write cache and are acknowledged there.
    pub(super) fn writes_are_cached(&self, setup: &Setup) -> bool {
        setup.caches.write.is_some() && self.both.write
    }

    /// Bytes that one member's drives have for data.
    pub(super) fn data_space(&self) -> f64 {
        let data_share = self.layout.data_units_per_row() as f64 / self.layout.columns() as f64;
        self.drive.capacity().bytes().0 as f64 * f64::from(self.sets.drives) * data_share
    }

    /// The size of a volume: given, or the used share of the drives' data space over the volumes.
    fn volume_size(&self) -> ByteCount {
        if let Some(size) = self.sets.volume_size {
            return size;
        }
        let share = self.sets.used_percent.unwrap_or(0.0) / 100.0;
        let used = self.data_space() * share / f64::from(self.sets.volumes);
        ByteCount((used as u64 / VOLUME_STEP.0).max(1) * VOLUME_STEP.0)
    }

    /// What its volumes are called.
    pub(super) fn volume_names(&self, is_measured: bool) -> impl Iterator<Item = String> {
        let stem = if is_measured { "volume".to_owned() } else { format!("{}-", self.sets.name) };
        (0..self.sets.volumes).map(move |n| format!("{stem}{n}"))
    }
}

/// A pool that is to be: the places of its groups among the parts, and whether it has a log.
struct PoolPlan {
    name: &'static str,
    parts: Vec<usize>,
    has_log: bool,
}

impl Bench {
    pub(super) fn array(&self, setup: &Setup) -> Result<&ArraySpec, LabError> {
        Ok(self.catalog.array(&setup.array)?)
    }

    /// The groups of sets of a configuration: the one that is measured, then its neighbours.
    pub(super) fn parts(&self, configuration: &Configuration) -> Result<Vec<Part>, LabError> {
        let setup = &configuration.setup;
        let unit_kib = self.array(setup)?.parameters.stripe_unit_kib.value;
        let part = |sets: SetGroup| {
            let drive = self.catalog.drive_by_reference(&sets.drive)?;
            let raid = RaidConfig {
                level: sets.raid,
                set_size: sets.set_size as usize,
                stripe_unit: SectorCount::in_bytes(ByteCount((unit_kib * 1024.0) as u64)),
                raid50_groups: sets.raid50_groups as usize,
            };
            let layout = Layout::new(&raid)
                .map_err(|source| LabError::Raid { configuration: configuration.id.clone(), source })?;
            let volumes = setup.volume_switches(sets.caches, &drive, &self.catalog)?;
            Ok(Part { both: setup.array_switches().and(volumes), sets, drive, raid, layout, volumes })
        };
        setup.set_groups().into_iter().map(part).collect()
    }

    /// The array of one member, as the engine takes it.
    pub(crate) fn describe(&self, configuration: &Configuration) -> Result<Description, LabError> {
        let setup = &configuration.setup;
        let array = &self.array(setup)?.parameters;
        let parts = self.parts(configuration)?;
        let drive = |name: String, model: &str| DriveDescription {
            name,
            path: None,
            size: None,
            ram: None,
            model: Some(model.to_owned()),
            class: None,
        };
        let mut drives = Vec::new();
        let mut places = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let stem = if number == 0 { "drive".to_owned() } else { format!("{}-", part.sets.name) };
            places.push((drives.len()..drives.len() + part.sets.drives as usize).collect::<Vec<usize>>());
            drives.extend((0..part.sets.drives).map(|n| drive(format!("{stem}{n}"), &part.sets.drive)));
        }
        let plans = plan_pools(setup, &parts);
        let mut log_drives = Vec::new();
        if plans.iter().any(|pool| pool.has_log) {
            log_drives.push(drives.len());
            drives.push(drive("cache".to_owned(), &array.write_cache.value));
        }
        let mut flash_cache = FlashCacheDescription::default();
        if let Some(flash) = &setup.caches.flash {
            flash_cache = FlashCacheDescription {
                bytes: Some(flash.size),
                drives: (drives.len()..drives.len() + flash.drives as usize).collect(),
                writes_per_day: flash.writes_per_day,
            };
            drives.extend((0..flash.drives).map(|n| drive(format!("flash{n}"), &flash.drive)));
        }
        // A single group needs no name.
        let name_of = |part: &Part| if parts.len() > 1 { part.sets.name.clone() } else { String::new() };
        let (mut pools, mut volumes) = (Vec::new(), Vec::new());
        for (number, plan) in plans.iter().enumerate() {
            let group = |at: &usize| GroupDescription {
                name: name_of(&parts[*at]),
                drives: places[*at].clone(),
                raid: parts[*at].raid,
                spare_drives: 0,
            };
            for at in &plan.parts {
                volumes.extend(describe_volumes(&parts[*at], *at == 0, number, plan, name_of(&parts[*at])));
            }
            pools.push(PoolDescription {
                name: plan.name.to_owned(),
                drives: plan.parts.iter().flat_map(|at| places[*at].clone()).collect(),
                groups: plan.parts.iter().map(group).collect(),
                chunklet_sectors: None,
                extent_sectors: None,
                checksums: false,
                log: plan.has_log,
                log_sectors: setup
                    .caches
                    .write
                    .filter(|_| plan.has_log)
                    .map(|size| SectorCount::in_bytes(size).0),
                log_drives: if plan.has_log { log_drives.clone() } else { Vec::new() },
                space: Default::default(),
                read_cache: reads_of(setup, plan, &parts),
                write_cache: (plan.has_log && !setup.array_switches().write).then_some(false),
                read_cache_policy: None,
                // Only arrays of a single pool have one.
                flash_cache: flash_cache.clone(),
            });
        }
        Ok(Description {
            name: configuration.id.clone(),
            cores: None,
            memory: None,
            keep_awake: false,
            pause_timeout: Nanos::from_secs(120),
            witness: None,
            search: Vec::new(),
            drives,
            pools,
            volumes,
            listen: Vec::new(),
            socket_access: Default::default(),
            control_access: Default::default(),
            events: None,
            control: None,
            warnings: Vec::new(),
        })
    }
}

/// The pools of an array; the one with the measured group's write cache is the first, if there is one.
fn plan_pools(setup: &Setup, parts: &[Part]) -> Vec<PoolPlan> {
    if !setup.caches.write_is_shared {
        let parts = (0..parts.len()).collect();
        return vec![PoolPlan { name: "pool", parts, has_log: setup.caches.write.is_some() }];
    }
    let places = |cached: bool| {
        let own = parts.iter().enumerate().filter(|(_, part)| part.writes_are_cached(setup) == cached);
        own.map(|(place, _)| place).collect::<Vec<usize>>()
    };
    let plans = [
        PoolPlan { name: "pool", parts: places(true), has_log: true },
        PoolPlan { name: "past-cache", parts: places(false), has_log: false },
    ];
    plans.into_iter().filter(|plan| !plan.parts.is_empty()).collect()
}

/// The read switch of a pool: off where the array's is, or where no volume of the pool would use it, so that memory is not set
/// aside for it.
fn reads_of(setup: &Setup, plan: &PoolPlan, parts: &[Part]) -> Option<bool> {
    let is_used = plan.parts.iter().any(|at| parts[*at].volumes.read);
    let is_on = setup.array_switches().read && (is_used || setup.caches.read.is_none());
    (!is_on).then_some(false)
}

fn describe_volumes(
    part: &Part,
    is_measured: bool,
    pool: usize,
    plan: &PoolPlan,
    group: String,
) -> impl Iterator<Item = VolumeDescription> {
    let sectors = SectorCount::in_bytes(part.volume_size());
    let write_cache = (plan.has_log && !part.volumes.write).then_some(WriteCache::Off);
    let read_cache = (!part.volumes.read).then_some(false);
    let group = Some(group).filter(|group| !group.is_empty());
    part.volume_names(is_measured).map(move |name| VolumeDescription {
        name,
        pool,
        sectors,
        thin: false,
        write_cache,
        read_cache,
        place: None,
        group: group.clone(),
        ceilings: Default::default(),
        weight: None,
    })
}
