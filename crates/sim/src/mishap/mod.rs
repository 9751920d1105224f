//! Mishaps: what leaves the data on the drives, and strikes any number of them at once.
//!
//! Other troubles stay within what redundancy makes up for ([`crate::atlas`]); these do not. The array has to wait: it
//! acknowledges nothing that it cannot keep, records no loss that it cannot survive, and is whole when the drives are
//! back. Users may be refused in the meantime, but not before the array has waited for as long as it promises.
//!
//! Invariants: a mishap begins only while nothing is broken; while one goes on nothing else is broken; all of them end
//! with the life they began in, at the latest.
//!
//! What it does not do: it destroys nothing. A drive that loses its power keeps what was stable.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use tier0_units::Nanos;

use crate::shelf::Shelf;

pub(crate) mod strike;

/// So long a system waits for drives before it refuses its users.
const REFUSES_AFTER: Nanos = Nanos::from_secs(120);
/// So much later users may still hear of it: their requests waited behind others.
const ECHO: Nanos = Nanos::from_secs(90);
/// So long a drive may answer again before the array has noticed.
const NOTICED: Nanos = Nanos::from_secs(10);
/// A span of time in which users may be refused.
struct Window {
    began: Nanos,
    ended: Option<Nanos>,
}

/// The mishaps of a run.
#[derive(Default)]
pub(crate) struct Mishaps {
    /// Drives that are struck now, and by how many mishaps.
    struck: RefCell<BTreeMap<String, u32>>,
    windows: RefCell<Vec<Window>>,
    /// Mishaps that have not ended.
    active: Cell<u32>,
    /// How often all were ended: one that has not begun by then does not begin.
    ended: Cell<u64>,
    /// Until then commands may hang that were given before.
    hangs_until: Cell<Nanos>,
}

impl Mishaps {
    /// Whether one is going on.
    pub(crate) fn is_active(&self) -> bool {
        self.active.get() > 0
    }

    /// Whether drives may still be called lost for what has just passed: verdicts that have fallen are being recorded.
    pub(crate) fn is_settling(&self, now: Nanos) -> bool {
        let windows = self.windows.borrow();
        windows.iter().any(|window| window.ended.is_none_or(|ended| now < ended + NOTICED))
    }

    /// Whether a request that began then and ends now may have been refused because of a mishap.
    pub(crate) fn excuse(&self, began: Nanos, now: Nanos) -> bool {
        let mut since = None;
        let mut last_end = Nanos::ZERO;
        self.windows.borrow().iter().any(|window| {
            // The array may not have noticed that the one before had passed.
            let start = since.filter(|_| window.began <= last_end + NOTICED).unwrap_or(window.began);
            since = Some(start);
            last_end = last_end.max(window.ended.unwrap_or(now));
            last_end.saturating_sub(start) >= REFUSES_AFTER && began <= last_end + ECHO && now >= start
        })
    }

    /// When users may have been refused, for the reader of a failure.
    pub(crate) fn describe(&self) -> String {
        let windows = self.windows.borrow();
        let spans: Vec<String> = windows
            .iter()
            .map(|window| match window.ended {
                Some(ended) => format!("{} to {ended}", window.began),
                None => format!("since {}", window.began),
            })
            .collect();
        format!("mishaps: {}", spans.join(", "))
    }

    /// Until when commands hang, whatever is done to the drives.
    pub(crate) fn hangs_until(&self) -> Nanos {
        self.hangs_until.get()
    }

    /// The life is over, or all trouble ends: whatever was struck is as it was.
    pub(crate) fn end_all(&self, shelf: &Shelf, now: Nanos) {
        for name in self.struck.take().into_keys() {
            let medium = shelf.medium(&name);
            medium.clear_plans();
            if medium.is_gone() {
                medium.reconnect();
            }
        }
        for window in self.windows.borrow_mut().iter_mut().filter(|window| window.ended.is_none()) {
            window.ended = Some(now);
        }
        self.active.set(0);
        self.ended.set(self.ended.get() + 1);
    }

    /// A new life has a clock of its own.
    pub(crate) fn forget(&self) {
        self.hangs_until.set(Nanos::ZERO);
        self.windows.borrow_mut().clear();
    }

    fn begin(&self, now: Nanos) -> usize {
        self.active.set(self.active.get() + 1);
        let mut windows = self.windows.borrow_mut();
        windows.push(Window { began: now, ended: None });
        windows.len() - 1
    }

    fn end(&self, window: usize, now: Nanos) {
        let mut windows = self.windows.borrow_mut();
        if let Some(window) = windows.get_mut(window).filter(|window| window.ended.is_none()) {
            window.ended = Some(now);
            self.active.set(self.active.get() - 1);
        }
    }
}
