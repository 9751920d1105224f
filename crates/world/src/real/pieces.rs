//! Sending to a unix socket in pieces small enough for memory that the kernel has at hand.
//!
//! What is sent to a unix socket the kernel copies into memory of its own, which the receiver frees, as a rule on another
//! processor. More than a slab object at a time comes from the page allocator, and since the receiver's frees go
//! elsewhere, it walks through the free memory: cold pages, and in a virtual machine that reports its free pages to the
//! host, pages that are not there (11 us for each of 4 KiB where this was measured, 85 us for a message of 32 KiB).
//! Slab objects come back to where they were allocated and stay warm.
//!
//! What the peer sends in large messages takes such pages too, which are freed here. If nothing went back in pages, its
//! processor would run out of warm ones, and this one would give them back to the machine: so as many bytes as came are
//! sent whole.
//!
//! What it does not do: wait. A socket that is full has taken less than all, or nothing.

use std::io;
use std::os::fd::RawFd;

/// A piece and the kernel's `skb_shared_info` (320 bytes on x86-64) fit a slab object of 4 KiB.
pub(super) const PIECE_BYTES: usize = 3_712;
/// Parts of the list that one piece takes from.
const VECTORS_MAX: usize = 8;
/// A header and its data.
const MESSAGE_VECTORS: usize = 2;

/// Sends the list, of which about `whole` bytes at the beginning in messages of a header and its data, as they came; how
/// many bytes the socket took. `EAGAIN` where it took none.
///
/// # Safety
/// The vectors must describe memory that may be read.
pub(super) unsafe fn send(fd: RawFd, vectors: &[libc::iovec], whole: usize) -> io::Result<usize> {
    let mut rest = Rest { vectors, start: 0 };
    let mut sent = 0;
    loop {
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; VECTORS_MAX];
        let (count, bytes) = if sent < whole && rest.message_bytes() > PIECE_BYTES {
            rest.cut(&mut vectors[..MESSAGE_VECTORS], usize::MAX)
        } else {
            rest.cut(&mut vectors, PIECE_BYTES)
        };
        if count == 0 {
            return Ok(sent);
        }
        // SAFETY: the vectors lie on the stack, and what they point to the caller vouches for.
        match unsafe { send_whole(fd, &vectors[..count]) } {
            Ok(taken) if taken == bytes => sent += taken,
            Ok(taken) => return Ok(sent + taken),
            Err(_) if sent > 0 => return Ok(sent),
            Err(error) => return Err(error),
        }
    }
}

/// Sends the list in one message; how many bytes the socket took. `EAGAIN` where it took none.
///
/// # Safety
/// As for [`send`].
pub(super) unsafe fn send_whole(fd: RawFd, vectors: &[libc::iovec]) -> io::Result<usize> {
    // SAFETY: msghdr is a C struct of pointers and lengths, for which all zero is a valid "empty".
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_ptr().cast_mut();
    message.msg_iovlen = vectors.len();
    // SAFETY: the message points to the vectors, which are only read, and those to memory that the caller vouches for.
    let taken = unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

/// What is left of a list.
struct Rest<'a> {
    vectors: &'a [libc::iovec],
    /// Bytes of the first vector that are done.
    start: usize,
}

impl Rest<'_> {
    /// Bytes of the first message, or of what is left of it.
    fn message_bytes(&self) -> usize {
        let bytes: usize = self.vectors.iter().take(MESSAGE_VECTORS).map(|vector| vector.iov_len).sum();
        bytes - self.start
    }

    /// Takes a piece of at most `bytes_max` off the front into `piece`: its vectors and its bytes; none at the end.
    fn cut(&mut self, piece: &mut [libc::iovec], bytes_max: usize) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        while let Some(first) = self.vectors.first()
            && count < piece.len()
            && bytes < bytes_max
        {
            let length = (first.iov_len - self.start).min(bytes_max - bytes);
            let base = first.iov_base.cast::<u8>().wrapping_add(self.start);
            piece[count] = libc::iovec { iov_base: base.cast(), iov_len: length };
            count += 1;
            bytes += length;
            self.start += length;
            if self.start == first.iov_len {
                self.vectors = &self.vectors[1..];
                self.start = 0;
            }
        }
        (count, bytes)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    pub(in crate::real) fn vectors_of(parts: &[Vec<u8>]) -> Vec<libc::iovec> {
        let vector =
            |part: &Vec<u8>| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
        parts.iter().map(vector).collect()
    }

    #[test]
    fn every_byte_arrives_in_order() {
        let lengths = [16, 8192, 1, 16, PIECE_BYTES, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 9000, 5];
        let parts: Vec<Vec<u8>> =
            (1u8..).zip(lengths).map(|(n, length)| (0..length).map(|i| n ^ i as u8).collect()).collect();
        let all: Vec<u8> = parts.concat();
        for whole in [0, 1, 8208, 8209, 12_000, usize::MAX] {
            let (near, mut far) = UnixStream::pair().expect("a pair");
            // SAFETY: the parts live until the end of the test.
            let sent = unsafe { send(near.as_raw_fd(), &vectors_of(&parts), whole) }.expect("there is room");
            assert_eq!(sent, all.len());
            drop(near);
            let mut arrived = Vec::new();
            far.read_to_end(&mut arrived).expect("readable");
            assert!(arrived == all, "{whole} bytes whole");
        }
    }

    #[test]
    fn what_is_owed_is_cut_at_messages_and_the_rest_in_pieces() {
        let parts = [16, 8192, 16, 8192, 16, 512, 16, 8192].map(|length| vec![0; length]);
        let vectors = vectors_of(&parts);
        let mut rest = Rest { vectors: &vectors, start: 0 };
        let mut room = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; VECTORS_MAX];
        assert_eq!(rest.message_bytes(), 8208);
        assert_eq!(rest.cut(&mut room[..MESSAGE_VECTORS], usize::MAX), (2, 8208));
        assert_eq!(rest.cut(&mut room, PIECE_BYTES), (2, PIECE_BYTES));
        assert_eq!(rest.message_bytes(), 8208 - PIECE_BYTES + 16, "what is left of the data, and a header");
        assert_eq!(rest.cut(&mut room, PIECE_BYTES), (1, PIECE_BYTES));
        assert_eq!(rest.cut(&mut room, PIECE_BYTES), (5, PIECE_BYTES), "messages share a piece");
    }

    #[test]
    fn a_full_socket_takes_a_part_and_then_nothing() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let parts = vec![(0..1 << 22).map(|i: u32| (i % 251) as u8).collect::<Vec<u8>>()];
        // SAFETY: the parts live until the end of the test.
        let again = || unsafe { send(near.as_raw_fd(), &vectors_of(&parts), 0) };
        let sent = again().expect("there is room at first");
        assert!((1..parts[0].len()).contains(&sent), "{sent} bytes");
        assert_eq!(again().expect_err("full").kind(), io::ErrorKind::WouldBlock);
        let mut arrived = vec![0; sent];
        far.read_exact(&mut arrived).expect("readable");
        assert_eq!(arrived, parts[0][..sent]);
        drop(far);
        assert_eq!(again().expect_err("closed").kind(), io::ErrorKind::BrokenPipe);
    }
}
