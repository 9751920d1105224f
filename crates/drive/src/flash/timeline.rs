//! A shared resource that serves one transfer at a time, asked for times that do not arrive in order.
//!
//! A model that answers at submission reserves late stages early: a read that will leave a congested die in
//! 5 ms reserves the host link then, and the next read, ready in 0.1 ms, must not queue behind it. So beside
//! the time of the last reservation's end the timeline remembers the last few gaps before it and fills them.
//!
//! Invariants: reservations never overlap; none starts before it was asked for. A forgotten gap only delays.

/// Reservations on one resource, in nanoseconds, with so many gaps remembered.
#[derive(Clone, Debug)]
pub(super) struct Timeline<const GAPS: usize> {
    busy_until: u64,
    gap_start: [u64; GAPS],
    gap_end: [u64; GAPS],
}

impl<const GAPS: usize> Timeline<GAPS> {
    /// An idle resource.
    pub(super) fn new() -> Self {
        Timeline { busy_until: 0, gap_start: [0; GAPS], gap_end: [0; GAPS] }
    }

    /// Reserves `length` from `at` or the first time thereafter; returns the end of it.
    #[inline]
    pub(super) fn reserve(&mut self, at: u64, length: u64) -> u64 {
        if at >= self.busy_until {
            self.remember(self.busy_until, at);
            self.busy_until = at + length;
            return self.busy_until;
        }
        self.fill_gap(at, length).unwrap_or_else(|| {
            self.busy_until += length;
            self.busy_until
        })
    }

    /// Puts the reservation into the gap where it starts first.
    #[inline]
    fn fill_gap(&mut self, at: u64, length: u64) -> Option<u64> {
        let mut best = (u64::MAX, 0);
        for gap in 0..GAPS {
            let start = self.gap_start[gap].max(at);
            if start + length <= self.gap_end[gap] && start < best.0 {
                best = (start, gap);
            }
        }
        let (start, gap) = best;
        if start == u64::MAX {
            return None;
        }
        let before = self.gap_start[gap];
        self.gap_start[gap] = start + length;
        self.remember(before, start);
        Some(start + length)
    }

    /// Keeps a gap in place of the one that ends first.
    #[inline]
    fn remember(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let mut oldest = 0;
        for gap in 1..GAPS {
            if self.gap_end[gap] < self.gap_end[oldest] {
                oldest = gap;
            }
        }
        if self.gap_end[oldest] < end {
            (self.gap_start[oldest], self.gap_end[oldest]) = (start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reservation_does_not_block_an_early_one() {
        let mut link = Timeline::<4>::new();
        assert_eq!(link.reserve(5_000, 10), 5_010);
        assert_eq!(link.reserve(100, 10), 110, "fills the gap before it");
        assert_eq!(link.reserve(100, 10), 120, "queues behind the one in the gap");
        assert_eq!(link.reserve(50, 50), 100, "fits exactly between");
        assert_eq!(link.reserve(4_995, 10), 5_020, "too long for the rest of the gap");
    }

    #[test]
    fn reservations_never_overlap() {
        let mut link = Timeline::<4>::new();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let mut state = 1_u64;
        for step in 0..2_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (at, length) = (step * 20 + (state >> 33) % 3_000, 1 + (state >> 20) % 17);
            let end = link.reserve(at, length);
            assert!(end - length >= at, "starts before it was asked for");
            taken.push((end - length, end));
        }
        taken.sort_unstable();
        for pair in taken.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{:?} overlaps {:?}", pair[0], pair[1]);
        }
    }
}
