//! A bell within one world: tasks that wait are woken, first come first served.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A queue of waiting tasks.
#[derive(Default)]
pub struct Notify {
    waiting: RefCell<VecDeque<Waker>>,
}

impl Notify {
    /// No task waits yet.
    pub fn new() -> Notify {
        Notify::default()
    }

    /// Waits until the next [`Notify::notify_all`] or its turn in [`Notify::notify_one`]. A wake-up may come without
    /// cause, so look again at what you wait for.
    pub async fn wait(&self) {
        let mut queued = false;
        poll_fn(|context| {
            if queued {
                return Poll::Ready(());
            }
            queued = true;
            self.waiting.borrow_mut().push_back(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Wakes who has waited longest.
    pub fn notify_one(&self) {
        let waker = self.waiting.borrow_mut().pop_front();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes all who wait now.
    pub fn notify_all(&self) {
        let all = std::mem::take(&mut *self.waiting.borrow_mut());
        all.into_iter().for_each(Waker::wake);
    }

    /// Whether a task waits.
    pub fn has_waiters(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }
}
