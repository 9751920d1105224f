//! One life of the array: opened, verified, used and troubled, until it is crashed or its users are done.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_block::BlockTarget;
use tier0_drive::sim::PowerSwitch;
use tier0_units::{Lba, Nanos};
use tier0_world::{Random, World};

use crate::atlas::FaultAtlas;
use crate::auditor::Auditor;
use crate::config::{LifeEnd, LifePlan, SimConfig};
use crate::coverage::Coverage;
use crate::incident::Images;
use crate::mishap::Mishaps;
use crate::scratch::{self, Scratch};
use crate::shelf::{Shelf, Whereabouts};
use crate::system::{Running, Status, System};
use crate::{chaos, client, incident, ordeal, starts};

/// A life that takes longer hangs: far more than any load here needs with the slowest drives and every timeout.
const LIFE_MAX: Nanos = Nanos::from_secs(7_200);
/// Sectors of one read that verifies.
const VERIFY_SECTORS: u64 = 128;
/// Reads under way while verifying.
const VERIFIERS: u64 = 4;

/// What all lives of a run share.
pub(crate) struct Session {
    pub(crate) config: SimConfig,
    pub(crate) auditor: RefCell<Auditor>,
    pub(crate) atlas: RefCell<FaultAtlas>,
    pub(crate) shelf: RefCell<Shelf>,
    pub(crate) coverage: RefCell<Coverage>,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) switch: PowerSwitch,
    pub(crate) mishaps: Mishaps,
    /// Drives that the array has called lost so far.
    pub(crate) known_lost: RefCell<BTreeSet<String>>,
    pub(crate) images: Images,
    /// Nothing goes wrong for the time being.
    pub(crate) is_calm: Cell<bool>,
    /// The drive that an administrator has last had emptied.
    pub(crate) emptied: RefCell<Option<String>>,
    /// Whether the array was asked where log and metadata lie when it had come to rest.
    pub(crate) places_known: Cell<bool>,
    /// Drives that somebody consents to start without.
    pub(crate) consents: RefCell<BTreeSet<String>>,
    /// Stored data was damaged since the array was last scrubbed clean.
    pub(crate) damaged: Cell<bool>,
    /// A drive hangs, or hung, whose commands may still be waited for.
    pub(crate) hung: Cell<bool>,
    /// What was done to the array, for whoever reads a failure.
    events: RefCell<Vec<String>>,
    /// Requests under way, for whoever reads why nothing ends.
    outstanding: RefCell<BTreeMap<u64, String>>,
    requests: Cell<u64>,
    pub(crate) life: Cell<u64>,
}

impl Session {
    pub(crate) fn new(config: &SimConfig) -> Session {
        let shelf = Shelf::new(config);
        let volumes: Vec<_> = config
            .array
            .volumes
            .iter()
            .map(|volume| (volume.sectors, crate::config::acknowledges_stable(volume.write_cache)))
            .collect();
        Session {
            auditor: RefCell::new(Auditor::new(config.seed, &volumes)),
            atlas: RefCell::new(FaultAtlas::new(&config.array)),
            switch: shelf.switch().clone(),
            shelf: RefCell::new(shelf),
            coverage: RefCell::default(),
            scratch: RefCell::default(),
            mishaps: Mishaps::default(),
            known_lost: RefCell::default(),
            images: Images::default(),
            is_calm: Cell::default(),
            emptied: RefCell::default(),
            places_known: Cell::default(),
            consents: RefCell::default(),
            damaged: Cell::default(),
            hung: Cell::default(),
            events: RefCell::default(),
            outstanding: RefCell::default(),
            requests: Cell::default(),
            life: Cell::default(),
            config: config.clone(),
        }
    }

    pub(crate) fn count(&self, name: &'static str) {
        self.coverage.borrow_mut().count(name);
    }

    /// Notes something for whoever reads a failure.
    pub(crate) fn note(&self, world: &World, what: impl Into<String>) {
        let line = format!("life {} at {}: {}", self.life.get(), world.now(), what.into());
        self.events.borrow_mut().push(line);
    }

    /// How much was noted.
    pub(crate) fn event_count(&self) -> usize {
        self.events.borrow().len()
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.events.borrow().clone()
    }

    /// A random stream of this life.
    pub(crate) fn random(&self, name: u64) -> Random {
        Random::new(self.config.seed, (self.life.get() + 1) << 16 ^ name)
    }

