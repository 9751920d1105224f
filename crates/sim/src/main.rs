//! `cargo xtask sim`: the fault simulator on the array, from the command line.
//!
//! Prints a failing seed as one sentence and one command; ends with exit code 1 if there is one.

mod planted;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use tier0_sim::crash_points::{Script, Theme};
use tier0_sim::sweep::{SweepReport, catching, sweep};
use tier0_sim::{Array, Failure, RunReport, SimConfig, System, run};

use planted::with_bug;

/// Breaks the array in every way it must survive, in virtual time
#[derive(Parser)]
#[command(name = "cargo xtask sim")]
struct Options {
    /// Run this seed alone and tell what happened
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds to run
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Let pools grow, and volumes come and go
    #[arg(long)]
    growing: bool,
    /// Let volumes be cloned, and the clones be written to and deleted
    #[arg(long, conflicts_with_all = ["incidents", "ordeals"])]
    clones: bool,
    /// Let caches of volumes and of the pool be switched
    #[arg(long, conflicts_with = "crash_points")]
    caches: bool,
    /// Give the pool a flash read cache
    #[arg(long)]
    flash: bool,
    /// Let drives forget what they stored, 128 KiB at once
    #[arg(long, conflicts_with = "crash_points")]
    forgetful: bool,
    /// Let drives fail, hang and lose power for a while, beyond redundancy too, and try starts that must be refused
    #[arg(long, conflicts_with = "crash_points")]
    mishaps: bool,
    /// As --mishaps, and let drives be pulled and taken back, be put back to older images, and the process stand still
    #[arg(long, conflicts_with = "crash_points")]
    incidents: bool,
    /// As --mishaps, and let the power fail while the array is created, a drive lie about its flushes, operators be
    /// interrupted, and lost drives be believed again
    #[arg(long, conflicts_with_all = ["crash_points", "incidents"])]
    ordeals: bool,
    /// Give the pool a second group of sets
    #[arg(long, conflicts_with_all = ["crash_points", "planted"])]
    groups: bool,
    /// Let all users come through NBD over a network whose connections die; one seed of eight does so anyway
    #[arg(long, conflicts_with = "crash_points")]
    network: bool,
    /// Crash scripts at every write, discard and flush in turn: one for each level, write cache and loss of a drive (with
    /// --growing, --clones or --flash, of six seeds), or that of --seed or --script alone
    #[arg(long)]
    crash_points: bool,
    /// The script to crash, by its number
    #[arg(long, requires = "crash_points", conflicts_with = "seed")]
    script: Option<u64>,
    /// Crash the script at this point alone
    #[arg(long, requires = "crash_points")]
    point: Option<u64>,
    /// Crash at every so many-th point only
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Stop after so many failures
    #[arg(long, default_value_t = 5)]
    failures: usize,
    /// Threads; as many as the machine has cores where none are given
    #[arg(long)]
    threads: Option<usize>,
    /// Plant this bug, which the simulator must find; without a name, look for the first seed that finds each of them
    #[arg(long, value_name = "BUG", num_args = 0..=1, default_missing_value = planted::ALL)]
    planted: Option<String>,
    /// Print what the array logs, as RUST_LOG would have it, for instance "info"
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(filter) = &options.log {
        // Without the wall clock's time: a seed's log is always the same.
        tracing_subscriber::fmt().with_env_filter(filter).without_time().with_ansi(false).init();
    }
    if let Some(bug) = &options.planted
        && let Err(reason) = planted::check(bug)
    {
        eprintln!("xtask: {reason}");
        return ExitCode::FAILURE;
    }
    let failed = match (options.crash_points, options.seed) {
        (false, None) if options.planted.as_deref() == Some(planted::ALL) => {
            planted::search(&seeds(&options), threads(&options))
        }
        (false, Some(seed)) => one(&options, seed),
        (false, None) => many(&options),
        (true, _) => every_point(&options),
    };
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs what a seed stands for, with the planted bug if there is one.
fn run_seed(options: &Options, seed: u64) -> Result<RunReport, Box<Failure>> {
    let run = || run(&Array, &config_of(options, seed));
    let result = catching(seed, || with_bug(options.planted.as_deref(), run));
    result.map_err(|failure| with_replay(options, failure))
}

/// What a seed stands for.
fn config_of(options: &Options, seed: u64) -> SimConfig {
    let config = SimConfig::draw(seed, &Array);
    let config = if options.groups { config.grouped(&Array) } else { config };
    let config = if options.flash { config.flash_cached(&Array) } else { config };
    let config = if options.growing { config.growing() } else { config };
    let config = if options.clones { config.cloned() } else { config };
    let config = if options.caches { config.switching() } else { config };
    let config = match () {
        () if options.ordeals => config.ordeals(),
        () if options.incidents => config.incidents(),
        () if options.mishaps => config.mishaps(),
        () => config,
    };
    let config = if options.forgetful { config.forgetful() } else { config };
    if options.network || SimConfig::draws_network(seed) { config.networked() } else { config }
}

fn with_replay(options: &Options, mut failure: Box<Failure>) -> Box<Failure> {
    if options.groups {
        failure.replay.push_str(" --groups");
    }
    if options.flash {
        failure.replay.push_str(" --flash");
    }
    if options.growing {
        failure.replay.push_str(" --growing");
    }
    if options.clones {
        failure.replay.push_str(" --clones");
    }
    if options.caches {
        failure.replay.push_str(" --caches");
    }
    match () {
        () if options.ordeals => failure.replay.push_str(" --ordeals"),
        () if options.incidents => failure.replay.push_str(" --incidents"),
        () if options.mishaps => failure.replay.push_str(" --mishaps"),
        () => {}
    }
    if options.forgetful {
        failure.replay.push_str(" --forgetful");
    }
    if options.network {
        failure.replay.push_str(" --network");
    }
    failure
}

fn one(options: &Options, seed: u64) -> bool {
    println!("{}", config_of(options, seed).describe());
    report_one(run_seed(options, seed))
}

/// Tells everything about one run; true if it failed.
fn report_one(result: Result<RunReport, Box<Failure>>) -> bool {
    match result {
        Ok(report) => {
            report.events.iter().for_each(|event| println!("{event}"));
            print!("{}", report.coverage);
            println!("clean, event hash {:016x}", report.hash);
            false
        }
        Err(failure) => {
            failure.events.iter().for_each(|event| println!("{event}"));
            println!("{failure}");
            true
        }
    }
}

fn many(options: &Options) -> bool {
    let clock = Clock::start(options.seeds);
    let report = sweep(
        seeds(options),
        threads(options),
        options.failures,
        |seed| {
            // At once, because a user who stops a long sweep wants to know what it has found.
            let result = catching(seed, || run_seed(options, seed));
            result.inspect_err(|_| eprintln!("seed {seed} fails"))
        },
        |_| clock.tick(),
    );
    finish(&report, &clock, "seeds")
}

/// Scripts of growing pools, of clones, or with a flash cache, that are crashed at every point where no seed is given.
const SEED_SCRIPTS: u64 = 6;

/// The scripts that the options name, each with what it is about.
fn scripts(options: &Options) -> Vec<(String, Result<Script, Box<Failure>>)> {
    let bug = options.planted.as_deref();
    let of_seed = |seed: u64| {
        let script = match () {
            () if options.growing => Script::growing,
            () if options.clones => Script::cloned,
            () if options.flash => Script::flash_cached,
            () => Script::of_seed,
        };
        (format!("of seed {seed}"), with_bug(bug, || script(&Array, seed)))
    };
    match options.seed {
        Some(seed) => return vec![of_seed(seed)],
        None if options.growing || options.clones || options.flash => {
            return (0..SEED_SCRIPTS).map(of_seed).collect();
        }
        None => {}
    }
    let themes = (0..).zip(Theme::all(&Array.abilities()));
    let wanted = themes.filter(|(number, _)| options.script.is_none_or(|script| script == *number));
    let script = |number, theme: &Theme| with_bug(bug, || Script::of_theme(&Array, number, theme));
    wanted
        .map(|(number, theme)| (format!("{number}, {}", theme.describe()), script(number, &theme)))
        .collect()
}

fn every_point(options: &Options) -> bool {
    let mut failed = false;
    for (about, script) in scripts(options) {
        let script = match script {
            Ok(script) => script,
            Err(failure) => {
                println!("script {about}: {failure}");
                failed = true;
                continue;
            }
        };
        println!("script {about}: {} changes of drives, {} crash points", script.changes, script.points());
        let crash = |point| {
            let crashed = with_bug(options.planted.as_deref(), || script.crash(&Array, point));
            crashed.map_err(|failure| with_replay(options, failure))
        };
        if let Some(point) = options.point {
            return report_one(crash(point));
        }
        let points = script.points().div_ceil(options.every);
        let clock = Clock::start(points);
        let crash = |number| crash(number * options.every);
        let report = sweep(0..points, threads(options), options.failures, crash, |_| clock.tick());
        failed |= finish(&report, &clock, "crash points");
    }
    failed
}

/// Tells how a sweep went; true if something failed.
fn finish(report: &SweepReport, clock: &Clock, what: &str) -> bool {
    let minutes = clock.begun.elapsed().as_secs_f64() / 60.0;
    clock.clear();
    for failure in &report.failures {
        println!("{failure}");
    }
    println!(
        "{} {what}, {} failed, {:.0} a minute; reached:",
        report.runs,
        report.failures.len(),
        report.runs as f64 / minutes
    );
    print!("{}", report.coverage);
    !report.failures.is_empty()
}

fn seeds(options: &Options) -> std::ops::Range<u64> {
    options.from..options.from + options.seeds
}

fn threads(options: &Options) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    options.threads.unwrap_or_else(cores).max(1)
}

/// A line about the progress, where a terminal shows it.
struct Clock {
    begun: Instant,
    total: u64,
    done: AtomicU64,
    shown_s: AtomicU64,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "runs per minute are counted on the wall's clock")]
    fn start(total: u64) -> Clock {
        Clock { begun: Instant::now(), total, done: AtomicU64::new(0), shown_s: AtomicU64::new(0) }
    }

    fn tick(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let elapsed = self.begun.elapsed();
        if std::io::stderr().is_terminal()
            && self.shown_s.swap(elapsed.as_secs(), Ordering::Relaxed) != elapsed.as_secs()
        {
            let left = elapsed.mul_f64((self.total - done) as f64 / done as f64);
            eprint!("\r{done} of {}, about {} s left   ", self.total, left.max(Duration::ZERO).as_secs());
        }
    }

    fn clear(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r{:60}\r", "");
            // It does not matter whether a progress line could be wiped.
            let _ = std::io::stderr().flush();
        }
    }
}
