//! `cargo xtask bench qos --part neighbours`: how much a quiet volume notices of its neighbour on the same served array: of a
//! flood of writes, with equal weights and with the greatest weight for the quiet one; and of a scan.
//!
//! The same hosts load the quiet volume each time at a fixed rate, first alone. Latencies are the clients' own.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_nbd::client::Client;
use tier0_units::{Lba, Nanos};
use tier0_world::{IoError, RealRuntime, World};

use super::Asked;
use crate::bench::{judge_at_least, judge_at_most, table};
use crate::error::BenchError;

/// What is aimed at: p99 of the quiet volume beside a flood, as a multiple of that alone.
const FLOODED_MOST: f64 = 1.5;
/// p95 of small reads beside a scan, as a multiple of that alone.
const SCANNED_MOST: f64 = 2.0;
/// The scan's throughput beside small reads, as a share of that alone.
const SCAN_LEAST: f64 = 0.9;

/// What hosts do to a volume.
#[derive(Clone, Copy)]
struct Load {
    hosts: u64,
    /// Each host begins a request so often; zero: when the last one has ended.
    every: Nanos,
    sectors: u32,
    /// Of 100 requests so many are reads.
    reads: u64,
    is_sequential: bool,
}

const QUIET: Load =
    Load { hosts: 8, every: Nanos::from_millis(40), sectors: 16, reads: 50, is_sequential: false };
const FLOOD: Load = Load { hosts: 32, every: Nanos::ZERO, sectors: 128, reads: 0, is_sequential: false };
const SMALL: Load = Load { reads: 100, ..QUIET };
const SCAN: Load = Load { hosts: 4, every: Nanos::ZERO, sectors: 2048, reads: 100, is_sequential: true };

/// What a load got.
struct Got {
    latencies: Vec<u64>,
    bytes: u64,
}

impl Got {
    /// In milliseconds.
    fn quantile(&self, percent: usize) -> f64 {
        let index = self.latencies.len().saturating_sub(1) * percent / 100;
        self.latencies.get(index).copied().unwrap_or(0) as f64 / 1e6
    }
}

/// Measures all of it for so many seconds each, and prints. The volumes are `quiet` and `busy`.
pub(super) fn run(
    runtime: &RealRuntime,
    clients: &[Client; 2],
    asked: &Asked,
    seconds: usize,
) -> Result<(), BenchError> {
    let measure = |loads: [Option<Load>; 2]| {
        runtime.run(measured(
            runtime.world().clone(),
            clients.clone(),
            loads,
            Nanos::from_secs(seconds as u64),
        ))
    };
    let mut rows = table(&["quiet volume", "beside", "p50 ms", "p95 ms", "p99 ms", "neighbour MB/s"]);
    let mut row = |what: &str, beside: &str, [quiet, busy]: &[Got; 2]| {
        let megabytes = busy.bytes as f64 / 1e6 / seconds as f64;
        let figures = [50, 95, 99].map(|percent| format!("{:.2}", quiet.quantile(percent)));
        let [p50, p95, p99] = figures;
        rows.add_row([what.to_owned(), beside.to_owned(), p50, p95, p99, format!("{megabytes:.0}")]);
    };
    let alone = measure([Some(QUIET), None])?;
    row("8 KiB, half reads", "nothing", &alone);
    let mut flooded = Vec::new();
    for weight in [10, 100] {
        asked.set_of("quiet", [format!("weight={weight}")])?;
        let beside = measure([Some(QUIET), Some(FLOOD)])?;
        row("8 KiB, half reads", &format!("flood; weight {weight} to 10"), &beside);
        flooded.push((weight, beside[0].quantile(99) / alone[0].quantile(99)));
    }
    let small = measure([Some(SMALL), None])?;
    row("8 KiB reads", "nothing", &small);
    let scan = measure([None, Some(SCAN)])?;
    row("none", "scan", &scan);
    let both = measure([Some(SMALL), Some(SCAN)])?;
    row("8 KiB reads", "scan", &both);
    println!("\n{rows}");
    for (weight, ratio) in flooded {
        println!(
            "p99 beside a flood, weight {weight} to 10: {ratio:.2} times that alone, aimed at {FLOODED_MOST}: {}",
            judge_at_most(ratio, FLOODED_MOST)
        );
    }
    let ratio = both[0].quantile(95) / small[0].quantile(95);
    let kept = both[1].bytes as f64 / scan[1].bytes as f64;
    println!(
        "p95 of 8 KiB reads beside a scan: {ratio:.2} times that alone, aimed at {SCANNED_MOST}: {}",
        judge_at_most(ratio, SCANNED_MOST)
    );
    println!(
        "throughput of the scan beside them: {kept:.2} of that alone, aimed at {SCAN_LEAST}: {}",
        judge_at_least(kept, SCAN_LEAST)
    );
    Ok(())
}

