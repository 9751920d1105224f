//! One direction of a modelled connection: bytes on their way, and bytes that have arrived.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use tier0_units::Nanos;

use super::NetworkOptions;
use crate::sync::Notify;
use crate::{IoError, TimerTarget, World};

/// Bytes that travel together; none are the end of the stream.
type Segment = Vec<u8>;

#[derive(Default)]
pub(super) struct Pipe {
    on_their_way: RefCell<VecDeque<Segment>>,
    arrived: RefCell<VecDeque<u8>>,
    /// Bytes on their way or unread.
    held: Cell<usize>,
    /// The sender's line is busy until then.
    busy_until: Cell<Nanos>,
    last_arrival: Cell<Nanos>,
    /// The sender has said that nothing more will come, and that has arrived.
    ended: Cell<bool>,
    /// The sender has said so.
    end_sent: Cell<bool>,
    /// The receiver is gone or the connection is dead: what is sent fails.
    send_error: Cell<Option<IoError>>,
    receive_error: Cell<Option<IoError>>,
    /// What is sent from now on gets lost.
    silent: Cell<bool>,
    pub(super) readable: Notify,
    pub(super) writable: Notify,
}

impl Pipe {
    /// Bytes that it takes now.
    pub(super) fn room(&self, options: &NetworkOptions) -> Result<usize, IoError> {
        match self.send_error.get() {
            Some(error) => Err(error),
            None if self.end_sent.get() => Err(IoError::Os(libc::EPIPE)),
            None => Ok(options.buffer_bytes.saturating_sub(self.held.get())),
        }
    }

    /// Sends `segment`, which there is room for.
    pub(super) fn send(
        self: &Rc<Self>,
        world: &World,
        options: &NetworkOptions,
        jitter: Nanos,
        segment: Segment,
    ) {
        self.held.set(self.held.get() + segment.len());
        if self.silent.get() {
            return;
        }
        let now = world.now();
        let takes = segment.len() as u128 * 1_000_000_000 / u128::from(options.bytes_per_second);
        let left = self.busy_until.get().max(now).saturating_add(Nanos(takes as u64));
        self.busy_until.set(left);
        let arrival = (left + options.latency + jitter).max(self.last_arrival.get());
        self.last_arrival.set(arrival);
        self.on_their_way.borrow_mut().push_back(segment);
        world.call_at(arrival, self.clone(), 0);
    }

    /// Nothing more will come; that arrives behind what is on its way.
    pub(super) fn end(self: &Rc<Self>, world: &World, options: &NetworkOptions) {
        if !self.end_sent.replace(true) && self.send_error.get().is_none() {
            self.send(world, options, Nanos::ZERO, Segment::new());
        }
        self.writable.notify_all();
    }

    /// The receiver takes nothing more.
    pub(super) fn refuse(&self) {
        self.send_error.set(self.send_error.get().or(Some(IoError::Os(libc::EPIPE))));
        self.ended.set(true);
        self.forget();
        self.wake();
    }

    /// The connection is dead, and both ends know.
    pub(super) fn fail(&self, error: IoError) {
        self.send_error.set(Some(error));
        self.receive_error.set(Some(error));
        self.forget();
        self.wake();
    }

    /// When the last of what was sent arrives.
    pub(super) fn last_arrival(&self) -> Nanos {
        self.last_arrival.get()
    }

    /// What is sent from now on gets lost.
    pub(super) fn lose_what_follows(&self) {
        self.silent.set(true);
    }

    /// Nothing arrives any more.
    pub(super) fn fall_silent(&self) {
        self.lose_what_follows();
        self.on_their_way.borrow_mut().clear();
    }

    /// Appends what has arrived to what `take` takes it into, at most `most` bytes; none at the end of the stream, and
    /// nothing where nothing has arrived.
    pub(super) fn receive(&self, most: usize, mut take: impl FnMut(&[u8])) -> Option<Result<usize, IoError>> {
        let mut arrived = self.arrived.borrow_mut();
        if arrived.is_empty() {
            return match self.receive_error.get() {
                Some(error) => Some(Err(error)),
                None => self.ended.get().then_some(Ok(0)),
            };
        }
        let count = most.min(arrived.len());
        let (front, back) = arrived.as_slices();
        let of_front = count.min(front.len());
        take(&front[..of_front]);
        take(&back[..count - of_front]);
        arrived.drain(..count);
        self.held.set(self.held.get() - count);
        self.writable.notify_all();
        Some(Ok(count))
    }

    fn forget(&self) {
        self.on_their_way.borrow_mut().clear();
        self.arrived.borrow_mut().clear();
        self.held.set(0);
    }

    fn wake(&self) {
        self.readable.notify_all();
        self.writable.notify_all();
    }
}

impl TimerTarget for Pipe {
    fn fire(self: Rc<Self>, _token: u64) {
        // What died on its way has left its timer behind.
        let Some(segment) = self.on_their_way.borrow_mut().pop_front() else { return };
        if segment.is_empty() {
            self.ended.set(true);
        }
        self.arrived.borrow_mut().extend(segment);
        self.readable.notify_all();
    }
}
