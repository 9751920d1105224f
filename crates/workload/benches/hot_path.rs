//! What one draw and one record cost: nanoseconds each, the median of several repetitions.
//!
//! At the end: what a whole request of the runner costs in virtual time, on a target that only waits. A
//! simulator of a million requests per second has a microsecond for each, so the generator aims at 20 ns per
//! draw and 15 ns per record.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tier0_block::{BlockTarget, TargetInfo};
use tier0_units::{ByteCount, Lba, Nanos, SectorCount};
use tier0_workload::draw::{
    Exponential, HotCold, IoKind, RequestGenerator, Scramble, StreamPlan, Zipf, below,
};
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{Arrival, LoadSpec, OpenLoop, RunLimits, StreamSpec};
use tier0_workload::stats::{BatchMeans, Series, Tally};
use tier0_world::{Buf, BufMut, IoError, PayloadWidth, Random, VirtualRuntime, World};

const CALLS: u64 = 2_000_000;
const REPETITIONS: usize = 7;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the wall clock")]
fn time(work: impl FnOnce()) -> Duration {
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}

/// Prints the median nanoseconds per call.
fn measure(name: &str, mut call: impl FnMut(u64)) {
    let mut nanos: Vec<f64> = (0..REPETITIONS)
        .map(|_| time(|| (0..CALLS).for_each(&mut call)).as_nanos() as f64 / CALLS as f64)
        .collect();
    print_line(name, &mut nanos);
}

fn print_line(name: &str, nanos: &mut [f64]) {
    nanos.sort_by(f64::total_cmp);
    println!(
        "{name:<28} {:>6.1} ns  (min {:.1}, max {:.1})",
        nanos[REPETITIONS / 2],
        nanos[0],
        nanos[REPETITIONS - 1]
    );
}

/// A target that takes its time and does nothing else.
struct Delay(World);

impl BlockTarget for Delay {
    fn info(&self) -> TargetInfo {
        TargetInfo { sectors: SectorCount(1 << 30), block_sectors: 1, volatile_cache: false }
    }

    async fn read(&self, _: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        self.0.sleep(Nanos::from_micros(100)).await;
        (Ok(()), buf)
    }

    async fn write(&self, _: Lba, _: Buf, _: bool) -> Result<(), IoError> {
        self.0.sleep(Nanos::from_micros(300)).await;
        Ok(())
    }

    async fn flush(&self) -> Result<(), IoError> {
        Ok(())
    }

    async fn discard(&self, _: Lba, _: u64) -> Result<(), IoError> {
        Err(IoError::Unsupported)
    }

    async fn write_zeroes(&self, _: Lba, _: u64, _: bool, _: bool) -> Result<(), IoError> {
        Err(IoError::Unsupported)
    }
}

/// Prints the median nanoseconds per request of whole runs.
fn measure_run(name: &str, arrival: Arrival) {
    let mut nanos: Vec<f64> = (0..REPETITIONS)
        .map(|_| {
            let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
            let target = Rc::new(Delay(runtime.world().clone()));
            let load =
                LoadSpec::single(StreamSpec { arrival, ..StreamSpec::default() }, RunLimits::ios(CALLS));
            let run = LoadRun::new(runtime.world(), target, load).expect("it fits");
            time(|| _ = black_box(runtime.run(run.run()))).as_nanos() as f64 / CALLS as f64
        })
        .collect();
    print_line(name, &mut nanos);
}

fn main() {
    let mut random = Random::new(1, 0);
    measure("uniform", |_| _ = black_box(below(&mut random, 12_345_678)));
    for theta in [0.5, 0.99, 1.0, 1.5] {
        let zipf = Zipf::new(10_000_000, theta);
        measure(&format!("zipf {theta}"), |_| _ = black_box(zipf.draw(&mut random)));
    }
    let scramble = Scramble::new(10_000_000, 1);
    measure("scramble", |n| _ = black_box(scramble.apply(n)));
    let hot_cold = HotCold::new(10_000_000, 80.0, 20.0);
    measure("hot-cold", |_| _ = black_box(hot_cold.draw(&mut random)));
    let exponential = Exponential::with_rate(5000.0);
    measure("exponential", |_| _ = black_box(exponential.draw(&mut random)));

    for (block, pattern) in [
        ("8KiB", "random"),
        ("8KiB:70 64KiB:30", "random"),
        ("8KiB", "sequential"),
        ("8KiB", "zipf:0.99"),
        ("8KiB", "hot-cold:80/20"),
    ] {
        let spec = StreamSpec {
            block: block.parse().expect("a mix"),
            pattern: pattern.parse().expect("a pattern"),
            ..StreamSpec::default()
        };
        let plan = StreamPlan::new(&spec, ByteCount::gib(100), 1).expect("it fits");
        let mut generator = RequestGenerator::new(Arc::new(plan), 1, 0, 0, 1);
        let name = format!("request {pattern} {}", if block.contains(':') { "mix" } else { "" });
        measure(&name, |_| _ = black_box(generator.draw()));
    }

    let latencies: Vec<Nanos> = (0..4096).map(|_| exponential.draw(&mut random)).collect();
    let latency = |n: u64| latencies[n as usize % latencies.len()];
    let mut tally = Tally::new();
    measure("record in tally", |n| tally.record(8192, latency(n)));
    let mut series = Series::new(Nanos::ZERO, Nanos::from_secs(1));
    measure("record in series", |n| series.record(IoKind::Read, 8192, latency(n), Nanos(n * 1000)));
    let mut batches = BatchMeans::new();
    measure("record in batch means", |n| batches.push(latency(n).0 as f64));
    black_box((tally, series.finish(Nanos::from_secs(3)), batches));

    measure_run("run, closed loop of 32", Arrival::queue_depth(32));
    measure_run("run, open loop", Arrival::OpenLoop(OpenLoop::at(200_000.0)));
}
