//! The description of an array: one TOML file, checked as a whole, with errors that name line, field and remedy.
//!
//! A description is also compared with the facts of an array that is ([`facts`]): what a file would do to it, and the file
//! that would describe it. [`class`] tells what kind of drive is described, [`shape`] how files and pools say what a RAID
//! set is, [`names`] how messages name drives.
//!
//! Nothing here opens a drive. The array file is read, and file systems are asked what lies at paths.

mod access;
mod actual;
mod check;
pub mod class;
mod compare;
mod error;
pub mod facts;
mod files;
mod listen;
pub mod names;
mod notes;
mod remnant;
pub mod shape;
mod write;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use tier0_catalog::Catalog;
use tier0_policy::PolicyKind;
use tier0_pool::{CeilingsChange, DriveClass, Place as VolumePlace, SpaceRules};
use tier0_raid::layout::{RaidConfig, RaidLevel};
use tier0_units::{ByteCount, Nanos, SectorCount, WriteCache};
use toml::Spanned;

pub use access::SocketAccess;
pub use check::{VOLUME_SIZE, is_name};
pub use compare::{Finding, KnownGroups, not_created, not_in_file, plain, size_differs};
pub use error::{DescriptionError, Mismatch};
pub use listen::ListenAddress;
pub use remnant::Remnant;
pub use write::Remarks;

/// An array as its file describes it, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The array's name.
    pub name: String,
    /// Shards, one per core; as many as the machine has cores where none are given.
    pub cores: Option<usize>,
    /// What slot tables and dirty pages take at most, all shards and pools together.
    pub memory: Option<ByteCount>,
    /// Whether the machine's processors are kept awake under load.
    pub keep_awake: bool,
    /// How long hosts wait for drives that a pool cannot do without before they get errors.
    pub pause_timeout: Nanos,
    /// The file outside of the drives that remembers which of them pools went on without.
    pub witness: Option<PathBuf>,
    /// Directories in which drives are looked for, besides the paths of the drives.
    pub search: Vec<PathBuf>,
    /// The drives.
    pub drives: Vec<DriveDescription>,
    /// The pools.
    pub pools: Vec<PoolDescription>,
    /// The volumes.
    pub volumes: Vec<VolumeDescription>,
    /// Where NBD listens.
    pub listen: Vec<ListenAddress>,
    /// Who may connect to the unix sockets of `listen`.
    pub socket_access: SocketAccess,
    /// The unix socket on which the running array takes administration requests.
    pub control: Option<PathBuf>,
    /// Who may connect to it, and thus do everything.
    pub control_access: SocketAccess,
    /// The file in which the serving array keeps its events.
    pub events: Option<PathBuf>,
    /// What the file says to no effect or against its own purpose, one sentence each.
    pub warnings: Vec<String>,
}

/// A drive of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveDescription {
    /// Its name.
    pub name: String,
    /// Its file or device.
    pub path: Option<PathBuf>,
    /// The size at which its file is created.
    pub size: Option<ByteCount>,
    /// Memory of this size instead of a file.
    pub ram: Option<ByteCount>,
    /// The catalogue's drive that it behaves like.
    pub model: Option<String>,
    /// What kind of drive it is, if not what the model or the device says.
    pub class: Option<DriveClass>,
}

/// A pool of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolDescription {
    /// Its name.
    pub name: String,
    /// The drives of its groups, by their place in [`Description::drives`], the first group's first.
    pub drives: Vec<usize>,
    /// The groups of its sets: at least one. A single one may have no name.
    pub groups: Vec<GroupDescription>,
    /// Sectors of a chunklet; chosen from the drives' size where none are given.
    pub chunklet_sectors: Option<u64>,
    /// Sectors of an extent; chosen to waste least where none are given.
    pub extent_sectors: Option<u64>,
    /// Whether pages carry checksums that reads verify.
    pub checksums: bool,
    /// Whether writes go into a log first. Memory has none: nothing of it outlives the process.
    pub log: bool,
    /// Sectors of the write log on each of its drives; chosen from the drives' size where none are given.
    pub log_sectors: Option<u64>,
    /// The drives that hold the write log, by their place in [`Description::drives`]; chosen where none are given.
    pub log_drives: Vec<usize>,
    /// When the administrator is told that it fills, and what thin volumes do not get.
    pub space: SpaceRules,
    /// Whether its volumes may use the read cache; as it is where nothing is said, and on in a new pool.
    pub read_cache: Option<bool>,
    /// Whether they may use the write cache, in the same way.
    pub write_cache: Option<bool>,
    /// What decides which pages of the read cache in memory give way, if not the default.
    pub read_cache_policy: Option<PolicyKind>,
    /// The flash read cache; as it is where nothing is said, and none in a new pool.
    pub flash_cache: FlashCacheDescription,
}

