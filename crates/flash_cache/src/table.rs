//! The table of a device: what lies at each of its lines, in sets, and which line of a set gives way.
//!
//! Arrays by field, a set's ways as neighbours: a lookup reads one stretch of each. Seven bytes a line: 16 bits of the
//! tag; one byte with the other 3 bits of it, the 2 valid bits and the re-reference value; and the check.
//!
//! Replacement is SRRIP (Jaleel et al. 2010): a line comes in expected to be read again late, a hit says soon, and the
//! first that is expected latest gives way, after all have aged where there is none.

use crate::entry::{Entry, Line, RRPV_MAX};
use crate::line::{PAGE_BYTES, Spot};

/// The re-reference value with which lines come in.
pub(crate) const RRPV_LONG: u8 = RRPV_MAX - 1;

/// Tags that are compared before the next is looked at.
const LOOKED_AT_ONCE: usize = 32;

const VALID_SHIFT: u32 = 3;
const RRPV_SHIFT: u32 = 5;

/// What lies at the lines of a device.
pub(crate) struct Table {
    sets: u32,
    ways: u32,
    tags: Vec<u16>,
    metas: Vec<u8>,
    checks: Vec<u32>,
    /// Valid pages.
    pages: u64,
}

impl Table {
    pub(crate) fn new(sets: u32, ways: u64) -> Table {
        let lines = sets as usize * ways as usize;
        let ways = u32::try_from(ways).expect("a part has at most 255 ways");
        Table { sets, ways, tags: vec![0; lines], metas: vec![0; lines], checks: vec![0; lines], pages: 0 }
    }

    fn at(&self, line: Line) -> usize {
        debug_assert!(u32::from(line.way) < self.ways && line.set < self.sets, "{line:?} is no line");
        line.set as usize * self.ways as usize + usize::from(line.way)
    }

    pub(crate) fn get(&self, line: Line) -> Option<Entry> {
        self.entry(self.at(line))
    }

    fn entry(&self, at: usize) -> Option<Entry> {
        let meta = self.metas[at];
        let valid = meta >> VALID_SHIFT & 3;
        let tag = u32::from(self.tags[at]) | u32::from(meta & 7) << 16;
        (valid != 0).then(|| Entry { tag, valid, rrpv: meta >> RRPV_SHIFT & 3, check: self.checks[at] })
    }

    pub(crate) fn set(&mut self, line: Line, entry: Option<Entry>) {
        let at = self.at(line);
        self.pages -= u64::from((self.metas[at] >> VALID_SHIFT & 3).count_ones());
        let Some(entry) = entry else {
            self.metas[at] = 0;
            return;
        };
        self.tags[at] = entry.tag as u16;
        self.metas[at] = (entry.tag >> 16) as u8 | entry.valid << VALID_SHIFT | entry.rrpv << RRPV_SHIFT;
        self.checks[at] = entry.check;
        self.pages += u64::from(entry.valid.count_ones());
    }

    /// Where a line is.
    pub(crate) fn find(&self, spot: Spot) -> Option<(Line, Entry)> {
        let first = spot.set as usize * self.ways as usize;
        let tags = &self.tags[first..first + self.ways as usize];
        let wanted = spot.tag as u16;
        // Whole vectors are looked at first: of hundreds of ways, few have this tag.
        let chunks = tags.chunks(LOOKED_AT_ONCE).enumerate();
        let found = chunks.filter(|(_, chunk)| chunk.iter().fold(false, |any, tag| any | (*tag == wanted)));
        let ways = found.flat_map(|(number, chunk)| {
            let same = chunk.iter().enumerate().filter(|(_, tag)| **tag == wanted);
            same.map(move |(place, _)| number * LOOKED_AT_ONCE + place)
        });
        ways.filter_map(|way| Some((Line { way: way as u8, set: spot.set }, self.entry(first + way)?)))
            .find(|(_, entry)| entry.tag == spot.tag)
    }

    /// A line was read.
    pub(crate) fn touch(&mut self, line: Line) {
        let at = self.at(line);
        self.metas[at] &= !(3 << RRPV_SHIFT);
    }

    /// Whether a set has an empty way, among those that may be taken.
    pub(crate) fn has_empty(&self, set: u32, may_take: impl Fn(Line) -> bool) -> bool {
        self.empty(set, &may_take).is_some()
    }

    fn empty(&self, set: u32, may_take: &impl Fn(Line) -> bool) -> Option<Line> {
        let first = set as usize * self.ways as usize;
        (0..self.ways)
            .filter(|way| self.metas[first + *way as usize] == 0)
            .map(|way| Line { way: way as u8, set })
            .find(|line| may_take(*line))
    }

