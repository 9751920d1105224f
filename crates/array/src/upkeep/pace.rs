//! The pace of background work: full speed while no host is served, a share of the time while hosts are.
//!
//! After each piece of work the worker rests as long as its share asks for, but only if hosts were served meanwhile;
//! so a rebuild on an idle array is never slowed down, and on a busy one hosts keep most of the drives' time.

use std::cell::Cell;
use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::World;

/// How many times as long as a piece of work the worker rests while hosts are served: it has a quarter of the time.
const REST_FACTOR: u64 = 3;
/// The longest rest, so that one slow piece does not stall the work.
const REST_MAX: Nanos = Nanos::from_millis(500);

/// A rest is taken in steps of this, so that a worker that is to stop does so soon.
const STEP: Nanos = Nanos::from_millis(250);

/// Requests that a shard has begun for hosts; clones share the count.
#[derive(Clone, Default)]
pub(crate) struct Activity(Rc<Cell<u64>>);

impl Activity {
    /// One more.
    #[inline]
    pub(crate) fn count_one(&self) {
        self.0.set(self.0.get().wrapping_add(1));
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.0.get()
    }
}

/// The pace of one worker.
pub(crate) struct Pace {
    world: World,
    activity: Activity,
    seen: u64,
    yielding: bool,
    /// Bytes per second at most; no limit where none is given.
    rate: Option<u64>,
}

impl Pace {
    /// A worker that yields to `activity`, and does at most `rate` bytes per second.
    pub(crate) fn new(world: &World, activity: &Activity, rate: Option<u64>) -> Pace {
        Pace {
            world: world.clone(),
            activity: activity.clone(),
            seen: activity.0.get(),
            yielding: false,
            rate,
        }
    }

    /// Whether hosts were served during the last piece of work: the next should be a small one.
    pub(crate) fn is_yielding(&self) -> bool {
        self.yielding
    }

    /// Rests after a piece of work of `bytes` bytes that began at `begun`.
    pub(crate) async fn rest(&mut self, begun: Nanos, bytes: u64) {
        self.rest_unless(begun, bytes, || false).await;
    }

    /// As [`Pace::rest`], but no longer than a quarter of a second once `stopping` says so.
    pub(crate) async fn rest_unless(&mut self, begun: Nanos, bytes: u64, stopping: impl Fn() -> bool) {
        let mut rest = self.rest_after(begun, bytes, self.rate).0;
        while rest > 0 && !stopping() {
            let step = rest.min(STEP.0);
            self.world.sleep(Nanos(step)).await;
            rest -= step;
        }
    }

    /// How long to rest after such a piece of work, at most `rate` bytes per second.
    pub(crate) fn rest_after(&mut self, begun: Nanos, bytes: u64, rate: Option<u64>) -> Nanos {
        let took = Nanos(self.world.now().0 - begun.0);
        self.yielding = self.activity.0.get() != self.seen;
        self.seen = self.activity.0.get();
        let yielding = if self.yielding { Nanos((took.0 * REST_FACTOR).min(REST_MAX.0)) } else { Nanos(0) };
        let limit = rate.map_or(0, |rate| {
            let fair = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
            u64::try_from(fair).unwrap_or(u64::MAX)
        });
        Nanos(yielding.0.max(limit.saturating_sub(took.0)))
    }
}

#[cfg(test)]
mod tests {
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    #[test]
    fn rests_only_while_hosts_are_served_or_a_rate_is_set() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let activity = Activity::default();
            let mut pace = Pace::new(&world, &activity, None);
            let work = async |pace: &mut Pace| {
                let begun = world.now();
                world.sleep(Nanos(1000)).await;
                pace.rest(begun, 4096).await;
                world.now().0 - begun.0
            };
            assert_eq!(work(&mut pace).await, 1000);
            assert!(!pace.is_yielding());
            activity.count_one();
            assert_eq!(work(&mut pace).await, 4000);
            assert!(pace.is_yielding());
            assert_eq!(work(&mut pace).await, 1000);
            assert!(!pace.is_yielding());
            // 4096 bytes at 1 MB/s take 4.096 ms.
            let mut limited = Pace::new(&world, &activity, Some(1_000_000));
            assert_eq!(work(&mut limited).await, 4_096_000);
        });
    }
}
