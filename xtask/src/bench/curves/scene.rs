//! The loads, and one run of each on an array of its own.

use std::rc::Rc;

use tier0_array::Volume;
use tier0_array::engine::Born;
use tier0_array::simulated::{Lanes, ModelShelf, SimulatedOptions, build};
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::{ByteCount, Nanos};
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{
    Arrival, BlockMix, ClosedLoop, LoadSpec, Pattern, RunLimits, StreamSpec, ThinkTime,
};
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, VirtualRuntime, World};

use super::Pair;
use crate::error::BenchError;

const VOLUME: ByteCount = ByteCount::gib(32);
const MEMORY: ByteCount = ByteCount::mib(64);
const FLASH: ByteCount = ByteCount::gib(1);
/// How many times a day the flash cache may be written over: as many bytes as 3 times a day are to a cache of 333 GiB. What is
/// shown is what caches do for disks, and four such disks usually have a cache of that size.
const WRITES_A_DAY: u32 = 1000;
/// How long one point of a curve is: thousands of requests, so that chance moves it by less than what is looked for.
const INTERVAL: Nanos = Nanos::from_secs(20);
/// Pieces of a scattered hot set.
const PIECE: ByteCount = ByteCount::mib(1);
/// Of the accesses, those that go to the hot set.
const HOT_PERCENT: f64 = 90.0;

/// How the hot set lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HotSet {
    /// At the start of the volume.
    Contiguous,
    /// In pieces over the volume.
    Scattered,
}

/// A load in phases.
pub(crate) struct Scene {
    name: &'static str,
    /// The hot set; 0 where all is as hot as all else.
    hot: ByteCount,
    /// How long the load runs from a cold start on, in seconds.
    warm_s: u64,
    /// How long nothing runs then.
    idle_s: u64,
    /// What comes then, for so long.
    then: Then,
    then_s: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Four times as many requests at once.
    Burst,
    /// The load, and a reader who goes through the whole volume.
    Scan,
    /// The load.
    Same,
}

pub(crate) const SCENES: [Scene; 4] = [
    Scene {
        name: "burst after idle",
        hot: ByteCount::mib(512),
        warm_s: 900,
        idle_s: 300,
        then: Then::Burst,
        then_s: 300,
    },
    Scene {
        name: "scan through a hot set",
        hot: ByteCount::mib(512),
        warm_s: 900,
        idle_s: 0,
        then: Then::Scan,
        then_s: 300,
    },
    Scene { name: "full cache", hot: ByteCount(0), warm_s: 1200, idle_s: 0, then: Then::Same, then_s: 300 },
    Scene {
        name: "hot set twice the cache",
        hot: ByteCount(2 * FLASH.0),
        warm_s: 1200,
        idle_s: 0,
        then: Then::Same,
        then_s: 300,
    },
];

/// Requests, or MiB of a scan, per second over seconds since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Curve {
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curve {
    pub(crate) fn sum(&self) -> f64 {
        self.points.iter().map(|point| point.1).sum()
    }

    /// Where there was something to do.
    pub(crate) fn mean(&self) -> f64 {
        let busy = self.points.iter().filter(|point| point.1 > 0.0).count();
        self.sum() / busy.max(1) as f64
    }

    /// Adds a run that began `at_s`; the last interval is left out where it is a shorter one.
    fn extend(
        &mut self,
        at_s: f64,
        report: &LoadReport,
        figure: impl Fn(&tier0_workload::stats::IntervalRow) -> f64,
    ) {
        let whole = report.intervals.iter().filter(|row| row.length_s >= INTERVAL.as_secs_f64() / 2.0);
        self.points.extend(whole.map(|row| (at_s + row.start_s, figure(row))));
    }
}

/// What of everything there is how much.
pub(crate) fn sizes() -> String {
    format!(
        "4 x nl-7k2 as RAID 10 with the log on an ssd-sata, in virtual time; a full volume of {VOLUME}; memory for clean pages \
         {MEMORY}, flash cache {FLASH} on the same SSD, written over {WRITES_A_DAY} times a day at most; 8 KiB, 80 % reads, 32 users who think for 10 ms, {HOT_PERCENT} % in the hot \
         set; intervals of {} s",
        INTERVAL.as_secs_f64()
    )
}

impl Scene {
    pub(crate) fn name(&self, hot: HotSet) -> String {
        match hot {
            _ if self.is_uniform() => self.name.to_owned(),
            HotSet::Contiguous => format!("{}, contiguous", self.name),
            HotSet::Scattered => format!("{}, scattered", self.name),
        }
    }

    pub(crate) fn is_uniform(&self) -> bool {
        self.hot.0 == 0
    }

