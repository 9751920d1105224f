//! The scheduler: one task that decides how many batches are under way, and when.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::select;
use tier0_units::{ExtentId, Nanos};

use super::Inner;
use super::select::{Batch, Need};
use super::state::State;
use crate::flushing::FlushCause;
use crate::level::batches_wanted;

/// What to do next.
enum Step {
    Begin(Batch),
    Copy(ExtentId),
    /// Look again when something has happened.
    Wait,
    /// Look again at that time, or earlier if something happens.
    WaitUntil(Nanos),
    End,
}

impl Inner {
    pub(crate) async fn schedule_batches(self: Rc<Self>) {
        loop {
            match self.next_step() {
                Step::Begin(batch) => {
                    let inner = self.clone();
                    self.world.spawn(async move { inner.destage(batch).await }).detach();
                }
                Step::Copy(extent) => {
                    let inner = self.clone();
                    self.world.spawn(async move { inner.copy_out(extent).await }).detach();
                }
                Step::Wait => self.work.wait().await,
                Step::WaitUntil(time) => {
                    select(pin!(self.world.sleep_until(time)), pin!(self.work.wait())).await;
                }
                Step::End => return,
            }
        }
    }

    fn next_step(&self) -> Step {
        let level = self.level(0, 0);
        let now = self.world.now();
        let mut state = self.state.borrow_mut();
        (state.starved, state.waiting_for_age) = (false, false);
        if state.is_stopped() {
            return if state.ends() { Step::End } else { Step::Wait };
        }
        if state.log_failure.is_some() {
            return Step::Wait;
        }
        if let Some(extent) = self.next_copy(&mut state) {
            return Step::Copy(extent);
        }
        let hurry = state.draining > 0 || !state.urgent.is_empty();
        let wanted = if hurry {
            self.options.batches_max
        } else {
            batches_wanted(level, self.low(), self.high(), self.options.batches_max)
        };
        if state.in_flight.len() >= wanted {
            return Step::Wait;
        }
        let need = if state.draining > 0 || level >= self.low() {
            Need::Space
        } else {
            let since = Nanos(now.0.saturating_sub(self.options.age_max.0));
            let limit = if now < self.options.age_max || now < state.next_aged {
                0
            } else {
                state.records.first_since(since)
            };
            Need::Aged(limit)
        };
        let cause = self.cause(level, &state);
        drop(state);
        if let Some(batch) = self.next_batch(need, cause) {
            return Step::Begin(batch);
        }
        self.rest(&mut self.state.borrow_mut(), need)
    }

    /// Why the next batch is begun, unless it is of extents that a caller waits for.
    fn cause(&self, level: f64, state: &State) -> FlushCause {
        if state.draining > 0 {
            FlushCause::Demanded
        } else if level >= self.high() || self.has_delayed_writers() {
            FlushCause::Forced
        } else if level >= self.low() {
            FlushCause::HighWatermark
        } else {
            FlushCause::Idle
        }
    }

    /// There is nothing to begin: when to look again.
    ///
    /// An extent whose time for another attempt is past and which was not taken waits for its turn in the log: what
    /// brings that rings the bell, while a timer that is past would turn this task in circles.
    fn rest(&self, state: &mut State, need: Need) -> Step {
        let now = self.world.now();
        state.starved = need == Need::Space || state.records.oldest_time().is_none();
        state.waiting_for_age = matches!(need, Need::Aged(_));
        let retry = state
            .failed
            .iter()
            .filter(|(extent, _)| !state.busy.contains(extent))
            .map(|(_, t)| t.due)
            .filter(|due| *due > now)
            .min();
        let aged = match need {
            Need::Space => None,
            Need::Aged(_) => state.records.oldest_time().map(|time| self.aged_at(time, state)),
        };
        match [retry, aged].into_iter().flatten().min() {
            Some(time) => Step::WaitUntil(time),
            None => Step::Wait,
        }
    }

    /// When the oldest record counts as old: ages are known to a sixteenth.
    fn aged_at(&self, oldest: Nanos, state: &State) -> Nanos {
        let step = Nanos(self.options.age_max.0 / 8 + 1);
        let old = oldest.saturating_add(self.options.age_max).saturating_add(step);
        // Later than now in any case: what is old and was not taken is not stable yet, or busy.
        old.max(state.next_aged).max(self.world.now().saturating_add(step))
    }

    /// Asks for everything to be destaged, until the result is dropped.
    pub(super) fn begin_drain(self: &Rc<Self>) -> Draining {
        self.state.borrow_mut().draining += 1;
        Draining(self.clone())
    }
}

/// A caller wants everything destaged.
pub(super) struct Draining(Rc<Inner>);

impl Drop for Draining {
    fn drop(&mut self) {
        self.0.state.borrow_mut().draining -= 1;
    }
}
