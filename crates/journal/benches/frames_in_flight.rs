//! What frames in flight and batching are worth, on modelled drives in virtual time.
//!
//! ```text
//! cargo bench -p tier0-journal --bench frames_in_flight
//! ```
//!
//! Clients append records of 8 KiB in a closed loop to a ring on two drives of a kind; beside it the same records are
//! written to both drives directly, one after the other in address order. All figures are predictions of the models.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_catalog::{Catalog, DriveSpec};
use tier0_drive::disk::{DiskModel, DiskParameters, Geometry};
use tier0_drive::flash::{FlashModel, FlashParameters, Precondition};
use tier0_drive::{Content, DiskDrive, DriveHandle, FlashDrive};
use tier0_journal::{LossReport, Record, Region, Ring, Settings};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{IoError, PayloadWidth, VirtualRuntime, World};
use uuid::Uuid;

const REGION_SECTORS: u64 = (128 << 20) / 512;
const RECORD_SECTORS: u32 = 16;
/// Between two records of a client, so that they do not march in step.
const THINK_NS_MEAN: f64 = 20_000.0;
/// Frames in flight, and sectors of a frame at most.
const FRAMES: [(usize, u64); 6] = [(1, 2048), (2, 512), (4, 512), (4, 128), (8, 128), (16, 64)];
const ROUND: Nanos = Nanos::from_secs(2);

fn main() {
    for id in ["nvme", "ssd-sas-400gb", "ssd-sata", "fc-15k-300gb"] {
        for clients in [1, 8, 32, 128] {
            println!("{id}, {clients} clients, direct: {}", measure(id, clients, None));
            for (frames_in_flight_max, frame_sectors_max) in FRAMES {
                let settings = Settings { frames_in_flight_max, frame_sectors_max, headroom_sectors: 0 };
                let size = frame_sectors_max / 2;
                println!(
                    "    {frames_in_flight_max:>2} of {size:>4} KiB: {}",
                    measure(id, clients, Some(settings))
                );
            }
        }
    }
}

/// Records per second, and the median and 99th percentile of their latency in microseconds.
fn measure(id: &str, clients: usize, settings: Option<Settings>) -> String {
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let drives = [0, 1].map(|i| drive(&world, id, i));
    let mut latencies = runtime.run(async move {
        let latencies = Rc::new(RefCell::new(Vec::new()));
        let target = Rc::new(Target::open(&world, drives, settings).await);
        let end = world.now() + ROUND;
        let clients = (0..clients).map(|client| {
            let mut random = world.random(client as u64);
            let (world, target, latencies) = (world.clone(), target.clone(), latencies.clone());
            world.clone().spawn(async move {
                while world.now() < end {
                    world.sleep(Nanos(random.exponential(THINK_NS_MEAN) as u64)).await;
                    let begin = world.now();
                    target.write(&world).await;
                    latencies.borrow_mut().push(world.now() - begin);
                }
            })
        });
        futures_util::future::join_all(clients).await;
        latencies.take()
    });
    latencies.sort();
    let quantile = |share: f64| latencies[(latencies.len() as f64 * share) as usize].0 as f64 / 1e3;
    let rate = latencies.len() as f64 / ROUND.as_secs_f64();
    format!("{rate:.0}/s {:.0}/{:.0} us", quantile(0.5), quantile(0.99))
}

/// A preconditioned drive of the catalogue.
fn drive(world: &World, id: &str, number: u64) -> DriveHandle {
    let catalog = Catalog::embedded();
    match catalog.drive(id).expect("the catalogue has it") {
        DriveSpec::Disk(disk) => {
            let parameters = DiskParameters::try_from(&**disk).expect("a possible disk");
            let geometry = Geometry::new(parameters).expect("a possible disk");
            let model = DiskModel::new(geometry, Nanos(number * 1_000_000));
            DriveHandle::new(DiskDrive::new(
                world,
                id,
                model,
                SectorCount(REGION_SECTORS),
                Content::memory(world),
            ))
        }
        DriveSpec::Nvram(_) => panic!("{id} is a write cache"),
        DriveSpec::Flash(flash) => {
            let parameters = FlashParameters::try_from(&**flash).expect("a possible drive");
            let mut model = FlashModel::new(parameters, number).expect("a possible drive");
            model.precondition(Precondition::default());
            DriveHandle::new(FlashDrive::new(world, id, model, Content::memory(world)))
        }
    }
}

enum Target {
    Ring(Ring),
    Raw([DriveHandle; 2], Cell<u64>),
}

impl Target {
    async fn open(world: &World, drives: [DriveHandle; 2], settings: Option<Settings>) -> Target {
        let Some(settings) = settings else { return Target::Raw(drives, Cell::new(0)) };
        let region = |drive| Region { drive, first: Lba(0), sectors: REGION_SECTORS };
        let regions = drives.into_iter().map(region).collect();
        let ring = Ring::format(world, regions, Uuid::from_u128(1), settings, Rc::new(NoLoss)).await;
        Target::Ring(ring.expect("the ring can be formatted"))
    }

    async fn write(&self, world: &World) {
        let buf = world.buffer(RECORD_SECTORS).freeze();
        match self {
            Target::Ring(ring) => {
                let record = Record { header: vec![0; 32], pages: vec![buf] };
                let position = ring.append(record).await.expect("appends").position;
                ring.release(position);
            }
            Target::Raw(drives, next) => {
                let lba = Lba(next.replace(next.get() + u64::from(RECORD_SECTORS)) % REGION_SECTORS);
                let writes =
                    drives.iter().map(|drive| drive.write(lba, buf.clone(), drive.info().volatile_cache));
                for result in futures_util::future::join_all(writes).await {
                    result.expect("a modelled drive does not fail");
                }
            }
        }
    }
}

struct NoLoss;

impl LossReport for NoLoss {
    fn report(&self, copy: usize, error: IoError) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
        panic!("drive {copy} failed: {error}");
    }
}
