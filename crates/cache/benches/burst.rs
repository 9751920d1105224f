//! What the write-back log is worth: a burst of random writes of 8 KiB on modelled 10k disks in RAID 6, with the log on
//! two modelled flash drives and without it, in virtual time.
//!
//! ```text
//! cargo bench -p tier0-cache --bench burst
//! ```

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_cache::{LocalFuture, Mapping, Relocation, WriteBack, WriteBackOptions, ring_settings};
use tier0_catalog::{Catalog, DriveSpec};
use tier0_drive::disk::{DiskModel, DiskParameters, Geometry};
use tier0_drive::flash::{FlashModel, FlashParameters, Precondition};
use tier0_drive::{Content, DiskDrive, DriveHandle, FlashDrive};
use tier0_integrity::table::ColumnPlan;
use tier0_integrity::{IntegrityCounts, SlotIo, SlotIoOptions};
use tier0_journal::{LossReport, Region, Ring};
use tier0_pool::Chunklets;
use tier0_raid::io::{FailureReport, LostDrives, Members, RaidIo};
use tier0_raid::layout::{Layout, RaidConfig, RaidLevel};
use tier0_raid::set::{RaidSets, SlotMap};
use tier0_units::{ByteCount, ExtentId, Lba, Nanos, SectorCount, SlotRef, WriteCache};
use tier0_world::{IoError, PayloadWidth, VirtualRuntime, World};
use uuid::Uuid;

const DISKS: usize = 10;
const DISK: &str = "sas-10k-900gb-sff";
const FLASH: &str = "ssd-sas-400gb";
const CHUNKLET_SECTORS: u64 = 1 << 21;
const CHUNKLETS: u32 = 50;
const STRIPE_UNIT: u64 = 128;
const EXTENT_SECTORS: u64 = 2048;
const WRITE_SECTORS: u32 = 16;
const WRITERS: u64 = 32;
/// 128 MiB, half of it of use for a burst: the other half is kept for the intents of RAID 6.
const BURST_WRITES: u64 = 8192;
const LOG: ByteCount = ByteCount::mib(1024);

struct Nobody;

impl FailureReport for Nobody {
    fn report(&self, _: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async {})
    }
}

impl LossReport for Nobody {
    fn report(&self, _: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async {})
    }
}

/// A thick volume: extent n is slot n.
struct Thick;

impl Mapping for Thick {
    fn slot(&self, extent: ExtentId) -> Option<SlotRef> {
        Some(SlotRef { slot: u64::from(extent.index), allocation: 1 })
    }

    fn is_shared(&self, _: SlotRef) -> bool {
        false
    }

    fn owners(&self, extent: ExtentId) -> Vec<ExtentId> {
        vec![extent]
    }

    fn allocate_copy(&self, _: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>> {
        Box::pin(async { Err(IoError::NoSpace) })
    }

    fn give_back(&self, _: SlotRef) {}

    fn commit_move(&self, _: Relocation) -> LocalFuture<'_, Result<Vec<ExtentId>, IoError>> {
        Box::pin(async { Err(IoError::NoSpace) })
    }

    fn commit_leave(&self, _: ExtentId, _: SlotRef) -> LocalFuture<'_, Result<(), IoError>> {
        Box::pin(async { Err(IoError::NoSpace) })
    }

    fn has_left(&self, _: ExtentId, _: SlotRef) -> bool {
        false
    }

    fn moved(&self, _: &Relocation) -> bool {
        false
    }

    fn allocate(&self, _: ExtentId) -> LocalFuture<'_, Result<SlotRef, IoError>> {
        Box::pin(async { Err(IoError::NoSpace) })
    }

    fn commit(
        &self,
        _: Vec<(ExtentId, SlotRef)>,
        _: Vec<(ExtentId, SlotRef)>,
    ) -> LocalFuture<'_, Result<(), IoError>> {
        Box::pin(async { Ok(()) })
    }
}

fn disks(world: &World, catalog: &Catalog) -> Vec<DriveHandle> {
    let spec = catalog.drive_by_reference(DISK).expect("in the catalogue");
    let DriveSpec::Disk(spec) = spec else { panic!("{DISK} is a disk") };
    let geometry = Geometry::new(DiskParameters::try_from(&*spec).expect("possible")).expect("possible");
    let capacity = SectorCount(spec.parameters.capacity_sectors()).min(geometry.sectors());
    let disk = |n: usize| {
        let phase = Nanos(geometry.revolution().0 * n as u64 / DISKS as u64);
        let model = DiskModel::new(geometry.clone(), phase);
        DriveHandle::new(DiskDrive::new(world, &format!("disk{n}"), model, capacity, Content::memory(world)))
    };
    (0..DISKS).map(disk).collect()
}

fn flash(world: &World, catalog: &Catalog) -> Vec<DriveHandle> {
    let spec = catalog.drive_by_reference(FLASH).expect("in the catalogue");
    let DriveSpec::Flash(spec) = spec else { panic!("{FLASH} is flash") };
    let parameters = FlashParameters::try_from(&*spec).expect("possible");
    let mut model = FlashModel::new(parameters, 0).expect("possible");
    model.precondition(Precondition::default());
    let drive = |n: u64| {
        let model = model.clone_with_seed(n);
        DriveHandle::new(FlashDrive::new(world, &format!("flash{n}"), model, Content::memory(world)))
    };
    (0..2).map(drive).collect()
}

struct Pool {
    slots: SlotIo,
    count: u64,
}

