//! Refusals: while the array waits for a drive, hosts shall not wait for ever.
//!
//! A task that waits on behalf of a host waits through [`Inner::unless_refused`]. Nothing below is given up by that: a
//! record that was on its way into the log goes on, pages stay dirty, and what a refused write has changed may or may
//! not become stable later. What the cache itself does, destaging and draining, is never refused.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_util::future::{Either, select};
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS};
use tier0_world::{IoError, PlantedBug, planted};

use super::{Inner, WriteBack};

/// How long anything may take while requests are refused: what needs no drive that is away is done much earlier.
const GRACE: Nanos = Nanos::from_secs(1);

/// What is refused at present, and who wants to know when that changes.
#[derive(Default)]
pub(crate) struct Refusal {
    waiting: Cell<Option<IoError>>,
    full: Cell<Option<IoError>>,
    /// Of records before this number some may have been refused: their writers were told that they failed.
    up_to: Cell<u64>,
    /// Of the tasks that wait, by number; unlike with a [`Notify`](tier0_world::sync::Notify), only as long as they do.
    wakers: RefCell<BTreeMap<u64, Waker>>,
    next: Cell<u64>,
}

impl Refusal {
    /// The error of writers that do not fit into the log, where they are not to wait.
    pub(super) fn when_full(&self) -> Option<IoError> {
        self.full.get()
    }

    fn wake(&self) {
        let all = std::mem::take(&mut *self.wakers.borrow_mut());
        all.into_values().for_each(Waker::wake);
    }
}

/// A place among those who wait; left when dropped.
struct Place<'a> {
    refusal: &'a Refusal,
    number: Option<u64>,
}

impl Place<'_> {
    fn take(&mut self, context: &Context<'_>) {
        let number = *self.number.get_or_insert_with(|| {
            let next = self.refusal.next.get();
            self.refusal.next.set(next + 1);
            next
        });
        self.refusal.wakers.borrow_mut().insert(number, context.waker().clone());
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.refusal.wakers.borrow_mut().remove(&number);
        }
    }
}

impl WriteBack {
    /// Callers that wait for a drive get `error` from now on instead of waiting longer: reads, writers that wait for
    /// room or for the log, and flushes. None ends that; what could not be destaged is then tried again at once.
    ///
    /// A write that is refused may have changed what its range holds, and that may become stable later; nothing that is
    /// in memory is dropped. A flush that succeeds afterwards covers all of it.
    pub fn refuse(&self, error: Option<IoError>) {
        self.0.refusal.waiting.set(error);
        self.0.refusal.wake();
        if error.is_none() {
            self.try_again();
        }
    }

    /// Writers that do not fit into the log get `error` from now on instead of waiting for room; none ends that.
    pub fn refuse_when_full(&self, error: Option<IoError>) {
        self.0.refusal.full.set(error);
        self.0.progress.notify_all();
        if error.is_none() {
            self.try_again();
        }
    }

    /// The drives answer again: what failed is due now, and has not failed yet.
    fn try_again(&self) {
        let now = self.0.world.now();
        let mut state = self.0.state.borrow_mut();
        for failure in state.failed.values_mut() {
            (failure.due, failure.failures) = (now, 0);
        }
        drop(state);
        self.0.work.notify_all();
        self.0.progress.notify_all();
    }
}

impl Inner {
    /// Waits for `work` on behalf of a host. It must not matter if it is dropped half way.
    ///
    /// # Errors
    /// Why waiting is refused.
    pub(crate) async fn unless_refused<T>(&self, work: impl Future<Output = T>) -> Result<T, IoError> {
        let mut work = pin!(work);
        loop {
            let mut place = Place { refusal: &self.refusal, number: None };
            let ended = poll_fn(|context| {
                if let Poll::Ready(output) = work.as_mut().poll(context) {
                    return Poll::Ready(Some(output));
                }
                if self.refusal.waiting.get().is_some() {
                    return Poll::Ready(None);
                }
                place.take(context);
                Poll::Pending
            });
            if let Some(output) = ended.await {
                return Ok(output);
            }
            drop(place);
            // Out of line: seldom needed.
            let grace = Box::pin(self.world.sleep(GRACE));
            if let Either::Left((output, _)) = select(work.as_mut(), grace).await {
                return Ok(output);
            }
            if let Some(error) = self.refusal.waiting.get() {
                self.refusal.up_to.set(self.state.borrow().records.end());
                return Err(error);
            }
        }
    }

    /// Waits until no page of the range is what a refused write left in memory and the log does not have yet: what a host
    /// has once read after the failure must not be taken back by a power cut.
    ///
    /// # Errors
    /// Why waiting is refused.
    pub(super) async fn until_readable(
        &self,
        extent: ExtentId,
        first_sector: u64,
        sectors: u64,
    ) -> Result<(), IoError> {
        let settled = async {
            while self.has_refused(extent, first_sector, sectors) {
                self.check_log()?;
                self.settled.wait().await;
            }
            Ok(())
        };
        self.unless_refused(settled).await?
    }

    fn has_refused(&self, extent: ExtentId, first_sector: u64, sectors: u64) -> bool {
        let state = self.state.borrow();
        let (settled, up_to) = (state.records.settled(), self.refusal.up_to.get());
        if settled >= up_to || planted(PlantedBug::ReadRefusedWrite) {
            return false;
        }
        let pages =
            (first_sector / PAGE_SECTORS) as u32..(first_sector + sectors).div_ceil(PAGE_SECTORS) as u32;
        let is_open = |id| !state.records.is_before(id, settled) && state.records.is_before(id, up_to);
        state.pages.range(extent, pages).any(|(_, page)| is_open(page.record))
    }

    /// Whether some record that was refused may not be in the log yet.
    #[inline]
    pub(super) fn any_refused(&self) -> bool {
        let up_to = self.refusal.up_to.get();
        up_to > 0 && self.state.borrow().records.settled() < up_to
    }
}
