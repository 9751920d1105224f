//! The loads, and one run of each on an array of its own.

use std::rc::Rc;

use tier0_api::{AdminReply, AdminRequest};
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::{Lanes, ModelShelf, SimulatedArray, SimulatedOptions, build};
use tier0_catalog::Catalog;
use tier0_drive::guard::{Guard, Health, Patience};
use tier0_units::{ByteCount, Nanos};
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{Arrival, ClosedLoop, LoadSpec, Pattern, RunLimits, StreamSpec, ThinkTime};
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, VirtualRuntime, World};

use super::array::{FLASH, Flash, VOLUME, VOLUME_NAME};
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
        kinds: &Flash::COLD,
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
    /// The share of the host's reads that flash answered, as a cache or as a tier, in each minute of the measurement.
    pub(super) hits_by_minute: Vec<f64>,
    /// The same of all of it.
    pub(super) hits: f64,
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

/// The host's reads.
#[derive(Clone, Copy)]
struct Reads {
    all: u64,
    /// Those that flash answered.
    flash: u64,
}

impl Reads {
    /// Those since the start.
    async fn of(engine: &Engine) -> Reads {
        let report = engine.io_report().await;
        let pool = &report.pools[0];
        let volumes = pool.volumes.iter().filter(|volume| volume.name == VOLUME_NAME);
        let cached = pool.flash_cache.map_or(0, |cache| cache.hits);
        let tiered = pool.tier.as_ref().map_or(0, |tier| tier.reads_fast);
        Reads { all: volumes.map(|volume| volume.io.read.count).sum(), flash: cached + tiered }
    }

    fn hits_since(self, earlier: Reads) -> f64 {
        (self.flash - earlier.flash) as f64 / (self.all - earlier.all).max(1) as f64
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
        if flash == Flash::TierOff {
            runtime.run(switch_off(array.engine.clone())).map_err(failed)?;
        }
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
        let minutes = world.spawn(by_minute(world.clone(), array.engine.clone(), seconds(self.measured_s)));
        let measured = run(seconds(self.measured_s), 2, place)?;
        add(&mut points, at, &measured);
        let looks = runtime.run(minutes);
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
            hits_by_minute: looks.windows(2).map(|pair| pair[1].hits_since(pair[0])).collect(),
            hits: looks[looks.len() - 1].hits_since(looks[0]),
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

/// Has a tier count, and move nothing.
async fn switch_off(engine: Engine) -> Result<(), String> {
    match engine.administer(AdminRequest::PoolTier { pool: None, on: Some(false), rate: None }).await {
        AdminReply::Done(_) => Ok(()),
        other => Err(format!("the tier cannot be switched off: {other:?}")),
    }
}

/// The reads at the beginning of each minute of so many seconds, and at their end.
async fn by_minute(world: World, engine: Engine, seconds: u64) -> Vec<Reads> {
    let mut looks = vec![Reads::of(&engine).await];
    let mut left = seconds;
    while left > 0 {
        let step = left.min(60);
        world.sleep(Nanos::from_secs(step)).await;
        looks.push(Reads::of(&engine).await);
        left -= step;
    }
    looks
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
