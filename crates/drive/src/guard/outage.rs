//! A drive that is away, or may have lost its cache: the gate is closed, and opens when everything that it had
//! acknowledged is on it again.

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::{Either, join_all, select};
use tier0_units::Nanos;
use tier0_world::{Completion, IoError, Observer, Outcome, Payload, PlantedBug, planted};

use super::class::{Class, class, plain};
use super::commands::{Held, PAUSE_MAX, PAUSE_MIN};
use super::health::Health;
use super::{Inner, Verdict};
use crate::Command;

/// Changes that are written again at once.
const ROUND_MAX: usize = 32;

/// An attempt to get the drive back.
type Attempt = Pin<Box<dyn Future<Output = Result<(), IoError>>>>;

impl Inner {
    /// Has a command wait for the gate; a read only if it may wait, and none for a drive that is lost: its gate is never opened.
    pub(super) fn hold(&self, held: Held) {
        if self.health.is_lost() {
            return held.fail(IoError::Gone);
        }
        match self.health.refuses_reads().filter(|_| held.is_read()) {
            Some(error) => held.fail(error),
            None => self.waiting.borrow_mut().push(held),
        }
    }

    /// An outage: closes the gate, and has all other guards of the drive close theirs; `held` waits for it.
    pub(super) fn close(self: &Rc<Self>, held: Held, error: IoError) {
        if !self.is_closed.get() {
            self.health.count_outage();
        }
        self.shut(held, error);
    }

    /// Closes the gate until this guard has made good every outage that was counted; `held` waits for it.
    pub(super) fn shut(self: &Rc<Self>, held: Held, error: IoError) {
        // The command came before whatever waits: those of one address are never under way together.
        self.hold(held);
        if self.is_closed.replace(true) {
            return;
        }
        self.trouble(|troubles| troubles.outage = true);
        let inner = self.clone();
        self.world().spawn(async move { inner.recover(error).await }).detach();
    }

    /// The drive came back each time and fails this very command again, as a device does that has become read-only.
    pub(super) fn arbitrate_alone(self: &Rc<Self>, mut held: Held, error: IoError) {
        let inner = self.clone();
        self.trouble(|troubles| troubles.retries += 1);
        let arbitrating = async move {
            let since = held.failed_at.unwrap_or_default();
            let is_late = inner.world().turned().saturating_sub(since) >= inner.patience.errors;
            let has_arbiter = inner.arbiter.borrow().is_some();
            match (is_late, has_arbiter) {
                (true, true) if inner.ask(error).await == Verdict::Lost => held.fail(IoError::Gone),
                (true, false) => held.fail(plain(error)),
                _ => {
                    inner.world().sleep(held.pause).await;
                    held.pause = Nanos(held.pause.0 * 2).min(PAUSE_MAX);
                    inner.close(held, error);
                }
            }
            inner.trouble(|troubles| troubles.retries -= 1);
        };
        self.world().spawn(arbitrating).detach();
    }

    async fn recover(self: Rc<Self>, mut error: IoError) {
        let began = self.world().turned();
        let (mut pause, mut asked_at) = (PAUSE_MIN, None::<Nanos>);
        let patience = if self.is_tired.get() { Nanos::ZERO } else { self.patience.errors };
        let (mut attempt, mut limit) = (None::<Attempt>, self.patience.answer);
        // A pool that can do without a drive that has lost a part of what it held does so, even if it answers again.
        if self.drive.was_cut() && self.ask(error).await == Verdict::Lost {
            return;
        }
        loop {
            // What is below may still change what would be written again.
            if attempt.is_none() && self.is_quiet() {
                let inner = self.clone();
                attempt = Some(Box::pin(async move { inner.try_again().await }));
            }
            if let Some(trying) = &mut attempt {
                match self.in_time(limit, trying).await {
                    Some(Ok(())) => break,
                    Some(Err(found)) => {
                        (error, limit) = (found, self.patience.answer);
                        attempt = None;
                    }
                    // A write that hangs may still be carried out: there is no other attempt before it has ended.
                    None => (error, limit) = (IoError::Timeout, self.patience.again),
                }
            }
            if self.health.is_lost() {
                return self.die();
            }
            self.refuse_held_reads();
            let now = self.world().turned();
            let is_due = match asked_at {
                None => now.saturating_sub(began) >= patience,
                Some(at) => now.saturating_sub(at) >= self.patience.again,
            };
            if is_due {
                if self.arbiter.borrow().is_none() {
                    return self.open_with(plain(error));
                }
                if self.ask(error).await == Verdict::Lost {
                    return;
                }
                asked_at = Some(self.world().turned());
            }
            self.world().sleep(pause).await;
            pause = Nanos(pause.0 * 2).min(PAUSE_MAX);
        }
        self.is_closed.set(false);
        self.trouble(|troubles| troubles.outage = false);
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for held in waiting {
            // The first of them may close it again.
            if self.is_closed.get() { self.hold(held) } else { self.pass(held) }
        }
    }

