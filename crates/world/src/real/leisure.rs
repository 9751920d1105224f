//! How long nobody will miss this thread: naps while clients have answers to read.
//!
//! A client that has not read yet what was sent to it is busy. To look for its next request meanwhile takes a whole
//! processor, and finds requests one by one, each of which costs a call to receive and one to answer. After a nap several
//! have collected. Nobody waits for that, as long as the answers to them are there before the client has read
//! everything: how fast it reads is learnt from what it left unread while this thread slept, and how long it takes to
//! answer is known.
//!
//! To be woken by the client is cheaper than by a timer, which costs a virtual machine a call to the hypervisor or two. A
//! unix socket tells when what is unread has fallen below a mark ([`super::send_buffer`]). Where much more than that is
//! unread, or the socket is full, so that what is asked could not be answered anyway, this ends a nap.
//!
//! Linux knows what is unread for unix sockets only; for TCP it knows what has not been acknowledged, which says nothing.

use tier0_units::Nanos;

/// With less than this unread a client may be done before this thread has fallen asleep; bytes, as the kernel counts
/// them.
const UNREAD_MIN: usize = 96 << 10;
/// To fall asleep and to wake up costs several microseconds: shorter naps are not worth it.
const NAP_MIN: Nanos = Nanos::from_micros(20);
/// The longest naps that a timer ends, where requests are answered from memory.
const NAP_MAX: Nanos = Nanos::from_micros(120);
/// The longest ones where they go to drives, which shall have them soon.
const NAP_MAX_BESIDE_DRIVES: Nanos = Nanos::from_micros(60);
/// A client that has not read down to the mark within this time may be waiting for something else, and is not believed to
/// tell for so many naps, a second or so. The kernel's own timer comes before this one, so it need not be set.
const NAP_MAX_UNTIL_TOLD: Nanos = Nanos::from_millis(20);
const DISTRUSTED_NAPS: u32 = 1 << 13;
/// A nap is left to a socket to end where what is unread is above its mark by this part of that.
const ABOVE_MARK_PART: usize = 3;
/// When the next answers come, this part of what was unread shall be left.
const LEFT_PART: u64 = 2;
/// Begins as for a client that reads 2 GB/s; nanoseconds per MiB.
const PACE_FIRST: u64 = 1 << 19;
/// Slower clients make no difference: naps have a longest time.
const PACE_MAX: u64 = 5 << 19;
/// How much one nap counts in what is learnt: an eighth.
const WEIGHT_SHIFT: u32 = 3;
/// With less left than this, a client may have waited for a while.
const LEFT_MIN: usize = 8 << 10;

/// What clients have to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// The least that any of them has, as far as that is known; bytes.
    least: usize,
    /// Every one has so much that its socket will tell in time.
    all_will_tell: bool,
}

impl Unread {
    /// Nobody knows.
    pub(super) const UNKNOWN: Unread = Unread { least: 0, all_will_tell: false };
    /// As much as the socket holds.
    pub(super) const FULL: Unread = Unread { least: usize::MAX, all_will_tell: true };

    /// So many bytes, in a socket that tells when it is `mark` or less.
    pub(super) fn of(bytes: usize, mark: usize) -> Unread {
        Unread { least: bytes, all_will_tell: bytes > mark + mark / ABOVE_MARK_PART }
    }

    /// The same where no socket is to be waited for.
    pub(super) fn untold(self) -> Unread {
        Unread { all_will_tell: false, ..self }
    }

    /// The least that any of them has, bytes.
    pub(super) fn least(self) -> usize {
        self.least
    }

    /// What both have.
    pub(super) fn and(self, other: Unread) -> Unread {
        Unread {
            least: self.least.min(other.least),
            all_will_tell: self.all_will_tell && other.all_will_tell,
        }
    }
}

/// A sleep that nobody is expected to notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nap {
    pub(crate) time: Nanos,
    /// A socket will end it before.
    pub(super) until_told: bool,
    /// What was unread at its beginning, bytes.
    unread: usize,
}

/// What one thread has learnt.
#[derive(Debug)]
pub(super) struct Leisure {
    /// How long clients take to read a MiB, nanoseconds.
    pace: u64,
    /// From the end of a nap to the first answer.
    answer_takes: Nanos,
    /// Nobody was answered since a nap ended then.
    woken: Option<Nanos>,
    /// For so many naps no socket is believed to tell.
    distrusted: u32,
}