/// How often a day a flash cache may be written over, where nothing is said: what SSDs for mixed use are rated for.
pub const FLASH_WRITES_PER_DAY: u32 = 3;

/// What the caches of a pool are to be like, as long as the array runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// What decides which clean pages in memory give way.
    pub policy: PolicyKind,
    /// The size of the flash cache over all of its drives; none where nothing is said, zero for no cache.
    pub flash_bytes: Option<ByteCount>,
    /// The drives that are to hold it, by name; chosen where none are given.
    pub flash_drives: Vec<String>,
    /// How many times a day it may be written over, at the most.
    pub flash_writes_per_day: u32,
}

/// What an array file says of a pool's flash read cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlashCacheDescription {
    /// Its size over all of its drives; zero for none.
    pub bytes: Option<ByteCount>,
    /// The drives that hold it, by their place in [`Description::drives`]; chosen where none are given.
    pub drives: Vec<usize>,
    /// How many times a day it may be written over, at the most.
    pub writes_per_day: Option<u32>,
}

/// A group of a pool's RAID sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its name; empty for a pool that is a single group.
    pub name: String,
    /// Its drives, by their place in [`Description::drives`].
    pub drives: Vec<usize>,
    /// Level and shape of its sets.
    pub raid: RaidConfig,
    /// How many drives' worth of its chunklets stay free for rebuilding.
    pub spare_drives: u32,
}

impl PoolDescription {
    /// Whether a drive of this place in [`Description::drives`] is the pool's, for whatever use.
    pub fn uses(&self, drive: usize) -> bool {
        [&self.drives, &self.log_drives, &self.flash_cache.drives].into_iter().any(|all| all.contains(&drive))
    }

    /// The levels of its groups, each once: "raid10", "raid10 and raid5".
    pub fn levels(&self) -> String {
        let mut levels: Vec<&str> = self.groups.iter().map(|group| group.raid.level.name()).collect();
        levels.dedup();
        levels.join(" and ")
    }
}

/// A volume of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeDescription {
    /// Its name.
    pub name: String,
    /// Its pool, by its place in [`Description::pools`].
    pub pool: usize,
    /// Its size in sectors.
    pub sectors: SectorCount,
    /// Whether extents are allocated at the first write to them.
    pub thin: bool,
    /// When its writes are acknowledged; where none is given, durable in pools with a log.
    pub write_cache: Option<WriteCache>,
    /// Whether its reads use the read cache; as it is where nothing is said, and on for a new volume.
    pub read_cache: Option<bool>,
    /// Where its extents are to lie; as it is where nothing is said, and in its group in a new pool.
    pub place: Option<VolumePlace>,
    /// The group of sets that it lies on; the pool's first where none is given.
    pub group: Option<String>,
    /// What hosts may ask of it in a second; as it is where nothing is said, and as much as they like of a new volume.
    pub ceilings: CeilingsChange,
    /// What it gets in comparison with others where writers are delayed; as it is where nothing is said.
    pub weight: Option<u32>,
}

impl VolumeDescription {
    /// Whether its extents move between its own group and the fast one.
    pub fn is_tiered(&self) -> bool {
        self.place == Some(VolumePlace::Auto)
    }
}

impl Description {
    /// Reads a description from a file. Relative paths in it begin at the directory that it lies in.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line, its field and what to do.
    pub fn read(path: &Path) -> Result<Description, DescriptionError> {
        Description::read_with(path, Catalog::built_in())
    }

    /// The same with the drives of another catalogue as models.
    ///
    /// # Errors
    /// As [`Description::read`].
    pub fn read_with(path: &Path, catalog: &Catalog) -> Result<Description, DescriptionError> {
        let unreadable = |source| DescriptionError::Unreadable { path: path.to_owned(), source };
        let text = text_of(path).map_err(unreadable)?;
        let text = text.ok_or_else(|| DescriptionError::NoText { path: path.to_owned() })?;
        let place = place_of(path).map_err(unreadable)?;
        let directory = place.parent().unwrap_or(Path::new(""));
        let mut description = Description::parse_in(&text, &path.display().to_string(), directory, catalog)?;
        description.check_is_alone(&place)?;
        description.control.get_or_insert_with(|| default_control(path, &place));
        description.events.get_or_insert_with(|| default_events(&place));
        description.check_files(&place)?;
        Ok(description)
    }

