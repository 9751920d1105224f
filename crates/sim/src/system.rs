//! What the simulator drives: anything that keeps volumes on drives.

use std::future::Future;
use std::ops::Range;

use thiserror::Error;
use tier0_api::VolumePlace;
use tier0_block::BlockTarget;
use tier0_drive::DriveHandle;
use tier0_raid::layout::RaidLevel;
use tier0_units::{SectorCount, WriteCache};
use tier0_world::World;

use crate::config::SimConfig;
use crate::failure::Failure;
use crate::run::{RunReport, run_all};

/// The [counter](Running::counters) of lines that a start found in the flash cache.
pub(crate) const LINES_FOUND: &str = "array: lines found on flash at a start";

/// An array to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayConfig {
    /// RAID level of its one pool.
    pub level: RaidLevel,
    /// Columns of a set; the system's choice where none are given.
    pub set_size: Option<usize>,
    /// How many drives it begins with.
    pub drives: usize,
    /// Size of each drive.
    pub drive_sectors: u64,
    /// Sectors per physical block of each drive.
    pub block_sectors: u32,
    /// Sectors of a chunklet.
    pub chunklet_sectors: u64,
    /// Rows of an extent; the system's choice where none are given.
    pub extent_rows: Option<u64>,
    /// Sectors of a stripe unit.
    pub stripe_unit_sectors: u64,
    /// How many drives' worth of chunklets stay free for rebuilding.
    pub spare_drives: u32,
    /// Sectors of the write log on each of its drives; the system's choice where none are given.
    pub log_sectors: Option<u64>,
    /// Shards.
    pub shards: usize,
    /// A second group of sets, on the last of the drives; every other volume lies on it.
    pub second: Option<SecondGroup>,
    /// Whether the drives of the second group are flash: the pool has a tier.
    pub has_tier: bool,
    /// A flash read cache.
    pub flash_cache: Option<FlashCacheConfig>,
    /// Its volumes.
    pub volumes: Vec<VolumeConfig>,
}

impl ArrayConfig {
    /// Drives that have data of the first group of sets.
    pub fn first_drives(&self) -> usize {
        let second = self.second.as_ref().map_or(0, |second| second.drives);
        self.drives - second - self.flash_cache.as_ref().map_or(0, FlashCacheConfig::drives_alone)
    }

    /// The RAID levels of its groups of sets.
    pub fn levels(&self) -> impl Iterator<Item = RaidLevel> {
        std::iter::once(self.level).chain(self.second.as_ref().map(|second| second.level))
    }
}

/// A flash read cache on the last of the drives, which are flash drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashCacheConfig {
    /// How many.
    pub drives: usize,
    /// Whether they hold nothing else, as far as the array decides it.
    pub alone: bool,
    /// Chunklets on each of them.
    pub chunklets: u64,
}

impl FlashCacheConfig {
    fn drives_alone(&self) -> usize {
        if self.alone { self.drives } else { 0 }
    }
}

/// The group of sets beside the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondGroup {
    /// Its RAID level.
    pub level: RaidLevel,
    /// How many of the drives are its own.
    pub drives: usize,
    /// Sectors of a stripe unit.
    pub stripe_unit_sectors: u64,
    /// How many of its drives' worth of chunklets stay free for rebuilding.
    pub spare_drives: u32,
}

/// A volume to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeConfig {
    /// Its size.
    pub sectors: SectorCount,
    /// Whether extents are allocated at the first write.
    pub thin: bool,
    /// When its writes are acknowledged.
    pub write_cache: WriteCache,
    /// What it gets in comparison with others where writers are delayed; as usual where nothing is said.
    pub weight: Option<u32>,
}

