//! One die: its reads, the background operations queued on it, and the buffered writes that wait for it.
//!
//! Background work (programs, and the reads, programs and erases of garbage collection) is a backlog that
//! ends at `background_until`. A read that overtakes it pushes that end back; so do not the completions of
//! single programs, which are therefore kept on an axis of *work done* that reads do not stretch: a program
//! queued when the backlog stood at work `w` completes once all but the work queued after `w` is done.
//!
//! Invariants: one operation at a time; `background_until` never moves back; every nanosecond of work is done.

use super::parameters::ReadScheduling;

/// Erases remembered for each die.
const ERASES: usize = 4;

/// Busy-until times of a die, in nanoseconds; one cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(super) struct Die {
    reads_until: u64,
    background_until: u64,
    /// Background work ever queued.
    work: u64,
    /// Where on the axis of work erases end that may not be done yet; as many as fit the cache line. One more
    /// takes its time, but a read will not know it from programs.
    erases: [u64; ERASES],
    next_erase: u32,
    /// Stripes erased in the mapping whose erase has not been charged: a modelled block is a part of a real one.
    pub(super) stripes_erased: u32,
}

/// The parameters that the die's clock needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct DieTimes {
    pub(super) program: u64,
    pub(super) erase: u64,
    pub(super) scheduling: ReadScheduling,
}

impl Die {
    /// An idle die.
    pub(super) fn new(stripes_erased: u32) -> Die {
        Die { stripes_erased, ..Die::default() }
    }

    /// Reads a page for the host, asked for at `at`, in `length`; returns when it is in the die's register.
    #[inline]
    pub(super) fn read(&mut self, at: u64, length: u64, times: &DieTimes) -> u64 {
        let mut start = at.max(self.reads_until);
        if self.background_until > start {
            start = self.overtake(start, length, times);
        }
        self.reads_until = start + length;
        self.reads_until
    }

    /// When a read that is ready at `at` starts amid background work, which it delays by `length`.
    fn overtake(&mut self, at: u64, length: u64, times: &DieTimes) -> u64 {
        match times.scheduling {
            ReadScheduling::InOrder => {
                let start = self.background_until;
                self.background_until += length;
                start
            }
            ReadScheduling::BetweenOperations => {
                let start = at + self.operation_left(at, times);
                self.background_until += length;
                start
            }
            ReadScheduling::Suspending(delay) => {
                // What suspending takes is lost to the background work too.
                let delay = self.operation_left(at, times).min(delay.0);
                self.background_until += delay + length;
                at + delay
            }
        }
    }

    /// What is left at `at` of the operation in progress: the erase where one is, else a program. Programs
    /// make up nearly all background time and the backlog ends with one, so they are counted from its end.
    fn operation_left(&self, at: u64, times: &DieTimes) -> u64 {
        let left = self.background_until - at;
        let done = self.work.saturating_sub(left);
        let erase = self.erases.iter().find(|end| **end > done && **end - done <= times.erase);
        erase.map_or(left % times.program, |end| end - done)
    }

    /// Queues background work that is known at `at`, not to begin before the channel has brought its data at
    /// `data_at`; returns the work axis at its end.
    #[inline]
    pub(super) fn queue(&mut self, at: u64, data_at: u64, length: u64) -> u64 {
        let idle_from = self.background_until.max(self.reads_until).max(at);
        let start = idle_from.max(data_at);
        self.work += start - idle_from + length;
        self.background_until = start + length;
        self.work
    }

    /// Queues an erase, known at `at`, after all other background work.
    pub(super) fn queue_erase(&mut self, at: u64, length: u64) {
        let end = self.queue(at, at, length);
        let oldest = &mut self.erases[self.next_erase as usize % ERASES];
        if *oldest <= self.work.saturating_sub(self.background_until.saturating_sub(at)) {
            *oldest = end;
            self.next_erase = self.next_erase.wrapping_add(1);
        }
    }

    /// When the work axis reaches `work`, as far as known now; a time in the past where it has.
    #[inline]
    pub(super) fn work_done_at(&self, work: u64) -> u64 {
        self.background_until.saturating_sub(self.work - work)
    }

    /// When all background work is done.
    #[inline]
    pub(super) fn background_until(&self) -> u64 {
        self.background_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tier0_units::Nanos;

    const PROGRAM: u64 = 1_000;

    fn times(scheduling: ReadScheduling) -> DieTimes {
        DieTimes { program: PROGRAM, erase: 5_000, scheduling }
    }

    fn busy_die() -> Die {
        let mut die = Die::default();
        for _ in 0..3 {
            die.queue(0, 0, PROGRAM);
        }
        die
    }

    #[test]
    fn a_read_waits_for_what_its_scheduling_says() {
        for (scheduling, done, background_until) in [
            (ReadScheduling::InOrder, 3_100, 3_100),
            (ReadScheduling::BetweenOperations, 1_100, 3_100),
            (ReadScheduling::Suspending(Nanos(50)), 550, 3_150),
        ] {
            let mut die = busy_die();
            assert_eq!(die.read(400, 100, &times(scheduling)), done, "{scheduling:?}");
            assert_eq!(die.background_until(), background_until, "{scheduling:?}");
        }
    }

    #[test]
    fn reads_delay_buffered_writes_by_their_own_length() {
        let mut die = Die::default();
        let works = [0; 3].map(|_| die.queue(0, 0, PROGRAM));
        assert_eq!(works.map(|w| die.work_done_at(w)), [1_000, 2_000, 3_000]);
        die.read(0, 100, &times(ReadScheduling::BetweenOperations));
        assert_eq!(works.map(|w| die.work_done_at(w)), [1_100, 2_100, 3_100]);
    }

    #[test]
    fn a_read_waits_for_an_erase_to_its_end() {
        let mut die = Die::default();
        die.queue(0, 0, PROGRAM);
        die.queue_erase(0, 5_000);
        die.queue(0, 0, PROGRAM);
        die.queue_erase(0, 5_000);
        let scheduling = times(ReadScheduling::BetweenOperations);
        assert_eq!(die.read(1_500, 100, &scheduling), 6_100, "amid the first erase");
        assert_eq!(die.read(6_200, 100, &scheduling), 7_200, "amid the program, that the read delayed");
        assert_eq!(die.read(8_000, 100, &scheduling), 12_300, "amid the second erase, that both delayed");
        assert_eq!(die.background_until(), 12_300);
    }
}
