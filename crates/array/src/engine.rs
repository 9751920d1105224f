//! A whole array in one world: all its shards in one thread. Fault simulation and studies run it in virtual time; a real
//! array has a thread and a world for each shard ([`crate::real`]), made of the same parts.
//!
//! Its calls return boxed futures, so that this crate alone compiles the code behind them, and not every program that awaits them.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, try_join_all};
use tier0_api::{AdminReply, AdminRequest, IoReport, Status};
use tier0_cache::ReadCacheOptions;
use tier0_control::admin::AdminError;
use tier0_control::message::control::ControlMessage;
use tier0_control::message::request::ShardRequest;
use tier0_control::{Control, LossRules, MemberArbiter};
use tier0_description::{Description, Mismatch, PoolDescription, class};
use tier0_drive::DriveHandle;
use tier0_drive::guard::{Guard, Health, Patience};
use tier0_plan::{Lanes, NewPool, PoolDrives, fill};
use tier0_pool::metadata::{Metadata, superblock, survey_without};
use tier0_pool::{DriveClass, LogPlacement, Member, MemberState, PoolState, foreign};
use tier0_units::ByteCount;
use tier0_world::sync::{MailReceiver, MailSender, Notify, mailbox};
use tier0_world::{IoError, PlantedBug, World, planted};
use uuid::Uuid;

pub use crate::born::Born;
use crate::flash_cache::check_size;
use crate::log_lane::{LogLane, format_logs};
use crate::open::Consents;
use crate::open::examine;
use crate::opened_pool::OpenedPool;
use crate::pool_shard::{PoolSeed, PoolShard, ShardId, ShardMemory};
pub use crate::repartition::Repartition;
use crate::shard::Shard;
use crate::simulated::SimulatedOptions;
use crate::upkeep::pace::Activity;
use crate::upkeep::relocate::Moving;
use crate::volume_io::VolumeIo;
use crate::{ArrayError, Volume};

/// Creates the pools of `description` on `drives`, which are its drives in order; what they hold is
/// overwritten. The array will run on `shards` shards.
pub fn create<'a>(
    world: &'a World,
    description: &'a Description,
    drives: Vec<DriveHandle>,
    shards: usize,
) -> LocalBoxFuture<'a, Result<(), ArrayError>> {
    async move {
        let mut random = world.random(0x1d);
        let mut id = || uuid::Builder::from_random_bytes(random_bytes(&mut random)).into_uuid();
        for number in 0..description.pools.len() {
            let places = PoolDrives::of(&description.pools[number]).all;
            let own: Vec<DriveHandle> = places.iter().map(|drive| drives[*drive].clone()).collect();
            let sizes = own.iter().map(|drive| drive.info().sectors.0).collect();
            let state = new_state(description, number, sizes, (shards, Lanes::PerGroup), &mut id)?;
            found_pool(world, own, state).await?;
        }
        Ok(())
    }
    .boxed_local()
}

/// Erases what these drives hold for a pool or another program at the places by which they are recognised: before [`create`] on
/// drives that may hold something. First the superblocks of all of them, so that a crash leaves no part of a pool.
///
/// # Errors
/// A drive that cannot be written. Those before it are in no pool any more.
pub fn clear(drives: &[DriveHandle]) -> LocalBoxFuture<'_, Result<(), ArrayError>> {
    async move {
        for drive in drives {
            superblock::erase(drive).await.map_err(|source| {
                let drive = drive.info().name.clone();
                ArrayError::from(tier0_pool::PoolError::Drive { drive, source })
            })?;
        }
        try_join_all(drives.iter().map(foreign::erase)).await?;
        Ok(())
    }
    .boxed_local()
}

/// Whether [`create`] would make this array on drives of `sectors` each: the same planning, and nothing is written.
///
/// # Errors
/// Why it would not.
pub fn check_creatable(description: &Description, sectors: u64, shards: usize) -> Result<(), ArrayError> {
    let ids = std::cell::Cell::new(0);
    let id = || {
        ids.set(ids.get() + 1);
        Uuid::from_u64_pair(0, ids.get())
    };
    for number in 0..description.pools.len() {
        let places = PoolDrives::of(&description.pools[number]).all;
        new_state(description, number, vec![sectors; places.len()], (shards, Lanes::PerGroup), id)?;
    }
    Ok(())
}

