//! `cargo xtask bench cache`: what the read cache in memory brings, and what it costs where it brings nothing.
//!
//! Hits: random 8 KiB reads of a volume on a file, all of whose pages memory has, through NBD, in turn with nbdkit's memory
//! plugin. Misses: random 8 KiB reads, one after the other, of a volume that is many times as large as the cache, with the
//! volume's switch on and off in turn.

use clap::Args;

use super::served::{OnFiles, Served, Tables};
use super::through_nbd::{self, Run};
use super::{in_turn, judge_at_most, scratch, table};
use crate::error::{BenchError, need};
use crate::server::{Address, Server};
use crate::spread::Spread;
use crate::{fio, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    files: OnFiles,
    /// Seconds per run
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Size of the volume that memory has room for, in MiB
    #[arg(long, default_value_t = 512)]
    mib: u32,
    /// Size of the volume of which memory has room for next to nothing, in MiB
    #[arg(long, default_value_t = 4096)]
    cold_mib: u32,
}

/// Processor time of a hit, by nbdkit's for a read, that is aimed at at most, on a unix socket.
const HIT_CPU_MOST: f64 = 0.6;
/// The time of a miss, by that of the same read past the cache, that is aimed at at most.
const MISS_MOST: f64 = 1.05;
/// Memory of the array whose reads miss: of the least that there is, some 50 MiB are for clean pages.
const COLD_MEMORY: &str = "memory = \"64MiB\"";
const POOL: &str = "raid = \"raid0\"\nset_size = 1\nstripe_unit = \"64KiB\"";
/// Room for metadata, the log and a whole number of chunklets, in MiB.
const SPARE_MIB: u32 = 512;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    need("nbdkit", "nbdkit")?;
    println!("{}", machine::describe());
    hits(options)?;
    misses(options)
}

fn hits(options: &Options) -> Result<(), BenchError> {
    let memory = format!("memory = \"{}MiB\"", 4 * options.mib);
    let volume = format!("size = \"{}MiB\"", options.mib);
    let tables = Tables { array: &memory, pool: POOL, volume: &volume };
    println!(
        "\n8 KiB random reads, 32 under way, of {} MiB in a cache of more; {} rounds of {} s in turn",
        options.mib, options.files.rounds, options.seconds
    );
    let mut rows =
        table(&["way", "from memory", "IOPS, by nbdkit's", "CPU per I/O, by nbdkit's", "CPU us per I/O"]);
    for is_tcp in [false, true] {
        let directory = scratch()?;
        let port = match (is_tcp, Address::free_port()?) {
            (true, Address::Tcp(port)) => Some(port),
            _ => None,
        };
        let place = options.files.place.dir.as_deref();
        let array = Served::create_to_listen(place, (1, options.mib + SPARE_MIB), tables, port)?;
        let own = if is_tcp { array.serve_on_port()? } else { array.serve()? };
        let peer_address = match is_tcp {
            false => Address::Unix(directory.path().join("n")),
            true => Address::free_port()?,
        };
        let peer = through_nbd::start_nbdkit(&peer_address, options.mib)?;
        for server in [&own, &peer] {
            through_nbd::fill(server, options.mib)?;
        }
        // What is dirty is in memory, too, but not in the cache.
        warm(&own, options.mib)?;
        let ask = |server: &Server| through_nbd::random_8k(server, options.mib, 1, 100, options.seconds);
        let before = lookups(&array)?;
        let mut rounds: Vec<(Run, Run)> = Vec::new();
        for number in 0..options.files.rounds {
            rounds.push(in_turn(number, || ask(&own), || ask(&peer))?);
        }
        let now = lookups(&array)?;
        let share = (now.0 - before.0) / (now.1 - before.1).max(1.0);
        let iops = Spread::of(rounds.iter().map(|(own, peer)| own.outcome.iops / peer.outcome.iops));
        let cpu = Spread::of(rounds.iter().map(|(own, peer)| own.cpu_us_per_io / peer.cpu_us_per_io));
        let aim = match is_tcp {
            true => String::new(),
            false => format!(" (aim <= {HIT_CPU_MOST}: {})", judge_at_most(cpu.median(), HIT_CPU_MOST)),
        };
        rows.add_row([
            if is_tcp { "TCP on loopback" } else { "unix socket" }.to_owned(),
            format!("{:.1} %", share * 100.0),
            format!("{iops:.2}"),
            format!("{cpu:.2}{aim}"),
            format!("{:.1}", Spread::of(rounds.iter().map(|(own, _)| own.cpu_us_per_io))),
        ]);
    }
    println!("{}", rows.trim_fmt());
    Ok(())
}

