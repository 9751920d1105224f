//! Which caches requests to volumes use: a volume has switches of its own, its pool has some for all of its volumes, and a
//! cache is used where both are on.

use serde::{Deserialize, Serialize};
use tier0_units::WriteCache;

use crate::state::{PoolState, Volume};

/// The switches of a pool, over those of its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheSwitches {
    /// Whether volumes may use the read cache.
    pub read: bool,
    /// Whether volumes may use the write cache: where not, every volume acknowledges as in [`WriteCache::Off`].
    pub write: bool,
}

impl Default for CacheSwitches {
    /// Both on.
    fn default() -> CacheSwitches {
        CacheSwitches { read: true, write: true }
    }
}

/// How requests to a volume use the caches, by its switches and its pool's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Whether reads use the read cache.
    pub read: bool,
    /// When writes are acknowledged.
    pub write: WriteCache,
}

impl CacheSwitches {
    /// How requests to `volume` use the caches under these switches.
    pub fn over(self, volume: &Volume) -> Caching {
        Caching {
            read: self.read && volume.read_cache,
            write: if self.write { volume.write_cache } else { WriteCache::Off },
        }
    }
}

impl PoolState {
    /// The pool's switches.
    pub fn cache_switches(&self) -> CacheSwitches {
        self.inventory.cache_switches
    }

    /// How requests to a volume of the pool use the caches.
    pub fn caching(&self, volume: &Volume) -> Caching {
        self.cache_switches().over(volume)
    }

    /// Whether a read cache is off, or a cache of the whole pool: what programs from before these switches do not know.
    pub(crate) fn has_switches(&self) -> bool {
        self.cache_switches() != CacheSwitches::default() || self.volumes().any(|volume| !volume.read_cache)
    }
}
