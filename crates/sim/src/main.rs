//! `cargo xtask sim`: the fault simulator on the array, from the command line.
//!
//! Prints a failing seed as one sentence and one command; ends with exit code 1 if there is one.

mod kinds;
mod planted;

use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use tier0_sim::crash_points::{Script, Theme};
use tier0_sim::sweep::{SweepReport, run_caught, sweep};
use tier0_sim::{Array, Failure, Mixture, RunReport, SimConfig, System};

use kinds::Kinds;
use planted::with_bug;

/// Breaks the array in every way it must survive, in virtual time
#[derive(Parser)]
#[command(name = "cargo xtask sim")]
struct Options {
    /// Run this seed alone and tell what happened
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds to run, or which: "100..200"
    #[arg(long, default_value = "1000", value_parser = parse_seeds)]
    seeds: SeedRange,
    /// The first of them, where --seeds says how many
    #[arg(long)]
    from: Option<u64>,
    #[command(flatten)]
    kinds: Kinds,
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
    if matches!(options.seeds, SeedRange::Of(_)) && options.from.is_some() {
        eprintln!("xtask: --from goes with a number of seeds; --seeds names the first of a range itself");
        return ExitCode::FAILURE;
    }
    if let Some(bug) = &options.planted
        && let Err(reason) = planted::check(bug)
    {
        eprintln!("xtask: {reason}");
        return ExitCode::FAILURE;
    }
    let failed = match (options.crash_points, options.seed) {
        (false, None) if options.planted.as_deref() == Some(planted::ALL) => {
            planted::search(&seeds(&options), threads(&options), options.kinds.mixture())
        }
        (false, Some(seed)) => one(&options, seed),
        (false, None) => many(&options),
        (true, _) => every_point(&options),
    };
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs what a seed stands for, with the planted bug if there is one.
fn run_seed(options: &Options, seed: u64) -> Result<RunReport, Box<Failure>> {
    let config = config_of(options, seed);
    let result = with_bug(options.planted.as_deref(), || run_caught(&Array, &config));
    result.map_err(|failure| with_bug_named(options, failure))
}

/// What a seed stands for: the kinds that are asked for, those that show a planted bug, or the mixture that it draws.
fn config_of(options: &Options, seed: u64) -> SimConfig {
    let to_find = || options.planted.as_deref().and_then(|bug| planted::to_find(bug, seed));
    match options.kinds.mixture() {
        Some(mixture) => mixture.config(seed, &Array),
        None => to_find().unwrap_or_else(|| Mixture::draw(seed).config(seed, &Array)),
    }
}

/// A replay plants the bug, too.
fn with_bug_named(options: &Options, mut failure: Box<Failure>) -> Box<Failure> {
    if let Some(bug) = &options.planted {
        failure.replay.push_str(" --planted ");
        failure.replay.push_str(bug);
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
    let clock = Clock::start(seeds(options).count() as u64);
    let report = sweep(
        seeds(options),
        threads(options),
        options.failures,
        |seed| {
            // At once, because a user who stops a long sweep wants to know what it has found.
            run_seed(options, seed).inspect_err(|failure| eprintln!("{failure}"))
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
            () if options.kinds.growing => Script::growing,
            () if options.kinds.clones => Script::cloned,
            () if options.kinds.flash => Script::flash_cached,
            () => Script::of_seed,
        };
        (format!("of seed {seed}"), with_bug(bug, || script(&Array, seed)))
    };
    match options.seed {
        Some(seed) => return vec![of_seed(seed)],
        None if options.kinds.growing || options.kinds.clones || options.kinds.flash => {
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
            crashed.map_err(|failure| with_bug_named(options, failure))
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

/// Which seeds "--seeds" names.
#[derive(Clone, Debug)]
enum SeedRange {
    /// So many.
    Count(u64),
    /// These.
    Of(Range<u64>),
}

fn parse_seeds(text: &str) -> Result<SeedRange, String> {
    let number = |part: &str| {
        part.parse()
            .map_err(|_| format!("{part:?} is no number; give how many seeds, or a range such as 100..200"))
    };
    match text.split_once("..") {
        None => Ok(SeedRange::Count(number(text)?)),
        Some((first, end)) => Ok(SeedRange::Of(number(first)?..number(end)?)),
    }
}

fn seeds(options: &Options) -> Range<u64> {
    match &options.seeds {
        SeedRange::Of(range) => range.clone(),
        SeedRange::Count(count) => {
            let first = options.from.unwrap_or_default();
            first..first.saturating_add(*count)
        }
    }
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