impl Leisure {
    pub(super) fn new() -> Leisure {
        Leisure { pace: PACE_FIRST, answer_takes: Nanos(0), woken: None, distrusted: 0 }
    }

    /// Whether to sleep while clients have this to read, and for how long.
    pub(super) fn nap(&mut self, unread: Unread, drives_work: bool) -> Option<Nap> {
        let Unread { least: unread, all_will_tell } = unread;
        if unread < UNREAD_MIN {
            return None;
        }
        if all_will_tell && !drives_work {
            if self.distrusted == 0 {
                return Some(Nap { time: NAP_MAX_UNTIL_TOLD, unread, until_told: true });
            }
            self.distrusted -= 1;
        }
        let max = if drives_work { NAP_MAX_BESIDE_DRIVES } else { NAP_MAX };
        let nap = |time| Some(Nap { time, unread, until_told: false });
        if unread == Unread::FULL.least {
            return nap(max);
        }
        let to_read = Nanos((unread as u64 / LEFT_PART * self.pace) >> 20);
        let time = to_read.saturating_sub(self.answer_takes);
        if time < NAP_MIN {
            // Slowly, so that a client that reads too fast is tried again now and then.
            self.pace += self.pace / 1024 + 1;
            return None;
        }
        nap(time.min(max))
    }

    /// Notes that a nap took `slept` and ended at `now`; `left` tells how many bytes were left unread.
    pub(super) fn ended(&mut self, nap: Nap, slept: Nanos, now: Nanos, left: impl FnOnce() -> Option<usize>) {
        self.woken = Some(now);
        if slept < nap.time {
            return;
        }
        if nap.until_told {
            self.distrusted = DISTRUSTED_NAPS;
            return;
        }
        if nap.unread == Unread::FULL.least {
            return;
        }
        let Some(left) = left() else { return };
        let read = nap.unread.saturating_sub(left).max(1) as u64;
        let pace = ((slept.0 << 20) / read).min(PACE_MAX);
        if left < LEFT_MIN {
            // It reads at least as fast, and who knows how fast.
            self.pace = self.pace.min(pace);
            self.pace -= self.pace >> WEIGHT_SHIFT;
        } else {
            self.pace = average(self.pace, pace);
        }
    }

    /// Notes that somebody is answered `now`; the first time after a nap counts.
    pub(super) fn answered(&mut self, now: impl FnOnce() -> Nanos) {
        if let Some(woken) = self.woken.take() {
            let took = now().saturating_sub(woken).min(NAP_MAX);
            self.answer_takes = Nanos(average(self.answer_takes.0, took.0));
        }
    }
}

