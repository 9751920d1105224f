//! A write cache with something in it: pages of the load's own places, written as fast as the cache takes them.
//!
//! Nothing is read for it, and next to no virtual time passes, so the drives have hardly begun with it when it is there.

use std::rc::Rc;

use futures_util::future::join_all;
use tier0_array::Volume;
use tier0_block::BlockTarget;
use tier0_cache::{Stage, WriteBackStatus};
use tier0_units::{Lba, PAGE_SECTORS, SECTOR_BYTES};
use tier0_world::{IoError, Random, World};

/// Writes under way at once: a few frames of the log.
const AT_ONCE: u64 = 64;

/// A write cache of an array, and what the load writes to it.
#[derive(Clone)]
pub(super) struct WarmCache {
    /// Those that share it, at least one.
    pub(super) volumes: Rc<[Volume]>,
    /// Sectors of a request, and what its addresses are multiples of.
    pub(super) sectors: u64,
    pub(super) align: u64,
}

impl WarmCache {
    /// How it stands.
    pub(super) fn status(&self) -> WriteBackStatus {
        self.volumes[0].write_cache()
    }

    /// Writes until the destager is at `stage`, or as much as the cache holds where drives take it as fast.
    pub(super) async fn fill(self, world: World, mut random: Random, stage: Stage) {
        let pages = self.sectors.div_ceil(PAGE_SECTORS) * AT_ONCE;
        let rounds = self.status().log_bytes / (pages * PAGE_SECTORS * SECTOR_BYTES) + 1;
        for _ in 0..rounds {
            if self.status().stage >= stage {
                return;
            }
            let writes: Vec<_> = (0..AT_ONCE).map(|_| self.write(&world, &mut random)).collect();
            // A modelled array without injected faults takes every write.
            let _ = join_all(writes).await;
        }
    }

    /// The pages that a request of the load would make dirty.
    fn write(&self, world: &World, random: &mut Random) -> impl Future<Output = Result<(), IoError>> + use<> {
        let volume = self.volumes[random.below(self.volumes.len() as u64) as usize].clone();
        let places = (volume.info().sectors.0 - self.sectors) / self.align + 1;
        let lba = random.below(places) * self.align;
        let first = lba / PAGE_SECTORS * PAGE_SECTORS;
        let end = (lba + self.sectors).next_multiple_of(PAGE_SECTORS);
        let data = world.buffer((end - first) as u32).freeze();
        async move { volume.write(Lba(first), data, false).await }
    }
}
