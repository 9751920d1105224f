//! How long nobody will miss this thread: naps while clients have answers to read.
//!
//! A client that has not read yet what was sent to it is busy. To look for its next request meanwhile takes a whole
//! processor, and finds requests one by one, each of which costs a call to receive and one to answer. After a nap several
//! have collected. Nobody waits for that, as long as the answers to them are there before the client has read
//! everything: how fast it reads is learnt from what it left unread while this thread slept, and how long it takes to
//! answer is known.
//!
//! A socket that is full tells when the client has read most of what is in it (Linux: three quarters), and that ends a
//! nap. What is asked meanwhile could not be answered anyway.
//!
//! Linux knows what is unread for unix sockets only; for TCP it knows what has not been acknowledged, which says nothing.

use std::os::fd::RawFd;

use tier0_units::Nanos;

/// With less than this unread a client may be done before this thread has fallen asleep; bytes, as the kernel counts
/// them. A unix socket holds 208 KiB unless it was told otherwise.
const UNREAD_MIN: usize = 96 << 10;
/// What is unread where the socket is full, and its client need not be watched.
pub(super) const FULL: usize = usize::MAX;
/// To fall asleep and to wake up costs several microseconds: shorter naps are not worth it.
const NAP_MIN: Nanos = Nanos::from_micros(20);
/// The longest naps where requests are answered from memory.
pub(super) const NAP_MAX: Nanos = Nanos::from_micros(120);
/// The longest ones where they go to drives, which shall have them soon.
pub(super) const NAP_MAX_BESIDE_DRIVES: Nanos = Nanos::from_micros(60);
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

/// A sleep that nobody is expected to notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nap {
    pub(crate) time: Nanos,
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
}

impl Leisure {
    pub(super) fn new() -> Leisure {
        Leisure { pace: PACE_FIRST, answer_takes: Nanos(0), woken: None }
    }

    /// Whether to sleep while `unread` bytes are unread, and for how long, at most `max`.
    pub(super) fn nap(&mut self, unread: usize, max: Nanos) -> Option<Nap> {
        if unread < UNREAD_MIN {
            return None;
        }
        if unread == FULL {
            return Some(Nap { time: max, unread });
        }
        let to_read = Nanos((unread as u64 / LEFT_PART * self.pace) >> 20);
        let time = to_read.saturating_sub(self.answer_takes);
        if time < NAP_MIN {
            // Slowly, so that a client that reads too fast is tried again now and then.
            self.pace += self.pace / 1024 + 1;
            return None;
        }
        Some(Nap { time: time.min(max), unread })
    }

    /// Notes that a nap took `slept` and ended at `now`; `left` tells how many bytes were left unread.
    pub(super) fn ended(&mut self, nap: Nap, slept: Nanos, now: Nanos, left: impl FnOnce() -> Option<usize>) {
        self.woken = Some(now);
        if slept < nap.time || nap.unread == FULL {
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

/// Bytes that the peer of a unix socket has not read yet, with the kernel's overheads; none where it cannot say.
pub(super) fn unread(fd: RawFd) -> Option<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes an int to the address given, and a descriptor that is closed or no socket is an error.
    let result = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { usize::try_from(bytes).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A nap beside a client that reads a KiB in `ns`, with 128 KiB unread at its beginning.
    fn beside(leisure: &mut Leisure, ns: u64) -> Option<Nanos> {
        let unread = 128 << 10;
        let nap = leisure.nap(unread, NAP_MAX)?;
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
            let nap = leisure.nap(128 << 10, NAP_MAX).expect("it naps");
            leisure.ended(nap, slept, Nanos(0), || Some(left));
            let next = leisure.nap(128 << 10, NAP_MAX).expect("it naps still").time;
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
    fn who_has_little_to_read_is_waited_for_and_who_is_full_is_not() {
        assert_eq!(Leisure::new().nap(UNREAD_MIN - 1, NAP_MAX), None);
        let nap = |unread| Leisure::new().nap(unread, NAP_MAX_BESIDE_DRIVES).map(|nap| nap.time);
        assert!(nap(UNREAD_MIN).is_some_and(|time| time < NAP_MAX_BESIDE_DRIVES));
        assert_eq!(nap(FULL), Some(NAP_MAX_BESIDE_DRIVES));
    }

    #[test]
    fn the_kernel_knows_what_is_unread() {
        let (mut near, mut far) = UnixStream::pair().expect("a pair");
        assert_eq!(unread(near.as_raw_fd()), Some(0));
        near.write_all(&[7; 30_000]).expect("there is room");
        assert!(unread(near.as_raw_fd()).is_some_and(|bytes| bytes >= 30_000));
        far.read_exact(&mut [0; 30_000]).expect("it was sent");
        assert_eq!(unread(near.as_raw_fd()), Some(0));
        let file = std::fs::File::open("/dev/null").expect("it is there");
        assert_eq!(unread(file.as_raw_fd()), None);
    }
}
