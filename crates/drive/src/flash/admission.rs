//! The drive's command queue: beyond its depth a command waits for the earliest completion of those inside.
//!
//! Invariant: at most `depth` admitted commands are unfinished at any time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A queue of fixed depth.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    /// Completion times of the commands inside, the earliest on top. A finished one is forgotten when the next one comes:
    /// most of the time there are far fewer than the queue is deep.
    completions_ns: BinaryHeap<Reverse<u64>>,
    depth: usize,
}

impl Admission {
    /// An empty queue of `depth` places.
    pub(super) fn new(depth: u32) -> Admission {
        Admission { completions_ns: BinaryHeap::new(), depth: depth as usize }
    }

    /// When a command that arrives at `now` gets a place; each call is followed by [`Admission::occupy`].
    #[inline]
    pub(super) fn admit(&mut self, now: u64) -> u64 {
        while let Some(earliest) = self.completions_ns.peek_mut()
            && earliest.0 <= now
        {
            PeekMut::pop(earliest);
        }
        match self.completions_ns.peek() {
            Some(earliest) if self.completions_ns.len() == self.depth => earliest.0,
            _ => now,
        }
    }

    /// Holds the admitted command's place until `completion`.
    #[inline]
    pub(super) fn occupy(&mut self, completion: u64) {
        if self.completions_ns.len() < self.depth {
            self.completions_ns.push(Reverse(completion));
        } else if let Some(mut earliest) = self.completions_ns.peek_mut() {
            *earliest = Reverse(completion);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_command_takes_the_place_that_frees_first() {
        let mut queue = Admission::new(3);
        for completion in [50, 20, 40] {
            assert_eq!(queue.admit(0), 0, "there is room");
            queue.occupy(completion);
        }
        for (admitted, completion) in [(20, 60), (40, 45), (45, 70), (50, 100), (60, 61)] {
            assert_eq!(queue.admit(5), admitted);
            queue.occupy(completion);
        }
        assert_eq!(queue.admit(1000), 1000, "an idle drive admits at once");
    }
}