fn average(so_far: u64, new: u64) -> u64 {
    so_far - (so_far >> WEIGHT_SHIFT) + (new >> WEIGHT_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A nap beside a client that reads a KiB in `ns`, with 128 KiB unread at its beginning.
    fn beside(leisure: &mut Leisure, ns: u64) -> Option<Nanos> {
        let unread = 128 << 10;
        let nap = leisure.nap(Unread::of(unread, unread), false)?;
        let left = unread.saturating_sub((nap.time.0 / ns) as usize * 1024);
        leisure.ended(nap, nap.time, Nanos(0), || Some(left));
        Some(nap.time)
    }

    #[test]
    fn naps_end_before_a_client_has_read_everything() {
        for ns in [400, 500, 800, 1_500] {
            let mut leisure = Leisure::new();
            let half = 64 * ns;
            let times: Vec<u64> =
                (0..200).filter_map(|_| beside(&mut leisure, ns)).map(|time| time.0).skip(20).collect();
            assert!(times.len() > 100, "{ns}: {times:?}");
            let expected = half.min(NAP_MAX.0);
            assert!(times.iter().all(|time| time.abs_diff(expected) < half / 16), "{ns}: {times:?}");
        }
    }

    #[test]
    fn a_fast_client_is_not_kept_waiting_but_tried_now_and_then() {
        let mut leisure = Leisure::new();
        let naps = (0..10_000).filter(|_| beside(&mut leisure, 50).is_some()).count();
        assert!((1..=50).contains(&naps), "{naps} of 10000");
        let slow = (0..10_000).any(|_| beside(&mut leisure, 1_000) > Some(Nanos::from_micros(60)));
        assert!(slow, "it has become slow, and half of 128 KiB takes it 64 us");
    }

    /// The host took this thread's processor away, or the client stood still.
    #[test]
    fn a_strange_nap_says_little() {
        let mut leisure = Leisure::new();
        let usual = (0..100).filter_map(|_| beside(&mut leisure, 1_000)).last().expect("it naps");
        for (slept, left) in [(Nanos::from_millis(20), 0), (Nanos::from_micros(100), 128 << 10)] {
            let nap = leisure.nap(Unread::of(128 << 10, 128 << 10), false).expect("it naps");
            leisure.ended(nap, slept, Nanos(0), || Some(left));
            let next = leisure.nap(Unread::of(128 << 10, 128 << 10), false).expect("it naps still").time;
            assert!(
                next.0 >= usual.0 * 3 / 4 && next <= NAP_MAX,
                "{slept:?} {left}: {next:?} after {usual:?}"
            );
            let after = (0..100).filter_map(|_| beside(&mut leisure, 1_000)).last();
            assert!(after.is_some_and(|time| time.0.abs_diff(usual.0) < 2_000), "{after:?} after {usual:?}");
        }
    }

    #[test]
    fn who_takes_long_to_answer_naps_less() {
        let mut leisure = Leisure::new();
        let mut last = |answer_takes| {
            let times = (0..100).filter_map(|_| {
                let time = beside(&mut leisure, 1_500);
                leisure.answered(|| answer_takes);
                time
            });
            times.last().expect("it naps")
        };
        let (at_once, late) = (last(Nanos(0)), last(Nanos::from_micros(40)));
        assert!(at_once.0.abs_diff(96_000) < 3_000, "half of 128 KiB takes the client 96 us: {at_once:?}");
        assert!(late.0.abs_diff(56_000) < 3_000, "{late:?}");
        leisure.answered(|| Nanos::from_secs(1));
        assert_eq!(leisure.woken, None, "the first answer counts");
        assert!(beside(&mut leisure, 1_500) > Some(NAP_MIN));
    }

    #[test]
    fn who_has_little_to_read_is_waited_for_and_who_has_much_tells() {
        let nap = |unread, drives_work| Leisure::new().nap(unread, drives_work);
        let time = |unread, drives_work| nap(unread, drives_work).map(|nap| nap.time);
        let mark = UNREAD_MIN;
        assert_eq!(nap(Unread::of(UNREAD_MIN - 1, mark), false), None);
        assert_eq!(nap(Unread::UNKNOWN, false), None);
        for unread in [Unread::FULL, Unread::of(2 * mark, mark), Unread::FULL.and(Unread::of(2 * mark, mark))]
        {
            assert!(nap(unread, false).is_some_and(|nap| nap.until_told));
            assert!(time(unread, true).is_some_and(|time| time <= NAP_MAX_BESIDE_DRIVES));
        }
        for unread in [Unread::of(mark, mark), Unread::of(2 * mark, mark).and(Unread::of(mark, mark))] {
            assert!(time(unread, false).is_some_and(|time| time <= NAP_MAX), "it may not tell before long");
        }
        assert_eq!(nap(Unread::FULL.and(Unread::UNKNOWN), false), None);
        assert_eq!(time(Unread::FULL, true), Some(NAP_MAX_BESIDE_DRIVES));
    }

    /// It may be waiting for room itself, to say what it has to say before it reads on.
    #[test]
    fn who_does_not_tell_is_listened_to_soon_and_believed_again_later() {
        let mut leisure = Leisure::new();
        let mut shares = [Nanos(0); 2];
        for _ in 0..3 * DISTRUSTED_NAPS {
            let nap = leisure.nap(Unread::FULL, false).expect("it naps");
            shares[usize::from(nap.until_told)] += nap.time;
            leisure.ended(nap, nap.time, Nanos(0), || Some(300 << 10));
        }
        assert!(shares[1].0 > 0 && shares[1].0 < shares[0].0 / 10, "{shares:?}");
        let nap = leisure.nap(Unread::FULL, false).expect("it naps");
        assert!(!nap.until_told);
        leisure.distrusted = 0;
        for _ in 0..10 {
            let nap = leisure.nap(Unread::FULL, false).expect("it naps");
            assert!(nap.until_told);
            leisure.ended(nap, NAP_MIN, Nanos(0), || Some(0));
        }
    }
}
