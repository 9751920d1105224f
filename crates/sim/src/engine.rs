//! The array itself as the system under test.

use tier0_api::{AdminReply, AdminRequest, DriveState, PoolStatus, VolumePlace};
use tier0_array::engine::{self, Engine, Repartition, StartOptions};
use tier0_array::open::recover::{ByteRange, VolumeLoss, recover_drives};
use tier0_array::{ArrayError, Volume};
use tier0_cache::ReadCacheOptions;
use tier0_description::{
    Description, DriveDescription, FlashCacheDescription, GroupDescription, PoolDescription,
    VolumeDescription,
};
use tier0_drive::DriveHandle;
use tier0_plan::PlanError;
use tier0_policy::PolicyKind;
use tier0_pool::DriveClass;
use tier0_pool::metadata::{Standing, survey};
use tier0_raid::layout::{Layout, RaidConfig, RaidLevel};
use tier0_units::{ByteCount, SECTOR_BYTES, SectorCount, WriteCache};
use tier0_world::World;

use crate::config::SimConfig;
use crate::failure::Failure;
use crate::network::Networked;
use crate::run::{RunReport, run_all};
use crate::shelf::drive_name;
use crate::system::{
    Abilities, Admin, ArrayConfig, LINES_FOUND, Recovered, Running, SecondGroup, Status, System, SystemError,
    name_of,
};

/// The array, on drives of a few MiB: small enough to fill, to scrub and to rebuild within a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Array;

impl System for Array {
    type Running = RunningArray;

    // Whoever runs arrays uses what is compiled of it here.
    fn run(&self, config: &SimConfig) -> Result<RunReport, Box<Failure>> {
        match config.mixture.network {
            true => run_all(&Networked(*self), config),
            false => run_all(self, config),
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            levels: RaidLevel::ALL.to_vec(),
            drives: 1..=9,
            drive_sectors: vec![12 << 11, 16 << 11, 32 << 11],
            block_sectors: vec![1, 1, 8],
            write_caches: vec![WriteCache::Durable, WriteCache::Volatile, WriteCache::Off],
            volumes: 1..=3,
            volume_sectors: 512..=16_384,
            chunklet_sectors: vec![512, 1024, 2048],
            stripe_unit_sectors: vec![8, 16, 32, 128],
            log_sectors: vec![512, 1024, 2048, 4096],
            shards_max: 3,
            thin: true,
            integrity: true,
            scrub: true,
            discard_granule_sectors: 8,
        }
    }

