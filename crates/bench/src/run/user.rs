//! One user: draws a transaction, runs it, repeats it as often as the server refuses it because of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tier0_database::sweep::home_of;
use tier0_world::Random;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::options::RunOptions;
use super::pace::Pace;
use super::tally::{Refusal, Tally};
use crate::error::{BenchError, words};
use crate::order_entry::draw::Laws;
use crate::order_entry::mix::{Kind, Mix};
use crate::order_entry::terminal::{Input, Outcome, Terminal};

/// A transaction that is refused so often will not get through.
const TRIES_MAX: u32 = 1000;

/// What all users share.
pub(crate) struct Shared {
    pub(crate) laws: Laws,
    pub(crate) mix: Mix,
    pub(crate) pace: Pace,
    pub(crate) tally: Tally,
    pub(crate) is_over: AtomicBool,
}

/// A user.
pub(crate) struct User {
    home: u64,
    random: Random,
    shared: Arc<Shared>,
    terminal: Terminal,
}

impl User {
    /// The user of a number.
    pub(crate) fn new(
        number: u64,
        options: &RunOptions,
        warehouses: u32,
        shared: Arc<Shared>,
        terminal: Terminal,
    ) -> User {
        let home = home_of(number, u64::from(options.users), u64::from(warehouses));
        User { home, random: Random::new(options.seed, number), shared, terminal }
    }

    /// Works from a time on until the run is over.
    pub(crate) async fn work(mut self, starts: Instant) -> Result<(), BenchError> {
        if self.unless_over(sleep_until(starts)).await.is_none() {
            return Ok(());
        }
        while !self.is_over() {
            let kind = self.shared.mix.draw(&mut self.random);
            let input = Input::draw(kind, &self.shared.laws, &mut self.random, self.home);
            let shared = self.shared.clone();
            let Some(from) = self.unless_over(shared.pace.wait(kind)).await else { return Ok(()) };
            let outcome = self.run(kind, &input).await?;
            self.shared.tally.ended(kind, outcome, from.elapsed());
            let mut random = self.random.clone();
            if self.unless_over(shared.pace.think(kind, &mut random)).await.is_none() {
                return Ok(());
            }
            self.random = random;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }

    /// Waits for a pause to end; none if the run ends before.
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

    /// Runs a transaction until it goes through.
    async fn run(&self, kind: Kind, input: &Input) -> Result<Outcome, BenchError> {
        let mut last = String::new();
        for _ in 0..TRIES_MAX {
            let error = match self.terminal.run(input).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            let Some(refusal) = refusal(&error) else {
                return Err(BenchError::Query { what: format!("a {kind} transaction"), fact: words(&error) });
            };
            self.shared.tally.refused(kind, refusal);
            last = words(&error);
            let rolled_back = self.terminal.roll_back().await;
            rolled_back.map_err(BenchError::query(format!("the rollback of a {kind} transaction")))?;
        }
        let fact =
            format!("the server refused it {TRIES_MAX} times ({last}); use fewer users or another isolation");
        Err(BenchError::Query { what: format!("a {kind} transaction"), fact })
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