    /// What lies beside the file by default is no other array's.
    fn check_is_alone(&self, file: &Path) -> Result<(), DescriptionError> {
        let other = file.with_added_extension("toml");
        let field = match () {
            () if self.events.is_none() => "array.events",
            () if self.control.is_none() => "array.control",
            () => return Ok(()),
        };
        let is_the_same = || std::fs::canonicalize(file).ok() == std::fs::canonicalize(&other).ok();
        if is_toml(file) || !other.is_file() || is_the_same() {
            return Ok(());
        }
        let path = beside(file, field.trim_start_matches("array."));
        Err(DescriptionError::Shared { file: file.to_owned(), other, field, path })
    }

    /// By pool: when the administrator is told that it fills, and what thin volumes do not get.
    pub fn space_rules(&self) -> BTreeMap<String, SpaceRules> {
        self.pools.iter().map(|pool| (pool.name.clone(), pool.space.clone())).collect()
    }

    /// By pool: the drives that are to hold its write log, where the file says so.
    pub fn log_drives(&self) -> BTreeMap<String, Vec<String>> {
        let names = |pool: &PoolDescription| {
            pool.log_drives.iter().map(|drive| self.drives[*drive].name.clone()).collect()
        };
        let named = self.pools.iter().filter(|pool| !pool.log_drives.is_empty());
        named.map(|pool| (pool.name.clone(), names(pool))).collect()
    }

    /// By pool: what its caches are to be like.
    pub fn caches(&self) -> BTreeMap<String, CacheSettings> {
        let settings = |pool: &PoolDescription| CacheSettings {
            policy: pool.read_cache_policy.unwrap_or_default(),
            flash_bytes: pool.flash_cache.bytes,
            flash_drives: pool
                .flash_cache
                .drives
                .iter()
                .map(|drive| self.drives[*drive].name.clone())
                .collect(),
            flash_writes_per_day: pool.flash_cache.writes_per_day.unwrap_or(FLASH_WRITES_PER_DAY),
        };
        self.pools.iter().map(|pool| (pool.name.clone(), settings(pool))).collect()
    }

    /// Reads a description from text; `name` stands for the file in messages. Relative paths stay as they are.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line, its field and what to do.
    pub fn parse(text: &str, name: &str) -> Result<Description, DescriptionError> {
        Description::parse_with(text, name, Catalog::built_in())
    }

    /// The same with the drives of another catalogue as models.
    ///
    /// # Errors
    /// As [`Description::parse`].
    pub fn parse_with(text: &str, name: &str, catalog: &Catalog) -> Result<Description, DescriptionError> {
        Description::parse_in(text, name, Path::new(""), catalog)
    }

    /// Reads a description from text whose relative paths are those of `directory`.
    fn parse_in(
        text: &str,
        name: &str,
        directory: &Path,
        catalog: &Catalog,
    ) -> Result<Description, DescriptionError> {
        let place = error::Place { text, name, directory, catalog };
        let file: File = tier0_toml::read(text).map_err(|misread| place.misread(misread))?;
        check::check(file, &place)
    }
}

/// Bytes of the largest array file: far more than one with a table for each of ten thousand drives has.
const BYTES_MAX: u64 = 8 << 20;

/// What a file holds; nothing where that is no text, as where a drive is named in the array file's place. No more of it
/// is read than such a file can have.
fn text_of(file: &Path) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let is_text = bytes.len() as u64 <= BYTES_MAX && !bytes.contains(&0);
    Ok(String::from_utf8(bytes).ok().filter(|_| is_text))
}

/// The control socket of the array file at `place`, which was named as `file`. It lies beside the file: a verb that is given
/// the one finds the other.
fn default_control(file: &Path, place: &Path) -> PathBuf {
    let beside = beside(place, "control");
    // In a deep directory, only a process that runs near it can name a socket there.
    if listen::is_too_long(&beside) { self::beside(file, "control") } else { beside }
}

/// The file of events of the array file at `place`.
fn default_events(place: &Path) -> PathBuf {
    beside(place, "events")
}

/// A file beside an array's file: in the place of `.toml`, or behind the whole name where the file has another ending, so that
/// `a.toml` and `a.conf` share nothing.
fn beside(file: &Path, ending: &str) -> PathBuf {
    match is_toml(file) {
        true => file.with_extension(ending),
        false => file.with_added_extension(ending),
    }
}

/// Where the server moves the file of events when it is large.
pub fn moved_events(file: &Path) -> PathBuf {
    file.with_added_extension("old")
}

fn is_toml(file: &Path) -> bool {
    file.extension().is_some_and(|own| own == "toml")
}

