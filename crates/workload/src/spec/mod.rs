//! The description of a load, as read from TOML or built by the lab: pure data, no behaviour but its checks.
//!
//! A [`LoadSpec`] holds one or more [`StreamSpec`]s that run side by side, and says when the measurement begins
//! and ends. It knows no target: sizes may be shares of whatever it will run on ([`Portion`]).

mod arrival;
mod block_mix;
pub(crate) mod duration;
mod error;
mod limits;
mod load;
mod pattern;
mod portion;
mod stream;
mod text;

pub use arrival::{Arrival, ClosedLoop, OpenLoop, ThinkTime};
pub use block_mix::{BlockMix, WeightedBlock};
pub use duration::{format_duration, parse_duration};
pub use error::SpecError;
pub use limits::{INTERVALS_MAX, RunLimits};
pub use load::{LoadSpec, VerifySpec};
pub use pattern::{Pattern, ZIPF_THETA_MAX};
pub use portion::Portion;
pub use stream::StreamSpec;
