//! `cargo xtask bench cache`: what the read cache in memory brings, and what it costs where it brings nothing.
//!
//! Hits: random 8 KiB reads of a volume on a file, all of whose pages memory has, through NBD, in turn with nbdkit's memory
//! plugin. Hits in flash: random 8 KiB reads of a volume many times as large as memory, all of whose pages a flash cache on
//! another file has, with the volume's switch on and off in turn. Misses: random 8 KiB reads, one after the other, of a volume
//! that is many times as large as the cache, with that switch on and off in turn.

use clap::Args;

use super::served::{OnFiles, Served, Tables};
use super::through_nbd::{self, Run};
use super::{in_turn, judge_at_least, judge_at_most, scratch, table};
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
    /// Size of the volume that a flash cache has room for, and memory for next to nothing, in MiB
    #[arg(long, default_value_t = 1024)]
    flash_mib: u32,
    /// Size of the volume of which memory has room for next to nothing, in MiB
    #[arg(long, default_value_t = 4096)]
    cold_mib: u32,
}

/// Processor time of a hit, by nbdkit's for a read, that is aimed at at most, on a unix socket.
const HIT_CPU_MOST: f64 = 0.6;
/// The time of a miss, by that of the same read past the cache, that is aimed at at most.
const MISS_MOST: f64 = 1.05;
/// The IOPS of hits in flash, by those of reads of the like file without a cache, that are aimed at at least.
const FLASH_LEAST: f64 = 0.95;
/// Memory of the array whose reads miss: of the least that there is, some 50 MiB are for clean pages.
const COLD_MEMORY: &str = "memory = \"64MiB\"";
const POOL: &str = "raid = \"raid0\"\nset_size = 1\nstripe_unit = \"64KiB\"";
/// So long after the last write, all is destaged.
const DESTAGED: std::time::Duration = std::time::Duration::from_secs(12);
/// Room for metadata, the log and a whole number of chunklets, in MiB.
const SPARE_MIB: u32 = 512;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    need("nbdkit", "nbdkit")?;
    println!("{}", machine::describe());
    hits(options)?;
    hits_in_flash(options)?;
    misses(options)
}

fn hits(options: &Options) -> Result<(), BenchError> {
    let memory = format!("memory = \"{}MiB\"", 4 * options.mib);
    let volume = format!("size = \"{}MiB\"", options.mib);
    let tables = Tables { array: &memory, pool: POOL, volume: &volume, ..Tables::default() };
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
        let before = Lookups::of(&array)?;
        let mut rounds: Vec<(Run, Run)> = Vec::new();
        for number in 0..options.files.rounds {
            rounds.push(in_turn(number, || ask(&own), || ask(&peer))?);
        }
        let found = Lookups::of(&array)?.found_since(&before);
        let iops = Spread::of(rounds.iter().map(|(own, peer)| own.outcome.iops / peer.outcome.iops));
        let cpu = Spread::of(rounds.iter().map(|(own, peer)| own.cpu_us_per_io / peer.cpu_us_per_io));
        let aim = match is_tcp {
            true => String::new(),
            false => format!(" (aim <= {HIT_CPU_MOST}: {})", judge_at_most(cpu.median(), HIT_CPU_MOST)),
        };
        rows.add_row([
            if is_tcp { "TCP on loopback" } else { "unix socket" }.to_owned(),
            format!("{:.1} %", found.memory * 100.0),
            format!("{iops:.2}"),
            format!("{cpu:.2}{aim}"),
            format!("{:.1}", Spread::of(rounds.iter().map(|(own, _)| own.cpu_us_per_io))),
        ]);
    }
    println!("{}", rows.trim_fmt());
    Ok(())
}

fn hits_in_flash(options: &Options) -> Result<(), BenchError> {
    let mib = options.flash_mib;
    let volume = format!("size = \"{mib}MiB\"");
    // Sets of lines are not filled evenly: with twice the room, none is full.
    let pool = format!(
        "drives = [\"d0\"]\n{POOL}\nlog_drives = [\"d0\"]\nflash_cache = \"{}MiB\"\nflash_cache_drives = [\"flash\"]",
        2 * mib
    );
    let tables = Tables { array: COLD_MEMORY, pool: &pool, volume: &volume, flash_mib: 2 * mib + SPARE_MIB };
    let array = Served::create(options.files.place.dir.as_deref(), (1, mib + SPARE_MIB), tables)?;
    let server = array.serve()?;
    through_nbd::fill(&server, mib)?;
    crate::clock::pause(DESTAGED);
    // All of it at random, for a scan does not come in; more than once, for what comes too fast is left out.
    let arguments = ["--rw=randread", "--bs=64k", "--iodepth=4", "--loops=4"].map(Into::into).to_vec();
    fio::run(&[arguments, through_nbd::target(&server, mib)].concat())?;
    println!(
        "\n8 KiB random reads, 32 under way, of {mib} MiB in a flash cache of {} MiB on a file, {COLD_MEMORY}, by those of a file \
         without a cache; {} rounds of {} s in turn",
        2 * mib,
        options.files.rounds,
        options.seconds
    );
    let (rounds, found) = on_and_off(options, &array, || anywhere(&server, mib, 32, options.seconds))?;
    let spread = |figure: &dyn Fn(&Run) -> f64| {
        Spread::of(rounds.iter().map(|(with, without)| figure(with) / figure(without)))
    };
    let iops = spread(&|run| run.outcome.iops);
    let mut rows = table(&["", "from flash, by from the file"]);
    rows.add_row([
        "IOPS".to_owned(),
        format!("{iops:.2} (aim >= {FLASH_LEAST}: {})", judge_at_least(iops.median(), FLASH_LEAST)),
    ]);
    rows.add_row(["CPU per I/O".to_owned(), format!("{:.2}", spread(&|run| run.cpu_us_per_io))]);
    println!(
        "{}\nfrom memory: {:.2} %, of what that had not, from flash: {:.2} %",
        rows.trim_fmt(),
        found.memory * 100.0,
        found.flash * 100.0
    );
    Ok(())
}

