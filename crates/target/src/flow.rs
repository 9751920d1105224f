//! Back-pressure: how much of a connection may be in flight.
//!
//! That begins with the reserve and grows by what the peer has taken: one that asks and takes nothing costs little,
//! however often it comes again. While others work too, it stays below what they can bear to have in front of them.

use std::cell::Cell;
use std::rc::Rc;

use tier0_world::World;

use super::TargetOptions;
use super::channel::Broken;
use super::neighbour::Neighbour;
use super::pool::{Bell, Pool};

/// Counts of what was admitted and not yet given back. One task waits for room, one for emptiness.
pub(crate) struct Flow {
    requests_max: u32,
    bytes_max: u64,
    unsent_max: u64,
    reserve_bytes: u64,
    contended_max: u64,
    neighbour: Neighbour,
    pool: Rc<Pool>,
    requests: Cell<u32>,
    bytes: Cell<u64>,
    /// Bytes that the peer has taken so far, as far as they matter.
    credit: Cell<u64>,
    /// Of those in flight, what waits to be taken by the peer.
    unsent: Cell<u64>,
    broken: Cell<bool>,
    bell: Rc<Bell>,
}

impl Flow {
    pub(crate) fn new(world: &World, options: &TargetOptions, pool: &Rc<Pool>) -> Flow {
        Flow {
            requests_max: options.in_flight_requests_max,
            bytes_max: options.in_flight_bytes_max,
            unsent_max: options.unsent_bytes_max,
            reserve_bytes: options.reserve_bytes,
            contended_max: options.contended_bytes_max,
            neighbour: Neighbour::new(world, pool),
            pool: pool.clone(),
            requests: Cell::new(0),
            bytes: Cell::new(0),
            credit: Cell::new(0),
            unsent: Cell::new(0),
            broken: Cell::new(false),
            bell: Rc::default(),
        }
    }

    /// Whether a request of `bytes` fits now; if so it counts. A lone request always fits, as far as the pool does.
    #[inline]
    fn try_admit(&self, bytes: u64) -> bool {
        let (requests, held) = (self.requests.get(), self.bytes.get());
        let has_room = requests < self.requests_max
            && held + bytes <= self.bytes_max.min(self.reserve_bytes + self.credit.get())
            && self.unsent.get() < self.unsent_max
            && (held + bytes <= self.contended_max || self.neighbour.is_alone());
        if requests > 0 && !has_room {
            return false;
        }
        let fits = self.pool.try_take(held, bytes);
        if !fits {
            self.pool.ring_when_freed(&self.bell);
        } else {
            self.requests.set(requests + 1);
            self.bytes.set(held + bytes);
            self.neighbour.works();
        }
        fits
    }

    /// Waits until a request of `bytes` fits, and counts it; fails where the connection is broken.
    pub(crate) async fn admit(&self, bytes: u64) -> Result<(), Broken> {
        loop {
            if self.broken.get() {
                return Err(Broken);
            }
            if self.try_admit(bytes) {
                return Ok(());
            }
            self.bell.changed.wait().await;
        }
    }

    /// An answer of a request of `bytes` waits to be taken.
    pub(crate) fn answered(&self, bytes: u64) {
        self.unsent.set(self.unsent.get() + bytes);
    }

    /// Gives back what was answered and taken.
    pub(crate) fn taken(&self, requests: u32, bytes: u64) {
        self.unsent.set(self.unsent.get() - bytes);
        self.release(requests, bytes);
    }

    /// Gives back what was admitted. It is credited also where it is a piece that another one answers for: its bytes have
    /// come from the peer.
    pub(crate) fn release(&self, requests: u32, bytes: u64) {
        self.requests.set(self.requests.get() - requests);
        self.pool.give_back(self.bytes.get(), bytes);
        self.bytes.set(self.bytes.get() - bytes);
        self.credit.set((self.credit.get() + bytes).min(self.bytes_max));
        if self.bell.changed.has_waiters() {
            self.bell.changed.notify_all();
        }
    }

    /// The client takes no answers any more: nothing is admitted.
    pub(crate) fn break_off(&self) {
        self.broken.set(true);
        self.bell.changed.notify_all();
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.get()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.get() == 0
    }

