//! When a stream's requests come: closed loop or open loop.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tier0_units::Nanos;

use super::SpecError;
use super::duration::{format_duration, parse_duration};
use super::text::serde_as_text;

/// The pause between an answer and the next request of the same user. As text: `none`, `10ms`,
/// `exponential:10ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ThinkTime {
    /// The next request follows at once.
    #[default]
    None,
    /// Always the same pause.
    Fixed(Nanos),
    /// Exponentially distributed pauses with this mean.
    Exponential(Nanos),
}

impl FromStr for ThinkTime {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<ThinkTime, SpecError> {
        let read = |text: &str| parse_duration(text).ok();
        let think_time = match text.trim().split_once(':') {
            Some(("exponential", mean)) => read(mean).map(ThinkTime::Exponential),
            Some(_) => None,
            None if text.trim() == "none" => Some(ThinkTime::None),
            None => read(text).map(ThinkTime::Fixed),
        };
        think_time.ok_or_else(|| SpecError::ThinkTime(text.to_owned()))
    }
}

impl fmt::Display for ThinkTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThinkTime::None => f.write_str("none"),
            ThinkTime::Fixed(pause) => f.write_str(&format_duration(*pause)),
            ThinkTime::Exponential(mean) => write!(f, "exponential:{}", format_duration(*mean)),
        }
    }
}

serde_as_text!(ThinkTime);

/// A fixed population: each user waits for an answer, thinks, and asks again.
///
/// Response times are counted from the moment of issue, so a stalled target is asked less: a closed loop hides
/// stalls. Use [`OpenLoop`] to see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClosedLoop {
    /// How many users, at least 1.
    pub users: u32,
    /// How many requests each user keeps outstanding, at least 1; each place thinks for itself.
    pub queue_depth: u32,
    /// The pause between an answer and the next request.
    pub think_time: ThinkTime,
}

impl Default for ClosedLoop {
    fn default() -> ClosedLoop {
        ClosedLoop { users: 1, queue_depth: 1, think_time: ThinkTime::None }
    }
}

/// Requests that come when they come, whatever the target does: a Poisson process.
///
/// Response times are counted from the intended arrival, so the wait behind a stall is counted in full and no
/// coordinated omission arises.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenLoop {
    /// Arrivals per second on average.
    pub rate_iops: f64,
    /// At most this many requests are at the target at once; later ones wait in the generator, and their wait
    /// counts.
    #[serde(default = "OpenLoop::outstanding_max_default")]
    pub outstanding_max: u32,
}

impl OpenLoop {
    /// Arrivals at `rate_iops` per second.
    pub fn at(rate_iops: f64) -> OpenLoop {
        OpenLoop { rate_iops, outstanding_max: OpenLoop::outstanding_max_default() }
    }

    /// More than any array's queues hold, little enough to bound the memory of the requests' tasks.
    fn outstanding_max_default() -> u32 {
        4096
    }
}

/// When the requests of a stream come. In TOML: `arrival = { closed_loop = { users = 32 } }` or
/// `arrival = { open_loop = { rate_iops = 5000 } }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// A fixed population of users.
    ClosedLoop(ClosedLoop),
    /// A Poisson process.
    OpenLoop(OpenLoop),
}

impl Arrival {
    /// A closed loop of `users` with one outstanding request each and no think time.
    pub fn users(users: u32) -> Arrival {
        Arrival::ClosedLoop(ClosedLoop { users, ..ClosedLoop::default() })
    }

    /// One user that keeps `queue_depth` requests outstanding.
    pub fn queue_depth(queue_depth: u32) -> Arrival {
        Arrival::ClosedLoop(ClosedLoop { queue_depth, ..ClosedLoop::default() })
    }
}

impl Default for Arrival {
    fn default() -> Arrival {
        Arrival::ClosedLoop(ClosedLoop::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_read_back() {
        for text in ["none", "10ms", "exponential:250us"] {
            assert_eq!(text.parse::<ThinkTime>().expect(text).to_string(), text);
        }
        for text in ["", "normal:10ms", "exponential:", "10"] {
            assert_eq!(text.parse::<ThinkTime>(), Err(SpecError::ThinkTime(text.to_owned())), "{text}");
        }
    }
}
