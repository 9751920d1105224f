//! Background work of one shard, as the control task orders it: rebuilding, scrubbing, restriping, reporting.
//!
//! It yields to hosts ([`pace`]) and touches only slots of this shard's extents.

mod command;
pub(crate) mod pace;
mod rebuild;
pub(crate) mod relocate;
mod scrub;
