//! What the structures that cross threads are made of: std's parts, or with `--cfg tier0_loom` loom's, so that a model
//! checker runs the same code through every order of its steps (`cargo xtask threads`).
//!
//! In normal builds these are names of std's types and a constant, and cost nothing.

#[cfg(not(tier0_loom))]
mod parts {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};
    pub use std::sync::{Mutex, MutexGuard, OnceLock};

    pub(crate) use atomic_waker::AtomicWaker;
    pub(crate) use crossbeam_queue::SegQueue;

    /// Whether this mistake is to be made: never, and the compiler removes the question.
    #[inline(always)]
    pub const fn flawed(_: super::Flaw) -> bool {
        false
    }
}

#[cfg(tier0_loom)]
#[path = "model.rs"]
mod parts;

pub use std::sync::atomic::Ordering;

pub use self::parts::*;

/// A mistake that the model checker must find, made on purpose in its tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Every atomic access is relaxed.
    RelaxedOrderings,
    /// There are no fences.
    NoFences,
    /// A thread that goes to sleep does not look again after saying so.
    SleepWithoutLook,
    /// A receiver that waits for a message does not look again after leaving a waker.
    WaitWithoutLook,
    /// A sender does not look whether the receiver has gone meanwhile.
    SendWithoutLook,
    /// A mailbox is found empty before its senders are counted.
    CountSendersLast,
    /// An item is counted before it is set.
    CountBeforeItem,
    /// A column's new place is visible before its rows are missing.
    PlaceBeforeMissing,
    /// Two threads move columns and declare rows rebuilt at a time.
    MoveWithoutTurn,
}
