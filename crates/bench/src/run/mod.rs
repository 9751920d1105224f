//! Users who run transactions for a time, and what they measured.
//!
//! | module | concept |
//! |---|---|
//! | [`options`] | what a run does |
//! | `script` | what users of a load do: the seam to the loads |
//! | [`mix`] | shares of the kinds of transactions |
//! | [`tally`] | what is counted |
//! | `pace` | when a user begins the next transaction |
//! | `user` | one user: draws, runs, repeats what the server refuses |
//! | [`report`] | the result |
//!
//! A run has three parts: users connect; they start one after the other and work for the ramp; then counting begins. Counters of
//! the database, the host and the array are read when counting begins and when all users are gone, so that the server has
//! booked everything; what the database counts is divided by the transactions that it has counted itself.

pub mod mix;
pub mod options;
mod pace;
pub mod report;
pub(crate) mod script;
pub mod tally;
mod user;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tier0_api::IoReport;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

pub use self::options::{RunOptions, Think};
use self::pace::Pace;
use self::report::{Made, RunReport};
use self::script::Script;
use self::tally::{Second, Tally};
pub use self::user::LEAVE_LIMIT;
use self::user::{Shared, User};
use crate::address::Address;
use crate::brokerage::script::Brokerage;
use crate::counters::array::{ArraySample, ArrayUse};
use crate::counters::database::{DatabaseSample, DatabaseUse};
use crate::counters::processor::ProcessorSample;
use crate::decision_support::script::DecisionSupport;
use crate::error::BenchError;
use crate::load::state::State;
use crate::load::{Load, Scale};
use crate::order_entry::script::OrderEntry;
use crate::watch::{ANSWER_LIMIT, LOOK, Watch};

/// Asks an array for its counters; an error says why that did not work.
pub type AskArray<'a> = &'a (dyn Fn() -> Result<IoReport, String> + Sync);

/// Connections that are opened at the same time.
const CONNECTING: usize = 16;
/// How long the server may take to end sessions whose users are gone.
const GONE_LIMIT: Duration = Duration::from_secs(5);
/// Sizes of tables wait for sessions that lock them.
const OBSERVER: &str = "set lock_timeout = '5s'";

/// A runtime for connections and users.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, BenchError> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// Runs transactions, and reports. Where `watch` wants an early end, what was measured until then is reported, if anything was.
///
/// # Errors
/// Options that make no sense; no connection; no tables of a load, or of another one; a transaction that the server refuses for good, with the reason.
pub fn run(
    address: &Address,
    options: &RunOptions,
    array: Option<AskArray<'_>>,
    watch: Watch<'_>,
) -> Result<RunReport, BenchError> {
    options.check()?;
    runtime()?.block_on(async {
        let (address, observer, state) = &State::open(address, options.load, watch).await?;
        let told =
            async { observer.batch_execute(OBSERVER).await.map_err(BenchError::query("limiting locks")) };
        watch.asked("limiting locks", told).await?;
        options.check_for(state.scale.load())?;
        let place = Place { address, observer, state };
        match state.scale {
            Scale::Warehouses(count) => {
                drive(place, OrderEntry::new(options, count)?, options, array, watch).await
            }
            Scale::Customers { days, .. } => {
                let script = Brokerage::new(options, state.scale.load_units(), u64::from(days))?;
                drive(place, script, options, array, watch).await
            }
            Scale::Factor(factor) => {
                drive(place, DecisionSupport::new(options, factor), options, array, watch).await
            }
        }
    })
}

/// The database that is run on.
struct Place<'a> {
    address: &'a Address,
    /// A connection beside those of the users.
    observer: &'a tokio_postgres::Client,
    state: &'a State,
}

