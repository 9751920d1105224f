//! The loads, and one run of each on an array of its own.

use std::rc::Rc;

use tier0_api::DriveClass;
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::{Lanes, ModelShelf, SimulatedArray, SimulatedOptions, build};
use tier0_catalog::Catalog;
use tier0_drive::guard::{Guard, Health, Patience};
use tier0_units::{ByteCount, Nanos};
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{Arrival, ClosedLoop, LoadSpec, Pattern, RunLimits, StreamSpec, ThinkTime};
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, VirtualRuntime};

use super::array::{FLASH, Flash, VOLUME};
use crate::clock::thread_s;
use crate::error::BenchError;

const INTERVAL: Nanos = Nanos::from_secs(10);
/// Pieces of a scattered hot set.
const PIECE: ByteCount = ByteCount::mib(4);
const HOT_PERCENT: f64 = 90.0;
const USERS: u32 = 64;
/// Where fewer extents have moved, nothing is said of the time in which they did.
const MOVED_MIN: u64 = 100;
/// How long the hot set has been elsewhere at the end.
const SHIFTED_S: u64 = 600;

/// Where accesses go.
#[derive(Clone, Copy, PartialEq)]
enum Heat {
    /// To a hot set of so many sixteenths of the flash, at the start of the volume or in pieces over it.
    HotSet { sixteenths: u64, is_scattered: bool },
    /// By a power law, in pieces over the volume.
    Zipf,
    /// Everywhere alike.
    Nowhere,
}

/// A load.
pub(super) struct Scene {
    pub(super) name: &'static str,
    heat: Heat,
    /// Before it is measured, seconds.
    warm_s: u64,
    measured_s: u64,
    /// The kinds of flash that are compared.
    pub(super) kinds: &'static [Flash],
    /// Whether the hot set moves when the load is warm.
    pub(super) is_shifted: bool,
}

pub(super) const SCENES: [Scene; 6] = [
    Scene {
        name: "hot set of 3/4 of the flash, scattered",
        heat: Heat::HotSet { sixteenths: 12, is_scattered: true },
        warm_s: 600,
        kinds: &Flash::ALL,
        measured_s: 180,
        is_shifted: false,
    },
    Scene {
        name: "hot set of 3/4 of the flash, contiguous",
        heat: Heat::HotSet { sixteenths: 12, is_scattered: false },
        warm_s: 600,
        kinds: &Flash::WITHOUT_BOTH,
        measured_s: 180,
        is_shifted: false,
    },
    Scene {
        name: "zipf 0.99",
        heat: Heat::Zipf,
        warm_s: 600,
        kinds: &Flash::ALL,
        measured_s: 180,
        is_shifted: false,
    },
    Scene {
        name: "hot set moved",
        heat: Heat::HotSet { sixteenths: 12, is_scattered: true },
        warm_s: 600,
        kinds: &Flash::WITHOUT_BOTH,
        measured_s: SHIFTED_S,
        is_shifted: true,
    },
    Scene {
        name: "hot set of 1.1 times the flash, scattered",
        heat: Heat::HotSet { sixteenths: 18, is_scattered: true },
        warm_s: 600,
        kinds: &Flash::NONE_AND_TIER,
        measured_s: 600,
        is_shifted: false,
    },
    Scene {
        name: "nothing hot",
        heat: Heat::Nowhere,
        warm_s: 60,
        measured_s: 300,
        kinds: &Flash::NONE_AND_TIER,
        is_shifted: false,
    },
];

/// What a run brought.
pub(super) struct Figures {
    pub(super) iops: f64,
    pub(super) mean_ms: f64,
    pub(super) p99_ms: f64,
    /// The 99th percentile of the time in which extents move where there is a tier.
    p99_moving_ms: f64,
    /// Of all reads of drives, while it was measured.
    pub(super) reads_on_flash: f64,
    /// The same of the last minute.
    pub(super) reads_on_flash_at_end: f64,
    /// Extents that were moved, from the start on.
    pub(super) moved: u64,
    /// What cache and tier have written to flash, from the start on.
    pub(super) flash_written_gib: f64,
    /// Of the whole simulation.
    pub(super) processor_s: f64,
    /// Seconds since the start, requests per second, and milliseconds.
    pub(super) points: Vec<(f64, f64, f64)>,
}

impl Figures {
    /// The 99th percentile while extents moved, by that of another run in the same time; `None` if few moved.
    pub(super) fn p99_while_moving_against(&self, alone: &Figures) -> Option<f64> {
        (self.moved > MOVED_MIN).then_some(self.p99_moving_ms / alone.p99_moving_ms)
    }

    /// The worst interval, by the mean of another one's run.
    pub(super) fn worst_against(&self, alone: &Figures) -> f64 {
        let pairs = self.points.iter().zip(&alone.points);
        pairs.map(|(own, other)| own.1 / other.1).fold(f64::INFINITY, f64::min)
    }
}

/// Reads of drives.
#[derive(Clone, Copy)]
struct Reads {
    disks: u64,
    flash: u64,
}

impl Reads {
    /// Those since the start.
    async fn of(engine: Engine) -> Reads {
        let mut all = Reads { disks: 0, flash: 0 };
        for drive in &engine.status().await.pools[0].drives {
            let sum = if drive.class == Some(DriveClass::Flash) { &mut all.flash } else { &mut all.disks };
            *sum += drive.io.read.count;
        }
        all
    }

    fn share_on_flash_since(self, earlier: Reads) -> f64 {
        let (disks, flash) = (self.disks - earlier.disks, self.flash - earlier.flash);
        flash as f64 / (disks + flash).max(1) as f64
    }
}

