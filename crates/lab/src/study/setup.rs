//! One configuration: an array and a load, put together from patches laid over each other.

use serde::Deserialize;
use tier0_raid::layout::RaidLevel;
use tier0_units::{ByteCount, Nanos};
use tier0_workload::spec::{BlockMix, Pattern, parse_duration};

use super::caches::{CachePreset, Caches, FlashCacheSetup, SaidSwitches};
use super::neighbour::{Neighbour, NeighbourSection};

/// What a study's file may say of a configuration; later patches win.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct SetupPatch {
    pub(super) array: Option<String>,
    pub(super) members: Option<u32>,
    pub(super) name: Option<String>,
    pub(super) drive: Option<String>,
    pub(super) drives: Option<u32>,
    pub(super) raid: Option<String>,
    pub(super) set_size: Option<u32>,
    pub(super) groups: Option<u32>,
    pub(super) volumes: Option<u32>,
    pub(super) volume_size: Option<ByteCount>,
    pub(super) used_percent: Option<f64>,
    pub(super) read_cache: Option<ByteCount>,
    pub(super) write_cache: Option<ByteCount>,
    pub(super) write_cache_shared: Option<bool>,
    pub(super) flash_cache: Option<ByteCount>,
    pub(super) flash_cache_drive: Option<String>,
    pub(super) flash_cache_drives: Option<u32>,
    pub(super) flash_cache_writes: Option<u32>,
    pub(super) caches: Option<String>,
    pub(super) array_caches: Option<SaidSwitches>,
    pub(super) volume_caches: Option<SaidSwitches>,
    pub(super) neighbours: Option<Vec<NeighbourSection>>,
    pub(super) block: Option<BlockMix>,
    pub(super) read_percent: Option<f64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) alignment: Option<ByteCount>,
    pub(super) latency_limit_ms: Option<f64>,
    pub(super) users: Option<u32>,
    pub(super) think_us: Option<f64>,
    pub(super) ios: Option<u64>,
    pub(super) warm_up: Option<String>,
}

/// Replaces each field that `$over` gives.
macro_rules! lay_over {
    ($under:expr, $over:expr; $($field:ident),*) => {
        SetupPatch { $($field: $over.$field.clone().or_else(|| $under.$field.clone()),)* }
    };
}

impl SetupPatch {
    pub(super) fn overlaid(&self, over: &SetupPatch) -> SetupPatch {
        lay_over!(self, over; array, members, name, drive, drives, raid, set_size, groups, volumes, volume_size,
            used_percent, read_cache, write_cache, write_cache_shared, flash_cache, flash_cache_drive,
            flash_cache_drives, flash_cache_writes, caches, array_caches, volume_caches,
            neighbours, block, read_percent, pattern, alignment, latency_limit_ms, users, think_us,
            ios, warm_up)
    }
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The I/Os per second while the mean latency of reads and of writes stays within a limit.
    LatencyLimit {
        /// The limit, in milliseconds.
        limit_ms: f64,
    },
    /// What a fixed population of users gets.
    Users {
        /// How many.
        users: u32,
        /// Mean time between a user's answer and next request, exponentially distributed.
        think: Nanos,
    },
}

/// How long to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEffort {
    /// Answered requests of one measurement.
    pub ios: u64,
    /// Simulated time before it.
    pub warm_up: Nanos,
}

/// A field of a setup that may be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupField {
    /// [`Goal::Users::think`], in microseconds.
    ThinkUs,
    /// [`Setup::used_percent`].
    UsedPercent,
    /// [`Caches::write`], in MiB.
    WriteCacheMib,
}