/// What a system can do, so that the simulator asks for nothing else.
#[derive(Clone, Debug)]
pub struct Abilities {
    /// Levels it offers.
    pub levels: Vec<RaidLevel>,
    /// Fewest and most drives.
    pub drives: std::ops::RangeInclusive<usize>,
    /// Sizes of drives, in sectors, it may be given.
    pub drive_sectors: Vec<u64>,
    /// Physical blocks of drives, in sectors, it may be given.
    pub block_sectors: Vec<u32>,
    /// When it can acknowledge writes.
    pub write_caches: Vec<WriteCache>,
    /// Fewest and most volumes.
    pub volumes: std::ops::RangeInclusive<usize>,
    /// Sizes of volumes, in sectors.
    pub volume_sectors: std::ops::RangeInclusive<u64>,
    /// Sizes of chunklets, in sectors.
    pub chunklet_sectors: Vec<u64>,
    /// Sizes of stripe units, in sectors.
    pub stripe_unit_sectors: Vec<u64>,
    /// Sizes of the write log, in sectors per drive.
    pub log_sectors: Vec<u64>,
    /// Most shards.
    pub shards_max: usize,
    /// Volumes may be larger than the pool.
    pub thin: bool,
    /// It finds and repairs rot, lost, torn and misdirected writes.
    pub integrity: bool,
    /// It can be told to scrub.
    pub scrub: bool,
    /// A discarded run of this many sectors, so aligned, reads as zeros; smaller pieces may keep their content.
    pub discard_granule_sectors: u64,
}

/// Why a system cannot do something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SystemError {
    /// It will not, and nothing has changed.
    #[error("refused: {0}")]
    Refused(String),
    /// It tried.
    #[error("{0}")]
    Failed(String),
    /// It has not ended: it may be done later, or in part.
    #[error("unfinished: {0}")]
    Unfinished(String),
}

/// What an administrator does.
#[derive(Clone)]
pub enum Admin {
    /// Takes a drive out of service.
    Fail {
        /// Its name.
        drive: String,
    },
    /// Adds a drive, blank or with what it held when it was lost.
    Add {
        /// The drive.
        drive: DriveHandle,
    },
    /// Puts a drive in another's stead.
    Replace {
        /// The name of the one that goes.
        old: String,
        /// The one that comes.
        new: DriveHandle,
    },
    /// Takes a healthy drive out at once; what it held is rebuilt.
    Remove {
        /// Its name.
        drive: String,
    },
    /// Has what a healthy drive holds copied elsewhere, and then forgotten.
    Empty {
        /// Its name.
        drive: String,
    },
    /// A drive that is being emptied stays.
    Keep {
        /// Its name.
        drive: String,
    },
    /// Takes a drive back that was lost and answers again.
    Rejoin {
        /// The drive.
        drive: DriveHandle,
    },
    /// Starts a scrub.
    Scrub,
    /// Makes space of the drives that were added.
    Grow,
    /// Creates a volume.
    CreateVolume {
        /// Its name.
        name: String,
        /// Its size.
        sectors: u64,
        /// Whether extents are allocated at the first write.
        thin: bool,
    },
    /// Clones a volume.
    CloneVolume {
        /// The volume's name.
        of: String,
        /// The clone's.
        name: String,
    },
    /// Switches the caches of a volume, as far as something is said.
    SwitchVolume {
        /// Its number.
        volume: usize,
        /// Whether reads use the read cache.
        read: Option<bool>,
        /// When writes are acknowledged.
        write: Option<WriteCache>,
    },
    /// Switches the caches of all volumes, as far as something is said.
    SwitchPool {
        /// Whether reads may use the read cache.
        read: Option<bool>,
        /// Whether writes may use the write cache.
        write: Option<bool>,
    },
    /// Changes the size of the flash cache.
    SizeFlashCache {
        /// Chunklets on each of its drives.
        chunklets: u64,
    },
    /// Moves extents of a volume to another group of sets.
    MoveExtents {
        /// Its number.
        volume: usize,
        /// The first extent; behind the last one comes the first again.
        first: u32,
        /// How many.
        count: u32,
        /// The group.
        group: u32,
    },
    /// Says where a volume is to lie.
    PlaceVolume {
        /// Its number.
        volume: usize,
        /// Where.
        place: VolumePlace,
    },
    /// Pins a part of a volume.
    PinVolume {
        /// Its number.
        volume: usize,
        /// The part, in bytes.
        bytes: Range<u64>,
        /// Where it is to lie.
        place: VolumePlace,
        /// When the pin ends, in seconds since the world began, or 0.
        until_s: u64,
    },
    /// Makes a volume one of another group of sets.
    MigrateVolume {
        /// Its number.
        volume: usize,
        /// The group.
        group: u32,
    },
    /// Has a group of sets leave the pool, or stay after all.
    RemoveGroup {
        /// The group.
        group: u32,
        /// Whether it is to stay.
        cancel: bool,
    },
    /// Makes a volume smaller.
    ShrinkVolume {
        /// Its name.
        name: String,
        /// Its size from then on.
        sectors: u64,
    },
    /// Deletes a volume.
    DeleteVolume {
        /// Its name.
        name: String,
    },
}

