//! Lines that count as cached without having been written: how a performance study gets a warm cache in no simulated time.
//!
//! Only for worlds without content, in which nothing has to be read back. No record tells of such a line, as nothing of such
//! a world outlives it.

use std::ops::Range;

use tier0_world::PayloadWidth;

use crate::cache::FlashCache;
use crate::checks::page_check;
use crate::entry::Entry;
use crate::state::{Mode, State};
use crate::table::RRPV_LONG;

impl FlashCache {
    /// Has pages of a slot count as cached. Where their set is full another line gives way, by the cache's own policy: the last
    /// to be brought in are the last to go. Nothing is counted, and nothing is read or written.
    ///
    /// # Panics
    /// In a world that keeps content.
    pub fn bring_in(&self, slot: u64, pages: Range<u32>) {
        assert_eq!(self.shared.world.width(), PayloadWidth::NONE, "content cannot be brought in without I/O");
        for page in pages {
            let Some(x) = self.shared.lines.number(slot, page) else { return };
            let Some(home) = self.home(x) else { return };
            let mut state = home.state.borrow_mut();
            if state.mode == Mode::On {
                state.bring_in(x, page % 2);
            }
        }
    }

    /// The writes that its devices may take have been used up, as in a cache that has been in use for long: from now on they
    /// take what a day allows.
    pub fn use_up_budget(&self) {
        self.each_on(|state| state.admission.budget.use_up());
    }

    fn each_on(&self, change: impl Fn(&mut State)) {
        for device in self.devices().iter() {
            let mut state = device.state.borrow_mut();
            if state.mode == Mode::On {
                change(&mut state);
            }
        }
    }
}

impl State {
    fn bring_in(&mut self, x: u64, half: u32) {
        let Some(spot) = self.spot(x) else { return };
        let (valid, check) = (1 << half, page_check(x, half, &[]));
        if let Some((line, old)) = self.table.find(spot) {
            if old.valid & valid == 0 {
                let entry = Entry { valid: old.valid | valid, check: old.check ^ check, ..old };
                self.table.set(line, Some(entry));
            }
            return;
        }
        let (writing, reading) = (&self.writing, &self.reading);
        let is_idle = |line| !writing.contains(&line) && !reading.contains_key(&line);
        let Some(line) = self.table.victim(spot.set, is_idle) else { return };
        if self.table.get(line).is_none() {
            self.admission.free_fills = self.admission.free_fills.saturating_sub(1);
        }
        self.table.set(line, Some(Entry { tag: spot.tag, valid, rrpv: RRPV_LONG, check }));
    }
}
