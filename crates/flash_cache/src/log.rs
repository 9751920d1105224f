//! The log of a device: what has changed becomes records, one after the other.
//!
//! A record is appended at a time, and all that has changed meanwhile waits for the next one. A record says what lies at
//! some lines from now on, so the map pages on the drive may be older or younger than it: replaying the log over them
//! gives the same in either case, as long as no record is released before all map pages that it names were written
//! anew.

use std::rc::Rc;

use tier0_journal::{Record, Ring};
use tier0_units::Nanos;

use crate::device::Device;
use crate::patience::Fault;
use crate::record::{self, Change};
use crate::state::Mode;

/// The most changes of a record.
const CHANGES_MAX: usize = 2048;
/// The share of the log that a record takes at most: 1 / 8.
const RECORD_SHARE: u64 = 8;
/// Bytes of a frame's header, more than it has.
const FRAME_BYTES: u64 = 160;
/// So long a line that came in waits for a record that others need.
pub(crate) const INSERT_PATIENCE: Nanos = Nanos::from_millis(500);

impl Device {
    /// All changes up to this count are to be durable.
    pub(crate) fn demand(&self, count: u64) {
        let is_more = {
            let mut state = self.state.borrow_mut();
            let is_more = state.demanded < count;
            state.demanded = state.demanded.max(count);
            is_more
        };
        if is_more {
            self.changed.notify_all();
        }
    }

    /// Ends when all changes up to this count are durable.
    pub(crate) async fn log_through(&self, count: u64) -> Result<(), Fault> {
        self.demand(count);
        loop {
            {
                let state = self.state.borrow();
                if state.is_off() {
                    return Err(Fault::Off);
                }
                if state.logged >= count {
                    return Ok(());
                }
            }
            self.changed.wait().await;
        }
    }

    /// The task that writes records.
    pub(crate) async fn keep_logging(self: Rc<Self>) {
        loop {
            let (mode, is_due) = {
                let state = self.state.borrow();
                (state.mode, state.demanded > state.logged)
            };
            if mode != Mode::On {
                return;
            }
            if !is_due {
                self.changed.wait().await;
                continue;
            }
            let turn = self.log_turn.acquire(1).await;
            let result = self.log_all().await;
            drop(turn);
            if let Err(fault) = result {
                return self.fail(&fault);
            }
        }
    }

    /// Logs everything that has changed.
    async fn log_all(self: &Rc<Self>) -> Result<(), Fault> {
        let ring = self.ring()?;
        let (changes, count) = {
            let mut state = self.state.borrow_mut();
            state.unlogged_since = None;
            (std::mem::take(&mut state.pending), state.changes)
        };
        let changes: Vec<Change> = changes.into_iter().collect();
        for part in changes.chunks(changes_max(&ring)) {
            self.wait_for_room(&ring, part.len()).await?;
            self.append(&ring, part).await?;
        }
        let mut state = self.state.borrow_mut();
        if state.is_off() {
            return Err(Fault::Off);
        }
        state.has_logged(count);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    async fn append(self: &Rc<Self>, ring: &Ring, changes: &[Change]) -> Result<(), Fault> {
        let budget = {
            let mut state = self.state.borrow_mut();
            if state.is_off() {
                return Err(Fault::Off);
            }
            state.admission.budget.level(self.world.now())
        };
        let record = Record { header: record::encode(budget, changes), pages: Vec::new() };
        let append = ring.append(record);
        let position = self.command(append).await?.position;
        self.log_loss.check()?;
        {
            let mut state = self.state.borrow_mut();
            if state.is_off() {
                return Err(Fault::Off);
            }
            let shape = state.shape;
            for (line, _) in changes {
                state.dirty.name(shape.map_of(*line), position.0);
            }
            // Only from now on may a checkpoint release this record: it knows its pages.
            state.log_end = position.0 + 1;
        }
        self.checkpoint_if_due(ring);
        Ok(())
    }

    /// Waits until a record of so many changes fits, while a checkpoint makes room. There always is something to
    /// release: a record takes but a part of the log, and what is in the log names pages that can be written.
    async fn wait_for_room(self: &Rc<Self>, ring: &Ring, changes: usize) -> Result<(), Fault> {
        loop {
            let space = ring.space();
            let needed = Ring::record_sectors(record::bytes_of(changes), 0);
            if space.live + 2 * needed <= space.capacity {
                return Ok(());
            }
            if self.state.borrow().is_off() {
                return Err(Fault::Off);
            }
            self.checkpoint_if_due(ring);
            self.changed.wait().await;
        }
    }
}

/// The most changes of a record in this log.
fn changes_max(ring: &Ring) -> usize {
    let bytes = ring.space().capacity / RECORD_SHARE * 512;
    record::most_changes(bytes.saturating_sub(FRAME_BYTES)).min(CHANGES_MAX)
}
