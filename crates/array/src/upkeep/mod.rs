//! Background work of one shard, as the control task orders it: rebuilding, scrubbing, restriping, reporting.
//!
//! It yields to hosts ([`pace`]) and touches only slots of this shard's extents.

mod order;
mod pace;
mod rebuild;
mod restripe;
mod scrub;

pub(crate) use order::{LostSectors, Order, ShardReport};
pub(crate) use pace::Activity;
pub(crate) use rebuild::RebuiltColumn;
pub(crate) use restripe::Move;
pub(crate) use scrub::ScrubShared;