    pub(crate) fn hot_sets(&self) -> &'static [HotSet] {
        if self.is_uniform() { &[HotSet::Contiguous] } else { &[HotSet::Contiguous, HotSet::Scattered] }
    }

    /// Runs it with caches and without.
    pub(crate) fn run(&self, hot: HotSet, is_short: bool) -> Result<Vec<Pair>, BenchError> {
        let divisor = if is_short { 10 } else { 1 };
        let (load, scan) = self.simulate(hot, true, divisor)?;
        let (load_alone, scan_alone) = self.simulate(hot, false, divisor)?;
        let pair = |of, with, without| Pair { name: self.name(hot), of, with, without };
        let mut pairs = vec![pair("requests", load, load_alone)];
        if self.then == Then::Scan {
            pairs.push(pair("MiB of the scan", scan, scan_alone));
        }
        Ok(pairs)
    }

    /// The curves of the load and of the scan.
    fn simulate(&self, hot: HotSet, is_cached: bool, divisor: u64) -> Result<(Curve, Curve), BenchError> {
        let failed = |error: String| BenchError::Failed(format!("{}: {error}", self.name));
        let description = describe(is_cached);
        let mut shelf = ModelShelf::default();
        shelf.prepare(&Catalog::embedded(), &description).map_err(|error| failed(error.to_string()))?;
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let options = SimulatedOptions {
            born: Born::Full,
            read_cache: is_cached.then_some(MEMORY),
            lanes: Lanes::PerGroup,
        };
        let building = build(&world, &description, &shelf, options, |_, drive| drive);
        let array = runtime.run(building).map_err(|error| failed(error.to_string()))?;
        let volume = Rc::new(array.volumes[0].clone());
        let seconds = |seconds: u64| Nanos::from_secs(seconds / divisor);
        let load = |outstanding: u32, time: u64, seed: u64| LoadSpec {
            seed,
            placement_seed: Some(1),
            ..phase(self.stream(hot, outstanding), seconds(time))
        };
        let (mut requests, mut scanned) = (Curve::default(), Curve::default());
        let run = |volume: &Rc<Volume>, load: LoadSpec| one(&world, volume, load).map_err(failed);
        let report = runtime.run(run(&volume, load(32, self.warm_s, 1))?);
        requests.extend(0.0, &report, |row| row.iops());
        let idle_until = world.now().saturating_add(seconds(self.idle_s));
        if self.idle_s > 0 {
            requests.points.extend([world.now(), idle_until].map(|at| (at.as_secs_f64(), 0.0)));
        }
        runtime.run({
            let world = world.clone();
            async move { world.sleep_until(idle_until).await }
        });
        let began = world.now().as_secs_f64();
        let outstanding = if self.then == Then::Burst { 128 } else { 32 };
        let then = run(&volume, load(outstanding, self.then_s, 2))?;
        if self.then == Then::Scan {
            let scan = run(&volume, phase(scan(), seconds(self.then_s)))?;
            let (report, scan) = runtime.run(futures_util::future::join(then, scan));
            requests.extend(began, &report, |row| row.iops());
            scanned.extend(began, &scan, |row| row.read.bytes as f64 / row.length_s / (1 << 20) as f64);
        } else {
            let report = runtime.run(then);
            requests.extend(began, &report, |row| row.iops());
        }
        Ok((requests, scanned))
    }

    fn stream(&self, hot: HotSet, outstanding: u32) -> StreamSpec {
        let pattern = match self.is_uniform() {
            true => Pattern::Random,
            false => Pattern::HotCold {
                access_percent: HOT_PERCENT,
                space_percent: self.hot.0 as f64 / VOLUME.0 as f64 * 100.0,
            },
        };
        StreamSpec {
            read_percent: 80.0,
            pattern,
            scatter: (hot == HotSet::Scattered).then_some(PIECE),
            // Hits take no virtual time: users who think keep the simulation from asking for ever more of them.
            arrival: Arrival::ClosedLoop(ClosedLoop {
                users: outstanding,
                think_time: ThinkTime::Exponential(Nanos::from_millis(10)),
                ..ClosedLoop::default()
            }),
            ..StreamSpec::default()
        }
    }
}

fn phase(stream: StreamSpec, time: Nanos) -> LoadSpec {
    LoadSpec {
        interval: Nanos(INTERVAL.0.min(time.0 / 4)),
        ..LoadSpec::single(stream, RunLimits::time(time))
    }
}

fn scan() -> StreamSpec {
    StreamSpec {
        name: "scan".to_owned(),
        block: BlockMix::single(ByteCount::kib(256)),
        read_percent: 100.0,
        pattern: Pattern::Sequential,
        arrival: Arrival::queue_depth(2),
        ..StreamSpec::default()
    }
}

fn one(
    world: &World,
    volume: &Rc<Volume>,
    load: LoadSpec,
) -> Result<impl Future<Output = LoadReport> + use<>, String> {
    Ok(LoadRun::new(world, volume.clone(), load).map_err(|error| error.to_string())?.run())
}

fn describe(is_cached: bool) -> Description {
    let flash = match is_cached {
        true => format!(
            "flash_cache = \"{FLASH}\"\nflash_cache_drives = [\"ssd\"]\nflash_cache_writes = {WRITES_A_DAY}\n"
        ),
        false => String::new(),
    };
    let text = format!(
        "[array]\nname = \"bench\"\n\
         [[drive]]\nname = \"d{{n}}\"\ncount = 4\nmodel = \"nl-7k2\"\n\
         [[drive]]\nname = \"ssd\"\nmodel = \"ssd-sata\"\n\
         [[pool]]\nname = \"pool0\"\ndrives = [\"d*\"]\nraid = \"raid10\"\nset_size = 4\nlog_drives = [\"ssd\"]\n{flash}\
         [[volume]]\nname = \"lun0\"\nsize = \"{VOLUME}\"\n"
    );
    Description::parse(&text, "the benchmark's array").expect("the benchmark's array is right")
}
