//! The controller's firmware: a few cores that each take one command at a time, first come, first served.
//!
//! Invariant: a command starts on the core that is free first, never before it arrives.

/// Cores with the time until which each is busy.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    busy_until_ns: Vec<u64>,
}

impl Cores {
    /// `count` idle cores.
    pub(super) fn new(count: u32) -> Cores {
        Cores { busy_until_ns: vec![0; count as usize] }
    }

    /// Serves a command that arrives at `at` and takes `work`; returns when it is served.
    #[inline]
    pub(super) fn serve(&mut self, at: u64, work: u64) -> u64 {
        let mut first = 0;
        for core in 1..self.busy_until_ns.len() {
            if self.busy_until_ns[core] < self.busy_until_ns[first] {
                first = core;
            }
        }
        let served = self.busy_until_ns[first].max(at) + work;
        self.busy_until_ns[first] = served;
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_overlap_up_to_the_number_of_cores() {
        let mut cores = Cores::new(2);
        assert_eq!([0, 0, 0, 0, 500].map(|at| cores.serve(at, 10)), [10, 10, 20, 20, 510]);
    }
}
