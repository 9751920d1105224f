//! Sends that are tried at once: whole or in pieces, whichever costs this machine less.
//!
//! Pieces ([`super::pieces`]) cost a call for each, and avoid the kernel's page allocator. Where memory is dear they take
//! half the time, where calls are dear twice as much.

use std::io;
use std::os::fd::RawFd;

use super::WallClock;
use super::cheaper::{Cheaper, Way};
use super::pieces::{self, PIECE_BYTES};

/// The sends of one thread. The first way is in pieces but for what is owed, which is a part of its cost.
pub(super) struct Sends {
    clock: WallClock,
    whole: Cheaper,
}

impl Sends {
    pub(super) fn new() -> Sends {
        Sends { clock: WallClock::new(), whole: Cheaper::new() }
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
        let way = self.whole.way();
        let began = self.clock.now();
        // SAFETY: as above.
        let sent = unsafe {
            match way {
                Way::First => pieces::send(fd, vectors, pieces_after),
                Way::Second => pieces::send_whole(fd, vectors),
            }
        };
        // A socket that is full says nothing.
        if sent.as_ref().is_ok_and(|&sent| sent == bytes) {
            self.whole.learn(bytes, self.clock.now() - began);
        }
        sent
    }
}