    fn refuses(&self, config: &ArrayConfig) -> Option<String> {
        let names: Vec<String> = (0..config.drives).map(drive_name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let description = match describe(config, &names) {
            Ok(description) => description,
            Err(refused) => return Some(refused.to_string()),
        };
        let checked = engine::check_creatable(&description, config.drive_sectors, config.shards);
        checked.err().filter(is_refusal).map(|error| error.to_string())
    }

    async fn create(
        &self,
        world: &World,
        config: &ArrayConfig,
        drives: Vec<DriveHandle>,
    ) -> Result<(), SystemError> {
        let mut drives = drives;
        drives.sort_by(|one, other| name_of(one).cmp(name_of(other)));
        let names: Vec<&str> = drives.iter().map(name_of).collect();
        let description = describe(config, &names)?;
        match engine::create(world, &description, drives.clone(), config.shards).await {
            Ok(()) => Ok(()),
            Err(error) if is_refusal(&error) => Err(SystemError::Refused(error.to_string())),
            Err(error) => Err(SystemError::Failed(error.to_string())),
        }
    }

    async fn clear(&self, drives: &[DriveHandle]) -> Result<(), SystemError> {
        engine::clear(drives).await.map_err(|error| SystemError::Failed(error.to_string()))
    }

    async fn open(
        &self,
        world: &World,
        config: &ArrayConfig,
        drives: Vec<DriveHandle>,
        without: Vec<String>,
    ) -> Result<RunningArray, SystemError> {
        let options = StartOptions { without, read_cache: read_cache(config) };
        let engine = engine::start(world, drives, &options).await;
        let engine = engine.map_err(|error| SystemError::Refused(error.to_string()))?;
        Ok(RunningArray { engine, chunklet_bytes: config.chunklet_sectors * SECTOR_BYTES })
    }

    async fn called_lost(&self, drives: Vec<DriveHandle>) -> Vec<String> {
        let found = survey(drives).await;
        let lost = found.pools.iter().flat_map(|pool| pool.standing(Standing::Lost));
        lost.map(|(_, member)| member.name.clone()).collect()
    }

    async fn move_to(
        &self,
        world: &World,
        drives: Vec<DriveHandle>,
        shards: usize,
    ) -> Result<bool, SystemError> {
        match engine::repartition(world, drives, shards).await {
            Ok(Repartition::Done) => Ok(true),
            Ok(Repartition::Kept(_)) => Ok(false),
            Err(error) if error.is_input() => Err(SystemError::Refused(error.to_string())),
            Err(error) => Err(SystemError::Failed(error.to_string())),
        }
    }

    async fn recover(
        &self,
        world: &World,
        drives: Vec<DriveHandle>,
        accepts_loss: bool,
    ) -> Result<Recovered, SystemError> {
        let pools = recover_drives(world, drives, &[], accepts_loss).await;
        let mut pools = pools.map_err(|error| SystemError::Failed(error.to_string()))?;
        let pool = pools.pop().ok_or_else(|| SystemError::Refused("there is no pool".to_owned()))?;
        let sectors =
            |range: &ByteRange| range.first_byte / SECTOR_BYTES..range.end_byte.div_ceil(SECTOR_BYTES);
        let of_volume = |loss: &VolumeLoss| {
            let mut ranges: Vec<_> = loss.lost.iter().chain(&loss.stale).map(sectors).collect();
            ranges.sort_by_key(|range| range.start);
            (loss.log_bytes_max == 0 && !loss.may_be_older).then_some(ranges)
        };
        let mut first: Vec<&VolumeLoss> =
            pool.volumes.iter().filter(|loss| loss.name.starts_with('v')).collect();
        first.sort_by(|one, other| one.name.cmp(&other.name));
        let obstacle = pool
            .obstacle
            .or_else(|| (!pool.is_needed).then(|| "a start opens it, or asks for consent".to_owned()));
        Ok(Recovered { obstacle, losses: first.into_iter().map(of_volume).collect() })
    }
}

/// The counter of pools that a group has left.
const GROUPS_LEFT: &str = "array: pools that a group has left";
/// What the groups of sets are called where there are two.
const GROUPS: [&str; 2] = ["first", "second"];

/// Whether the array cannot be made of such drives, which is no fault of anybody's.
fn is_refusal(error: &ArrayError) -> bool {
    let ArrayError::Plan(error) = error else { return false };
    matches!(
        error,
        PlanError::NoSet { .. }
            | PlanError::ChunkletTooSmall { .. }
            | PlanError::NoRoomForLog { .. }
            | PlanError::NoRoomForFlashCache { .. }
            | PlanError::NoSpace { .. }
            | PlanError::Waste { .. }
    )
}

/// How clean pages are kept in an array: in room for some of them by one policy or the other, and sometimes not at all. It
/// follows from the array's other properties, so that what a seed draws is not changed by it.
fn read_cache(config: &ArrayConfig) -> Option<ReadCacheOptions> {
    let policy = PolicyKind::ALL[config.drives % PolicyKind::ALL.len()];
    let memory_max = ByteCount(config.chunklet_sectors * SECTOR_BYTES);
    // Where there is a flash cache, half of the runs have nothing before it.
    let is_left_out = config.flash_cache.is_some() && config.drives.is_multiple_of(2);
    (config.shards < 3 && !is_left_out).then_some(ReadCacheOptions { policy, memory_max })
}

/// The description of an array: what `array.toml` would say.
fn describe(config: &ArrayConfig, names: &[&str]) -> Result<Description, SystemError> {
    let raid = raid_config(config);
    let layout = Layout::new(&raid).map_err(|error| SystemError::Refused(error.to_string()))?;
    let flash_drives = config.flash_cache.as_ref().map_or(0, |cache| cache.drives);
    let second_drives = match (config.has_tier, &config.second) {
        (true, Some(second)) => config.first_drives()..config.first_drives() + second.drives,
        _ => 0..0,
    };
    let class = |number: usize| {
        let is_flash = number + flash_drives >= names.len() || second_drives.contains(&number);
        let is_told = flash_drives > 0 || !second_drives.is_empty();
        is_told.then_some(if is_flash { DriveClass::Flash } else { DriveClass::Disk })
    };
    let drive = |(number, name): (usize, &&str)| DriveDescription {
        name: (*name).to_owned(),
        path: None,
        size: None,
        ram: Some(ByteCount(config.drive_sectors * SECTOR_BYTES)),
        model: None,
        class: class(number),
    };
    let volume = |(number, volume): (usize, &crate::system::VolumeConfig)| VolumeDescription {
        name: format!("v{number}"),
        pool: 0,
        sectors: volume.sectors,
        thin: volume.thin,
        write_cache: Some(volume.write_cache),
        read_cache: None,
        place: None,
        group: config.second.as_ref().map(|_| GROUPS[number % 2].to_owned()),
        ceilings: Default::default(),
        weight: volume.weight,
    };
    let row = layout.row_sectors().0;
    let first_drives = config.first_drives();
    let data_drives = first_drives + config.second.as_ref().map_or(0, |second| second.drives);
    let flash_cache = config.flash_cache.as_ref().map(|cache| FlashCacheDescription {
        bytes: Some(ByteCount(
            cache.chunklets * cache.drives as u64 * config.chunklet_sectors * SECTOR_BYTES,
        )),
        drives: (names.len() - cache.drives..names.len()).collect(),
        writes_per_day: None,
    });
    let first = GroupDescription {
        name: if config.second.is_some() { GROUPS[0].to_owned() } else { String::new() },
        drives: (0..first_drives).collect(),
        raid,
        spare_drives: config.spare_drives,
    };
    let second = config.second.as_ref().map(|second| GroupDescription {
        name: GROUPS[1].to_owned(),
        drives: (first_drives..data_drives).collect(),
        raid: second_raid(second),
        spare_drives: second.spare_drives,
    });
    let pool = PoolDescription {
        name: "p".to_owned(),
        drives: (0..data_drives).collect(),
        groups: std::iter::once(first).chain(second).collect(),
        chunklet_sectors: Some(config.chunklet_sectors),
        extent_sectors: config.extent_rows.map(|rows| rows * row),
        checksums: true,
        log: true,
        log_sectors: config.log_sectors,
        log_drives: log_drives(config, names.len()),
        space: Default::default(),
        read_cache: None,
        write_cache: None,
        read_cache_policy: None,
        flash_cache: flash_cache.unwrap_or_default(),
    };
    Ok(Description {
        name: "sim".to_owned(),
        cores: Some(config.shards),
        memory: None,
        keep_awake: false,
        pause_timeout: tier0_units::Nanos::from_secs(120),
        witness: None,
        search: Vec::new(),
        drives: names.iter().enumerate().map(drive).collect(),
        pools: vec![pool],
        volumes: config.volumes.iter().enumerate().map(volume).collect(),
        listen: Vec::new(),
        socket_access: Default::default(),
        control_access: Default::default(),
        events: None,
        control: None,
        warnings: Vec::new(),
    })
}

/// The drives that hold the log alone: those of the flash cache in some arrays, where they are enough for as many copies as
/// their sets need. It follows from the array's other properties, so that what a seed draws is not changed by it.
fn log_drives(config: &ArrayConfig, drives: usize) -> Vec<usize> {
    let Some(cache) = config.flash_cache.as_ref().filter(|cache| cache.alone) else { return Vec::new() };
    let needs_three = config.levels().any(|level| level == RaidLevel::Raid6);
    match cache.drives == 2 && !needs_three && config.volumes.len() % 2 == 1 {
        true => (drives - cache.drives..drives).collect(),
        false => Vec::new(),
    }
}

fn raid_config(config: &ArrayConfig) -> RaidConfig {
    let drives = config.first_drives() - config.spare_drives as usize;
    let set_size = config.set_size.unwrap_or_else(|| set_size_of(config.level, drives));
    raid_of(config.level, set_size, config.stripe_unit_sectors)
}

fn second_raid(second: &SecondGroup) -> RaidConfig {
    let set_size = set_size_of(second.level, second.drives - second.spare_drives as usize);
    raid_of(second.level, set_size, second.stripe_unit_sectors)
}

fn set_size_of(level: RaidLevel, drives: usize) -> usize {
    match level {
        RaidLevel::Raid0 | RaidLevel::Raid5 | RaidLevel::Raid6 => drives.min(6),
        RaidLevel::Raid1 => 2,
        RaidLevel::Raid10 => 4,
        RaidLevel::Raid50 => 6,
    }
}

fn raid_of(level: RaidLevel, set_size: usize, stripe_unit_sectors: u64) -> RaidConfig {
    RaidConfig { level, set_size, stripe_unit: SectorCount(stripe_unit_sectors), raid50_groups: 2 }
}

/// The array, running.
#[derive(Clone)]
pub struct RunningArray {
    engine: Engine,
    chunklet_bytes: u64,
}

impl RunningArray {
    async fn pool(&self) -> (PoolStatus, String) {
        let mut status = self.engine.status().await;
        (status.pools.remove(0), status.summary)
    }

