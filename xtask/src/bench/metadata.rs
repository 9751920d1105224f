//! `cargo xtask bench metadata`: a pool of 16 TiB whose every extent lies beside none of its neighbours, while extents move
//! and all of its map is written anew, and a restart on it. Once in virtual time, on modelled nearline disks, and once
//! on sparse files.
//!
//! A turn is what passes on this thread's processor between two ticks of a task that does nothing: whatever else ran in
//! between counts as one, so the figures are upper bounds, and what else runs on the machine counts little.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use tier0_catalog::{Catalog, DriveSpec};
use tier0_drive::disk::{DiskModel, DiskParameters, Geometry as DiskGeometry};
use tier0_drive::{Command, Content, DiskDrive, Drive, DriveHandle, DriveInfo, FileMedium, SparseStore};
use tier0_pool::metadata::{Commit, Metadata, survey};
use tier0_pool::{
    ChunkletAddress, DriveClass, Geometry, Member, MemberState, MetaRecord, MetadataArea, PoolState,
    RaidRecord, Volume,
};
use tier0_units::{ExtentId, Nanos, SECTOR_BYTES, SectorCount, SlotRef, WriteCache};
use tier0_world::real::Backend;
use tier0_world::{Completion, PayloadWidth, Random, RealOptions, RealRuntime, VirtualRuntime, World};
use uuid::Uuid;

