//! A device part gets more pieces, or gives some back.
//!
//! Ways are added and dropped at the end, and nothing else changes its place. The header tells for each way since which
//! position in the log it is there. So records and map pages of an earlier life of a way do not count, and nothing has
//! to be wiped.

use std::rc::Rc;

use tier0_units::Lba;

use crate::budget::Budget;
use crate::device::Device;
use crate::doorkeeper::Doorkeeper;
use crate::error::FlashError;
use crate::patience::Fault;
use crate::place::FlashPlace;
use crate::state::Mode;

impl Device {
    /// The device has these pieces from now on.
    pub(crate) async fn resize(self: &Rc<Self>, pieces: Vec<Lba>) -> Result<(), FlashError> {
        let _fill = self.fill_turn.acquire(1).await;
        let _log = self.log_turn.acquire(1).await;
        let _map = self.map_turn.acquire(1).await;
        let (place, ways, before) = {
            let state = self.state.borrow();
            if state.mode != Mode::On {
                return Err(FlashError::WrongState(self.number));
            }
            let place = FlashPlace { pieces, ..(*state.place).clone() };
            place.check()?;
            if place.pieces.iter().zip(&state.place.pieces).any(|(new, old)| new != old) {
                return Err(FlashError::BadPieces);
            }
            let ways = state.shape.ways_in(&place);
            if ways == 0 || !state.shape.fits(&place) {
                return Err(FlashError::TooSmall { pages: place.pages() });
            }
            (place, ways, state.shape.ways)
        };
        let result = match ways < before {
            true => self.shrink(place, ways).await,
            false => self.grow(place, ways).await,
        };
        self.changed.notify_all();
        result.map_err(|fault| {
            self.fail(&fault);
            fault.of(self.number)
        })
    }

    async fn grow(self: &Rc<Self>, place: FlashPlace, ways: u64) -> Result<(), Fault> {
        let (log_end, before) = {
            let state = self.state.borrow();
            (state.log_end, state.shape.ways)
        };
        if ways > before {
            self.relabel(|header| header.born.resize(ways as usize, log_end)).await?;
        }
        self.take_shape(place, ways)
    }

    async fn shrink(self: &Rc<Self>, place: FlashPlace, ways: u64) -> Result<(), Fault> {
        {
            let mut state = self.state.borrow_mut();
            state.pending.retain(|line, _| u64::from(line.way) < ways);
            state.dirty.drop_ways(ways);
            // What is struck out from now on is not found in these ways, so it is durable when the header is: until then
            // the log stands still, and settling waits for it.
            state.changes += 1;
            state.struck = state.changes;
        }
        self.take_shape(place, ways)?;
        while !self.state.borrow().is_off() && self.is_read_from(ways) {
            self.ended.wait().await;
        }
        self.relabel(|header| header.born.truncate(ways as usize)).await
    }

    fn is_read_from(&self, ways: u64) -> bool {
        self.state.borrow().reading.keys().any(|line| u64::from(line.way) >= ways)
    }

    /// Has so many ways from now on, in memory.
    fn take_shape(&self, place: FlashPlace, ways: u64) -> Result<(), Fault> {
        let mut state = self.state.borrow_mut();
        if state.is_off() {
            return Err(Fault::Off);
        }
        state.place = Rc::new(place);
        if ways == state.shape.ways {
            return Ok(());
        }
        let now = self.world.now();
        state.admission.free_fills += ways.saturating_sub(state.shape.ways) * u64::from(state.shape.sets);
        state.shape.ways = ways;
        state.table = state.table.with_ways(ways);
        state.admission.doorkeeper = Doorkeeper::new(state.shape.lines());
        let level = state.admission.budget.level(now);
        state.admission.budget = Budget::with(state.room_bytes(), self.options.writes_per_day, level, now);
        Ok(())
    }
}
