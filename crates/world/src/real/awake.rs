//! Keeps processors that have nothing to do from falling asleep while requests come thick and fast.
//!
//! To wake a processor up takes 1 to 100 us, and a virtual one waits for its host besides. This thread looks for work
//! instead of sleeping where waits are short ([`super::spin`]), but a client that waits for a reply on the same machine
//! sleeps, once for every batch of replies, and what it would have asked is late at the drives. Linux bounds how long a
//! wake-up may take while a process holds `/dev/cpu_dma_latency` open. That holds for the whole machine and costs
//! power: so it is asked for only while this world finds its own waits too short to sleep, and given back soon after.
//!
//! Only root may ask, as a rule; other users do without.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tier0_units::Nanos;

use super::driver::Wait;

const DEVICE: &str = "/dev/cpu_dma_latency";
/// Who decides how deep processors sleep.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
/// The lightest sleep of a real processor (C1) ends within this; microseconds (Linux, drivers/idle/intel_idle.c: 1 to 2).
const LIGHT_SLEEP_US: i32 = 2;
/// A virtual processor of Linux's haltpoll driver stays awake only if none is allowed.
const NO_SLEEP_US: i32 = 0;
/// Waits must have been short for so long.
const PROVED: Nanos = Nanos::from_millis(10);
/// So long after the last short wait it is given back.
const LINGER: Nanos = Nanos::from_millis(20);

/// What one world asks for.
pub(crate) struct Awake {
    /// Whom to ask, and for how many microseconds; none where that is in vain.
    wish: Option<(PathBuf, i32)>,
    held: Option<File>,
    short_since: Nanos,
    last_short: Nanos,
}

impl Awake {
    pub(crate) fn new(allowed: bool) -> Awake {
        let latency_us = allowed.then(latency_us).flatten();
        Awake::wishing(latency_us.map(|latency_us| (DEVICE.into(), latency_us)))
    }

    fn wishing(wish: Option<(PathBuf, i32)>) -> Awake {
        Awake { wish, held: None, short_since: Nanos(0), last_short: Nanos(0) }
    }

    /// Notes at `now` whether waits are too short to sleep.
    pub(crate) fn note(&mut self, now: Nanos, short: bool) {
        let lull = now.saturating_sub(self.last_short) > LINGER;
        if short {
            if lull {
                self.short_since = now;
            }
            self.last_short = now;
            if self.held.is_none() && now.saturating_sub(self.short_since) >= PROVED {
                self.ask();
            }
        } else if lull {
            self.held = None;
        }
    }

    /// How much of `wait` this thread may sleep at a time, so that what is held is given back in time.
    pub(crate) fn bound(&self, wait: Wait) -> Wait {
        match wait {
            wait if self.held.is_none() => wait,
            Wait::Never => wait,
            Wait::AtMost(time) => Wait::AtMost(time.min(LINGER)),
            Wait::Forever => Wait::AtMost(LINGER),
        }
    }

    fn ask(&mut self) {
        let Some((device, latency_us)) = &self.wish else { return };
        match hold(device, *latency_us) {
            Ok(file) => self.held = Some(file),
            Err(error) => {
                tracing::debug!(device = %device.display(), %error, "processors are left to sleep");
                self.wish = None;
            }
        }
    }
}

/// Keeps the machine's processors awake for as long as the file stays open.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where Linux has no say in how they sleep, and what opening the device fails with:
/// users other than root may not, as a rule.
pub fn keep_awake() -> io::Result<File> {
    hold(Path::new(DEVICE), latency_us().ok_or(io::ErrorKind::Unsupported)?)
}

fn hold(device: &Path, latency_us: i32) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(device)?;
    file.write_all(&latency_us.to_ne_bytes())?;
    Ok(file)
}

/// What is to be asked for on this machine; none where Linux has no say in how processors sleep.
fn latency_us() -> Option<i32> {
    let driver = std::fs::read_to_string(DRIVER).ok()?;
    match driver.trim() {
        "none" => None,
        "haltpoll" => Some(NO_SLEEP_US),
        _ => Some(LIGHT_SLEEP_US),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    /// Waits of a millisecond each from `from` on; when it first held.
    fn go(awake: &mut Awake, from: u64, times: u64, short: bool) -> Option<u64> {
        let mut first = None;
        for ms in from..from + times {
            awake.note(Nanos::from_millis(ms), short);
            first = first.or(awake.held.is_some().then_some(ms));
        }
        first
    }

    #[test]
    fn it_is_asked_for_while_waits_are_short() {
        let device = tempfile::NamedTempFile::new().expect("a file");
        let mut awake = Awake::wishing(Some((device.path().into(), 7)));
        assert_eq!(go(&mut awake, 1_000, 100, false), None);
        assert_eq!(go(&mut awake, 2_000, 100, true), Some(2_010));
        assert_eq!(std::fs::read(device.path()).expect("readable"), 7_i32.to_ne_bytes());
        assert_eq!(awake.bound(Wait::Forever), Wait::AtMost(LINGER));
        assert_eq!(awake.bound(Wait::AtMost(MS)), Wait::AtMost(MS));
        go(&mut awake, 2_100, 20, false);
        assert!(awake.held.is_some(), "a lull of {LINGER:?} is none");
        go(&mut awake, 2_120, 1, false);
        assert!(awake.held.is_none());
        assert_eq!(awake.bound(Wait::Forever), Wait::Forever);
        assert_eq!(go(&mut awake, 3_000, 5, true), None, "what was before the lull does not count");
    }

    #[test]
    fn who_may_not_ask_does_without() {
        let mut awake = Awake::new(false);
        assert_eq!(go(&mut awake, 0, 100, true), None);
        let mut awake = Awake::wishing(Some(("/nowhere/at/all".into(), 0)));
        assert_eq!(go(&mut awake, 0, 100, true), None);
        assert!(awake.wish.is_none(), "nobody is asked again");
    }
}
