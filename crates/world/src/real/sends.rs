//! Sends that are tried at once: whole or in pieces, whichever costs this machine less.
//!
//! Pieces ([`super::pieces`]) cost a call for each, and avoid the kernel's page allocator. Where memory is dear they take
//! half the time, where calls are dear twice as much.

use std::io;
use std::os::fd::RawFd;

use super::WallClock;
use super::cheaper::{Cheaper, Way};
use super::pieces::{self, PIECE_BYTES};

/// In pieces, but for what is owed: that is a part of what this way costs.
const IN_PIECES: Way = Way::First;
const WHOLE: Way = Way::Second;

/// The sends of one thread.
pub(super) struct Sends {
    clock: WallClock,
    cheaper: Cheaper,
}

impl Sends {
    pub(super) fn new() -> Sends {
        Sends { clock: WallClock::new(), cheaper: Cheaper::new() }
    }

    /// Sends the list; how many bytes the socket took, or `EAGAIN` where it took none. If in pieces, then only what
    /// follows its first `pieces_after` bytes.
    ///
    /// # Safety
    /// The vectors must describe memory that may be read.
    pub(super) unsafe fn send(
        &mut self,
        fd: RawFd,
        vectors: &[libc::iovec],
        pieces_after: usize,
    ) -> io::Result<usize> {
        let bytes: usize = vectors.iter().map(|vector| vector.iov_len).sum();
        if bytes <= PIECE_BYTES {
            // SAFETY: the caller vouches for the memory.
            return unsafe { pieces::send_whole(fd, vectors) };
        }
        let way = self.cheaper.way();
        let began = self.clock.now();
        // SAFETY: as above.
        let sent = unsafe {
            match way {
                IN_PIECES => pieces::send(fd, vectors, pieces_after),
                WHOLE => pieces::send_whole(fd, vectors),
            }
        };
        // A socket that is full says nothing.
        if sent.as_ref().is_ok_and(|&sent| sent == bytes) {
            self.cheaper.learn(bytes, self.clock.now() - began);
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::real::pieces::tests::vectors_of;

    #[test]
    fn every_byte_arrives_either_way() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let mut sends = Sends::new();
        let mut ways = [0; 2];
        for round in 0..1_000_u32 {
            let parts =
                [vec![round as u8; 16], (0..8192).map(|i: u32| (i ^ round) as u8).collect::<Vec<_>>()];
            ways[sends.cheaper.way() as usize] += 1;
            // SAFETY: the parts live until the end of the round.
            let sent = unsafe { sends.send(near.as_raw_fd(), &vectors_of(&parts), 0) };
            assert_eq!(sent.expect("there is room"), 16 + 8192);
            let mut arrived = vec![0; 16 + 8192];
            far.read_exact(&mut arrived).expect("readable");
            assert!(arrived == parts.concat(), "round {round}");
        }
        assert!(ways.iter().all(|&times| times > 0), "both ways were tried: {ways:?}");
    }
}
