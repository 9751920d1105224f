//! RAID: from chunklets to sets that survive the loss of drives.
//!
//! [`parity`] computes over bytes and knows no addresses; [`layout`] computes addresses and plans and touches
//! no byte.

pub mod layout;
pub mod parity;
