//! The runner: drives a load against a target and reports.
//!
//! A [`LoadRun`] starts one task per place of a closed loop and one per outstanding request of an open loop,
//! leads the run from its warm-up over the wait for a steady state to its end, waits for what is still under
//! way, and reads back what was written where that was asked for. It takes the time from the world, so it
//! does the same in virtual and in real time.
//!
//! Invariants: an answered request counts in the phase in which its answer arrives; once the run has ended no
//! request is issued, none is cancelled, and none counts.

mod bell;
mod closed;
mod control;
mod error;
mod issue;
mod meter;
mod open;
mod shared;
mod sweep;
#[cfg(test)]
mod tests;

pub use control::{LoadRun, StopHandle};
pub use error::RunError;
