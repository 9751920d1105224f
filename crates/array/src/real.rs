//! An array on the wall clock: one thread and one world per shard.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;

use tier0_api::{AdminReply, AdminRequest, Event};
use tier0_cache::ReadCacheOptions;
use tier0_control::message::control::ControlMessage;
use tier0_control::message::request::ShardRequest;
use tier0_control::{Control, DriveOpener, LossRules};
use tier0_description::{CacheSettings, FLASH_WRITES_PER_DAY, Mismatch};
use tier0_drive::DriveHandle;
use tier0_pool::metadata::survey_without;
use tier0_pool::{PoolState, SpaceRules};
use tier0_units::{ByteCount, Nanos};
use tier0_world::real::Backend;
use tier0_world::sync::{MailReceiver, MailSender, mailbox, oneshot};
use tier0_world::{RealOptions, RealRuntime, Remote, World};

use crate::born::Born;
use crate::drive_opener::MediumOpener;
use crate::engine::start_shard;
use crate::open::medium::guarded_drive;
use crate::open::{Consents, Kind, Medium, OpenArray, ToOpen, examine};
use crate::opened_pool::OpenedPool;
use crate::pool_shard::{PoolSeed, ShardId, ShardMemory};
use crate::shard::Shard;
use crate::{ArrayError, ExportRegistry, Volume};

/// What a shard offers to the server of its volumes.
#[derive(Clone)]
pub struct ShardContext {
    /// The shard's world.
    pub world: World,
    /// The shard's number, from 0.
    pub index: usize,
    /// The volumes that the array started with, in the order of pools and records.
    pub volumes: Vec<Volume>,
    /// Why this world runs without io_uring although it would have taken it.
    pub fallback: Option<Arc<str>>,
    shard: Rc<Shard>,
    control: MailSender<ControlMessage>,
}

impl ShardContext {
    /// Ends when the array is to stop.
    pub async fn stopping(&self) {
        self.shard.stopping.wait().await;
    }

    /// Has `exports` offer all volumes of the array in this shard, those that are created later too.
    ///
    /// # Errors
    /// Why a volume cannot be offered.
    pub fn offer_volumes(&self, exports: Rc<dyn ExportRegistry>) -> Result<(), String> {
        self.shard.set_exports(exports)
    }

    /// Does what an administrator asks.
    pub async fn administer(&self, request: AdminRequest) -> AdminReply {
        let (reply, answer) = oneshot::channel();
        self.control.send(ControlMessage::Admin { request, reply });
        let ending =
            |_| AdminReply::Failed("the array is shutting down; try again when it is running".to_owned());
        answer.await.unwrap_or_else(ending)
    }
}

/// Runs an array: `serve` runs in every shard's world, in a thread each, and the array stops when `stop` is called
/// through the [`Stopper`] that `started` is given, or when every shard's `serve` has ended. Nothing is served before
/// every shard has made good what a crash left behind.
///
/// `serve` should end when [`ShardContext::stopping`] does.
pub fn run<F>(
    array: &OpenArray,
    backend: Backend,
    started: impl FnOnce(Stopper),
    serve: impl Fn(ShardContext) -> F + Send + Sync,
) -> Result<(), ArrayError>
where
    F: Future<Output = ()> + 'static,
{
    let shards = array.cores.max(1);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..shards).map(|_| mailbox::<ShardRequest>()).unzip();
    let (seeds, seed_boxes): (Vec<_>, Vec<_>) = (0..shards).map(|_| mailbox::<Vec<PoolPart>>()).unzip();
    let (control, messages) = mailbox::<ControlMessage>();
    let mut first = Some(FirstShard { messages, seeds });
    let (ready, readiness) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, (inbox, seeds)) in receivers.into_iter().zip(seed_boxes).enumerate() {
            let place = ShardStart {
                array,
                id: ShardId { index, shards },
                backend,
                peers: senders.clone(),
                inbox,
                seeds,
                control: control.clone(),
                first: first.take_if(|_| index == 0),
            };
            let (ready, serve) = (ready.clone(), &serve);
            let thread = std::thread::Builder::new().name(format!("tier0-shard{index}"));
            let thread = thread.spawn_scoped(scope, move || place.run(ready, serve)).map_err(|source| {
                ArrayError::System { what: "a shard's thread cannot be started".into(), source }
            })?;
            threads.push(thread);
        }
        drop((senders, control, ready));
        let (mut handles, mut goes) = (Vec::new(), Vec::new());
        while let Ok(Ready { index, handle, go }) = readiness.recv() {
            handles.push((index, handle));
            goes.push(go);
            if handles.len() == shards {
                break;
            }
        }
        if handles.len() == shards {
            goes.iter().for_each(|go| go.send(()));
            started(Stopper(handles.into()));
        }
        // A shard that hears no word to go ends: another one could not start.
        drop(goes);
        let results = threads.into_iter().map(|thread| thread.join().expect("a shard does not panic"));
        results.collect::<Vec<_>>().into_iter().collect()
    })
}

