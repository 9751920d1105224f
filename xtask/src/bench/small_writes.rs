//! `cargo xtask bench small-writes`: what the log is worth for small writes. Bursts of random writes of 8 KiB to modelled
//! 10k disks in RAID 6, in virtual time: with the durable log on two modelled flash drives, and straight to the disks.

use std::rc::Rc;

use clap::Args;
use tier0_array::engine::Born;
use tier0_array::simulated::{ModelShelf, build};
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::Nanos;
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{Arrival, LoadSpec, RunLimits, StreamSpec};
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, VirtualRuntime};

use super::{judge_at_least, table};
use crate::error::BenchError;
use crate::machine;
use crate::spread::Spread;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds, each with another seed
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Writes of a burst
    #[arg(long, default_value_t = 4096)]
    writes: u64,
    /// Requests outstanding
    #[arg(long, default_value_t = 32)]
    queue_depth: u32,
}

/// The gain that is aimed at.
const GAIN_LEAST: f64 = 10.0;
const DISKS: u32 = 10;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    println!("{}", machine::describe());
    println!(
        "bursts of {} random writes of 8 KiB at queue depth {} to {DISKS} disks (sas-10k-900gb-sff) in RAID 6, the log on 2 \
         flash drives (ssd-sas-400gb); virtual time, {} seeds",
        options.writes, options.queue_depth, options.rounds
    );
    let mut gains = Vec::new();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for seed in 1..=options.rounds {
        let pair = [burst(options, seed, true)?, burst(options, seed, false)?];
        gains.push(pair[0].all.iops / pair[1].all.iops);
        let [first, second] = pair;
        with.push(first);
        without.push(second);
    }
    let mut table = table(&["", "IOPS", "p50 us", "p99 us"]);
    for (name, runs) in [("durable log", &with), ("straight to the disks", &without)] {
        let spread = |figure: fn(&LoadReport) -> f64| Spread::of(runs.iter().map(figure));
        table.add_row([
            name.to_owned(),
            format!("{:.0}", spread(|run| run.all.iops)),
            format!("{:.0}", spread(|run| run.all.latency_ns_p50 as f64 / 1e3)),
            format!("{:.0}", spread(|run| run.all.latency_ns_p99 as f64 / 1e3)),
        ]);
    }
    println!("\nmedian (least to greatest) of the rounds\n{}", table.trim_fmt());
    let gain = Spread::of(gains);
    println!("gain: {gain:.1} x the IOPS, round by round");
    println!("  aimed at: >= {GAIN_LEAST} x: {}", judge_at_least(gain.median(), GAIN_LEAST));
    Ok(())
}

fn describe(with_log: bool) -> Description {
    let (flash, log) = match with_log {
        true => (
            "[[drive]]\nname = \"flash{n}\"\ncount = 2\nmodel = \"ssd-sas-400gb\"\n",
            "log_drives = [\"flash*\"]\nlog = \"1GiB\"\n",
        ),
        false => ("", ""),
    };
    let text = format!(
        "[array]\nname = \"bench\"\n[[drive]]\nname = \"disk{{n}}\"\ncount = {DISKS}\nmodel = \"sas-10k-900gb-sff\"\n\
         {flash}[[pool]]\nname = \"pool0\"\ndrives = [\"disk*\"]\nraid = \"raid6\"\nset_size = {DISKS}\n{log}\
         [[volume]]\nname = \"lun0\"\nsize = \"512GiB\"\n"
    );
    let mut description =
        Description::parse(&text, "the benchmark's array").expect("the benchmark's array is right");
    for pool in &mut description.pools {
        (pool.log, pool.checksums) = (with_log, with_log);
    }
    description
}

fn burst(options: &Options, seed: u64, with_log: bool) -> Result<LoadReport, BenchError> {
    let failed = |error: String| BenchError::Failed(error);
    let description = describe(with_log);
    let mut shelf = ModelShelf::default();
    shelf.prepare(&Catalog::embedded(), &description).map_err(|error| failed(error.to_string()))?;
    let runtime = VirtualRuntime::new(seed, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let stream = StreamSpec {
        read_percent: 0.0,
        arrival: Arrival::queue_depth(options.queue_depth),
        ..StreamSpec::default()
    };
    let limits = RunLimits::ios(options.writes);
    let load = LoadSpec { seed, interval: Nanos::from_secs(60), ..LoadSpec::single(stream, limits) };
    let report = runtime.run(async move {
        let array = build(&world, &description, &shelf, Born::Full, |_, drive| drive).await;
        let volume = array.map_err(|error| error.to_string())?.volumes.remove(0);
        let run = LoadRun::new(&world, Rc::new(volume), load).map_err(|error| error.to_string())?;
        Ok(run.run().await)
    });
    let report = report.map_err(failed)?;
    if !report.is_clean() {
        return Err(BenchError::Failed(format!("a run ended by {:?}", report.ended_by)));
    }
    Ok(report)
}
