//! RAID: from chunklets to sets that survive the loss of drives.
//!
//! [`parity`] computes over bytes and knows no addresses; [`layout`] computes addresses and plans and touches
//! no byte; [`set`] forms sets from a pool's chunklets; [`io`] carries the plans out on drives;
//! [`checksum`] is the one of pages at rest.

pub mod checksum;
pub mod io;
pub mod layout;
pub mod parity;
pub mod set;