/// Loads both volumes for a time, of which the first third does not count.
async fn measured(
    world: World,
    clients: [Client; 2],
    loads: [Option<Load>; 2],
    time: Nanos,
) -> Result<[Got; 2], BenchError> {
    let from = world.now() + Nanos(time.0 / 3);
    let mut hosts = Vec::new();
    let got = [(); 2].map(|()| Rc::new(RefCell::new(Got { latencies: Vec::new(), bytes: 0 })));
    for ((number, load), (client, got)) in (0u64..).zip(loads).zip(clients.iter().zip(&got)) {
        let Some(load) = load else { continue };
        let cursor = Rc::new(Cell::new(0));
        for host in 0..load.hosts {
            let one = Host {
                world: world.clone(),
                client: client.clone(),
                load,
                cursor: cursor.clone(),
                got: got.clone(),
                counts: (from, from + time),
            };
            hosts.push(world.spawn(one.run(number * 100 + host)));
        }
    }
    for host in hosts {
        host.await.map_err(|error| BenchError::Failed(format!("the load: {error}")))?;
    }
    Ok(got.map(|got| {
        let mut got = got.replace(Got { latencies: Vec::new(), bytes: 0 });
        got.latencies.sort_unstable();
        got
    }))
}

/// One host of a load.
struct Host {
    world: World,
    client: Client,
    load: Load,
    /// Where the next request of a sequential load begins.
    cursor: Rc<Cell<u64>>,
    got: Rc<RefCell<Got>>,
    /// What ends between these times counts.
    counts: (Nanos, Nanos),
}

impl Host {
    async fn run(self, seed: u64) -> Result<(), IoError> {
        let (Load { every, sectors, reads, is_sequential, .. }, (from, to)) = (self.load, self.counts);
        let mut random = self.world.random(seed);
        let places = self.client.info().sectors.0 / u64::from(sectors);
        let mut due = self.world.now() + Nanos(random.below(every.0 + 1));
        loop {
            self.world.sleep(due.saturating_sub(self.world.now())).await;
            // A request that is late because another took long counts from when it was due.
            let began = if every == Nanos::ZERO { self.world.now() } else { due };
            due = began + every;
            let place =
                if is_sequential { self.cursor.replace(self.cursor.get() + 1) } else { random.below(places) };
            let lba = Lba(place % places * u64::from(sectors));
            let buf = self.world.buffer(sectors);
            match random.below(100) < reads {
                true => self.client.read(lba, buf).await.0?,
                false => self.client.write(lba, filled(buf, &mut random), false).await?,
            }
            let now = self.world.now();
            if now > to {
                return Ok(());
            }
            if now > from {
                let mut got = self.got.borrow_mut();
                got.latencies.push((now - began).0);
                got.bytes += u64::from(sectors) * 512;
            }
        }
    }
}

/// Something other than zeros.
fn filled(mut buf: tier0_world::BufMut, random: &mut tier0_world::Random) -> tier0_world::Buf {
    let byte = 1 + random.below(255) as u8;
    buf.as_mut_slice().fill(byte);
    buf.freeze()
}
