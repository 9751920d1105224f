//! The load over NBD that keeps the ledger, and the check after a restart.
//!
//! Several tasks draw requests of all kinds: whole pages and odd sectors, single sectors and a quarter of a megabyte,
//! reads, zeros, discards, flushes, durable writes. Half of them fall into a small hot range, so that pages are written again
//! while they wait in a log. Every read is judged.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use tier0_block::BlockTarget;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::NbdUri;
use tier0_units::{Lba, Nanos, PAGE_SECTORS};
use tier0_world::{Random, RealOptions, RealRuntime, Task, World};

use crate::TortureError;
use crate::ledger::Ledger;

/// Requests in flight: enough to fill a log's frames with several requests.
const TASKS: u64 = 24;
/// Connections: more than one shard speaks NBD.
const CONNECTIONS: usize = 2;
/// The hot range, sectors: 1 MiB.
const HOT_SECTORS: u64 = 2048;
/// Sectors of one read of the check: 16 KiB, so that a flash cache answers some where it has not all.
const CHECK_SECTORS: u64 = 32;
/// A request that takes longer hangs: a pool may be paused for 120 s.
const HANG: Nanos = Nanos::from_secs(150);
/// After an error, where errors pass, a task waits so long.
const AFTER_ERROR: Nanos = Nanos::from_millis(50);

/// What a load did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Acknowledged writes, zeroings and discards.
    pub(crate) acknowledged: u64,
    /// Reads whose data was judged.
    pub(crate) reads: u64,
}

/// Something to be done while the load runs, after a wait.
pub(crate) type Action = (Wait, Box<dyn FnOnce() -> Result<(), TortureError>>);

/// When something is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// After so long.
    Time(Nanos),
    /// When so many more requests were acknowledged, but after so long at most: on a slow machine too a log fills and is
    /// destaged before the kill.
    Acknowledged(u64, Nanos),
}

/// What a load that others steer is told, and what they see of it. From any thread.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// End after the requests under way; the server goes on.
    pub(crate) stop: AtomicBool,
    /// The server is being ended: requests fail from now on.
    pub(crate) ending: AtomicBool,
    /// Requests may be answered with errors; they are counted.
    pub(crate) errors_pass: AtomicBool,
    /// Acknowledged writes, zeroings and discards.
    pub(crate) acknowledged: AtomicU64,
    /// Reads whose data was judged.
    pub(crate) reads: AtomicU64,
    /// Requests that were answered with an error.
    pub(crate) errors: AtomicU64,
    /// The longest request that has ended, in ns.
    pub(crate) longest_ns: AtomicU64,
}

/// Runs the load on `uri` until `orders` end it.
pub(crate) fn load_until(
    uri: &str,
    ledger: &Rc<RefCell<Ledger>>,
    seed: u64,
    orders: Arc<Orders>,
) -> Result<(), TortureError> {
    let ledger = ledger.clone();
    in_world(seed, uri, move |world, client| async move {
        let shared = Shared::new(client, ledger, &world, orders);
        for task in Shared::tasks(&shared, seed) {
            shared.within(task).await?;
        }
        shared.finish()
    })
}

/// How often it is looked whether enough requests were acknowledged.
const LOOK: Nanos = Nanos::from_micros(100);

/// Runs the load on `uri` while `actions` are done one after the other; the last one ends the server.
pub(crate) fn load(
    uri: &str,
    ledger: &Rc<RefCell<Ledger>>,
    seed: u64,
    actions: Vec<Action>,
) -> Result<Tally, TortureError> {
    let ledger = ledger.clone();
    in_world(seed, uri, move |world, client| async move {
        let shared = Shared::new(client, ledger, &world, Arc::default());
        let tasks = Shared::tasks(&shared, seed);
        let last = actions.len().saturating_sub(1);
        for (index, (wait, action)) in actions.into_iter().enumerate() {
            shared.wait(wait).await;
            shared.orders.ending.store(index == last, Relaxed);
            action()?;
        }
        for task in tasks {
            shared.within(task).await?;
        }
        shared.finish()?;
        let orders = &shared.orders;
        Ok(Tally { acknowledged: orders.acknowledged.load(Relaxed), reads: orders.reads.load(Relaxed) })
    })
}

/// Reads the whole volume after a restart and judges it.
pub(crate) fn check(uri: &str, ledger: &Rc<RefCell<Ledger>>) -> Result<(), TortureError> {
    let ledger = ledger.clone();
    in_world(0, uri, move |world, client| async move {
        let sectors = ledger.borrow().sectors();
        // From the end on: what is read in order is not kept on flash.
        for piece in (0..sectors.div_ceil(CHECK_SECTORS)).rev() {
            let first = piece * CHECK_SECTORS;
            let count = CHECK_SECTORS.min(sectors - first);
            let ticket = ledger.borrow().begin_read(&(first..first + count));
            let (result, data) = client.read(Lba(first), world.buffer(count as u32)).await;
            result.map_err(|error| {
                TortureError::Failed(format!(
                    "sectors {first}+{count} cannot be read after a restart: {error}"
                ))
            })?;
            ledger
                .borrow_mut()
                .judge_recovered(&ticket, data.as_slice())
                .map_err(|wrong| TortureError::Failed(format!("after a restart {wrong}")))?;
        }
        client.close().await;
        Ok(())
    })
}

