//! The queue of ready tasks: first in, first out, of one thread; other threads reach it through a lock-free inbox
//! and wake the thread if it sleeps.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_task::{Runnable, Task};
use slab::Slab;

use crate::sync::Inbox;

thread_local! {
    static MARK: u8 = const { 0 };
}

/// A number that differs between all living threads: the address of a thread-local.
fn thread_mark() -> usize {
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

pub(crate) struct ReadyQueue {
    owner: usize,
    local: UnsafeCell<VecDeque<Runnable>>,
    /// A waker of every task that has not ended, so that all can be ended: a task that waits for a channel whose other
    /// end it owns is reached in no other way.
    living: UnsafeCell<Slab<Waker>>,
    inbox: Inbox<Runnable>,
    bell: Option<OwnedFd>,
}

// SAFETY: `local` and `living` are touched only by the thread whose mark is `owner` (checked in `push`, and the queue's other
// methods are called by the runtime, which is not Send); everything else is Sync by itself.
unsafe impl Sync for ReadyQueue {}
// SAFETY: as above; a `Runnable` of a local future that ends up on another thread is never run there.
unsafe impl Send for ReadyQueue {}

impl ReadyQueue {
    /// A queue of the calling thread; `bell` is an eventfd that ends the thread's sleep.
    pub(crate) fn new(bell: Option<OwnedFd>) -> Arc<ReadyQueue> {
        Arc::new(ReadyQueue {
            owner: thread_mark(),
            local: UnsafeCell::new(VecDeque::with_capacity(256)),
            living: UnsafeCell::default(),
            inbox: Inbox::new(),
            bell,
        })
    }

    /// Starts a task on this queue's thread. It takes a pointer, so that the code of a task is compiled once for each type of
    /// output and not for each future: otherwise that code is half of what a test program compiles. A future of 2 KiB or more
    /// would be put on the heap anyway.
    pub(crate) fn spawn<T: 'static>(
        self: &Arc<Self>,
        future: Pin<Box<dyn Future<Output = T> + 'static>>,
    ) -> Task<T> {
        assert_eq!(self.owner, thread_mark(), "a world's tasks are spawned by its own thread");
        // SAFETY: this is the owner's thread, and no reference to the slab outlives a call.
        let place = unsafe { (*self.living.get()).vacant_key() };
        let future = Living { future, _entry: Entry { queue: self.clone(), place } };
        let queue = self.clone();
        // SAFETY: the future need not be Send because `push` puts runnables that were woken by other threads
        // into the inbox, and only the owner takes them out to run or drop them; it is 'static; the schedule
        // function is Send and Sync because the queue is.
        let (runnable, task) =
            unsafe { async_task::spawn_unchecked(future, move |runnable| queue.push(runnable)) };
        // SAFETY: as above; nothing was put into the slab since the place was chosen.
        let entered = unsafe { (*self.living.get()).insert(runnable.waker()) };
        debug_assert_eq!(entered, place);
        runnable.schedule();
        task
    }

    /// Wakes every task that has not ended.
    pub(crate) fn wake_all(&self) {
        debug_assert_eq!(self.owner, thread_mark());
        // SAFETY: as in `pop`; the wakers are cloned so that waking, which may end tasks, finds the slab free.
        let wakers: Vec<Waker> =
            unsafe { (*self.living.get()).iter().map(|(_, waker)| waker.clone()).collect() };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn push(&self, runnable: Runnable) {
        if self.owner == thread_mark() {
            // SAFETY: this is the owner's thread, and no reference to the queue outlives a call.
            unsafe { (*self.local.get()).push_back(runnable) }
        } else {
            self.inbox.push(runnable, || self.ring());
        }
    }

    /// Ends the owner's sleep.
    fn ring(&self) {
        if let Some(bell) = &self.bell {
            // An eventfd write fails only when its counter would overflow, and then it rings already.
            let _ = rustix::io::write(bell.as_fd(), &1u64.to_ne_bytes());
        }
    }

    /// The next ready task. Only the owner may call it.
    pub(crate) fn pop(&self) -> Option<Runnable> {
        debug_assert_eq!(self.owner, thread_mark());
        // SAFETY: only the owner's runtime calls this, and no reference outlives the call.
        unsafe { (*self.local.get()).pop_front() }
    }

    /// Takes over what other threads have sent.
    pub(crate) fn drain_inbox(&self) {
        while let Some(runnable) = self.inbox.pop() {
            // SAFETY: as in `pop`.
            unsafe { (*self.local.get()).push_back(runnable) }
        }
    }

    /// How many tasks are ready on the owner's side.
    pub(crate) fn len(&self) -> usize {
        debug_assert_eq!(self.owner, thread_mark());
        // SAFETY: as in `pop`.
        unsafe { (*self.local.get()).len() }
    }

    /// Announces that the owner is about to sleep; false if work has come in the meantime.
    pub(crate) fn prepare_to_sleep(&self) -> bool {
        self.len() == 0 && self.inbox.prepare_to_sleep()
    }

    /// The owner is awake again.
    pub(crate) fn awake(&self) {
        self.inbox.awake();
    }

    /// The eventfd that ends the owner's sleep.
    pub(crate) fn bell(&self) -> Option<&OwnedFd> {
        self.bell.as_ref()
    }
}

/// A future that is listed among the living until it is dropped.
struct Living<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    _entry: Entry,
}

impl<T> Future for Living<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.future.as_mut().poll(context)
    }
}

struct Entry {
    queue: Arc<ReadyQueue>,
    place: usize,
}

impl Drop for Entry {
    fn drop(&mut self) {
        debug_assert_eq!(self.queue.owner, thread_mark());
        // SAFETY: local futures are run and dropped by the owner's thread only. The waker is dropped after the slab
        // is released, since that may end the task.
        let waker = unsafe { (*self.queue.living.get()).remove(self.place) };
        drop(waker);
    }
}

/// A handle by which other threads start tasks in a world.
#[derive(Clone)]
pub struct Remote(pub(crate) Arc<ReadyQueue>);

impl Remote {
    /// Starts `future` on the world's thread. The result comes through the returned task.
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let queue = self.0.clone();
        let future: Pin<Box<dyn Future<Output = F::Output> + Send>> = Box::pin(future);
        let (runnable, task) = async_task::spawn(future, move |runnable| queue.push(runnable));
        runnable.schedule();
        task
    }
}