use super::{judge_at_most, table};
use crate::error::BenchError;
use crate::{clock, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Where to put the sparse files, about 2 GB; not a tmpfs [default: the temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// TiB that are mapped
    #[arg(long, default_value_t = 16)]
    tib: u64,
    /// Extents that move
    #[arg(long, default_value_t = 400_000)]
    moves: u64,
}

const DRIVES: u32 = 4;
const CARRIERS: u64 = 3;
/// 1 MiB.
const EXTENT_SECTORS: u64 = 2048;
/// 1 GiB.
const CHUNKLET_SECTORS: u64 = 2 << 20;
/// What a chunklet holds beside its slot tables.
const SLOTS_PER_SET: u32 = 1000;
/// Free slots to move to, a share of all.
const FREE_SHARE: u64 = 20;
/// Extents of a transaction, and transactions on their way at once.
const MOVES_AT_ONCE: u64 = 250;
const COMMITS_AT_ONCE: usize = 4;
const MODEL: &str = "hdd-7k2";
/// How often the idle task looks: in virtual time whenever anything has rested.
const TICK_VIRTUAL: Nanos = Nanos::from_micros(1);
const TICK_REAL: Nanos = Nanos::from_micros(100);
const RESTART_S_MOST: f64 = 10.0;
const TURN_MS_MOST: f64 = 5.0;

/// The longest turn so far, in seconds of processor time.
#[derive(Default)]
struct Turns {
    longest: Cell<f64>,
    ended: Cell<bool>,
}

impl Turns {
    /// Watches a world until this is told to end.
    fn watch(world: &World, tick: Nanos) -> Rc<Turns> {
        let turns = Rc::new(Turns::default());
        let (own, kept) = (world.clone(), turns.clone());
        let watch = async move {
            let mut before = clock::thread_s();
            while !kept.ended.get() {
                own.sleep(tick).await;
                let now = clock::thread_s();
                kept.longest.set(kept.longest.get().max(now - before));
                before = clock::thread_s();
            }
        };
        world.spawn(watch).detach();
        turns
    }

    /// The longest turn in milliseconds since the last look.
    fn take_ms(&self) -> f64 {
        self.longest.replace(0.0) * 1e3
    }
}

/// A drive that counts what is written.
struct Counted {
    inner: DriveHandle,
    bytes: Rc<Cell<u64>>,
}

impl Drive for Counted {
    fn info(&self) -> &DriveInfo {
        self.inner.info()
    }

    fn world(&self) -> &World {
        self.inner.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        if let Command::Write { buf, .. } = &command {
            self.bytes.set(self.bytes.get() + u64::from(buf.sectors()) * SECTOR_BYTES);
        }
        self.inner.submit(command, completion);
    }
}

/// What a part of the benchmark took.
struct Figures {
    name: String,
    seconds: f64,
    turn_ms: f64,
    bytes: u64,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    println!("{}", machine::describe());
    let extents = options.tib << 20;
    let pool = Pool::new(extents);
    let pages = pool.slots.div_ceil(252);
    println!(
        "{} TiB, {extents} extents of 1 MiB, none beside its neighbour, {} slots: {pages} pages, {:.2} bytes for each extent \
         of a carrier's checkpoint; {} moves in transactions of {MOVES_AT_ONCE}",
        options.tib,
        pool.slots,
        (pages as f64 * (4096.0 + 8.125)) / extents as f64,
        options.moves,
    );
    println!("building the map");
    let state = pool.state()?;
    println!("virtual time: {DRIVES} modelled disks {MODEL}");
    let on_disks = virtual_run(&pool, state.clone(), options.moves)?;
    print(&on_disks);
    println!("\nsparse files");
    let on_files = real_run(&pool, state, options)?;
    print(&on_files);
    Ok(())
}

fn print(figures: &[Figures]) {
    let mut table = table(&["", "s", "longest turn ms", "MB written per carrier"]);
    for Figures { name, seconds, turn_ms, bytes } in figures {
        let mb = *bytes as f64 / CARRIERS as f64 / 1e6;
        table.add_row([name.clone(), format!("{seconds:.2}"), format!("{turn_ms:.2}"), format!("{mb:.1}")]);
    }
    println!("{}", table.trim_fmt());
    let turn = figures.iter().map(|one| one.turn_ms).fold(0.0, f64::max);
    let restart = figures.last().map_or(0.0, |one| one.seconds);
    println!("restart, aimed at <= {RESTART_S_MOST} s: {}", judge_at_most(restart, RESTART_S_MOST));
    println!("longest turn, aimed at <= {TURN_MS_MOST} ms: {}", judge_at_most(turn, TURN_MS_MOST));
}

/// The pool's measures.
#[derive(Clone, Copy)]
struct Pool {
    extents: u64,
    slots: u64,
    sets: u32,
    drive_sectors: u64,
}

impl Pool {
    fn new(extents: u64) -> Pool {
        let sets = (extents + extents / FREE_SHARE).div_ceil(u64::from(SLOTS_PER_SET)) as u32;
        let chunklets = u64::from((2 * sets).div_ceil(DRIVES)) + 8;
        let data = chunklets * CHUNKLET_SECTORS;
        let area = MetadataArea::plan([data; DRIVES as usize], CHUNKLET_SECTORS, EXTENT_SECTORS);
        // The area of drives that have room for it beside.
        let drive_sectors = data + 2 * area.data_start_sectors;
        Pool { extents, slots: u64::from(sets) * u64::from(SLOTS_PER_SET), sets, drive_sectors }
    }

    /// The slot of an extent: a stride away from its neighbours'.
    fn home(&self, index: u64) -> SlotRef {
        const STRIDE: u64 = 7_368_787;
        SlotRef { slot: index * STRIDE % self.slots, allocation: index + 1 }
    }

    fn state(&self) -> Result<PoolState, BenchError> {
        let failed = |error: tier0_pool::MetaError| BenchError::Failed(error.to_string());
        let area =
            MetadataArea::plan([self.drive_sectors; DRIVES as usize], CHUNKLET_SECTORS, EXTENT_SECTORS);
        let geometry = Geometry {
            chunklet_sectors: CHUNKLET_SECTORS,
            extent_sectors: EXTENT_SECTORS,
            slots_per_set: SLOTS_PER_SET,
            spare_chunklets: 1,
            raid: RaidRecord {
                level: "raid1".into(),
                set_size: 2,
                groups: 1,
                stripe_unit_sectors: EXTENT_SECTORS as u32,
            },
            checksums: true,
            area,
        };
        let member = |number: u32| Member {
            id: Uuid::from_u128(100 + u128::from(number)),
            name: format!("d{number}"),
            sectors: self.drive_sectors,
            class: DriveClass::Disk,
            state: MemberState::Active,
            leaving: false,
            role: Default::default(),
            group: 0,
            path: String::new(),
        };
        let members = (0..DRIVES).map(member).collect();
        let mut state =
            PoolState::new("bench", "pool0", Uuid::from_u128(7 << 64), geometry, members).map_err(failed)?;
        let columns = (0..2 * self.sets)
            .map(|number| ChunkletAddress { drive: number % DRIVES, index: number / DRIVES })
            .collect();
        let volume = Volume {
            number: 0,
            id: Uuid::from_u128(1000),
            name: "lun0".into(),
            sectors: self.extents * EXTENT_SECTORS,
            thin: true,
            write_cache: WriteCache::Durable,
            read_cache: true,
            group: 0,
            branch: None,
        };
        let records = [
            MetaRecord::SetsAdded { columns, sets_per_band: self.sets, group: 0 },
            MetaRecord::VolumeCreated(volume),
            MetaRecord::AllocationsReserved { end: 1 << 40 },
        ];
        state.apply_all(&records).map_err(failed)?;
        let mut first = 0;
        while first < self.extents {
            let end = (first + 65_536).min(self.extents);
            let pairs = (first..end).map(|index| (extent(index), self.home(index)));
            state.apply_all(&[MetaRecord::map(pairs)]).map_err(failed)?;
            first = end;
        }
        Ok(state)
    }
}

fn extent(index: u64) -> ExtentId {
    ExtentId { volume: 0, index: index as u32 }
}

/// What stands for a map: all of its extents and slots, in order.
fn fingerprint(state: &PoolState) -> u64 {
    let map = state.map(0).into_iter().flat_map(|map| map.iter());
    map.fold(0, |sum, (index, slot)| {
        let one = u64::from(index) << 32 ^ slot.slot << 1 ^ slot.allocation.rotate_left(17);
        (sum ^ one).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

/// The parts of the benchmark, in either world.
struct Course {
    world: World,
    drives: Vec<DriveHandle>,
    written: Rc<Cell<u64>>,
    turns: Rc<Turns>,
    figures: RefCell<Vec<Figures>>,
    now_s: fn(&World) -> f64,
}

impl Course {
    fn new(world: &World, drives: Vec<DriveHandle>, tick: Nanos, now_s: fn(&World) -> f64) -> Course {
        let written = Rc::new(Cell::new(0));
        let counted =
            drives.into_iter().map(|inner| DriveHandle::new(Counted { inner, bytes: written.clone() }));
        let (drives, turns) = (counted.collect(), Turns::watch(world, tick));
        Course { world: world.clone(), drives, written, turns, figures: RefCell::default(), now_s }
    }

    async fn part<T>(&self, name: &str, work: impl Future<Output = T>) -> T {
        self.world.sleep(Nanos::from_millis(1)).await;
        self.turns.take_ms();
        let (began, bytes) = ((self.now_s)(&self.world), self.written.get());
        let done = work.await;
        let seconds = (self.now_s)(&self.world) - began;
        // What the last turn did is seen at the next tick.
        self.world.sleep(Nanos::from_millis(1)).await;
        let (turn_ms, bytes) = (self.turns.take_ms(), self.written.get() - bytes);
        self.figures.borrow_mut().push(Figures { name: name.to_owned(), seconds, turn_ms, bytes });
        done
    }

    async fn run(self, pool: Pool, state: PoolState, moves: u64) -> Result<Vec<Figures>, BenchError> {
        let failed = |error: tier0_pool::PoolError| BenchError::Failed(error.to_string());
        let created = Metadata::create(&self.world, self.drives.clone(), state, Rc::new(|_, _| {})).await;
        let metadata = created.map_err(failed)?;
        let mut random = Random::new(3, 0);
        let name = format!("{moves} moves, and the checkpoints they bring");
        let moved = self.part(&name, move_extents(&metadata, pool, moves, &mut random)).await;
        moved.map_err(failed)?;
        let renewed = self.world.spawn({
            let metadata = metadata.clone();
            async move { metadata.renew().await }
        });
        let both = async {
            move_extents(&metadata, pool, moves / 8, &mut random).await?;
            renewed.await
        };
        self.part("all of the map anew, while an eighth as many move", both).await.map_err(failed)?;
        let before = fingerprint(&metadata.state());
        drop(metadata);
        let restart = async {
            let mut found = survey(self.drives.clone()).await.pools;
            let found = found.pop().ok_or_else(|| BenchError::Failed("no pool is found".into()))?;
            found.open(&self.world, Rc::new(|_, _| {})).await.map_err(failed)
        };
        let metadata = self.part("restart", restart).await?;
        if fingerprint(&metadata.state()) != before {
            return Err(BenchError::Failed("the map is another one after the restart".into()));
        }
        self.turns.ended.set(true);
        Ok(self.figures.take())
    }
}

/// Moves extents to free slots, some transactions at once.
async fn move_extents(
    metadata: &Metadata,
    pool: Pool,
    moves: u64,
    random: &mut Random,
) -> Result<(), tier0_pool::PoolError> {
    let mut under_way: Vec<Commit> = Vec::new();
    let mut left = moves;
    let mut allocation = (2 << 32) + random.below(1 << 32) * (1 << 6);
    while left > 0 {
        let count = left.min(MOVES_AT_ONCE);
        left -= count;
        under_way.push(metadata.commit(transaction(metadata, pool, count, random, &mut allocation)));
        if under_way.len() == COMMITS_AT_ONCE {
            under_way.remove(0).await?;
        }
    }
    for commit in under_way {
        commit.await?;
    }
    Ok(())
}

fn transaction(
    metadata: &Metadata,
    pool: Pool,
    count: u64,
    random: &mut Random,
    allocation: &mut u64,
) -> Vec<MetaRecord> {
    let state = metadata.state();
    let (mut extents, mut pairs) = (std::collections::BTreeSet::new(), Vec::new());
    let mut slots = std::collections::BTreeSet::new();
    while (pairs.len() as u64) < count {
        let one = extent(random.below(pool.extents));
        let free = state.used_slots().next_missing(random.below(pool.slots));
        if let Some(slot) = free
            && slots.insert(slot)
            && extents.insert(one)
        {
            *allocation += 1;
            pairs.push((one, SlotRef { slot, allocation: *allocation }));
        }
    }
    vec![MetaRecord::unmap(extents), MetaRecord::map(pairs)]
}

fn virtual_run(pool: &Pool, state: PoolState, moves: u64) -> Result<Vec<Figures>, BenchError> {
    let failed = |error: String| BenchError::Failed(format!("{MODEL}: {error}"));
    let catalog = Catalog::embedded();
    let spec = catalog.drive_by_reference(MODEL).map_err(|error| failed(error.to_string()))?;
    let DriveSpec::Disk(disk) = spec else { return Err(failed("it is no disk".into())) };
    let parameters = DiskParameters::try_from(&*disk).map_err(|error| failed(error.to_string()))?;
    let geometry = DiskGeometry::new(parameters).map_err(|error| failed(error.to_string()))?;
    let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
    let world = runtime.world().clone();
    let drive = |number: u32| {
        let model = DiskModel::new(geometry.clone(), Nanos(u64::from(number) * 1_000_000));
        let content = Content::Memory(SparseStore::new(PayloadWidth::REAL));
        let sectors = SectorCount(pool.drive_sectors);
        DriveHandle::new(DiskDrive::new(&world, &format!("d{number}"), model, sectors, content))
    };
    let drives = (0..DRIVES).map(drive).collect();
    let now_s = |world: &World| world.now().0 as f64 / 1e9;
    let course = Course::new(&world, drives, TICK_VIRTUAL, now_s);
    runtime.run(course.run(*pool, state, moves))
}

fn real_run(pool: &Pool, state: PoolState, options: &Options) -> Result<Vec<Figures>, BenchError> {
    let system = |what: &str| BenchError::system(what.to_owned());
    let directory = match &options.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let directory =
        directory.map_err(system("no directory for the files can be made; name one with --dir"))?;
    let real = RealOptions { backend: Backend::Auto, seed: 1, keep_awake: false };
    let runtime = RealRuntime::new(&real).map_err(system("the real world cannot be opened"))?;
    let world = runtime.world().clone();
    let drive = |number: u32| -> Result<DriveHandle, BenchError> {
        let path = directory.path().join(format!("d{number}.img"));
        let file = std::fs::File::create(&path).map_err(system("a file cannot be made"))?;
        file.set_len(pool.drive_sectors * SECTOR_BYTES).map_err(system("a file cannot be as large"))?;
        let medium = FileMedium::open(&path).map_err(|error| BenchError::Failed(error.to_string()))?;
        Ok(DriveHandle::new(medium.drive(&world).map_err(system("a file cannot be opened"))?))
    };
    let drives = (0..DRIVES).map(drive).collect::<Result<Vec<_>, _>>()?;
    let course = Course::new(&world, drives, TICK_REAL, |_| clock::wall_s());
    runtime.run(course.run(*pool, state, options.moves))
}
