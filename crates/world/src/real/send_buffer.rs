//! What the kernel does with what was sent to a unix socket and not yet read.
//!
//! It counts those bytes with its overheads against the size of the sender's buffer, takes more while they are below it,
//! and tells that there is room once they are a quarter of it (Linux: `unix_writable`).

use std::os::fd::{AsFd, RawFd};

/// Linux doubles what is asked for. 53 answers of 8 KiB fit in pieces and 66 whole, and that there is room is told when 12
/// or 16 are left: while a client reads those, a thread that sleeps has time to wake up and to answer. Where an
/// administrator allows less (net.core.wmem_max, 208 KiB as a rule), less does.
const ASKED_BYTES: usize = 288 << 10;
/// There is room when the buffer is full to this part.
const ROOM_PART: usize = 4;

/// Gives a unix socket a buffer that is worth waiting for; it tells that there is room when so many bytes or
/// fewer are unread.
pub(super) fn widen(fd: impl AsFd) -> usize {
    let size = || rustix::net::sockopt::socket_send_buffer_size(&fd).unwrap_or(0);
    if size() < 2 * ASKED_BYTES {
        // Where it cannot be had, the one that it has does.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&fd, ASKED_BYTES);
    }
    // The kernel's count is one more than what it says is unread.
    (size() / ROOM_PART).saturating_sub(1)
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

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

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

    #[test]
    fn a_socket_tells_when_little_enough_is_unread() {
        let (mut near, mut far) = UnixStream::pair().expect("a pair");
        let mark = widen(&near);
        assert!(mark >= 48 << 10, "a quarter of what every socket has at least: {mark}");
        let has_room = |near: &UnixStream| {
            let mut polled = [PollFd::new(near, PollFlags::OUT)];
            poll(&mut polled, Some(&rustix::time::Timespec::default())).expect("a poll") > 0
        };
        while unread(near.as_raw_fd()) <= Some(mark) {
            assert!(has_room(&near));
            near.write_all(&[7; 1_000]).expect("there is room");
        }
        while unread(near.as_raw_fd()) > Some(mark) {
            assert!(!has_room(&near));
            far.read_exact(&mut [0; 1_000]).expect("it was sent");
        }
        assert!(has_room(&near));
    }
}
