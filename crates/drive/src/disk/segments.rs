//! The buffer: segments of consecutive sectors, least recently used first out.
//!
//! A segment holds one stretch `start..end` of blocks. Its state says what may be done with it: clean data may be
//! given up, dirty data must reach the medium first. The order in which segments are chosen is DiskSim's
//! (a hit in data that are being read before one in others, whole hits before partial ones; empty segments before
//! clean ones before the one that is being read ahead).
//!
//! What it does not do: it knows no time and no mechanism; which segment is being read is told to it.

use super::BufferParameters;

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing.
    Empty,
    /// Data that are on the medium too, or are being read from it.
    Clean,
    /// Data of which some are not on the medium yet.
    Dirty,
    /// The same, and the mechanism is at it.
    Writing,
}

/// The stretch of blocks that a segment holds; `0..0` where it is empty. Apart from the rest, so that the common
/// question, whether any segment has to do with some blocks, reads few cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    const NONE: Span = Span { start: 0, end: 0 };

    fn overlaps(self, start: u64, end: u64) -> bool {
        start < self.end && end > self.start
    }
}

/// What is known of a segment besides its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) state: State,
    /// Whether a write filled it last.
    pub(crate) written: bool,
    /// Block before which read-ahead ends.
    pub(crate) read_limit: u64,
    /// First block that is not on the medium, while dirty.
    pub(crate) dirty_from: u64,
    /// The last transfer from the host into it: first block and time of its start.
    pub(crate) incoming_from: u64,
    pub(crate) incoming_at: u64,
    /// Number of the oldest write in it that is not on the medium.
    pub(crate) oldest_write: u64,
    used: u64,
}

/// What the buffer holds of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMatch {
    /// All of it.
    Whole(usize),
    /// Its first sectors (none, where it starts at the sector being read ahead).
    Partial(usize),
    /// Nothing.
    None,
    /// Unwritten data that cannot serve it: they must reach the medium first.
    Collision(usize),
}

/// Where a write may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMatch {
    /// To the end of the unwritten data of a segment.
    Append(usize),
    /// Into a segment of its own, which holds nothing that is needed.
    Claim(usize),
    /// Nowhere before the data of this segment are on the medium.
    Collision(usize),
    /// Nowhere for now.
    Full,
}

#[derive(Clone, Debug)]
pub(crate) struct Segments {
    segments: Vec<Segment>,
    spans: Vec<Span>,
    size: u64,
    /// Segments with unwritten data, and how many there may be.
    dirty: u32,
    dirty_max: u32,
    /// The first segment is for writes only.
    dedicated: bool,
    caching: bool,
    hit_on_written: bool,
    hit_on_next: bool,
    combine: bool,
    clock: u64,
}

impl Segments {
    pub(crate) fn new(parameters: &BufferParameters) -> Segments {
        let empty = Segment {
            state: State::Empty,
            written: false,
            read_limit: 0,
            dirty_from: 0,
            incoming_from: 0,
            incoming_at: 0,
            oldest_write: 0,
            used: 0,
        };
        Segments {
            segments: vec![empty; parameters.segments as usize],
            spans: vec![Span::NONE; parameters.segments as usize],
            size: parameters.segment_sectors,
            dirty: 0,
            dirty_max: parameters.write_segments,
            dedicated: parameters.dedicated_write_segment,
            caching: parameters.caching,
            hit_on_written: parameters.hit_on_written,
            hit_on_next: parameters.hit_on_next_sector,
            combine: parameters.combine_writes,
            clock: 0,
        }
    }

