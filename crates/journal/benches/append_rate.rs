//! Appends per second of the ring on two files, beside raw durable writes of the same bytes.
//!
//! ```text
//! cargo bench -p tier0-journal --bench append_rate -- DIRECTORY
//! ```
//!
//! 32 clients, each with one record of 8 KiB under way: in the ring, with one to eight frames in flight; and written
//! directly, each to its own place on both files, forced and unforced with a flush of both files after 32 writes.
//! Both files lie in DIRECTORY, so they share whatever device that is; the ratio counts. All ways take turns.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tier0_drive::{DriveHandle, FileMedium};
use tier0_journal::{LossReport, Record, Region, Ring, Settings};
use tier0_units::{Lba, Nanos};
use tier0_world::{Buf, IoError, RealOptions, RealRuntime, World};
use uuid::Uuid;

const CLIENTS: u64 = 32;
const RECORD_SECTORS: u32 = 16;
const REGION_SECTORS: u64 = (64 << 20) / 512;
const ROUNDS: usize = 5;
const ROUND: Nanos = Nanos::from_millis(1000);

type Files = [Arc<FileMedium>; 2];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Ring { frames_in_flight_max: usize },
    Forced,
    Flushed,
}

const WAYS: [Way; 6] = [
    Way::Ring { frames_in_flight_max: 1 },
    Way::Ring { frames_in_flight_max: 2 },
    Way::Ring { frames_in_flight_max: 4 },
    Way::Ring { frames_in_flight_max: 8 },
    Way::Forced,
    Way::Flushed,
];

fn main() {
    let directory = std::env::args().nth(1).filter(|text| text != "--bench");
    let directory = directory.expect("name the directory for the two files, of 64 MiB each");
    let paths = ["a", "b"].map(|name| Path::new(&directory).join(format!("append-rate-{name}")));
    for path in &paths {
        // Written once, so that no way pays for allocation.
        std::fs::write(path, vec![1; (REGION_SECTORS * 512) as usize]).expect("the directory has room");
    }
    let files: Files = paths.each_ref().map(|path| FileMedium::open(path).expect("the file can be opened"));
    println!("{CLIENTS} clients, records of 8 KiB on two files, O_DIRECT: {}", files[0].is_direct());
    let mut results = WAYS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (way, results) in WAYS.iter().zip(&mut results) {
            results.push(measure(*way, &files));
        }
    }
    for (way, results) in WAYS.iter().zip(&mut results) {
        results.sort_by(|a: &Figures, b: &Figures| a.rate.total_cmp(&b.rate));
        let median = &results[ROUNDS / 2];
        println!(
            "{:<34} {:>8.0} records/s ({:.0} to {:.0}), p50 {:>6.0} us, p99 {:>6.0} us, {:.0} ns of processor each",
            format!("{way:?}"),
            median.rate,
            results[0].rate,
            results[ROUNDS - 1].rate,
            median.p50.0 as f64 / 1e3,
            median.p99.0 as f64 / 1e3,
            median.processor_ns,
        );
    }
    for path in &paths {
        std::fs::remove_file(path).expect("the file can be removed");
    }
}

struct Figures {
    rate: f64,
    p50: Nanos,
    p99: Nanos,
    processor_ns: f64,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn measure(way: Way, files: &Files) -> Figures {
    let runtime = RealRuntime::new(&RealOptions::default()).expect("a world");
    let world = runtime.world().clone();
    let drives =
        files.each_ref().map(|file| DriveHandle::new(file.drive(&world).expect("a descriptor is left")));
    let before = processor_time();
    let begin = Instant::now();
    let mut latencies = runtime.run(async move { drive(world, way, drives).await });
    let seconds = begin.elapsed().as_secs_f64();
    latencies.sort();
    let count = latencies.len();
    let processor_ns = (processor_time() - before).0 as f64 / count as f64;
    let quantile = |share: f64| latencies[(count as f64 * share) as usize];
    Figures { rate: count as f64 / seconds, p50: quantile(0.5), p99: quantile(0.99), processor_ns }
}

/// Runs the clients for one round; returns how long each record took.
async fn drive(world: World, way: Way, drives: [DriveHandle; 2]) -> Vec<Nanos> {
    let target = Rc::new(Target::open(&world, way, drives).await);
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let end = world.now() + ROUND;
    let clients = (0..CLIENTS).map(|_| {
        let (world, target, latencies) = (world.clone(), target.clone(), latencies.clone());
        let mut buf = world.buffer(RECORD_SECTORS);
        buf.as_mut_slice().fill(7);
        let buf = buf.freeze();
        world.clone().spawn(async move {
            while world.now() < end {
                let begin = world.now();
                target.write(buf.clone()).await;
                latencies.borrow_mut().push(Nanos(world.now().0 - begin.0));
            }
        })
    });
    futures_util::future::join_all(clients).await;
    latencies.take()
}

enum Target {
    Ring(Ring),
    Raw { drives: [DriveHandle; 2], next: Cell<u64>, forced: bool },
}

impl Target {
    async fn open(world: &World, way: Way, drives: [DriveHandle; 2]) -> Target {
        let Way::Ring { frames_in_flight_max } = way else {
            return Target::Raw { drives, next: Cell::new(0), forced: way == Way::Forced };
        };
        let region = |drive| Region { drive, first: Lba(0), sectors: REGION_SECTORS };
        let regions = drives.into_iter().map(region).collect();
        let settings = Settings { frames_in_flight_max, ..Settings::default() };
        let ring = Ring::format(world, regions, Uuid::from_u128(1), settings, Rc::new(NoLoss)).await;
        Target::Ring(ring.expect("the ring can be formatted"))
    }

    async fn write(&self, buf: Buf) {
        match self {
            Target::Ring(ring) => {
                let record = Record { header: vec![0; 32], pages: vec![buf] };
                let position = ring.append(record).await.expect("appends").position;
                ring.release(position);
            }
            Target::Raw { drives, next, forced } => {
                let sectors = u64::from(RECORD_SECTORS);
                let index = next.get();
                next.set(index + 1);
                let lba = Lba(index * sectors % REGION_SECTORS);
                let writes = drives.iter().map(|drive| drive.write(lba, buf.clone(), *forced));
                check(futures_util::future::join_all(writes).await);
                if !forced && index % CLIENTS == CLIENTS - 1 {
                    check(futures_util::future::join_all(drives.iter().map(DriveHandle::flush)).await);
                }
            }
        }
    }
}

fn check(results: Vec<Result<(), IoError>>) {
    results.into_iter().for_each(|result| result.expect("the file takes it"));
}

/// Processor time of this process, its kernel threads included.
fn processor_time() -> Nanos {
    let text = std::fs::read_to_string("/proc/self/stat").expect("the process has its statistics");
    let fields: Vec<u64> = text
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    // User and system time, fields 14 and 15 of proc(5), in hundredths of a second.
    Nanos((fields[10] + fields[11]) * 10_000_000)
}

/// A failing file ends the benchmark.
struct NoLoss;

impl LossReport for NoLoss {
    fn report(&self, copy: usize, error: IoError) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
        panic!("file {copy} failed: {error}");
    }
}
