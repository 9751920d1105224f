//! The array: composes drives, pools, RAID and volumes from one description, in either world.
//!
//! | module | concept |
//! |---|---|
//! | [`description`] | the TOML file that describes an array, and what is wrong with one |
//! | `plan` | from a pool's record to its sets, slots and volumes' maps |
//! | [`open`] | creating an array on drives, and finding it again on them by identity |
//! | `shard`, `volume` | the data path: a shard's volumes, requests routed to the owners of their extents |
//! | `control` | making the loss of a drive known to the others |
//! | [`real`] | an array on the wall clock, one thread per shard |
//! | [`simulated`] | an array of modelled drives in virtual time |
//!
//! It holds no policy of its own.

mod control;
pub mod description;
mod error;
mod models;
pub mod open;
mod plan;
pub mod real;
mod shard;
pub mod simulated;
mod volume;

pub use description::{Description, DescriptionError};
pub use error::ArrayError;
pub use volume::Volume;
