//! How lines come in: batches, in an order that makes them safe.
//!
//! 1. Places are chosen, and what was there is removed from memory.
//! 2. A record says that it is gone. It also tells of the lines of the batch before, whose data are stable.
//! 3. The data are written.
//! 4. The drive is flushed.
//! 5. The lines can be read. A record tells of them with the next batch, or when they have waited long enough.
//!
//! So nothing durable ever says that a line is there before its data are, and no data are written over before it is
//! durable that they do not count. A page that is added to a line writes over nothing that counts, and needs no record
//! before it.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{join_all, select};
use tier0_units::{Nanos, PAGE_SECTORS};
use tier0_world::{Buf, BufMut, PayloadWidth, PlantedBug, planted};

use crate::checks::page_check;
use crate::device::Device;
use crate::entry::{Entry, Line};
use crate::line::PAGE_BYTES;
use crate::log::INSERT_PATIENCE;
use crate::patience::Fault;
use crate::state::{Filling, Mode, State};
use crate::table::RRPV_LONG;

/// Lines of a batch.
pub(crate) const BATCH_LINES: usize = 128;
/// Lines that may wait.
pub(crate) const QUEUE_LINES_MAX: usize = 4 * BATCH_LINES;
/// So long a line waits for others that make up its batch.
const BATCH_PATIENCE: Nanos = Nanos::from_millis(500);
/// The share of the log beyond which no batch begins before a checkpoint has made room: the rest is for strikes.
const LOG_SHARE: (u64, u64) = (3, 4);

/// A line that waits to be written.
pub(crate) struct Offered {
    pub(crate) x: u64,
    /// What its pages hold, of those that were offered.
    pub(crate) pages: [Option<Buf>; 2],
    pub(crate) since: Nanos,
}

impl Offered {
    pub(crate) fn halves(&self) -> u8 {
        u8::from(self.pages[0].is_some()) | u8::from(self.pages[1].is_some()) << 1
    }
}

/// A line that is written to its place.
struct Fill {
    offered: Offered,
    line: Line,
    tag: u32,
}

impl Device {
    /// The task that takes lines in.
    pub(crate) async fn keep_filling(self: Rc<Self>) {
        while self.next_batch().await {
            let turn = self.fill_turn.acquire(1).await;
            let result = self.fill().await;
            drop(turn);
            if let Err(fault) = result {
                return self.fail(&fault);
            }
        }
    }

    /// Ends when a batch is due; false when the device is off.
    async fn next_batch(&self) -> bool {
        loop {
            let now = self.world.now();
            let deadline = {
                let mut state = self.state.borrow_mut();
                if state.mode != Mode::On {
                    return false;
                }
                let due = state.queue.front().map(|first| first.since.saturating_add(BATCH_PATIENCE));
                if state.queue.len() >= BATCH_LINES || due.is_some_and(|due| due <= now) {
                    return true;
                }
                let log_due = state.unlogged_since.map(|since| since.saturating_add(INSERT_PATIENCE));
                if log_due.is_some_and(|due| due <= now) {
                    state.unlogged_since = None;
                    let count = state.changes;
                    drop(state);
                    self.demand(count);
                    continue;
                }
                due.into_iter().chain(log_due).min()
            };
            match deadline {
                Some(deadline) => {
                    select(pin!(self.changed.wait()), pin!(self.world.sleep_until(deadline))).await;
                }
                None => self.changed.wait().await,
            }
        }
    }

