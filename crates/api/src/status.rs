//! What an array says of itself: the one structure behind `tier0 status`, its table and its JSON.
//!
//! Sizes are in bytes, rates in bytes per second, times in seconds, shares from 0 to 1.

use std::fmt;

use serde::{Deserialize, Serialize};
use tier0_units::WriteCache;

use crate::event::Event;
use crate::finding::{Finding, FindingKind};
use crate::{
    ApiVersion, CacheSwitches, Ceilings, FlashCacheStatus, Flushing, IoSummary, PinStatus, ReadCacheStatus,
    Subject, TierStatus, VolumePlace,
};

/// How an array does, best first; the order is that of urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Everything is redundant and there is space.
    Healthy,
    /// Everything is redundant, and the administrator should look: little space, errors that were repaired.
    Warning,
    /// Something is not as redundant as it should be.
    Degraded,
    /// Data is lost, or cannot be reached or written.
    Critical,
}

/// A whole array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// The version of this contract.
    #[serde(default = "ApiVersion::unnamed")]
    pub api: ApiVersion,
    /// Its name.
    pub array: String,
    /// The worst of its pools.
    pub health: Health,
    /// One sentence: what is wrong and what to do, or that all is well.
    pub summary: String,
    /// Shards it runs on.
    pub shards: usize,
    /// Where its server listens for clients, as an array file has it; the server adds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<String>,
    /// Its clients' connections; the server adds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsStatus>,
    /// Its pools.
    pub pools: Vec<PoolStatus>,
    /// What has happened lately, newest last.
    #[serde(default)]
    pub events: Vec<Event>,
}

/// Connections of clients, of all shards together. Those that were closed are counted since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConnectionsStatus {
    /// Connections that are open.
    pub open: u64,
    /// Those of them that have not finished their handshake.
    pub negotiating: u64,
    /// How many may be open at a time.
    pub limit: u64,
    /// How many of them may be of one address.
    pub limit_per_address: u64,
    /// New ones that were closed because there was no place.
    pub refused: u64,
    /// Those of them whose address had as many as one may have.
    pub refused_of_address: u64,
    /// Connections that were closed in their handshake to make place for others.
    pub gave_way_negotiating: u64,
    /// The same of idle ones.
    pub gave_way_idle: u64,
}

impl Status {
    /// Adds a problem of the server or of the array file, which belongs to no pool.
    pub fn add(&mut self, kind: &FindingKind) {
        let finding = Finding::new(Subject::array(&self.array), kind, false);
        if self.health < finding.health {
            self.health = finding.health;
            self.summary = finding.text();
        }
        if let Some(pool) = self.pools.first_mut() {
            pool.problems.push(finding.text());
            pool.findings.push(finding);
        }
    }
}

/// A pause: the pool waits for drives that it cannot do without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PauseStatus {
    /// For how many seconds.
    pub since_s: u64,
    /// The drives that it waits for.
    pub drives: Vec<String>,
    /// Why it does not go on without them.
    pub why: String,
    /// What happens next.
    pub next: String,
}

/// How a drive stands with those who watch over its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DriveStanding {
    /// It answers.
    Healthy,
    /// Some command fails or takes long; it is being tried again.
    Suspect,
    /// It is not done without, and waited for.
    Awaited,
    /// It was given up.
    Lost,
}

/// What is known of a drive's health since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriveHealth {
    /// How it stands.
    pub standing: DriveStanding,
    /// For how many seconds.
    pub since_s: u64,
    /// The last error, as a sentence.
    pub last_error: Option<String>,
    /// Reads that failed, tries included.
    pub read_errors: u64,
    /// Writes and discards that failed, tries included.
    pub write_errors: u64,
    /// Flushes that failed.
    pub flush_errors: u64,
    /// Commands that took longer than a sixth of `answer_patience_s`.
    pub slow: u64,
    /// Commands that were tried again and then succeeded.
    pub retried: u64,
    /// Times that it may have lost its volatile cache.
    pub outages: u64,
    /// Whether writes wait because the file system under it is full.
    pub no_space: bool,
    /// Whether it lies on a device, which has no file system to free space on.
    #[serde(default)]
    pub on_device: bool,
    /// Pages on it that were wrong or unreadable and were repaired.
    pub pages_repaired: u64,
    /// Pages on it that nothing could make good.
    pub pages_unrecoverable: u64,
    /// For so many seconds errors are tried again before it is arbitrated.
    pub error_patience_s: u64,
    /// A command may take so many seconds before it is arbitrated.
    pub answer_patience_s: u64,
}

