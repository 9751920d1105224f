//! The parts of [`super`] under the model checker. They behave as std's do; where loom knows less than the language, it
//! is said.
//!
//! Loom takes sequentially consistent accesses for acquire and release ones, and knows only fences as stronger: what
//! relies on such an access instead of a fence is reported, which is a mistake of the safe kind.

use std::cell::Cell;
use std::collections::VecDeque;
#[cfg(test)]
use std::pin::pin;
use std::sync::PoisonError;
use std::task::Waker;
#[cfg(test)]
use std::{
    sync::Arc,
    task::{Context, Poll, Wake},
};

use loom::cell::UnsafeCell;
pub use loom::hint::spin_loop;
use loom::sync::atomic as raw;
pub use loom::sync::{Mutex, MutexGuard};

use super::{Flaw, Ordering};

thread_local! {
    /// Loom's threads all run on the one that called it.
    static FLAW: Cell<Option<Flaw>> = const { Cell::new(None) };
}

/// Whether this mistake is to be made.
pub fn flawed(flaw: Flaw) -> bool {
    FLAW.get() == Some(flaw)
}

/// Runs `model` in every order, with a mistake or without. Panics if one of them fails.
pub fn explore(flaw: Option<Flaw>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Loom's own variable for a larger bound is heeded; without one a model of three threads takes hours.
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    FLAW.set(flaw);
    builder.check(model);
    FLAW.set(None);
}

#[cfg(test)]
struct Bell(loom::sync::Notify);

#[cfg(test)]
impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Runs a future to its end. Loom's own does not outlive the deadlocks that are to be found: it panics twice.
#[cfg(test)]
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let bell = Arc::new(Bell(loom::sync::Notify::new()));
    let waker = Waker::from(bell.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        bell.0.wait();
    }
}

fn kind(ordering: Ordering) -> Ordering {
    if flawed(Flaw::RelaxedOrderings) { Ordering::Relaxed } else { ordering }
}

/// A fence, unless its absence is the mistake.
pub fn fence(ordering: Ordering) {
    if !flawed(Flaw::NoFences) {
        raw::fence(ordering);
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[doc = concat!("An `", stringify!($name), "` of the model.")]
        #[derive(Debug, Default)]
        pub struct $name(raw::$name);

        #[allow(missing_docs, reason = "as std's")]
        impl $name {
            pub fn new(value: $value) -> $name {
                $name(raw::$name::new(value))
            }

            pub fn load(&self, ordering: Ordering) -> $value {
                self.0.load(kind(ordering))
            }

            pub fn store(&self, value: $value, ordering: Ordering) {
                self.0.store(value, kind(ordering));
            }

            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                self.0.swap(value, kind(ordering))
            }

            pub fn fetch_or(&self, value: $value, ordering: Ordering) -> $value {
                self.0.fetch_or(value, kind(ordering))
            }

            pub fn fetch_and(&self, value: $value, ordering: Ordering) -> $value {
                self.0.fetch_and(value, kind(ordering))
            }
        }
    };
}

macro_rules! number {
    ($name:ident, $value:ty) => {
        atomic!($name, $value);

        #[allow(missing_docs, reason = "as std's")]
        impl $name {
            pub fn fetch_add(&self, value: $value, ordering: Ordering) -> $value {
                self.0.fetch_add(value, kind(ordering))
            }

            pub fn fetch_sub(&self, value: $value, ordering: Ordering) -> $value {
                self.0.fetch_sub(value, kind(ordering))
            }

            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                self.0.fetch_update(kind(set), kind(fetch), change)
            }
        }
    };
}

atomic!(AtomicBool, bool);
number!(AtomicU32, u32);
number!(AtomicU64, u64);
number!(AtomicUsize, usize);

/// A value that is set once.
#[derive(Debug)]
pub struct OnceLock<T> {
    ready: raw::AtomicBool,
    turn: Mutex<()>,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written under the lock before it is ready, and only read afterwards; loom checks that.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for OnceLock<T> {}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

#[allow(missing_docs, reason = "as std's")]
impl<T> OnceLock<T> {
    pub fn new() -> OnceLock<T> {
        OnceLock { ready: raw::AtomicBool::new(false), turn: Mutex::new(()), value: UnsafeCell::new(None) }
    }

    pub fn get(&self) -> Option<&T> {
        if !self.ready.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: no thread writes the value once it is ready.
        self.value.with(|value| unsafe { (*value).as_ref() })
    }

    pub fn get_or_init(&self, fresh: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.ready.load(Ordering::Acquire) {
                let fresh = fresh();
                // SAFETY: no thread reads the value before it is ready, and the lock is held.
                self.value.with_mut(|value| unsafe { *value = Some(fresh) });
                self.ready.store(true, Ordering::Release);
            }
        }
        self.get().expect("set above")
    }
}

/// A queue, with the orderings that its use relies on: who takes an item sees what its sender did before.
pub(crate) struct SegQueue<T> {
    /// Loom does not see this lock, so nothing is ordered by it.
    items: std::sync::Mutex<VecDeque<T>>,
    head: raw::AtomicUsize,
    tail: raw::AtomicUsize,
}

impl<T> SegQueue<T> {
    pub(crate) fn new() -> SegQueue<T> {
        let (head, tail) = (raw::AtomicUsize::new(0), raw::AtomicUsize::new(0));
        SegQueue { items: std::sync::Mutex::default(), head, tail }
    }

    pub(crate) fn push(&self, item: T) {
        self.tail.fetch_add(1, Ordering::AcqRel);
        // Loom changes threads at its own operations only, so no thread sees the count without the item.
        self.items.lock().unwrap_or_else(PoisonError::into_inner).push_back(item);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.head.fetch_add(1, Ordering::AcqRel);
        self.items.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Acquire) == self.tail.load(Ordering::Acquire)
    }
}

/// The waker of one task.
pub(crate) struct AtomicWaker(Mutex<Option<Waker>>);

impl AtomicWaker {
    pub(crate) fn new() -> AtomicWaker {
        AtomicWaker(Mutex::new(None))
    }

    pub(crate) fn register(&self, waker: &Waker) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    pub(crate) fn wake(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
