//! One channel: the bus between the controller and its dies.
//!
//! Host reads go before background transfers and wait only for the page transfer in progress; background
//! transfers get what is left. Invariant: reads never exceed the channel's rate, nor do background transfers.

use super::backlog::{Backlog, Passage};

/// Busy-until times of a channel, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    reads: Backlog,
    background_until: u64,
}

impl Channel {
    /// Carries data that a die holds ready to the controller in `length`; `page` is the length of one
    /// background transfer.
    #[inline]
    pub(super) fn read(&mut self, read: &mut Passage, length: u64, page: u64) {
        if self.background_until > read.ready {
            let page_left = (self.background_until - read.ready) % page.max(1);
            read.hold(read.ready + page_left, 0);
            self.background_until += length;
        }
        read.pass(&mut self.reads, length);
    }

    /// Carries background data that is ready at `at`; returns when it has arrived.
    #[inline]
    pub(super) fn background(&mut self, at: u64, length: u64) -> u64 {
        self.background_until = self.background_until.max(at) + length;
        self.background_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_waits_for_the_page_in_progress_only() {
        let mut channel = Channel::default();
        assert_eq!(channel.background(0, 400), 400, "four pages of 100");
        let mut read = Passage::new(130);
        channel.read(&mut read, 50, 100);
        assert_eq!(read.ready, 250);
        assert_eq!(channel.background(0, 100), 550, "the read's 50 came on top");
    }
}
