//! The cache without a device: what it would answer and write, of reads and writes that come one after the other.
//!
//! Sets, replacement, doorkeeper and budget are those of the cache itself. What it leaves out: batches, so that a line is there at
//! once; the log and the map pages, whose writes are not counted; and the memory cache before it, so that all that is read is
//! offered as read for the first time.

use tier0_units::{Nanos, PAGE_SECTORS};

use crate::admission::{Admission, OverBudget};
use crate::budget::Budget;
use crate::entry::Entry;
use crate::line::{LINE_PAGES, PAGE_BYTES, Spot, Spread};
use crate::place::{WAYS_AT_FORMAT, WAYS_MAX};
use crate::read::SECTORS_MAX;
use crate::table::{RRPV_LONG, Table};

/// A flash cache that holds nothing but its tables.
pub struct FlashModel {
    spread: Spread,
    table: Table,
    admission: Admission,
    pages: u64,
    written_pages: u64,
    refused_budget_pages: u64,
}

impl FlashModel {
    /// An empty one of so many pages of 4 KiB, as near as whole sets come to it. Its size may be written `writes_per_day` times a
    /// day.
    pub fn new(pages: u64, writes_per_day: f64) -> FlashModel {
        let lines = (pages / LINE_PAGES).max(1);
        let sets = u32::try_from((lines / WAYS_AT_FORMAT).max(1)).unwrap_or(u32::MAX);
        let ways = (lines / u64::from(sets)).min(WAYS_MAX);
        let lines = u64::from(sets) * ways;
        let bytes = lines * LINE_PAGES * PAGE_BYTES;
        let mut admission = Admission::new(lines, Budget::full(bytes, writes_per_day, Nanos::ZERO));
        admission.free_fills = lines;
        FlashModel {
            spread: Spread::new(sets),
            table: Table::new(sets, ways),
            admission,
            pages: lines * LINE_PAGES,
            written_pages: 0,
            refused_budget_pages: 0,
        }
    }

    /// How many pages it has room for.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages that were written so far.
    pub fn written_pages(&self) -> u64 {
        self.written_pages
    }

    /// Pages that were worth it and for which the budget did not last.
    pub fn refused_budget_pages(&self) -> u64 {
        self.refused_budget_pages
    }

    /// Which pages of a line are there, a bit each.
    pub fn held(&self, line: u64) -> u8 {
        self.spot(line).and_then(|spot| self.table.find(spot)).map_or(0, |(_, entry)| entry.valid)
    }

    /// Pages of some lines (of each a bit for each page) are read together: they come from here where all are there, else they are
    /// read elsewhere and offered. Longer reads than 64 KiB neither come from here nor are offered. Returns whether they came
    /// from here.
    pub fn read(&mut self, lines: &[(u64, u8)], now: Nanos) -> bool {
        let pages: u32 = lines.iter().map(|(_, halves)| halves.count_ones()).sum();
        if u64::from(pages) * PAGE_SECTORS > u64::from(SECTORS_MAX) {
            return false;
        }
        let is_hit = lines.iter().all(|(line, halves)| self.held(*line) & halves == *halves);
        for (line, halves) in lines {
            let Some(spot) = self.spot(*line) else { continue };
            match self.table.find(spot).filter(|_| is_hit) {
                Some((place, _)) => self.table.touch(place),
                None => self.offer(spot, *halves, false, now),
            }
        }
        is_hit
    }

    /// Pages of a line are written: what is there of the line goes, and what was read lately comes in again as it is now.
    pub fn write(&mut self, line: u64, halves: u8, now: Nanos) {
        if self.strike(line)
            && let Some(spot) = self.spot(line)
        {
            // Each page is destaged for itself.
            [1, 2].into_iter().filter(|half| halves & half != 0).for_each(|half| {
                self.offer(spot, half, true, now);
            });
        }
    }

    /// A line is worth nothing any more. Returns whether it was read lately.
    pub fn strike(&mut self, line: u64) -> bool {
        let found = self.spot(line).and_then(|spot| self.table.find(spot));
        let Some((place, entry)) = found else { return false };
        self.table.set(place, None);
        entry.rrpv < RRPV_LONG
    }

    fn spot(&self, line: u64) -> Option<Spot> {
        self.spread.place(line)
    }

