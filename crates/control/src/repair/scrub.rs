//! Scrubbing a pool: every shard goes through its slots in command; how far all of them are is remembered, so that a scrub
//! goes on after a restart.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tier0_api::{EventKind, LastScrub, ScrubResult, ScrubStatus};
use tier0_pool::{MetaRecord, ScrubCursor};
use tier0_units::{ByteCount, Nanos, PAGE_SECTORS, SECTOR_BYTES};

use super::Repair;
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::command::{ShardCommand, ShardReport};
use crate::message::scrub::ScrubShared;

/// How often the cursor is remembered while a scrub is going on.
const CURSOR_PAUSE: Nanos = Nanos::from_secs(5);

/// The scrub of a pool that is going on, or the last one since the start.
#[derive(Default)]
pub(crate) struct ScrubProgress {
    pub(crate) running: Cell<bool>,
    pub(crate) shared: RefCell<Option<Arc<ScrubShared>>>,
    /// Slots in use when this pass began, and how many of them earlier parts of it have seen.
    slots: Cell<SlotsToScrub>,
    /// The last pass that has ended since the start, and when.
    last: Cell<Option<(Nanos, LastScrub)>>,
    /// Pages repaired, and pages that nothing could make good, before the last pass that found nothing began: they are
    /// dealt with.
    pub(crate) settled: Cell<(u64, u64)>,
}

/// Slots in use when a pass of a scrub began.
#[derive(Clone, Copy, Default)]
struct SlotsToScrub {
    total: u64,
    /// A pass that was interrupted had seen these.
    seen_before: u64,
}

impl ScrubProgress {
    /// How it does; `None` if there has been none since the start.
    pub(crate) fn status(&self, now: Nanos) -> Option<ScrubStatus> {
        let shared = self.shared.borrow();
        let shared = shared.as_ref()?;
        let last = self.last.get().map(|(ended, last)| LastScrub {
            ended_s: now.saturating_sub(ended).0 / Nanos::from_secs(1).0,
            ..last
        });
        let running = self.running.get();
        let has_finished = !running && last.is_some_and(|last| last.result == ScrubResult::Finished);
        Some(ScrubStatus {
            running,
            progress: if has_finished { 1.0 } else { self.progress_of(shared) },
            pages_verified: shared.pages(),
            bytes_verified: bytes_of(shared),
            repaired: shared.repaired(),
            unrecoverable: shared.unrecoverable(),
            extents_skipped: shared.skipped(),
            last,
        })
    }

    /// The share of what was in use when it began that is behind it.
    fn progress_of(&self, shared: &ScrubShared) -> f64 {
        let SlotsToScrub { total, seen_before } = self.slots.get();
        ((seen_before + shared.slots_passed()) as f64 / total.max(1) as f64).min(1.0)
    }

    fn has_ended(&self, result: ScrubResult, shared: &ScrubShared, now: Nanos) {
        let last = LastScrub {
            result,
            ended_s: 0,
            bytes_verified: bytes_of(shared),
            repaired: shared.repaired(),
            unrecoverable: shared.unrecoverable(),
            extents_skipped: shared.skipped(),
        };
        self.last.set(Some((now, last)));
        self.running.set(false);
    }
}

fn bytes_of(shared: &ScrubShared) -> u64 {
    shared.pages() * PAGE_SECTORS * SECTOR_BYTES
}