/// What the first `sectors` of a volume hold.
pub(crate) fn first_sectors(uri: &str, sectors: u32) -> Result<Vec<u8>, TortureError> {
    in_world(0, uri, move |world, client| async move {
        let mut found = Vec::new();
        for first in (0..sectors).step_by(CHECK_SECTORS as usize) {
            let count = (CHECK_SECTORS as u32).min(sectors - first);
            let (result, data) = client.read(Lba(u64::from(first)), world.buffer(count)).await;
            result.map_err(|error| {
                TortureError::Failed(format!("sectors {first}+{count} cannot be read: {error}"))
            })?;
            found.extend_from_slice(data.as_slice());
        }
        client.close().await;
        Ok(found)
    })
}

/// Writes from the beginning of a volume until `sectors` are written or a write fails; how many were written.
pub(crate) fn fill(uri: &str, sectors: u64) -> Result<u64, TortureError> {
    in_world(0, uri, move |world, client| async move {
        let mut first = 0;
        while first < sectors {
            let mut data = world.buffer(CHECK_SECTORS as u32);
            data.as_mut_slice().fill(0xA5);
            if client.write(Lba(first), data.freeze(), false).await.is_err() {
                break;
            }
            first += CHECK_SECTORS;
        }
        client.close().await;
        Ok(first)
    })
}

/// Runs `work` in a world of its own with a client of `uri`.
fn in_world<R: 'static, F>(
    seed: u64,
    uri: &str,
    work: impl FnOnce(World, Client) -> F + 'static,
) -> Result<R, TortureError>
where
    F: Future<Output = Result<R, TortureError>> + 'static,
{
    let options = RealOptions { seed, ..RealOptions::default() };
    let runtime = RealRuntime::new(&options).map_err(TortureError::system("no world can be made"))?;
    let (world, uri) = (runtime.world().clone(), uri.parse::<NbdUri>());
    runtime.run(async move {
        let uri = uri.map_err(|error| TortureError::Failed(error.to_string()))?;
        let options = ClientOptions { connections: CONNECTIONS, ..ClientOptions::default() };
        let client = Client::connect(&world, &uri, &options)
            .await
            .map_err(|error| TortureError::Failed(format!("the server refuses its client: {error}")))?;
        work(world, client).await
    })
}

/// What the tasks of a load share.
struct Shared {
    client: Client,
    ledger: Rc<RefCell<Ledger>>,
    world: World,
    orders: Arc<Orders>,
    /// The first failure that the end of the server does not explain.
    failure: RefCell<Option<String>>,
}

impl Shared {
    fn new(client: Client, ledger: Rc<RefCell<Ledger>>, world: &World, orders: Arc<Orders>) -> Rc<Shared> {
        let failure = RefCell::default();
        Rc::new(Shared { client, ledger, world: world.clone(), orders, failure })
    }

    /// The tasks that draw and carry out requests.
    fn tasks(shared: &Rc<Shared>, seed: u64) -> Vec<Task<()>> {
        let spawn = |task| shared.world.spawn(shared.clone().run(Random::new(seed, task)));
        (0..TASKS).map(spawn).collect()
    }

    /// Where the server is gone, whatever is not answered by now never will be.
    fn finish(&self) -> Result<(), TortureError> {
        if self.orders.ending.load(Relaxed) {
            self.ledger.borrow_mut().crashed();
        }
        self.failure.take().map_or(Ok(()), |failure| Err(TortureError::Failed(failure)))
    }

    async fn run(self: Rc<Self>, mut random: Random) {
        let most = self.client.info().sectors.0.min(self.ledger.borrow().sectors());
        loop {
            let request = draw(&mut random, most);
            if !self.ledger.borrow_mut().reserve(&request.range) {
                // Another request has it; a turn of the loop, not a wait, since others hold it for microseconds.
                self.world.sleep(Nanos::from_micros(20)).await;
                continue;
            }
            let began = self.world.now();
            let done = self.within(self.perform(&request)).await;
            let took = self.world.now().0 - began.0;
            self.orders.longest_ns.fetch_max(took, Relaxed);
            self.ledger.borrow_mut().release(&request.range);
            match done {
                Ok(Ok(())) => {}
                Ok(Err(Ended::ByServer(_))) if self.orders.ending.load(Relaxed) => return,
                Ok(Err(Ended::ByServer(_))) if self.orders.errors_pass.load(Relaxed) => {
                    self.orders.errors.fetch_add(1, Relaxed);
                    self.world.sleep(AFTER_ERROR).await;
                }
                Ok(Err(Ended::ByServer(error))) => return self.fail(format!("{request:?} failed: {error}")),
                Ok(Err(Ended::WrongData(wrong))) => return self.fail(wrong),
                Err(error) => return self.fail(format!("{request:?}: {error}")),
            }
            if self.failure.borrow().is_some() || self.orders.stop.load(Relaxed) {
                return;
            }
        }
    }

