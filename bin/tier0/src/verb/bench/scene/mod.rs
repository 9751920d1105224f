//! `tier0 bench scene`: an array of files or modelled drives, a file system on its volume, PostgreSQL on that, a load, the check;
//! then all of it is removed.
//!
//! What was started is ended in the reverse order, whatever happened before, also after Ctrl-C. Every part runs in a process
//! group of its own, so that the Ctrl-C of a terminal reaches this program alone.

mod beside;
mod place;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use serde::Serialize;
use tier0_bench::address::Address;
use tier0_bench::check::{Checked, check};
use tier0_bench::load::Load as LoadName;
use tier0_bench::prepare::{PrepareOptions, Prepared, prepare};
use tier0_bench::run::report::RunReport;
use tier0_bench::run::run as run_load;
use tier0_bench::watch::Watch;
use tier0_programs::memory::MemoryGroup;
use tier0_programs::mount::{self, Mounted};
use tier0_programs::postgres::{self, Cluster};
use tier0_programs::process::Running;
use tier0_programs::{ProgramError, clock, tools};
use tier0_units::ByteCount;

use self::beside::{Beside, Phase};
use self::place::Place;
use super::load::Load;
use super::run::Array;
use super::scale::Size;
use super::{check as check_verb, page, report};
use crate::cli::Global;
use crate::failure::Failure;
use crate::logging;
use crate::output::{escaped_lines, json, print};
use crate::signals::Signals;
use crate::verb::lab::check_writable;

const EXAMPLES: &str = "\
Examples:
  tier0 bench scene ./scene --warehouses 2 --users 8 --duration 30s
      an array of four files, removed at the end
  tier0 bench scene ./scene --model sas-15k-146gb-sff --warehouses 2
      the same on four modelled disks that run in real time
  tier0 bench scene ./scene --load decision-support --users 2 --html scan.html
      streams of queries, with a page of charts
  tier0 bench scene ./scene --beside decision-support --beside-limit 20
      order entry alone, then beside streams of queries on a second volume, then
      with that volume limited to 20 MB/s
  tier0 bench scene ./scene --keep
      leave the directory: array, database and logs

Needs root, nbdfuse (libnbd-bin), e2fsprogs, mount and PostgreSQL, and room for
the drives: twice the database and 5 GB. The user postgres must be
able to enter the directory. While it is measured, little memory is left for the
page cache of the host, so that reads reach the array (--database-memory).";

/// The longest that the array's server may take to listen.
const START_SECONDS_MAX: u32 = 60;
/// Memory of PostgreSQL beside its buffers: its processes, of which each user has one, and some page cache.
const MEMORY_MORE: ByteCount = ByteCount::mib(32);
const MEMORY_OF_USER: ByteCount = ByteCount::mib(6);
/// A session of brokerage has ten times as many plans; a query has workers, each with memory for sorts and hash tables.
const MEMORY_OF_BROKERAGE_USER: ByteCount = ByteCount::mib(12);
const MEMORY_OF_STREAM: ByteCount = ByteCount::mib(64);
/// The queries that run beside another load keep little.
const MEMORY_OF_SCAN: ByteCount = ByteCount::mib(24);

/// What to set up.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Scene {
    /// The directory, which must be empty or absent; all lies in its subdirectory tier0-scene
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    size: Size,
    /// Connections that load at the same time
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: u32,
    #[command(flatten)]
    load: Load,
    /// Number of drives
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64), help_heading = "Array")]
    drives: u32,
    /// RAID level: raid10, raid5 or raid6 over all drives
    #[arg(long, value_name = "LEVEL", default_value = "raid10", help_heading = "Array")]
    raid: String,
    /// Have the drives behave like this one of the catalogue, in real time (tier0 catalog list) [default: as fast as files are]
    #[arg(long, value_name = "MODEL", help_heading = "Array")]
    model: Option<String>,
    /// Memory of the array
    #[arg(long, value_name = "SIZE", default_value = "128MiB", help_heading = "Array")]
    memory: ByteCount,
    /// Memory for pages of PostgreSQL (shared_buffers)
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    buffers: ByteCount,
    /// Memory of PostgreSQL while it is measured, the page cache of its files included (a control group) [default: 32MiB, and 6MiB
    /// for each user (brokerage 12MiB, decision-support 64MiB), more than --buffers]
    #[arg(long, value_name = "SIZE")]
    database_memory: Option<ByteCount>,
    #[command(flatten)]
    beside: Beside,
    /// Leave the directory at the end
    #[arg(long)]
    keep: bool,
    /// Write the report of the run as one HTML page too, with charts over time
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of it.
#[derive(Serialize)]
struct Outcome {
    prepared: Prepared,
    run: RunReport,
    /// The same load again, beside streams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<Phase>,
    check: Checked,
}

