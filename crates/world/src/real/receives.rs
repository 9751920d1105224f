//! Receives that are tried now and then, instead of waited for.
//!
//! A receive that finds nothing costs the kernel a wait queue entry, a wake-up and a second attempt, and ends with the
//! first bytes that come: a client that asks for 32 blocks in 32 messages is listened to 32 times. Where this thread
//! looks for something to do anyway, it tries the socket itself, and finds what has collected since it last did. Before
//! it sleeps, and after [`TRIES_MAX`] tries in vain, a receive goes to the ring, which will wake it.

use std::io;
use std::os::fd::RawFd;

use io_uring::squeue::Entry;
use tier0_units::Nanos;

use super::driver::Finished;
use super::op::Request;
use crate::IoError;

/// More receives than this are not tried: each try costs a call.
const RECEIVES_MAX: usize = 4;
/// From a try in vain to the next.
const PAUSE: Nanos = Nanos::from_micros(2);
/// From any try to the next while drives work: what comes meanwhile will most likely wait for them, and come along with
/// others.
const PAUSE_WITH_DRIVES: Nanos = Nanos::from_micros(5);
/// A peer that says nothing for so long (0.3 to 0.6 ms, and more if there is other work) is waited for in the ring.
const TRIES_MAX: u32 = 128;

/// The receives of one thread.
pub(super) struct Receives {
    waiting: Vec<Receive>,
    next_try: Nanos,
}

struct Receive {
    request: Request,
    memory: *mut u8,
    bytes: usize,
    /// What waits for it in the ring.
    entry: Entry,
    tries: u32,
}

impl Receives {
    pub(super) fn new() -> Receives {
        Receives { waiting: Vec::new(), next_try: Nanos(0) }
    }

    /// Takes a receive of at most `bytes` bytes to `memory`; gives `entry`, which does the same in the ring, back if
    /// there is no room. The rest of a message that has begun is `expected`, and tried without a pause.
    pub(super) fn admit(
        &mut self,
        request: Request,
        (memory, bytes): (*mut u8, usize),
        entry: Entry,
        expected: bool,
    ) -> Option<Entry> {
        if self.waiting.len() >= RECEIVES_MAX {
            return Some(entry);
        }
        if expected {
            self.next_try = Nanos(0);
        }
        self.waiting.push(Receive { request, memory, bytes, entry, tries: 0 });
        None
    }

    /// Tries all of them, if it is time to; adds those that ended to `finished`, and gives those up to `ring` that are
    /// better waited for there.
    ///
    /// # Safety
    /// Descriptors and memory must be as they were when admitted.
    pub(super) unsafe fn try_all(
        &mut self,
        now: Nanos,
        drives_work: bool,
        finished: &mut Finished,
        mut ring: impl FnMut(Entry),
    ) {
        if self.waiting.is_empty() || now < self.next_try {
            return;
        }
        let ended_before = finished.len();
        self.waiting.retain_mut(|receive| {
            receive.tries += 1;
            // SAFETY: the caller vouches for both.
            match unsafe { receive_now(receive.request.fd, receive.memory, receive.bytes) } {
                Err(libc::EAGAIN | libc::EINTR) if receive.tries < TRIES_MAX => true,
                Err(libc::EAGAIN | libc::EINTR) => {
                    ring(receive.entry.clone());
                    false
                }
                result => {
                    finished.push((receive.request.slot, result.map_err(IoError::Os)));
                    false
                }
            }
        });
        self.next_try = match (drives_work, finished.len() > ended_before) {
            (true, _) => now + PAUSE_WITH_DRIVES,
            (false, false) => now + PAUSE,
            (false, true) => now,
        };
    }

    /// All that are left, for the ring to wait for.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = Entry> {
        self.waiting.drain(..).map(|receive| receive.entry)
    }
}

/// Bytes received without waiting, 0 at the end of the stream, or an errno.
unsafe fn receive_now(fd: RawFd, memory: *mut u8, bytes: usize) -> Result<u32, i32> {
    // SAFETY: the caller vouches for the memory.
    let received = unsafe { libc::recv(fd, memory.cast(), bytes, libc::MSG_DONTWAIT) };
    u32::try_from(received).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use io_uring::opcode;

    use super::*;
    use crate::completion::SlotId;
    use crate::real::Submission;
    use crate::real::op::Op;

    fn request(stream: &UnixStream) -> Request {
        let slot = SlotId { index: 7, generation: 1 };
        Request { op: Op::Receive { skip: 0 }, fd: stream.as_raw_fd(), submission: Submission::Direct, slot }
    }

    fn nop() -> Entry {
        opcode::Nop::new().build()
    }

    /// Tries until something has ended or was given up; what ended, and how many were given up.
    fn try_out(receives: &mut Receives) -> (Finished, usize) {
        let (mut finished, mut given_up, mut now) = (Finished::new(), 0, Nanos(0));
        while finished.is_empty() && given_up == 0 {
            // SAFETY: the tests keep streams and memory until the end.
            unsafe { receives.try_all(now, false, &mut finished, |_| given_up += 1) };
            now += PAUSE;
        }
        (finished, given_up)
    }

    #[test]
    fn what_has_collected_comes_at_once() {
        let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
        let mut memory = [0; 64];
        let mut receives = Receives::new();
        assert!(receives.admit(request(&server), (memory.as_mut_ptr(), 64), nop(), false).is_none());
        (0..3).for_each(|_| client.write_all(&[9; 7]).expect("it has room"));
        let (finished, _) = try_out(&mut receives);
        assert_eq!(finished[0].1.as_ref().ok(), Some(&21));
        assert_eq!(memory[..22], [[9; 21].as_slice(), &[0]].concat());
        assert_eq!(receives.give_up().count(), 0);
    }

    #[test]
    fn the_end_of_a_stream_is_an_end() {
        let (client, server) = UnixStream::pair().expect("a pair of sockets");
        let mut memory = [0; 8];
        let mut receives = Receives::new();
        receives.admit(request(&server), (memory.as_mut_ptr(), 8), nop(), false);
        drop(client);
        assert_eq!(try_out(&mut receives).0[0].1.as_ref().ok(), Some(&0));
    }

    #[test]
    fn whoever_is_silent_is_left_to_the_ring() {
        let (_client, server) = UnixStream::pair().expect("a pair of sockets");
        let mut memory = [0; 8];
        let mut receives = Receives::new();
        let at = (memory.as_mut_ptr(), 8);
        for _ in 0..RECEIVES_MAX {
            assert!(receives.admit(request(&server), at, nop(), false).is_none());
        }
        assert!(receives.admit(request(&server), at, nop(), false).is_some(), "there is no room for more");
        assert_eq!(try_out(&mut receives), (Finished::new(), RECEIVES_MAX));
        receives.admit(request(&server), at, nop(), false);
        assert_eq!(receives.give_up().count(), 1);
    }
}