    /// Opens the drive anew, and brings onto it what it may have lost.
    async fn try_again(&self) -> Result<(), IoError> {
        let outages = self.health.outages();
        // It may hang; reads that are given up do no harm when they end late.
        let looked =
            self.in_time(self.patience.answer, self.look_again()).await.unwrap_or(Err(IoError::Timeout));
        if looked.is_err() {
            self.health.count_outage_again();
        }
        looked?;
        let written = self.write_again(outages).await;
        if written.is_err_and(|error| class(error) == Class::Outage) {
            self.health.count_outage_again();
        }
        written
    }

    /// Brings onto the drive what it may have lost in the outages up to this one.
    async fn write_again(&self, outages: u64) -> Result<(), IoError> {
        let (rounds, mark) = {
            let retained = self.retained.borrow();
            (retained.rounds(ROUND_MAX), retained.mark())
        };
        for round in rounds.into_iter().filter(|_| !planted(PlantedBug::ForgetReplay)) {
            let again = round.iter().map(|change| self.give(change.command()));
            join_all(again).await.into_iter().collect::<Result<(), IoError>>()?;
        }
        self.give(Command::Flush).await?;
        if self.health.outages() != outages {
            return Err(IoError::Gone);
        }
        self.retained.borrow_mut().flushed(mark);
        self.outages_seen.set(outages);
        self.health.make_good(outages);
        Ok(())
    }

    /// Whether nothing is below that changes the drive, or for which a caller waits.
    fn is_quiet(&self) -> bool {
        self.commands.borrow().iter().all(|(_, sent)| sent.is_idle())
    }

    /// What `work` ends with, or nothing if it takes longer than `limit`.
    pub(super) async fn in_time<T>(&self, limit: Nanos, work: impl Future<Output = T>) -> Option<T> {
        let limit = pin!(self.world().sleep(limit));
        match select(pin!(work), limit).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }

    /// Whether the drive answers, and is the one that it was.
    async fn look_again(&self) -> Result<(), IoError> {
        self.drive.revive().await?;
        // A flush may succeed on a drive that reads nothing: then nothing would ever end.
        if !self.answers().await {
            return Err(IoError::Medium);
        }
        let arbiter = self.arbiter.borrow().clone();
        if let Some(arbiter) = arbiter
            && let Err(sentence) = arbiter.recognise(self.drive.clone()).await
        {
            self.health.note(sentence);
            return Err(IoError::Gone);
        }
        self.drive.accept();
        Ok(())
    }

    /// Gives the drive a command past the table.
    async fn give(&self, command: Command) -> Result<(), IoError> {
        let (completion, pending) = self.world().completion();
        // Who waits may be gone before it ends.
        let completion = match command {
            Command::Write { .. } | Command::Discard { .. } => Stray::counted(&self.health, completion),
            Command::Read { .. } | Command::Flush => completion,
        };
        self.drive.submit(command, completion);
        match pending.await.0 {
            // It need not be able to.
            Ok(_) | Err(IoError::Unsupported) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn refuse_held_reads(&self) {
        let Some(error) = self.health.refuses_reads() else { return };
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        let (reads, others): (Vec<Held>, Vec<Held>) = waiting.into_iter().partition(Held::is_read);
        *self.waiting.borrow_mut() = others;
        reads.into_iter().for_each(|read| read.fail(error));
    }

    /// There is no arbiter, and patience is at its end: whatever waits fails, and the next command may try.
    fn open_with(&self, error: IoError) {
        self.is_tired.set(true);
        self.is_closed.set(false);
        self.trouble(|troubles| troubles.outage = false);
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(|held| held.fail(error));
    }
}

/// A change that is below past the table: it is counted until it ends, whoever waits for it.
pub(super) struct Stray(Arc<Health>);

impl Stray {
    pub(super) fn counted(health: &Arc<Health>, completion: Completion) -> Completion {
        health.count_stray();
        completion.observed_by(Rc::new(Stray(health.clone())), 0)
    }
}

impl Observer for Stray {
    fn ended(self: Rc<Self>, _: u64, completion: Completion, outcome: Outcome, payload: Payload) {
        self.0.stray_ended();
        completion.complete(outcome.map(|_| ()), payload);
    }
}