    pub(crate) fn get(&self, index: usize) -> &Segment {
        &self.segments[index]
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Segment {
        &mut self.segments[index]
    }

    pub(crate) fn span(&self, index: usize) -> Span {
        self.spans[index]
    }

    pub(crate) fn span_mut(&mut self, index: usize) -> &mut Span {
        &mut self.spans[index]
    }

    /// Whether any segment holds some of the blocks or ends just before them.
    fn concerns(&self, start: u64, end: u64) -> bool {
        // Without an early exit: one branch for all instead of one each.
        self.spans.iter().fold(false, |any, span| any | ((start <= span.end) & (end > span.start)))
    }

    /// Sectors of a segment.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The number of the oldest write that is not on the medium.
    pub(crate) fn oldest_write(&self) -> Option<u64> {
        let unwritten = |segment: &&Segment| matches!(segment.state, State::Dirty | State::Writing);
        self.segments.iter().filter(unwritten).map(|segment| segment.oldest_write).min()
    }

    /// What the buffer holds of `start..end`; `reading` is the segment that the mechanism fills.
    pub(crate) fn find_read(&self, start: u64, end: u64, reading: Option<usize>) -> ReadMatch {
        if !self.concerns(start, end) {
            return ReadMatch::None;
        }
        let (mut found, mut best) = (ReadMatch::None, 0);
        for (index, (segment, span)) in self.segments.iter().zip(&self.spans).enumerate() {
            let holds_start = span.start <= start && start < span.end;
            let is_reading = reading == Some(index);
            match segment.state {
                State::Empty => continue,
                State::Dirty | State::Writing if !span.overlaps(start, end) => continue,
                State::Dirty | State::Writing => {
                    let serves = self.serves(index) && self.hit_on_written;
                    let whole = serves && holds_start && end <= span.end;
                    return if whole { ReadMatch::Whole(index) } else { ReadMatch::Collision(index) };
                }
                State::Clean => {}
            }
            let is_next = is_reading && self.hit_on_next && start == span.end;
            if !(holds_start || is_next) || !self.serves(index) || (segment.written && !self.hit_on_written) {
                continue;
            }
            let whole = end <= span.end;
            let value = 1 + 2 * u32::from(whole) + u32::from(is_reading);
            if value > best {
                best = value;
                found = if whole { ReadMatch::Whole(index) } else { ReadMatch::Partial(index) };
            }
        }
        found
    }

    fn serves(&self, index: usize) -> bool {
        self.caching && !(self.dedicated && index == 0)
    }

    /// The segment that a read fills, emptied; none where all hold unwritten data.
    pub(crate) fn claim_for_read(&mut self, reading: Option<usize>) -> Option<usize> {
        let first = usize::from(self.dedicated);
        let index = self.least_needed(first, self.segments.len(), reading, |_| 0)?;
        self.spans[index] = Span::NONE;
        let segment = &mut self.segments[index];
        segment.state = State::Clean;
        segment.written = false;
        segment.read_limit = 0;
        self.touch(index);
        Some(index)
    }

    /// Where a write to `start..end` may go.
    pub(crate) fn find_write(&self, start: u64, end: u64, reading: Option<usize>) -> WriteMatch {
        let concerns = self.concerns(start, end);
        let mut append = None;
        for (index, (segment, span)) in self.segments.iter().zip(&self.spans).enumerate() {
            if !concerns || !matches!(segment.state, State::Dirty | State::Writing) {
                continue;
            }
            let follows = self.combine && start == span.end;
            if follows && end - segment.dirty_from <= self.size {
                append = Some(index);
            } else if span.overlaps(start, end) {
                return WriteMatch::Collision(index);
            }
        }
        if let Some(index) = append {
            return WriteMatch::Append(index);
        }
        if self.dirty >= self.dirty_max {
            return WriteMatch::Full;
        }
        let last = if self.dedicated { 1 } else { self.segments.len() };
        let overlaps = |index: usize| 4 * u32::from(concerns && self.spans[index].overlaps(start, end));
        self.least_needed(0, last, reading, overlaps).map_or(WriteMatch::Full, WriteMatch::Claim)
    }

    /// The best of the segments that hold nothing needed: by `bonus`, then empty, then clean and longest unused,
    /// then the one being read.
    fn least_needed(
        &self,
        first: usize,
        last: usize,
        reading: Option<usize>,
        bonus: impl Fn(usize) -> u32,
    ) -> Option<usize> {
        let mut best: Option<(u32, u64, usize)> = None;
        for (index, segment) in self.segments[first..last].iter().enumerate() {
            let index = first + index;
            let value = match segment.state {
                State::Empty => 3,
                State::Clean if reading == Some(index) => 1,
                State::Clean => 2.max(bonus(index)),
                State::Dirty | State::Writing => continue,
            };
            if best.is_none_or(|(v, used, _)| value > v || (value == v && segment.used < used)) {
                best = Some((value, segment.used, index));
            }
        }
        best.map(|(_, _, index)| index)
    }

    /// Whether the segment was used last of all.
    pub(crate) fn is_latest(&self, index: usize) -> bool {
        self.segments[index].used == self.clock
    }

    /// Makes it the segment used last.
    pub(crate) fn touch(&mut self, index: usize) {
        self.clock += 1;
        self.segments[index].used = self.clock;
    }

    /// Gives up clean data that a write to `start..end` makes stale, but for segment `keep`.
    pub(crate) fn forget(&mut self, start: u64, end: u64, keep: usize) {
        if !self.concerns(start, end) {
            return;
        }
        for index in 0..self.segments.len() {
            let clean = self.segments[index].state == State::Clean;
            if clean && index != keep && self.spans[index].overlaps(start, end) {
                self.segments[index].state = State::Empty;
                self.spans[index] = Span::NONE;
            }
        }
    }

    /// Fills a claimed segment with the unwritten data of write number `number`.
    pub(crate) fn fill_dirty(&mut self, index: usize, start: u64, end: u64, number: u64) {
        let segment = &mut self.segments[index];
        segment.state = State::Dirty;
        segment.written = true;
        (segment.dirty_from, segment.read_limit) = (start, 0);
        segment.oldest_write = number;
        self.spans[index] = Span { start, end };
        self.dirty += 1;
        self.touch(index);
    }

    /// Appends to unwritten data.
    pub(crate) fn append_dirty(&mut self, index: usize, end: u64) {
        let (span, dirty_from) = (&mut self.spans[index], self.segments[index].dirty_from);
        span.end = end;
        span.start = span.start.max(end.saturating_sub(self.size)).min(dirty_from);
        self.touch(index);
    }

    /// The data up to `end` are on the medium; `number` is that of the oldest write that may be left. Returns
    /// whether some are left.
    pub(crate) fn clean(&mut self, index: usize, end: u64, number: u64) -> bool {
        let segment = &mut self.segments[index];
        segment.dirty_from = end;
        if end < self.spans[index].end {
            segment.state = State::Dirty;
            segment.oldest_write = number;
            return true;
        }
        segment.state = State::Clean;
        if !self.hit_on_written {
            segment.state = State::Empty;
            self.spans[index] = Span::NONE;
        }
        self.dirty -= 1;
        false
    }

    /// A read has got as far as `end`; what no longer fits falls out at the front.
    pub(crate) fn read_up_to(&mut self, index: usize, end: u64) {
        let span = &mut self.spans[index];
        span.end = span.end.max(end);
        span.start = span.start.max(span.end.saturating_sub(self.size));
    }
}
