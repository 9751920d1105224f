//! What a tier is worth: an array of disks and flash in virtual time, whose hot extents move to flash while a load goes on.
//!
//! It starts with all data on disks; then its volume is placed by policy, as `tier0 volume set` does, and each row shows five
//! seconds, in which the tier decides once. In virtual time nothing depends on the machine: all rows are the same everywhere.
//!
//! Invariants: nothing is written outside of memory; all figures are counted by the modelled array.

use std::rc::Rc;

use futures_util::future::join;
use serde::Serialize;
use tier0_api::{AdminReply, AdminRequest, TierIo, VolumePlace};
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::{ModelShelf, SimulatedArray, build};
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_stats::IoStats;
use tier0_units::{ByteCount, Nanos};
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{Arrival, ClosedLoop, LoadSpec, Pattern, RunLimits, StreamSpec, ThinkTime};
use tier0_world::{PayloadWidth, VirtualRuntime, World};

use super::{COLUMNS, paragraph};
use crate::control::misunderstood;
use crate::driving::verdict;
use crate::failure::Failure;
use crate::output::{print, thousands};
use crate::signals::Signals;

const DISK: &str = "nl-7k2";
const DISKS: usize = 4;
const FLASH: &str = "ssd-sata";
const VOLUME: &str = "lun0";
/// So large that its data are scattered over the disks, and that their buffers do not hold what is hot.
const VOLUME_SIZE: ByteCount = ByteCount::gib(64);
/// What nine tenths of the requests go to, in pieces all over the volume.
const HOT: ByteCount = ByteCount::mib(128);
const PIECE: ByteCount = ByteCount::mib(1);
const HOT_PERCENT: f64 = 90.0;
const READ_PERCENT: f64 = 70.0;
/// Users who think: with flash they have all that they ask for, and the simulation is not the longer for it.
const USERS: u32 = 32;
const THINK: Nanos = Nanos::from_millis(20);
/// A row; the tier decides as often.
const ROW: Nanos = Nanos::from_secs(5);
const ROWS_ON_DISKS: u64 = 3;
const ROWS: u64 = 20;
/// The load goes on for so long after the last look, so that no look finds it at its end.
const SLACK: Nanos = Nanos::from_millis(300);

/// The result for JSON.
#[derive(Serialize)]
pub(super) struct Tier {
    /// The disks, in the catalogue.
    disks: &'static str,
    /// How many.
    disks_count: usize,
    /// The drives of the fast group, in the catalogue.
    flash: &'static str,
    /// The volume.
    volume_bytes: u64,
    /// What is hot of it.
    hot_bytes: u64,
    /// Five seconds each, the first ones on disks alone.
    rows: Vec<Row>,
}

/// What the volume did in five seconds, and where its data lay at their end.
#[derive(Clone, Serialize)]
struct Row {
    /// Its end, in seconds since the start.
    second: f64,
    /// Requests per second.
    iops: f64,
    /// The mean latency of reads.
    read_ns_mean: Option<u64>,
    /// Their 99th percentile.
    read_ns_p99: Option<u64>,
    /// The mean latency of writes.
    write_ns_mean: Option<u64>,
    /// What of the volume lies in the fast group.
    on_flash_bytes: u64,
    /// Extents that moved to it.
    promoted: u64,
    /// Extents that gave way.
    demoted: u64,
    /// The share of the reads from drives that flash answered; none before the volume is placed.
    reads_on_flash: Option<f64>,
}

/// Simulates it, with rows on stdout if `shown`.
///
/// # Errors
/// What goes wrong; [`Failure::Interrupted`] where a signal came.
pub(super) fn show(shown: bool, signals: &Signals) -> Result<Tier, Failure> {
    if shown {
        print(&introduction())?;
    }
    let catalog = Catalog::embedded();
    let description = Description::parse(&text(), "the demo's array").map_err(Failure::input)?;
    let mut shelf = ModelShelf::default();
    shelf.prepare(&catalog, &description)?;
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let array = runtime.run(build(&world, &description, &shelf, Born::Full, |_, drive| drive))?;
    let signals = signals.clone();
    let rows = runtime.run(async move { run(&world, array, shown, &signals).await })?;
    if shown {
        print(&summary(&rows))?;
    }
    let (volume_bytes, hot_bytes) = (VOLUME_SIZE.0, HOT.0);
    Ok(Tier { disks: DISK, disks_count: DISKS, flash: FLASH, volume_bytes, hot_bytes, rows })
}

