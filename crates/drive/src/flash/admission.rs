//! The drive's command queue: beyond its depth a command waits for the earliest completion of those inside.
//!
//! Invariant: at most `depth` admitted commands are unfinished at any time. The completions of the last `depth`
//! admitted commands are kept in a binary heap with the earliest on top; a finished one costs nothing until
//! its place is needed.

/// A queue of fixed depth.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    /// Completion times, a binary min-heap.
    completions_ns: Vec<u64>,
    depth: usize,
}

impl Admission {
    /// An empty queue of `depth` places.
    pub(super) fn new(depth: u32) -> Admission {
        Admission { completions_ns: Vec::with_capacity(depth as usize), depth: depth as usize }
    }

    /// When a command that arrives at `now` gets a place; each call is followed by [`Admission::occupy`].
    #[inline]
    pub(super) fn admit(&self, now: u64) -> u64 {
        if self.completions_ns.len() < self.depth { now } else { now.max(self.completions_ns[0]) }
    }

    /// Holds the admitted command's place until `completion`.
    #[inline]
    pub(super) fn occupy(&mut self, completion: u64) {
        if self.completions_ns.len() < self.depth {
            self.push(completion);
        } else {
            self.replace_earliest(completion);
        }
    }

    fn push(&mut self, completion: u64) {
        let heap = &mut self.completions_ns;
        heap.push(completion);
        let mut at = heap.len() - 1;
        while at > 0 && heap[(at - 1) / 2] > heap[at] {
            heap.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn replace_earliest(&mut self, completion: u64) {
        let heap = &mut self.completions_ns[..];
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= heap.len() {
                break;
            }
            if child + 1 < heap.len() && heap[child + 1] < heap[child] {
                child += 1;
            }
            if heap[child] >= completion {
                break;
            }
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = completion;
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