    /// A request begins; it is under way as long as the answer lives.
    pub(crate) fn request(self: &Rc<Session>, what: impl FnOnce() -> String) -> Request {
        let id = self.requests.get() + 1;
        self.requests.set(id);
        self.outstanding.borrow_mut().insert(id, what());
        Request { session: self.clone(), id }
    }

    /// The array died: nothing is under way any more.
    pub(crate) fn forget_requests(&self) {
        self.outstanding.borrow_mut().clear();
    }

    fn hanging(&self) -> String {
        let outstanding = self.outstanding.borrow();
        let first: Vec<&str> = outstanding.values().take(3).map(String::as_str).collect();
        format!("{} requests do not end: {}", outstanding.len(), first.join("; "))
    }
}

/// A request under way.
pub(crate) struct Request {
    session: Rc<Session>,
    id: u64,
}

impl Drop for Request {
    fn drop(&mut self) {
        self.session.outstanding.borrow_mut().remove(&self.id);
    }
}

/// The array while it lives.
pub(crate) struct Life<R: Running> {
    pub(crate) session: Rc<Session>,
    pub(crate) world: World,
    pub(crate) running: R,
    pub(crate) volumes: Vec<R::Volume>,
    /// Operations that users have begun.
    begun: Cell<u64>,
    /// The users are done.
    pub(crate) done: Cell<bool>,
    /// The first thing that broke.
    broken: RefCell<Option<String>>,
    bell: tier0_world::sync::Notify,
}

impl<R: Running> Life<R> {
    /// Something broke: the run ends.
    pub(crate) fn break_off(&self, sentence: String) {
        self.broken.borrow_mut().get_or_insert(sentence);
        self.bell.notify_all();
    }

    async fn wait_broken(&self) -> String {
        loop {
            if let Some(sentence) = self.broken.borrow().clone() {
                return sentence;
            }
            self.bell.wait().await;
        }
    }

    /// Whether a user may begin one more operation.
    pub(crate) fn begin_operation(&self) -> bool {
        self.begun.set(self.begun.get() + 1);
        self.begun.get() <= self.session.config.load.operations
    }

    /// The system's status, which also teaches the atlas.
    pub(crate) async fn status(&self) -> Status {
        let status = self.running.status().await;
        self.session.atlas.borrow_mut().learn(&status);
        for name in &status.lost {
            if self.session.known_lost.borrow_mut().insert(name.clone()) {
                self.session.atlas.borrow_mut().mark(name);
            }
        }
        let mut shelf = self.session.shelf.borrow_mut();
        for name in shelf.names(Whereabouts::Gone) {
            if status.lost.contains(&name) {
                shelf.put(&name, Whereabouts::Out);
            }
        }
        drop(shelf);
        status
    }

    /// Reads `share` of every volume and checks it.
    pub(crate) async fn verify(self: &Rc<Self>, share: f64) -> Result<(), String> {
        let mut random = self.session.random(0x0e);
        let mut pieces = Vec::new();
        for volume in 0..self.volumes.len() {
            let sectors = self.session.auditor.borrow().sectors(volume);
            let starts = (0..sectors).step_by(VERIFY_SECTORS as usize);
            pieces.extend(
                starts
                    .filter(|_| share >= 1.0 || random.chance(share))
                    .map(|lba| (volume, Lba(lba), VERIFY_SECTORS.min(sectors - lba))),
            );
        }
        let pieces = Rc::new(RefCell::new(pieces));
        let workers = (0..VERIFIERS).map(|_| {
            let (life, pieces) = (self.clone(), pieces.clone());
            async move {
                loop {
                    let piece = pieces.borrow_mut().pop();
                    let Some((volume, lba, sectors)) = piece else { return Ok(()) };
                    client::read(&life, volume, lba, sectors).await?;
                }
            }
        });
        join_all(workers.collect::<Vec<_>>()).await.into_iter().collect()
    }

    /// Keeps the system's counters for the summary.
    async fn keep_counters(&self) {
        for (name, times) in self.running.counters().await {
            self.session.coverage.borrow_mut().add(name, times);
        }
    }
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The power was cut.
    Crashed,
    /// All was done.
    Done,
}