/// The load, and beside it what is shown.
async fn run(
    world: &World,
    array: SimulatedArray,
    shown: bool,
    signals: &Signals,
) -> Result<Vec<Row>, Failure> {
    let SimulatedArray { engine, volumes, .. } = array;
    let volume = Rc::new(volumes[0].clone());
    let loading = LoadRun::new(world, volume, load()).map_err(Failure::input)?;
    let stop = loading.stop_handle();
    let watching = async {
        let watched = watch(world, &engine, shown, signals).await;
        if watched.is_err() {
            stop.stop();
        }
        watched
    };
    let (report, rows) = join(loading.run(), watching).await;
    let rows = rows?;
    verdict(&report)?;
    Ok(rows)
}

async fn watch(world: &World, engine: &Engine, shown: bool, signals: &Signals) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut last = Look::at(engine).await?;
    let say = |text: &str| {
        if shown {
            // Where stdout is closed, the summary says so.
            let _ = print(text);
        }
    };
    say(&header());
    for number in 0..ROWS {
        if number == ROWS_ON_DISKS {
            say(&format!("  $ tier0 volume set array.toml {VOLUME} place=auto\n"));
            let place = AdminRequest::VolumePlace { volume: VOLUME.to_owned(), place: VolumePlace::Auto };
            match engine.administer(place).await {
                AdminReply::Done(_) => (),
                AdminReply::Refused(told) | AdminReply::Held(told) | AdminReply::Failed(told) => {
                    return Err(Failure::Run(told));
                }
                _ => return Err(misunderstood()),
            }
        }
        world.sleep(ROW).await;
        if signals.raised() {
            return Err(Failure::Interrupted);
        }
        let now = Look::at(engine).await?;
        let row = Row::between(&last, &now);
        say(&row.text());
        rows.push(row);
        last = now;
    }
    Ok(rows)
}

/// What the array has counted up to a moment.
struct Look {
    at: Nanos,
    io: IoStats,
    tier: TierIo,
}

impl Look {
    async fn at(engine: &Engine) -> Result<Look, Failure> {
        let report = engine.io_report().await;
        let at = Nanos(report.at_ns);
        let pool = report.pools.into_iter().next().ok_or_else(misunderstood)?;
        let io = pool.volumes.into_iter().next().ok_or_else(misunderstood)?.io;
        Ok(Look { at, io, tier: pool.tier.unwrap_or_default() })
    }
}

impl Row {
    fn between(before: &Look, now: &Look) -> Row {
        let io = now.io.since(&before.io);
        let tier = now.tier.since(&before.tier);
        let nanos = |latency: Option<Nanos>| latency.map(|latency| latency.0);
        Row {
            second: now.at.as_secs_f64(),
            iops: (io.read.count + io.write.count) as f64 / now.at.saturating_sub(before.at).as_secs_f64(),
            read_ns_mean: nanos(io.read.mean()),
            read_ns_p99: nanos(io.read.latencies.quantile(0.99)),
            write_ns_mean: nanos(io.write.mean()),
            on_flash_bytes: tier.fast_promoted_bytes,
            promoted: tier.moves.promoted,
            demoted: tier.moves.demoted,
            reads_on_flash: tier.reads_on_fast(),
        }
    }

    fn text(&self) -> String {
        let latency = |nanos: Option<u64>| nanos.map_or_else(String::new, |nanos| Nanos(nanos).to_string());
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let flash = self.reads_on_flash.unwrap_or_default();
        line([
            &format!("{:.0}", self.second),
            &thousands(self.iops),
            &latency(self.read_ns_mean),
            &latency(self.read_ns_p99),
            &latency(self.write_ns_mean),
            &ByteCount(self.on_flash_bytes).to_string(),
            &(self.promoted + self.demoted).to_string(),
            &percent(flash),
            &percent(1.0 - flash),
        ])
    }
}

