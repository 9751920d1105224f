//! The runtime of simulated time: runs what is ready, then jumps to the next event.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tier0_units::Nanos;

use crate::net::Network;
use crate::ready::ReadyQueue;
use crate::world::Kind;
use crate::{PayloadWidth, World};

/// A world in virtual time. Dropping it ends every task in it.
pub struct VirtualRuntime {
    world: World,
}

impl VirtualRuntime {
    /// A world at time zero.
    pub fn new(seed: u64, width: PayloadWidth) -> VirtualRuntime {
        let kind = Kind::Virtual {
            now: Cell::default(),
            hash: Cell::new(seed),
            events: Cell::default(),
            network: Network::new(seed),
        };
        VirtualRuntime { world: World::new(kind, width, seed, ReadyQueue::new(None)) }
    }

    /// The world's handle.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Runs the world until `future` ends.
    ///
    /// Panics if nothing is left that could ever wake it: the engine has lost a wake-up.
    pub fn run<F>(&self, future: F) -> F::Output
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let mut task = pin!(self.world.spawn(future));
        loop {
            self.run_ready();
            if task.is_finished() {
                let mut context = Context::from_waker(Waker::noop());
                match task.as_mut().poll(&mut context) {
                    Poll::Ready(output) => return output,
                    Poll::Pending => unreachable!("a finished task has its output"),
                }
            }
            assert!(
                self.step(Nanos::MAX),
                "deadlock at {}: nothing is ready, no timer is set, {} I/Os are pending",
                self.world.now(),
                self.world.pending_count()
            );
        }
    }

    /// Runs the world until its clock stands at `time`; events at that very time included.
    pub fn run_until(&self, time: Nanos) {
        self.run_ready();
        while self.step(time) {
            self.run_ready();
        }
        self.set_clock(time.max(self.world.now()));
    }

    fn run_ready(&self) {
        let ready = self.world.ready();
        ready.drain_inbox();
        while let Some(runnable) = ready.pop() {
            runnable.run();
        }
    }

    /// Fires the next event that is due by `limit`; false if there is none.
    fn step(&self, limit: Nanos) -> bool {
        let Some(time) = self.world.next_timer().filter(|time| *time <= limit) else { return false };
        self.set_clock(time.max(self.world.now()));
        self.world.fire_one(self.world.now())
    }

    fn set_clock(&self, time: Nanos) {
        let Kind::Virtual { now, .. } = self.world.kind() else {
            unreachable!("a virtual world has its clock")
        };
        now.set(time);
    }
}

impl Drop for VirtualRuntime {
    fn drop(&mut self) {
        self.world.close();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::{IoError, Payload};

    fn runtime() -> VirtualRuntime {
        VirtualRuntime::new(1, PayloadWidth::NONE)
    }

    #[test]
    fn sleeps_end_exactly_and_in_order() {
        let runtime = runtime();
        let world = runtime.world().clone();
        let log = Rc::new(RefCell::new(Vec::new()));
        for (name, ns) in [("c", 30), ("a", 10), ("b", 10), ("z", 0)] {
            let (world, log) = (world.clone(), log.clone());
            runtime
                .world()
                .spawn(async move {
                    world.sleep(Nanos(ns)).await;
                    log.borrow_mut().push((name, world.now().0));
                })
                .detach();
        }
        runtime.run_until(Nanos(29));
        assert_eq!(*log.borrow(), [("z", 0), ("a", 10), ("b", 10)]);
        assert_eq!(runtime.world().now(), Nanos(29));
        runtime.run_until(Nanos(30));
        assert_eq!(log.borrow().last(), Some(&("c", 30)));
    }

    #[test]
    fn completions_give_the_buffer_back_even_to_nobody() {
        let runtime = runtime();
        let world = runtime.world().clone();
        let result = runtime.run(async move {
            let (done, pending) = world.completion();
            done.complete_at(Nanos(5), Err(IoError::Medium), Payload::Read(world.buffer(3)));
            let (abandoned, waiting) = world.completion();
            drop(waiting);
            abandoned.complete_at(Nanos(4), Ok(()), Payload::None);
            let (outcome, payload) = pending.await;
            (outcome, payload.into_read().sectors(), world.now(), world.pending_count())
        });
        assert_eq!(result, (Err(IoError::Medium), 3, Nanos(5), 0));
    }

    #[test]
    #[should_panic(expected = "without being completed")]
    fn a_dropped_completion_is_a_bug() {
        let runtime = runtime();
        let (done, _pending) = runtime.world().completion();
        drop(done);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn waiting_for_nothing_is_a_bug() {
        let runtime = runtime();
        let (done, pending) = runtime.world().completion();
        let hold = Rc::new(RefCell::new(Some(done)));
        let kept = hold.clone();
        let guard = Guard(kept);
        runtime.run(async move { pending.await.0 }).expect("never");
        drop(guard);

        /// Completes on unwinding, so that the test sees the deadlock and not the drop.
        struct Guard(Rc<RefCell<Option<crate::Completion>>>);
        impl Drop for Guard {
            fn drop(&mut self) {
                if let Some(done) = self.0.borrow_mut().take() {
                    done.complete(Ok(()), Payload::None);
                }
            }
        }
    }

    #[test]
    fn a_seed_reproduces_the_event_log() {
        let hash = |seed: u64| {
            let runtime = VirtualRuntime::new(seed, PayloadWidth::NONE);
            let world = runtime.world().clone();
            runtime.run(async move {
                let mut random = world.random(0);
                for _ in 0..1000 {
                    world.sleep(Nanos(1 + random.below(1000))).await;
                }
                world.event_hash()
            })
        };
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }

    #[test]
    fn dropping_the_runtime_ends_tasks_that_nobody_else_could() {
        let alive = Rc::new(());
        let runtime = runtime();
        let (sender, mut receiver) = crate::sync::mailbox::<u32>();
        let held = (alive.clone(), sender);
        runtime
            .world()
            .spawn(async move {
                receiver.receive().await;
                drop(held);
            })
            .detach();
        runtime.run_until(Nanos(1));
        drop(runtime);
        assert_eq!(Rc::strong_count(&alive), 1);
    }

    #[test]
    fn dropping_the_runtime_frees_its_tasks() {
        let alive = Rc::new(());
        let runtime = runtime();
        let (world, held) = (runtime.world().clone(), alive.clone());
        runtime
            .world()
            .spawn(async move {
                world.sleep(Nanos::from_secs(9)).await;
                drop(held);
            })
            .detach();
        runtime.run_until(Nanos(1));
        drop(runtime);
        assert_eq!(Rc::strong_count(&alive), 1);
    }
}