impl Admin {
    /// What it is, in a word, and whom it concerns.
    pub fn describe(&self) -> String {
        match self {
            Admin::Fail { drive } => format!("fail {drive}"),
            Admin::Add { drive } => format!("add {}", name_of(drive)),
            Admin::Replace { old, new } => format!("replace {old} by {}", name_of(new)),
            Admin::Remove { drive } => format!("remove {drive}"),
            Admin::Empty { drive } => format!("empty {drive}"),
            Admin::Keep { drive } => format!("keep {drive}"),
            Admin::Rejoin { drive } => format!("rejoin {}", name_of(drive)),
            Admin::Scrub => "scrub".to_owned(),
            Admin::Grow => "grow".to_owned(),
            Admin::CreateVolume { name, sectors, thin } => {
                format!("create volume {name} of {sectors} sectors, thin: {thin}")
            }
            Admin::CloneVolume { of, name } => format!("clone volume {of} as {name}"),
            Admin::SwitchVolume { volume, read, write } => {
                format!("switch caches of volume {volume}, read: {read:?}, write: {write:?}")
            }
            Admin::SwitchPool { read, write } => format!("switch caches, read: {read:?}, write: {write:?}"),
            Admin::SizeFlashCache { chunklets } => format!("flash cache of {chunklets} chunklets a drive"),
            Admin::MoveExtents { volume, first, count, group } => {
                format!("move {count} extents of volume {volume} from {first} on to group {group}")
            }
            Admin::PlaceVolume { volume, place } => format!("place volume {volume}: {}", place.text()),
            Admin::PinVolume { volume, bytes, place, until_s } => {
                format!("pin {bytes:?} of volume {volume}: {} until {until_s}", place.text())
            }
            Admin::MigrateVolume { volume, group } => format!("migrate volume {volume} to group {group}"),
            Admin::RemoveGroup { group, cancel: false } => format!("remove group {group}"),
            Admin::RemoveGroup { group, cancel: true } => format!("keep group {group}"),
            Admin::ShrinkVolume { name, sectors } => format!("shrink volume {name} to {sectors} sectors"),
            Admin::DeleteVolume { name } => format!("delete volume {name}"),
        }
    }
}

/// A drive's name.
pub(crate) fn name_of(drive: &DriveHandle) -> &str {
    // A handle is a block target too, whose information has no name.
    &(**drive).info().name
}

/// What a running system says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Everything is as redundant as it should be: sets, log and metadata.
    pub redundant: bool,
    /// Its own words about its health.
    pub sentence: String,
    /// Names of the drives that serve. One that waits, or whose join a power cut has undone, is not among them.
    pub active: Vec<String>,
    /// Names of the drives that it regards as lost.
    pub lost: Vec<String>,
    /// Names of the drives with a copy of the write log.
    pub log: Vec<String>,
    /// Names of the drives with a copy of the metadata.
    pub metadata: Vec<String>,
    /// A rebuild is going on.
    pub rebuilding: bool,
    /// What is stored moves to other places: copies are written that belong to no extent yet, so no scrub sees them.
    pub moving: bool,
    /// Extents that have moved to another group since it was opened. Some may wait there for room, and move later.
    pub moved: u64,
    /// Columns of sets lie on drives that are not for data although drives of data have room for them.
    pub misplaced: bool,
    /// A scrub is going on.
    pub scrubbing: bool,
    /// What the last scrub has repaired.
    pub scrub_repaired: u64,
    /// What cannot be repaired.
    pub unrecoverable: u64,
    /// Space that is allocated to volumes, in sectors, where volumes are thin.
    pub used_sectors: Option<u64>,
    /// By volume, where it is to lie.
    pub places: Vec<VolumePlace>,
}

