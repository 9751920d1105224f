//! A database at work: users of a host who run transactions against storage, in the time of a world.
//!
//! Each user thinks, draws a transaction, touches its pages one after the other, and commits. Processor time is paid before each
//! wait, so that it takes the cores when the user has it to do.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_policy::PolicyKind;
use tier0_units::{ByteCount, Lba, Nanos};
use tier0_workload::draw::Exponential;
use tier0_workload::stats::Tally;
use tier0_world::{IoError, Random, World};

use crate::arrivals::Arrivals;
use crate::buffer::{Access, Buffer};
use crate::engine::Engine;
use crate::host::{Host, HostSpec};
use crate::images::Images;
use crate::layout::{Layout, Scale};
use crate::locks::Locks;
use crate::log::Log;
use crate::pages::{Had, Pages};
use crate::scan::{ScanCosts, Scans};
use crate::script::{Script, TouchKind};
use crate::storage::{Placement, Storage, TooSmall, Transfers, VolumeIo};
use crate::sweep::{Run, home_of};
use crate::workload::Workload;

/// A database that is to run.
#[derive(Clone, Debug)]
pub struct DatabaseSpec {
    /// Objects and transactions.
    pub workload: Workload,
    /// Pages, log, writers.
    pub engine: Engine,
    /// How large it is.
    pub scale: Scale,
    /// Memory for pages.
    pub buffer: ByteCount,
    /// Which pages give way.
    pub policy: PolicyKind,
    /// The machine.
    pub host: HostSpec,
    /// Users.
    pub users: u32,
    /// Mean time between a user's answer and next transaction, exponentially distributed.
    pub think: Nanos,
    /// Transactions per second that arrive in all, whatever the database does (Poisson), which users take in turn without thinking;
    /// response times then count from the arrival. None: users begin the next one after thinking.
    pub rate: Option<f64>,
}

/// How long a database runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength {
    /// Before anything is counted. The page buffer is warm from the start.
    pub warm_up: Nanos,
    /// Counted, at most.
    pub measured: Nanos,
    /// So many transactions are enough, and half as many for the warm-up.
    pub enough: u64,
}

/// What the caller of [`run()`] does on the way.
pub struct RunHooks<'a> {
    /// What the caches below hold, together: so many bytes are missed twice before the run, without I/O, and told to `missed`.
    pub caches: ByteCount,
    /// A page was missed in the buffer while it was brought to its steady state: volume, first sector, sectors.
    pub missed: &'a dyn Fn(usize, Lba, u64),
    /// Counting begins.
    pub begins: &'a mut dyn FnMut(),
}

/// The counted time is cut into so many parts, whose scatter says how well the rate is known.
const PARTS: usize = 20;
/// However fast a database is, so much is counted.
const MEASURED_MIN: Nanos = Nanos::from_millis(500);
/// How often a warm-up is looked at.
const LOOKS: u64 = 20;
/// Bytes to which a workload's time of a scan belongs.
const SCAN_UNIT: f64 = 8192.0;
/// The 97.5th percentile of Student's t with one degree of freedom less.
const STUDENT_975: f64 = 2.093;

/// What a database did.
#[derive(Clone, Debug)]
pub struct DatabaseReport {
    /// The time that was counted.
    pub measured: Nanos,
    /// By transaction.
    pub transactions: Vec<TransactionReport>,
    /// All transactions per second.
    pub per_s: f64,
    /// Half the width of the 95 % interval of that rate, as a share of it.
    pub half_width: f64,
    /// Transactions per second of the benchmark's own measure.
    pub headline_per_s: f64,
    /// Mean response time of all.
    pub response_ms: f64,
    /// The median of all response times.
    pub p50_ms: f64,
    /// The response time that 95 % of all keep.
    pub p95_ms: f64,
    /// The share of the cores' time that was used.
    pub cpu: f64,
    /// Reads for each transaction; those of a scan carry several pages.
    pub reads: f64,
    /// Pages that the database asked the operating system for, for each transaction: those that were read, and those in its page
    /// cache.
    pub asked: f64,
    /// Page writes for each transaction; one can carry several pages.
    pub writes: f64,
    /// Bytes of the log for each transaction, in whole blocks: one that is not full is written again.
    pub log_bytes: f64,
    /// Bytes of the log's records for each transaction.
    pub log_records_bytes: f64,
    /// Writes of the log for each transaction.
    pub log_writes: f64,
    /// Mean time of a page read.
    pub read_ms: f64,
    /// Mean time of a write of the log.
    pub log_ms: f64,
    /// Touches that found their page in memory, as a share of all.
    pub hits: f64,
    /// Dirty pages at the end, as a share of the buffer.
    pub dirty: f64,
    /// By object: its pages, reads and writes for each transaction.
    pub objects: Vec<ObjectReport>,
    /// By volume.
    pub volumes: Vec<VolumeIo>,
    /// I/Os per second of all kinds.
    pub iops: f64,
    /// 10^6 bytes per second of all kinds.
    pub mb_s: f64,
    /// The database's size.
    pub bytes: ByteCount,
}