/// A complete configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The catalogue's array: processors, ports, buses, stripe unit.
    pub array: String,
    /// How many such arrays share the load.
    pub members: u32,
    /// What its group of sets is called.
    pub name: String,
    /// The catalogue's drive, `id` or `id@calibration`.
    pub drive: String,
    /// Drives of one member that hold data.
    pub drives: u32,
    /// RAID level of its sets.
    pub raid: RaidLevel,
    /// Columns of a set.
    pub set_size: u32,
    /// RAID 5 groups in a RAID 50 set.
    pub groups: u32,
    /// Volumes of one member.
    pub volumes: u32,
    /// The size of a volume, where it is given.
    pub volume_size: Option<ByteCount>,
    /// The share of each drive that the volumes take, from the outermost track inward, where it is given instead.
    pub used_percent: Option<f64>,
    /// The array's caches.
    pub caches: Caches,
    /// What is said of the volumes' switches.
    pub volume_caches: SaidSwitches,
    /// Other groups of sets in the array.
    pub neighbours: Vec<Neighbour>,
    /// Sizes of the requests.
    pub block: BlockMix,
    /// Reads in percent of the requests.
    pub read_percent: f64,
    /// Where they go.
    pub pattern: Pattern,
    /// Their addresses are multiples of this; of their size where absent.
    pub alignment: Option<ByteCount>,
    /// What is looked for.
    pub goal: Goal,
    /// How long to simulate.
    pub effort: RunEffort,
}

const MIB: u64 = 1 << 20;
/// Answered requests of a measurement where a study does not say: the mean latency is then known to 1 or 2 %.
pub(crate) const IOS_DEFAULT: u64 = 30_000;
/// Time until queues and caches are as full as they will be.
const WARM_UP_DEFAULT: Nanos = Nanos::from_millis(1_500);
/// The least write cache: a log in frames of its usual length.
const WRITE_CACHE_MIN: ByteCount = ByteCount::mib(4);
/// The least read cache, and the most: less keeps nothing, and of each page a few bytes are real memory.
const READ_CACHE_MIN: ByteCount = ByteCount::mib(1);
const READ_CACHE_MAX: ByteCount = ByteCount::gib(1024);
/// The least flash cache, and the most: its tables are real memory, a thousandth of it.
const FLASH_CACHE_MIN: ByteCount = ByteCount::mib(256);
const FLASH_CACHE_MAX: ByteCount = ByteCount::gib(4096);
/// What the measured group of sets is called where a study does not say.
const NAME_DEFAULT: &str = "measured";

impl Setup {
    /// The configuration of a patch that must say everything; the error is the fact and the remedy.
    pub(super) fn of(patch: &SetupPatch) -> Result<Setup, String> {
        let missing =
            |field: &str| format!("does not say {field}; give it in [base.set] or in the configuration");
        let drives = patch.drives.ok_or_else(|| missing("drives"))?;
        let raid = level(patch.raid.as_ref().ok_or_else(|| missing("raid"))?)?;
        let neighbours = patch.neighbours.iter().flatten().map(Neighbour::of);
        let setup = Setup {
            array: patch.array.clone().ok_or_else(|| missing("array"))?,
            members: patch.members.unwrap_or(1),
            name: patch.name.clone().unwrap_or_else(|| NAME_DEFAULT.to_owned()),
            drive: patch.drive.clone().ok_or_else(|| missing("drive"))?,
            drives,
            raid,
            set_size: patch.set_size.unwrap_or(drives),
            groups: patch.groups.unwrap_or(2),
            volumes: patch.volumes.unwrap_or(1),
            volume_size: patch.volume_size,
            used_percent: patch.used_percent,
            caches: Caches {
                read: patch.read_cache,
                write: patch.write_cache,
                write_is_shared: patch.write_cache_shared.unwrap_or(false),
                flash: flash(patch)?,
                switches: patch.array_caches.unwrap_or_default(),
                preset: patch.caches.as_deref().map(CachePreset::named).transpose()?,
            },
            volume_caches: patch.volume_caches.unwrap_or_default(),
            neighbours: neighbours.collect::<Result<_, _>>()?,
            block: patch.block.clone().unwrap_or_default(),
            read_percent: patch.read_percent.ok_or_else(|| missing("read_percent"))?,
            pattern: patch.pattern.unwrap_or_default(),
            alignment: patch.alignment,
            goal: goal(patch)?,
            effort: RunEffort { ios: patch.ios.unwrap_or(IOS_DEFAULT), warm_up: warm_up(patch)? },
        };
        setup.check().map(|()| setup)
    }