/// A group of a pool's RAID sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// Level and width of its sets.
    pub raid: String,
    /// How many sets.
    pub sets: u64,
    /// What volumes can use of it.
    pub usable_bytes: u64,
    /// What extents have.
    pub used_bytes: u64,
    /// What thick volumes have reserved and not used.
    pub reserved_bytes: u64,
    /// Whether it is leaving the pool: what extents have of it is still to move.
    #[serde(default)]
    pub leaving: bool,
    /// Its part of the write log, where it has one of its own.
    #[serde(default)]
    pub log: Option<LaneStatus>,
}

/// A group's part of the write log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LaneStatus {
    /// Its size on each of the log's drives.
    pub size_bytes: u64,
    /// How much of it is in use.
    pub used_bytes: u64,
    /// Pages in memory that are not yet in the group's sets.
    pub dirty_bytes: u64,
    /// How full its write cache is, and what was destaged why.
    #[serde(default)]
    pub flushing: Flushing,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// Its RAID level.
    pub raid: String,
    /// How it does.
    pub health: Health,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
    /// The same for programs, in the same order.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The pause that it is in: it waits for drives.
    #[serde(default)]
    pub paused: Option<PauseStatus>,
    /// Its drives.
    pub drives: Vec<DriveStatus>,
    /// Its RAID sets.
    pub sets: SetsStatus,
    /// The groups of its sets, where they have names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupStatus>,
    /// A rebuild that is going on.
    pub rebuild: Option<RebuildStatus>,
    /// Extents on their way to sets that hold less.
    pub restripe: Option<RestripeStatus>,
    /// The scrub that is going on, or the last one since the server started.
    pub scrub: Option<ScrubStatus>,
    /// Scrubs that have finished since the pool was created.
    #[serde(default)]
    pub scrubs_finished: u64,
    /// Its write log; none where writes go straight to the drives.
    pub log: Option<LogStatus>,
    /// Its switches over the caches of its volumes.
    #[serde(default)]
    pub cache: CacheSwitches,
    /// Its space.
    pub space: SpaceStatus,
    /// What checksums have found since the start.
    pub integrity: IntegrityStatus,
    /// The read cache in memory; none where there is none.
    #[serde(default)]
    pub read_cache: Option<ReadCacheStatus>,
    /// The read cache on flash; none where there is none.
    #[serde(default)]
    pub flash_cache: Option<FlashCacheStatus>,
    /// The performance tier; none where nothing is placed in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierStatus>,
    /// Its volumes.
    pub volumes: Vec<VolumeStatus>,
}

/// A drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriveStatus {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: DriveState,
    /// Its size.
    pub size_bytes: u64,
    /// Chunklets in sets.
    pub chunklets_used: u64,
    /// Chunklets that are not in use.
    pub chunklets_free: u64,
    /// Whether it is for data of volumes, and not for the write log or the flash cache alone.
    #[serde(default = "is_for_data")]
    pub for_data: bool,
    /// Columns of sets on it although it is not for data.
    #[serde(default)]
    pub misplaced_columns: u64,
    /// Whether it holds a copy of the write log.
    pub holds_log: bool,
    /// What it holds of the flash cache.
    #[serde(default)]
    pub flash_cache_bytes: u64,
    /// Whether it holds a copy of the metadata.
    pub holds_metadata: bool,
    /// Whether it is to be forgotten when what it holds, or held, is on the others.
    #[serde(default)]
    pub leaving: bool,
    /// What kind of drive it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<DriveClass>,
    /// The group whose sets it has columns of, where its pool has named ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether it is lost and `tier0 drive rejoin` could take it back, as far as the pool knows.
    #[serde(default)]
    pub can_return: bool,
    /// Whether its group has left the pool: it can only be removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub group_left: bool,
    /// Why it is lost, as half a sentence; none where it serves.
    #[serde(default)]
    pub lost_because: Option<String>,
    /// What is known of its health; none where no guard watches it.
    #[serde(default)]
    pub health: Option<DriveHealth>,
    /// What it has done since the start.
    #[serde(default)]
    pub io: IoSummary,
}

