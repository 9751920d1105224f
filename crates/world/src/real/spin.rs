//! Whether to look for something to do, and for how long, before going to sleep.
//!
//! To be woken takes long: a thread's switch, and on a virtual machine the start of a halted processor, 20 to 100 us
//! together. Where waits are shorter than that, looking is cheaper. Two kinds of wait are told apart,
//! because what is likely differs: while drives work, their completions come within the drive's latency; otherwise a
//! client decides. Each kind learns how long its waits take, and looks only where they are short on average, so that
//! an idle world, and one whose drives are slow, sleep at once. Where it looks, it looks for the longest time that is
//! worth it: the average says little of the drive's time, since what clients say ends waits too.

use tier0_units::Nanos;

/// Waits for clients that are longer than this, or last longer on average, are slept through. 8 KiB reads of RAM through
/// NBD at queue depth 32 wait some 20 us.
const CLIENT_WAIT_MAX: Nanos = Nanos::from_micros(50);
/// The same for drives: flash answers within 50 to 300 us, disks do not.
const DRIVE_WAIT_MAX: Nanos = Nanos::from_micros(300);
/// How much one wait counts in the average: an eighth, so that a lull of a few events ends the looking.
const WEIGHT_SHIFT: u32 = 3;
/// Longer waits count as this: the first short ones after a night's sleep shall count too.
const COUNTED_MAX: Nanos = Nanos::from_millis(10);

/// What one world has learnt.
#[derive(Debug)]
pub(crate) struct Spin {
    client: Waits,
    drive: Waits,
}

#[derive(Debug)]
struct Waits {
    average: Nanos,
    max: Nanos,
}

impl Spin {
    pub(crate) fn new() -> Spin {
        let waits = |max| Waits { average: COUNTED_MAX, max };
        Spin { client: waits(CLIENT_WAIT_MAX), drive: waits(DRIVE_WAIT_MAX) }
    }

    /// How long to look before sleeping, if at all. `drives_work` says that at least one drive does.
    pub(crate) fn limit(&self, drives_work: bool) -> Option<Nanos> {
        let waits = if drives_work { &self.drive } else { &self.client };
        (waits.average < waits.max).then_some(waits.max)
    }

    /// Notes how long a wait took.
    pub(crate) fn learn(&mut self, drives_work: bool, waited: Nanos) {
        let waits = if drives_work { &mut self.drive } else { &mut self.client };
        let (average, waited) = (waits.average.0, waited.min(COUNTED_MAX).0);
        waits.average = Nanos(average - (average >> WEIGHT_SHIFT) + (waited >> WEIGHT_SHIFT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(waits: impl IntoIterator<Item = u64>, drives_work: bool) -> Spin {
        let mut spin = Spin::new();
        waits.into_iter().for_each(|us| spin.learn(drives_work, Nanos::from_micros(us)));
        spin
    }

    #[test]
    fn an_idle_world_sleeps_at_once() {
        assert_eq!(Spin::new().limit(true), None);
        let mut busy = after([20; 100], false);
        assert_eq!(busy.limit(false), Some(CLIENT_WAIT_MAX));
        busy.learn(false, Nanos::from_secs(3600));
        assert_eq!(busy.limit(false), None);
    }

    #[test]
    fn drives_are_waited_for_longer_than_clients() {
        let flash = after([100; 100], true);
        assert_eq!(flash.limit(true), Some(DRIVE_WAIT_MAX));
        assert_eq!(flash.limit(false), None, "nothing is known of clients");
        assert_eq!(
            after([100; 100], false).limit(false),
            None,
            "clients that ask every 100 us can wake the world"
        );
        assert_eq!(after([5_000; 100], true).limit(true), None, "a disk can, too");
        assert_eq!(after([15; 200], true).limit(true), Some(DRIVE_WAIT_MAX), "clients ended most of these");
    }
}
