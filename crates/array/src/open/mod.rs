//! Creating an array on drives, and finding it again on them.
//!
//! Everything is checked before anything is written. A pool's members are found by the identity in their superblocks,
//! whatever their paths; a member that was declared lost is never believed again.

mod assemble;
mod create;
mod medium;

use std::sync::Arc;

use tier0_drive::DriveHandle;
use tier0_pool::superblock::Superblock;
use tier0_raid::io::LostDrives;
use tier0_world::{RealOptions, RealRuntime, World};

pub use assemble::open;
pub use create::{CreateOptions, create};
pub(crate) use medium::Medium;

use crate::ArrayError;
use crate::plan::PoolPlan;

/// An array whose drives are open and whose record is checked, ready to run.
pub struct OpenArray {
    pub(crate) name: String,
    pub(crate) cores: usize,
    pub(crate) pools: Vec<OpenPool>,
    /// What an administrator should know: drives that are missing, stale or blank.
    pub(crate) warnings: Vec<String>,
}

/// One pool of it.
pub(crate) struct OpenPool {
    pub(crate) plan: PoolPlan,
    pub(crate) generation: u64,
    /// By the members' places; none where a member is lost.
    pub(crate) media: Vec<Option<Arc<Medium>>>,
    pub(crate) lost: Arc<LostDrives>,
}

impl OpenArray {
    /// The array's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Shards it will run on.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// What an administrator should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The volumes in order: name and size.
    pub fn volumes(&self) -> impl Iterator<Item = (&str, tier0_units::ByteCount)> {
        let volumes = self.pools.iter().flat_map(|pool| &pool.plan.record.volumes);
        volumes.map(|volume| (volume.name.as_str(), tier0_units::SectorCount(volume.sectors).bytes()))
    }

    /// The pools in order: name, RAID level, drives, drives lost, usable space, free space.
    pub fn pools(&self) -> impl Iterator<Item = PoolSummary<'_>> {
        self.pools.iter().map(|pool| {
            let (usable, free) = pool.plan.space();
            PoolSummary {
                name: &pool.plan.record.name,
                level: &pool.plan.record.raid.level,
                drives: pool.media.len(),
                drives_lost: pool.media.iter().filter(|medium| medium.is_none()).count(),
                usable,
                free,
            }
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
    pub usable: tier0_units::ByteCount,
    /// What of it no volume has.
    pub free: tier0_units::ByteCount,
}

impl OpenPool {
    fn superblock(&self) -> Superblock {
        Superblock {
            generation: self.generation,
            member: uuid::Uuid::nil(),
            record: self.plan.record.clone(),
        }
    }

    pub(crate) fn memory(&self, drives: &[Option<DriveHandle>]) -> crate::control::PoolMemory {
        let persistent = self.media.iter().flatten().any(|medium| medium.is_persistent());
        crate::control::PoolMemory { superblock: self.superblock(), drives: drives.to_vec(), persistent }
    }

    pub(crate) fn open_drives(&self, world: &World) -> Result<Vec<Option<DriveHandle>>, ArrayError> {
        let open =
            |medium: &Option<Arc<Medium>>| medium.as_ref().map(|medium| medium.drive(world)).transpose();
        self.media.iter().map(open).collect()
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
