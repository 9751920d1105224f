//! Creates and loads the tables. A piece of the rows is loaded in one transaction, which also records it: a load that was interrupted
//! goes on with the pieces that are missing. Indexes and statistics come at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::SinkExt;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use crate::address::Address;
use crate::error::BenchError;
use crate::load::schema::{self, LOADED, RECORD};
use crate::load::state::{State, recorded, settled};
use crate::load::{Load, Rows, Scale};
use crate::run::runtime;
use crate::watch::{LOOK, Watch, unless_over};

/// Of all programs' advisory locks, the one of a load.
const LOCK: (i32, i32) = (7130, -1);
/// How long the server may take to end the session of a load that has just ended.
const LOCK_LIMIT: Duration = Duration::from_secs(5);
/// How often progress is told.
const TELL: Duration = Duration::from_secs(1);

/// What to load.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// The load, and how large.
    pub scale: Scale,
    /// Connections that load at the same time.
    pub jobs: u32,
    /// The seed of the rows; a load that goes on keeps its own.
    pub seed: u64,
}

/// What was loaded.
#[derive(Clone, Debug, Serialize)]
pub struct Prepared {
    /// The database, without a password.
    pub database: String,
    /// The load.
    pub workload: String,
    /// How large it is, in words.
    pub scale: String,
    /// Parts of its rows.
    pub parts: u32,
    /// Those of them that this load has added.
    pub parts_loaded: u32,
    /// Bytes of rows that it sent.
    pub sent_bytes: u64,
    /// How long it took, seconds, indexes included.
    pub seconds: f64,
    /// What tables and indexes take on the server's disk, bytes.
    pub size_bytes: u64,
}

/// Loads the database, or what is missing of it.
///
/// # Errors
/// No connection; other tables of these names; a database of another load or size; what the server refuses; an early end that `watch`
/// wants.
pub fn prepare(
    address: &Address,
    options: &PrepareOptions,
    watch: Watch<'_>,
) -> Result<Prepared, BenchError> {
    runtime()?.block_on(load(address, options, watch))
}

/// Removes the tables of an earlier load, and nothing else. The load, if there was any.
///
/// # Errors
/// No connection; tables of these names that tier0 did not make; what the server refuses; tables that others lock; an early end
/// that `watch` wants, after which nothing is removed.
pub fn remove(address: &Address, watch: Watch<'_>) -> Result<Option<Load>, BenchError> {
    runtime()?.block_on(async {
        let (address, client) = open(address, watch).await?;
        let found = watch.asked("reading what is loaded", recorded(&client, &address, None)).await?;
        let found = found.map(|(load, _)| load);
        if let Some(load) = found {
            unless_over(client.cancel_token(), schema::remove(&client, load), watch.over()).await??;
        }
        Ok(found)
    })
}

/// The only session that loads or removes, and its address with the schema.
async fn open(address: &Address, watch: Watch<'_>) -> Result<(Address, Client), BenchError> {
    let opened = async {
        let address = settled(address).await?;
        let client = address.connect().await?;
        alone(&client, &address).await?;
        Ok((address, client))
    };
    watch.asked("looking for other loads", opened).await
}

/// Keeps other loads of the same database away as long as the connection lasts.
async fn alone(client: &Client, address: &Address) -> Result<(), BenchError> {
    let until = Instant::now() + LOCK_LIMIT;
    loop {
        let taken = client.query_one("select pg_try_advisory_lock($1, $2)", &[&LOCK.0, &LOCK.1]).await;
        match taken.map_err(BenchError::query("looking for other loads"))?.get(0) {
            true => return Ok(()),
            false if Instant::now() < until => sleep(LOOK).await,
            false => return Err(BenchError::Busy(address.to_string())),
        }
    }
}