/// Puts a new pool on its drives: the empty log first, the metadata after it, so that nothing is found before all is
/// there.
pub(crate) async fn found_pool(
    world: &World,
    drives: Vec<DriveHandle>,
    state: PoolState,
) -> Result<(), ArrayError> {
    if planted(PlantedBug::LabelsBeforeLog) {
        Metadata::create(world, drives.clone(), state.clone(), Rc::new(|_, _| {})).await?;
        return format_logs(world, &drives, &state).await;
    }
    format_logs(world, &drives, &state).await?;
    Metadata::create(world, drives, state, Rc::new(|_, _| {})).await?;
    Ok(())
}

fn random_bytes(random: &mut tier0_world::Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.bits().to_le_bytes());
    bytes[8..].copy_from_slice(&random.bits().to_le_bytes());
    bytes
}

/// The first state of a pool of the description, on drives of these sizes, the pool's in order. Its log is cut into parts for
/// so many shards and such lanes.
pub(crate) fn new_state(
    description: &Description,
    number: usize,
    sizes: Vec<u64>,
    (shards, lanes): (usize, Lanes),
    mut id: impl FnMut() -> Uuid,
) -> Result<PoolState, ArrayError> {
    let pool = &description.pools[number];
    let PoolDrives { all: places, log: log_members, flash_cache: flash_cache_members } = PoolDrives::of(pool);
    let group_of =
        |place: &usize| pool.groups.iter().position(|group| group.drives.contains(place)).unwrap_or(0);
    let member = |(place, sectors): (&usize, u64)| Member {
        id: id(),
        name: description.drives[*place].name.clone(),
        sectors,
        class: class::described(&description.drives[*place]).unwrap_or(DriveClass::Disk),
        state: MemberState::Active,
        leaving: false,
        role: Default::default(),
        group: group_of(place) as u32,
        path: String::new(),
    };
    let members: Vec<Member> = places.iter().zip(sizes).map(member).collect();
    let volumes = description.volumes.iter().filter(|volume| volume.pool == number).collect();
    let array = &description.name;
    let new = NewPool {
        array,
        description: pool,
        volumes,
        members,
        log_members,
        flash_cache_members,
        shards,
        lanes,
    };
    let state = new.state(id)?;
    check_size(state.geometry(), &state.flash_cache().devices, shards)
        .map_err(|fact| ArrayError::FlashCacheTooSmall { pool: pool.name.clone(), fact })?;
    Ok(state)
}

/// An array that runs in one world.
#[derive(Clone)]
pub struct Engine {
    control: Rc<Control>,
    shards: Rc<Vec<Rc<Shard>>>,
    /// To the control task.
    post: MailSender<ControlMessage>,
}

/// How an array is started.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Consent to do without these drives, by name, and to give up what only they hold.
    pub without: Vec<String>,
    /// How every shard keeps clean pages of each pool, if it does.
    pub read_cache: Option<ReadCacheOptions>,
}

/// Finds the array on `drives`, in any order, and starts it: whatever a crash left behind is made good first.
///
/// # Errors
/// Why it does not start. Where that is found before anything is recorded ([`ArrayError::is_input`]), nothing was written.
pub fn start<'a>(
    world: &'a World,
    drives: Vec<DriveHandle>,
    options: &'a StartOptions,
) -> LocalBoxFuture<'a, Result<Engine, ArrayError>> {
    async move {
        let without = options.without.as_slice();
        let found = survey_without(drives.into_iter().map(guarded).collect(), without).await;
        let (control, messages) = mailbox();
        let mut examined = Vec::new();
        for pool in found.pools {
            examined.push(examine(world, pool, &Consents::to_do_without(without)).await?);
        }
        // All pools can go on: only now is anything written.
        let mut pools = Vec::new();
        for (number, pool) in examined.into_iter().enumerate() {
            let mut pool = OpenedPool::open(world, number, pool, Vec::new(), &control).await?;
            pool.seed.read_cache = options.read_cache;
            pools.push(pool);
        }
        let array = pools
            .first()
            .map(|pool| pool.metadata.state().array().to_owned())
            .ok_or_else(|| Mismatch::NoPool { pool: "any".to_owned() })?;
        let parts = pools.iter().map(|pool| pool.seed.state.log().shards());
        let shards = parts.max().unwrap_or(1);
        Engine::run(world, array, pools, shards, control, messages).await
    }
    .boxed_local()
}

/// The control task's handle of a drive, which shows no failure that may pass.
fn guarded(drive: DriveHandle) -> DriveHandle {
    Guard::new(drive, Patience::default(), Health::new()).handle()
}

