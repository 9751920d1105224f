//! A resource that many commands share in turn, such as the host link: how long a command waits for its turn.
//!
//! A model that answers at submission meets the late stages of commands out of order: a read that will leave a
//! congested die in 5 ms reaches the link after one that is submitted later and ready in 0.1 ms. Reserving the
//! link for the first at 5 ms would hold up the second; remembering and filling the gaps before such
//! reservations loses throughput with every gap forgotten. So commands join the queue where they are still in
//! order, as they leave the controller, and the wait they find there is served at the same time as any wait
//! that befalls them in between. Throughput is exact; a wait is that of a queue fed by the controller's
//! departures in place of the dies'.
//!
//! Invariant: the resource never gives more than its rate, and is never idle while a command waits only for it.

/// The end of the work that is queued, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog {
    until: u64,
}

impl Backlog {
    /// Queues `length` for a command that left the controller at `at`; returns how long it waits.
    #[inline]
    pub(super) fn join(&mut self, at: u64, length: u64) -> u64 {
        let wait = self.until.saturating_sub(at);
        self.until = self.until.max(at) + length;
        wait
    }
}

/// A read on its way from the die to the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// When it left the controller.
    pub(super) served: u64,
    /// When it is ready for the next stage.
    pub(super) ready: u64,
    /// What part of `ready - served` it spent waiting.
    pub(super) waited: u64,
}

impl Passage {
    /// A command that just left the controller.
    pub(super) fn new(served: u64) -> Passage {
        Passage { served, ready: served, waited: 0 }
    }

    /// Passes the resource in `length`.
    #[inline]
    pub(super) fn pass(&mut self, backlog: &mut Backlog, length: u64) {
        let wait = backlog.join(self.served, length).saturating_sub(self.waited);
        self.waited += wait;
        self.ready += wait + length;
    }

    /// Waits until `start`, if that is later, and then takes `length`.
    #[inline]
    pub(super) fn hold(&mut self, start: u64, length: u64) {
        let wait = start.saturating_sub(self.ready);
        self.waited += wait;
        self.ready += wait + length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_leave_together_pass_one_after_the_other() {
        let mut link = Backlog::default();
        let ends = [0; 3].map(|_| {
            let mut read = Passage::new(100);
            read.hold(0, 50);
            read.pass(&mut link, 10);
            read.ready
        });
        assert_eq!(ends, [160, 170, 180]);
    }

    #[test]
    fn a_late_command_holds_up_no_early_one() {
        let mut link = Backlog::default();
        let mut late = Passage::new(100);
        late.hold(5_000, 50);
        late.pass(&mut link, 10);
        assert_eq!(late.ready, 5_060);
        let mut early = Passage::new(120);
        early.hold(0, 50);
        early.pass(&mut link, 10);
        assert_eq!(early.ready, 180);
    }

    #[test]
    fn the_rate_is_never_exceeded() {
        let mut link = Backlog::default();
        let last = (0..1_000).map(|number| {
            let mut read = Passage::new(number);
            read.hold(number % 7 * 13, 50);
            read.pass(&mut link, 10);
            read.ready
        });
        assert_eq!(last.max(), Some(10_050), "1,000 times 10 and the first command's 50");
    }
}
