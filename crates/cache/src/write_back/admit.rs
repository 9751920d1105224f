//! Admission: delays writers when memory or log get short, smoothly, in the order of arrival within a volume and fairly between
//! volumes (`turns`).
//!
//! A writer of a volume that has had less than its share waits for room only. What it takes delays the others, so that all
//! together are as fast as the log gets rid of pages.

use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::{IoError, PlantedBug, planted};

use super::Inner;
use crate::level::admission_rate;

/// How long a delayed writer waits before it looks again how full it is.
const SLICE: Nanos = Nanos::from_millis(2);
/// Pages that a record of zeros counts as when it is delayed.
const RECORD_PAGES: f64 = 0.25;
/// After so many failures in a row of the oldest record's extent, writers are refused instead of waiting for it.
const PATIENCE: u32 = 3;

/// Room for a record, given back when dropped.
pub(crate) struct Admission {
    inner: Rc<Inner>,
    pages: u64,
    blocks: u64,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut state = self.inner.state.borrow_mut();
        state.reserved_pages -= self.pages;
        state.reserved_blocks -= self.blocks;
        drop(state);
        if self.inner.has_delayed_writers() {
            self.inner.progress.notify_all();
        }
    }
}

/// A write that is delayed, counted when it waits no more: it was admitted, or refused.
struct Delay<'a> {
    inner: &'a Inner,
    began: Nanos,
}

impl Drop for Delay<'_> {
    fn drop(&mut self) {
        let waited = self.inner.world.now().saturating_sub(self.began);
        let mut state = self.inner.state.borrow_mut();
        let counts = &mut state.counts.flushed;
        counts.delayed_writes += u64::from(waited > Nanos::ZERO);
        counts.delayed_ns += waited.0;
    }
}

impl Inner {
    /// Waits until there is room for a record of a volume with so many data pages.
    pub(crate) async fn admit(self: &Rc<Self>, volume: u32, pages: u64) -> Result<Admission, IoError> {
        self.check_log()?;
        let blocks = pages + 1;
        if self.has_delayed_writers() || self.level(pages, blocks) > self.high() {
            let queue = Box::pin(self.queue(volume, pages, blocks));
            self.unless_refused(queue).await??;
        }
        Ok(self.reserve(pages, blocks))
    }

    /// Takes room without asking.
    pub(crate) fn reserve(self: &Rc<Self>, pages: u64, blocks: u64) -> Admission {
        let mut state = self.state.borrow_mut();
        state.reserved_pages += pages;
        state.reserved_blocks += blocks;
        Admission { inner: self.clone(), pages, blocks }
    }

    /// Waits for the volume's turn, and then as long as it takes to destage as much.
    async fn queue(&self, volume: u32, pages: u64, blocks: u64) -> Result<(), IoError> {
        let _delay = Delay { inner: self, began: self.world.now() };
        let mut owed = (pages as f64).max(RECORD_PAGES);
        let place = self.admission.join(volume, owed);
        loop {
            place.until_first().await;
            owed += self.passed.take();
            self.check_log()?;
            let level = self.level(pages, blocks);
            // Nothing is dirty that could make room: a writer to be slowed down would wait for ever. The smallest log is
            // full with one page, where the rate is zero.
            if level <= 1.0 && self.is_empty() && !planted(PlantedBug::DelayWhenNothingIsDirty) {
                break;
            }
            // Nothing is destaged to make room, so a writer to be slowed down would wait for ever.
            if let Some(error) = self.refusal.when_full().filter(|_| level > self.high()) {
                return Err(error);
            }
            let rate = self.state.borrow().room_rate.pages_per_s();
            let Some(rate) = admission_rate(level, self.high(), rate) else { break };
            if level > 1.0 {
                if self.is_empty() {
                    break;
                }
                if let Some(error) = self.blockage() {
                    return Err(error);
                }
                self.work.notify_all();
                self.progress.wait().await;
                continue;
            }
            if place.is_within_share() {
                self.passed.set(owed);
                break;
            }
            let rest = Nanos::from_secs_f64(owed / rate.max(f64::MIN_POSITIVE));
            if rest == Nanos::ZERO {
                break;
            }
            let slice = rest.min(SLICE);
            self.world.sleep(slice).await;
            // Otherwise another volume's writer has used the time.
            if place.is_first() {
                owed -= rate * slice.as_secs_f64();
            }
        }
        place.take();
        Ok(())
    }

    /// Whether a writer waits for room.
    pub(super) fn has_delayed_writers(&self) -> bool {
        !self.admission.is_empty()
    }

    /// Whether nothing is dirty or about to be, so that waiting would not help.
    fn is_empty(&self) -> bool {
        let state = self.state.borrow();
        state.records.first() == state.records.end()
            && state.reserved_blocks == 0
            && state.in_flight.is_empty()
    }

    /// The failure that keeps the log from being released, if it is there to stay.
    fn blockage(&self) -> Option<IoError> {
        let state = self.state.borrow();
        let failure = state.failed.get(&state.oldest()?.1)?;
        (failure.failures >= PATIENCE && state.in_flight.is_empty()).then_some(failure.error)
    }
}