/// A system under test.
pub trait System: Clone + 'static {
    /// It, running.
    type Running: Running;

    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// Carries out a run of it.
    ///
    /// # Errors
    /// The first thing that broke.
    fn run(&self, config: &SimConfig) -> Result<RunReport, Box<Failure>> {
        assert!(!config.mixture.network, "a system without a network of its own has no clients behind one");
        run_all(self, config)
    }

    /// Why it would refuse to create such an array, if it would: a run whose array is refused shows nothing, so none is
    /// drawn.
    fn refuses(&self, config: &ArrayConfig) -> Option<String> {
        let _ = config;
        None
    }

    /// Creates the array on drives full of zeros, and leaves it at rest.
    fn create(
        &self,
        world: &World,
        config: &ArrayConfig,
        drives: Vec<DriveHandle>,
    ) -> impl Future<Output = Result<(), SystemError>>;

    /// Takes away what is on drives, so that no array is found that is being overwritten.
    fn clear(&self, drives: &[DriveHandle]) -> impl Future<Output = Result<(), SystemError>> {
        let _ = drives;
        async { Ok(()) }
    }

    /// Finds the array on its drives, in any order, some of them missing, some perhaps stale or blank, and starts it.
    /// `without` names drives that it may give up although they might know more than those that are there.
    ///
    /// # Errors
    /// [`SystemError::Refused`] where it does not start and has written nothing.
    fn open(
        &self,
        world: &World,
        config: &ArrayConfig,
        drives: Vec<DriveHandle>,
        without: Vec<String>,
    ) -> impl Future<Output = Result<Self::Running, SystemError>>;

    /// Whom these drives, seen alone, remember as lost.
    fn called_lost(&self, drives: Vec<DriveHandle>) -> impl Future<Output = Vec<String>> {
        let _ = drives;
        async { Vec::new() }
    }

    /// Makes the array, which is not in use, run on another number of shards from the next opening on. False where it
    /// stays as it is.
    ///
    /// # Errors
    /// [`SystemError::Refused`] where it would not start either; nothing was written.
    fn move_to(
        &self,
        world: &World,
        drives: Vec<DriveHandle>,
        shards: usize,
    ) -> impl Future<Output = Result<bool, SystemError>> {
        let _ = (world, drives, shards);
        async { Ok(false) }
    }

    /// The last resort for what no start opens: believes drives again that were lost, with whatever that costs. Without
    /// `accepts_loss` nothing is written.
    fn recover(
        &self,
        world: &World,
        drives: Vec<DriveHandle>,
        accepts_loss: bool,
    ) -> impl Future<Output = Result<Recovered, SystemError>> {
        let _ = (world, drives, accepts_loss);
        async { Err(SystemError::Refused("it has no last resort".to_owned())) }
    }
}

/// What the last resort says of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Why nothing was done; none where the array was assembled.
    pub obstacle: Option<String>,
    /// By volume the sectors that may be lost, ascending; none where anything may be.
    pub losses: Vec<Option<Vec<std::ops::Range<u64>>>>,
}

/// A running system. Dropping it with its world is the only way to stop it.
pub trait Running: Clone + 'static {
    /// One of its volumes.
    type Volume: BlockTarget + Clone + 'static;

    /// The volumes that it was created with, in order.
    fn volumes(&self) -> Vec<Self::Volume>;

    /// The volumes that were created later, with their names.
    fn scratch(&self) -> Vec<(String, Self::Volume)> {
        Vec::new()
    }

    /// Whether a write may fail because the way to the system broke, done or not.
    fn may_lose_requests(&self) -> bool {
        false
    }

    /// How it does.
    fn status(&self) -> impl Future<Output = Status>;

    /// Administers it.
    fn admin(&self, request: Admin) -> impl Future<Output = Result<(), SystemError>>;

    /// What happened inside since it was opened, by name, for the summary of what a sweep has reached.
    fn counters(&self) -> impl Future<Output = Vec<(&'static str, u64)>> {
        async { Vec::new() }
    }
}
