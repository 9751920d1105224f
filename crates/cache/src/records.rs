//! Records of the write log that are alive: who needs them, what they hold in memory, and where they lie.
//!
//! A record is needed by each page whose newest content it has, by each batch that is destaging such a page, and by
//! each record that supersedes it and is not stable yet: until then a crash must find the old one. A record that is no
//! longer needed gives its memory back; the log is released up to the oldest that is.
//!
//! A record takes 48 bytes beside its data.

use std::collections::VecDeque;

use tier0_journal::Position;
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS};
use tier0_world::Buf;

use crate::pages::RecordId;

/// A record that is alive.
pub(crate) struct Record {
    /// Its data pages, one after the other; of no sectors when there are none or they are no longer needed.
    data: Buf,
    pub(crate) extent: ExtentId,
    /// Its position in the ring, or one that it cannot be before, as long as it is not stable.
    position: Position,
    /// How many need it.
    needed: u32,
    /// Pages of it that were destaged while it had their newest content.
    destaged: u16,
    /// Data pages that it came with; more count as 255.
    pages: u8,
    stable: bool,
}

/// How finely ages are kept: marks per the time after which pages count as old.
const MARKS_PER_AGE: u64 = 16;

/// All records that are alive or behind one that is, oldest first.
pub(crate) struct Records {
    list: VecDeque<Record>,
    /// The number of the first, without wrapping.
    first: u64,
    /// Times at which some records came, so that ages cost nothing per record.
    marks: VecDeque<(Nanos, u64)>,
    mark_step: Nanos,
    /// The number of the first that is not stable.
    settled: u64,
    /// Data pages in memory.
    pages: u64,
    /// Pages that are destaged and would be loaded again after a crash.
    destaged: u64,
    /// Data pages of the records that went since [`Records::take_gone_pages`] was called.
    gone_pages: u64,
}

impl Records {
    /// None yet; ages are asked for in steps of about `age`.
    pub(crate) fn new(age: Nanos) -> Records {
        Records {
            list: VecDeque::new(),
            first: 0,
            marks: VecDeque::new(),
            mark_step: Nanos(age.0 / MARKS_PER_AGE),
            settled: 0,
            pages: 0,
            destaged: 0,
            gone_pages: 0,
        }
    }

    /// The number of the oldest, without wrapping.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// One more than the number of the newest, without wrapping.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.list.len() as u64
    }

    /// Data pages in memory, including those that are no longer read but whose neighbours in the record are needed.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Adds a record that is on its way into the ring and will not lie before `bound`.
    pub(crate) fn push(
        &mut self,
        now: Nanos,
        extent: ExtentId,
        data: Buf,
        needed: u32,
        bound: Position,
    ) -> RecordId {
        debug_assert!(needed > 0, "a record changes something");
        let sequence = self.end();
        if self.marks.back().is_none_or(|(last, _)| now.saturating_sub(*last) >= self.mark_step) {
            self.marks.push_back((now, sequence));
        }
        self.pages += pages_of(&data);
        let pages = u8::try_from(pages_of(&data)).unwrap_or(u8::MAX);
        self.list.push_back(Record {
            data,
            extent,
            position: bound,
            needed,
            destaged: 0,
            pages,
            stable: false,
        });
        RecordId(sequence as u32)
    }

    /// The record is stable at `position`.
    pub(crate) fn settle(&mut self, id: RecordId, position: Position) {
        let record = self.get_mut(id);
        record.position = position;
        record.stable = true;
        let behind = (self.settled - self.first) as usize;
        self.settled += self.list.range(behind..).take_while(|record| record.stable).count() as u64;
    }

    /// The number of the first record that is not stable, without wrapping.
    pub(crate) fn settled(&self) -> u64 {
        self.settled
    }

    /// A record.
    pub(crate) fn get(&self, id: RecordId) -> &Record {
        &self.list[self.place(id)]
    }

    /// The record with a number, unless it is gone.
    pub(crate) fn by_sequence(&self, sequence: u64) -> Option<&Record> {
        self.list.get(usize::try_from(sequence.checked_sub(self.first)?).ok()?)
    }

    /// Whether a record is older than number `sequence`.
    pub(crate) fn is_before(&self, id: RecordId, sequence: u64) -> bool {
        self.first + (self.place(id) as u64) < sequence
    }

    /// One more needs the record.
    pub(crate) fn pin(&mut self, id: RecordId) {
        let record = self.get_mut(id);
        debug_assert!(record.needed > 0, "what is not needed is gone");
        record.needed += 1;
    }

    /// One less needs the record.
    pub(crate) fn unpin(&mut self, id: RecordId) {
        let record = self.get_mut(id);
        record.needed = record.needed.checked_sub(1).expect("a record is not needed less than not at all");
        if record.needed == 0 {
            let none = record.data.slice(0, 0);
            let data = std::mem::replace(&mut record.data, none);
            self.pages -= pages_of(&data);
        }
    }

    /// A data page whose newest content a record has is stable in its place.
    pub(crate) fn count_destaged(&mut self, id: RecordId) {
        let record = self.get_mut(id);
        record.destaged += 1;
        self.destaged += 1;
    }

    /// Pages that are stable in their places and that recovery would load again, because their records are behind others
    /// that are needed.
    pub(crate) fn destaged(&self) -> u64 {
        self.destaged
    }

    /// Forgets the oldest records that are stable and no longer needed; returns whether any.
    pub(crate) fn trim(&mut self) -> bool {
        let before = self.first;
        while let Some(record) = self.list.pop_front_if(|record| record.needed == 0 && record.stable) {
            self.first += 1;
            self.destaged -= u64::from(record.destaged);
            self.gone_pages += u64::from(record.pages);
        }
        while self.marks.get(1).is_some_and(|(_, sequence)| *sequence <= self.first) {
            self.marks.pop_front();
        }
        self.first > before
    }

    /// Data pages of the records that were forgotten since this was asked last, whether destaged or superseded: what the
    /// log has room for again.
    pub(crate) fn take_gone_pages(&mut self) -> u64 {
        std::mem::take(&mut self.gone_pages)
    }

    /// The position before which no record is needed; none if there is no record at all.
    pub(crate) fn position(&self) -> Option<Position> {
        self.list.front().map(|record| record.position)
    }

    /// The number of the first record that came at `time` or later, as far as the marks tell: never too low by more
    /// than a step.
    pub(crate) fn first_since(&self, time: Nanos) -> u64 {
        let place = self.marks.partition_point(|(mark, _)| *mark <= time);
        self.marks.get(place).map_or(self.end(), |(_, sequence)| *sequence).max(self.first)
    }

    /// When the oldest record came, or a little earlier.
    pub(crate) fn oldest_time(&self) -> Option<Nanos> {
        self.marks.front().filter(|_| !self.list.is_empty()).map(|(time, _)| *time)
    }

    /// The records from number `from` on, with their numbers.
    pub(crate) fn iter_from(&self, from: u64) -> impl Iterator<Item = (u64, &Record)> {
        let skip = from.saturating_sub(self.first);
        (self.first + skip..).zip(self.list.range((skip as usize).min(self.list.len())..))
    }

    fn place(&self, id: RecordId) -> usize {
        id.0.wrapping_sub(self.first as u32) as usize
    }

    fn get_mut(&mut self, id: RecordId) -> &mut Record {
        let place = self.place(id);
        &mut self.list[place]
    }
}

