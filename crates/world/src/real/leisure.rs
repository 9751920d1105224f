//! How long nobody will miss this thread: naps while clients have answers to read.
//!
//! A client that has not read yet what was sent to it is busy. To look for its next request meanwhile takes a whole
//! processor, and finds requests one by one, each of which costs a call to receive and one to answer. After a nap several
//! have collected. Nobody waits for that, as long as the nap ends before the client has read everything: how fast it
//! reads is learnt from what it left unread while this thread slept.
//!
//! Linux knows what is unread for unix sockets only; for TCP it knows what has not been acknowledged, which says nothing.

use std::os::fd::RawFd;

use tier0_units::Nanos;

/// With less than this unread a client may be done before this thread has fallen asleep; bytes, as the kernel counts
/// them. A unix socket holds 208 KiB unless it was told otherwise.
const UNREAD_MIN: usize = 96 << 10;
/// To fall asleep and to wake up costs several microseconds: shorter naps are not worth it.
const NAP_MIN: Nanos = Nanos::from_micros(20);
/// Longer ones spare little more, and the client notices some of them: 200 us took 4 % of the mixed load's IOPS, 60 us
/// none.
const NAP_MAX: Nanos = Nanos::from_micros(60);
/// Begins as for a client that reads 2 GB/s; nanoseconds per MiB.
const PACE_FIRST: u64 = 1 << 18;
/// A nap was too long unless this part of what was unread is left at its end.
const LEFT_PART: usize = 2;

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
    /// Time to sleep for each MiB unread, nanoseconds.
    pace: u64,
}

impl Leisure {
    pub(super) fn new() -> Leisure {
        Leisure { pace: PACE_FIRST }
    }

    /// Whether to sleep while `unread` bytes are unread, and for how long.
    pub(super) fn nap(&mut self, unread: usize) -> Option<Nap> {
        if unread < UNREAD_MIN {
            return None;
        }
        let time = Nanos((unread as u64 * self.pace) >> 20);
        if time < NAP_MIN {
            // Slowly, so that a client that reads too fast is tried again now and then.
            self.pace += self.pace / 1024 + 1;
            return None;
        }
        Some(Nap { time: time.min(NAP_MAX), unread })
    }

    /// After a nap of full length `left` bytes were left unread.
    pub(super) fn learn(&mut self, nap: Nap, left: usize) {
        if left < nap.unread / LEFT_PART {
            self.pace -= self.pace / 4;
        } else if nap.time < NAP_MAX {
            self.pace += self.pace / 16;
        }
    }
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

    /// Naps beside a client that reads a KiB in `ns`, with 128 KiB unread at their beginning; the last of `rounds`.
    fn beside(leisure: &mut Leisure, ns: u64, rounds: usize) -> Option<Nanos> {
        let unread = 128 << 10;
        let mut last = None;
        for _ in 0..rounds {
            last = leisure.nap(unread);
            if let Some(nap) = last {
                leisure.learn(nap, unread.saturating_sub((nap.time.0 / ns) as usize * 1024));
            }
        }
        last.map(|nap| nap.time)
    }

    #[test]
    fn naps_end_before_a_client_has_read_everything() {
        for ns in [400, 500, 800, 1_500] {
            let mut leisure = Leisure::new();
            let all = 128 * ns;
            let times: Vec<u64> =
                (0..200).filter_map(|_| beside(&mut leisure, ns, 1)).map(|time| time.0).collect();
            assert!(times.len() > 100, "{ns}: {times:?}");
            assert!(times.iter().skip(20).all(|&time| time <= all * 2 / 3), "{ns}: {times:?}");
            assert!(times.iter().any(|&time| time >= NAP_MAX.0.min(all * 2 / 5)), "{ns}: {times:?}");
        }
    }

    #[test]
    fn a_fast_client_is_not_kept_waiting_but_tried_now_and_then() {
        let mut leisure = Leisure::new();
        let naps = (0..10_000).filter(|_| beside(&mut leisure, 50, 1).is_some()).count();
        assert!((1..=50).contains(&naps), "{naps} of 10000");
        assert!(beside(&mut leisure, 1_000, 1_000).is_some(), "it has become slow");
    }

    #[test]
    fn who_has_little_to_read_is_waited_for() {
        assert_eq!(Leisure::new().nap(UNREAD_MIN - 1), None);
        assert!(Leisure::new().nap(200 << 10).is_some_and(|nap| nap.time <= NAP_MAX));
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