fn text() -> String {
    format!(
        "[array]\nname = \"demo-tier\"\n\
         [[drive]]\nname = \"disk{{n}}\"\ncount = {DISKS}\nmodel = \"{DISK}\"\n\
         [[drive]]\nname = \"ssd{{n}}\"\ncount = 2\nmodel = \"{FLASH}\"\n\
         [[pool]]\nname = \"pool0\"\nlog_drives = [\"ssd*\"]\nextent = \"{PIECE}\"\n\
         [[pool.group]]\nname = \"disks\"\ndrives = [\"disk*\"]\nraid = \"raid10\"\nset_size = {DISKS}\n\
         [[pool.group]]\nname = \"flash\"\ndrives = [\"ssd*\"]\nraid = \"raid1\"\nset_size = 2\n\
         [[volume]]\nname = \"{VOLUME}\"\nsize = \"{VOLUME_SIZE}\"\ngroup = \"disks\"\n"
    )
}

fn load() -> LoadSpec {
    let space_percent = HOT.0 as f64 / VOLUME_SIZE.0 as f64 * 100.0;
    let stream = StreamSpec {
        read_percent: READ_PERCENT,
        pattern: Pattern::HotCold { access_percent: HOT_PERCENT, space_percent },
        scatter: Some(PIECE),
        arrival: Arrival::ClosedLoop(ClosedLoop {
            users: USERS,
            think_time: ThinkTime::Exponential(THINK),
            ..ClosedLoop::default()
        }),
        ..StreamSpec::default()
    };
    LoadSpec::single(stream, RunLimits::time(Nanos(ROW.0 * ROWS) + SLACK))
}

fn introduction() -> String {
    let text = format!(
        "What a tier is worth, on {DISKS} x {DISK} as raid10 and 2 x {FLASH} as raid1, in virtual time: predicted, and the same on \
         every machine. The load: 8 KiB, {READ_PERCENT:.0} % reads, {USERS} users who think for {THINK}; {HOT_PERCENT:.0} % of the \
         requests go to {HOT} of the {VOLUME_SIZE}, in pieces of {PIECE} all over the volume. There are no caches for reads; the \
         write log lies on flash. Once the volume is placed, the tier moves its hot extents every five seconds, no faster than \
         the load tolerates."
    );
    format!("\n{}\n\n", paragraph(&text))
}

fn header() -> String {
    format!("{:>77}\n", "reads answered by")
        + &line(["second", "IOPS", "read", "p99", "write", "on flash", "moved", "flash", "disks"])
}

fn line(cells: [&str; 9]) -> String {
    let [second, iops, read, p99, write, on_flash, moved, flash, disks] = cells;
    format!(
        " {second:>6}  {iops:>7}  {read:>7}  {p99:>7}  {write:>7}  {on_flash:>8}  {moved:>5}  {flash:>6}  {disks:>6}\n"
    )
}

/// The last row of the disks beside the last row.
fn summary(rows: &[Row]) -> String {
    let (Some(disks), Some(tier)) = (rows.get(ROWS_ON_DISKS as usize - 1), rows.last()) else {
        return String::new();
    };
    let means = disks.read_ns_mean.zip(tier.read_ns_mean).filter(|(_, tier)| *tier > 0);
    let faster = means.map_or_else(String::new, |(disks, tier)| {
        format!(": reads are {:.1} times as fast as from disks alone", disks as f64 / tier as f64)
    });
    let text = format!(
        "Of the volume's {VOLUME_SIZE}, {} lie on flash{faster}. \"tier0 tier plan\" says for an array of yours how much flash \
         would serve how much of its I/O.",
        ByteCount(tier.on_flash_bytes)
    );
    format!("{}\n{}\n", "─".repeat(COLUMNS - 1), paragraph(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_fits_a_terminal() {
        let row = Row {
            second: 100.0,
            iops: 123_456.0,
            read_ns_mean: Some(99_900_000),
            read_ns_p99: Some(99_900_000),
            write_ns_mean: Some(99_900_000),
            on_flash_bytes: 1023 << 20,
            promoted: 10_000,
            demoted: 0,
            reads_on_flash: Some(1.0),
        };
        let rows = vec![row.clone(); ROWS as usize];
        for text in [introduction(), header(), row.text(), summary(&rows)] {
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        }
    }
}
