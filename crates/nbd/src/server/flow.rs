//! Back-pressure: how much of a connection may be in flight.

use std::cell::Cell;

use tier0_world::sync::Notify;

/// Counts of what was admitted and not yet given back. One task waits for room, one for emptiness.
pub(super) struct Flow {
    requests_max: u32,
    bytes_max: u64,
    requests: Cell<u32>,
    bytes: Cell<u64>,
    released: Notify,
}

impl Flow {
    pub(super) fn new(requests_max: u32, bytes_max: u64) -> Flow {
        let (requests, bytes) = (Cell::new(0), Cell::new(0));
        Flow { requests_max, bytes_max, requests, bytes, released: Notify::new() }
    }

    /// Whether a request of `bytes` fits now; if so it counts. A lone request always fits.
    #[inline]
    fn try_admit(&self, bytes: u64) -> bool {
        let (requests, held) = (self.requests.get(), self.bytes.get());
        let fits = requests == 0 || (requests < self.requests_max && held + bytes <= self.bytes_max);
        if fits {
            self.requests.set(requests + 1);
            self.bytes.set(held + bytes);
        }
        fits
    }

    /// Waits until a request of `bytes` fits, and counts it.
    pub(super) async fn admit(&self, bytes: u64) {
        while !self.try_admit(bytes) {
            self.released.wait().await;
        }
    }

    /// Gives back what was answered.
    pub(super) fn release(&self, requests: u32, bytes: u64) {
        self.requests.set(self.requests.get() - requests);
        self.bytes.set(self.bytes.get() - bytes);
        if self.released.has_waiters() {
            self.released.notify_all();
        }
    }

    /// Waits until nothing is in flight.
    pub(super) async fn drained(&self) {
        while self.requests.get() > 0 {
            self.released.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    #[test]
    fn admission_waits_for_requests_and_for_bytes_but_lets_a_lone_giant_in() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let flow = Rc::new(Flow::new(2, 100));
            flow.admit(1000).await;
            assert!(!flow.try_admit(1), "the giant uses up the bytes");
            flow.release(1, 1000);
            flow.admit(60).await;
            assert!(!flow.try_admit(41), "too many bytes");
            flow.admit(40).await;
            assert!(!flow.try_admit(0), "too many requests");
            let waiting = world.spawn({
                let (flow, world) = (flow.clone(), world.clone());
                async move {
                    flow.admit(60).await;
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
}
