//! Looks now and then whether a peer goes on with what it has begun.
//!
//! What happens on a connection is only counted; a task of the connection looks at the counts a few times within the patience,
//! so that the fast path pays nothing for it. Time in which this process itself stood still is not held against the peer.

use std::cell::Cell;
use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::{IoError, World};

use super::channel::Channel;
use super::error::CutOff;

/// Looks within the patience.
const LOOKS: u64 = 4;

/// What has happened on a connection.
pub(crate) struct Activity {
    /// Parts that were received.
    received: Cell<u64>,
    /// Parts that were taken by the peer.
    taken: Cell<u64>,
    /// A message has begun and its rest is awaited.
    begun: Cell<bool>,
    /// Replies wait to be taken.
    sending: Cell<bool>,
    /// When something last happened, as far as was looked.
    last: Cell<Nanos>,
}

impl Activity {
    pub(crate) fn new(world: &World) -> Activity {
        let last = Cell::new(world.turned());
        Activity {
            received: Cell::new(0),
            taken: Cell::new(0),
            begun: Cell::new(false),
            sending: Cell::new(false),
            last,
        }
    }

    /// A receive begins.
    #[inline]
    pub(crate) fn expect(&self, begun: bool) {
        self.begun.set(begun);
    }

    /// It has ended.
    #[inline]
    pub(crate) fn received(&self, result: &Result<usize, IoError>) {
        self.begun.set(false);
        if result.is_ok() {
            self.received.set(self.received.get() + 1);
        }
    }

    /// A send begins or has ended.
    #[inline]
    pub(crate) fn sending(&self, sending: bool) {
        self.sending.set(sending);
    }

    /// The peer has taken some.
    #[inline]
    pub(crate) fn taken(&self) {
        self.taken.set(self.taken.get() + 1);
    }

    pub(crate) fn is_sending(&self) -> bool {
        self.sending.get()
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// When something last happened, as far as was looked.
    pub(crate) fn last(&self) -> Nanos {
        self.last.get()
    }
}

/// Watches a connection, until it is broken off or the task is dropped.
pub(crate) async fn watch(channel: Rc<Channel>, patience: Nanos) {
    let world = channel.world().clone();
    let activity = &channel.activity;
    let step = Nanos(patience.0 / LOOKS);
    let mut received = Progress::new(activity.received.get(), &world);
    let mut taken = Progress::new(activity.taken.get(), &world);
    loop {
        world.sleep(step).await;
        let now = world.turned();
        let received_for = received.stood_still(activity.received.get(), activity.begun.get(), now);
        let taken_for = taken.stood_still(activity.taken.get(), activity.sending.get(), now);
        activity.last.set(received.last.max(taken.last));
        if taken_for >= patience {
            return channel.cut_off(CutOff::RepliesNotTaken);
        }
        if received_for >= patience {
            return channel.cut_off(CutOff::HalfSent(patience));
        }
    }
}

/// A count that shall go on while something is awaited.
struct Progress {
    count: u64,
    /// When it last went on.
    last: Nanos,
    /// Since when it is awaited without going on.
    since: Option<Nanos>,
}

impl Progress {
    fn new(count: u64, world: &World) -> Progress {
        Progress { count, last: world.turned(), since: None }
    }

    /// For how long it has been awaited without going on.
    fn stood_still(&mut self, count: u64, awaited: bool, now: Nanos) -> Nanos {
        if count != self.count {
            (self.count, self.last) = (count, now);
            self.since = None;
        }
        if !awaited {
            self.since = None;
            return Nanos::ZERO;
        }
        now.saturating_sub(*self.since.get_or_insert(now))
    }
}