impl Repair {
    /// Starts scrubs of a pool, or of all.
    pub(crate) fn begin_scrubs(self: &Rc<Self>, pool: Option<&str>, rate: Option<ByteCount>) -> Done {
        if rate == Some(ByteCount(0)) {
            return Err(AdminError::new(
                "a scrub at rate 0 would never end; omit the rate for full speed, or stop the scrub (--stop)",
            ));
        }
        let started = self
            .pools_meant(pool)?
            .into_iter()
            .filter(|number| self.start_scrub(*number, rate.map(|rate| rate.0)));
        match started.count() {
            0 if self.pools_meant(pool)?.into_iter().any(|number| self.is_scrub_stopping(number)) => {
                Err(AdminError::new("the previous scrub is still stopping; try again in a moment"))
            }
            0 if rate.is_some() => Err(AdminError::new(
                "a scrub is already running and keeps its rate; to change it, stop the scrub (--stop) and \
                 start it again",
            )),
            0 => {
                Err(AdminError::unchanged("a scrub is already running; \"tier0 status\" shows its progress"))
            }
            _ => Ok("scrub started; \"tier0 status\" shows its progress".to_owned()),
        }
    }

    /// Asks scrubs of a pool, or of all, to stop.
    pub(crate) fn end_scrubs(&self, pool: Option<&str>) -> Done {
        let pools = self.pools_meant(pool)?;
        let stopping = pools.iter().filter(|number| self.is_scrub_stopping(**number)).count();
        let stopped = pools.into_iter().filter(|number| self.stop_scrub(*number)).count();
        match stopped - stopping {
            0 if stopping > 0 => Err(AdminError::unchanged("the scrub is already stopping")),
            0 => Err(AdminError::unchanged("no scrub is running; nothing to stop")),
            _ => Ok("scrub stopping; the next one resumes from here".to_owned()),
        }
    }

    /// Goes on with a scrub that a stop or a crash has interrupted.
    pub(crate) fn resume_scrub(self: &Rc<Self>, number: usize) {
        let core = self.core(number);
        if core.metadata.state().scrub().next_slot > 0 {
            self.start_scrub(number, None);
        }
    }

    /// Starts a scrub, or goes on with the last one; false if one is going on.
    pub(crate) fn start_scrub(self: &Rc<Self>, number: usize, rate: Option<u64>) -> bool {
        let core = self.core(number);
        if core.scrub.running.replace(true) {
            return false;
        }
        let from = if core.unverified.begin_pass() { 0 } else { core.metadata.state().scrub().next_slot };
        let shared = Arc::new(ScrubShared::new(self.shards.len(), from));
        *core.scrub.shared.borrow_mut() = Some(shared.clone());
        let (total, seen_before) = {
            let state = core.metadata.state();
            let used = state.used_slots();
            (used.count(), used.count_below(from))
        };
        core.scrub.slots.set(SlotsToScrub { total, seen_before });
        let repair = self.clone();
        let work = async move {
            repair.begin_findings(number);
            let told = repair.core(number).rebuild.losses_told.get();
            let before = repair.pages_found(number).await;
            let ended = repair.scrub_pass(number, rate, &shared).await;
            let core = repair.core(number);
            if ended == ScrubResult::Finished && shared.found_nothing() {
                core.scrub.settled.set(before);
            }
            if ended == ScrubResult::Finished && from == 0 && shared.skipped() == 0 {
                core.page_errors.all_read();
            }
            if ended == ScrubResult::Finished && from == 0 {
                repair.scrub_tells_lost_pages(number, &shared, told).await;
            }
            repair.end_findings(number);
            repair.tell_of_scrub(number, ended, &shared);
            core.scrub.has_ended(ended, &shared, repair.world.now());
            if ended == ScrubResult::Finished {
                let end = core.unverified.end_pass(shared.skipped() == 0);
                if end.has_verified {
                    // It forgets the old places.
                    repair.start_rebuilds(number);
                }
                // The end of a rebuild starts it otherwise.
                if end.is_due_again && !core.rebuild.is_running() {
                    repair.start_scrub(number, None);
                }
            }
        };
        self.world.spawn(work).detach();
        true
    }

    /// A rebuild has ended: starts a scrub if one is due for drives that were taken back.
    pub(crate) fn scrub_if_due(self: &Rc<Self>, number: usize) {
        let core = self.core(number);
        core.unverified.note_rebuilt(&core.metadata.state());
        if core.unverified.is_due(&core.metadata.state()) {
            self.start_scrub(number, None);
        }
    }