/// One kind of transaction.
#[derive(Clone, Debug)]
pub struct TransactionReport {
    /// Its name.
    pub name: String,
    /// Per second.
    pub per_s: f64,
    /// Mean response time.
    pub response_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The response time that 95 % keep.
    pub p95_ms: f64,
}

/// One object.
#[derive(Clone, Debug)]
pub struct ObjectReport {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: ByteCount,
    /// Page reads for each transaction.
    pub reads: f64,
    /// Pages that the database asked the operating system for, for each transaction.
    pub asked: f64,
    /// Writes for each transaction.
    pub writes: f64,
    /// Mean time of a page read.
    pub read_ms: f64,
}

/// A database that ran no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// Its volumes are too small.
    #[error(transparent)]
    TooSmall(#[from] TooSmall),
    /// A read or a write failed.
    #[error("the database's storage failed: {0}; check the array's drives")]
    Io(IoError),
}

struct Meter {
    /// By transaction.
    responses: Vec<Tally>,
    all: Tally,
    parts: Vec<u64>,
    hits: u64,
    touches: u64,
}

/// What a run's tasks share.
struct Shared<T> {
    world: World,
    spec: DatabaseSpec,
    script: RefCell<Script>,
    pages: Rc<Pages<T>>,
    log: Rc<Log<T>>,
    scans: Scans<T>,
    host: Host,
    locks: Locks,
    arrivals: Option<Arrivals>,
    /// Processor time of a touch.
    touch: Nanos,
    meter: RefCell<Meter>,
    /// When counting begins, once that is known, and how long it lasts.
    counted: Cell<Option<(Nanos, Nanos)>>,
    /// Transactions ever done.
    done: Cell<u64>,
    stopped: Cell<bool>,
    error: Cell<Option<IoError>>,
}

/// Runs a database on volumes. The page buffer is brought to its steady state before, without I/O.
///
/// # Errors
/// The volumes are too small, or fail.
pub async fn run<T: BlockTarget + 'static>(
    world: &World,
    spec: DatabaseSpec,
    volumes: Vec<Rc<T>>,
    placement: &Placement,
    length: RunLength,
    seed: u64,
    hooks: RunHooks<'_>,
) -> Result<DatabaseReport, DatabaseError> {
    let layout = Layout::new(&spec.workload, &spec.engine, &spec.scale);
    let storage = Storage::new(world, &layout, volumes, placement)?.with_queue(spec.host.volume_queue);
    let storage =
        Rc::new(storage.with_page_cache(spec.host.page_cache).with_flushes(spec.engine.flushes_caches()));
    let mut script = Script::new(&spec.workload, &layout);
    let mut buffer = Buffer::new(spec.buffer.0 / layout.page.0, spec.policy);
    let touches = warm(&spec, &mut script, &mut buffer, &storage, &hooks, seed);
    let engine = &spec.engine;
    let log = Rc::new(Log::new(&storage, engine.log_block.value as u64, engine.log_write.value as u64));
    let image_bytes =
        if engine.logs_page_images() { engine.page.value * engine.fill.value / 100.0 } else { 0.0 };
    let images = Images::new(layout.pages, image_bytes as u64);
    let pages = Rc::new(Pages::new(world, engine, &storage, &log, images, buffer));
    let scan_page = Nanos((spec.workload.scan_us * 1e3 * layout.page.0 as f64 / SCAN_UNIT) as u64);
    let costs = ScanCosts { page: scan_page, io: spec.host.io };
    let scans = Scans::new(world, engine, &storage, &pages, &layout, costs);
    let kinds = spec.workload.transactions.len();
    let shared = Rc::new(Shared {
        world: world.clone(),
        script: RefCell::new(script),
        pages: pages.clone(),
        log: log.clone(),
        scans,
        host: Host::new(world, &spec.host),
        locks: Locks::default(),
        arrivals: spec.rate.map(|rate| Arrivals::new(rate, world.now(), seed)),
        touch: Nanos((spec.host.transaction.0 as f64 / touches.max(1.0)) as u64),
        meter: RefCell::new(Meter::new(kinds)),
        counted: Cell::new(None),
        done: Cell::new(0),
        stopped: Cell::new(false),
        error: Cell::new(None),
        spec,
    });
    let writers = [
        world.spawn(async move { log.write().await }),
        world.spawn(pages.clone().write_victims()),
        world.spawn(pages.clone().checkpoint()),
    ];
    let users = 0..u64::from(shared.spec.users);
    let users: Vec<_> = users.map(|user| world.spawn(shared.clone().user(user, seed))).collect();
    let rate = shared.warm_up(length).await;
    let enough = Nanos::from_secs_f64((length.enough as f64 / rate.max(1e-9)).min(1e9));
    let measured = length.measured.min(enough).max(MEASURED_MIN);
    storage.take_transfers();
    shared.host.take_busy();
    let log_before = shared.log.appended();
    (hooks.begins)();
    shared.counted.set(Some((world.now(), measured)));
    world.sleep(measured).await;
    shared.counted.set(None);
    let transfers = storage.take_transfers();
    let cpu = shared.host.take_busy();
    shared.stopped.set(true);
    let logged = shared.log.appended() - log_before;
    let report = shared.report(&layout, &transfers, logged, cpu, measured);
    // What waits for a page or the log is cancelled with its task.
    drop(users);
    drop(writers);
    match shared.error.get().or(pages.error()) {
        Some(error) => Err(DatabaseError::Io(error)),
        None => Ok(report),
    }
}

