//! One channel: the bus between the controller and its dies.
//!
//! Host reads go before background transfers and wait only for the page transfer in progress; background
//! transfers get what is left. Invariant: both together never carry more than the channel's rate.

use super::timeline::Timeline;

/// Busy-until times of a channel, in nanoseconds; one cache line. Three gaps are enough here: the few dies
/// of a channel finish nearly in order.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Channel {
    reads: Timeline<3>,
    background_until: u64,
}

impl Channel {
    /// An idle channel.
    pub(super) fn new() -> Channel {
        Channel { reads: Timeline::new(), background_until: 0 }
    }

    /// Carries data that a die holds ready at `at` to the controller; `page` is the length of one background
    /// transfer. Returns when it has arrived.
    #[inline]
    pub(super) fn read(&mut self, at: u64, length: u64, page: u64) -> u64 {
        let mut start = at;
        if self.background_until > at {
            start += (self.background_until - at) % page.max(1);
            self.background_until += length;
        }
        self.reads.reserve(start, length)
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
        let mut channel = Channel::new();
        assert_eq!(channel.background(0, 400), 400, "four pages of 100");
        assert_eq!(channel.read(130, 50, 100), 250);
        assert_eq!(channel.background(0, 100), 550, "the read's 50 came on top");
    }
}