/// Asks with the volume's switch on and off in turn; what was found while it was on.
fn on_and_off(
    options: &Options,
    array: &Served,
    ask: impl Fn() -> Result<Run, BenchError>,
) -> Result<(Vec<(Run, Run)>, Found), BenchError> {
    let ask = |on: bool| {
        array.cache_reads(on)?;
        ask()
    };
    let before = Lookups::of(array)?;
    let mut rounds = Vec::new();
    for number in 0..options.files.rounds {
        rounds.push(in_turn(number, || ask(true), || ask(false))?);
    }
    Ok((rounds, Lookups::of(array)?.found_since(&before)))
}

fn misses(options: &Options) -> Result<(), BenchError> {
    let volume = format!("size = \"{}MiB\"", options.cold_mib);
    let tables = Tables { array: COLD_MEMORY, pool: POOL, volume: &volume, ..Tables::default() };
    let array =
        Served::create(options.files.place.dir.as_deref(), (1, options.cold_mib + SPARE_MIB), tables)?;
    let server = array.serve()?;
    through_nbd::fill(&server, options.cold_mib)?;
    crate::clock::pause(DESTAGED);
    println!(
        "\n8 KiB random reads one after the other, of {} MiB, {COLD_MEMORY}; {} rounds of {} s in turn",
        options.cold_mib, options.files.rounds, options.seconds
    );
    let (rounds, found) =
        on_and_off(options, &array, || anywhere(&server, options.cold_mib, 1, options.seconds))?;
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
    println!("{}\nfrom memory: {:.2} %", rows.trim_fmt(), found.memory * 100.0);
    Ok(())
}

/// Reads that looked for their pages in memory, and lines that were looked for in flash: those that were found, and all.
#[derive(Clone, Copy)]
struct Lookups {
    memory: (f64, f64),
    flash: (f64, f64),
}

/// The shares that were found.
struct Found {
    memory: f64,
    flash: f64,
}

impl Lookups {
    /// Since the start of the array.
    fn of(array: &Served) -> Result<Lookups, BenchError> {
        let status = array.status()?;
        let sum = |cache: &str, hits: &[&str]| -> Result<(f64, f64), BenchError> {
            let counters = &status["pools"][0][cache];
            if counters.is_null() {
                return Ok((0.0, 0.0));
            }
            let count = |name: &str| {
                let told = || BenchError::Failed(format!("tier0 status tells no {name} of its {cache}"));
                counters[name].as_f64().ok_or_else(told)
            };
            let found = hits.iter().map(|name| count(name)).sum::<Result<f64, _>>()?;
            Ok((found, found + count("misses")?))
        };
        Ok(Lookups {
            memory: sum("read_cache", &["read_hits", "write_hits", "prefetch_hits"])?,
            flash: sum("flash_cache", &["hits"])?,
        })
    }

    fn found_since(&self, earlier: &Lookups) -> Found {
        let share = |now: (f64, f64), before: (f64, f64)| (now.0 - before.0) / (now.1 - before.1).max(1.0);
        Found { memory: share(self.memory, earlier.memory), flash: share(self.flash, earlier.flash) }
    }
}

/// Reads all of it twice, as hosts do whose requests the cache keeps.
fn warm(server: &Server, mib: u32) -> Result<(), BenchError> {
    let arguments = ["--rw=read", "--bs=64k", "--iodepth=8", "--loops=2"].map(Into::into).to_vec();
    crate::clock::pause(DESTAGED);
    fio::run(&[arguments, through_nbd::target(server, mib)].concat()).map(|_| ())
}

/// Reads 8 KiB at random, each time elsewhere: the same reads again would be hits in memory.
fn anywhere(server: &Server, mib: u32, depth: u32, seconds: u32) -> Result<Run, BenchError> {
    let arguments = ["--rw=randread", "--bs=8k", "--time_based", "--norandommap", "--randrepeat=0"];
    let mut arguments: Vec<String> = arguments.map(Into::into).into();
    arguments.extend([format!("--iodepth={depth}"), format!("--runtime={seconds}")]);
    through_nbd::measured(server, mib, arguments)
}
