//! `cargo xtask torture`: kills `tier0 serve` at random moments and looks what is left.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tier0_torture::report::Distribution;
use tier0_torture::{Load, Plan, Report, torture};

use crate::bench::table;
use crate::error::BenchError;
use crate::machine;
use crate::server::build_tier0;

/// What to do.
#[derive(Args)]
pub(crate) struct Options {
    /// How often to kill the server
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// Stop after so many seconds, however many kills that makes
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Under which load
    #[arg(long, value_enum, default_value_t = LoadName::Both)]
    load: LoadName,
    /// What moments and requests are drawn from [default: the time]
    #[arg(long)]
    seed: Option<u64>,
    /// Leave the drive files alone
    #[arg(long)]
    no_faults: bool,
    /// Only arrays whose name contains this, like raid5, volatile or flash-cached
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The program to kill [default: tier0, built in release mode]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Where to put the arrays; not a tmpfs [default: the build's directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum LoadName {
    /// Our own client with its ledger, and fio beside it
    Fio,
    /// PostgreSQL with pgbench, on a mounted file system; needs root
    Pgbench,
    /// One after the other
    Both,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build_tier0()?,
    };
    let beside = program.parent().map_or_else(|| PathBuf::from("."), ToOwned::to_owned);
    let plan = Plan {
        directory: options.dir.clone().unwrap_or(beside),
        program,
        seed: options.seed.unwrap_or_else(seed_of_the_moment),
        kills: options.kills,
        seconds_max: options.seconds,
        load: match options.load {
            LoadName::Fio => Load::Blocks,
            LoadName::Pgbench => Load::Database,
            LoadName::Both => Load::Both,
        },
        faults: !options.no_faults,
        only: options.only.clone(),
    };
    eprintln!("seed {}", plan.seed);
    let report = torture(&plan, &mut |news| eprintln!("{news}"))
        .map_err(|error| BenchError::Failed(error.to_string()))?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report).expect("a report is text and numbers"));
    } else {
        print(&report);
    }
    if report.is_clean() {
        return Ok(());
    }
    Err(BenchError::Failed(format!("something was lost or failed; --seed {} runs it again", report.seed)))
}

/// Different runs kill at different moments.
fn seed_of_the_moment() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) % 1_000_000_000_000
}

fn print(report: &Report) {
    println!("{}", machine::describe());
    let mut rows = table(&[
        "load and array",
        "kills",
        "of them starting",
        "acknowledged",
        "checks",
        "2nd opinions",
        "from flash",
        "recovery p50 ms",
        "p95",
        "max",
        "result",
    ]);
    for campaign in &report.campaigns {
        rows.add_row(row(campaign));
    }
    println!("\n{}", rows.trim_fmt());
    report.skipped.iter().for_each(|skipped| println!("skipped: {skipped}"));
    let sum = |figure: &dyn Fn(&tier0_torture::report::Campaign) -> u64| -> u64 {
        report.campaigns.iter().map(figure).sum()
    };
    let failures: Vec<&str> =
        report.campaigns.iter().filter_map(|campaign| campaign.failure.as_deref()).collect();
    println!(
        "\nseed {}: {} kills, {} recoveries, {} acknowledged changes, {} reads judged, {} checks, {} second opinions",
        report.seed,
        report.kills(),
        sum(&|campaign| campaign.recovery_ms.len() as u64),
        sum(&|campaign| campaign.acknowledged),
        sum(&|campaign| campaign.reads_judged),
        sum(&|campaign| campaign.checks),
        sum(&|campaign| campaign.second_opinions),
    );
    let times = report.campaigns.iter().flat_map(|campaign| campaign.recovery_ms.iter().copied());
    if let Some(times) = Distribution::of(times) {
        println!(
            "recovery, from start to listening: p50 {:.0} ms, p95 {:.0} ms, max {:.0} ms of {}",
            times.p50, times.p95, times.max, times.count
        );
    }
    println!(
        "campaigns in which something acknowledged was lost or that failed otherwise: {}",
        failures.len()
    );
    failures.iter().for_each(|failure| println!("  {failure}"));
}

fn row(campaign: &tier0_torture::report::Campaign) -> Vec<String> {
    let times = Distribution::of(campaign.recovery_ms.iter().copied());
    let ms = |figure: fn(&Distribution) -> f64| {
        times.as_ref().map_or_else(|| "-".to_owned(), |times| format!("{:.0}", figure(times)))
    };
    vec![
        campaign.name.clone(),
        campaign.kills.to_string(),
        campaign.kills_while_starting.to_string(),
        campaign.acknowledged.to_string(),
        campaign.checks.to_string(),
        campaign.second_opinions.to_string(),
        campaign.reads_from_flash.to_string(),
        ms(|times| times.p50),
        ms(|times| times.p95),
        ms(|times| times.max),
        if campaign.failure.is_some() { "FAILED" } else { "kept" }.to_owned(),
    ]
}
