//! Scrubbing a pool: every shard goes through its slots in order; how far all of them are is remembered, so that a scrub
//! goes on after a restart.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tier0_pool::{MetaRecord, ScrubCursor};
use tier0_units::Nanos;

use super::Control;
use crate::upkeep::{Order, ScrubShared};

/// How often the cursor is remembered while a scrub is going on.
const CURSOR_PAUSE: Nanos = Nanos::from_secs(5);

/// The scrub of a pool that is going on, or the last one since the start.
#[derive(Default)]
pub(crate) struct ScrubProgress {
    pub(super) running: Cell<bool>,
    pub(super) shared: RefCell<Option<Arc<ScrubShared>>>,
    /// Where this pass began and how many slots there were to look at.
    pub(super) slots_total: Cell<u64>,
}

impl Control {
    /// Goes on with a scrub that a stop or a crash has interrupted.
    pub(super) fn resume_scrub(self: &Rc<Self>, number: usize) {
        let Some(guarded) = &self.pools[number].guarded else { return };
        if guarded.metadata.state().scrub().next_slot > 0 {
            self.start_scrub(number, None);
        }
    }

    /// Starts a scrub, or goes on with the last one; false if one is going on.
    pub(super) fn start_scrub(self: &Rc<Self>, number: usize, rate: Option<u64>) -> bool {
        let guarded = self.guarded(number);
        if guarded.scrub.running.replace(true) {
            return false;
        }
        let from = guarded.metadata.state().scrub().next_slot;
        let shared = Arc::new(ScrubShared::new(self.shards.len(), from));
        *guarded.scrub.shared.borrow_mut() = Some(shared.clone());
        guarded.scrub.slots_total.set(guarded.metadata.state().used_slots().count());
        let control = self.clone();
        let work = async move {
            let ended = control.scrub_pass(number, rate, &shared).await;
            let guarded = control.guarded(number);
            if !ended {
                tracing::warn!("the scrub of pool {:?} ends early", control.pools[number].name);
            }
            guarded.scrub.running.set(false);
        };
        self.world.spawn(work).detach();
        true
    }

    /// Asks a scrub to stop; it goes on from there when it is started again.
    pub(super) fn stop_scrub(&self, number: usize) -> bool {
        let guarded = self.guarded(number);
        let running = guarded.scrub.running.get();
        if let Some(shared) = guarded.scrub.shared.borrow().as_ref().filter(|_| running) {
            shared.stop();
        }
        running
    }

    async fn scrub_pass(
        self: &Rc<Self>,
        number: usize,
        rate: Option<u64>,
        shared: &Arc<ScrubShared>,
    ) -> bool {
        let share = rate.map(|rate| (rate / self.shards.len() as u64).max(1));
        let order = |reply| Order::Scrub { pool: number, rate: share, shared: shared.clone(), reply };
        let mut all = std::pin::pin!(self.ask_all(order));
        loop {
            let pause = std::pin::pin!(self.world.sleep(CURSOR_PAUSE));
            match select(all, pause).await {
                Either::Left((ended, _)) => {
                    let finished = !shared.is_stopping() && ended.iter().all(Option::is_some);
                    if finished {
                        self.renew_metadata(number).await;
                    }
                    self.remember_cursor(number, shared, finished).await;
                    return finished || shared.is_stopping();
                }
                Either::Right((_, rest)) => {
                    all = rest;
                    self.remember_cursor(number, shared, false).await;
                }
            }
        }
    }

    /// Metadata have no part in the shards' slots. They are small, so they are not compared but written anew.
    async fn renew_metadata(&self, number: usize) {
        if let Err(error) = self.guarded(number).metadata.renew().await {
            tracing::error!("the metadata of pool {:?} cannot be renewed: {error}", self.pools[number].name);
        }
    }

    async fn remember_cursor(&self, number: usize, shared: &ScrubShared, finished: bool) {
        let guarded = self.guarded(number);
        let known = guarded.metadata.state().scrub();
        let cursor = match finished {
            true => ScrubCursor { next_slot: 0, passes: known.passes + 1 },
            false => ScrubCursor { next_slot: shared.next_slot(), ..known },
        };
        if cursor != known {
            // A metadata journal that fails has said so; the scrub itself loses nothing by it.
            let _ = guarded.commit(vec![MetaRecord::ScrubCursor(cursor)]).await;
        }
    }
}
