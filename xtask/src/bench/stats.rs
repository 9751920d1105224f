//! `cargo xtask bench stats`: what it costs that the array counts what it does: processor time of the server per request, with
//! counters and latency histograms and in a build without them, in turn, from memory through NBD on a unix socket.

use std::path::Path;

use clap::Args;
use tempfile::TempDir;

use super::through_nbd::{fill, random_8k, start_tier0};
use super::{in_turn, judge_at_most, scratch, table};
use crate::error::{BenchError, need};
use crate::machine;
use crate::server::{Address, Server, build_silent, build_tier0};
use crate::spread::Spread;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds
    #[arg(long, default_value_t = 15)]
    rounds: u32,
    /// Seconds per run
    #[arg(long, default_value_t = 2)]
    seconds: u32,
}

/// The part of a request's processor time that is aimed at, at most.
const MOST: f64 = 1.02;
const MIB: u32 = 256;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    let (_counting, counting) = serve(&build_tier0()?)?;
    let (_silent, silent) = serve(&build_silent()?)?;
    println!("{}", machine::describe());
    println!(
        "8 KiB random, 32 requests under way, {} rounds of {} s in turn",
        options.rounds, options.seconds
    );
    let mut table = table(&["", "CPU us per I/O", "without counters", "ratio, round by round", "aimed at"]);
    for read_percent in [100, 70] {
        let mut rounds = Vec::new();
        for number in 0..options.rounds {
            let cpu = |server| {
                random_8k(server, MIB, 1, read_percent, options.seconds).map(|run| run.cpu_us_per_io)
            };
            rounds.push(in_turn(number, || cpu(&counting), || cpu(&silent))?);
        }
        let ratio = Spread::of(rounds.iter().map(|(with, without)| with / without));
        table.add_row([
            format!("{read_percent} % reads"),
            format!("{:.2}", Spread::of(rounds.iter().map(|round| round.0))),
            format!("{:.2}", Spread::of(rounds.iter().map(|round| round.1))),
            format!("{ratio:.3}"),
            format!("<= {MOST}: {}", judge_at_most(ratio.median(), MOST)),
        ]);
    }
    println!("\nmedian (least to greatest) of the rounds\n{}", table.trim_fmt());
    Ok(())
}

/// A server whose volume in memory is full of data, and the directory of its socket.
fn serve(program: &Path) -> Result<(TempDir, Server), BenchError> {
    let directory = scratch()?;
    let server = start_tier0(program, directory.path(), &Address::Unix(directory.path().join("s")), MIB)?;
    fill(&server, MIB)?;
    Ok((directory, server))
}
