//! A block trace on a modelled array in virtual time: how long each request would have taken there.
//!
//! | file | concept |
//! |---|---|
//! | `trace` | from a trace's file to requests with times |
//! | `place` | where traced volumes lie on the array's volumes |
//! | `play` | the requests at the array, at their times or in a closed loop |
//! | `course` | what was answered, interval by interval |
//! | `figures` | what came of it, as `--json` prints it |
//!
//! The array is the engine's own on modelled drives; its volumes are full before, and its caches are empty. A latency counts from
//! the time that the trace gives a request, so what waits because the array falls behind counts too.
//!
//! It does not change the load: requests come at the trace's times, also on a slower array on which their host would have sent them
//! later. A closed loop sends each request after an answer and ignores the trace's times.

mod course;
mod figures;
mod place;
mod play;
#[cfg(test)]
mod tests;
mod trace;

use std::rc::Rc;

use thiserror::Error;
use tier0_catalog::Catalog;
use tier0_description::{Description, VolumeDescription};
use tier0_trace::TraceError;
use tier0_units::ByteCount;
use tier0_world::{PayloadWidth, VirtualRuntime};

use self::place::place;
use self::play::Player;
use crate::LabError;
use crate::case::{Site, assemble};
use crate::work::Work;

pub use self::figures::{IntervalFigures, KindFigures, PaceFigures, TimedReport, WAIT_MS};
pub use self::place::Placed;
pub use self::trace::{TimedOptions, TimedTrace, TracedVolume, read_timed};

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At the trace's times, so many times as fast.
    Speed(f64),
    /// So many outstanding at any time; the trace's times are ignored.
    Closed(u32),
}

/// How a trace is played.
#[derive(Clone, Debug)]
pub struct TimedPlan {
    /// When requests are issued.
    pub pace: Pace,
    /// Requests outstanding at the array at most, where the trace's times count; others wait in the host.
    pub outstanding_max: u32,
    /// The volume for traced volumes that `map` does not name.
    pub volume: Option<String>,
    /// Volumes of the array by traced volume.
    pub map: Vec<(String, String)>,
    /// Whether places beyond the end of a volume are taken modulo its size.
    pub fold: bool,
    /// The world's seed.
    pub seed: u64,
}

/// Why a trace cannot be played.
#[derive(Debug, Error)]
pub enum TimedError {
    /// It cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It has no request that an array could serve.
    #[error("{trace} has no read or write with data; look at its format and at --limit")]
    Empty {
        /// The file.
        trace: String,
    },
    /// A request that no host would send.
    #[error(
        "{trace}, request {request}: a request of {size}, and at most 1GiB can be played; check the format and the units of --columns"
    )]
    TooLong {
        /// The file.
        trace: String,
        /// The request, counted from 1.
        request: u64,
        /// Its size.
        size: ByteCount,
    },
    /// Objects lie nowhere.
    #[error(
        "{trace} has objects with sizes of their own, which have no place on a volume; use a trace with offsets, or replay it against caches (without --array)"
    )]
    Objects {
        /// The file.
        trace: String,
    },
    /// Its times are asked for.
    #[error(
        "{trace} has no times, so only a closed loop can play it; give --closed N, the requests outstanding at any time"
    )]
    NoTimes {
        /// The file.
        trace: String,
    },
    /// It does not fit the array.
    #[error("{fact}")]
    Place {
        /// The fact and the remedy.
        fact: String,
    },
    /// The array refused a request.
    #[error("{array}: {fact}; check its drives")]
    Failed {
        /// The array.
        array: String,
        /// Which request, and why.
        fact: String,
    },
}

impl TimedTrace {
    /// Plays it on the array of a description; `told` learns how far it is, in words.
    ///
    /// # Errors
    /// The trace does not fit the array or has no times, or the array cannot be put together.
    pub fn play(
        self,
        plan: &TimedPlan,
        system: &Description,
        catalog: &Catalog,
        told: impl Fn(String) + 'static,
    ) -> Result<TimedReport, LabError> {
        if matches!(plan.pace, Pace::Speed(_)) && !self.has_times {
            return Err(TimedError::NoTimes { trace: self.name }.into());
        }
        let seats = place(&self, plan, system)?;
        let runtime = VirtualRuntime::new(plan.seed, PayloadWidth::NONE);
        let site = Site { name: &system.name, system, front_end: None, read_cache: None };
        let array = assemble(&runtime, &site, catalog)?;
        let world = runtime.world().clone();
        let (name, plan, cold) = (system.name.clone(), plan.clone(), caches_of(system));
        let volumes = array.volumes.iter().map(|volume| volume.members()[0].volumes[0].clone()).collect();
        runtime.run(async move {
            let (busy, before, began) = (array.usage(world.now()), array.counters().await, world.now());
            let player = Rc::new(Player::new(&world, self, seats, volumes, &plan, Box::new(told)));
            player.clone().play().await;
            let now = world.now();
            let usage = array.usage(now).since(now, &busy, began);
            let work = Work::between(&before, &array.counters().await);
            let played = Rc::into_inner(player).expect("all workers have ended").into_played();
            match played.failure {
                Some(fact) => Err(TimedError::Failed { array: name, fact }.into()),
                None => Ok(TimedReport::of(&plan, played, &usage, work, cold)),
            }
        })
    }
}

/// What of an array begins empty.
fn caches_of(system: &Description) -> Vec<&'static str> {
    let pools = &system.pools;
    let all = [
        ("the write cache", pools.iter().any(|pool| pool.log)),
        ("the read cache in memory", system.memory.is_some()),
        ("the flash cache", pools.iter().any(|pool| pool.flash_cache.bytes.is_some_and(|bytes| bytes.0 > 0))),
        ("the tier's fast group", system.volumes.iter().any(VolumeDescription::is_tiered)),
    ];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}