/// A shard's own handle of a drive that the control task has: with a guard of its own where that one has a guard.
fn shard_handle(drive: &DriveHandle) -> DriveHandle {
    drive.guard().map_or_else(|| drive.clone(), |guard| guard.another().handle())
}

/// A new array on `drives`, those of the description in order, whose metadata live only as long as the world.
pub(crate) fn start_new(
    world: &World,
    description: &Description,
    drives: &[DriveHandle],
    options: SimulatedOptions,
) -> Pin<Box<dyn Future<Output = Result<Engine, ArrayError>>>> {
    let (control, messages) = mailbox();
    let pools = new_pools(world, description, drives, options, &control);
    let (world, name) = (world.clone(), description.name.clone());
    Box::pin(async move { Engine::run(&world, name, pools?, 1, control, messages).await })
}

fn new_pools(
    world: &World,
    description: &Description,
    drives: &[DriveHandle],
    options: SimulatedOptions,
    control: &MailSender<ControlMessage>,
) -> Result<Vec<OpenedPool>, ArrayError> {
    // What is switched off for a pool needs no memory there.
    let reads_cached = |pool: &PoolDescription| pool.read_cache != Some(false);
    let pools_with_reads = description.pools.iter().filter(|pool| reads_cached(pool)).count().max(1);
    let read_cache = options.read_cache.map(|size| ByteCount(size.0 / pools_with_reads as u64));
    let mut random = world.random(0x1d);
    let mut id = || uuid::Builder::from_random_bytes(random_bytes(&mut random)).into_uuid();
    let pool_of = |number: usize| {
        let places = PoolDrives::of(&description.pools[number]).all;
        let own: Vec<DriveHandle> = places.iter().map(|drive| drives[*drive].clone()).collect();
        let sizes = own.iter().map(|drive| drive.info().sectors.0).collect();
        let mut state = new_state(description, number, sizes, (1, options.lanes), &mut id)?;
        if options.born == Born::Full {
            fill(&mut state)?;
        }
        let described = &description.pools[number];
        let mut pool = OpenedPool::new(world, number, state, own, options.born, control)?;
        if let Some(writes) = described.flash_cache.writes_per_day {
            pool.seed.flash_writes_per_day = writes;
        }
        let (memory, clean_max) = simulated_memory(description, described, read_cache);
        let policy = described.read_cache_policy.unwrap_or_default();
        pool.seed.memory = memory;
        pool.seed.read_cache = clean_max.map(|memory_max| ReadCacheOptions { policy, memory_max });
        Ok(pool)
    };
    (0..description.pools.len()).map(pool_of).collect()
}

/// The memory of a pool of a simulated array, and what clean pages may take of it. What the description says is shared as in a
/// real array. Where it says nothing, clean pages have `read_cache`, or nothing, and the tables of a flash cache what they need,
/// beside the memory that there is by default.
fn simulated_memory(
    description: &Description,
    pool: &PoolDescription,
    read_cache: Option<ByteCount>,
) -> (ShardMemory, Option<ByteCount>) {
    let said = description.memory.map(|memory| ShardMemory::share_of(memory, 1, description.pools.len()));
    let flash = pool.flash_cache.bytes.unwrap_or_default();
    let others = said.unwrap_or_else(|| match flash.0 {
        0 => ShardMemory::default(),
        _ => ShardMemory::default().with_flash_tables(flash),
    });
    let reads_cached = pool.read_cache != Some(false);
    match (read_cache.filter(|_| reads_cached), said.filter(|_| reads_cached)) {
        (Some(clean), _) => (others.with_more(clean), Some(clean)),
        (None, Some(said)) => (said, Some(said.clean_pages())),
        (None, None) => (others, None),
    }
}

/// Cuts the write log of the array on `drives` into a part for each of `shards`, if it can be: what is in it is destaged
/// first. To be followed by a [`start`] in a new world.
///
/// # Errors
/// As [`start`], or when something cannot be destaged: the log is as it was.
pub fn repartition<'a>(
    world: &'a World,
    drives: Vec<DriveHandle>,
    shards: usize,
) -> LocalBoxFuture<'a, Result<Repartition, ArrayError>> {
    async move {
        let found = survey_without(drives.into_iter().map(guarded).collect(), &[]).await;
        let mut examined = Vec::new();
        for pool in found.pools {
            examined.push(examine(world, pool, &Consents::default()).await?);
        }
        let mut random = world.random(0x1e);
        let id = || uuid::Builder::from_random_bytes(random_bytes(&mut random)).into_uuid();
        crate::repartition::repartition(world, examined, shards, id).await
    }
    .boxed_local()
}