/// A shard has started and waits for the word to go.
struct Ready {
    index: usize,
    handle: ShardHandle,
    go: MailSender<()>,
}

/// Stops an array from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<[(usize, ShardHandle)]>);

struct ShardHandle {
    remote: Remote,
    stop: MailSender<()>,
}

impl Stopper {
    /// Asks every shard to stop.
    pub fn stop(&self) {
        self.0.iter().for_each(|(_, shard)| shard.stop.send(()));
    }

    /// The shards' worlds, in order, for tasks that come from outside.
    pub fn remote(&self, shard: usize) -> &Remote {
        let found = self.0.iter().find(|(index, _)| *index == shard);
        &found.expect("a shard of the array").1.remote
    }
}

/// What the first shard learns of a pool and tells the others.
#[derive(Clone)]
struct PoolPart {
    seed: PoolSeed,
    /// By member; none where it is lost.
    media: Vec<Option<Arc<Medium>>>,
}

/// What only the first shard has.
struct FirstShard {
    messages: MailReceiver<ControlMessage>,
    /// To every shard.
    seeds: Vec<MailSender<Vec<PoolPart>>>,
}

/// What a shard's thread starts with.
struct ShardStart<'a> {
    array: &'a OpenArray,
    id: ShardId,
    backend: Backend,
    peers: Vec<MailSender<ShardRequest>>,
    inbox: MailReceiver<ShardRequest>,
    seeds: MailReceiver<Vec<PoolPart>>,
    control: MailSender<ControlMessage>,
    first: Option<FirstShard>,
}

/// A shard that can serve, and the control task where it lives here.
struct Started {
    shard: Rc<Shard>,
    volumes: Vec<Volume>,
    upkeep: Option<Rc<Control>>,
}

impl ShardStart<'_> {
    fn run<F>(self, ready: mpsc::Sender<Ready>, serve: impl Fn(ShardContext) -> F) -> Result<(), ArrayError>
    where
        F: Future<Output = ()> + 'static,
    {
        let index = self.id.index;
        let options =
            RealOptions { backend: self.backend, seed: index as u64, keep_awake: self.array.keep_awake };
        let runtime = RealRuntime::new(&options).map_err(|source| ArrayError::System {
            what: "the real world cannot be opened".into(),
            source,
        })?;
        let world = runtime.world().clone();
        let control = self.control.clone();
        let place = PoolsStart {
            array: self.array.name.clone(),
            memory: self.array.memory,
            pause_timeout: self.array.pause_timeout,
            space: self.array.space.clone(),
            events: self.array.events.clone(),
            log_drives: self.array.log_drives.clone(),
            caches: self.array.caches.clone(),
            id: self.id,
            source: Source::of(&self.array.kind),
            peers: self.peers,
            seeds: self.seeds,
            control: self.control,
        };
        let started = place.start_in(&runtime, self.inbox, self.first)?;
        let Started { shard, volumes, upkeep } = started;
        let (stop, mut stopped) = mailbox();
        let stopping = shard.clone();
        world
            .spawn(async move {
                while stopped.receive().await.is_some() {
                    stopping.begin_stop();
                }
            })
            .detach();
        let fallback = runtime.fallback().map(|error| error.to_string().into());
        let offered = shard.clone();
        let context = ShardContext { world: world.clone(), index, volumes, fallback, shard, control };
        let (go, mut word) = mailbox();
        // The starter may have failed and gone; then the scope is ending anyway.
        let _ = ready.send(Ready { index, handle: ShardHandle { remote: world.remote(), stop }, go });
        // The starter waits for all shards and must learn that another one has ended.
        drop(ready);
        if runtime.run(async move { word.receive().await.is_some() }) {
            if let Some(control) = &upkeep {
                control.begin_upkeep();
            }
            runtime.run(serve(context));
            if let Some(control) = upkeep {
                runtime.run(async move { control.tell_damaged_drives_at_the_end().await });
            }
        }
        // The registry has volumes, which have the shard.
        offered.exports.take();
        Ok(())
    }
}