    async fn wait(&self, wait: Wait) {
        match wait {
            Wait::Time(time) => self.world.sleep(time).await,
            Wait::Acknowledged(count, most) => {
                let until = self.world.now() + most;
                let enough = self.orders.acknowledged.load(Relaxed) + count;
                while self.orders.acknowledged.load(Relaxed) < enough && self.world.now() < until {
                    self.world.sleep(LOOK).await;
                }
            }
        }
    }

    fn fail(&self, failure: String) {
        self.failure.borrow_mut().get_or_insert(failure);
    }

    /// What `future` gives, unless it hangs.
    async fn within<R>(&self, future: impl Future<Output = R>) -> Result<R, TortureError> {
        use futures_util::future::{Either, select};
        match select(std::pin::pin!(future), self.world.sleep(HANG)).await {
            Either::Left((result, _)) => Ok(result),
            Either::Right(_) => Err(TortureError::Failed(format!("no answer within {HANG}"))),
        }
    }

    async fn perform(&self, request: &Request) -> Result<(), Ended> {
        let (range, durable) = (&request.range, request.durable);
        let (lba, sectors) = (Lba(range.start), range.end - range.start);
        let (ticket, result) = match request.kind {
            Kind::Read => return self.read(range).await,
            Kind::Flush => return self.flush().await,
            Kind::Write => {
                let mut data = self.world.buffer(sectors as u32);
                let ticket = self.ledger.borrow_mut().begin_write(range, data.as_mut_slice());
                (ticket, self.client.write(lba, data.freeze(), durable).await)
            }
            Kind::Zeroes { may_discard } => {
                let ticket = self.ledger.borrow_mut().begin_zeroes(range);
                (ticket, self.client.write_zeroes(lba, sectors, may_discard, durable).await)
            }
            Kind::Discard => {
                let ticket = self.ledger.borrow_mut().begin_discard(range);
                (ticket, self.client.discard(lba, sectors).await)
            }
        };
        // A discard cannot ask to be durable.
        let durable = durable && !matches!(request.kind, Kind::Discard);
        self.ledger.borrow_mut().end(ticket, result.is_ok(), durable);
        result?;
        self.orders.acknowledged.fetch_add(1, Relaxed);
        Ok(())
    }

    async fn flush(&self) -> Result<(), Ended> {
        let began = self.ledger.borrow_mut().begin_flush();
        self.client.flush().await?;
        self.ledger.borrow_mut().end_flush(began);
        Ok(())
    }

    async fn read(&self, range: &Range<u64>) -> Result<(), Ended> {
        let ticket = self.ledger.borrow().begin_read(range);
        let sectors = (range.end - range.start) as u32;
        let (result, data) = self.client.read(Lba(range.start), self.world.buffer(sectors)).await;
        result?;
        let judged = self.ledger.borrow_mut().judge_running(&ticket, data.as_slice());
        judged.map_err(|wrong| Ended::WrongData(format!("while it runs {wrong}")))?;
        self.orders.reads.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// Why a request brought nothing.
enum Ended {
    ByServer(tier0_world::IoError),
    WrongData(String),
}

impl From<tier0_world::IoError> for Ended {
    fn from(error: tier0_world::IoError) -> Ended {
        Ended::ByServer(error)
    }
}

#[derive(Debug)]
struct Request {
    kind: Kind,
    range: Range<u64>,
    durable: bool,
}

#[derive(Debug)]
enum Kind {
    Read,
    Write,
    Zeroes { may_discard: bool },
    Discard,
    Flush,
}

/// The next request on a volume of `most` sectors.
fn draw(random: &mut Random, most: u64) -> Request {
    let kind = match random.below(100) {
        0..20 => Kind::Read,
        20..90 => Kind::Write,
        90..94 => Kind::Zeroes { may_discard: random.chance(0.5) },
        94..96 => Kind::Discard,
        _ => Kind::Flush,
    };
    if let Kind::Flush = kind {
        // An empty range overlaps nothing.
        return Request { kind, range: 0..0, durable: false };
    }
    let (sectors, alignment) = match random.below(100) {
        0..65 => ((1 + random.below(4)) * PAGE_SECTORS, PAGE_SECTORS),
        65..85 => (1 + random.below(3 * PAGE_SECTORS), 1),
        _ => ((8 + random.below(56)) * PAGE_SECTORS, PAGE_SECTORS),
    };
    let span = if random.chance(0.5) { HOT_SECTORS } else { most };
    let first = random.below(span - sectors) / alignment * alignment;
    Request { kind, range: first..first + sectors, durable: random.chance(0.1) }
}