    async fn ask(&self, request: AdminRequest) -> Result<(), SystemError> {
        match self.engine.administer(request).await {
            AdminReply::Refused(why) | AdminReply::Held(why) => Err(SystemError::Refused(why)),
            AdminReply::Failed(why) => Err(SystemError::Unfinished(why)),
            _ => Ok(()),
        }
    }

    /// Adds a drive, to one group after the other.
    async fn add(&self, drive: DriveHandle) -> Result<(), SystemError> {
        let (pool, _) = self.pool().await;
        let group = pool.groups.get(pool.drives.len() % pool.groups.len().max(1));
        let group = group.and_then(|group| GROUPS.iter().position(|name| *name == group.name)).unwrap_or(0);
        let name = name_of(&drive).to_owned();
        let added = self.engine.add_drive_to((0, group as u32), &name, drive).await;
        added.map_err(|error| SystemError::Refused(error.to_string()))
    }
}

/// Whether drives that are not for data have columns of sets of a group whose drives of data have room for them: of so many
/// with a free chunklet as a set has columns, one has none of the set.
fn has_misplaced(pool: &PoolStatus) -> bool {
    let of_group = |group: &Option<String>| {
        let own =
            pool.drives.iter().filter(|drive| drive.group == *group && drive.state == DriveState::Active);
        let (data, others): (Vec<_>, Vec<_>) = own.partition(|drive| drive.for_data);
        let roomy = data.iter().filter(|drive| drive.chunklets_free > 0).count();
        others.iter().any(|drive| drive.misplaced_columns > 0) && roomy >= width_of(pool, group)
    };
    pool.drives.iter().map(|drive| &drive.group).any(of_group)
}

/// How many columns the sets of a group have: its shape is "raid5 of 4".
fn width_of(pool: &PoolStatus, group: &Option<String>) -> usize {
    let named = pool.groups.iter().find(|known| Some(&known.name) == group.as_ref());
    let shape = named.map_or(&pool.raid, |group| &group.raid);
    shape.rsplit(' ').next().and_then(|width| width.parse().ok()).unwrap_or(usize::MAX)
}

/// Where the volumes with which the array was created are to lie, by their numbers.
fn places_of(pool: &PoolStatus) -> Vec<VolumePlace> {
    let named = |number: usize| pool.volumes.iter().find(|volume| volume.name == format!("v{number}"));
    (0..).map_while(named).map(|volume| volume.place).collect()
}

/// Whether the array was created with a volume: those are called v0, v1 …
fn is_first(volume: &Volume) -> bool {
    volume.name().starts_with('v')
}

impl Running for RunningArray {
    type Volume = Volume;

