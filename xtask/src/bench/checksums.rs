//! What verifying checksums costs reads: 8 KiB random reads from a file through NBD, of an array with checksums and of
//! one without, in turn.

use clap::Args;

use super::served::{OnFiles, Served};
use super::through_nbd::{self, Run};
use super::{judge_at_most, table};
use crate::error::{BenchError, need};
use crate::machine;
use crate::spread::Spread;

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

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    let (with, without) = (create(options, true)?, create(options, false)?);
    let servers = [with.serve()?, without.serve()?];
    for server in &servers {
        through_nbd::fill(server, options.mib)?;
    }
    println!("{}", machine::describe());
    println!(
        "8 KiB random reads with O_DIRECT through NBD, queue depth 32, {} MiB, {} rounds of {} s, in turn",
        options.mib, options.files.rounds, options.seconds
    );
    let ask = |server| through_nbd::random_8k(server, options.mib, 100, options.seconds);
    let mut rounds = Vec::new();
    for round in 0..options.files.rounds {
        // Neither is always the first.
        let (first, second) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        let mut runs = [ask(&servers[first])?, ask(&servers[second])?];
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
    Served::create(options.files.place.dir.as_deref(), (2, options.mib + SPARE_MIB), &pool, &volume)
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