    fn check(&self) -> Result<(), String> {
        let outside = |field: &str, allowed: &str| Err(format!("has a {field} out of range; use {allowed}"));
        self.measured_group().check()?;
        if !(1..=64).contains(&self.members) {
            return outside("members", "1 to 64");
        }
        if self.members > 1 && !self.neighbours.is_empty() {
            return Err("has neighbours in several members; keep one member".into());
        }
        let mut names: Vec<String> = self.set_groups().into_iter().map(|sets| sets.name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("has two groups of sets named {:?}; rename one", pair[0]));
        }
        if self.caches.read.is_some_and(|size| size < READ_CACHE_MIN || size > READ_CACHE_MAX) {
            return outside("read_cache", "1MiB to 1TiB");
        }
        if let Some(flash) = &self.caches.flash {
            if self.caches.write.is_none() || self.caches.write_is_shared {
                return Err("has a flash_cache without a write_cache of its own, whose log tells what of it is stale; give \
                            write_cache, and leave write_cache_shared out"
                    .into());
            }
            if !(FLASH_CACHE_MIN..=FLASH_CACHE_MAX).contains(&flash.size) {
                return outside("flash_cache", "256MiB to 4TiB, or 0B for none");
            }
            if !(1..=64).contains(&flash.drives) {
                return outside("flash_cache_drives", "1 to 64");
            }
        }
        if self.caches.write.is_some_and(|size| size < WRITE_CACHE_MIN || !size.0.is_multiple_of(MIB)) {
            return outside("write_cache", "whole MiB, at least 4MiB and at most what the array has");
        }
        if !(100..=100_000_000).contains(&self.effort.ios) {
            return outside("ios", "100 to 100000000");
        }
        match self.goal {
            Goal::LatencyLimit { limit_ms } if !(limit_ms > 0.0 && limit_ms <= 1e6) => {
                outside("latency_limit_ms", "more than 0, at most 1000000")
            }
            Goal::Users { users, .. } if !(1..=1 << 20).contains(&users) => outside("users", "1 to 1048576"),
            _ => Ok(()),
        }
    }

    /// Sets a free field.
    pub fn set(&mut self, field: SetupField, value: f64) {
        match (field, &mut self.goal) {
            (SetupField::ThinkUs, Goal::Users { think, .. }) => *think = micros(value),
            (SetupField::ThinkUs, Goal::LatencyLimit { .. }) => {}
            (SetupField::UsedPercent, _) => self.used_percent = Some(value),
            (SetupField::WriteCacheMib, _) => {
                let size = ByteCount(value.round().max(0.0) as u64 * MIB);
                self.caches.write = Some(size.max(WRITE_CACHE_MIN));
            }
        }
    }

    /// Drives of all members.
    pub fn drives_in_all(&self) -> u32 {
        self.drives * self.members
    }
}

/// The RAID level of a name; the error is the fact and the remedy.
pub(super) fn level(name: &str) -> Result<RaidLevel, String> {
    name.parse().map_err(|unknown: tier0_raid::layout::UnknownLevel| unknown.to_string())
}

pub(super) fn micros(us: f64) -> Nanos {
    Nanos((us.max(0.0) * 1e3).round() as u64)
}

/// The flash cache; zero bytes are none, so that a configuration can do without the one of the base.
fn flash(patch: &SetupPatch) -> Result<Option<FlashCacheSetup>, String> {
    let Some(size) = patch.flash_cache.filter(|size| size.0 > 0) else { return Ok(None) };
    let drive = patch.flash_cache_drive.clone();
    let drive = drive.ok_or("does not say flash_cache_drive; name an SSD of the catalogue")?;
    let (drives, writes_per_day) = (patch.flash_cache_drives.unwrap_or(1), patch.flash_cache_writes);
    Ok(Some(FlashCacheSetup { size, drive, drives, writes_per_day }))
}

fn warm_up(patch: &SetupPatch) -> Result<Nanos, String> {
    let Some(text) = &patch.warm_up else { return Ok(WARM_UP_DEFAULT) };
    parse_duration(text).map_err(|error| error.to_string())
}

fn goal(patch: &SetupPatch) -> Result<Goal, String> {
    match (patch.latency_limit_ms, patch.users) {
        (Some(limit_ms), None) => Ok(Goal::LatencyLimit { limit_ms }),
        (None, Some(users)) => Ok(Goal::Users { users, think: micros(patch.think_us.unwrap_or(0.0)) }),
        (Some(_), Some(_)) => Err("gives both latency_limit_ms and users; keep one".into()),
        (None, None) => Err("does not say what to look for; give latency_limit_ms or users".into()),
    }
}
