//! The disk model: spindle, arm, buffer and controller as a state machine over integer nanoseconds.
//!
//! | file | what it holds |
//! |---|---|
//! | `parameters` | what one kind of disk is |
//! | `seek` | seek curves, from points or from a datasheet |
//! | `datasheet` | parameters of a disk known from its datasheet only |
//! | `from_catalog` | the same from a catalogue entry |
//! | `layout` | logical block → cylinder, surface, angle |
//! | `geometry` | checked parameters with their tables, shared by all drives of a kind |
//! | `media` | runs of sectors passing under the head |
//! | `bus` | when sectors that arrive from the medium are in the host |
//! | `segments` | the buffer |
//! | `schedule` | shortest positioning time first |
//! | `model` | one drive: requests in, completions out |
//! | `disksim` | parameters and traces from DiskSim's files |
//! | `validation` | how far the model is from a measured drive |
//!
//! Invariants: time never runs backwards; every request completes exactly once, never before it was submitted; the
//! same calls give the same answers; nothing is allocated per request once the queue has been full once.
//!
//! What it does not do: it holds no data, knows no world and no executor, and draws no random numbers.

mod bus;
mod datasheet;
pub mod disksim;
mod error;
mod from_catalog;
mod geometry;
mod layout;
mod media;
mod model;
mod parameters;
mod schedule;
mod seek;
mod segments;
pub mod validation;

pub use datasheet::Datasheet;
pub use error::ParameterError;
pub use geometry::Geometry;
pub use layout::{Layout, Place};
pub use model::{DiskModel, DiskRequest, DiskStatistics, Operation, OutOfRange};
pub use parameters::*;
pub use seek::{SeekCurve, SeekPoints, Weights};
