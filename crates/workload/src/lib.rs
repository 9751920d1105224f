//! The load generator behind `tier0 load` and the lab's searches.
//!
//! - [`spec`]: what a load is, as read from TOML.
//! - [`draw`]: the random draws that turn it into requests.
//! - [`stats`]: what is measured, when a run is steady, and the report.
//! - [`verify`]: data that can tell what it is, and the book of what must be found.
//! - [`run`]: the runner, on any [`tier0_block::BlockTarget`] in any world.
//!
//! Invariants: the same seed, load and target give the same requests in the same order; time comes from the
//! world, so that a run is the same in virtual and in real time; a latency is counted from the moment at
//! which the request should have been issued.
//!
//! What it does not do: it opens no target, parses no command line, and knows no drive or array.

pub mod draw;
pub mod run;
pub mod spec;
pub mod stats;
pub mod verify;