/// Sets the scene, runs, removes it.
pub(crate) fn run(verb: &Scene, global: &Global) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Input("a scene mounts a file system; run it as root".to_owned()));
    }
    tools::need(&[&mount::TOOLS[..], &postgres::TOOLS[..]].concat())?;
    let signals = Signals::catch()?;
    let say = |text: &str| {
        if global.quiet == 0 {
            logging::say(text);
        }
    };
    verb.html.as_deref().map_or(Ok(()), check_writable)?;
    let place = Place::prepare(verb)?;
    let watch = Watch { say: &say, is_over: &|| signals.raised() };
    let done = on_array(verb, &place, watch);
    let done = match (done, signals.raised()) {
        (Err(Failure::Run(_)), true) => Err(Failure::Interrupted),
        (done, _) => done,
    };
    // What failed has its logs there.
    let is_kept = verb.keep || matches!(done, Err(Failure::Run(_)));
    match is_kept {
        true => say(&format!("{} is left", place.directory.display())),
        false => place.remove()?,
    }
    let outcome = done?;
    let checked = check_verb::verdict(&outcome.check);
    let text = || {
        let beside = beside::text(&outcome.run, &outcome.beside);
        format!("{}\n{beside}{}", report::text(&outcome.run), check_verb::text(&outcome.check))
    };
    // The report is told first: a page that cannot be written loses nothing.
    print(&if verb.json { json(&outcome) } else { escaped_lines(&text()) })?;
    verb.html.as_deref().map_or(Ok(()), |path| page::write(&outcome.run, path))?;
    match outcome.run.ended_early {
        true => Err(Failure::Interrupted),
        false => checked,
    }
}

/// With the array served.
fn on_array(verb: &Scene, place: &Place, watch: Watch<'_>) -> Result<Outcome, Failure> {
    let array = place.array();
    (watch.say)(&format!("creating and serving {}", array.display()));
    tools::output("tier0 create", program()?.arg("create").arg(&array))?;
    let mut serve = program()?;
    serve.arg("serve").arg(&array).process_group(0);
    let mut server = Running::start("tier0 serve", &mut serve, &place.path("serve.log"))?;
    let socket = place.path("nbd.sock");
    clock::wait_until("tier0 serve listening", START_SECONDS_MAX, || match server.status()? {
        Some(status) => {
            let log = place.path("serve.log");
            Err(ProgramError::Failed(format!("tier0 serve ended with {status}; see {}", log.display())))
        }
        None => Ok(std::os::unix::net::UnixStream::connect(&socket).is_ok()),
    })?;
    let done = on_volume(verb, place, watch);
    ended(done, server.stop(), "the array's server")
}

/// With its volume mounted.
fn on_volume(verb: &Scene, place: &Place, watch: Watch<'_>) -> Result<Outcome, Failure> {
    (watch.say)("making a file system on its volume, mounted at mnt");
    let uri = format!("nbd+unix:///lun0?socket={}", place.path("nbd.sock").display());
    let mounted = Mounted::past_the_page_cache(&place.directory, &uri, true)?;
    let done = match verb.beside.scale() {
        None => on_database(verb, place, &mounted, None, watch),
        Some(_) => on_second_volume(verb, place, &mounted, watch),
    };
    ended(done, mounted.unmount(), "the file system")
}

/// With the volume of the streams mounted too.
fn on_second_volume(
    verb: &Scene,
    place: &Place,
    mounted: &Mounted,
    watch: Watch<'_>,
) -> Result<Outcome, Failure> {
    let uri = format!("nbd+unix:///{}?socket={}", beside::VOLUME, place.path("nbd.sock").display());
    let second = Mounted::past_the_page_cache(&place.path("beside"), &uri, true)?;
    let done = on_database(verb, place, mounted, Some(&second), watch);
    ended(done, second.unmount(), "the second file system")
}

