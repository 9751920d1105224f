//! A case at one part in so many: databases, their buffers, the array's read caches and its fast groups are that much smaller, and
//! the databases lie over as much space as the whole.
//!
//! Shares stay what they are: of the pages in memory, in a cache or on flash, and of the disks' stroke. What depends on time is faster
//! by the same factor: a cache fills and a tier moves its extents sooner. A load beside the databases is not made smaller.

use std::borrow::Cow;
use std::collections::BTreeSet;

use tier0_catalog::{Catalog, DriveSpec, VaryError};
use tier0_database::layout::Layout;
use tier0_database::run::DatabaseSpec;
use tier0_description::{Description, VolumeDescription};
use tier0_units::{ByteCount, SectorCount};

use super::file::RunSection;

/// The largest factor.
const MOST: f64 = 1000.0;

/// The least endurance that the catalogue takes.
const ENDURANCE_LEAST_PB: f64 = 0.05;

/// Memory of an array that says none, and its share for dirty pages.
const MEMORY: ByteCount = ByteCount::mib(320);
const DIRTY_SHARE: f64 = 0.7;
/// The write cache is not made smaller, because the rate of writes is not. Where it would hold more than this share of the smaller
/// database, it would absorb writes that the whole one's drives get.
const DIRTY_MOST: f64 = 0.05;

/// How much smaller a case is.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrunk {
    /// One part in so many; 1 is the whole.
    pub factor: f64,
    /// The models whose drives are that much smaller: those of fast groups.
    models: BTreeSet<String>,
}

impl Shrunk {
    /// What a case says, after the caches of its array were made smaller; the error is the fact and the remedy.
    pub(super) fn of(run: &RunSection, system: &mut Description) -> Result<Shrunk, String> {
        let factor = run.shrink.unwrap_or(1.0);
        if !(1.0..=MOST).contains(&factor) {
            return Err(format!("run.shrink is out of range; use 1 to {MOST}"));
        }
        let smaller = |bytes: &mut ByteCount| bytes.0 = (bytes.0 as f64 / factor) as u64;
        system.memory.iter_mut().for_each(smaller);
        system.pools.iter_mut().filter_map(|pool| pool.flash_cache.bytes.as_mut()).for_each(smaller);
        let fast = fast_drives(system);
        let model = |drive: &usize| system.drives[*drive].model.clone();
        let models: BTreeSet<String> = fast.iter().filter_map(model).collect();
        let others = (0..system.drives.len()).filter(|drive| !fast.contains(drive));
        match others.filter_map(|drive| model(&drive)).find(|other| models.contains(other)) {
            Some(shared) if factor > 1.0 => Err(format!(
                "run.shrink: drives of model {shared:?} are in a fast group and elsewhere; leave run.shrink out, or use a \
                 calibration of its own for the fast group"
            )),
            _ => Ok(Shrunk { factor, models }),
        }
    }

    /// Refuses a database that is so small that the array's write cache changes what it does; the error is the fact and the remedy.
    pub(super) fn check(&self, database: &DatabaseSpec, system: &Description) -> Result<(), String> {
        if self.factor <= 1.0 {
            return Ok(());
        }
        let bytes = Layout::new(&database.workload, &database.engine, &database.scale).bytes();
        let memory = ByteCount((system.memory.unwrap_or(MEMORY).0 as f64 * DIRTY_SHARE) as u64);
        let dirty = |log: Option<u64>| log.map_or(memory, |sectors| SectorCount(sectors).bytes().min(memory));
        let most = system.pools.iter().filter(|pool| pool.log).map(|pool| dirty(pool.log_sectors)).max();
        let share = most.unwrap_or_default().0 as f64 / bytes.0 as f64;
        match share <= DIRTY_MOST {
            true => Ok(()),
            false => Err(format!(
                "run.shrink: the write cache holds up to {}, {:.0} % of a database of {} at one part in {}, and would absorb its \
                 writes; use a smaller factor, or a smaller log (system.pool.log)",
                most.unwrap_or_default(),
                share * 100.0,
                bytes,
                self.factor
            )),
        }
    }

    /// The catalogue with smaller drives in fast groups.
    pub(super) fn catalog<'a>(&self, whole: &'a Catalog) -> Result<Cow<'a, Catalog>, VaryError> {
        let mut catalog = Cow::Borrowed(whole);
        for model in self.models.iter().filter(|_| self.factor > 1.0) {
            if let DriveSpec::Flash(flash) = catalog.drive_by_reference(model)? {
                let number = &flash.parameters;
                // The endurance first: a smaller drive could not have the whole one's. Below its range nothing depends on it.
                let endurance = (number.endurance_pb.value / self.factor).max(ENDURANCE_LEAST_PB);
                let capacity = number.capacity_gb.value / self.factor;
                let smaller = catalog.varied(model, "endurance_pb", endurance)?;
                catalog = Cow::Owned(smaller.varied(model, "capacity_gb", capacity)?);
            }
        }
        Ok(catalog)
    }
}

/// The drives to which a tier moves extents: those of the groups, in pools with tiered volumes, that no tiered volume belongs to.
fn fast_drives(system: &Description) -> BTreeSet<usize> {
    let mut fast = BTreeSet::new();
    for (number, pool) in system.pools.iter().enumerate() {
        let tiered: Vec<&VolumeDescription> =
            system.volumes.iter().filter(|volume| volume.pool == number && volume.is_tiered()).collect();
        if tiered.is_empty() {
            continue;
        }
        let first = &pool.groups[0].name;
        let is_home = |name: &str| tiered.iter().any(|volume| volume.group.as_ref().unwrap_or(first) == name);
        fast.extend(pool.groups.iter().filter(|group| !is_home(&group.name)).flat_map(|group| &group.drives));
    }
    fast
}