async fn drive<S: Script>(
    place: Place<'_>,
    script: S,
    options: &RunOptions,
    array: Option<AskArray<'_>>,
    watch: Watch<'_>,
) -> Result<RunReport, BenchError> {
    let Place { address, observer, state } = place;
    let tables: Vec<&str> = state.scale.load().tables().iter().map(|table| table.name).collect();
    let shared = Arc::new(Shared {
        tally: Tally::new(script.names(), script.headline(), options.users),
        pace: Pace::new(options.think, options.rate, options.seed),
        is_over: AtomicBool::new(false),
        script,
    });
    (watch.say)(&format!("connecting {} users", options.users));
    let sessions = connect(address, &shared.script, options, watch).await?;

    let ramp = Duration::from(options.ramp(state.scale.load()));
    let start = async || -> Result<Before, BenchError> {
        let before = Before::read(observer, &tables, array);
        let before = watch.asked("reading the counters", before).await?;
        shared.tally.restart();
        Ok(before)
    };
    // Without a ramp everything counts, from the first transaction on.
    let at_once = if ramp.is_zero() { Some(start().await?) } else { None };
    let began = Instant::now();
    let mut users = JoinSet::new();
    for (number, session) in (0..).zip(sessions) {
        let starts = began + ramp.mul_f64(number as f64 / f64::from(options.users));
        let user = User::new(number, options, shared.clone(), session);
        users.spawn(user.work(starts));
    }
    let load = state.scale.load();
    let mut clock = Clock { users: &mut users, shared: &shared, watch, load, is_local: address.is_local() };
    let measured: Result<_, BenchError> = async {
        let before = match at_once {
            Some(before) => before,
            None => {
                clock.run(began, began + ramp, "ramp", &mut Vec::new()).await?;
                start().await?
            }
        };
        let (begins, mut seconds) = (Instant::now(), Vec::new());
        let ended = clock.run(begins, begins + options.duration(), "run", &mut seconds).await;
        let elapsed = begins.elapsed();
        Ok((before, elapsed, shared.pace.arrived(begins, begins + elapsed), seconds, ended))
    }
    .await;
    // What ends after this is not counted.
    let (kinds, responses) = (shared.tally.kinds(), shared.tally.responses());
    let (missed, by_user) = (shared.tally.missed(), shared.tally.by_user());
    shared.is_over.store(true, Ordering::Relaxed);
    let after_host = ProcessorSample::read();
    let left = leave(&mut users).await;
    let (before, elapsed, arrived, seconds, ended) = measured?;
    // An early end still has a result, and so has a failure once something was counted.
    let is_early = ended.is_err();
    let failed = match ended {
        Ok(()) | Err(BenchError::Stopped) => left.err(),
        Err(error) => Some(error),
    };
    let answers = gone(address, observer).await;
    let (database, array_io) = before.since(observer, &tables, array, answers).await;
    let processor = address.is_local().then(|| before.processor.since(&after_host)).flatten();
    let is_local = address.is_local();
    let report = RunReport::new(Made {
        database: address.to_string(),
        options,
        mix: shared.script.mix(),
        scale: state.scale,
        failure: failed.as_ref().map(ToString::to_string),
        headline: shared.script.headline(),
        started: before.started,
        server: before.server,
        buffer_bytes: before.buffer_bytes,
        elapsed,
        is_early,
        kinds,
        responses,
        arrived,
        missed,
        by_user,
        cancelled: shared.tally.count_cancelled(),
        seconds,
        processor,
        is_local,
        counted: database,
        array: array_io,
    });
    match failed {
        Some(cause) => Err(BenchError::Ended { cause: Box::new(cause), report: Box::new(report) }),
        None => Ok(report),
    }
}

/// Connects all users, some at a time.
async fn connect<S: Script>(
    address: &Address,
    script: &S,
    options: &RunOptions,
    watch: Watch<'_>,
) -> Result<Vec<S::Session>, BenchError> {
    let mut sessions = Vec::with_capacity(options.users as usize);
    while sessions.len() < options.users as usize {
        let some = CONNECTING.min(options.users as usize - sessions.len());
        let opened = (0..some).map(|_| script.open(address, options.isolation));
        let opened = futures_util::future::try_join_all(opened);
        sessions.extend(watch.asked("connecting the users", opened).await?);
    }
    Ok(sessions)
}

/// Waits for the users' last transactions, which end by themselves or are cancelled.
async fn leave(users: &mut JoinSet<Result<(), BenchError>>) -> Result<(), BenchError> {
    let mut failed = Ok(());
    while let Some(ended) = users.join_next().await {
        let ended = ended.expect("a user neither panics nor is aborted");
        failed = failed.and(ended);
    }
    failed
}

/// Waits until the server has ended the users' sessions: then it has booked what they did. Whether it answers.
async fn gone(address: &Address, observer: &tokio_postgres::Client) -> bool {
    let until = Instant::now() + GONE_LIMIT;
    let sql = "select count(*) from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()";
    while Instant::now() < until {
        let name = address.session_name();
        match timeout_at(until, observer.query_one(sql, &[&name])).await {
            Ok(Ok(row)) if row.get::<_, i64>(0) > 0 => sleep(LOOK / 4).await,
            Ok(Ok(_)) => return true,
            Ok(Err(_)) | Err(_) => return false,
        }
    }
    true
}

/// The counters when counting begins.
struct Before {
    started: String,
    server: String,
    buffer_bytes: u64,
    database: DatabaseSample,
    processor: ProcessorSample,
    array: Option<Result<ArraySample, String>>,
}

