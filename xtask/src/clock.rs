//! Time of the wall and of processors.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Waits.
#[expect(clippy::disallowed_methods, reason = "a benchmark waits in the real world, outside of any engine")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Seconds on a clock that only goes forward.
pub(crate) fn wall_s() -> f64 {
    seconds(ClockId::Monotonic)
}

/// Seconds of processor time that this thread has used.
pub(crate) fn thread_s() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds of processor time that all threads of process `pid` have used, in user and kernel mode.
pub(crate) fn process_s(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold spaces; utime and stime are fields 14 and 15, counted from 1 (proc(5)).
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}