/// What a server says of a drive that does not tell what drives are for.
fn is_for_data() -> bool {
    true
}

/// Where a drive stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DriveState {
    /// In service.
    Active,
    /// Out of service: failed, missing, or taken out by an administrator. `tier0 drive rejoin` brings it back.
    Lost,
    /// Being emptied.
    Leaving,
}

/// A kind of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DriveClass {
    /// Flash.
    Flash,
    /// A disk, or something of which nothing is known.
    Disk,
    /// Memory.
    Ram,
}

impl fmt::Display for DriveClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriveClass::Flash => "flash",
            DriveClass::Disk => "disk",
            DriveClass::Ram => "ram",
        })
    }
}

/// The sets of a pool by how they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetsStatus {
    /// All of them.
    pub count: u64,
    /// Those that lack a column.
    pub degraded: u64,
    /// Those of the degraded whose column is being rebuilt.
    pub rebuilding: u64,
    /// Those of which a column is copied off a drive that is to leave.
    #[serde(default)]
    pub evacuating: u64,
    /// Those that lack more than their level makes up for.
    pub failed: u64,
}

/// Why columns are written anew, or copied to other drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RebuildPurpose {
    /// Something was lost.
    #[default]
    Rebuild,
    /// Drives are to leave.
    Emptying,
    /// The pool is to grow.
    Growth,
    /// Drives get back the chunklets that they keep for rebuilding.
    Spares,
    /// Columns go back to drives of data, or to the drive that replaces theirs.
    CopyBack,
}

/// A rebuild.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RebuildStatus {
    /// What it is for.
    #[serde(default)]
    pub purpose: RebuildPurpose,
    /// Slots rebuilt.
    pub slots_done: u64,
    /// Slots to rebuild, those done included.
    pub slots_total: u64,
    /// How fast, of late.
    pub rate_bytes_per_s: u64,
    /// How long it will take at that rate.
    pub left_s: Option<u64>,
    /// Why it is tried again every 10 s, where something could not be copied.
    #[serde(default)]
    pub waits: Option<String>,
}

/// A restriping that is going on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RestripeStatus {
    /// Slots moved.
    pub slots_done: u64,
    /// Slots to move, those done included, as far as is known: writes meanwhile change it.
    pub slots_total: u64,
    /// How fast, since it began.
    pub rate_bytes_per_s: u64,
    /// How long it will take at that rate.
    pub left_s: Option<u64>,
}

/// A scrub.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScrubStatus {
    /// Whether it is going on.
    pub running: bool,
    /// How much of the pool's stored data it has seen; 1 at the end of one that has finished.
    pub progress: f64,
    /// Pages it has verified.
    pub pages_verified: u64,
    /// Bytes of data it has verified; parity and copies come on top of them.
    #[serde(default)]
    pub bytes_verified: u64,
    /// Pages and parities it has repaired.
    pub repaired: u64,
    /// Pages that could not be repaired.
    pub unrecoverable: u64,
    /// Extents that it could not verify.
    #[serde(default)]
    pub extents_skipped: u64,
    /// The last scrub since the server started that has ended; none where none has.
    #[serde(default)]
    pub last: Option<LastScrub>,
}

/// A scrub that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastScrub {
    /// How it ended.
    pub result: ScrubResult,
    /// How many seconds ago.
    pub ended_s: u64,
    /// Bytes of data it has verified.
    pub bytes_verified: u64,
    /// Pages and parities it has repaired.
    pub repaired: u64,
    /// Pages that could not be repaired.
    pub unrecoverable: u64,
    /// Extents that it could not verify.
    pub extents_skipped: u64,
}

