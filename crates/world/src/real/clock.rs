//! The wall clock: the only place of the engine's side that asks the operating system for the time.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tier0_units::Nanos;

pub(crate) struct WallClock {
    start: Instant,
}

impl WallClock {
    #[expect(clippy::disallowed_methods, reason = "this is the World's own clock")]
    pub(crate) fn new() -> WallClock {
        WallClock { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.start.elapsed().into()
    }

    /// Seconds since 1970, UTC; 0 where the clock is set to a time before that.
    #[expect(clippy::disallowed_methods, reason = "this is the World's own clock")]
    pub(crate) fn unix_s() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    /// The time since this was asked first in this process, in whatever world.
    #[expect(clippy::disallowed_methods, reason = "this is the World's own clock")]
    pub(crate) fn common() -> Nanos {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().into()
    }
}
