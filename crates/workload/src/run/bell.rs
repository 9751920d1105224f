//! One task that waits for a bell or a time, whichever comes first; and a pause for the others' sake.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Poll, Waker};

use tier0_units::Nanos;
use tier0_world::World;

/// A bell with one listener. Rung early, it is heard later.
#[derive(Default)]
pub(super) struct Bell {
    rung: Cell<bool>,
    listener: RefCell<Option<Waker>>,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.rung.set(true);
        if let Some(waker) = self.listener.take() {
            waker.wake();
        }
    }

    /// Waits for the bell, at most until `time`.
    pub(super) async fn wait_until(&self, world: &World, time: Nanos) {
        let mut sleep = pin!((time < Nanos::MAX).then(|| world.sleep_until(time)));
        poll_fn(|context| {
            let asleep = sleep.as_mut().as_pin_mut().is_none_or(|sleep| sleep.poll(context).is_pending());
            if self.rung.take() || !asleep {
                return Poll::Ready(());
            }
            *self.listener.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Lets every task that is ready run first.
pub(super) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs a future, and says whether it ever had to wait.
pub(super) async fn noting_wait<F: Future>(mut future: Pin<&mut F>) -> (F::Output, bool) {
    let mut waited = false;
    let output = poll_fn(|context| {
        let poll = future.as_mut().poll(context);
        waited |= poll.is_pending();
        poll
    })
    .await;
    (output, waited)
}
