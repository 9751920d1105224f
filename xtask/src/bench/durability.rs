//! `cargo xtask bench durability`: what it costs that nothing acknowledged is lost. Random writes of 8 KiB at queue depth
//! 32: through NBD to a mirror of two files with the durable log, and by two jobs of fio at once, each to a file of its
//! own with O_DSYNC, which is what a mirror without anything else would have to do.
//!
//! Two figures: bursts that fit the log, with time to destage between them, which is what a log is for; and without end,
//! where every page is written to the log and to its place, on the same drives, and so twice as much in all.

use std::path::PathBuf;

use clap::Args;

use super::served::{OnFiles, Served, Tables};
use super::{judge_at_least, table, through_nbd};
use crate::error::{BenchError, need};
use crate::spread::Spread;
use crate::{clock, fio, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    files: OnFiles,
    /// Seconds of each run without end
    #[arg(long, default_value_t = 5)]
    seconds: u32,
}

/// The share of the raw writes that is aimed at.
const RATIO_LEAST: f64 = 0.8;
/// A fifth of the memory for dirty pages, so that a burst ends before destaging has to begin.
const BURST_MIB: u32 = 48;
const VOLUME_MIB: u32 = 1024;
/// Longest wait for the log to be destaged; pages age for 10 s before it begins.
const DESTAGE_WAIT_S: f64 = 60.0;

struct Round {
    raw: fio::Outcome,
    tier0: fio::Outcome,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    let pool = "raid = \"raid1\"\nlog = \"1GiB\"";
    let volume = format!("size = \"{VOLUME_MIB}MiB\"");
    let array = Served::create(
        options.files.place.dir.as_deref(),
        (2, 3 * VOLUME_MIB),
        Tables { pool, volume: &volume, ..Tables::default() },
    )?;
    let server = array.serve()?;
    let through_nbd = through_nbd::target(&server, VOLUME_MIB);
    let raw_files: Vec<PathBuf> = ["raw0", "raw1"].map(|name| array.path(name)).into();
    let mut fill = fio::fill();
    for file in &raw_files {
        let mut fill = fill.clone();
        fill.extend([
            "--direct=1".into(),
            format!("--filename={}", file.display()),
            format!("--size={VOLUME_MIB}m"),
        ]);
        fio::run(&fill)?;
    }
    fill.extend(through_nbd.clone());
    fio::run(&fill)?;

    println!("{}", machine::describe());
    println!(
        "8 KiB random writes, queue depth 32, {VOLUME_MIB} MiB, {} rounds, in turn",
        options.files.rounds
    );
    let raw = |limit: &[String]| {
        let jobs = raw_files.iter().map(|file| {
            let mut arguments = writes(limit);
            arguments.extend(["--ioengine=io_uring", "--direct=1", "--sync=dsync"].map(Into::into));
            arguments.extend([format!("--filename={}", file.display()), format!("--size={VOLUME_MIB}m")]);
            arguments
        });
        // A write to a mirror is done when both files have it.
        let outcomes = fio::run_together(&jobs.collect::<Vec<_>>())?;
        let slowest = outcomes.into_iter().min_by(|a, b| a.iops.total_cmp(&b.iops));
        Ok::<_, BenchError>(slowest.expect("there are two jobs"))
    };
    let tier0 = |limit: &[String]| {
        let mut arguments = writes(limit);
        arguments.extend_from_slice(&through_nbd);
        fio::run(&arguments)
    };
    let burst = [format!("--io_size={BURST_MIB}m")];
    let endless = ["--time_based".to_owned(), format!("--runtime={}", options.seconds)];
    let (mut bursts, mut endlesses) = (Vec::new(), Vec::new());
    for _ in 0..options.files.rounds {
        wait_destaged(&array)?;
        bursts.push(Round { raw: raw(&burst)?, tier0: tier0(&burst)? });
        wait_destaged(&array)?;
        endlesses.push(Round { raw: raw(&endless)?, tier0: tier0(&endless)? });
    }
    report(&format!("bursts of {BURST_MIB} MiB, which the log takes"), &bursts);
    report(&format!("{} s without a pause, destaging included", options.seconds), &endlesses);
    Ok(())
}

fn writes(limit: &[String]) -> Vec<String> {
    let mut arguments = fio::random_writes_8k(32);
    arguments.extend_from_slice(limit);
    arguments
}

fn wait_destaged(array: &Served) -> Result<(), BenchError> {
    let until = clock::wall_s() + DESTAGE_WAIT_S;
    loop {
        let status = array.status()?;
        if status["pools"][0]["log"]["dirty_bytes"].as_u64() == Some(0) {
            return Ok(());
        }
        if clock::wall_s() > until {
            return Err(BenchError::Failed(format!("the log is not destaged after {DESTAGE_WAIT_S} s")));
        }
        clock::pause(std::time::Duration::from_millis(500));
    }
}

fn report(what: &str, rounds: &[Round]) {
    let mut table = table(&["", "IOPS", "p50 us", "p99 us"]);
    for (name, outcome) in [
        ("fio, two files", (|round| &round.raw) as fn(&Round) -> &fio::Outcome),
        ("tier0 through NBD", |round| &round.tier0),
    ] {
        let spread =
            |figure: fn(&fio::Outcome) -> f64| Spread::of(rounds.iter().map(|round| figure(outcome(round))));
        table.add_row([
            name.to_owned(),
            format!("{:.0}", spread(|run| run.iops)),
            format!("{:.0}", spread(|run| run.p50_us)),
            format!("{:.0}", spread(|run| run.p99_us)),
        ]);
    }
    println!("\n{what}: median (least to greatest) of the rounds\n{}", table.trim_fmt());
    let ratio = Spread::of(rounds.iter().map(|round| round.tier0.iops / round.raw.iops));
    println!("tier0 / fio: {ratio:.2} x the IOPS, round by round");
    println!("  aimed at: >= {RATIO_LEAST} x: {}", judge_at_least(ratio.median(), RATIO_LEAST));
}