/// Where the pools come from, for one shard.
enum Source {
    InMemory(Vec<(PoolState, Vec<Arc<Medium>>)>),
    Lasting { candidates: Vec<Arc<Medium>>, pools: Vec<ToOpen>, consents: Consents },
}

impl Source {
    fn of(kind: &Kind) -> Source {
        match kind {
            Kind::InMemory(pools) => Source::InMemory(pools.clone()),
            Kind::Lasting { media, pools, consents } => Source::Lasting {
                candidates: media.clone(),
                pools: pools.clone(),
                consents: consents.clone(),
            },
        }
    }

    /// A shard's own handle of a drive; of one that lasts, one that shows no failure that may pass.
    fn drive(&self, medium: &Medium, world: &World) -> Result<DriveHandle, ArrayError> {
        match self {
            Source::InMemory(_) => medium.drive(world),
            Source::Lasting { .. } => guarded_drive(medium, world),
        }
    }
}

/// What a shard starts with.
struct PoolsStart {
    array: String,
    memory: Option<ByteCount>,
    pause_timeout: Nanos,
    space: BTreeMap<String, SpaceRules>,
    events: Option<mpsc::SyncSender<Event>>,
    log_drives: BTreeMap<String, Vec<String>>,
    caches: BTreeMap<String, CacheSettings>,
    id: ShardId,
    source: Source,
    peers: Vec<MailSender<ShardRequest>>,
    seeds: MailReceiver<Vec<PoolPart>>,
    control: MailSender<ControlMessage>,
}

impl PoolsStart {
    /// Does it in a runtime that nothing else runs in yet. It does not depend on what will be served, so it is compiled here
    /// and not with every server.
    fn start_in(
        self,
        runtime: &RealRuntime,
        inbox: MailReceiver<ShardRequest>,
        first: Option<FirstShard>,
    ) -> Result<Started, ArrayError> {
        let world = runtime.world().clone();
        runtime.run(self.start(world, inbox, first))
    }

    async fn start(
        mut self,
        world: World,
        inbox: MailReceiver<ShardRequest>,
        first: Option<FirstShard>,
    ) -> Result<Started, ArrayError> {
        let upkeep = match first {
            Some(first) => Some(self.open_pools(&world, first).await?),
            None => None,
        };
        let gone = || ArrayError::Recovery {
            pool: self.array.clone(),
            fact: "the first shard could not open it; see its message".to_owned(),
        };
        let parts = self.seeds.receive().await.ok_or_else(gone)?;
        let mut drives = Vec::new();
        for part in &parts {
            let open = |medium: &Option<Arc<Medium>>| {
                medium.as_ref().map(|medium| self.source.drive(medium, &world)).transpose()
            };
            drives.push(part.media.iter().map(open).collect::<Result<Vec<_>, ArrayError>>()?);
        }
        let memory = self.memory.map(|memory| ShardMemory::share_of(memory, self.id.shards, parts.len()));
        let memory = memory.unwrap_or_default();
        // What lies in memory needs no second place there.
        let is_lasting = matches!(self.source, Source::Lasting { .. });
        let seed = |part: PoolPart| {
            let settings = self.caches.get(part.seed.state.name());
            let policy = settings.map(|settings| settings.policy).unwrap_or_default();
            let read_cache =
                is_lasting.then(|| ReadCacheOptions { policy, memory_max: memory.clean_pages() });
            let writes = settings.map(|settings| settings.flash_writes_per_day);
            let flash_writes_per_day = writes.unwrap_or(FLASH_WRITES_PER_DAY);
            PoolSeed { memory, read_cache, flash_writes_per_day, ..part.seed }
        };
        let seeds: Vec<PoolSeed> = parts.into_iter().map(seed).collect();
        let shard = start_shard(&world, self.id, &seeds, drives, &self.control, self.peers).await?;
        world.spawn(shard.clone().answer(inbox)).detach();
        let volumes = Volume::all(&shard);
        Ok(Started { shard, volumes, upkeep })
    }

