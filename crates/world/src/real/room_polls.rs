//! Polls for room in sockets, which end a nap of this thread.
//!
//! What has not ended when the nap has is removed: a poll keeps its socket open.

use std::os::fd::RawFd;

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::Fd;

const POLLS_MAX: u32 = 32;
/// User data of the polls, which no slot has.
const FIRST: u64 = LAST - (POLLS_MAX as u64 - 1);
const LAST: u64 = u64::MAX - 1;
/// User data of removals.
const REMOVAL: u64 = FIRST - 1;

/// The polls of one thread.
#[derive(Debug, Default)]
pub(super) struct RoomPolls {
    /// Those that have not ended, one bit each.
    under_way: u32,
}

impl RoomPolls {
    /// Whether some have not ended.
    pub(super) fn are_under_way(&self) -> bool {
        self.under_way != 0
    }

    /// Polls to be submitted; none are under way. Sockets beyond the 32nd are not polled.
    pub(super) fn start(&mut self, sockets: impl Iterator<Item = RawFd>) -> impl Iterator<Item = Entry> {
        assert_eq!(self.under_way, 0, "the last ones have ended");
        (0..POLLS_MAX).zip(sockets).map(|(number, socket)| {
            self.under_way |= 1 << number;
            let poll = opcode::PollAdd::new(Fd(socket), libc::POLLOUT as u32).build();
            poll.user_data(FIRST + u64::from(number))
        })
    }

    /// What removes those that have not ended.
    pub(super) fn remove(&self) -> impl Iterator<Item = Entry> + use<> {
        let under_way = self.under_way;
        let left = (0..POLLS_MAX).filter(move |number| under_way & 1 << number != 0);
        left.map(|number| opcode::PollRemove::new(FIRST + u64::from(number)).build().user_data(REMOVAL))
    }

    /// Notes a completion; false if it is of something else.
    pub(super) fn ended(&mut self, user_data: u64) -> bool {
        match user_data {
            REMOVAL => true,
            FIRST..=LAST => {
                self.under_way &= !(1 << (user_data - FIRST));
                true
            }
            _ => false,
        }
    }
}
