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

/// Where a request of a load goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Which of the volumes.
    pub(crate) volume: usize,
    /// The first sector.
    pub(crate) lba: u64,
    /// How many.
    pub(crate) sectors: u64,
}

/// A write cache of an array, and what the load writes to it.
#[derive(Clone)]
pub(crate) struct Filling {
    /// Those that share it, at least one.
    pub(crate) volumes: Rc<[Volume]>,
    /// Sectors of the largest request.
    pub(crate) sectors_max: u64,
    /// Draws where a request of the load goes.
    pub(crate) draw: Rc<dyn Fn(&mut Random) -> Spot>,
}

impl Filling {
    /// With requests of so many sectors at random multiples of `align` in all of the volumes, which are of one size.
    pub(crate) fn anywhere(volumes: Rc<[Volume]>, sectors: u64, align: u64) -> Filling {
        let (count, size) = (volumes.len() as u64, volumes[0].info().sectors.0);
        let places = (size - sectors) / align + 1;
        let draw = move |random: &mut Random| Spot {
            volume: random.below(count) as usize,
            lba: random.below(places) * align,
            sectors,
        };
        Filling { volumes, sectors_max: sectors, draw: Rc::new(draw) }
    }

    /// How it stands.
    pub(crate) fn status(&self) -> WriteBackStatus {
        self.volumes[0].write_cache()
    }

    /// Writes until the destager is at `stage`, or as much as the cache holds where drives take it as fast.
    pub(crate) async fn fill(self, world: World, mut random: Random, stage: Stage) {
        let pages = self.sectors_max.div_ceil(PAGE_SECTORS) * AT_ONCE;
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
        let Spot { volume, lba, sectors } = (self.draw)(random);
        let volume = self.volumes[volume].clone();
        let first = lba / PAGE_SECTORS * PAGE_SECTORS;
        let end = (lba + sectors).next_multiple_of(PAGE_SECTORS).min(volume.info().sectors.0);
        let data = world.buffer((end - first) as u32).freeze();
        async move { volume.write(Lba(first), data, false).await }
    }
}
