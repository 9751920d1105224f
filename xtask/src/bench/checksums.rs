//! What verifying checksums costs reads: 8 KiB random reads from a file through NBD, of an array with checksums and of
//! one without, in turn.

use clap::Args;

use super::served::{OnFiles, Served};
use super::{judge_at_most, table};
use crate::error::{BenchError, need};
use crate::server::Server;
use crate::spread::Spread;
use crate::{fio, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    files: OnFiles,
    /// Seconds per run
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Size of each volume in MiB
    #[arg(long, default_value_t = 1024)]
    mib: u32,
}

/// The share of the IOPS that verifying may take.
const LOSS_MOST: f64 = 0.05;
/// Room for metadata and a whole number of chunklets, in MiB.
const SPARE_MIB: u32 = 256;

/// One run against one array.
struct Run {
    outcome: fio::Outcome,
    cpu_us_per_io: f64,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    let arrays = [true, false].map(|checksums| create(options, checksums));
    let [with, without] = arrays;
    let (with, without) = (with?, without?);
    let servers = [with.serve()?, without.serve()?];
    for server in &servers {
        fio::run(&[fio::fill(), target(server, options)].concat())?;
    }
    println!("{}", machine::describe());
    println!(
        "8 KiB random reads with O_DIRECT through NBD, queue depth 32, {} MiB, {} rounds of {} s, in turn",
        options.mib, options.files.rounds, options.seconds
    );
    let mut rounds = Vec::new();
    for round in 0..options.files.rounds {
        // Neither is always the first.
        let (first, second) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        let mut runs = [ask(&servers[first], options)?, ask(&servers[second], options)?];
        if round % 2 == 1 {
            runs.reverse();
        }
        rounds.push(runs);
    }
    report(&rounds);
    Ok(())
}

/// A mirror of two files: the reads go to both, as in an array that can repair what fails its checksum.
fn create(options: &Options, checksums: bool) -> Result<Served, BenchError> {
    let pool = format!("raid = \"raid1\"\nset_size = 2\nlog = \"64MiB\"\nchecksums = {checksums}");
    let volume = format!("size = \"{}MiB\"", options.mib);
    Served::create(options.files.dir.as_deref(), (2, options.mib + SPARE_MIB), &pool, &volume)
}

fn target(server: &Server, options: &Options) -> Vec<String> {
    vec!["--ioengine=nbd".into(), format!("--uri={}", server.uri()), format!("--size={}m", options.mib)]
}

fn ask(server: &Server, options: &Options) -> Result<Run, BenchError> {
    let arguments = [fio::random_8k(100, options.seconds), target(server, options)].concat();
    let before = server.cpu_s()?;
    let outcome = fio::run(&arguments)?;
    let cpu_us_per_io = (server.cpu_s()? - before) * 1e6 / outcome.ios;
    Ok(Run { outcome, cpu_us_per_io })
}

fn report(rounds: &[[Run; 2]]) {
    let mut table = table(&["", "IOPS", "p50 us", "p99 us", "CPU us per I/O"]);
    for (place, name) in ["with checksums", "without"].into_iter().enumerate() {
        let spread = |figure: fn(&Run) -> f64| Spread::of(rounds.iter().map(|runs| figure(&runs[place])));
        table.add_row([
            name.to_owned(),
            format!("{:.0}", spread(|run| run.outcome.iops)),
            format!("{:.0}", spread(|run| run.outcome.p50_us)),
            format!("{:.0}", spread(|run| run.outcome.p99_us)),
            format!("{:.1}", spread(|run| run.cpu_us_per_io)),
        ]);
    }
    println!("\nmedian (least to greatest) of the rounds\n{}", table.trim_fmt());
    let loss =
        Spread::of(rounds.iter().map(|[with, without]| 1.0 - with.outcome.iops / without.outcome.iops));
    println!("share of the IOPS that verifying takes: {loss:.3}, round by round");
    println!("  aimed at: <= {LOSS_MOST}: {}", judge_at_most(loss.median(), LOSS_MOST));
}
