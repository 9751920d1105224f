//! Bringing an array in virtual time into the steady state of a load before that is measured, and telling whether what was
//! measured was one.
//!
//! | file | concept |
//! |---|---|
//! | `write_caches` | write caches under the load until they neither fill nor empty |
//! | `filling` | a write cache with something in it, without the time that takes |
//! | `modelled` | what of a target can be settled: its volumes and their read caches |
//! | `read_caches` | read caches that hold what the load reads most, without the time that takes |
//! | `run_in` | the load until latencies and hit rates stay where they are |
//! | `array` | all of that, one after the other |
//! | `course` | whether a measurement was of a steady state |
//!
//! Studies and the array of an array file are settled by the same parts. Flash drives are preconditioned before, when their
//! model is made.

mod array;
mod course;
mod filling;
mod modelled;
mod read_caches;
mod run_in;
mod write_caches;

use tier0_units::Nanos;
use tier0_workload::spec::{LoadSpec, RunLimits};

pub(crate) use self::array::writes_are_cached;
pub use self::array::{Settled, SettledReadCaches, SettledWriteCache, settle};
pub use self::course::{Course, measure};
pub(crate) use self::filling::Filling;
pub use self::modelled::Modelled;
pub(crate) use self::read_caches::bring_in;
pub(crate) use self::run_in::{RUN_IN_MAX, RunIn, SEED as RUN_IN_SEED};
pub(crate) use self::write_caches::{SEED as SETTLING_SEED, SETTLING_MAX, WriteCaches};

/// Is told what is being done, from time to time, and says whether to go on.
pub type Look = Box<dyn FnMut(&str) -> bool>;

/// A load's other requests to the same hot sets, for so long, and so many at most: what warms is not what is measured.
pub(crate) fn other_requests(
    load: &LoadSpec,
    time: Nanos,
    ios_max: Option<u64>,
    other_seed: u64,
) -> LoadSpec {
    LoadSpec {
        seed: load.seed ^ other_seed,
        placement_seed: load.placement_seed.or(Some(load.seed)),
        warm_up: Nanos::ZERO,
        steady: None,
        limits: RunLimits { ios: ios_max, ..RunLimits::time(time) },
        ..load.clone()
    }
}
