//! The queue of the mechanism, and which of it comes next.
//!
//! Each candidate carries its target, worked out when it came in, so that a decision over the queue is one table
//! look-up, one multiplication and a few additions per candidate.

use super::Scheduling;
use super::geometry::{Arm, Geometry};

/// What the mechanism is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The command in this slot.
    Command(usize),
    /// The unwritten data of this segment.
    Destage(usize),
}

/// Something that waits for the mechanism.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) work: Work,
    pub(crate) write: bool,
    pub(crate) arm: Arm,
    /// When, within a revolution, its first sector is under the head.
    pub(crate) phase: u32,
    pub(crate) arrived: u64,
    /// Its place in the order of arrival.
    pub(crate) number: u64,
    /// The arm cannot leave for it before.
    pub(crate) ready_at: u64,
}

/// Where the mechanism is when it chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) now: u64,
    /// When the arm can leave, at or after `now`.
    pub(crate) leaves_at: u64,
    pub(crate) arm: Arm,
    pub(crate) spindle: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    candidates: Vec<Candidate>,
    policy: Scheduling,
    starvation_limit: u64,
}

impl Schedule {
    pub(crate) fn new(policy: Scheduling, starvation_limit: u64, capacity: usize) -> Schedule {
        Schedule { candidates: Vec::with_capacity(capacity), policy, starvation_limit }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    pub(crate) fn push(&mut self, candidate: Candidate) {
        self.candidates.push(candidate);
    }

    /// Takes a certain candidate out.
    pub(crate) fn remove(&mut self, work: Work) -> Option<Candidate> {
        let index = self.candidates.iter().position(|candidate| candidate.work == work)?;
        Some(self.candidates.swap_remove(index))
    }

    /// Takes the next one out.
    pub(crate) fn take_next(&mut self, geometry: &Geometry, at: Situation) -> Option<Candidate> {
        let index = match self.candidates.len() {
            0 => return None,
            1 => 0,
            _ => self.choose(geometry, at),
        };
        Some(self.candidates.swap_remove(index))
    }

    fn choose(&self, geometry: &Geometry, at: Situation) -> usize {
        let oldest = self.oldest();
        let waited = at.now.saturating_sub(self.candidates[oldest].arrived);
        if self.policy == Scheduling::Fifo || waited > self.starvation_limit {
            return oldest;
        }
        let phase = geometry.phase_at(at.leaves_at, at.spindle);
        let (mut best, mut shortest) = (0, u64::MAX);
        for (index, candidate) in self.candidates.iter().enumerate() {
            let delay = candidate.ready_at.saturating_sub(at.leaves_at);
            let moving = delay + u64::from(geometry.seek(at.arm, candidate.arm, candidate.write));
            if moving >= shortest {
                continue;
            }
            // A seek and the overheads before it are checked to be below a second each, so that 32 bits hold it.
            let arrives = geometry.turn(phase, moving as u32);
            let time = moving + u64::from(geometry.wait(arrives, candidate.phase));
            if time < shortest {
                (best, shortest) = (index, time);
            }
        }
        best
    }

    fn oldest(&self) -> usize {
        let by_age = |(_, candidate): &(usize, &Candidate)| candidate.number;
        self.candidates.iter().enumerate().min_by_key(by_age).map_or(0, |(index, _)| index)
    }
}