/// How a scrub ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ScrubResult {
    /// It has seen everything.
    Finished,
    /// The administrator stopped it; the next one goes on from there.
    Stopped,
    /// A part of the array did not answer.
    Failed,
}

/// A write log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LogStatus {
    /// Its size on each of its drives.
    pub size_bytes: u64,
    /// How much of it is in use.
    pub used_bytes: u64,
    /// Copies it has now, of every shard's part.
    pub copies: u32,
    /// Copies it should have.
    pub copies_wanted: u32,
    /// Pages in memory that are not yet in their sets.
    pub dirty_bytes: u64,
    /// How full the write caches are, and what was destaged why.
    #[serde(default)]
    pub flushing: Flushing,
    /// The drives that it lies on.
    #[serde(default)]
    pub drives: Vec<String>,
    /// The drives that the array file names for it, as far as the pool has them; empty where it names none.
    #[serde(default)]
    pub drives_wanted: Vec<String>,
}

/// Space of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpaceStatus {
    /// What volumes can use in all.
    pub usable_bytes: u64,
    /// What of it holds data.
    pub used_bytes: u64,
    /// What thick volumes have reserved beside.
    #[serde(default)]
    pub reserved_bytes: u64,
    /// What of the free thin volumes do not get.
    #[serde(default)]
    pub kept_bytes: u64,
    /// What has been promised to volumes.
    pub provisioned_bytes: u64,
    /// What is to be known of that, the worst first.
    pub warnings: Vec<String>,
}

/// What checksums have found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IntegrityStatus {
    /// Whether pages carry checksums.
    pub checksums: bool,
    /// Pages and parities that were wrong or unreadable and were repaired.
    pub repaired: u64,
    /// Pages that no copy could make good.
    pub unrecoverable: u64,
    /// Where those are that have not been written anew since, by volume and address.
    #[serde(default)]
    pub lost: Vec<LostRange>,
    /// Pages that are in no range of `lost`, because there are too many.
    #[serde(default)]
    pub lost_left_off: u64,
    /// The tables that say what pages must be.
    #[serde(default)]
    pub tables: TablesStatus,
}

/// Slot tables in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TablesStatus {
    /// What they take.
    pub bytes: u64,
    /// What they and dirty pages may take together.
    pub memory_bytes: u64,
    /// How often one was asked for since the start.
    pub asked: u64,
    /// How often it was not in memory, and was read from the drives.
    pub read: u64,
}

/// Neighbouring pages of a volume that no copy has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostRange {
    /// The volume's name.
    pub volume: String,
    /// The first byte.
    pub from: u64,
    /// Behind the last byte.
    pub to: u64,
    /// How many pages that are.
    pub pages: u64,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VolumeStatus {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// What of the pool it uses, alone or together with others.
    pub mapped_bytes: u64,
    /// Whether extents are allocated at the first write.
    pub thin: bool,
    /// When writes are acknowledged, the pool's switch considered; none where they go straight to the drives.
    #[cfg_attr(test, schemars(with = "Option<crate::schema::WriteCache>"))]
    pub write_cache: Option<WriteCache>,
    /// Whether reads use the read cache, the pool's switch considered.
    #[serde(default)]
    pub read_cache: bool,
    /// The group that it lies on, where its pool has named ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Where its extents are to lie.
    #[serde(default)]
    pub place: VolumePlace,
    /// Its parts that are pinned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<PinStatus>,
    /// What of it lies in other groups than its own.
    #[serde(default)]
    pub away_bytes: u64,
    /// What of that is on its way to its own group, because the volume was migrated.
    #[serde(default)]
    pub migrating_bytes: u64,
    /// What hosts may ask of it in a second; none where it has no ceilings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
    /// What it gets in comparison with other volumes where writers are delayed, 1 to 100.
    #[serde(default = "crate::facts::weight_default")]
    pub weight: u32,
    /// The names of its clones and of those whose clone it is. They may share space.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub family: Vec<String>,
    /// Connections of clients to it now.
    #[serde(default)]
    pub connections: usize,
    /// What hosts have asked of it since the start.
    #[serde(default)]
    pub io: IoSummary,
}
