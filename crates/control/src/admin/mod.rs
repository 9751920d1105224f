//! The side of the control task in the contract with administrators ([`tier0_api`]): its types made of the engine's, the
//! engine's of its types, and why a request is not carried out.

mod convert;
mod error;

pub use convert::{
    ceilings, drive_class, drive_class_of, facts_of, place_of, reserve, reserve_of, volume_place,
};
pub use error::AdminError;

pub(crate) use convert::{
    cache_switches, ceilings_told, described, flash_cache, flushing, read_cache_status, space_level,
};