/// With PostgreSQL running.
fn on_database(
    verb: &Scene,
    place: &Place,
    mounted: &Mounted,
    second: Option<&Mounted>,
    watch: Watch<'_>,
) -> Result<Outcome, Failure> {
    (watch.say)("creating and starting a PostgreSQL cluster there");
    let cluster = Cluster::of(mounted.point(), &place.directory)?;
    cluster.create()?;
    let sessions = verb.load.options(None).users + verb.beside.streams() + verb.jobs + 10;
    let settings = [
        format!("shared_buffers={}kB", verb.buffers.0 >> 10),
        format!("max_connections={sessions}"),
        "max_wal_size=1GB".to_owned(),
        "checkpoint_timeout=5min".to_owned(),
        "log_checkpoints=on".to_owned(),
        // A vacuum would take 64 MB, more than the control group may leave.
        "autovacuum_work_mem=4MB".to_owned(),
        "track_io_timing=on".to_owned(),
    ];
    let memory = MemoryGroup::new()?;
    let server = memory.holding(|| cluster.start_with(&settings))?;
    let done = measured(verb, place, &cluster, second, &memory, watch);
    // More memory than it had is free for its end.
    let unlimited = memory.limit(None);
    ended(done, unlimited.and(server.stop()), "PostgreSQL")
}

/// The load itself.
fn measured(
    verb: &Scene,
    place: &Place,
    cluster: &Cluster,
    second: Option<&Mounted>,
    memory: &MemoryGroup,
    watch: Watch<'_>,
) -> Result<Outcome, Failure> {
    let address = address(cluster)?;
    let options = PrepareOptions { scale: verb.size.scale(true)?, jobs: verb.jobs, seed: 1 };
    let prepared = prepare(&address, &options, watch)?;
    let array = Array::of(&place.array())?;
    let ask = beside::of_volume(&array, "lun0");
    if let Some(second) = second {
        verb.beside.prepare(cluster, second.point(), verb.jobs, watch)?;
    }
    let load = verb.load.options(None);
    let of_user = match options.scale.load() {
        LoadName::OrderEntry => MEMORY_OF_USER,
        LoadName::Brokerage => MEMORY_OF_BROKERAGE_USER,
        LoadName::DecisionSupport => MEMORY_OF_STREAM,
    };
    let limit = verb.database_memory.unwrap_or(ByteCount(
        verb.buffers.0
            + MEMORY_MORE.0
            + of_user.0 * u64::from(load.users)
            + MEMORY_OF_SCAN.0 * u64::from(verb.beside.streams()),
    ));
    match memory.is_effective() {
        true => (watch.say)(&format!("PostgreSQL and its page cache get {limit} of memory")),
        false => (watch.say)("the page cache is not limited: this system has no control groups of memory"),
    }
    memory.limit(Some(limit.0))?;
    let run = run_load(&address, &load, Some(&ask), watch)?;
    let beside = match run.ended_early {
        true => Vec::new(),
        false => verb.beside.measure(place, cluster, &load, watch)?,
    };
    memory.limit(None)?;
    // After an early end of the run, the check would end early too.
    let watch = if run.ended_early { Watch::none() } else { watch };
    let check = check(&address, None, watch)?;
    Ok(Outcome { prepared, run, beside, check })
}

/// The database of the load.
fn address(cluster: &Cluster) -> Result<Address, Failure> {
    let dsn = format!("host={} user=postgres dbname=postgres", cluster.socket().display());
    Ok(Address::resolve(Some(&dsn), |_| None)?)
}

/// What was done with something, and how that ended. What failed first is the cause.
fn ended<T>(done: Result<T, Failure>, ending: Result<(), ProgramError>, what: &str) -> Result<T, Failure> {
    match (done, ending) {
        (done, Ok(())) => done,
        (Ok(_), Err(error)) => Err(Failure::Run(format!("cannot end {what}: {error}"))),
        (Err(failure), Err(error)) => {
            tracing::warn!("cannot end {what}: {error}");
            Err(failure)
        }
    }
}

/// This program.
fn program() -> Result<Command, Failure> {
    let path = std::env::current_exe();
    let path =
        path.map_err(|error| Failure::Run(format!("cannot find this program: {error}; reinstall it")))?;
    Ok(Command::new(path))
}

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Failure {
        match error {
            ProgramError::Missing { .. } | ProgramError::NeedsRoot(_) => Failure::input(error),
            error => Failure::run(error),
        }
    }
}