/// Where a file lies, without steps back: a path of it is told and compared.
fn place_of(file: &Path) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(file)?;
    match (absolute.components().any(|part| part == Component::ParentDir), absolute.parent()) {
        (true, Some(directory)) => {
            Ok(std::fs::canonicalize(directory)?.join(absolute.file_name().unwrap_or_default()))
        }
        _ => Ok(absolute),
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    array: ArraySection,
    #[serde(default, rename = "drive")]
    drives: Vec<DriveSection>,
    #[serde(default, rename = "pool")]
    pools: Vec<PoolSection>,
    #[serde(default, rename = "volume")]
    volumes: Vec<VolumeSection>,
    #[serde(default)]
    nbd: NbdSection,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArraySection {
    name: Spanned<String>,
    cores: Option<Spanned<usize>>,
    memory: Option<Spanned<ByteCount>>,
    keep_awake: Option<bool>,
    pause_timeout: Option<Spanned<u64>>,
    witness: Option<Spanned<String>>,
    #[serde(default)]
    search: Vec<PathBuf>,
    control: Option<Spanned<String>>,
    control_mode: Option<Spanned<String>>,
    control_owner: Option<Spanned<String>>,
    control_group: Option<Spanned<String>>,
    events: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DriveSection {
    name: Spanned<String>,
    count: Option<Spanned<u32>>,
    path: Option<Spanned<String>>,
    size: Option<Spanned<ByteCount>>,
    ram: Option<Spanned<ByteCount>>,
    model: Option<Spanned<String>>,
    class: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolSection {
    name: Spanned<String>,
    drives: Option<Vec<Spanned<String>>>,
    raid: Option<Spanned<String>>,
    set_size: Option<Spanned<usize>>,
    groups: Option<Spanned<usize>>,
    stripe_unit: Option<Spanned<ByteCount>>,
    chunklet: Option<Spanned<ByteCount>>,
    extent: Option<Spanned<ByteCount>>,
    spare_drives: Option<Spanned<u32>>,
    #[serde(default, rename = "group")]
    set_groups: Vec<GroupSection>,
    checksums: Option<bool>,
    log: Option<Spanned<ByteCount>>,
    log_drives: Option<Vec<Spanned<String>>>,
    warn_at: Option<Vec<Spanned<u8>>>,
    reserve: Option<Spanned<String>>,
    read_cache: Option<bool>,
    write_cache: Option<bool>,
    read_cache_policy: Option<Spanned<String>>,
    flash_cache: Option<Spanned<ByteCount>>,
    flash_cache_drives: Option<Vec<Spanned<String>>>,
    flash_cache_writes: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupSection {
    name: Spanned<String>,
    drives: Vec<Spanned<String>>,
    raid: Spanned<String>,
    set_size: Option<Spanned<usize>>,
    groups: Option<Spanned<usize>>,
    stripe_unit: Option<Spanned<ByteCount>>,
    spare_drives: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VolumeSection {
    name: Spanned<String>,
    pool: Option<Spanned<String>>,
    size: Spanned<ByteCount>,
    #[serde(default)]
    thin: bool,
    write_cache: Option<Spanned<String>>,
    read_cache: Option<bool>,
    place: Option<Spanned<String>>,
    group: Option<Spanned<String>>,
    iops_max: Option<Spanned<u32>>,
    mbps_max: Option<Spanned<u32>>,
    burst: Option<Spanned<u32>>,
    weight: Option<Spanned<u32>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NbdSection {
    #[serde(default)]
    listen: Vec<Spanned<String>>,
    /// Whether addresses that other machines reach are allowed.
    #[serde(default)]
    allow_remote: bool,
    socket_mode: Option<Spanned<String>>,
    socket_owner: Option<Spanned<String>>,
    socket_group: Option<Spanned<String>>,
}

/// How long hosts wait for drives of a paused pool where nothing is said: longer than what passes by itself usually takes (a
/// path that is switched over, a shelf that restarts), and shorter than databases and file systems wait.
pub const PAUSE_TIMEOUT: Nanos = Nanos::from_secs(120);

/// The stripe unit where none is given: as large as the largest common random I/O of databases, so that one is
/// served by one drive, and the unit of the reference arrays.
const STRIPE_UNIT_DEFAULT: ByteCount = ByteCount::kib(64);

/// The set size of a level where none is given, as far as there are drives.
fn default_set_size(level: RaidLevel, drives: usize) -> usize {
    match level {
        RaidLevel::Raid0 => drives.clamp(1, 64),
        RaidLevel::Raid1 => 2,
        RaidLevel::Raid10 => (drives.min(4) / 2 * 2).max(2),
        RaidLevel::Raid5 => drives.clamp(3, 6),
        RaidLevel::Raid50 => (drives.min(12) / 2 * 2).max(6),
        RaidLevel::Raid6 => drives.clamp(4, 10),
    }
}
