//! The wall clock, for who waits: how long is left, and how fast a replay was. No result depends on it.

use std::time::{Duration, Instant};

/// The time since it was started.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "it is for the person who waits")]
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