/// Lives until the plan's end. `after` is what remains to be done once the users are.
pub(crate) async fn live<S, A>(
    world: World,
    system: S,
    session: Rc<Session>,
    plan: LifePlan,
    after: A,
) -> Result<Ended, String>
where
    S: System,
    A: AsyncFnOnce(Rc<Life<S::Running>>) -> Result<(), String> + 'static,
{
    let switch = session.switch.clone();
    let limit = world.sleep(LIFE_MAX);
    let course = course(world, system, session.clone(), plan, after);
    let course = std::pin::pin!(course);
    let off = std::pin::pin!(switch.wait_off());
    let limit = std::pin::pin!(async move {
        limit.await;
        session.hanging()
    });
    use futures_util::future::{Either, select};
    match select(off, select(course, limit)).await {
        Either::Left(_) => Ok(Ended::Crashed),
        Either::Right((Either::Left((result, _)), _)) => result.map(|()| Ended::Done),
        Either::Right((Either::Right((sentence, _)), _)) => Err(sentence),
    }
}

async fn course<S, A>(
    world: World,
    system: S,
    session: Rc<Session>,
    plan: LifePlan,
    after: A,
) -> Result<(), String>
where
    S: System,
    A: AsyncFnOnce(Rc<Life<S::Running>>) -> Result<(), String> + 'static,
{
    session.places_known.set(false);
    let handles = session.shelf.borrow_mut().open(&world, &mut session.random(0x0a));
    if plan.from_opening {
        set_end(&world, &session, plan.end);
    }
    let running = starts::open(&world, &system, &session, handles).await?;
    session.count("opened");
    let volumes = running.volumes();
    let expected = session.config.array.volumes.len();
    if volumes.len() != expected {
        return Err(format!("the array has {} volumes, not {expected}", volumes.len()));
    }
    let life = Rc::new(Life {
        session: session.clone(),
        world: world.clone(),
        running,
        volumes,
        begun: Cell::default(),
        done: Cell::default(),
        broken: RefCell::default(),
        bell: tier0_world::sync::Notify::new(),
    });
    let broken = life.clone();
    let broken = std::pin::pin!(broken.wait_broken());
    let rest = std::pin::pin!(use_it(life, plan, after));
    match futures_util::future::select(broken, rest).await {
        futures_util::future::Either::Left((sentence, _)) => Err(sentence),
        futures_util::future::Either::Right((result, _)) => result,
    }
}

async fn use_it<R, A>(life: Rc<Life<R>>, plan: LifePlan, after: A) -> Result<(), String>
where
    R: Running,
    A: AsyncFnOnce(Rc<Life<R>>) -> Result<(), String>,
{
    check_announcement(&life)?;
    life.status().await;
    note_missing(&life);
    scratch::check(&life).await?;
    life.verify(plan.verified_share).await?;
    if !plan.from_opening {
        set_end(&life.world, &life.session, plan.end);
    }
    let chaos = life.world.spawn(chaos::rage(life.clone()));
    let incidents = life.world.spawn(incident::happen(life.clone()));
    let ordeals = life.world.spawn(ordeal::happen(life.clone(), plan.end));
    let clients: Vec<_> = (0..life.session.config.load.clients)
        .map(|number| life.world.spawn(client::work(life.clone(), number)))
        .collect();
    for client in clients {
        client.await;
    }
    life.done.set(true);
    chaos.await;
    incidents.await;
    ordeals.await;
    after(life.clone()).await?;
    life.keep_counters().await;
    let status = life.status().await;
    life.session.places_known.set(status.redundant && !status.rebuilding && !status.moving);
    Ok(())
}

/// What was away when the array was opened, and was opened without, is known to be so.
fn note_missing<R: Running>(life: &Life<R>) {
    let mut shelf = life.session.shelf.borrow_mut();
    for name in shelf.names(Whereabouts::Gone) {
        shelf.put(&name, Whereabouts::Out);
    }
}

/// A volatile cache must say so.
fn check_announcement<R: Running>(life: &Life<R>) -> Result<(), String> {
    for (number, volume) in life.volumes.iter().enumerate() {
        let stable =
            crate::config::acknowledges_stable(life.session.config.array.volumes[number].write_cache);
        if !stable && !volume.info().volatile_cache {
            return Err(format!("volume {number} has a volatile cache and does not announce it"));
        }
    }
    Ok(())
}

fn set_end(world: &World, session: &Rc<Session>, end: LifeEnd) {
    match end {
        LifeEnd::Change(count) => session.switch.arm(count),
        LifeEnd::Time(time) => {
            let (switch, world_then) = (session.switch.clone(), world.clone());
            world
                .spawn(async move {
                    world_then.sleep(time).await;
                    switch.cut();
                })
                .detach();
        }
        LifeEnd::Done => {}
    }
}
