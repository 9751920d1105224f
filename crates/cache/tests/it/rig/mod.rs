//! A write cache on real slots and a real ring over simulated drives: what the tests of this crate share.
//!
//! A [`Rack`] is what outlives a world: the media, the committed map, which drives are lost. [`Rack::open`] is the engine
//! on it in one world, fresh or recovered.

pub(crate) mod map;
pub(crate) mod model;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_cache::{
    Belongs, ReadCache, ReadCacheOptions, RecoverError, WriteBack, WriteBackOptions, ring_settings,
};
use tier0_drive::DriveHandle;
use tier0_drive::sim::{PowerSwitch, SimMedium, SimOptions};
use tier0_integrity::table::ColumnPlan;
use tier0_integrity::{IntegrityCounts, SlotIo, SlotIoOptions};
use tier0_journal::{Entry, LossReport, Region, Ring, Settings};
use tier0_policy::PolicyKind;
use tier0_pool::{ChunkletAddress, Chunklets};
use tier0_raid::io::{FailureReport, LostDrives, Members, RaidIo};
use tier0_raid::layout::{Layout, RaidConfig, RaidLevel};
use tier0_raid::set::{RaidSets, SetShape, SlotMap};
use tier0_units::{ByteCount, Lba, Nanos, SectorCount};
use tier0_world::{IoError, PayloadWidth, World};
use uuid::Uuid;

use map::{DurableMap, PoolMap};

const POOL: u64 = 0x0bad_cafe;
const CHUNKLET_SECTORS: u64 = 1024;
const STRIPE_UNIT: u64 = 16;
/// Sectors of an extent: 32 pages.
pub(crate) const EXTENT_SECTORS: u64 = 256;

/// What a rack is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) level: RaidLevel,
    pub(crate) columns: usize,
    /// Chunklets of each drive.
    pub(crate) chunklets: u32,
    /// Blocks of the ring.
    pub(crate) log_blocks: u64,
    /// The time of a command on the drives of sets.
    pub(crate) latency: (Nanos, Nanos),
    pub(crate) width: PayloadWidth,
}

impl Shape {
    pub(crate) fn new(level: RaidLevel, columns: usize) -> Shape {
        Shape {
            level,
            columns,
            chunklets: 2,
            log_blocks: 400,
            latency: (Nanos::from_micros(20), Nanos::from_micros(200)),
            width: PayloadWidth::REAL,
        }
    }
}

pub(crate) fn shapes() -> [Shape; 4] {
    [
        Shape::new(RaidLevel::Raid10, 4),
        Shape::new(RaidLevel::Raid1, 2),
        Shape::new(RaidLevel::Raid5, 4),
        Shape::new(RaidLevel::Raid6, 5),
    ]
}

/// Small and eager, so that everything happens in a short test.
pub(crate) fn eager() -> WriteBackOptions {
    WriteBackOptions {
        memory_max: ByteCount::kib(512),
        age_max: Nanos::from_millis(3),
        batch_pages_max: 24,
        ..WriteBackOptions::default()
    }
}

/// What outlives a world; clones share it.
#[derive(Clone)]
pub(crate) struct Rack {
    pub(crate) shape: Shape,
    layout: Layout,
    plan: ColumnPlan,
    pub(crate) media: Vec<SimMedium>,
    pub(crate) log_media: Vec<SimMedium>,
    pub(crate) switch: PowerSwitch,
    pub(crate) lost: Rc<RefCell<BTreeSet<usize>>>,
    pub(crate) lost_copies: Rc<RefCell<BTreeSet<usize>>>,
    table: Vec<ChunkletAddress>,
    pub(crate) map: DurableMap,
    formatted: Rc<Cell<bool>>,
    /// The drives as the last world has them: they outlive whatever a power cut drops.
    open_drives: Rc<RefCell<Vec<DriveHandle>>>,
}

/// Remembers losses as a pool's metadata do.
struct Losses(Rc<RefCell<BTreeSet<usize>>>);

impl FailureReport for Losses {
    fn report(&self, member: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        self.0.borrow_mut().insert(member);
        Box::pin(async {})
    }
}

impl LossReport for Losses {
    fn report(&self, copy: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        self.0.borrow_mut().insert(copy);
        Box::pin(async {})
    }
}

/// The engine of one shard.
#[derive(Clone)]
pub(crate) struct Shard {
    pub(crate) cache: WriteBack,
    pub(crate) slots: SlotIo,
    pub(crate) map: Rc<PoolMap>,
}

