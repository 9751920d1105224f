//! The load over NBD that keeps the ledger, and the check after a restart.
//!
//! Several tasks draw requests of all kinds: whole pages and odd sectors, single sectors and a quarter of a megabyte,
//! reads, zeros, discards, flushes, durable writes. Half of them fall into a small hot range, so that pages are written again
//! while they wait in a log. Every read is judged.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use tier0_drive::BlockTarget;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::NbdUri;
use tier0_units::{Lba, Nanos, PAGE_SECTORS};
use tier0_world::{Random, RealOptions, RealRuntime, World};

use crate::TortureError;
use crate::ledger::{Change, Ledger};

/// Requests in flight: enough to fill a log's frames with several requests.
const TASKS: u64 = 24;
/// Connections: more than one shard speaks NBD.
const CONNECTIONS: usize = 2;
/// The hot range, sectors: 1 MiB.
const HOT_SECTORS: u64 = 2048;
/// Sectors of one read of the check: 1 MiB.
const CHECK_SECTORS: u64 = 2048;
/// A request that takes longer hangs.
const HANG: Nanos = Nanos::from_secs(120);

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

/// How often it is looked whether enough requests were acknowledged.
const LOOK: Nanos = Nanos::from_micros(100);

/// Runs the load on `uri` while `actions` are done one after the other; the last one ends the server.
pub(crate) fn load(
    uri: &str,
    ledger: &Rc<RefCell<Ledger>>,
    keeps_acknowledged: bool,
    seed: u64,
    actions: Vec<Action>,
) -> Result<Tally, TortureError> {
    let ledger = ledger.clone();
    in_world(seed, uri, move |world, client| async move {
        let shared = Rc::new(Shared {
            client,
            ledger,
            world: world.clone(),
            keeps_acknowledged,
            ending: Cell::new(false),
            tally: Cell::default(),
            failure: RefCell::default(),
        });
        let tasks: Vec<_> =
            (0..TASKS).map(|task| world.spawn(shared.clone().run(Random::new(seed, task)))).collect();
        let last = actions.len().saturating_sub(1);
        for (index, (wait, action)) in actions.into_iter().enumerate() {
            shared.wait(wait).await;
            shared.ending.set(index == last);
            action()?;
        }
        for task in tasks {
            shared.within(task).await?;
        }
        shared.ledger.borrow_mut().crashed();
        match shared.failure.take() {
            Some(failure) => Err(TortureError::Failed(failure)),
            None => Ok(shared.tally.get()),
        }
    })
}

/// Reads the whole volume after a restart and judges it.
pub(crate) fn check(uri: &str, ledger: &Rc<RefCell<Ledger>>) -> Result<(), TortureError> {
    let ledger = ledger.clone();
    in_world(0, uri, move |world, client| async move {
        let sectors = ledger.borrow().sectors();
        for first in (0..sectors).step_by(CHECK_SECTORS as usize) {
            let count = CHECK_SECTORS.min(sectors - first);
            let (result, data) = client.read(Lba(first), world.buffer(count as u32)).await;
            result.map_err(|error| {
                TortureError::Failed(format!(
                    "sectors {first}+{count} cannot be read after a restart: {error}"
                ))
            })?;
            ledger
                .borrow_mut()
                .judge_recovered(first, data.as_slice())
                .map_err(|wrong| TortureError::Failed(format!("after a restart {wrong}")))?;
        }
        client.close().await;
        Ok(())
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
    keeps_acknowledged: bool,
    /// The server is being ended: requests fail from now on.
    ending: Cell<bool>,
    tally: Cell<Tally>,
    /// The first failure that the end of the server does not explain.
    failure: RefCell<Option<String>>,
}

impl Shared {
    async fn run(self: Rc<Self>, mut random: Random) {
        let most = self.client.info().sectors.0.min(self.ledger.borrow().sectors());
        loop {
            let request = draw(&mut random, most);
            if !self.ledger.borrow_mut().reserve(&request.range) {
                // Somebody is there; a turn of the loop, not a wait, since others hold it for microseconds.
                self.world.sleep(Nanos::from_micros(20)).await;
                continue;
            }
            let done = self.within(self.perform(&request)).await;
            self.ledger.borrow_mut().release(&request.range);
            match done {
                Ok(Ok(())) => {}
                Ok(Err(Ended::ByServer(_))) if self.ending.get() => return,
                Ok(Err(Ended::ByServer(error))) => return self.fail(format!("{request:?} failed: {error}")),
                Ok(Err(Ended::WrongData(wrong))) => return self.fail(wrong),
                Err(error) => return self.fail(format!("{request:?}: {error}")),
            }
            if self.failure.borrow().is_some() {
                return;
            }
        }
    }

    async fn wait(&self, wait: Wait) {
        match wait {
            Wait::Time(time) => self.world.sleep(time).await,
            Wait::Acknowledged(count, most) => {
                let until = self.world.now() + most;
                let enough = self.tally.get().acknowledged + count;
                while self.tally.get().acknowledged < enough && self.world.now() < until {
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
        let (lba, sectors) = (Lba(request.range.start), request.range.end - request.range.start);
        let ticket = match request.kind {
            Kind::Read => return self.read(request, lba, sectors).await,
            Kind::Flush => {
                let moment = self.ledger.borrow().begin_flush();
                self.client.flush().await?;
                self.ledger.borrow_mut().end_flush(moment);
                return Ok(());
            }
            Kind::Write => {
                let mut data = self.world.buffer(sectors as u32);
                let ticket = self.ledger.borrow_mut().begin_write(&request.range, data.as_mut_slice());
                self.client.write(lba, data.freeze(), request.durable).await?;
                ticket
            }
            Kind::Zeroes { may_discard } => {
                let ticket = self.ledger.borrow_mut().begin(&request.range, Change::Version(0));
                self.client.write_zeroes(lba, sectors, may_discard, request.durable).await?;
                ticket
            }
            Kind::Discard => {
                let ticket = self.ledger.borrow_mut().begin(&request.range, Change::Discard);
                self.client.discard(lba, sectors).await?;
                ticket
            }
        };
        self.ledger.borrow_mut().answered(ticket, request.durable || self.keeps_acknowledged);
        let tally = self.tally.get();
        self.tally.set(Tally { acknowledged: tally.acknowledged + 1, ..tally });
        Ok(())
    }

    async fn read(&self, request: &Request, lba: Lba, sectors: u64) -> Result<(), Ended> {
        let (result, data) = self.client.read(lba, self.world.buffer(sectors as u32)).await;
        result?;
        let judged = self.ledger.borrow().judge_running(request.range.start, data.as_slice());
        judged.map_err(|wrong| Ended::WrongData(format!("while it runs {wrong}")))?;
        let tally = self.tally.get();
        self.tally.set(Tally { reads: tally.reads + 1, ..tally });
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