    fn offer(&mut self, spot: Spot, halves: u8, is_known: bool, now: Nanos) {
        let found = self.table.find(spot);
        let there = found.map_or(0, |(_, entry)| entry.valid);
        let missing = halves & !there;
        if missing == 0 {
            return;
        }
        let (table, admission) = (&mut self.table, &mut self.admission);
        let has_empty = table.has_empty(spot.set, |_| true);
        if !admission.is_welcome(spot.hash, is_known || there != 0, || has_empty) {
            return;
        }
        let pages = u64::from(missing.count_ones());
        if let Err(OverBudget) = admission.pay(pages * PAGE_BYTES, there == 0 && has_empty, now) {
            self.refused_budget_pages += pages;
            return;
        }
        let rrpv = found.map_or(RRPV_LONG, |(_, entry)| entry.rrpv);
        let place = match found {
            Some((place, _)) => place,
            None => table.victim(spot.set, |_| true).expect("a set has a way that may be taken"),
        };
        table.set(place, Some(Entry { tag: spot.tag, valid: there | missing, rrpv, check: 0 }));
        self.written_pages += pages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDLESS: f64 = f64::INFINITY;

    #[test]
    fn what_is_read_once_is_written_as_long_as_there_is_room() {
        let mut model = FlashModel::new(9600, ENDLESS);
        let lines = model.pages() / 2;
        (0..lines * 3).for_each(|line| assert!(!model.read(&[(line, 3)], Nanos::from_secs(line))));
        let scanned = model.written_pages();
        assert!(scanned <= model.pages() + model.pages() / 50, "a scan wrote {scanned} of {}", model.pages());
        // What comes back soon is let in, and then answered.
        for _ in 0..3 {
            (0..100).for_each(|line| _ = model.read(&[(1_000_000 + line, 3)], Nanos::from_secs(100_000)));
        }
        let held = (0..100).filter(|line| model.held(1_000_000 + line) == 3).count();
        assert!(held > 90 && model.written_pages() >= scanned + 180, "{held}");
    }

    #[test]
    fn writes_strike_out_and_bring_in_what_was_read() {
        let mut model = FlashModel::new(960, ENDLESS);
        model.read(&[(7, 3)], Nanos::ZERO);
        model.write(7, 1, Nanos::from_secs(1));
        assert_eq!((model.held(7), model.written_pages()), (0, 2), "it was not read after it came in");
        model.read(&[(7, 3)], Nanos::from_secs(2));
        assert!(model.read(&[(7, 1)], Nanos::from_secs(3)), "one page of two");
        model.write(7, 1, Nanos::from_secs(4));
        assert_eq!((model.held(7), model.written_pages()), (1, 5), "one page comes in again");
        assert!(!model.read(&[(7, 3)], Nanos::from_secs(5)), "the other is missing");
        assert_eq!((model.held(7), model.written_pages()), (3, 6));
        assert!(!model.strike(7) && model.held(7) == 0, "it came in, and was not read after that");
        model.read(&[(7, 3), (8, 3)], Nanos::from_secs(6));
        assert!(!model.read(&[(7, 3), (9, 1)], Nanos::from_secs(7)), "all or nothing");
    }

    #[test]
    fn reads_beyond_64_kib_pass_it_by() {
        let mut model = FlashModel::new(9600, ENDLESS);
        let long: Vec<(u64, u8)> = (0..9).map(|line| (line, 3)).collect();
        assert!(!model.read(&long, Nanos::ZERO) && model.written_pages() == 0, "18 pages are not offered");
        assert!(!model.read(&long[..8], Nanos::ZERO) && model.written_pages() == 16);
        assert!(model.read(&long[..8], Nanos::ZERO));
    }

    #[test]
    fn the_budget_refuses_what_is_beyond_it() {
        let mut model = FlashModel::new(960, 1.0);
        let day = Nanos::from_secs(86_400);
        // Whatever is read twice is worth its writes: 960 pages for nothing, as many of the full budget, then a day's.
        let hour = |model: &mut FlashModel, first: u64, now| {
            (0..2).for_each(|_| (first..first + 2000).for_each(|line| _ = model.read(&[(line, 3)], now)));
        };
        for round in 0..20 {
            hour(&mut model, round * 10_000, Nanos::ZERO);
        }
        let (written, most) = (model.written_pages(), 2 * model.pages());
        assert!(
            written <= most && written + 2 > most && model.refused_budget_pages() > 0,
            "{written} of {most}"
        );
        for round in 20..40 {
            hour(&mut model, round * 10_000, day);
        }
        assert!(model.written_pages() <= written + model.pages(), "a day's budget");
        assert!(model.written_pages() > written + model.pages() / 2, "a day's budget is used");
    }
}
