//! A counted limit within one world, first come first served.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Permits that tasks take and give back. A waiter for many is not overtaken by later waiters for few.
#[derive(Clone)]
pub struct Semaphore(Rc<Inner>);

struct Inner {
    free: Cell<u64>,
    waiting: RefCell<VecDeque<Rc<Waiter>>>,
}

struct Waiter {
    count: u64,
    granted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Semaphore {
    /// A semaphore with `permits` free.
    pub fn new(permits: u64) -> Semaphore {
        Semaphore(Rc::new(Inner { free: Cell::new(permits), waiting: RefCell::default() }))
    }

    /// Permits that are not held.
    pub fn free(&self) -> u64 {
        self.0.free.get()
    }

    /// Takes `count` permits as soon as they are free.
    pub fn acquire(&self, count: u64) -> Acquire {
        Acquire { semaphore: self.clone(), count, waiter: None }
    }

    fn give_back(&self, count: u64) {
        self.0.free.set(self.0.free.get() + count);
        loop {
            let mut waiting = self.0.waiting.borrow_mut();
            let Some(first) = waiting.front() else { return };
            if first.count > self.0.free.get() {
                return;
            }
            self.0.free.set(self.0.free.get() - first.count);
            let first = waiting.pop_front().expect("it was there just now");
            drop(waiting);
            first.granted.set(true);
            let waker = first.waker.borrow_mut().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// The future of [`Semaphore::acquire`].
#[must_use = "futures do nothing unless polled"]
pub struct Acquire {
    semaphore: Semaphore,
    count: u64,
    waiter: Option<Rc<Waiter>>,
}

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let inner = self.semaphore.0.clone();
        let granted = match &self.waiter {
            Some(waiter) => waiter.granted.get(),
            None if inner.waiting.borrow().is_empty() && inner.free.get() >= self.count => {
                inner.free.set(inner.free.get() - self.count);
                true
            }
            None => {
                let waiter = Rc::new(Waiter {
                    count: self.count,
                    granted: Cell::default(),
                    waker: RefCell::default(),
                });
                inner.waiting.borrow_mut().push_back(waiter.clone());
                self.waiter = Some(waiter);
                false
            }
        };
        if granted {
            self.waiter = None;
            return Poll::Ready(Permit { semaphore: self.semaphore.clone(), count: self.count });
        }
        if let Some(waiter) = &self.waiter {
            *waiter.waker.borrow_mut() = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else { return };
        if waiter.granted.get() {
            self.semaphore.give_back(self.count);
        } else {
            self.semaphore.0.waiting.borrow_mut().retain(|other| !Rc::ptr_eq(other, &waiter));
            self.semaphore.give_back(0);
        }
    }
}

/// Permits held; dropping them gives them back.
#[must_use = "dropping the permit gives it back"]
pub struct Permit {
    semaphore: Semaphore,
    count: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.semaphore.give_back(self.count);
    }
}

#[cfg(test)]
mod tests {
    use tier0_units::Nanos;

    use super::*;
    use crate::{PayloadWidth, VirtualRuntime};

    #[test]
    fn waiters_are_served_in_order_and_the_dropped_are_skipped() {
        let runtime = VirtualRuntime::new(0, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let semaphore = Semaphore::new(2);
            let held = semaphore.acquire(2).await;
            let mut tasks = Vec::new();
            let order = Rc::new(RefCell::new(Vec::new()));
            for count in [2, 1, 1] {
                let (semaphore, order, world) = (semaphore.clone(), order.clone(), world.clone());
                tasks.push(Some(world.clone().spawn(async move {
                    let _permit = semaphore.acquire(count).await;
                    order.borrow_mut().push((count, world.now().0));
                    world.sleep(Nanos(10)).await;
                })));
            }
            world.sleep(Nanos(1)).await;
            drop(held);
            world.sleep(Nanos(1)).await;
            drop(tasks[1].take());
            world.sleep(Nanos(100)).await;
            assert_eq!(*order.borrow(), [(2, 1), (1, 11)]);
            assert_eq!(semaphore.free(), 2);
        });
    }
}
