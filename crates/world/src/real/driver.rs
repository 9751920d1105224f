//! Which way operations go to the kernel: io_uring, or epoll and threads.

use std::os::fd::AsFd;

use tier0_units::Nanos;

use super::op::Request;
use super::threads::Threads;
use super::uring::Uring;
use crate::Payload;
use crate::completion::{Outcome, SlotId};

/// What a driver reports: which slot ended, and how.
pub(crate) type Finished = Vec<(SlotId, Outcome)>;

#[expect(clippy::large_enum_variant, reason = "there is one driver per thread")]
pub(crate) enum Driver {
    Uring(Uring),
    Threads(Threads),
}

impl Driver {
    /// Starts an operation. A failure to start is reported like any other, by `poll`.
    pub(crate) fn submit(&mut self, request: Request, payload: &mut Payload) {
        match self {
            Driver::Uring(uring) => uring.submit(request, payload),
            Driver::Threads(threads) => threads.submit(request, payload),
        }
    }

    /// Collects what has ended until `now` without sleeping, as cheaply as may be: it is called over and over.
    pub(crate) fn look(&mut self, now: Nanos, bell: impl AsFd, finished: &mut Finished) {
        match self {
            Driver::Uring(uring) => uring.look(now, finished),
            Driver::Threads(threads) => threads.poll(Wait::Never, bell, finished),
        }
    }

    /// Operations on files and devices that are under way.
    pub(crate) fn file_operations(&self) -> usize {
        match self {
            Driver::Uring(uring) => uring.file_operations(),
            Driver::Threads(threads) => threads.file_operations(),
        }
    }

    /// Collects what has ended. `wait` says how long it may sleep for the first of them from `now` on: not at all, for a
    /// while, or until something happens.
    pub(crate) fn poll(&mut self, now: Nanos, wait: Wait, bell: impl AsFd, finished: &mut Finished) {
        match self {
            Driver::Uring(uring) => uring.poll(now, wait, bell, finished),
            Driver::Threads(threads) => threads.poll(wait, bell, finished),
        }
    }
}

/// How long a poll may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Never,
    AtMost(Nanos),
    Forever,
}

/// The outcome of a system call's return value: a count, or a negative errno.
pub(crate) fn outcome_of(result: i32) -> Outcome {
    u32::try_from(result).map_err(|_| crate::IoError::Os(-result))
}