/// Brings a buffer and the caches below to their steady states, and returns how many pages a transaction touches on average.
fn warm<T: BlockTarget>(
    spec: &DatabaseSpec,
    script: &mut Script,
    buffer: &mut Buffer,
    storage: &Storage<T>,
    hooks: &RunHooks<'_>,
    seed: u64,
) -> f64 {
    let layout = script.layout().clone();
    let mut random = Random::new(seed, WARM_STREAM);
    let users = u64::from(spec.users);
    let engine = &spec.engine;
    let mut run = Run { script, engine, buffer, random: &mut random, users, touches: Vec::new(), scanned: 0 };
    run.warm();
    let (mut touches, mut counted) = (0u64, 0u64);
    let scanned = run.scanned + run.buffer.capacity();
    while counted < TOUCHES_COUNTED && run.scanned < scanned {
        run.transaction(&mut |_, _| touches += 1);
        counted += 1;
    }
    let tell = |page: u64| {
        let (volume, lba, sectors) = storage.place_of(page);
        (hooks.missed)(volume, lba, sectors);
    };
    if hooks.caches >= layout.bytes() {
        (0..layout.pages).for_each(tell);
    }
    // A page that gives way dirty is written, through the page cache.
    let pass = |access: Access| {
        if let Access::Miss { evicted: Some(gone) } | Access::Back { evicted: Some(gone) } = access {
            storage.pass_page_cache(gone);
        }
    };
    let (mut passed, mut tries) = (0, 0);
    let wanted = (2 * storage.page_cache_capacity()).min(MISSES_MAX);
    let scanned = run.scanned + run.buffer.capacity();
    while passed < wanted && tries < 10 * wanted && run.scanned < scanned {
        tries += 1;
        run.transaction(&mut |page, access| {
            pass(access);
            if let Access::Miss { .. } = access {
                passed += 1;
                storage.pass_page_cache(page);
            }
        });
    }
    let wanted = (2 * hooks.caches.0 / layout.page.0).min(MISSES_MAX);
    let (mut missed, mut tries) = (0, 0);
    let scanned = run.scanned + run.buffer.capacity();
    while missed < wanted && tries < 10 * wanted && run.scanned < scanned {
        tries += 1;
        run.transaction(&mut |page, access| {
            pass(access);
            if let Access::Miss { .. } = access
                && !storage.pass_page_cache(page)
            {
                missed += 1;
                tell(page);
            }
        });
    }
    touches as f64 / counted as f64
}

/// The most pages that are missed to warm the caches below.
const MISSES_MAX: u64 = 5_000_000;
/// The random stream of the transactions that warm the buffer; users have the streams from 0 on.
const WARM_STREAM: u64 = u64::MAX;
/// Transactions whose touches are counted for their mean.
const TOUCHES_COUNTED: u64 = 5_000;

impl Meter {
    fn new(kinds: usize) -> Meter {
        Meter {
            responses: (0..kinds).map(|_| Tally::new()).collect(),
            all: Tally::new(),
            parts: vec![0; PARTS],
            hits: 0,
            touches: 0,
        }
    }
}

