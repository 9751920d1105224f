//! Creating an array on drives, and finding it again on them.
//!
//! Everything is checked before anything is written. A pool's members are found by the identity in their superblocks,
//! whatever their paths; a member that was declared lost is never believed again.
//!
//! Arrays whose drives are all memory are created anew at every start, without log or checksums, and their metadata live
//! in the control task alone.

mod assemble;
mod consent;
mod copies;
mod cores;
mod create;
mod examine;
mod identity;
mod layout;
mod media;
pub(crate) mod medium;
mod missing;
mod opening;
mod places;
pub mod recover;
mod rehearsal;
mod room;
mod stored;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use self::opening::is_same_place;
use tier0_api::Event;
use tier0_description::CacheSettings;
use tier0_pool::{LogCopy, MemberState, MetaRecord, PoolState, Space, SpaceRules};
use tier0_units::{ByteCount, SectorCount};
use tier0_world::{RealOptions, RealRuntime, World};
use uuid::Uuid;

pub use assemble::{open, rehearse, witness_fault};
pub(crate) use consent::Consents;
pub use copies::look_for_copies;
pub use create::{CreateOptions, create};
pub(crate) use create::{NewMedium, check_blank, open_new_medium};
pub(crate) use examine::examine;
pub use layout::{DriveLayout, GroupLayout, PartLayout, PoolLayout, VolumeLayout};
pub(crate) use media::drive_at;
pub(crate) use medium::Medium;
pub(crate) use missing::Owner;
pub use places::{Displaced, look_at_places};
pub use rehearsal::{HeldDrive, Rehearsal, is_virtual, rehearse_creation};
pub use stored::{StoredVolume, stored_volumes};

use crate::ArrayError;
use crate::repartition::lacks_lanes;

/// An array whose drives are open and whose state is checked, ready to run.
pub struct OpenArray {
    pub(crate) name: String,
    /// Shards that it runs on: its write log has a part for each.
    pub(crate) cores: usize,
    /// Shards that it should run on.
    pub(crate) cores_wanted: usize,
    /// What slot tables and dirty pages take at most, all shards and pools together, if the file says so.
    pub(crate) memory: Option<tier0_units::ByteCount>,
    pub(crate) keep_awake: bool,
    /// Who is told of events.
    pub(crate) events: Option<SyncSender<Event>>,
    /// How long hosts wait for drives of a paused pool before they get errors.
    pub(crate) pause_timeout: tier0_units::Nanos,
    /// By pool: when the administrator is told that it fills, and what thin volumes do not get.
    pub(crate) space: BTreeMap<String, SpaceRules>,
    /// By pool: the drives that are to hold its write log, where the array file says so.
    pub(crate) log_drives: BTreeMap<String, Vec<String>>,
    /// By pool: what its caches are to be like.
    pub(crate) caches: BTreeMap<String, CacheSettings>,
    pub(crate) kind: Kind,
    /// What an administrator should know: drives that are missing, stale or blank.
    pub(crate) warnings: Vec<String>,
    /// Why what the drives hold may not be the newest.
    pub(crate) doubts: Vec<String>,
    pools: Vec<OpenPool>,
}

/// Where an array's pools come from.
pub(crate) enum Kind {
    /// They are new and live in memory: each with its drives, by member.
    InMemory(Vec<(PoolState, Vec<Arc<Medium>>)>),
    /// They are found on drives that remember.
    Lasting {
        /// Everything that may be a drive of it.
        media: Vec<Arc<Medium>>,
        /// The pools, in the order of the description.
        pools: Vec<ToOpen>,
        /// Who decides that drives are done without.
        consents: Consents,
    },
}

/// How an array is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Drives to start without, by name, or by a path (with a slash) at which one lies: what only they hold is given up.
    pub without: Vec<String>,
}

impl OpenOptions {
    /// Whether to start without what the array file calls so, or has there.
    fn is_without(&self, drive: &str, path: &Path) -> bool {
        self.without.iter().any(|one| one == drive || is_path(one) && is_same_place(Path::new(one), path))
    }
}

/// Whether what was given for a drive is a path: names have no slash.
fn is_path(drive: &str) -> bool {
    drive.contains('/')
}

/// A pool that was found and is to be opened.
#[derive(Clone)]
pub(crate) struct ToOpen {
    pub(crate) id: Uuid,
    /// What the description adds to it.
    pub(crate) additions: Vec<MetaRecord>,
}

