//! `cargo xtask bench nbd`: random 8 KiB requests from memory, one connection, queue depth 32, by fio's nbd engine,
//! in turn against nbdkit's memory plugin, qemu-nbd on a file of random data in tmpfs, and tier0 with a RAID 10 volume
//! on RAM drives through its whole engine on one core.
//!
//! All servers run all the time; those that are not asked sleep. Turns are short, and the order of a round is the last
//! one's reversed, so that nbdkit and tier0 have their turns next to each other: a shared machine is faster and slower
//! by the second. A server's processor time per request is what its process used from before fio starts until after it
//! ends, over all requests of that run.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::through_nbd::{self, Run};
use super::{judge_at_least, judge_at_most, scratch, table, write};
use crate::error::{BenchError, need};
use crate::machine;
use crate::server::{Server, build_tier0, tier0};
use crate::spread::Spread;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds; each asks every server once per mix
    #[arg(long, default_value_t = 24)]
    rounds: u32,
    /// Seconds per run
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Size of each export in MiB; all of it is written before the first round
    #[arg(long, default_value_t = 1024)]
    mib: u32,
}

/// The share of tier0's IOPS over nbdkit's that is aimed at, and its processor time per request.
const RATIO_LEAST: f64 = 1.2;
const CPU_US_MOST: f64 = 6.0;
/// What nbdkit needs per request on the machine for which that aim was set; others are faster or slower.
const CPU_US_OF_NBDKIT: f64 = 7.6;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    need("nbdkit", "nbdkit")?;
    need("qemu-nbd", "qemu-utils")?;
    let program = build_tier0()?;
    let directory = scratch()?;
    let tmpfs = tempfile::tempdir_in("/dev/shm").map_err(BenchError::system("tmpfs cannot be used"))?;
    let servers = [
        start_qemu(directory.path(), tmpfs.path(), options.mib)?,
        start_nbdkit(directory.path(), options.mib)?,
        start_tier0(&program, directory.path(), options.mib)?,
    ];
    println!("{}", machine::describe());
    println!(
        "8 KiB random, queue depth 32, one connection, {} MiB, {} rounds of {} s, servers in turn",
        options.mib, options.rounds, options.seconds
    );
    for server in &servers {
        through_nbd::fill(server, options.mib)?;
    }
    for read_percent in [100, 70] {
        let rounds = (0..options.rounds).map(|number| round(&servers, number, read_percent, options));
        let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
        report(&servers, read_percent, &rounds);
    }
    Ok(())
}

fn start_nbdkit(directory: &Path, mib: u32) -> Result<Server, BenchError> {
    let socket = directory.join("nbdkit.sock");
    let mut command = Command::new("nbdkit");
    command.arg("--foreground").arg("--unix").arg(&socket).arg("memory").arg(format!("{mib}M"));
    Server::start("nbdkit memory", &mut command, &socket, "")
}

fn start_qemu(directory: &Path, tmpfs: &Path, mib: u32) -> Result<Server, BenchError> {
    let (socket, file) = (directory.join("qemu.sock"), tmpfs.join("disk.raw"));
    std::fs::File::create(&file)
        .and_then(|file| file.set_len(u64::from(mib) << 20))
        .map_err(BenchError::system("a file in tmpfs cannot be made"))?;
    let mut command = Command::new("qemu-nbd");
    command.args(["--format=raw", "--persistent", "--shared=8", "--socket"]).arg(&socket).arg(&file);
    Server::start("qemu-nbd tmpfs", &mut command, &socket, "")
}

fn start_tier0(program: &Path, directory: &Path, mib: u32) -> Result<Server, BenchError> {
    let (socket, array): (PathBuf, _) = (directory.join("tier0.sock"), directory.join("array.toml"));
    // Half of the four drives holds data; the rest of each is room for metadata and whole chunklets.
    let (drive, socket_text) = (mib / 2 + 256, socket.display());
    let text = format!(
        "[array]\nname = \"bench\"\ncores = 1\n\
         [[drive]]\nname = \"ram{{n}}\"\ncount = 4\nram = \"{drive}MiB\"\n\
         [[pool]]\nname = \"pool0\"\nraid = \"raid10\"\nset_size = 4\nstripe_unit = \"64KiB\"\n\
         [[volume]]\nname = \"lun0\"\nsize = \"{mib}MiB\"\n\
         [nbd]\nlisten = [\"unix:{socket_text}\"]\n"
    );
    write(&array, &text)?;
    tier0(program, &array, &socket)
}

/// One run against each server, in their order.
fn round(
    servers: &[Server],
    number: u32,
    read_percent: u32,
    options: &Options,
) -> Result<Vec<Run>, BenchError> {
    let ask = |server| through_nbd::random_8k(server, options.mib, read_percent, options.seconds);
    if number.is_multiple_of(2) {
        return servers.iter().map(ask).collect();
    }
    let mut runs: Vec<Run> = servers.iter().rev().map(ask).collect::<Result<_, _>>()?;
    runs.reverse();
    Ok(runs)
}

fn report(servers: &[Server], read_percent: u32, rounds: &[Vec<Run>]) {
    let spread = |server: usize, figure: &dyn Fn(&Run) -> f64| {
        Spread::of(rounds.iter().map(|runs| figure(&runs[server])))
    };
    let mut table = table(&["", "IOPS", "p50 us", "p99 us", "p99.9 us", "server CPU us per I/O"]);
    for (place, server) in servers.iter().enumerate() {
        table.add_row([
            server.name().to_owned(),
            format!("{:.0}", spread(place, &|run| run.outcome.iops)),
            format!("{:.0}", spread(place, &|run| run.outcome.p50_us)),
            format!("{:.0}", spread(place, &|run| run.outcome.p99_us)),
            format!("{:.0}", spread(place, &|run| run.outcome.p99_9_us)),
            format!("{:.1}", spread(place, &|run| run.cpu_us_per_io)),
        ]);
    }
    println!("\n{read_percent} % reads; median (least to greatest) of the rounds\n{}", table.trim_fmt());
    let (own, nbdkit) = (servers.len() - 1, servers.len() - 2);
    let against = |place: usize, figure: &dyn Fn(&Run) -> f64| {
        Spread::of(rounds.iter().map(|runs| figure(&runs[own]) / figure(&runs[place])))
    };
    for (place, server) in servers[..own].iter().enumerate() {
        let ratio = against(place, &|run| run.outcome.iops);
        println!("tier0 / {}: {ratio:.2} x the IOPS, round by round", server.name());
        if place == nbdkit {
            let judged = judge_at_least(ratio.median(), RATIO_LEAST);
            println!("  aimed at: >= {RATIO_LEAST} x: {judged}");
        }
    }
    let p99 = |place| spread(place, &|run| run.outcome.p99_us).median();
    println!("  aimed at: p99 no worse than nbdkit's: {}", judge_at_most(p99(own), p99(nbdkit)));
    if read_percent == 100 {
        let cpu = spread(own, &|run| run.cpu_us_per_io).median();
        println!("  aimed at: <= {CPU_US_MOST} us of CPU per I/O: {}", judge_at_most(cpu, CPU_US_MOST));
        let ratio = against(nbdkit, &|run| run.cpu_us_per_io);
        let most = CPU_US_MOST / CPU_US_OF_NBDKIT;
        println!("tier0 / {}: {ratio:.2} x the CPU per I/O, round by round", servers[nbdkit].name());
        println!(
            "  aimed at: <= {most:.2} x, as {CPU_US_MOST} us where nbdkit needs {CPU_US_OF_NBDKIT}: {}",
            judge_at_most(ratio.median(), most)
        );
    }
}
