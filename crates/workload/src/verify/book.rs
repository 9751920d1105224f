//! Which versions a block may hold, while writes to it come and go.
//!
//! Versions of a block count up from 1 in the order of issue. A write is sure to be overwritten only by one
//! that was issued after it had been answered; writes that overlapped in time may have landed in any order. A
//! write that failed may have landed or not. So a block at rest has usually one version, kept in four bytes,
//! and only blocks with writes under way or an uncertain outcome have an entry of their own.

use std::collections::BTreeMap;

/// Moments of the book: it counts the beginnings and ends of writes.
type Moment = u64;

/// A version that a block may hold.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    version: u32,
    began: Moment,
    /// Nothing while the write is under way.
    ended: Option<Moment>,
}

/// A block with more than one candidate.
#[derive(Debug)]
struct Busy {
    candidates: Vec<Candidate>,
    /// The highest version issued.
    issued: u32,
}

/// What is known of a block at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The highest version issued.
    pub(super) issued: u32,
    /// No write was under way.
    pub(super) quiet: bool,
}

/// The versions of all blocks of a range, by block number.
#[derive(Debug)]
pub(super) struct Book {
    settled: Vec<u32>,
    busy: BTreeMap<u64, Busy>,
    now: Moment,
}

impl Book {
    /// `blocks` blocks, none written.
    pub(super) fn new(blocks: usize) -> Book {
        Book { settled: vec![0; blocks], busy: BTreeMap::new(), now: 0 }
    }

    pub(super) fn blocks(&self) -> u64 {
        self.settled.len() as u64
    }

    /// Issues the next version of a block.
    pub(super) fn begin_write(&mut self, block: u64) -> u32 {
        self.now += 1;
        let settled = self.settled[block as usize];
        let busy = self.busy.entry(block).or_insert_with(|| {
            let before = Candidate { version: settled, began: 0, ended: Some(0) };
            Busy { candidates: vec![before], issued: settled }
        });
        busy.issued = busy.issued.checked_add(1).expect("a block is written fewer than 2^32 times in a run");
        busy.candidates.push(Candidate { version: busy.issued, began: self.now, ended: None });
        busy.issued
    }

    /// The write of that version was answered, or failed with an unknown outcome.
    pub(super) fn end_write(&mut self, block: u64, version: u32, answered: bool) {
        self.now += 1;
        let busy = self.busy.get_mut(&block).expect("a block with a write under way is busy");
        let ended = busy.candidates.iter_mut().find(|candidate| candidate.version == version);
        let ended = ended.expect("a write under way is a candidate");
        ended.ended = Some(self.now);
        let began = ended.began;
        if answered {
            busy.candidates.retain(|candidate| candidate.ended.is_none_or(|ended| ended > began));
        }
        self.settle(block);
    }

    /// Where a quiet block was seen whole with this version, no other is possible any more.
    pub(super) fn resolve(&mut self, block: u64, version: u32, seen: Seen) {
        if !seen.quiet || self.seen(block) != seen {
            return;
        }
        if let Some(busy) = self.busy.get_mut(&block) {
            busy.candidates.retain(|candidate| candidate.version == version);
            self.settle(block);
        }
    }

    /// A block with one candidate at rest, the highest issued, needs no entry. (Were it a lower one, the next
    /// write would get a number that was used before.)
    fn settle(&mut self, block: u64) {
        let busy = &self.busy[&block];
        if let [Candidate { version, ended: Some(_), .. }] = busy.candidates[..]
            && version == busy.issued
        {
            self.settled[block as usize] = version;
            self.busy.remove(&block);
        }
    }

    pub(super) fn seen(&self, block: u64) -> Seen {
        match self.busy.get(&block) {
            None => Seen { issued: self.settled[block as usize], quiet: true },
            Some(busy) => {
                let quiet = busy.candidates.iter().all(|candidate| candidate.ended.is_some());
                Seen { issued: busy.issued, quiet }
            }
        }
    }

    /// Appends every version that a read of this very moment may find.
    pub(super) fn candidates(&self, block: u64, versions: &mut Vec<u32>) {
        match self.busy.get(&block) {
            None => versions.push(self.settled[block as usize]),
            Some(busy) => versions.extend(busy.candidates.iter().map(|candidate| candidate.version)),
        }
    }

    /// Whether the block was ever written.
    pub(super) fn is_written(&self, block: u64) -> bool {
        self.settled[block as usize] > 0 || self.busy.contains_key(&block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(book: &Book) -> Vec<u32> {
        let mut versions = Vec::new();
        book.candidates(0, &mut versions);
        versions
    }

    #[test]
    fn one_write_after_the_other_leaves_one_version() {
        let mut book = Book::new(1);
        for version in 1..=3 {
            assert_eq!(book.begin_write(0), version);
            assert_eq!(candidates(&book), [version - 1, version]);
            book.end_write(0, version, true);
            assert_eq!(candidates(&book), [version]);
        }
        assert!(book.busy.is_empty(), "nothing is kept for a block at rest");
    }

    #[test]
    fn overlapping_writes_may_have_landed_in_any_order() {
        let mut book = Book::new(1);
        assert_eq!((book.begin_write(0), book.begin_write(0)), (1, 2));
        book.end_write(0, 2, true);
        assert_eq!(candidates(&book), [1, 2], "the first is still under way and may land last");
        assert_eq!(book.begin_write(0), 3);
        book.end_write(0, 3, true);
        assert_eq!(candidates(&book), [1, 3], "the second had been answered before the third was issued");
        book.end_write(0, 1, true);
        assert_eq!(candidates(&book), [1, 3]);
        assert_eq!(book.begin_write(0), 4);
        book.end_write(0, 4, true);
        assert_eq!(candidates(&book), [4]);
        assert!(book.busy.is_empty());
    }

    #[test]
    fn a_failed_write_may_have_landed_or_not() {
        let mut book = Book::new(1);
        book.begin_write(0);
        book.end_write(0, 1, true);
        book.begin_write(0);
        book.end_write(0, 2, false);
        assert_eq!(candidates(&book), [1, 2]);
        let seen = book.seen(0);
        book.resolve(0, 1, seen);
        assert_eq!(candidates(&book), [1]);
        assert_eq!(book.begin_write(0), 3, "version 2 is not issued twice");
        book.resolve(0, 1, seen);
        assert_eq!(candidates(&book), [1, 3], "what was seen before the write says nothing now");
    }
}
