#![doc = include_str!("README.md")]

mod cost;
mod curve;
mod heat;
mod pace;
mod plan;

pub use cost::{GroupCost, MoveCosts, Redundancy};
pub use curve::{CurvePoint, Histogram, LEVELS, curve};
pub use heat::{Accesses, HALF_LIFE_S, HeatMap};
pub use pace::{Latencies, Pace, PaceChange};
pub use plan::{Candidate, Choice, Room, choose};