impl<T: BlockTarget + 'static> Shared<T> {
    async fn user(self: Rc<Self>, user: u64, seed: u64) {
        let mut random = Random::new(seed, user);
        let think = (self.spec.think > Nanos::ZERO).then(|| Exponential::with_mean(self.spec.think));
        let homes = self.script.borrow().layout().sizes[0];
        let home = home_of(user, u64::from(self.spec.users), homes);
        while !self.stopped.get() {
            let mut began = None;
            if let Some(arrivals) = &self.arrivals {
                let arrival = arrivals.take();
                self.world.sleep_until(arrival).await;
                began = Some(arrival);
            } else if let Some(think) = think {
                self.world.sleep(Nanos(think.draw_ns(&mut random) as u64)).await;
            }
            let began = began.unwrap_or_else(|| self.world.now());
            if let Err(error) = self.transaction(home, began, &mut random).await {
                self.error.set(Some(error));
                return;
            }
        }
    }

    /// Runs a transaction; its response time counts from `began`.
    async fn transaction(&self, home: u64, began: Nanos, random: &mut Random) -> Result<(), IoError> {
        let mut touches = Vec::new();
        let kind = {
            let mut script = self.script.borrow_mut();
            let kind = script.draw_kind(random);
            script.run(kind, home, random, &mut touches);
            kind
        };
        let mut owed = Nanos::ZERO;
        let mut commit = None;
        let per_change = self.spec.engine.log_per_change.value as u64;
        let depth = self.spec.engine.prefetch.value as usize;
        let (mut count, mut hits) = (0, 0);
        let mut held = Vec::new();
        // Touches before this one have been looked at, and what they lack is being read.
        let mut ahead = 0;
        for (place, touch) in touches.iter().enumerate() {
            if let TouchKind::Scan(pages) = touch.kind {
                self.host.work(std::mem::take(&mut owed).saturating_add(self.touch)).await;
                self.scans.run(touch.page, pages, &self.host).await?;
                continue;
            }
            if let TouchKind::Stretch(pages) = touch.kind {
                let work =
                    std::mem::take(&mut owed).saturating_add(self.touch).saturating_add(self.spec.host.io);
                self.host.work(work).await;
                self.pages.read_past(touch.page, pages).await?;
                continue;
            }
            count += 1;
            if touch.is_listed && depth > 1 {
                let listed = touches[place..].iter().take(depth).take_while(|touch| touch.is_listed).count();
                let from = ahead.max(place);
                ahead = ahead.max(place + listed);
                for next in &touches[from..ahead] {
                    if self.pages.is_absent(next.page) {
                        owed = owed.saturating_add(self.spec.host.io);
                        self.host.work(std::mem::take(&mut owed)).await;
                        self.pages.read_ahead(next.page);
                    } else {
                        hits += 1;
                    }
                }
            }
            owed = owed.saturating_add(self.touch);
            if let Some(row) = touch.hold {
                if !self.locks.is_free(row) {
                    self.host.work(std::mem::take(&mut owed)).await;
                }
                held.push(self.locks.lock(row).await);
            }
            if touch.kind != TouchKind::Read {
                commit = Some(self.log.append(per_change + self.pages.image(touch.page)));
            }
            let changed = commit.filter(|_| touch.kind != TouchKind::Read);
            let waits = !self.pages.is_in_memory(touch.page);
            if waits {
                if place >= ahead {
                    owed = owed.saturating_add(self.spec.host.io);
                }
                self.host.work(std::mem::take(&mut owed)).await;
            }
            match self.pages.touch(touch.page, touch.kind, changed).await? {
                Had::InMemory if place >= ahead => hits += 1,
                Had::InMemory | Had::Read => {}
            }
        }
        if commit.is_some() {
            owed = owed.saturating_add(self.spec.host.io);
        }
        self.host.work(owed).await;
        if let Some(position) = commit {
            self.log.until_written(position).await?;
        }
        drop(held);
        self.count(kind, began, count, hits);
        Ok(())
    }

    /// Waits until queues and caches are as full as they will be, and returns the transactions per second at the end of it.
    async fn warm_up(&self, length: RunLength) -> f64 {
        let (began, look) = (self.world.now(), Nanos(length.warm_up.0 / LOOKS).max(Nanos::from_millis(1)));
        let mut rate = 0.0;
        while self.world.now().saturating_sub(began) < length.warm_up && self.done.get() < length.enough / 2 {
            let before = self.done.get();
            self.world.sleep(look).await;
            rate = (self.done.get() - before) as f64 / look.as_secs_f64();
        }
        rate
    }

    fn count(&self, kind: usize, began: Nanos, touches: u64, hits: u64) {
        self.done.set(self.done.get() + 1);
        let Some((since, length)) = self.counted.get() else { return };
        let now = self.world.now();
        let response = now.saturating_sub(began);
        let mut meter = self.meter.borrow_mut();
        meter.responses[kind].record(0, response);
        meter.all.record(0, response);
        let part = now.saturating_sub(since).as_secs_f64() / length.as_secs_f64().max(1e-9);
        meter.parts[((part * PARTS as f64) as usize).min(PARTS - 1)] += 1;
        meter.touches += touches;
        meter.hits += hits;
    }

    fn report(
        &self,
        layout: &Layout,
        transfers: &Transfers,
        logged: u64,
        cpu: f64,
        time: Nanos,
    ) -> DatabaseReport {
        let meter = self.meter.borrow();
        let workload = &self.spec.workload;
        let seconds = time.as_secs_f64().max(1e-9);
        let transactions = workload.transactions.iter().zip(&meter.responses);
        let transactions = transactions.map(|(transaction, responses)| TransactionReport {
            name: transaction.name.clone(),
            per_s: responses.ios() as f64 / seconds,
            response_ms: responses.latency_ns_mean() / 1e6,
            p50_ms: ms(responses, 0.5),
            p95_ms: ms(responses, 0.95),
        });
        let transactions: Vec<TransactionReport> = transactions.collect();
        let done = meter.all.ios().max(1) as f64;
        let sum = |tallies: &[Tally]| tallies.iter().map(Tally::ios).sum::<u64>() as f64;
        let bytes = |tallies: &[Tally]| tallies.iter().map(|tally| tally.bytes().0).sum::<u64>() as f64;
        let (reads, writes) = (sum(&transfers.reads), sum(&transfers.writes));
        let waited: f64 =
            transfers.reads.iter().map(|tally| tally.latency_ns_mean() * tally.ios() as f64).sum();
        let objects = workload.objects.iter().zip(&layout.objects).enumerate();
        let objects = objects.map(|(place, (object, placed))| ObjectReport {
            name: object.name.clone(),
            bytes: ByteCount(placed.pages * layout.page.0),
            reads: transfers.reads[place].ios() as f64 / done,
            asked: (transfers.reads[place].ios() + transfers.cached[place]) as f64 / done,
            writes: transfers.writes[place].ios() as f64 / done,
            read_ms: transfers.reads[place].latency_ns_mean() / 1e6,
        });
        let all_bytes = bytes(&transfers.reads) + bytes(&transfers.writes) + transfers.log.bytes().0 as f64;
        DatabaseReport {
            measured: time,
            per_s: meter.all.ios() as f64 / seconds,
            half_width: half_width(&meter.parts),
            headline_per_s: transactions[workload.headline].per_s,
            response_ms: meter.all.latency_ns_mean() / 1e6,
            p50_ms: ms(&meter.all, 0.5),
            p95_ms: ms(&meter.all, 0.95),
            cpu,
            reads: reads / done,
            asked: (reads + transfers.cached.iter().sum::<u64>() as f64) / done,
            writes: writes / done,
            log_bytes: transfers.log.bytes().0 as f64 / done,
            log_records_bytes: logged as f64 / done,
            log_writes: transfers.log.ios() as f64 / done,
            read_ms: waited / reads.max(1.0) / 1e6,
            log_ms: transfers.log.latency_ns_mean() / 1e6,
            hits: meter.hits as f64 / meter.touches.max(1) as f64,
            dirty: self.pages.dirty_share(),
            objects: objects.collect(),
            volumes: transfers.volumes.clone(),
            iops: (reads + writes + transfers.log.ios() as f64) / seconds,
            mb_s: all_bytes / seconds / 1e6,
            bytes: layout.bytes(),
            transactions,
        }
    }
}

fn ms(tally: &Tally, quantile: f64) -> f64 {
    tally.latency_at(quantile).0 as f64 / 1e6
}

/// Half the width of the 95 % interval of the mean of counts, as a share of it.
fn half_width(parts: &[u64]) -> f64 {
    let n = parts.len() as f64;
    let mean = parts.iter().sum::<u64>() as f64 / n;
    let squares: f64 = parts.iter().map(|part| (*part as f64 - mean).powi(2)).sum();
    STUDENT_975 * (squares / (n - 1.0) / n).sqrt() / mean.max(1e-9)
}
