//! `cargo xtask bench nbd`: random 8 KiB requests from memory, 32 under way, by fio's nbd engine, in turn against nbdkit's
//! memory plugin, qemu-nbd on a file of random data in tmpfs, and tier0 with a RAID 10 volume on RAM drives through its
//! whole engine on one core; over unix sockets and over TCP on loopback, by one connection and by four.
//!
//! All servers run all the time; those that are not asked sleep. Turns are short, and the order of a round is the last
//! one's reversed, so that nbdkit and tier0 have their turns next to each other: a shared machine is faster and slower
//! by the second. A server's processor time per request is what its process used from before fio starts until after it
//! ends, over all requests of that run.

use std::path::Path;
use std::process::Command;

use clap::Args;

use super::through_nbd::{self, Run};
use super::{judge_at_least, judge_at_most, scratch, table};
use crate::error::{BenchError, need};
use crate::machine;
use crate::server::{Address, Server, build_tier0};
use crate::spread::Spread;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds; each asks every server once per mix
    #[arg(long, default_value_t = 8)]
    rounds: u32,
    /// Seconds per run
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Size of each export in MiB; all of it is written before the first round
    #[arg(long, default_value_t = 1024)]
    mib: u32,
}

/// A way to the servers, and what is aimed at beside nbdkit there.
struct Transport {
    name: &'static str,
    over_tcp: bool,
    /// tier0's IOPS.
    iops_least: f64,
    /// Its processor time per request.
    cpu_most: f64,
}

const TRANSPORTS: [Transport; 2] = [
    Transport { name: "unix socket", over_tcp: false, iops_least: 1.2, cpu_most: 0.6 },
    Transport { name: "TCP on loopback", over_tcp: true, iops_least: 1.1, cpu_most: 0.85 },
];

/// Connections that share the 32 requests.
const CONNECTIONS: [u32; 2] = [1, 4];

/// What is asked in a run.
struct Load {
    connections: u32,
    read_percent: u32,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    need("nbdkit", "nbdkit")?;
    need("qemu-nbd", "qemu-utils")?;
    let program = build_tier0()?;
    println!("{}", machine::describe());
    println!(
        "8 KiB random, 32 requests under way, {} MiB, {} rounds of {} s, servers in turn",
        options.mib, options.rounds, options.seconds
    );
    for transport in &TRANSPORTS {
        let directory = scratch()?;
        let tmpfs = tempfile::tempdir_in("/dev/shm").map_err(BenchError::system("tmpfs cannot be used"))?;
        let address = |name: &str| match transport.over_tcp {
            true => Address::free_port(),
            false => Ok(Address::Unix(directory.path().join(name))),
        };
        let servers = [
            start_qemu(&address("qemu.sock")?, tmpfs.path(), options.mib)?,
            through_nbd::start_nbdkit(&address("nbdkit.sock")?, options.mib)?,
            through_nbd::start_tier0(&program, directory.path(), &address("tier0.sock")?, options.mib)?,
        ];
        for server in &servers {
            through_nbd::fill(server, options.mib)?;
        }
        for connections in CONNECTIONS {
            for read_percent in [100, 70] {
                let load = Load { connections, read_percent };
                let rounds = (0..options.rounds).map(|number| round(&servers, number, &load, options));
                let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
                report(&servers, transport, &load, &rounds);
            }
        }
    }
    Ok(())
}

fn start_qemu(address: &Address, tmpfs: &Path, mib: u32) -> Result<Server, BenchError> {
    let file = tmpfs.join("disk.raw");
    std::fs::File::create(&file)
        .and_then(|file| file.set_len(u64::from(mib) << 20))
        .map_err(BenchError::system("a file in tmpfs cannot be made"))?;
    let mut command = Command::new("qemu-nbd");
    command.args(["--format=raw", "--persistent", "--shared=8"]);
    match address {
        Address::Unix(socket) => command.arg("--socket").arg(socket),
        Address::Tcp(port) => command.args(["--bind=127.0.0.1", &format!("--port={port}")]),
    };
    command.arg(&file);
    Server::start("qemu-nbd tmpfs", &mut command, address, "")
}

/// One run against each server, in their order.
fn round(servers: &[Server], number: u32, load: &Load, options: &Options) -> Result<Vec<Run>, BenchError> {
    let Load { connections, read_percent } = *load;
    let ask =
        |server| through_nbd::random_8k(server, options.mib, connections, read_percent, options.seconds);
    if number.is_multiple_of(2) {
        return servers.iter().map(ask).collect();
    }
    let mut runs: Vec<Run> = servers.iter().rev().map(ask).collect::<Result<_, _>>()?;
    runs.reverse();
    Ok(runs)
}

fn report(servers: &[Server], transport: &Transport, load: &Load, rounds: &[Vec<Run>]) {
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
    let connections = match load.connections {
        1 => "one connection".to_owned(),
        more => format!("{more} connections"),
    };
    println!(
        "\n{}, {connections}, {} % reads; median (least to greatest) of the rounds\n{}",
        transport.name,
        load.read_percent,
        table.trim_fmt()
    );
    let (own, nbdkit) = (servers.len() - 1, servers.len() - 2);
    let against = |place: usize, figure: &dyn Fn(&Run) -> f64| {
        Spread::of(rounds.iter().map(|runs| figure(&runs[own]) / figure(&runs[place])))
    };
    for (place, server) in servers[..own].iter().enumerate() {
        let (iops, cpu) = (against(place, &|run| run.outcome.iops), against(place, &|run| run.cpu_us_per_io));
        println!(
            "tier0 / {}: {iops:.2} x the IOPS, {cpu:.2} x the CPU per I/O, round by round",
            server.name()
        );
        if place == nbdkit {
            let Transport { iops_least, cpu_most, .. } = *transport;
            println!(
                "  aimed at: >= {iops_least} x: {}, <= {cpu_most} x: {}",
                judge_at_least(iops.median(), iops_least),
                judge_at_most(cpu.median(), cpu_most)
            );
        }
    }
}