impl Rack {
    pub(crate) fn new(shape: Shape, seed: u64) -> Rack {
        let config = RaidConfig::new(shape.level, shape.columns, SectorCount(STRIPE_UNIT));
        let layout = Layout::new(&config).expect("valid");
        let plan = ColumnPlan::new(&layout, CHUNKLET_SECTORS, EXTENT_SECTORS);
        let switch = PowerSwitch::new();
        let medium = |name: String, sectors: u64, n: u64, latency| {
            let options = SimOptions::new(&name, SectorCount(sectors), seed << 8 | n);
            SimMedium::new(SimOptions { width: shape.width, latency, ..options }, &switch)
        };
        let sectors = u64::from(shape.chunklets) * CHUNKLET_SECTORS;
        let media = (0..shape.columns)
            .map(|n| medium(format!("d{n}"), sectors, n as u64, shape.latency.0..shape.latency.1))
            .collect();
        let ring_sectors = region_sectors(shape.log_blocks);
        let fast = Nanos::from_micros(20)..Nanos::from_micros(60);
        let log_media =
            (0..2).map(|n| medium(format!("log{n}"), ring_sectors, 100 + n as u64, fast.clone())).collect();
        let mut chunklets =
            Chunklets::of_ranges(CHUNKLET_SECTORS, (0..shape.columns).map(|_| 0..shape.chunklets));
        let sets = RaidSets::form_with_tables(layout, &mut chunklets, plan.table_sectors);
        let slot_count = SlotMap::new(&sets, EXTENT_SECTORS, shape.columns).count();
        Rack {
            shape,
            layout,
            plan,
            media,
            log_media,
            switch,
            lost: Rc::default(),
            lost_copies: Rc::default(),
            table: sets.table(),
            map: DurableMap::new(slot_count),
            formatted: Rc::default(),
            open_drives: Rc::default(),
        }
    }

    /// Slots of the pool.
    pub(crate) fn slot_count(&self) -> u64 {
        self.map.slot_count()
    }

    fn slot_io(&self, world: &World) -> SlotIo {
        let shape = SetShape { layout: self.layout, table_sectors: self.plan.table_sectors };
        let sets = RaidSets::from_table(shape, CHUNKLET_SECTORS, &self.table);
        let sets = Arc::new(sets.expect("valid").with_data_start(0));
        let slots = Arc::new(SlotMap::new(&sets, EXTENT_SECTORS, self.media.len()));
        let lost = LostDrives::new(self.media.len());
        for drive in self.lost.borrow().iter() {
            lost.set_lost(*drive);
        }
        let open: Vec<DriveHandle> = self.media.iter().map(|medium| medium.open(world)).collect();
        self.open_drives.borrow_mut().extend(open.iter().cloned());
        let drive = |n: usize| (!self.lost.borrow().contains(&n)).then(|| open[n].clone());
        let drives = (0..self.media.len()).map(drive).collect();
        let members = Members::new(drives, lost, Rc::new(Losses(self.lost.clone())));
        let counts = Rc::new(IntegrityCounts::new(slots.clone()));
        let raid = RaidIo::with_report(sets, members, counts.clone());
        SlotIo::new(raid, slots, POOL, SlotIoOptions::default(), counts)
    }

    fn regions(&self, drives: &[DriveHandle]) -> Vec<Option<Region>> {
        let sectors = region_sectors(self.shape.log_blocks);
        let region = |n: usize| Region { drive: drives[n].clone(), first: Lba(0), sectors };
        (0..2).map(|n| (!self.lost_copies.borrow().contains(&n)).then(|| region(n))).collect()
    }

    fn settings(&self) -> Settings {
        ring_settings(region_sectors(self.shape.log_blocks))
    }

    /// The ring, with what is in it.
    async fn open_ring(&self, world: &World, drives: &[DriveHandle]) -> (Ring, Vec<Entry>) {
        let id = Uuid::from_u128(1);
        let losses = Rc::new(Losses(self.lost_copies.clone()));
        let regions = self.regions(drives);
        if !self.formatted.get() {
            let regions = regions.into_iter().map(|region| region.expect("none is lost yet")).collect();
            let ring = Ring::format(world, regions, id, self.settings(), losses).await.expect("a ring");
            return (ring, Vec::new());
        }
        let found =
            Ring::recover(world, regions, id, self.settings(), losses).await.expect("the ring is recovered");
        (found.ring, found.entries)
    }

    /// A write cache that has taken over everything and destages.
    pub(crate) async fn open(&self, world: &World, options: WriteBackOptions) -> Shard {
        let shard = self.recover(world, options).await.expect("recovery succeeds");
        shard.cache.start();
        shard
    }

    /// A write cache that has taken over everything and is not started.
    pub(crate) async fn recover(
        &self,
        world: &World,
        options: WriteBackOptions,
    ) -> Result<Shard, RecoverError> {
        let drives: Vec<DriveHandle> = self.log_media.iter().map(|medium| medium.open(world)).collect();
        *self.open_drives.borrow_mut() = drives.clone();
        let (ring, entries) = self.open_ring(world, &drives).await;
        self.formatted.set(true);
        let map = Rc::new(PoolMap::new(world, &self.map, &self.switch));
        let slots = self.slot_io(world);
        let mapping = map.clone() as Rc<_>;
        let recovered =
            WriteBack::recover(world, ring, slots.clone(), mapping, options, &entries, |_| Belongs::Here);
        let (cache, _) = recovered.await?;
        let few = ReadCacheOptions { policy: PolicyKind::default(), memory_max: ByteCount::kib(256) };
        cache.keep_reads(Rc::new(ReadCache::new(few, world.width()).expect("256 KiB")));
        Ok(Shard { cache, slots, map })
    }
}

fn region_sectors(blocks: u64) -> u64 {
    (blocks + 2) * 8
}