    /// Opens the metadata, starts the control task, and tells every shard.
    async fn open_pools(&self, world: &World, first: FirstShard) -> Result<Rc<Control>, ArrayError> {
        let (pools, parts) = match &self.source {
            Source::InMemory(pools) => self.new_pools(world, pools)?,
            Source::Lasting { candidates, pools, consents } => {
                self.found_pools(world, candidates, pools, consents).await?
            }
        };
        let (known, witness) = match &self.source {
            Source::InMemory(_) => (Vec::new(), None),
            Source::Lasting { candidates, consents, .. } => (candidates.clone(), consents.witness.clone()),
        };
        let opener: Rc<dyn DriveOpener> = Rc::new(MediumOpener {
            world: world.clone(),
            known: Rc::new(RefCell::new(known)),
            is_asking: Arc::default(),
            is_looking: Arc::default(),
        });
        let control = Control::new(
            world,
            self.array.clone(),
            pools.into_iter().map(OpenedPool::for_control).collect(),
            self.peers.clone(),
            Some(opener),
            self.control.clone(),
            LossRules { pause_timeout: self.pause_timeout, witness },
        );
        control.follow_space_rules(&self.space);
        if let Some(events) = &self.events {
            control.tell_events(events.clone());
        }
        control.follow_log_drives(&self.log_drives);
        control.follow_caches(&self.caches);
        world.spawn(control.clone().serve(first.messages)).detach();
        (0..parts.len()).for_each(|number| {
            world.spawn(control.clone().watch_starting_drives(number)).detach();
        });
        first.seeds.iter().for_each(|seeds| seeds.send(parts.clone()));
        Ok(control)
    }

    fn new_pools(
        &self,
        world: &World,
        pools: &[(PoolState, Vec<Arc<Medium>>)],
    ) -> Result<(Vec<OpenedPool>, Vec<PoolPart>), ArrayError> {
        let (mut opened, mut parts) = (Vec::new(), Vec::new());
        for (number, (state, media)) in pools.iter().enumerate() {
            let drives = media.iter().map(|medium| medium.drive(world)).collect::<Result<_, _>>()?;
            let pool = OpenedPool::new(world, number, state.clone(), drives, Born::Full, &self.control)?;
            let media = media.iter().cloned().map(Some).collect();
            parts.push(PoolPart { seed: pool.seed.clone(), media });
            opened.push(pool);
        }
        Ok((opened, parts))
    }

    async fn found_pools(
        &self,
        world: &World,
        candidates: &[Arc<Medium>],
        wanted: &[ToOpen],
        consents: &Consents,
    ) -> Result<(Vec<OpenedPool>, Vec<PoolPart>), ArrayError> {
        let mut handles = Vec::new();
        for medium in candidates {
            handles.push((guarded_drive(medium, world)?, medium.clone()));
        }
        let drives = handles.iter().map(|(drive, _)| drive.clone()).collect();
        let mut candidates = survey_without(drives, &consents.without).await.pools;
        // It was all found in order a moment ago, but drives have a life of their own.
        let mut examined = Vec::new();
        for ToOpen { id, additions } in wanted {
            let place = candidates.iter().position(|pool| pool.label.pool == *id);
            let place = place.ok_or_else(|| Mismatch::NoPool { pool: self.array.clone() })?;
            let found = candidates.remove(place);
            examined.push((examine(world, found, consents).await?, additions.clone()));
        }
        for (pool, _) in &examined {
            consents.part(world, pool).await?;
        }
        let (mut pools, mut parts) = (Vec::new(), Vec::new());
        for (number, (pool, additions)) in examined.into_iter().enumerate() {
            let pool = OpenedPool::open(world, number, pool, additions, &self.control).await?;
            let medium_of = |drive: &Option<DriveHandle>| {
                let drive = drive.as_ref()?;
                handles.iter().find(|(handle, _)| handle.is_same(drive)).map(|(_, medium)| medium.clone())
            };
            let media: Vec<Option<Arc<Medium>>> = pool.drives.iter().map(medium_of).collect();
            let path_of = |(place, medium): (u32, &Option<Arc<Medium>>)| {
                Some((place, medium.as_ref()?.path()?.into_os_string().into_string().ok()?))
            };
            pool.metadata.remember_paths((0..).zip(&media).filter_map(path_of).collect()).await?;
            parts.push(PoolPart { seed: pool.seed.clone(), media });
            pools.push(pool);
        }
        Ok((pools, parts))
    }
}
