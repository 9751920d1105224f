//! The power that many media share, to be cut at the n-th command that changes any of them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_world::sync::Notify;

/// The power supply of some media; clones share it.
///
/// It counts the commands that change what a power cut leaves (writes, discards, flushes) as they are submitted. Once
/// the power is off no command completes any more; what was submitted before, the command that tripped it included, is
/// under way and may be kept in part by [`SimMedium::power_cut`](super::SimMedium::power_cut).
#[derive(Clone, Default)]
pub struct PowerSwitch(Rc<Inner>);

#[derive(Default)]
struct Inner {
    changes: Cell<u64>,
    cut_at: Cell<Option<u64>>,
    off: Cell<bool>,
    waiting: RefCell<Rc<Notify>>,
}

impl PowerSwitch {
    /// A supply that is on, with a count of zero.
    pub fn new() -> PowerSwitch {
        PowerSwitch::default()
    }

    /// Writes, discards and flushes submitted so far while the power was on.
    pub fn changes(&self) -> u64 {
        self.0.changes.get()
    }

    /// Cuts the power as the `count`-th further command is submitted, counted from 1.
    pub fn arm(&self, count: u64) {
        assert!(count > 0, "commands are counted from 1");
        self.0.cut_at.set(Some(self.0.changes.get() + count));
    }

    /// Cuts the power now.
    pub fn cut(&self) {
        self.0.off.set(true);
        self.0.cut_at.set(None);
        let waiting = self.0.waiting.borrow().clone();
        waiting.notify_all();
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.0.off.get()
    }

    /// Ends when the power is off. A run that may crash waits for this and for its own end, whichever is first.
    pub async fn wait_off(&self) {
        while !self.is_off() {
            let waiting = self.0.waiting.borrow().clone();
            waiting.wait().await;
        }
    }

    /// The power is on again, for a new world; the count goes on.
    pub fn restore(&self) {
        self.0.off.set(false);
        self.0.cut_at.set(None);
        *self.0.waiting.borrow_mut() = Rc::default();
    }

    /// Counts a command; false if the power was off before it.
    pub(super) fn count(&self) -> bool {
        if self.is_off() {
            return false;
        }
        self.0.changes.set(self.0.changes.get() + 1);
        if self.0.cut_at.get() == Some(self.0.changes.get()) {
            self.cut();
        }
        true
    }
}