impl Engine {
    /// Runs pools whose metadata are open.
    pub(crate) async fn run(
        world: &World,
        array: String,
        pools: Vec<OpenedPool>,
        count: usize,
        control: MailSender<ControlMessage>,
        messages: MailReceiver<ControlMessage>,
    ) -> Result<Engine, ArrayError> {
        let engine = Engine::assemble(world, array, pools, count, control, messages).await?;
        engine.control.begin_upkeep();
        Ok(engine)
    }

    /// All shards of these pools, recovered and destaging. Nothing is rebuilt or scrubbed.
    pub(crate) async fn assemble(
        world: &World,
        array: String,
        pools: Vec<OpenedPool>,
        count: usize,
        control: MailSender<ControlMessage>,
        messages: MailReceiver<ControlMessage>,
    ) -> Result<Engine, ArrayError> {
        let (peers, inboxes): (Vec<_>, Vec<_>) = (0..count).map(|_| mailbox::<ShardRequest>()).unzip();
        let drives: Vec<_> = pools.iter().map(|pool| pool.drives.clone()).collect();
        let seeds: Vec<PoolSeed> = pools.iter().map(|pool| pool.seed.clone()).collect();
        let rules = LossRules { pause_timeout: tier0_description::PAUSE_TIMEOUT, witness: None };
        let pools = pools.into_iter().map(OpenedPool::for_control).collect();
        let central = Control::new(world, array, pools, peers.clone(), None, control.clone(), rules);
        // The control task serves while shards recover: they may need slots, or find a drive lost.
        world.spawn(central.clone().serve(messages)).detach();
        let mut shards = Vec::new();
        for index in 0..count {
            let id = ShardId { index, shards: count };
            let own = |pool: &Vec<Option<DriveHandle>>| {
                pool.iter().map(|drive| drive.as_ref().map(shard_handle)).collect()
            };
            let drives = drives.iter().map(own).collect();
            shards.push(start_shard(world, id, &seeds, drives, &control, peers.clone()).await?);
        }
        for (shard, inbox) in shards.iter().zip(inboxes) {
            world.spawn(shard.clone().answer(inbox)).detach();
        }
        Ok(Engine { control: central, shards: Rc::new(shards), post: control })
    }

    /// Its volumes, as the first shard has them: those of the start in the order of pools and numbers, then those
    /// created since.
    pub fn volumes(&self) -> Vec<Volume> {
        Volume::all(&self.shards[0])
    }

    /// The same as another shard has them.
    pub fn volumes_in(&self, shard: usize) -> Vec<Volume> {
        Volume::all(&self.shards[shard])
    }