    /// The way of a set that a newcomer takes, among those that may be taken: an empty one, or that which gives way.
    pub(crate) fn victim(&mut self, set: u32, may_take: impl Fn(Line) -> bool) -> Option<Line> {
        if let Some(line) = self.empty(set, &may_take) {
            return Some(line);
        }
        let first = set as usize * self.ways as usize;
        let takable = |way: &u32| may_take(Line { way: *way as u8, set });
        let rrpv = |table: &Table, way: u32| table.metas[first + way as usize] >> RRPV_SHIFT & 3;
        let oldest = (0..self.ways).filter(takable).map(|way| rrpv(self, way)).max()?;
        let ageing = RRPV_MAX - oldest;
        for way in 0..self.ways {
            let aged = (rrpv(self, way) + ageing).min(RRPV_MAX);
            let meta = &mut self.metas[first + way as usize];
            if *meta != 0 {
                *meta = *meta & !(3 << RRPV_SHIFT) | aged << RRPV_SHIFT;
            }
        }
        (0..self.ways)
            .filter(takable)
            .find(|way| rrpv(self, *way) == RRPV_MAX)
            .map(|way| Line { way: way as u8, set })
    }

    /// The same with more or fewer ways.
    pub(crate) fn with_ways(&self, ways: u64) -> Table {
        let mut table = Table::new(self.sets, ways);
        let common = self.ways.min(table.ways) as usize;
        let lost = |meta: &u8| u64::from((meta >> VALID_SHIFT & 3).count_ones());
        table.pages = self.pages;
        for set in 0..self.sets as usize {
            let (from, to) = (set * self.ways as usize, set * table.ways as usize);
            table.tags[to..to + common].copy_from_slice(&self.tags[from..from + common]);
            table.metas[to..to + common].copy_from_slice(&self.metas[from..from + common]);
            table.checks[to..to + common].copy_from_slice(&self.checks[from..from + common]);
            table.pages -= self.metas[from + common..from + self.ways as usize].iter().map(lost).sum::<u64>();
        }
        table
    }

    /// Entries of a way from a set on.
    pub(crate) fn column(&self, way: u8, set: u32) -> impl Iterator<Item = Option<Entry>> + '_ {
        (set..self.sets).map(move |set| self.get(Line { way, set }))
    }

    /// All that is there.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Line, Entry)> + '_ {
        (0..self.sets)
            .flat_map(|set| (0..self.ways).map(move |way| Line { way: way as u8, set }))
            .filter_map(|line| Some((line, self.get(line)?)))
    }

    /// What the pages hold, bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.tags.capacity() * 2 + self.metas.capacity() + self.checks.capacity() * 4) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(tag: u32) -> Option<Entry> {
        Some(Entry { tag, valid: 3, rrpv: RRPV_LONG, check: tag ^ 5 })
    }

    fn spot(set: u32, tag: u32) -> Spot {
        Spot { set, tag, hash: 0 }
    }

    #[test]
    fn lines_are_found_by_their_whole_tag() {
        let mut table = Table::new(3, 4);
        table.set(Line { way: 2, set: 1 }, entry(0x5_1234));
        table.set(Line { way: 3, set: 1 }, entry(0x4_1234));
        assert_eq!(table.find(spot(1, 0x5_1234)).map(|found| found.0.way), Some(2));
        assert_eq!(table.find(spot(1, 0x4_1234)).map(|found| found.0.way), Some(3));
        assert_eq!(table.find(spot(1, 0x1234)), None);
        assert_eq!(table.find(spot(0, 0)), None, "what is empty has no tag");
        assert_eq!(table.held_bytes(), 4 * PAGE_BYTES);
        let larger = table.with_ways(9);
        assert_eq!(larger.find(spot(1, 0x4_1234)), table.find(spot(1, 0x4_1234)));
        assert_eq!(larger.with_ways(3).held_bytes(), 2 * PAGE_BYTES);
    }

    #[test]
    fn what_was_not_read_gives_way_first() {
        let mut table = Table::new(1, 3);
        let any = |_: Line| true;
        for tag in 0..3 {
            let line = table.victim(0, any).expect("a way is empty");
            table.set(line, entry(tag));
        }
        assert!(!table.has_empty(0, any));
        table.touch(Line { way: 0, set: 0 });
        assert_eq!(table.victim(0, any), Some(Line { way: 1, set: 0 }));
        assert_eq!(table.victim(0, |line| line.way != 1), Some(Line { way: 2, set: 0 }));
        assert_eq!(table.victim(0, |line| line.way == 0), Some(Line { way: 0, set: 0 }), "all have aged");
        assert_eq!(table.victim(0, |_| false), None);
    }

    #[test]
    fn bookkeeping_takes_seven_bytes_a_line() {
        assert_eq!(Table::new(1000, 48).memory_bytes(), 7 * 48_000);
    }
}