impl Scene {
    pub(super) fn is_cold(&self) -> bool {
        self.heat == Heat::Nowhere
    }

    /// Runs it.
    pub(super) fn simulate(&self, flash: Flash, is_short: bool) -> Result<Figures, BenchError> {
        let failed = |error: String| BenchError::Failed(format!("{}: {error}", self.name));
        let began = thread_s();
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let array = self.build(&runtime, flash).map_err(failed)?;
        let volume = Rc::new(array.volumes[0].clone());
        let divisor = if is_short { 4 } else { 1 };
        let seconds = |seconds: u64| seconds / divisor;
        let run = |time: u64, seed: u64, place: u64| -> Result<LoadReport, BenchError> {
            let load = LoadSpec {
                seed,
                placement_seed: Some(place),
                interval: INTERVAL,
                ..LoadSpec::single(self.stream(), RunLimits::time(Nanos::from_secs(time)))
            };
            let run =
                LoadRun::new(&world, volume.clone(), load).map_err(|error| failed(error.to_string()))?;
            Ok(runtime.run(run.run()))
        };
        let mut points = Vec::new();
        let warm = run(seconds(self.warm_s), 1, 1)?;
        add(&mut points, 0.0, &warm);
        let at = world.now().as_secs_f64();
        let place = if self.is_shifted { 2 } else { 1 };
        let before = runtime.run(Reads::of(array.engine.clone()));
        let last_s = 60.min(seconds(self.measured_s) / 2);
        let measured = run(seconds(self.measured_s) - last_s, 2, place)?;
        let at_last = runtime.run(Reads::of(array.engine.clone()));
        add(&mut points, at, &measured);
        let at_end = world.now().as_secs_f64();
        let last = run(last_s, 3, place)?;
        add(&mut points, at_end, &last);
        let after = runtime.run(Reads::of(array.engine.clone()));
        let status = runtime.run(status(array.engine.clone()));
        let all = &measured.all;
        let ms = |ns: f64| ns / 1e6;
        let (moved, flash_written) = status;
        let while_moving = if self.is_shifted { &measured } else { &warm };
        Ok(Figures {
            iops: all.iops,
            mean_ms: ms(all.latency_ns_mean),
            p99_ms: ms(all.latency_ns_p99 as f64),
            p99_moving_ms: ms(while_moving.all.latency_ns_p99 as f64),
            reads_on_flash: after.share_on_flash_since(before),
            reads_on_flash_at_end: after.share_on_flash_since(at_last),
            moved,
            flash_written_gib: flash_written as f64 / (1u64 << 30) as f64,
            processor_s: thread_s() - began,
            points,
        })
    }

    fn build(&self, runtime: &VirtualRuntime, flash: Flash) -> Result<SimulatedArray, String> {
        let make = |other: Option<ByteCount>| {
            let description = flash.describe(other);
            let mut shelf = ModelShelf::default();
            shelf.prepare(&Catalog::embedded(), &description).map_err(|error| error.to_string())?;
            let options = SimulatedOptions { born: Born::Full, read_cache: None, lanes: Lanes::PerGroup };
            let guarded = |_, drive| Guard::new(drive, Patience::default(), Health::new()).handle();
            runtime
                .run(build(runtime.world(), &description, &shelf, options, guarded))
                .map_err(|error| error.to_string())
        };
        // How large the flash group is, is known when it is there.
        let whole = make(None)?;
        let usable = runtime.run({
            let engine = whole.engine.clone();
            async move { engine.status().await.pools[0].groups[1].usable_bytes }
        });
        make(Some(ByteCount(usable - flash.tier_bytes().0)))
    }

    fn stream(&self) -> StreamSpec {
        let (pattern, scatter) = match self.heat {
            Heat::HotSet { sixteenths, is_scattered } => {
                let space_percent = (FLASH.0 / 16 * sixteenths) as f64 / VOLUME.0 as f64 * 100.0;
                let pattern = Pattern::HotCold { access_percent: HOT_PERCENT, space_percent };
                (pattern, is_scattered.then_some(PIECE))
            }
            Heat::Zipf => (Pattern::Zipf { theta: 0.99 }, None),
            Heat::Nowhere => (Pattern::Random, None),
        };
        StreamSpec {
            read_percent: 70.0,
            pattern,
            scatter,
            arrival: Arrival::ClosedLoop(ClosedLoop {
                users: USERS,
                think_time: ThinkTime::Exponential(Nanos::from_millis(20)),
                ..ClosedLoop::default()
            }),
            ..StreamSpec::default()
        }
    }
}

/// Extents that have moved, and bytes that cache and tier have written to flash.
async fn status(engine: Engine) -> (u64, u64) {
    let status = engine.status().await;
    let pool = &status.pools[0];
    let moves = pool.tier.as_ref().map(|tier| tier.moves).unwrap_or_default();
    let cached = pool.flash_cache.as_ref().map_or(0, |cache| cache.written_bytes);
    let all = moves.promoted + moves.demoted + moves.placed;
    let bytes_each = moves.bytes.checked_div(all).unwrap_or_default();
    let promoted_bytes = bytes_each * (moves.promoted + moves.placed);
    (all, cached + promoted_bytes)
}

fn add(points: &mut Vec<(f64, f64, f64)>, at_s: f64, report: &LoadReport) {
    let whole = report.intervals.iter().filter(|row| row.length_s >= INTERVAL.as_secs_f64() / 2.0);
    points.extend(
        whole.map(|row| (at_s + row.start_s, row.iops(), row.latency_ns_mean().unwrap_or_default() / 1e6)),
    );
}
