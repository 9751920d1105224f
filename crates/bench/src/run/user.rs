//! One user: draws a transaction, runs it, repeats it as often as the server refuses it because of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tier0_world::Random;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::options::RunOptions;
use super::pace::Pace;
use super::script::{Outcome, Script};
use super::tally::{Refusal, Tally};
use crate::error::{BenchError, words};
use crate::watch::cancel;

/// How long a transaction may go on after the end of the run: longer than those of a slow array, and so short that a lock that another
/// session forgot, or a server that hangs, does not keep the program. Then it is cancelled.
pub const LEAVE_LIMIT: Duration = Duration::from_secs(10);
/// A transaction that is refused so often will not get through.
const TRIES_MAX: u32 = 1000;

/// What all users share.
pub(crate) struct Shared<S> {
    pub(crate) script: S,
    pub(crate) pace: Pace,
    pub(crate) tally: Tally,
    pub(crate) is_over: AtomicBool,
}

/// A user.
pub(crate) struct User<S: Script> {
    number: u64,
    own: S::User,
    random: Random,
    shared: Arc<Shared<S>>,
    session: S::Session,
}

impl<S: Script> User<S> {
    /// The user of a number.
    pub(crate) fn new(
        number: u64,
        options: &RunOptions,
        shared: Arc<Shared<S>>,
        session: S::Session,
    ) -> User<S> {
        let own = shared.script.user(number);
        User { number, own, random: Random::new(options.seed, number), shared, session }
    }

    /// Works from a time on until the run is over, or until nothing is left to do.
    pub(crate) async fn work(mut self, starts: Instant) -> Result<(), BenchError> {
        if self.unless_over(sleep_until(starts)).await.is_none() {
            return Ok(());
        }
        let shared = self.shared.clone();
        while !self.is_over() {
            let Some((kind, input)) = shared.script.next(&mut self.own, &mut self.random) else {
                return Ok(());
            };
            let Some(from) = self.unless_over(shared.pace.wait(&shared.script, kind)).await else {
                return Ok(());
            };
            let Some(outcome) = self.complete(kind, &input).await? else {
                shared.tally.cancelled();
                return Ok(());
            };
            shared.tally.ended(self.number, kind, outcome, from.elapsed());
            let mut random = self.random.clone();
            if self.unless_over(shared.pace.think(&shared.script, kind, &mut random)).await.is_none() {
                return Ok(());
            }
            self.random = random;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }

    /// Waits for something to end; none if the run ends before.
    async fn unless_over<T>(&self, pause: impl Future<Output = T>) -> Option<T> {
        let mut pause = std::pin::pin!(pause);
        loop {
            let look = tokio::time::timeout(crate::watch::LOOK, pause.as_mut()).await;
            match look {
                Ok(ended) => return Some(ended),
                Err(_) if self.is_over() => return None,
                Err(_) => {}
            }
        }
    }

    /// Runs a transaction to its end; none if it was cancelled: at the end of the run where its load wants that, else
    /// [`LEAVE_LIMIT`] later.
    async fn complete(&self, kind: usize, input: &S::Input) -> Result<Option<Outcome>, BenchError> {
        let mut running = std::pin::pin!(self.run(kind, input));
        if let Some(ended) = self.unless_over(running.as_mut()).await {
            return ended.map(Some);
        }
        let grace = if S::CANCELS { Duration::ZERO } else { LEAVE_LIMIT };
        if let Ok(ended) = timeout(grace, running.as_mut()).await {
            return ended.map(Some);
        }
        cancel(self.shared.script.client(&self.session).cancel_token(), running).await;
        Ok(None)
    }

    /// Runs a transaction until it goes through.
    async fn run(&self, kind: usize, input: &S::Input) -> Result<Outcome, BenchError> {
        let script = &self.shared.script;
        let what = || format!("a {} transaction", script.names()[kind]);
        let mut last = String::new();
        for _ in 0..TRIES_MAX {
            let error = match script.run(&self.session, input).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            let Some(refusal) = refusal(&error) else {
                return Err(BenchError::Query { what: what(), fact: words(&error) });
            };
            self.shared.tally.refused(kind, refusal);
            last = words(&error);
            let rolled_back = script.client(&self.session).batch_execute("rollback").await;
            rolled_back.map_err(BenchError::query(format!("the rollback of {}", what())))?;
        }
        let fact =
            format!("the server refused it {TRIES_MAX} times ({last}); use fewer users or another isolation");
        Err(BenchError::Query { what: what(), fact })
    }
}

/// Whether a transaction can be repeated, and why.
fn refusal(error: &Error) -> Option<Refusal> {
    match error.code() {
        Some(code) if *code == SqlState::T_R_SERIALIZATION_FAILURE => Some(Refusal::Serialization),
        Some(code) if *code == SqlState::T_R_DEADLOCK_DETECTED => Some(Refusal::Deadlock),
        _ => None,
    }
}