    fn volumes(&self) -> Vec<Volume> {
        self.engine.volumes().into_iter().filter(is_first).collect()
    }

    fn scratch(&self) -> Vec<(String, Volume)> {
        let later = self.engine.volumes().into_iter().filter(|volume| !is_first(volume));
        later.map(|volume| (volume.name().to_string(), volume)).collect()
    }

    async fn status(&self) -> Status {
        let (pool, sentence) = self.pool().await;
        let named = |wanted: &dyn Fn(&tier0_api::DriveStatus) -> bool| -> Vec<String> {
            pool.drives.iter().filter(|drive| wanted(drive)).map(|drive| drive.name.clone()).collect()
        };
        let log_whole = pool.log.as_ref().is_none_or(|log| log.copies >= log.copies_wanted);
        let active = named(&|drive| drive.state == DriveState::Active);
        let metadata = named(&|drive| drive.holds_metadata);
        // A drive that has joined again has an old place too, until that is forgotten.
        let mut lost = named(&|drive| drive.state == DriveState::Lost);
        lost.retain(|name| !active.contains(name));
        Status {
            redundant: pool.sets.degraded == 0 && log_whole && metadata.len() >= active.len().min(3),
            sentence,
            active,
            lost,
            log: named(&|drive| drive.holds_log),
            metadata,
            rebuilding: pool.rebuild.is_some(),
            moving: pool.restripe.is_some(),
            moved: self.engine.extents_placed(0),
            misplaced: has_misplaced(&pool),
            scrubbing: pool.scrub.is_some_and(|scrub| scrub.running),
            scrub_repaired: pool.scrub.map_or(0, |scrub| scrub.repaired),
            unrecoverable: pool.integrity.unrecoverable + pool.scrub.map_or(0, |scrub| scrub.unrecoverable),
            used_sectors: Some(pool.space.used_bytes / SECTOR_BYTES),
            places: places_of(&pool),
        }
    }