fn pool(world: &World, catalog: &Catalog) -> Pool {
    let layout =
        Layout::new(&RaidConfig::new(RaidLevel::Raid6, DISKS, SectorCount(STRIPE_UNIT))).expect("valid");
    let plan = ColumnPlan::new(&layout, CHUNKLET_SECTORS, EXTENT_SECTORS);
    let mut chunklets = Chunklets::of_ranges(CHUNKLET_SECTORS, (0..DISKS).map(|_| 0..CHUNKLETS));
    let sets = Arc::new(RaidSets::form_with_tables(layout, &mut chunklets, plan.table_sectors));
    let map = Arc::new(SlotMap::new(&sets, EXTENT_SECTORS, DISKS));
    let drives = disks(world, catalog).into_iter().map(Some).collect();
    let members = Members::new(drives, LostDrives::new(DISKS), Rc::new(Nobody));
    let counts = Rc::new(IntegrityCounts::new(map.clone()));
    let raid = RaidIo::with_report(sets, members, counts.clone());
    let count = map.count();
    Pool { slots: SlotIo::new(raid, map, 1, SlotIoOptions::default(), counts), count }
}

/// Runs the writers; the time that `total` writes take, and the mean and the longest wait.
async fn run<F: Future<Output = ()> + 'static>(
    world: &World,
    total: u64,
    slots: u64,
    write: impl Fn(u64, u64) -> F + Clone + 'static,
) -> (Nanos, Nanos, Nanos) {
    let began = world.now();
    let left = Rc::new(Cell::new(total));
    let waits = Rc::new(RefCell::new((Nanos::ZERO, Nanos::ZERO)));
    let tasks: Vec<_> = (0..WRITERS)
        .map(|task| {
            let (world, left, write, waits) = (world.clone(), left.clone(), write.clone(), waits.clone());
            world.clone().spawn(async move {
                let mut random = world.random(task);
                while left.get() > 0 {
                    left.set(left.get() - 1);
                    let began = world.now();
                    let first = random.below(EXTENT_SECTORS / 16) * 16;
                    write(random.below(slots), first).await;
                    let wait = world.now() - began;
                    let (sum, longest) = *waits.borrow();
                    *waits.borrow_mut() = (sum + wait, longest.max(wait));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    let (sum, longest) = *waits.borrow();
    (world.now() - began, Nanos(sum.0 / total), longest)
}

fn report(name: &str, total: u64, (time, mean, longest): (Nanos, Nanos, Nanos)) -> f64 {
    let rate = total as f64 / time.as_secs_f64();
    println!(
        "{name:<34} {total:>6} writes in {time:>8}: {rate:>8.0} IOPS, mean {mean:>8}, longest {longest:>8}"
    );
    rate
}

fn main() {
    println!(
        "{DISKS} x {DISK} in RAID 6, log of {LOG} on 2 x {FLASH}, {WRITERS} writers of 8 KiB at random, virtual time"
    );
    let direct = without_log();
    let (burst, steady) = with_log();
    println!("burst: {:.1} x without log; steady: {:.2} x", burst / direct, steady / direct);
}

/// Write through: RAID 6 as it is without log and checksums.
fn without_log() -> f64 {
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    runtime.run(async move {
        let catalog = Catalog::embedded();
        let pool = pool(&world, &catalog);
        let (raid, map, buffers) = (pool.slots.raid().clone(), pool.slots.clone(), world.clone());
        let write = move |slot: u64, first: u64| {
            let (raid, place) = (raid.clone(), map.slots().place(slot));
            let buf = buffers.buffer(WRITE_SECTORS).freeze();
            async move {
                let lba = Lba(place.first_sector + first);
                raid.write(place.set, lba, buf, true).await.expect("the write succeeds");
            }
        };
        let result = run(&world, 2048, pool.count, write).await;
        report("without log", 2048, result)
    })
}

fn with_log() -> (f64, f64) {
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    runtime.run(async move {
        let catalog = Catalog::embedded();
        let pool = pool(&world, &catalog);
        let region = |drive| Region { drive, first: Lba(0), sectors: LOG.0 / 512 };
        let regions = flash(&world, &catalog).into_iter().map(region).collect();
        let settings = ring_settings(LOG.0 / 512);
        let ring = Ring::format(&world, regions, Uuid::from_u128(1), settings, Rc::new(Nobody)).await;
        let ring = ring.expect("a ring");
        let options = WriteBackOptions { memory_max: ByteCount::mib(512), ..WriteBackOptions::default() };
        let cache = WriteBack::new(&world, ring, pool.slots.clone(), Rc::new(Thick), options);
        cache.start();
        let (writer, buffers) = (cache.clone(), world.clone());
        let write = move |slot: u64, first: u64| {
            let (cache, buf) = (writer.clone(), buffers.buffer(WRITE_SECTORS).freeze());
            async move {
                let extent = ExtentId { volume: 0, index: slot as u32 };
                cache
                    .write(extent, first, buf, false, WriteCache::Durable)
                    .await
                    .expect("the write succeeds");
            }
        };
        let burst = run(&world, BURST_WRITES, pool.count, write.clone()).await;
        let burst = report("with log, burst", BURST_WRITES, burst);
        let began = world.now();
        let pages = cache.status().dirty_pages;
        cache.drain().await.expect("everything is destaged");
        let time = world.now() - began;
        println!("{pages} pages destaged in {time}: {:.0} pages/s", pages as f64 / time.as_secs_f64());
        // Fill the log first, then measure in balance.
        run(&world, 60_000, pool.count, write.clone()).await;
        let steady = run(&world, 20_000, pool.count, write).await;
        let steady = report("with log, in balance", 20_000, steady);
        println!("{:?}", cache.status());
        (burst, steady)
    })
}
