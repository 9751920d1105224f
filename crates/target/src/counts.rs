//! How many connections a target has and has had, to be read from any thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a target's connections.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    open: AtomicU64,
    negotiating: AtomicU64,
    refused: AtomicU64,
    refused_of_address: AtomicU64,
    gave_way_negotiating: AtomicU64,
    gave_way_idle: AtomicU64,
}

/// [`ConnectionCounts`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionsNow {
    /// Connections that are open.
    pub open: u64,
    /// Those of them that have not finished their handshake.
    pub negotiating: u64,
    /// New ones that were closed because there was no place, ever.
    pub refused: u64,
    /// Those of them whose address had as many as one may have.
    pub refused_of_address: u64,
    /// Connections that were closed in their handshake to make place for others, ever.
    pub gave_way_negotiating: u64,
    /// The same of idle ones.
    pub gave_way_idle: u64,
}

impl ConnectionCounts {
    /// How many there are now. The counts are each right, and may be of slightly different moments.
    pub fn now(&self) -> ConnectionsNow {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ConnectionsNow {
            open: count(&self.open),
            negotiating: count(&self.negotiating),
            refused: count(&self.refused),
            refused_of_address: count(&self.refused_of_address),
            gave_way_negotiating: count(&self.gave_way_negotiating),
            gave_way_idle: count(&self.gave_way_idle),
        }
    }

    pub(crate) fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.negotiating.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn negotiated(&self) {
        self.negotiating.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn closed(&self, negotiates: bool) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        if negotiates {
            self.negotiated();
        }
    }

    pub(crate) fn refused(&self, is_of_address: bool) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if is_of_address {
            self.refused_of_address.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn gave_way(&self, negotiates: bool) {
        let count = if negotiates { &self.gave_way_negotiating } else { &self.gave_way_idle };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl std::ops::Add for ConnectionsNow {
    type Output = ConnectionsNow;

    /// Those of two targets together.
    fn add(self, other: ConnectionsNow) -> ConnectionsNow {
        ConnectionsNow {
            open: self.open + other.open,
            negotiating: self.negotiating + other.negotiating,
            refused: self.refused + other.refused,
            refused_of_address: self.refused_of_address + other.refused_of_address,
            gave_way_negotiating: self.gave_way_negotiating + other.gave_way_negotiating,
            gave_way_idle: self.gave_way_idle + other.gave_way_idle,
        }
    }
}