impl Before {
    async fn read(
        observer: &tokio_postgres::Client,
        tables: &[&str],
        array: Option<AskArray<'_>>,
    ) -> Result<Before, BenchError> {
        let sql = "select now()::text, version(), pg_size_bytes(current_setting('shared_buffers'))";
        let row = observer.query_one(sql, &[]).await;
        let row = row.map_err(BenchError::query("asking for the server's version"))?;
        Ok(Before {
            started: row.get(0),
            server: row.get(1),
            buffer_bytes: row.get::<_, i64>(2) as u64,
            array: array.map(|ask| ask().map(ArraySample::new)),
            database: DatabaseSample::read(observer, tables).await?,
            processor: ProcessorSample::read(),
        })
    }

    async fn since(
        &self,
        observer: &tokio_postgres::Client,
        tables: &[&str],
        array: Option<AskArray<'_>>,
        answers: bool,
    ) -> (DatabaseUse, Option<ArrayUse>) {
        let limit = if answers { ANSWER_LIMIT } else { Duration::ZERO };
        let database = match timeout(limit, DatabaseSample::read(observer, tables)).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => self.database.unknown(&error.to_string()),
            Err(_) => self.database.unknown("the server did not answer at the end of the run"),
        };
        let array = array.zip(self.array.as_ref()).map(|(ask, before)| match (before, ask()) {
            (Ok(before), Ok(after)) => before.since(&ArraySample::new(after)),
            (Err(fact), _) => ArrayUse::unknown(fact.clone()),
            (_, Err(fact)) => ArrayUse::unknown(fact),
        });
        (self.database.since(&database), array)
    }
}

/// Watches over the users, second by second.
struct Clock<'a, S> {
    users: &'a mut JoinSet<Result<(), BenchError>>,
    shared: &'a Shared<S>,
    load: Load,
    watch: Watch<'a>,
    is_local: bool,
}

impl<S: Script> Clock<'_, S> {
    /// Until a time: tells each second and keeps its row.
    async fn run(
        &mut self,
        begins: Instant,
        ends: Instant,
        phase: &str,
        rows: &mut Vec<Second>,
    ) -> Result<(), BenchError> {
        let mut processor = ProcessorSample::read();
        for second in 1.. {
            let mut tick = (begins + Duration::from_secs(second)).min(ends);
            let ended = self.until(tick).await;
            let goes_on = matches!(ended, Ok(true));
            // The part of the last second counts too.
            if !goes_on {
                tick = Instant::now().min(tick);
            }
            let now = ProcessorSample::read();
            let busy = processor.since(&now).filter(|_| self.is_local).map(|used| used.busy);
            processor = now;
            let row = self.shared.tally.take_second((tick - begins).as_secs_f64(), busy);
            let length = (tick - begins).as_secs_f64() - (second - 1) as f64;
            if length > 0.0 {
                let all = self.shared.tally.by_user().iter().sum();
                (self.watch.say)(&line(self.load, phase, &row, length, all));
                rows.push(row);
            }
            if tick == ends || !goes_on {
                return ended.map(|_| ());
            }
        }
        Ok(())
    }

    /// Until a time, unless a user fails or an end is wanted. Whether any user is still at work.
    async fn until(&mut self, time: Instant) -> Result<bool, BenchError> {
        while Instant::now() < time {
            let look = time.min(Instant::now() + LOOK);
            match self.users.try_join_next() {
                Some(ended) => ended.expect("a user neither panics nor is aborted")?,
                None if self.users.is_empty() => return Ok(false),
                None => sleep_until(look).await,
            }
            if (self.watch.is_over)() {
                return Err(BenchError::Stopped);
            }
        }
        Ok(true)
    }
}

/// A second in words; so many transactions have ended in all.
fn line(load: Load, phase: &str, row: &Second, length: f64, all: u64) -> String {
    let minute = |count: u64| count as f64 / length * 60.0;
    let busy = row.busy.map_or(String::new(), |busy| format!("  CPU {:.0} %", busy * 100.0));
    let retries = if row.retries > 0 { format!("  retries {}", row.retries) } else { String::new() };
    let p95 = row.p95_ms.map_or("-".to_owned(), |p95| format!("{p95:.1} ms"));
    let own = match load {
        Load::OrderEntry => format!(
            "NOPM {:>7.0}  commits/min {:>7.0}  p95 {p95:>9}",
            minute(row.headline),
            minute(row.commits)
        ),
        Load::Brokerage => format!(
            "results/s {:>6.0}  commits/s {:>6.0}  p95 {p95:>9}",
            minute(row.headline) / 60.0,
            minute(row.commits) / 60.0
        ),
        Load::DecisionSupport => format!("{all} queries finished, {} of them now", row.commits),
    };
    format!("{phase} {:>4.0} s  {own}{busy}{retries}", row.second)
}