fn pages_of(data: &Buf) -> u64 {
    u64::from(data.sectors()) / PAGE_SECTORS
}

impl Record {
    /// A data page of it.
    pub(crate) fn page(&self, index: u32) -> Buf {
        self.data.slice(index * PAGE_SECTORS as u32, PAGE_SECTORS as u32)
    }

    /// Whether it is still needed.
    pub(crate) fn is_needed(&self) -> bool {
        self.needed > 0
    }

    /// Whether it is stable in the log.
    pub(crate) fn is_stable(&self) -> bool {
        self.stable
    }

    /// Where it lies in the ring, once it is stable.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Blocks of the log that are given back when it is destaged, at most: its pages, and a frame's header.
    pub(crate) fn blocks(&self) -> u64 {
        pages_of(&self.data) + 1
    }
}

#[cfg(test)]
mod tests {
    use tier0_world::{BufMut, PayloadWidth};

    use super::*;

    const EXTENT: ExtentId = ExtentId { volume: 1, index: 2 };

    fn push(records: &mut Records, at: u64, pages: u32, bound: u64) -> RecordId {
        let data = BufMut::zeroed(pages * PAGE_SECTORS as u32, PayloadWidth::new(4)).freeze();
        records.push(Nanos(at), EXTENT, data, pages.max(1), Position(bound))
    }

    #[test]
    fn memory_comes_back_with_the_last_need_and_the_log_in_order() {
        let mut records = Records::new(Nanos(160));
        let (a, b) = (push(&mut records, 0, 2, 5), push(&mut records, 1, 1, 5));
        assert_eq!((records.pages(), records.position()), (3, Some(Position(5))));
        records.settle(a, Position(7));
        records.settle(b, Position(9));
        records.count_destaged(b);
        records.pin(b);
        records.unpin(b);
        assert_eq!(records.pages(), 3);
        records.unpin(b);
        assert_eq!((records.pages(), records.trim(), records.position()), (2, false, Some(Position(7))));
        records.unpin(a);
        records.unpin(a);
        assert_eq!(records.destaged(), 1, "it would be loaded again");
        assert!(records.trim());
        assert_eq!(records.destaged(), 0);
        assert_eq!((records.pages(), records.position()), (0, None));
        assert_eq!((records.first(), records.end()), (2, 2));
    }

    #[test]
    fn what_is_not_stable_is_not_passed_over() {
        let mut records = Records::new(Nanos(160));
        let id = push(&mut records, 0, 1, 3);
        records.unpin(id);
        assert!(!records.trim());
        records.settle(id, Position(4));
        assert!(records.trim());
    }

    #[test]
    fn ages_are_known_within_a_step() {
        let mut records = Records::new(Nanos(160));
        for at in 0..100 {
            push(&mut records, at, 1, 0);
        }
        for time in [0, 37, 98] {
            let first = records.first_since(Nanos(time));
            assert!((time..=time + 11).contains(&first), "{first} came at {time}");
        }
        assert_eq!(records.oldest_time(), Some(Nanos(0)));
        assert_eq!(records.first_since(Nanos(1000)), 100);
    }

    #[test]
    fn a_record_takes_48_bytes() {
        assert_eq!(size_of::<Record>(), 48);
    }
}