    /// How it does.
    pub fn status(&self) -> LocalBoxFuture<'_, Status> {
        async move { self.control.status().await }.boxed_local()
    }

    /// What it has done since it started.
    pub fn io_report(&self) -> LocalBoxFuture<'_, IoReport> {
        async move { self.control.io_report().await }.boxed_local()
    }

    /// Does what an administrator asks.
    pub fn administer(&self, request: AdminRequest) -> LocalBoxFuture<'_, AdminReply> {
        async move { self.control.ask(request).await }.boxed_local()
    }

    /// Moves extents of a volume, so many from a first one on and again from its beginning, to a group of its pool's sets, as far
    /// as the group has room; how many have moved.
    ///
    /// # Errors
    /// There is no such volume or group; the metadata cannot be written.
    pub fn move_extents<'a>(
        &'a self,
        volume: &'a str,
        extents: (u32, u32),
        group: u32,
    ) -> LocalBoxFuture<'a, Result<u64, IoError>> {
        async move { self.control.move_extents(volume, extents, group).await }.boxed_local()
    }

    /// How many extents of a pool have moved to another group since the start.
    pub fn extents_placed(&self, pool: usize) -> u64 {
        self.control.extents_placed(pool)
    }

    /// Adds a drive to a pool, to its first group of sets.
    pub fn add_drive<'a>(
        &'a self,
        pool: usize,
        name: &'a str,
        drive: DriveHandle,
    ) -> LocalBoxFuture<'a, Result<(), AdminError>> {
        async move { self.add_drive_to((pool, 0), name, drive).await }.boxed_local()
    }

    /// Adds a drive to a group of a pool's sets.
    pub fn add_drive_to<'a>(
        &'a self,
        (pool, group): (usize, u32),
        name: &'a str,
        drive: DriveHandle,
    ) -> LocalBoxFuture<'a, Result<(), AdminError>> {
        async move {
            let give = |member, drive: &DriveHandle| self.give_to_shards(pool, member, drive);
            self.control.join_handle((pool, group), name, guarded(drive), give).await
        }
        .boxed_local()
    }

    /// A drive takes the place of the one called `old`, which is forgotten when what it holds, or held, is on the others.
    ///
    /// # Errors
    /// It cannot join, or there is no drive `old`.
    pub fn replace_drive<'a>(
        &'a self,
        old: &'a str,
        name: &'a str,
        drive: DriveHandle,
    ) -> LocalBoxFuture<'a, Result<(), AdminError>> {
        async move {
            let give = |pool, member, drive: &DriveHandle| self.give_to_shards(pool, member, drive);
            self.control.replace_handle(old, name, guarded(drive), give).await
        }
        .boxed_local()
    }

    /// Takes back a drive that was lost under this name and answers again: it joins as a new member, and what it lacks is
    /// rebuilt. One that is not the lost one joins as any other.
    pub fn rejoin_drive<'a>(
        &'a self,
        pool: usize,
        name: &'a str,
        drive: DriveHandle,
    ) -> LocalBoxFuture<'a, Result<(), AdminError>> {
        async move {
            let give = |member, drive: &DriveHandle| self.give_to_shards(pool, member, drive);
            self.control.rejoin_handle(pool, name, guarded(drive), give).await
        }
        .boxed_local()
    }

    /// A drive is a member of a pool from now on, in every shard.
    fn give_to_shards(&self, pool: usize, member: usize, drive: &DriveHandle) {
        for shard in self.shards.iter() {
            shard.take_drive(pool, member, shard_handle(drive), &self.post);
        }
    }

    /// How many slots of each set of a pool have extents.
    pub fn set_fill(&self, pool: usize) -> Vec<u32> {
        (0..).map_while(|set| self.control.used_slots(pool, set)).collect()
    }

    /// Ends destaging.
    pub(crate) fn stop_destaging(&self) {
        self.lanes().for_each(|lane| lane.write_back.stop());
    }

    /// Records where the log of a pool is to lie.
    pub(crate) async fn place_log(
        &self,
        pool: usize,
        placement: LogPlacement,
    ) -> Result<(), tier0_world::IoError> {
        self.control.place_log(pool, placement).await
    }

    /// Destages everything that is dirty.
    pub fn drain(&self) -> LocalBoxFuture<'_, Result<(), tier0_world::IoError>> {
        async move {
            for lane in self.lanes() {
                lane.write_back.drain().await?;
            }
            Ok(())
        }
        .boxed_local()
    }

    fn lanes(&self) -> impl Iterator<Item = &LogLane> {
        let pools = self.shards.iter().flat_map(|shard| &shard.pools);
        pools.flat_map(|pool| pool.lanes())
    }
}

/// Starts one shard, whose own `drives` are: all its pools, then its volumes.
pub(crate) async fn start_shard(
    world: &World,
    id: ShardId,
    seeds: &[PoolSeed],
    drives: Vec<Vec<Option<DriveHandle>>>,
    control: &MailSender<ControlMessage>,
    peers: Vec<MailSender<ShardRequest>>,
) -> Result<Rc<Shard>, ArrayError> {
    let mut pools = Vec::new();
    let mut volumes = Vec::new();
    for (seed, drives) in seeds.iter().zip(drives) {
        for (member, drive) in drives.iter().enumerate() {
            drive.iter().for_each(|drive| MemberArbiter::appoint(drive, seed.number, member, control));
        }
        let pool = PoolShard::start(world, id, seed, drives, control).await?;
        for volume in seed.state.volumes() {
            let io = VolumeIo::new(&pool, volume, seed.state.caching(volume));
            io.throttle.set(seed.budgets.get(&volume.number).cloned());
            io.set_weight(seed.state.weight(volume.number));
            volumes.push(Some(Rc::new(io)));
        }
        pools.push(pool);
    }
    let activity = Activity::default();
    Ok(Rc::new(Shard {
        world: world.clone(),
        index: id.index,
        volumes: RefCell::new(volumes),
        pools,
        exports: RefCell::default(),
        peers,
        moving: Moving::new(world, &activity),
        activity,
        stopping: Notify::new(),
    }))
}
