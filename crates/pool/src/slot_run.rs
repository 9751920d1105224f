//! Runs of slots.

use serde::{Deserialize, Serialize};

/// Neighbouring extent slots of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRun {
    /// The first slot.
    pub first: u64,
    /// How many.
    pub count: u64,
}
