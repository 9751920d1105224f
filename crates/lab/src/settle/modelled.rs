//! What of a target in virtual time can be settled: a volume, or the volumes of arrays that share a load.

use tier0_array::Volume;
use tier0_block::BlockTarget;
use tier0_units::Lba;

use crate::path::Group;

/// A target that is made of volumes of simulated arrays.
pub trait Modelled: BlockTarget + 'static {
    /// One volume of each array: volumes of an array share its read caches.
    fn arrays(&self) -> Vec<Volume>;

    /// Has sectors of the target count as read before, on flash and with `in_memory` in memory.
    fn bring_in(&self, lba: Lba, sectors: u64, in_memory: bool);
}

impl Modelled for Volume {
    fn arrays(&self) -> Vec<Volume> {
        vec![self.clone()]
    }

    fn bring_in(&self, lba: Lba, sectors: u64, in_memory: bool) {
        Volume::bring_in(self, lba, sectors, in_memory);
    }
}

impl Modelled for Group<Volume> {
    fn arrays(&self) -> Vec<Volume> {
        self.members().iter().filter_map(|member| member.volumes.first().cloned()).collect()
    }

    fn bring_in(&self, lba: Lba, sectors: u64, in_memory: bool) {
        self.each_piece(lba, sectors, |volume, lba, sectors| volume.bring_in(lba, sectors, in_memory));
    }
}

/// Reads that looked for their pages in a cache, and those that found all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lookups {
    pub(crate) hits: u64,
    pub(crate) all: u64,
}

impl Lookups {
    pub(crate) fn since(self, earlier: Lookups) -> Lookups {
        Lookups { hits: self.hits - earlier.hits, all: self.all - earlier.all }
    }

    /// The hit rate; nothing without a lookup.
    pub(crate) fn rate(self) -> Option<f64> {
        (self.all > 0).then(|| self.hits as f64 / self.all as f64)
    }

    fn plus(self, other: Lookups) -> Lookups {
        Lookups { hits: self.hits + other.hits, all: self.all + other.all }
    }
}

/// What the read caches of a target have done so far: in memory, then on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheLookups {
    pub(crate) memory: Lookups,
    pub(crate) flash: Lookups,
}

impl CacheLookups {
    pub(crate) fn of(arrays: &[Volume]) -> CacheLookups {
        let mut sum = CacheLookups::default();
        for array in arrays {
            if let Some(status) = array.read_cache() {
                sum.memory = sum.memory.plus(Lookups { hits: status.hits(), all: status.lookups() });
            }
            if let Some(status) = array.flash_cache() {
                sum.flash = sum.flash.plus(Lookups { hits: status.hits, all: status.hits + status.misses });
            }
        }
        sum
    }

    pub(crate) fn since(self, earlier: CacheLookups) -> CacheLookups {
        CacheLookups { memory: self.memory.since(earlier.memory), flash: self.flash.since(earlier.flash) }
    }
}
