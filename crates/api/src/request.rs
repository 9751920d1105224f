//! What an administrator can ask of a running array, and what comes back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tier0_units::{ByteCount, WriteCache};
use uuid::Uuid;

use crate::{DriveClass, IoReport, PoolFacts, Reserve, Status, TierExplanation, TierPlan, VolumePlace};

/// A request. Pools may be left out where the array has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum AdminRequest {
    /// What the array is and how it does.
    Status,
    /// What its volumes and drives have done.
    Io,
    /// What the array is made of.
    Describe,
    /// What a start would say that does not find these drives.
    StartWithout {
        /// Their identities.
        #[cfg_attr(test, schemars(with = "Vec<String>"))]
        drives: Vec<Uuid>,
    },
    /// Takes a drive out of service, as if it had failed; what it holds is rebuilt elsewhere.
    DriveFail {
        /// The drive's name.
        drive: String,
    },
    /// Why the array would not do without a drive now, so that consent is asked only for what can be done.
    CouldFail {
        /// The drive's name.
        drive: String,
    },
    /// Adds a drive to a pool: its chunklets are spares at once, and `pool-grow` makes sets of them.
    DriveAdd {
        /// The pool.
        pool: Option<String>,
        /// What the drive is called from now on.
        name: String,
        /// Its file or device.
        path: PathBuf,
        /// The size at which a missing file is created.
        #[cfg_attr(test, schemars(with = "Option<u64>"))]
        size: Option<ByteCount>,
        /// Overwrite what it holds.
        force: bool,
        /// The group of sets that it is for, where the pool has several.
        #[serde(default)]
        group: Option<String>,
        /// What kind of drive it is, if not what the device says.
        #[serde(default)]
        class: Option<DriveClass>,
    },
    /// Adds a group of RAID sets with its drives to a pool, and makes its first sets.
    PoolAddGroup {
        /// The pool.
        pool: Option<String>,
        /// What the group is called from now on.
        name: String,
        /// The name that the pool's only group gets, if it has none.
        #[serde(default)]
        first_name: Option<String>,
        /// The shape of its sets.
        shape: GroupShape,
        /// Its drives.
        drives: Vec<GroupDrive>,
        /// Whether its sets are made later, by `pool-grow`.
        #[serde(default)]
        without_sets: bool,
        /// Overwrite what they hold.
        #[serde(default)]
        force: bool,
    },
    /// Has a group of RAID sets leave its pool: what lies in it moves to the groups of its volumes, then its drives hold nothing.
    PoolRemoveGroup {
        /// The pool.
        pool: Option<String>,
        /// The group.
        group: String,
        /// Whether a group that is leaving is to stay after all.
        #[serde(default)]
        cancel: bool,
    },
    /// Takes back a drive that was lost and answers again.
    DriveRejoin {
        /// The drive's name.
        drive: String,
        /// Where it lies now, as the administrator says.
        #[serde(default)]
        path: Option<PathBuf>,
        /// Where the array file has it.
        #[serde(default)]
        in_file: Option<PathBuf>,
        /// Also one that went on by itself meanwhile: what it holds of that is lost.
        #[serde(default)]
        force: bool,
    },
    /// Moves everything off a drive and forgets it.
    DriveRemove {
        /// The drive's name.
        drive: String,
        /// Take it out of service at once and rebuild what it held, instead of copying that first.
        #[serde(default)]
        force: bool,
        /// It stays after all.
        #[serde(default)]
        stop: bool,
    },
    /// Adds a drive in another's stead and moves everything to it.
    DriveReplace {
        /// The drive that goes.
        drive: String,
        /// What the new one is called.
        name: String,
        /// Its file or device.
        path: PathBuf,
        /// The size at which a missing file is created.
        #[cfg_attr(test, schemars(with = "Option<u64>"))]
        size: Option<ByteCount>,
        /// Overwrite what it holds.
        force: bool,
        /// What kind of drive it is, if not what the device says.
        #[serde(default)]
        class: Option<DriveClass>,
    },
    /// Makes sets of all free chunklets but the spares, and spreads what is stored over all sets. Columns move first where
    /// too few drives have free chunklets.
    PoolGrow {
        /// The pool.
        pool: Option<String>,
        /// Move no more columns for it.
        #[serde(default)]
        stop: bool,
    },
    /// Moves the write log to other drives.
    PoolLog {
        /// The pool.
        pool: Option<String>,
        /// The drives that are to hold its write log, by name, as many as it has copies.
        drives: Vec<String>,
    },
    /// Makes the flash read cache of a pool, changes its size, or takes it away.
    PoolFlashCache {
        /// The pool.
        pool: Option<String>,
        /// Its size over all of its drives; zero for none.
        #[cfg_attr(test, schemars(with = "u64"))]
        size: ByteCount,
        /// The drives that are to hold it, by name; those that do, or all flash drives, where none are given.
        #[serde(default)]
        drives: Vec<String>,
    },
    /// Changes what of a pool thin volumes do not get, until the array is started again.
    PoolReserve {
        /// The pool.
        pool: Option<String>,
        /// What is kept.
        reserve: Reserve,
    },
    /// Switches the caches of all volumes of a pool. A volume uses a cache where its own switch and its pool's are on.
    PoolCache {
        /// The pool; all of them where none is given.
        pool: Option<String>,
        /// Whether volumes may use the read cache.
        #[serde(default)]
        read: Option<bool>,
        /// Whether volumes may use the write cache; what is acknowledged is in its place at the end where not.
        #[serde(default)]
        write: Option<bool>,
    },
    /// Spreads what is stored over all sets evenly, or stops doing so.
    PoolRestripe {
        /// The pool.
        pool: Option<String>,
        /// Bytes per second at most.
        #[cfg_attr(test, schemars(with = "Option<u64>"))]
        rate: Option<ByteCount>,
        /// Stop what is going on.
        stop: bool,
    },
    /// Starts a scrub, or goes on with one that was stopped.
    ScrubStart {
        /// The pool; all of them where none is given.
        pool: Option<String>,
        /// Bytes per second at most; not 0.
        #[cfg_attr(test, schemars(with = "Option<u64>"))]
        rate: Option<ByteCount>,
    },
    /// Stops a scrub; it goes on from here when it is started again.
    ScrubStop {
        /// The pool; all of them where none is given.
        pool: Option<String>,
    },
    /// Creates a volume.
    VolumeCreate {
        /// The pool.
        pool: Option<String>,
        /// Its name.
        name: String,
        /// Its size.
        #[cfg_attr(test, schemars(with = "u64"))]
        size: ByteCount,
        /// Whether extents are allocated at the first write.
        thin: bool,
        /// When its writes are acknowledged.
        #[cfg_attr(test, schemars(with = "crate::schema::WriteCache"))]
        write_cache: WriteCache,
        /// The group of sets that it lies on; the pool's first where none is given.
        #[serde(default)]
        group: Option<String>,
    },
    /// Makes a new volume that holds what a volume holds at this moment.
    VolumeClone {
        /// The volume.
        volume: String,
        /// The new one's name.
        name: String,
    },
    /// Makes a volume larger.
    VolumeResize {
        /// The volume.
        volume: String,
        /// Its size from now on.
        #[cfg_attr(test, schemars(with = "u64"))]
        size: ByteCount,
    },
    /// Moves a volume, and what is cloned from it, to another group of its pool.
    VolumeMigrate {
        /// The volume.
        volume: String,
        /// The group's name.
        group: String,
    },
    /// Makes a volume smaller: what it holds beyond its new size is discarded.
    VolumeShrink {
        /// The volume.
        volume: String,
        /// Its size from now on.
        #[cfg_attr(test, schemars(with = "u64"))]
        size: ByteCount,
        /// Disconnect clients that use it.
        #[serde(default)]
        force: bool,
    },
    /// Gives a volume another name. Clients that use it stay connected.
    VolumeRename {
        /// The volume.
        volume: String,
        /// Its name from now on.
        name: String,
    },
    /// Deletes a volume and what it holds.
    VolumeDelete {
        /// The volume.
        volume: String,
        /// Cut off clients that use it.
        force: bool,
    },
    /// Switches a volume's caches.
    VolumeCache {
        /// The volume.
        volume: String,
        /// Whether its reads use the read cache.
        #[serde(default)]
        read: Option<bool>,
        /// When its writes are acknowledged; what is acknowledged is in its place at the end where that is
        /// [`WriteCache::Off`].
        #[serde(default)]
        #[cfg_attr(test, schemars(with = "Option<crate::schema::WriteCache>"))]
        write: Option<WriteCache>,
    },
    /// Says where the extents of a volume are to lie.
    VolumePlace {
        /// The volume.
        volume: String,
        /// Where.
        place: VolumePlace,
    },
    /// Pins a part of a volume: its extents lie in that group whatever else is said of the volume.
    VolumePin {
        /// The volume.
        volume: String,
        /// The first byte.
        #[cfg_attr(test, schemars(with = "u64"))]
        from: ByteCount,
        /// Behind the last byte.
        #[cfg_attr(test, schemars(with = "u64"))]
        to: ByteCount,
        /// The group: `fast`, or `slow` for the volume's own.
        place: VolumePlace,
        /// When the pin ends, in seconds since 1970; never where it is 0.
        #[serde(default)]
        until_unix_s: u64,
    },
    /// Ends pins of a part of a volume.
    VolumeUnpin {
        /// The volume.
        volume: String,
        /// The first byte.
        #[cfg_attr(test, schemars(with = "u64"))]
        from: ByteCount,
        /// Behind the last byte.
        #[cfg_attr(test, schemars(with = "u64"))]
        to: ByteCount,
    },
    /// Switches the tier of a pool, or limits what it moves.
    PoolTier {
        /// The pool.
        pool: Option<String>,
        /// Whether it moves extents by itself.
        #[serde(default)]
        on: Option<bool>,
        /// Bytes per second at most; 0 for no limit but the load of hosts.
        #[serde(default)]
        #[cfg_attr(test, schemars(with = "Option<u64>"))]
        rate: Option<ByteCount>,
    },
    /// Why an extent lies where it lies. Accesses are counted from the first such request on, if nothing was placed before.
    TierExplain {
        /// The volume.
        volume: String,
        /// An offset in it.
        #[cfg_attr(test, schemars(with = "u64"))]
        offset: ByteCount,
    },
    /// What the tier of a pool will do next, and what each size of flash would serve.
    TierPlan {
        /// The pool.
        pool: Option<String>,
    },
    /// Changes a volume's ceilings, as far as something is said; zero is no ceiling.
    VolumeCeilings {
        /// The volume.
        volume: String,
        /// Requests a second.
        #[serde(default)]
        iops_max: Option<u32>,
        /// Megabytes (10^6 bytes) a second.
        #[serde(default)]
        mbps_max: Option<u32>,
        /// The seconds of which a budget that is not used may be used later.
        #[serde(default)]
        burst_seconds: Option<u32>,
    },
    /// Changes what a volume gets in comparison with others where writers are delayed.
    VolumeWeight {
        /// The volume.
        volume: String,
        /// 1 to 100; 10 where nothing was set.
        weight: u32,
    },
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AdminReply {
    /// It is done; one sentence about it.
    Done(String),
    /// The array's status.
    Status(Box<Status>),
    /// What volumes and drives have done.
    Io(Box<IoReport>),
    /// Why an extent lies where it lies.
    TierExplained(Box<TierExplanation>),
    /// What a tier will do next.
    TierPlanned(Box<TierPlan>),
    /// What the array's pools are.
    Described(Vec<PoolFacts>),
    /// Why a start, or what was asked about, would be refused, a sentence each; empty where it would not.
    Objections(Vec<String>),
    /// It cannot be done as it was asked, and nothing was changed: the fact and the remedy.
    Refused(String),
    /// The same of a drive that is to join and holds something: `force` has that overwritten.
    Held(String),
    /// It was tried, and something failed: the fact and the remedy.
    Failed(String),
}

/// The shape of the sets of a group; what is left out is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupShape {
    /// The RAID level, by its name.
    pub raid: String,
    /// Drives of a set.
    #[serde(default)]
    pub set_size: Option<usize>,
    /// RAID 5 groups of a RAID 50 set.
    #[serde(default)]
    pub raid50_groups: Option<usize>,
    /// The stripe unit.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub stripe_unit: Option<ByteCount>,
    /// How many drives' worth of chunklets stay free for rebuilding.
    #[serde(default)]
    pub spare_drives: Option<u32>,
}

/// A drive that joins with its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupDrive {
    /// What the drive is called from now on.
    pub name: String,
    /// Its file or device.
    pub path: PathBuf,
    /// The size at which a missing file is created.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub size: Option<ByteCount>,
    /// What kind of drive it is, if not what the device says.
    #[serde(default)]
    pub class: Option<DriveClass>,
}
