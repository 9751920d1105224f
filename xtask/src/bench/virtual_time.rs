//! `cargo xtask bench virtual`: host I/Os that one core simulates per second, from the load generator through volume,
//! write log, destaging, RAID and drive model. The volumes are full. There are no checksums, as in the arrays of studies:
//! the tables of volumes of this size do not fit into memory, and would be most of what is simulated.
//!
//! The figure is per second of this thread's processor time, so that what else runs on the machine counts little.

use std::rc::Rc;

use clap::Args;
use tier0_array::engine::Born;
use tier0_array::simulated::{ModelShelf, build};
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::Nanos;
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{Arrival, LoadSpec, RunLimits, StreamSpec};
use tier0_world::{PayloadWidth, VirtualRuntime};

use super::{judge_at_least, table};
use crate::error::BenchError;
use crate::spread::Spread;
use crate::{clock, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Host I/Os per round with flash; disks take a fifth of it
    #[arg(long, default_value_t = 2_000_000)]
    ios: u64,
}

/// An array and a load.
struct Case {
    name: &'static str,
    model: &'static str,
    drives: u32,
    /// The write cache that the log lies on, as in the arrays of studies.
    cache: &'static str,
    raid: &'static str,
    volume: &'static str,
    read_percent: f64,
    queue_depth: u32,
    /// Simulated I/Os per second aimed at, where the case has an aim.
    aim: Option<f64>,
    ios_divisor: u64,
}

/// Flash at a depth that keeps its dies busy; disks at 16 requests each, so that they have something to reorder.
const CASES: [Case; 5] = [
    Case { name: "flash, RAID 10, reads", read_percent: 100.0, ..FLASH },
    Case { aim: Some(3e5), ..FLASH },
    Case { name: "flash, RAID 5, 70 % reads", raid: "raid5", aim: None, ..FLASH },
    Case { name: "disks, RAID 10, reads", read_percent: 100.0, ..DISKS },
    DISKS,
];

const FLASH: Case = Case {
    name: "flash, RAID 10, 70 % reads",
    model: "nvme",
    drives: 8,
    cache: "3par7450-write-cache",
    raid: "raid10",
    volume: "4TiB",
    read_percent: 70.0,
    queue_depth: 64,
    aim: Some(1e6),
    ios_divisor: 1,
};

const DISKS: Case = Case {
    name: "disks, RAID 10, 70 % reads",
    model: "sas-15k-146gb-sff",
    drives: 24,
    cache: "ps6100xv-write-cache",
    raid: "raid10",
    volume: "1TiB",
    read_percent: 70.0,
    queue_depth: 24 * 16,
    aim: Some(3e5),
    ios_divisor: 5,
};

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    println!("{}", machine::describe());
    println!("8 KiB random host I/Os simulated per second of one core, {} rounds", options.rounds);
    let mut table = table(&["", "host I/Os per s", "events per I/O", "simulated IOPS", "aimed at"]);
    for case in &CASES {
        let description = case.describe();
        let mut shelf = ModelShelf::default();
        let prepared = shelf.prepare(&Catalog::embedded(), &description);
        prepared.map_err(|error| BenchError::Failed(error.to_string()))?;
        let rounds = (1..=u64::from(options.rounds))
            .map(|seed| case.simulate(&description, &shelf, seed, options.ios / case.ios_divisor))
            .collect::<Result<Vec<_>, _>>()?;
        let speed = Spread::of(rounds.iter().map(|round| round.ios_per_s));
        let aim = match case.aim {
            Some(aim) => format!(">= {aim:.0}: {}", judge_at_least(speed.median(), aim)),
            None => String::new(),
        };
        table.add_row([
            case.name.to_owned(),
            format!("{speed:.0}"),
            format!("{:.2}", Spread::of(rounds.iter().map(|round| round.events_per_io)).median()),
            format!("{:.0}", Spread::of(rounds.iter().map(|round| round.simulated_iops)).median()),
            aim,
        ]);
    }
    println!("\nmedian (least to greatest) of the rounds\n{}", table.trim_fmt());
    Ok(())
}

/// One simulation.
struct Round {
    ios_per_s: f64,
    events_per_io: f64,
    simulated_iops: f64,
}

impl Case {
    fn describe(&self) -> Description {
        let Case { model, drives, cache, raid, volume, .. } = self;
        let text = format!(
            "[array]\nname = \"bench\"\n[[drive]]\nname = \"d{{n}}\"\ncount = {drives}\nmodel = \"{model}\"\n\
             [[drive]]\nname = \"cache\"\nmodel = \"{cache}\"\n\
             [[pool]]\nname = \"pool0\"\nraid = \"{raid}\"\nset_size = 4\nstripe_unit = \"64KiB\"\n\
             checksums = false\nlog = \"1GiB\"\nlog_drives = [\"cache\"]\n\
             [[volume]]\nname = \"lun0\"\nsize = \"{volume}\"\n"
        );
        Description::parse(&text, "the benchmark's array").expect("the benchmark's array is right")
    }

    fn load(&self, seed: u64, ios: u64) -> LoadSpec {
        let stream = StreamSpec {
            read_percent: self.read_percent,
            arrival: Arrival::queue_depth(self.queue_depth),
            ..StreamSpec::default()
        };
        LoadSpec { seed, interval: Nanos::from_secs(60), ..LoadSpec::single(stream, RunLimits::ios(ios)) }
    }

    fn simulate(
        &self,
        description: &Description,
        shelf: &ModelShelf,
        seed: u64,
        ios: u64,
    ) -> Result<Round, BenchError> {
        let failed = |error: String| BenchError::Failed(format!("{}: {error}", self.name));
        let runtime = VirtualRuntime::new(seed, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let building = build(&world, description, shelf, Born::Full, |_, drive| drive);
        let array = runtime.run(building).map_err(|e| failed(e.to_string()))?;
        let volume = Rc::new(array.volumes[0].clone());
        let run = LoadRun::new(&world, volume, self.load(seed, ios)).map_err(|e| failed(e.to_string()))?;
        let began = clock::thread_s();
        let report = runtime.run(run.run());
        let took = clock::thread_s() - began;
        if !report.is_clean() {
            return Err(failed(format!("the run ended by {:?}", report.ended_by)));
        }
        let ios = report.all.ios as f64;
        Ok(Round {
            ios_per_s: ios / took,
            events_per_io: world.event_count() as f64 / ios,
            simulated_iops: report.all.iops,
        })
    }
}