    /// Waits until nothing is in flight.
    pub(crate) async fn drained(&self) {
        while self.requests.get() > 0 {
            self.bell.changed.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    fn flow(world: &World, unsent_bytes_max: u64) -> Rc<Flow> {
        let options = TargetOptions {
            in_flight_requests_max: 2,
            in_flight_bytes_max: 100,
            unsent_bytes_max,
            reserve_bytes: 100,
            ..TargetOptions::default()
        };
        Rc::new(Flow::new(world, &options, &Rc::new(Pool::new(10_000, 0))))
    }

    #[test]
    fn admission_waits_for_requests_and_for_bytes_but_lets_a_lone_giant_in() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let flow = flow(&world, 1000);
            flow.admit(1000).await.expect("whole");
            assert!(!flow.try_admit(1), "the giant uses up the bytes");
            flow.release(1, 1000);
            flow.admit(60).await.expect("whole");
            assert!(!flow.try_admit(41), "too many bytes");
            flow.admit(40).await.expect("whole");
            assert!(!flow.try_admit(0), "too many requests");
            let waiting = world.spawn({
                let (flow, world) = (flow.clone(), world.clone());
                async move {
                    flow.admit(60).await.expect("whole");
                    world.now()
                }
            });
            world.sleep(Nanos(5)).await;
            flow.release(1, 40);
            world.sleep(Nanos(5)).await;
            flow.release(1, 60);
            assert_eq!(waiting.await, Nanos(10), "40 free bytes were not enough, 100 are");
            flow.release(1, 60);
            flow.drained().await;
        });
    }

    #[test]
    fn nothing_is_begun_for_who_takes_nothing_or_is_gone() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let flow = flow(&world, 10);
            flow.admit(10).await.expect("whole");
            flow.answered(10);
            assert!(!flow.try_admit(1));
            let waiting = world.spawn({
                let flow = flow.clone();
                async move { flow.admit(1).await }
            });
            world.sleep(Nanos(5)).await;
            flow.break_off();
            assert_eq!(waiting.await, Err(Broken));
            flow.taken(1, 10);
            assert!(flow.is_empty());
        });
    }

    #[test]
    fn who_waits_for_the_pool_waits_for_it_once() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let options = TargetOptions { reserve_bytes: 10, ..TargetOptions::default() };
            let pool = Rc::new(Pool::new(100, 10));
            let (first, second) =
                (Rc::new(Flow::new(&world, &options, &pool)), Flow::new(&world, &options, &pool));
            second.admit(110).await.expect("it is all there");
            let waiting = world.spawn({
                let (first, world) = (first.clone(), world.clone());
                async move {
                    first.admit(60).await.expect("whole");
                    world.now()
                }
            });
            for _ in 0..5 {
                world.sleep(Nanos(1)).await;
                second.release(0, 10);
                assert!(pool.waiting_count() <= 1);
            }
            assert_eq!(waiting.await, Nanos(5), "50 of the pool and its own 10");
        });
    }

    #[test]
    fn what_may_be_in_flight_grows_by_what_was_taken() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let options = TargetOptions { reserve_bytes: 100, in_flight_bytes_max: 1000, ..Default::default() };
        let flow = Flow::new(runtime.world(), &options, &Rc::new(Pool::new(10_000, 100)));
        let fill = || (0..).take_while(|_| flow.try_admit(50)).count();
        assert_eq!(fill(), 2, "the reserve");
        for most in [4, 8, 16, 20, 20] {
            let held = flow.requests.get();
            for _ in 0..held {
                flow.answered(50);
                flow.taken(1, 50);
            }
            assert_eq!(fill(), most);
        }
    }

    #[test]
    fn who_works_beside_others_leaves_them_room() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let world = runtime.world();
        let options = TargetOptions { reserve_bytes: 1000, contended_bytes_max: 100, ..Default::default() };
        let pool = Rc::new(Pool::new(10_000, 100));
        let (first, second) = (Flow::new(world, &options, &pool), Flow::new(world, &options, &pool));
        let fill = |flow: &Flow| (0..).take_while(|_| flow.try_admit(50)).count();
        assert!(first.try_admit(50) && second.try_admit(50));
        assert_eq!((fill(&first), fill(&second)), (1, 1));
        runtime.run_until(Nanos::from_secs(1));
        assert_eq!(fill(&first), 0, "the other has worked since it was last asked");
        runtime.run_until(Nanos::from_secs(2));
        assert_eq!(fill(&first), 18, "all that it may have: the other has done nothing for long");
        second.release(1, 50);
        assert_eq!(fill(&second), 1);
        first.release(1, 50);
        assert_eq!(fill(&first), 0);
    }
}
