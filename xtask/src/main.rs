//! What maintainers run: `cargo xtask bench`, `cargo xtask torture`, `cargo xtask fuzz`,
//! `cargo xtask sim`, `cargo xtask mishaps`, `cargo xtask threads`, `cargo xtask features`.
//!
//! Benchmarks run peers in turn on the same machine and print ratios with their spread; they assert nothing, so that
//! a noisy machine fails no test. Each says hardware, kernel and commit. Where a tool is missing, the benchmark says so
//! and is skipped.

mod bench;
mod clock;
mod error;
mod features;
mod fio;
mod fuzz;
mod interrupt;
mod machine;
mod mishaps;
mod server;
mod sim;
mod spread;
mod threads;
mod torture;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What maintainers run.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Measure
    #[command(subcommand)]
    Bench(Bench),
    /// Look whether each package alone has the third-party features of the workspace
    Features,
    /// Fuzz everything that reads bytes from outside
    Fuzz(fuzz::Options),
    /// Repeat every mishap that an array must survive, on the real program
    Mishaps(mishaps::Options),
    /// Break the array in virtual time in every way that it must survive
    Sim(sim::Options),
    /// Run what crosses threads through every order of its steps, and under ThreadSanitizer
    Threads,
    /// Kill tier0 at random moments and look what is left
    Torture(torture::Options),
}

#[derive(Subcommand)]
enum Bench {
    /// NBD from memory beside nbdkit and qemu-nbd: 8 KiB, queue depth 32, one connection
    Nbd(bench::nbd::Options),
    /// The read caches: hits beside nbdkit and beside a file, misses beside reads past them
    Cache(bench::cache::Options),
    /// Loads that caches suffer from, on modelled drives with caches and without
    Curves(bench::curves::Options),
    /// Disks only, with a read cache on flash, with a tier, and with both, in virtual time; or under PostgreSQL
    Tier(bench::tier::Options),
    /// Order entry on PostgreSQL, each run predicted before it is done, on plain files and on modelled disks
    Databases(bench::databases::Options),
    /// A file through NBD beside fio's io_uring on the same file
    File(bench::file::Options),
    /// Simulated host I/Os per second of processor time
    Virtual(bench::virtual_time::Options),
    /// The processor time of an idle server
    Idle(bench::idle::Options),
    /// What it costs to count what the array does
    Stats(bench::stats::Options),
    /// What hostile connections cost a well-behaved one
    Fairness(bench::fairness::Options),
    /// How well the ceilings of a volume are held over two shards
    Qos(bench::qos::Options),
    /// Durable writes beside raw mirrored writes by fio
    Durability(bench::durability::Options),
    /// Small writes to modelled disks in RAID 6 with the log and without
    SmallWrites(bench::small_writes::Options),
    /// The time of a rebuild by the number of modelled drives
    Rebuild(bench::rebuild::Options),
    /// The time to start on a full log
    Recovery(bench::recovery::Options),
    /// A map of 16 TiB in pieces: turns while extents move, and the time to open it
    Metadata(bench::metadata::Options),
    /// Two slow disks and an SSD as a hybrid: tier0 beside bcache and dm-cache in an emulated guest
    Hybrid(bench::hybrid::Options),
    /// The drives that `hybrid` serves to its guest
    #[command(hide = true)]
    HybridDrives(bench::hybrid::drives::Options),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Bench(Bench::Nbd(options)) => bench::nbd::run(&options),
        Task::Bench(Bench::Cache(options)) => bench::cache::run(&options),
        Task::Bench(Bench::Curves(options)) => bench::curves::run(&options),
        Task::Bench(Bench::Tier(options)) => bench::tier::run(&options),
        Task::Bench(Bench::Databases(options)) => bench::databases::run(&options),
        Task::Bench(Bench::File(options)) => bench::file::run(&options),
        Task::Bench(Bench::Virtual(options)) => bench::virtual_time::run(&options),
        Task::Bench(Bench::Idle(options)) => bench::idle::run(&options),
        Task::Bench(Bench::Stats(options)) => bench::stats::run(&options),
        Task::Bench(Bench::Fairness(options)) => bench::fairness::run(&options),
        Task::Bench(Bench::Qos(options)) => bench::qos::run(&options),
        Task::Bench(Bench::Durability(options)) => bench::durability::run(&options),
        Task::Bench(Bench::SmallWrites(options)) => bench::small_writes::run(&options),
        Task::Bench(Bench::Rebuild(options)) => bench::rebuild::run(&options),
        Task::Bench(Bench::Recovery(options)) => bench::recovery::run(&options),
        Task::Bench(Bench::Metadata(options)) => bench::metadata::run(&options),
        Task::Bench(Bench::Hybrid(options)) => bench::hybrid::run(&options),
        Task::Bench(Bench::HybridDrives(options)) => bench::hybrid::drives::run(&options),
        Task::Features => features::run(),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Mishaps(options) => mishaps::run(&options),
        Task::Sim(options) => sim::run(&options),
        Task::Threads => threads::run(),
        Task::Torture(options) => torture::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error::BenchError::Skipped { tool, package }) => {
            println!("skipped: {tool} is not installed; install {package}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