/// A pool as it was when the array was opened.
struct OpenPool {
    name: String,
    level: String,
    drives: usize,
    drives_lost: usize,
    /// The names of the others.
    serving: Vec<String>,
    usable: ByteCount,
    free: ByteCount,
    log_copies: usize,
    /// Parts of its write log; none where there is no log.
    log_parts: usize,
    /// Whether groups share a lane of its write log that can have one of their own.
    lacks_lanes: bool,
    volumes: Vec<(String, ByteCount)>,
    layout: PoolLayout,
}

impl OpenArray {
    /// The array's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Shards it runs on.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Whether what is acknowledged outlives the process: log, checksums and metadata are kept.
    pub fn is_lasting(&self) -> bool {
        matches!(self.kind, Kind::Lasting { .. })
    }

    /// Where everything lies that may be a drive of it.
    pub fn places(&self) -> Vec<PathBuf> {
        match &self.kind {
            Kind::Lasting { media, .. } => media.iter().filter_map(|medium| medium.path()).collect(),
            Kind::InMemory(_) => Vec::new(),
        }
    }

    /// The names of the drives that serve.
    pub fn serving(&self) -> impl Iterator<Item = &str> {
        self.pools.iter().flat_map(|pool| &pool.serving).map(String::as_str)
    }

    /// Has events told here too while the array runs. The array does not wait for room: what has none is counted and
    /// told later.
    pub fn tell_events(&mut self, to: SyncSender<Event>) {
        self.events = Some(to);
    }

    /// What an administrator should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Why what the drives hold may not be the newest, as long as they serve.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// The volumes in order: name and size.
    pub fn volumes(&self) -> impl Iterator<Item = (&str, ByteCount)> {
        let volumes = self.pools.iter().flat_map(|pool| &pool.volumes);
        volumes.map(|(name, size)| (name.as_str(), *size))
    }

    /// The layout of each pool, in order.
    pub fn layouts(&self) -> impl Iterator<Item = &PoolLayout> {
        self.pools.iter().map(|pool| &pool.layout)
    }

    /// The pools in order: name, RAID level, drives, drives lost, usable space, free space.
    pub fn pools(&self) -> impl Iterator<Item = PoolSummary<'_>> {
        self.pools.iter().map(|pool| PoolSummary {
            name: &pool.name,
            level: &pool.level,
            drives: pool.drives,
            drives_lost: pool.drives_lost,
            usable: pool.usable,
            free: pool.free,
            log_copies: pool.log_copies,
        })
    }
}

/// A pool in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSummary<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its RAID level.
    pub level: &'a str,
    /// Its drives.
    pub drives: usize,
    /// How many of them are lost.
    pub drives_lost: usize,
    /// What volumes can use in all.
    pub usable: ByteCount,
    /// What of it no volume has.
    pub free: ByteCount,
    /// Copies that the write log has; none where there is no log.
    pub log_copies: usize,
}

impl OpenPool {
    fn of_state(state: &PoolState) -> OpenPool {
        let space = Space::of(state);
        let there = state.members().iter().filter(|member| member.state != MemberState::Removed);
        let size = |sectors: u64| SectorCount(sectors).bytes();
        let serves = |copy: &&LogCopy| state.is_active(copy.member);
        let rings = state.log().rings.iter();
        OpenPool {
            layout: PoolLayout::of(state),
            name: state.name().to_owned(),
            level: tier0_plan::levels(state),
            drives: there.clone().count(),
            drives_lost: there.clone().filter(|member| !member.is_active()).count(),
            serving: there.filter(|member| member.is_active()).map(|member| member.name.clone()).collect(),
            usable: space.usable,
            free: space.free(),
            log_parts: state.log().shards(),
            lacks_lanes: lacks_lanes(state),
            log_copies: rings.map(|ring| ring.copies.iter().filter(serves).count()).min().unwrap_or(0),
            volumes: state
                .volumes()
                .filter(|volume| !volume.is_unfinished())
                .map(|volume| (volume.name.clone(), size(volume.sectors)))
                .collect(),
        }
    }
}

/// Runs a piece of set-up in a real world of its own.
fn in_real_world<T: 'static, F: Future<Output = T> + 'static>(
    work: impl FnOnce(World) -> F,
) -> Result<T, ArrayError> {
    let runtime = RealRuntime::new(&RealOptions::default())
        .map_err(|source| ArrayError::System { what: "the real world cannot be opened".into(), source })?;
    Ok(runtime.run(work(runtime.world().clone())))
}
