//! Reads of slots whose pages are to come in, unless they change meanwhile.

use std::ops::Range;

use tier0_world::BufMut;

use super::{ReadCache, Source};

/// The reads under way.
#[derive(Default)]
pub(super) struct Fills {
    under_way: Vec<UnderWay>,
    begun: u64,
}

struct UnderWay {
    number: u64,
    slot: u64,
    pages: Range<u32>,
}

impl Fills {
    fn begin(&mut self, slot: u64, pages: Range<u32>) -> u64 {
        self.begun += 1;
        self.under_way.push(UnderWay { number: self.begun, slot, pages });
        self.begun
    }

    /// Whether a read may come in: it was not struck out.
    fn end(&mut self, number: u64) -> bool {
        let found = self.under_way.iter().position(|fill| fill.number == number);
        found.map(|at| self.under_way.swap_remove(at)).is_some()
    }

    /// How many pages are under way.
    pub(super) fn pages(&self) -> usize {
        self.under_way.iter().map(|fill| fill.pages.len()).sum()
    }

    /// How many have begun so far.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// Whether one of the first `begun` reads is under way and brings all of these pages.
    pub(super) fn covers(&self, slot: u64, pages: &Range<u32>, begun: u64) -> bool {
        let covers = |fill: &UnderWay| {
            fill.number <= begun
                && fill.slot == slot
                && fill.pages.start <= pages.start
                && pages.end <= fill.pages.end
        };
        self.under_way.iter().any(covers)
    }

    /// Pages change: what is read of them does not come in.
    pub(super) fn strike(&mut self, slot: u64, pages: impl Iterator<Item = u32> + Clone) {
        let is_struck =
            |fill: &UnderWay| fill.slot == slot && pages.clone().any(|page| fill.pages.contains(&page));
        self.under_way.retain(|fill| !is_struck(fill));
    }
}

/// A read of a slot that is under way; dropping it ends it.
pub(crate) struct Fill<'a> {
    cache: &'a ReadCache,
    number: u64,
    slot: u64,
    source: Source,
}

impl<'a> Fill<'a> {
    pub(super) fn begin(cache: &'a ReadCache, slot: u64, pages: Range<u32>, source: Source) -> Fill<'a> {
        let number = cache.state.borrow_mut().fills.begin(slot, pages);
        Fill { cache, number, slot, source }
    }

    /// Takes in what was read from `first_sector` on, unless some of it has changed since this began.
    pub(crate) fn keep(self, first_sector: u64, buf: &BufMut) {
        let may_come_in = self.cache.state.borrow_mut().fills.end(self.number);
        if may_come_in {
            self.cache.keep(self.slot, first_sector, buf, self.source);
        }
    }
}

impl Drop for Fill<'_> {
    fn drop(&mut self) {
        self.cache.state.borrow_mut().fills.end(self.number);
        self.cache.filled.notify_all();
    }
}
