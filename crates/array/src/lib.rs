//! The array: composes drives, pools, RAID and volumes from one description, in either world.
//!
//! | module | concept |
//! |---|---|
//! | [`open`] | creating an array on drives, and finding it again on them by identity |
//! | `shard`, `volume` | the data path: a shard's volumes, requests routed to the owners of their extents |
//! | `volumes` | volumes that come, change and go while the array runs |
//! | `upkeep` | a shard's part in rebuilds and scrubs |
//! | `stats` | what a pool has done in a shard |
//! | [`engine`] | a whole array in one world |
//! | `repartition` | another number of shards than before |
//! | [`real`] | an array on the wall clock, one thread per shard |
//! | [`simulated`] | an array of modelled drives in virtual time |
//!
//! It holds no policy of its own.

mod born;
mod drive_opener;
pub mod engine;
mod error;
mod export_registry;
mod flash_cache;
mod gate;
mod heat;
mod log_lane;
mod mapping;
pub mod models;
pub mod open;
mod opened_pool;
mod pool_shard;
pub mod real;
mod repartition;
mod reporter;
mod shard;
pub mod simulated;
mod stats;
mod throttle;
mod upkeep;
mod volume;
mod volume_io;
mod volumes;

pub use error::ArrayError;
pub use export_registry::{ExportRegistry, HostConnection};
pub use volume::Volume;
