//! A signal that stays: who asks later still learns of it.

use std::cell::Cell;

use tier0_world::sync::Notify;

/// Tells tasks to end.
#[derive(Default)]
pub struct Stop {
    requested: Cell<bool>,
    bell: Notify,
}

impl Stop {
    /// Asks to stop.
    pub fn request(&self) {
        self.requested.set(true);
        self.bell.notify_all();
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.requested.get()
    }

    /// Ends once a stop was requested.
    pub async fn requested(&self) {
        while !self.is_requested() {
            self.bell.wait().await;
        }
    }
}