async fn load(address: &Address, options: &PrepareOptions, watch: Watch<'_>) -> Result<Prepared, BenchError> {
    let scale = options.scale;
    scale.check()?;
    if options.jobs == 0 {
        return Err(BenchError::Option("at least one job is needed".to_owned()));
    }
    let began = Instant::now();
    let (address, client) = &mut open(address, watch).await?;
    let state = State::of(client, address, Some(scale.load()));
    let state = match watch.asked("reading what is loaded", state).await? {
        Some(state) if !state.scale.grows_to(&scale) => {
            let (has, wanted, option) = (state.scale.to_string(), scale.to_string(), state.scale.option());
            return Err(BenchError::OtherScale { database: address.to_string(), has, wanted, option });
        }
        Some(state) => state,
        None => {
            let created = schema::create(client, &scale, options.seed);
            watch.asked("creating the tables", created).await?;
            State { scale, seed: options.seed, loaded: Vec::new(), is_ready: false }
        }
    };
    let missing: Vec<i32> = (0..scale.pieces()).filter(|number| !state.loaded.contains(number)).collect();
    let parts_loaded = missing.len() as u32;
    let mut sent_bytes = 0;
    if !missing.is_empty() || !state.is_ready {
        let units = scale.units();
        let sql = format!("update {RECORD} set scale = {units}, is_ready = false");
        told(client, "recording the load", &sql, watch).await?;
        let rows = scale.rows(state.seed)?;
        let parts =
            missing.iter().flat_map(|piece| rows.tables(*piece)).map(|table| i64::from(table.parts)).sum();
        let work = |queue, parts| Arc::new(Work::new(address, scale, state.seed, queue, parts));
        let loading = work(missing, parts);
        loading.clone().run(options.jobs, watch, Work::load).await?;
        sent_bytes = loading.bytes.load(Ordering::Relaxed);
        work(indexes(scale.load()), 0).run(options.jobs, watch, Work::index).await?;
        let tables = (0..scale.load().tables().len() as i32).collect();
        work(tables, 0).run(options.jobs, watch, Work::vacuum).await?;
        if let Some(sql) = scale.finish() {
            told(client, "completing the load", &sql, watch).await?;
        }
        let sql = format!("update {RECORD} set is_ready = true");
        told(client, "recording the load", &sql, watch).await?;
    }
    Ok(Prepared {
        database: address.to_string(),
        workload: scale.load().name().to_owned(),
        scale: scale.to_string(),
        parts: scale.pieces() as u32,
        parts_loaded,
        sent_bytes,
        seconds: began.elapsed().as_secs_f64(),
        size_bytes: watch.asked("asking for sizes", size(client, scale.load())).await?,
    })
}

/// Has the server run a short statement of the load.
async fn told(client: &Client, what: &str, sql: &str, watch: Watch<'_>) -> Result<(), BenchError> {
    let ran = unless_over(client.cancel_token(), client.batch_execute(sql), watch.over()).await?;
    ran.map_err(BenchError::query(what))
}

/// What tables and indexes take, bytes.
async fn size(client: &Client, load: Load) -> Result<u64, BenchError> {
    let names: Vec<&str> = load.tables().iter().map(|table| table.name).collect();
    let sql = "select sum(pg_total_relation_size(name::regclass))::int8 from unnest($1::text[]) as name";
    let size = client.query_one(sql, &[&names]).await.map_err(BenchError::query("asking for sizes"))?;
    Ok(size.get::<_, i64>(0) as u64)
}

/// Indexes as numbers: table and place, see [`index_of`].
fn indexes(load: Load) -> Vec<i32> {
    let places = load.tables().iter().enumerate().flat_map(|(table, found)| {
        (0..found.indexes.len()).map(move |place| (table * INDEXES_MAX + place) as i32)
    });
    // The largest tables are the last: they come first, so that the last ones do not wait for one of them.
    places.rev().collect()
}

/// More indexes than any table has.
const INDEXES_MAX: usize = 8;

fn index_of(load: Load, number: i32) -> String {
    let number = number as usize;
    schema::index(&load.tables()[number / INDEXES_MAX], number % INDEXES_MAX)
}

/// Work that several connections share.
struct Work {
    address: Address,
    scale: Scale,
    seed: u64,
    /// What is to be done, by number.
    queue: Vec<i32>,
    next: AtomicUsize,
    done: AtomicUsize,
    /// Parts of tables that there are, and that are done, for progress.
    parts_all: i64,
    parts: AtomicU64,
    bytes: AtomicU64,
    is_over: AtomicBool,
}