    async fn fill(self: &Rc<Self>) -> Result<(), Fault> {
        self.wait_for_log_room().await?;
        let (fills, count) = {
            let mut state = self.state.borrow_mut();
            if state.is_off() {
                return Err(Fault::Off);
            }
            // What waits is struck out of the queue, and what is chosen out of the fills: nothing is in between.
            let lines = state.queue.len().min(BATCH_LINES);
            let batch: Vec<Offered> = state.queue.drain(..lines).collect();
            let fills = self.choose(&mut state, batch);
            (fills, state.changes)
        };
        if fills.is_empty() {
            return Ok(());
        }
        if planted(PlantedBug::FlashInsertBeforeData) {
            let mut state = self.state.borrow_mut();
            fills.iter().for_each(|fill| {
                let entry = state.table.get(fill.line).map_or(fill.entry(), |old| fill.added_to(old));
                state.change(fill.line, Some(entry));
            });
        }
        if !planted(PlantedBug::FlashOverwriteBeforeEvicted) {
            self.log_through(count).await?;
        }
        let written = join_all(fills.iter().map(|fill| self.write(fill))).await;
        if written.iter().any(|result| matches!(result, Err(Fault::Slow(_) | Fault::Off))) {
            return Err(Fault::Slow(self.options.patience));
        }
        self.flush().await?;
        let mut state = self.state.borrow_mut();
        if state.is_off() {
            return Err(Fault::Off);
        }
        for (fill, result) in fills.iter().zip(written) {
            state.writing.remove(&fill.line);
            let filling = state.filling.remove(&fill.offered.x);
            if result.is_ok() && filling.is_some_and(|filling| !filling.is_struck) {
                self.come_in(&mut state, fill);
            }
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits while the log is so full that strikes may need the rest.
    async fn wait_for_log_room(self: &Rc<Self>) -> Result<(), Fault> {
        let ring = self.ring()?;
        loop {
            if self.state.borrow().is_off() {
                return Err(Fault::Off);
            }
            let space = ring.space();
            if space.live * LOG_SHARE.1 <= space.capacity * LOG_SHARE.0 {
                return Ok(());
            }
            self.checkpoint_if_due(&ring);
            self.changed.wait().await;
        }
    }

    /// Chooses a place for each line, and removes what is there.
    fn choose(&self, state: &mut State, batch: Vec<Offered>) -> Vec<Fill> {
        let mut fills = Vec::with_capacity(batch.len());
        for mut offered in batch {
            let Some(spot) = state.spot(offered.x) else { continue };
            if state.filling.contains_key(&offered.x) {
                continue;
            }
            let line = match state.table.find(spot) {
                Some((line, entry)) => {
                    for half in 0..2 {
                        if entry.valid & 1 << half != 0 {
                            offered.pages[half] = None;
                        }
                    }
                    line
                }
                None => {
                    let (table, writing, reading) = (&mut state.table, &state.writing, &state.reading);
                    let may_take = |line: Line| !writing.contains(&line) && !reading.contains_key(&line);
                    let Some(line) = table.victim(spot.set, may_take) else { continue };
                    if state.evict(line) {
                        self.shared.counters.borrow_mut().evicted += 1;
                    }
                    line
                }
            };
            if offered.halves() == 0 {
                continue;
            }
            state.writing.insert(line);
            state.filling.insert(offered.x, Filling { line, is_struck: false });
            fills.push(Fill { offered, line, tag: spot.tag });
        }
        fills
    }

    /// Writes a line's data to its place.
    async fn write(self: &Rc<Self>, fill: &Fill) -> Result<(), Fault> {
        let (mut data, first) = match &fill.offered.pages {
            [Some(first), Some(second)] => {
                (BufMut::concat([first, second].into_iter(), self.world.width()).freeze(), 0)
            }
            [Some(page), None] => (page.clone(), 0),
            [None, Some(page)] => (page.clone(), 1),
            [None, None] => return Ok(()),
        };
        let runs = {
            let state = self.state.borrow();
            let filling = state.filling.get(&fill.offered.x);
            if filling.is_none_or(|filling| filling.is_struck || filling.line != fill.line) {
                return Ok(());
            }
            let bytes = u64::from(data.sectors()) * 512;
            self.shared.counters.borrow_mut().written_bytes += bytes;
            let at = state.shape.line_at(fill.line) + first;
            state.place.runs(at, u64::from(data.sectors()) / PAGE_SECTORS)
        };
        for (lba, sectors) in runs {
            let (drive, part) = (self.drive.clone(), data.slice(0, sectors));
            data = data.slice(sectors, data.sectors() - sectors);
            self.command(async move { drive.write(lba, part, false).await }).await?;
        }
        Ok(())
    }

    /// A line whose data are stable can be read from now on.
    fn come_in(&self, state: &mut State, fill: &Fill) {
        let entry = match state.table.get(fill.line) {
            Some(old) => fill.added_to(old),
            None => fill.entry(),
        };
        state.table.set(fill.line, Some(entry));
        state.change(fill.line, Some(entry));
        state.unlogged_since.get_or_insert(self.world.now());
    }
}

impl Fill {
    /// The entry of its pages.
    fn entry(&self) -> Entry {
        let mut check = 0;
        for (half, page) in (0..).zip(&self.offered.pages) {
            if let Some(page) = page {
                check ^= page_check(self.offered.x, half, page.as_slice());
            }
        }
        Entry { tag: self.tag, valid: self.offered.halves(), rrpv: RRPV_LONG, check }
    }

    /// The entry of its pages and those that are there.
    fn added_to(&self, old: Entry) -> Entry {
        let new = self.entry();
        debug_assert!(old.tag == new.tag && old.valid & new.valid == 0, "a page comes in once");
        Entry { valid: old.valid | new.valid, check: old.check ^ new.check, ..old }
    }
}

/// A copy of the page that begins at a sector of `content`; none where that is not kept so far.
pub(crate) fn page_of(content: &[u8], width: PayloadWidth, first_sector: u32) -> Option<Buf> {
    let from = first_sector as usize * width.bytes();
    let mut page = BufMut::new(PAGE_SECTORS as u32, width);
    let length = page.as_slice().len();
    page.as_mut_slice().copy_from_slice(content.get(from..from + length)?);
    Some(page.freeze())
}

/// Bytes that a line's pages take.
pub(crate) fn bytes_of(halves: u8) -> u64 {
    u64::from(halves.count_ones()) * PAGE_BYTES
}