    async fn admin(&self, request: Admin) -> Result<(), SystemError> {
        match request {
            Admin::Fail { drive } => self.ask(AdminRequest::DriveFail { drive }).await,
            Admin::Add { drive } => self.add(drive).await,
            Admin::Replace { old, new } => {
                if !self.status().await.lost.contains(&old) {
                    self.ask(AdminRequest::DriveFail { drive: old.clone() }).await?;
                }
                let name = name_of(&new).to_owned();
                let replaced = self.engine.replace_drive(&old, &name, new).await;
                replaced.map_err(|error| SystemError::Refused(error.to_string()))
            }
            Admin::Remove { drive } => {
                self.ask(AdminRequest::DriveRemove { drive, force: true, stop: false }).await
            }
            Admin::Empty { drive } => {
                self.ask(AdminRequest::DriveRemove { drive, force: false, stop: false }).await
            }
            Admin::Keep { drive } => {
                self.ask(AdminRequest::DriveRemove { drive, force: false, stop: true }).await
            }
            Admin::Rejoin { drive } => {
                let name = name_of(&drive).to_owned();
                let rejoined = self.engine.rejoin_drive(0, &name, drive).await;
                rejoined.map_err(|error| SystemError::Refused(error.to_string()))
            }
            Admin::Scrub => self.ask(AdminRequest::ScrubStart { pool: None, rate: None }).await,
            Admin::Grow => self.ask(AdminRequest::PoolGrow { pool: None, stop: false }).await,
            Admin::CreateVolume { name, sectors, thin } => {
                let size = ByteCount(sectors * SECTOR_BYTES);
                let write_cache = WriteCache::Durable;
                let groups = self.pool().await.0.groups;
                let number = name.bytes().last().map_or(0, usize::from);
                let group = groups.get(number % groups.len().max(1)).map(|group| group.name.clone());
                self.ask(AdminRequest::VolumeCreate { pool: None, name, size, thin, write_cache, group })
                    .await
            }
            Admin::CloneVolume { of, name } => self.ask(AdminRequest::VolumeClone { volume: of, name }).await,
            Admin::SwitchVolume { volume, read, write } => {
                self.ask(AdminRequest::VolumeCache { volume: format!("v{volume}"), read, write }).await
            }
            Admin::SwitchPool { read, write } => {
                self.ask(AdminRequest::PoolCache { pool: None, read, write }).await
            }
            Admin::SizeFlashCache { chunklets } => {
                let (pool, _) = self.pool().await;
                let holders = pool
                    .drives
                    .iter()
                    .filter(|drive| drive.class == Some(tier0_api::DriveClass::Flash))
                    .count();
                let size = ByteCount(chunklets * holders as u64 * self.chunklet_bytes);
                self.ask(AdminRequest::PoolFlashCache { pool: None, size, drives: Vec::new() }).await
            }
            Admin::MoveExtents { volume, first, count, group } => {
                let moved = self.engine.move_extents(&format!("v{volume}"), (first, count), group).await;
                moved.map(|_| ()).map_err(|error| SystemError::Unfinished(error.to_string()))
            }
            Admin::PlaceVolume { volume, place } => {
                self.ask(AdminRequest::VolumePlace { volume: format!("v{volume}"), place }).await
            }
            Admin::PinVolume { volume, bytes, place, until_s } => {
                let (from, to) = (ByteCount(bytes.start), ByteCount(bytes.end));
                let volume = format!("v{volume}");
                self.ask(AdminRequest::VolumePin { volume, from, to, place, until_unix_s: until_s }).await
            }
            Admin::MigrateVolume { volume, group } => {
                let (volume, group) = (format!("v{volume}"), GROUPS[group as usize].to_owned());
                self.ask(AdminRequest::VolumeMigrate { volume, group }).await
            }
            Admin::RemoveGroup { group, cancel } => {
                let group = GROUPS[group as usize].to_owned();
                self.ask(AdminRequest::PoolRemoveGroup { pool: None, group, cancel }).await
            }
            Admin::ShrinkVolume { name, sectors } => {
                let size = ByteCount(sectors * SECTOR_BYTES);
                self.ask(AdminRequest::VolumeShrink { volume: name, size, force: false }).await
            }
            Admin::DeleteVolume { name } => {
                self.ask(AdminRequest::VolumeDelete { volume: name, force: false }).await
            }
        }
    }

    async fn counters(&self) -> Vec<(&'static str, u64)> {
        let (pool, _) = self.pool().await;
        let flash = pool.flash_cache.unwrap_or_default();
        let memory = pool.read_cache.unwrap_or_default();
        let moves = pool.tier.map(|tier| tier.moves).unwrap_or_default();
        vec![
            ("array: pages repaired", pool.integrity.repaired),
            ("array: reads from memory", memory.hits()),
            ("array: reads from flash", flash.hits),
            (LINES_FOUND, flash.loaded_lines),
            ("array: extents moved to another group", self.engine.extents_placed(0)),
            (GROUPS_LEFT, u64::from(!pool.groups.is_empty() && pool.groups.len() < GROUPS.len())),
            ("array: extents moved by the tier", moves.promoted + moves.demoted),
            ("array: extents moved as placed", moves.placed),
            ("array: lines struck on flash", flash.struck),
            ("array: lines on flash that gave way", flash.evicted),
        ]
    }
}