impl Work {
    fn new(address: &Address, scale: Scale, seed: u64, queue: Vec<i32>, parts_all: i64) -> Work {
        Work {
            address: address.clone(),
            scale,
            seed,
            parts_all,
            queue,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            parts: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Has so many connections do it, and tells how far they are.
    async fn run<F: Future<Output = Result<(), BenchError>> + Send + 'static>(
        self: Arc<Work>,
        jobs: u32,
        watch: Watch<'_>,
        one: fn(Arc<Work>) -> F,
    ) -> Result<(), BenchError> {
        let mut workers = JoinSet::new();
        (0..(jobs as usize).min(self.queue.len())).for_each(|_| {
            workers.spawn(one(self.clone()));
        });
        let (began, mut told) = (Instant::now(), Instant::now());
        let mut failed = None;
        while !workers.is_empty() {
            if let Ok(Some(ended)) = tokio::time::timeout(LOOK, workers.join_next()).await {
                let ended = ended.expect("a worker neither panics nor is aborted");
                if let Err(error) = ended {
                    self.is_over.store(true, Ordering::Relaxed);
                    // The others end because of the first.
                    failed.get_or_insert(error);
                }
            }
            if (watch.is_over)() {
                self.is_over.store(true, Ordering::Relaxed);
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                (watch.say)(&self.progress(began));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn progress(&self, began: Instant) -> String {
        let (done, all) = (self.done.load(Ordering::Relaxed), self.queue.len());
        let (parts, bytes) = (self.parts.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        if bytes == 0 {
            return format!("indexes and statistics: {done} of {all} done");
        }
        let elapsed = began.elapsed().as_secs_f64();
        let parts_all = self.parts_all;
        let left = elapsed * (parts_all as f64 / parts as f64 - 1.0).max(0.0);
        format!(
            "loading: {:.0} % of {all} parts, {done} complete, {:.1} MB/s, about {left:.0} s left",
            parts as f64 / parts_all as f64 * 100.0,
            bytes as f64 / 1e6 / elapsed
        )
    }

    /// The next piece; none where all are taken or an end is wanted.
    fn take(&self) -> Option<i32> {
        if self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        self.queue.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    /// After the last piece: whether it was the last because of an early end.
    fn end(&self) -> Result<(), BenchError> {
        match self.is_over.load(Ordering::Relaxed) {
            true => Err(BenchError::Stopped),
            false => Ok(()),
        }
    }

    /// Loads pieces of the rows.
    async fn load(self: Arc<Work>) -> Result<(), BenchError> {
        let mut client = self.address.connect().await?;
        let mut rows = self.scale.rows(self.seed)?;
        while let Some(number) = self.take() {
            let token = client.cancel_token();
            unless_over(token, self.piece(&mut client, &mut *rows, number), self.over()).await??;
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        self.end()
    }

    /// Loads a piece, in one transaction.
    async fn piece(&self, client: &mut Client, rows: &mut dyn Rows, number: i32) -> Result<(), BenchError> {
        let transaction = client.transaction().await.map_err(BenchError::query("loading"))?;
        for (table, filled) in rows.tables(number).into_iter().enumerate() {
            let copy = filled.copy;
            let sink = transaction.copy_in::<_, Bytes>(&copy).await.map_err(BenchError::query(&copy))?;
            let mut sink = std::pin::pin!(sink);
            for part in 0..filled.parts {
                if self.is_over.load(Ordering::Relaxed) {
                    return Err(BenchError::Stopped);
                }
                let made = rows.part(number, table, part);
                self.bytes.fetch_add(made.len() as u64, Ordering::Relaxed);
                sink.send(Bytes::from(made)).await.map_err(BenchError::query(&copy))?;
                self.parts.fetch_add(1, Ordering::Relaxed);
            }
            sink.finish().await.map_err(BenchError::query(&copy))?;
        }
        let record = format!("insert into {LOADED} (piece) values ($1)");
        let recorded = transaction.execute(&record, &[&number]).await;
        recorded.map_err(BenchError::query("recording the load"))?;
        transaction.commit().await.map_err(BenchError::query("recording the load"))
    }

    async fn index(self: Arc<Work>) -> Result<(), BenchError> {
        let load = self.scale.load();
        self.statements("creating an index", |number| index_of(load, number)).await
    }

    /// Rows get their final state and tables their statistics now, not in the middle of a measurement.
    async fn vacuum(self: Arc<Work>) -> Result<(), BenchError> {
        let tables = self.scale.load().tables();
        self.statements("vacuum", |table| format!("vacuum analyze {}", tables[table as usize].name)).await
    }

    async fn statements(&self, what: &str, statement: impl Fn(i32) -> String) -> Result<(), BenchError> {
        let client = self.address.connect().await?;
        while let Some(number) = self.take() {
            let sql = statement(number);
            let ran = unless_over(client.cancel_token(), client.batch_execute(&sql), self.over()).await?;
            ran.map_err(BenchError::query(what))?;
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        self.end()
    }

    async fn over(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_made_once() {
        for load in Load::ALL {
            let mut made: Vec<String> =
                indexes(load).into_iter().map(|number| index_of(load, number)).collect();
            let count: usize = load.tables().iter().map(|table| table.indexes.len()).sum();
            assert!(load.tables().iter().all(|table| table.indexes.len() <= INDEXES_MAX));
            made.sort();
            made.dedup();
            assert_eq!(made.len(), count, "{load}");
        }
    }
}
