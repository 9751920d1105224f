//! What a drive has acknowledged and may still lose: kept until a flush covers it, and written again after an outage.

use std::collections::VecDeque;

use tier0_units::Lba;
use tier0_world::Buf;

use crate::Command;

/// A write that a drive has acknowledged. Discards are not kept: one that was lost costs the drive space alone, and one that came
/// again would meet what was written since, through any guard.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) lba: Lba,
    pub(super) buf: Buf,
}

impl Change {
    /// First sector and the one behind the last.
    fn range(&self) -> (u64, u64) {
        (self.lba.0, self.lba.0 + u64::from(self.buf.sectors()))
    }

    fn overlaps(&self, other: &Change) -> bool {
        let ((first, end), (other_first, other_end)) = (self.range(), other.range());
        first < other_end && other_first < end
    }

    pub(super) fn command(&self) -> Command {
        Command::Write { lba: self.lba, buf: self.buf.clone(), durable: false }
    }

    fn bytes(&self) -> usize {
        self.buf.as_slice().len()
    }
}

/// The changes that no flush has covered, oldest first.
#[derive(Default)]
pub(super) struct Retained {
    changes: VecDeque<(u64, Change)>,
    next: u64,
    bytes: usize,
    /// All of them lie from the first of these sectors up to the second: what lies elsewhere need not be compared.
    span: (u64, u64),
}

impl Retained {
    /// The drive has acknowledged a change that may be lost.
    pub(super) fn add(&mut self, change: Change) {
        self.bytes += change.bytes();
        let (first, end) = change.range();
        self.span = match self.changes.is_empty() {
            true => (first, end),
            false => (self.span.0.min(first), self.span.1.max(end)),
        };
        self.changes.push_back((self.next, change));
        self.next += 1;
    }

    /// The drive has acknowledged a change that is stable: it has to be kept only if an older one, written again, would
    /// cover it.
    pub(super) fn add_stable(&mut self, change: Change) {
        let (first, end) = change.range();
        let is_near = !self.changes.is_empty() && first < self.span.1 && self.span.0 < end;
        if is_near && self.changes.iter().any(|(_, older)| older.overlaps(&change)) {
            self.add(change);
        }
    }

    /// What a flush that is submitted now will cover: to be given to [`Retained::flushed`].
    pub(super) fn mark(&self) -> u64 {
        self.next
    }

    /// A flush has ended that was submitted at this mark.
    pub(super) fn flushed(&mut self, mark: u64) {
        while let Some((_, change)) = self.changes.pop_front_if(|(number, _)| *number < mark) {
            self.bytes -= change.bytes();
        }
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.changes.len()
    }

    /// All changes in rounds: those of one round do not overlap, and a round must end before the next one begins.
    pub(super) fn rounds(&self, round_max: usize) -> Vec<Vec<Change>> {
        let mut rounds: Vec<Vec<Change>> = Vec::new();
        for (_, change) in &self.changes {
            match rounds.last_mut() {
                Some(round)
                    if round.len() < round_max && !round.iter().any(|other| other.overlaps(change)) =>
                {
                    round.push(change.clone());
                }
                _ => rounds.push(vec![change.clone()]),
            }
        }
        rounds
    }
}

#[cfg(test)]
mod tests {
    use tier0_world::{BufMut, PayloadWidth};

    use super::*;

    fn write(lba: u64, sectors: u32) -> Change {
        Change { lba: Lba(lba), buf: BufMut::zeroed(sectors, PayloadWidth::REAL).freeze() }
    }

    #[test]
    fn a_flush_covers_what_had_ended_before_it_was_submitted() {
        let mut retained = Retained::default();
        retained.add(write(0, 8));
        let mark = retained.mark();
        retained.add(write(8, 8));
        retained.flushed(mark);
        assert_eq!((retained.len(), retained.bytes()), (1, 4096));
        retained.flushed(retained.mark());
        assert_eq!((retained.len(), retained.bytes()), (0, 0));
    }

    #[test]
    fn a_stable_write_is_kept_only_over_an_older_one() {
        let mut retained = Retained::default();
        retained.add_stable(write(0, 8));
        assert_eq!(retained.len(), 0);
        retained.add(write(4, 8));
        retained.add_stable(write(0, 8));
        retained.add_stable(write(12, 8));
        assert_eq!(retained.len(), 2);
    }

    #[test]
    fn what_overlaps_is_written_again_in_its_order() {
        let mut retained = Retained::default();
        for lba in [0, 8, 4, 16, 16] {
            retained.add(write(lba, 8));
        }
        let sizes: Vec<usize> = retained.rounds(16).iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 2, 1]);
    }
}
