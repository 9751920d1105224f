//! Time of the wall: processes under test live in it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::ProgramError;

/// Waits.
#[expect(clippy::disallowed_methods, reason = "the processes under test live in the real world")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Seconds on a clock that only goes forward.
pub fn wall_s() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// How often a condition is looked at: well below the times that are reported.
const LOOK: Duration = Duration::from_millis(1);

/// Waits until `ready` or for `seconds_max`; fails saying that `what` did not happen.
pub fn wait_until(
    what: &str,
    seconds_max: u32,
    mut ready: impl FnMut() -> Result<bool, ProgramError>,
) -> Result<(), ProgramError> {
    let until = wall_s() + f64::from(seconds_max);
    while !ready()? {
        if wall_s() > until {
            return Err(ProgramError::Failed(format!("{what} did not happen within {seconds_max} s")));
        }
        pause(LOOK);
    }
    Ok(())
}
