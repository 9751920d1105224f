//! The copies of a ring: which are written to, which count, and how one is lost.

use std::future::Future;
use std::pin::Pin;

use tier0_world::IoError;

use crate::ring::Core;
use crate::{Region, RingError};

/// The most copies of a ring.
pub const COPIES_MAX: usize = 3;

/// Tells the owner that a copy is lost.
pub trait LossReport {
    /// Ends when it is durable elsewhere that `copy` must not be believed any more. Nothing that this copy lacks is
    /// acknowledged before. `error` is why. Not called for the last copy that counts: what was acknowledged is still
    /// on that one.
    fn report(&self, copy: usize, error: IoError) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// How a copy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// There is none, or it is lost.
    Lost,
    /// It has failed, and the owner is making the loss durable.
    Losing,
    /// It is being made equal to the others.
    Joining,
    /// It is equal to the others; the owner has not yet said that this is durable elsewhere.
    Unconfirmed,
    /// It counts.
    Live,
}

/// A place for a copy.
pub(crate) struct Place {
    pub(crate) region: Option<Region>,
    pub(crate) state: CopyState,
    /// Why it was lost.
    pub(crate) error: Option<IoError>,
    /// How many copies were here before: a write to one of those that fails late says nothing about this one.
    pub(crate) turn: u64,
}

/// A copy that is written to.
pub(crate) struct Target {
    pub(crate) copy: usize,
    pub(crate) turn: u64,
    pub(crate) region: Region,
}

impl Place {
    pub(crate) fn new(region: Option<Region>) -> Place {
        let state = if region.is_some() { CopyState::Live } else { CopyState::Lost };
        Place { region, state, error: None, turn: 0 }
    }
}

impl Core {
    pub(crate) fn copy_state(&self, copy: usize) -> CopyState {
        self.copies.borrow()[copy].state
    }

    pub(crate) fn set_copy_state(&self, copy: usize, state: CopyState) {
        self.copies.borrow_mut()[copy].state = state;
        self.changed.notify_all();
    }

    /// A copy, if it takes writes.
    pub(crate) fn target(&self, copy: usize) -> Option<Target> {
        let copies = self.copies.borrow();
        let place = &copies[copy];
        if !matches!(place.state, CopyState::Joining | CopyState::Unconfirmed | CopyState::Live) {
            return None;
        }
        Some(Target { copy, turn: place.turn, region: place.region.clone()? })
    }

    /// The copies that count.
    pub(crate) fn live_copies(&self) -> Vec<usize> {
        let copies = self.copies.borrow();
        (0..copies.len()).filter(|copy| copies[*copy].state == CopyState::Live).collect()
    }

    /// Carries out `write` on every copy that takes writes, and ends when each has it or is durably lost. A failure
    /// of the ring as a whole is in its state.
    pub(crate) async fn on_every_copy<F>(&self, write: impl Fn(Region) -> F)
    where
        F: Future<Output = Result<(), IoError>>,
    {
        let count = self.copies.borrow().len();
        let one = |copy| {
            let target = self.target(copy);
            let attempt = target.as_ref().map(|target| write(target.region.clone()));
            async move {
                match (target, attempt) {
                    (Some(target), Some(attempt)) => {
                        if let Err(error) = attempt.await {
                            self.lose(&target, error).await;
                        }
                    }
                    _ => self.until_lost(copy).await,
                }
            }
        };
        futures_util::future::join_all((0..count).map(one)).await;
    }

    /// Drops a copy that failed; ends when that is durable, or when the ring has failed.
    pub(crate) async fn lose(&self, target: &Target, error: IoError) {
        let copy = target.copy;
        let (state, turn) = {
            let copies = self.copies.borrow();
            (copies[copy].state, copies[copy].turn)
        };
        match state {
            _ if turn != target.turn => return,
            CopyState::Lost => return,
            CopyState::Losing => return self.until_lost(copy).await,
            CopyState::Joining | CopyState::Unconfirmed | CopyState::Live => {}
        }
        if self.live_copies() == [copy] {
            return self.fail(RingError::AllCopiesLost { source: error });
        }
        self.copies.borrow_mut()[copy].error = Some(error);
        if state == CopyState::Joining {
            return self.set_copy_state(copy, CopyState::Lost);
        }
        tracing::warn!(copy, %error, "a copy of the log failed");
        self.set_copy_state(copy, CopyState::Losing);
        self.losses.report(copy, error).await;
        // The owner may have dropped the copy itself, and even replaced it.
        if self.copies.borrow()[copy].turn == turn {
            self.set_copy_state(copy, CopyState::Lost);
        }
    }

    /// Waits while the loss of a copy is being made durable.
    async fn until_lost(&self, copy: usize) {
        let turn = self.copies.borrow()[copy].turn;
        loop {
            {
                let place = &self.copies.borrow()[copy];
                if place.turn != turn || place.state != CopyState::Losing || self.failure().is_some() {
                    return;
                }
            }
            self.changed.wait().await;
        }
    }

    /// The owner knows already that a copy is lost.
    pub(crate) fn forget(&self, copy: usize) {
        let error = IoError::Gone;
        if self.copies.borrow().get(copy).is_none_or(|place| place.state == CopyState::Lost) {
            return;
        }
        if self.live_copies() == [copy] {
            return self.fail(RingError::AllCopiesLost { source: error });
        }
        self.copies.borrow_mut()[copy].error = Some(error);
        self.set_copy_state(copy, CopyState::Lost);
    }
}