fn misses(options: &Options) -> Result<(), BenchError> {
    let volume = format!("size = \"{}MiB\"", options.cold_mib);
    let tables = Tables { array: COLD_MEMORY, pool: POOL, volume: &volume };
    let array =
        Served::create(options.files.place.dir.as_deref(), (1, options.cold_mib + SPARE_MIB), tables)?;
    let server = array.serve()?;
    through_nbd::fill(&server, options.cold_mib)?;
    // The destager is at rest when everything has aged.
    crate::clock::pause(std::time::Duration::from_secs(12));
    println!(
        "\n8 KiB random reads one after the other, of {} MiB, {COLD_MEMORY}; {} rounds of {} s in turn",
        options.cold_mib, options.files.rounds, options.seconds
    );
    let before = lookups(&array)?;
    let mut rounds: Vec<(Run, Run)> = Vec::new();
    for number in 0..options.files.rounds {
        let ask = |on: bool| {
            array.cache_reads(on)?;
            one_by_one(&server, options.cold_mib, options.seconds)
        };
        rounds.push(in_turn(number, || ask(true), || ask(false))?);
    }
    let now = lookups(&array)?;
    let share = (now.0 - before.0) / (now.1 - before.1).max(1.0);
    let spread = |figure: &dyn Fn(&Run) -> f64| {
        Spread::of(rounds.iter().map(|(with, without)| figure(with) / figure(without)))
    };
    let time = spread(&|run| 1.0 / run.outcome.iops);
    let mut rows = table(&["", "with the cache, by without"]);
    rows.add_row([
        "time of a read".to_owned(),
        format!("{time:.3} (aim <= {MISS_MOST}: {})", judge_at_most(time.median(), MISS_MOST)),
    ]);
    rows.add_row(["CPU per I/O".to_owned(), format!("{:.3}", spread(&|run| run.cpu_us_per_io))]);
    println!("{}\nfrom memory: {:.2} %", rows.trim_fmt(), share * 100.0);
    Ok(())
}

/// Reads that looked for their pages in the cache: those that found them, and all.
fn lookups(array: &Served) -> Result<(f64, f64), BenchError> {
    let status = array.status()?;
    let cache = &status["pools"][0]["read_cache"];
    let count = |name: &str| {
        cache[name]
            .as_f64()
            .ok_or_else(|| BenchError::Failed(format!("tier0 status tells no {name} of reads")))
    };
    let found = count("read_hits")? + count("write_hits")? + count("prefetch_hits")?;
    Ok((found, found + count("misses")?))
}

/// Reads all of it twice, as hosts do whose requests the cache keeps.
fn warm(server: &Server, mib: u32) -> Result<(), BenchError> {
    let arguments = ["--rw=read", "--bs=64k", "--iodepth=8", "--loops=2"].map(Into::into).to_vec();
    // Until then some is dirty: the destager writes it within its ten seconds.
    crate::clock::pause(std::time::Duration::from_secs(12));
    fio::run(&[arguments, through_nbd::target(server, mib)].concat()).map(|_| ())
}

fn one_by_one(server: &Server, mib: u32, seconds: u32) -> Result<Run, BenchError> {
    let arguments =
        ["--rw=randread", "--bs=8k", "--iodepth=1", "--time_based", "--norandommap", "--randrepeat=0"];
    let mut arguments: Vec<String> = arguments.map(Into::into).into();
    arguments.push(format!("--runtime={seconds}"));
    through_nbd::measured(server, mib, arguments)
}