    /// Asks a scrub to stop; it goes on from there when it is started again.
    pub(crate) fn stop_scrub(&self, number: usize) -> bool {
        let core = self.core(number);
        let running = core.scrub.running.get();
        if let Some(shared) = core.scrub.shared.borrow().as_ref().filter(|_| running) {
            shared.stop();
        }
        running
    }

    /// Whether a scrub was asked to stop and has not yet.
    pub(crate) fn is_scrub_stopping(&self, number: usize) -> bool {
        let scrub = &self.core(number).scrub;
        scrub.running.get() && scrub.shared.borrow().as_ref().is_some_and(|shared| shared.is_stopping())
    }

    async fn scrub_pass(
        self: &Rc<Self>,
        number: usize,
        rate: Option<u64>,
        shared: &Arc<ScrubShared>,
    ) -> ScrubResult {
        let share = rate.map(|rate| (rate / self.shards.len() as u64).max(1));
        let command =
            |reply| ShardCommand::Scrub { pool: number, rate: share, shared: shared.clone(), reply };
        let mut all = std::pin::pin!(self.ask_all(command));
        loop {
            let pause = std::pin::pin!(self.world.sleep(CURSOR_PAUSE));
            match select(all, pause).await {
                Either::Left((ended, _)) => {
                    let finished = !shared.is_stopping() && ended.iter().all(Option::is_some);
                    if finished {
                        self.renew_metadata(number).await;
                    }
                    self.remember_cursor(number, shared, finished).await;
                    return match (finished, shared.is_stopping()) {
                        (true, _) => ScrubResult::Finished,
                        (false, true) => ScrubResult::Stopped,
                        (false, false) => ScrubResult::Failed,
                    };
                }
                Either::Right((_, rest)) => {
                    all = rest;
                    self.remember_cursor(number, shared, false).await;
                }
            }
        }
    }

    /// Pages that were repaired, and pages that nothing could make good, since the start.
    async fn pages_found(&self, number: usize) -> (u64, u64) {
        let reports = self.ask_all(|reply| ShardCommand::Report { pool: number, reply }).await;
        let add = |(good, bad): (u64, u64), report: ShardReport| {
            (good + report.pages_repaired, bad + report.pages_unrecoverable)
        };
        reports.into_iter().flatten().fold((0, 0), add)
    }

    fn tell_of_scrub(&self, number: usize, end: ScrubResult, shared: &ScrubShared) {
        let (repaired, lost, pages) = (shared.repaired(), shared.unrecoverable(), shared.pages());
        let kind = match end {
            ScrubResult::Stopped => EventKind::ScrubStopped,
            ScrubResult::Failed => EventKind::ScrubFailed,
            ScrubResult::Finished if shared.found_nothing() => EventKind::ScrubFinished { pages },
            ScrubResult::Finished => {
                let extents_skipped = shared.skipped();
                EventKind::ScrubFoundErrors { pages, repaired, lost, extents_skipped }
            }
        };
        self.tell(self.pool_subject(number), kind);
    }

    /// Metadata have no part in the shards' slots. They are small, so they are not compared but written anew.
    async fn renew_metadata(&self, number: usize) {
        if let Err(error) = self.core(number).metadata.renew().await {
            tracing::error!("the metadata of pool {:?} cannot be renewed: {error}", self.pools[number].name);
        }
    }

    async fn remember_cursor(&self, number: usize, shared: &ScrubShared, finished: bool) {
        let core = self.core(number);
        let known = core.metadata.state().scrub();
        let cursor = match finished {
            true => ScrubCursor { next_slot: 0, passes: known.passes + 1 },
            false => ScrubCursor { next_slot: shared.next_slot(), ..known },
        };
        if cursor != known {
            // A metadata journal that fails has said so; the scrub itself loses nothing by it.
            let _ = core.commit(vec![MetaRecord::ScrubCursor(cursor)]).await;
        }
    }
}
