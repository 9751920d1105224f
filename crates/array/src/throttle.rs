//! Where requests of hosts wait in one shard for the ceilings of their volume, before they go to the owners of their extents.
//! A request that waits holds nothing but its own payload, so how many wait is limited as what a connection has in flight.
//!
//! All shards take from one budget ([`tier0_volume::Budget`]). What the array does by itself (destaging, read-ahead, rebuilds,
//! scrubs, moves) does not come here.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use tier0_control::HeldBack;
use tier0_units::Nanos;
use tier0_volume::Budget;
use tier0_world::{PlantedBug, World, planted};

/// How often a request that waits looks whether its volume's ceilings have changed, or its host is gone.
const LOOK: Nanos = Nanos::from_millis(100);

/// What ended a wait.
enum Waited {
    /// The request may start.
    Due,
    /// Another budget counts.
    Replaced,
    /// There is no host any more.
    Gone,
}

/// The ceilings of a volume in a shard.
#[derive(Default)]
pub(crate) struct Throttle {
    budget: RefCell<Option<Arc<Budget>>>,
    /// Whether there is a budget, and requests wait for it.
    holds: Cell<bool>,
    held_back: Cell<HeldBack>,
}

impl Throttle {
    /// From now on requests take from this budget, those too that wait.
    pub(crate) fn set(&self, budget: Option<Arc<Budget>>) {
        let budget = match planted(PlantedBug::LeaseTwice) {
            true => budget.map(|budget| Arc::new(budget.apart())),
            false => budget,
        };
        *self.budget.borrow_mut() = budget;
        self.resume();
    }

    /// Lets everything through, what waits too, until [`Throttle::resume`]: the volume goes, or the array ends.
    pub(crate) fn let_through(&self) {
        self.holds.set(false);
    }

    /// Ceilings count again.
    pub(crate) fn resume(&self) {
        self.holds.set(self.budget.borrow().is_some());
    }

    /// What was held back.
    pub(crate) fn held_back(&self) -> HeldBack {
        self.held_back.get()
    }

    /// Ends when a request that moves so many bytes may start; false where `is_gone` says before that its host is gone.
    #[inline]
    pub(crate) async fn enter(&self, world: &World, bytes: u64, is_gone: &dyn Fn() -> bool) -> bool {
        if self.holds.get() {
            // Out of line: a request's task stays small.
            return Box::pin(self.wait(world, bytes, is_gone)).await;
        }
        true
    }

    async fn wait(&self, world: &World, bytes: u64, is_gone: &dyn Fn() -> bool) -> bool {
        let began = world.common_time();
        let mut is_held_back = false;
        while let Some(budget) = self.current() {
            let now = world.common_time();
            let start = budget.take(bytes, now);
            is_held_back |= start > now;
            match self.until(world, start, &budget, is_gone).await {
                Waited::Due => break,
                Waited::Replaced => {}
                Waited::Gone => {
                    budget.give_back(bytes);
                    return false;
                }
            }
        }
        if is_held_back {
            self.count(world.common_time().saturating_sub(began));
        }
        !is_gone()
    }

    /// Waits for a time, or for something that comes before it.
    async fn until(
        &self,
        world: &World,
        start: Nanos,
        budget: &Arc<Budget>,
        is_gone: &dyn Fn() -> bool,
    ) -> Waited {
        loop {
            if is_gone() {
                return Waited::Gone;
            }
            let left = start.saturating_sub(world.common_time());
            if left == Nanos::ZERO {
                return Waited::Due;
            }
            world.sleep(left.min(LOOK)).await;
            if !self.current().is_some_and(|current| Arc::ptr_eq(&current, budget)) {
                return Waited::Replaced;
            }
        }
    }

    /// The budget that is to be waited for.
    fn current(&self) -> Option<Arc<Budget>> {
        self.budget.borrow().clone().filter(|_| self.holds.get())
    }

    fn count(&self, wait: Nanos) {
        let HeldBack { requests, wait_ns } = self.held_back.get();
        self.held_back.set(HeldBack { requests: requests + 1, wait_ns: wait_ns + wait.0 });
    }
}
