//! `cargo xtask bench rebuild`: how long the rebuild of one lost drive takes, by the number of drives in the pool. Every
//! drive holds the same amount; chunklets of one drive are spread over all others, and so are the spares, so twice the
//! drives should take half the time. Modelled disks in virtual time, without other load; and once more while hosts
//! read, to whom it should yield.

use std::rc::Rc;

use clap::Args;
use tier0_api::{AdminReply, AdminRequest, PoolStatus};
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::{ModelShelf, build};
use tier0_block::BlockTarget;
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::{Lba, Nanos};
use tier0_workload::run::LoadRun;
use tier0_workload::spec::{Arrival, LoadSpec, OpenLoop, RunLimits, StreamSpec};
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, VirtualRuntime, World};

use super::{judge_at_most, table};
use crate::error::BenchError;
use crate::machine;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// GiB that each drive holds, of 136; with few of them, the chunklets of the lost drive do not divide evenly
    #[arg(long, default_value_t = 6)]
    gib_per_drive: u64,
}

/// Numbers of drives; each twice the one before.
const DRIVES: [u32; 3] = [8, 16, 32];
/// Twice the drives may take this share of the time: half, and a tenth of it for what does not divide.
const SHARE_MOST: f64 = 0.55;
/// Columns of a set, so that the work per byte is the same for all.
const SET_SIZE: u32 = 6;
/// A whole extent.
const WRITE_SECTORS: u32 = 2048;

/// Drives of the pool that hosts read from meanwhile.
const READ_DRIVES: u32 = 16;
/// Reads per second and drive: a quarter of what such a disk can do.
const READS_PER_DRIVE: f64 = 45.0;
/// How long they are measured.
const READ_TIME: Nanos = Nanos::from_secs(10);

struct Rebuild {
    time: Nanos,
    bytes: u64,
}

/// What hosts see before and during a rebuild.
struct Meanwhile {
    before: LoadReport,
    during: LoadReport,
    rate_bytes_per_s: u64,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    println!("{}", machine::describe());
    println!(
        "one of N disks (sas-15k-146gb-sff) lost, RAID 6 in sets of {SET_SIZE}, {} GiB held by each; virtual time",
        options.gib_per_drive
    );
    let mut table = table(&[
        "drives",
        "rebuilt MB of data",
        "time s",
        "MB/s",
        "time by that of half the drives",
        "per byte",
    ]);
    let mut before: Option<(f64, f64)> = None;
    let mut shares = Vec::new();
    for drives in DRIVES {
        let rebuild = lose_one(drives, options.gib_per_drive)?;
        let (time_s, megabytes) = (rebuild.time.as_secs_f64(), rebuild.bytes as f64 / 1e6);
        // Where there are more drives, the log takes less of the last one's share of the data: so per byte, too.
        let cost = time_s / megabytes;
        let share = before.replace((time_s, cost)).map(|before| (time_s / before.0, cost / before.1));
        shares.extend(share.map(|(of_time, _)| of_time));
        let shown = |share: Option<f64>| share.map_or(String::new(), |share| format!("{share:.2}"));
        table.add_row([
            drives.to_string(),
            format!("{megabytes:.0}"),
            format!("{time_s:.1}"),
            format!("{:.0}", megabytes / time_s),
            shown(share.map(|(of_time, _)| of_time)),
            shown(share.map(|(_, per_byte)| per_byte)),
        ]);
    }
    println!("\n{}", table.trim_fmt());
    let worst = shares.into_iter().fold(0.0, f64::max);
    println!("aimed at: <= {SHARE_MOST} each time: {}", judge_at_most(worst, SHARE_MOST));
    report_meanwhile(&read_meanwhile(options.gib_per_drive)?);
    Ok(())
}

fn report_meanwhile(meanwhile: &Meanwhile) {
    println!(
        "\n{READ_DRIVES} drives, and hosts read 8 KiB at random, {READS_PER_DRIVE} times a second and drive; \
         {} s each",
        READ_TIME.as_secs_f64()
    );
    let mut table = table(&["", "reads/s", "mean ms", "p50 ms", "p99 ms"]);
    for (name, report) in [("whole", &meanwhile.before), ("rebuilding", &meanwhile.during)] {
        let ms = |ns: f64| format!("{:.2}", ns / 1e6);
        table.add_row([
            name.to_owned(),
            format!("{:.0}", report.all.iops),
            ms(report.all.latency_ns_mean),
            ms(report.all.latency_ns_p50 as f64),
            ms(report.all.latency_ns_p99 as f64),
        ]);
    }
    println!("{}", table.trim_fmt());
    println!("rebuilt meanwhile: {:.0} MB/s", meanwhile.rate_bytes_per_s as f64 / 1e6);
}

fn describe(drives: u32, gib_per_drive: u64) -> Description {
    // Four of six columns are data.
    let volume = gib_per_drive * u64::from(drives) * 4 / 6;
    let text = format!(
        "[array]\nname = \"bench\"\n[[drive]]\nname = \"d{{n}}\"\ncount = {drives}\nmodel = \"sas-15k-146gb-sff\"\n\
         [[pool]]\nname = \"pool0\"\nraid = \"raid6\"\nset_size = {SET_SIZE}\nspare_drives = 1\nchunklet = \"32MiB\"\nextent = \"1MiB\"\n\
         [[volume]]\nname = \"lun0\"\nsize = \"{volume}GiB\"\nwrite_cache = \"durable\"\n"
    );
    Description::parse(&text, "the benchmark's array").expect("the benchmark's array is right")
}

fn lose_one(drives: u32, gib_per_drive: u64) -> Result<Rebuild, BenchError> {
    with_filled(drives, gib_per_drive, async move |world, engine| {
        let began = world.now();
        fail_last(&engine).await?;
        let mut bytes = 0;
        loop {
            world.sleep(Nanos::from_millis(100)).await;
            let pool = pool_of(&engine).await;
            match &pool.rebuild {
                Some(rebuild) => {
                    let time = (world.now() - began).as_secs_f64();
                    bytes = (rebuild.rate_bytes_per_s as f64 * time) as u64;
                }
                None if pool.sets.degraded == 0 => break,
                None => {}
            }
        }
        Ok(Rebuild { time: world.now() - began, bytes })
    })
}

fn read_meanwhile(gib_per_drive: u64) -> Result<Meanwhile, BenchError> {
    with_filled(READ_DRIVES, gib_per_drive, async move |world, engine| {
        let before = read(&world, &engine).await?;
        fail_last(&engine).await?;
        let during = read(&world, &engine).await?;
        let rebuild = pool_of(&engine).await.rebuild;
        let rate_bytes_per_s = rebuild.ok_or("the rebuild was over too soon")?.rate_bytes_per_s;
        Ok(Meanwhile { before, during, rate_bytes_per_s })
    })
}

/// Random reads of the whole volume, for a while.
async fn read(world: &World, engine: &Engine) -> Result<LoadReport, String> {
    let arrival = Arrival::OpenLoop(OpenLoop::at(READS_PER_DRIVE * f64::from(READ_DRIVES)));
    let load = LoadSpec::single(StreamSpec { arrival, ..StreamSpec::default() }, RunLimits::time(READ_TIME));
    let volume = Rc::new(engine.volumes()[0].clone());
    let report = LoadRun::new(world, volume, load).map_err(|error| error.to_string())?.run().await;
    if report.is_clean() { Ok(report) } else { Err(format!("a run ended by {:?}", report.ended_by)) }
}

async fn pool_of(engine: &Engine) -> PoolStatus {
    engine.status().await.pools.remove(0)
}

/// The last drive fails. The first hold the log too, and less data.
async fn fail_last(engine: &Engine) -> Result<(), String> {
    let drive = pool_of(engine).await.drives.last().map(|drive| drive.name.clone());
    let drive = drive.expect("the pool has drives");
    match engine.administer(AdminRequest::DriveFail { drive }).await {
        AdminReply::Refused(reason) | AdminReply::Failed(reason) => Err(reason),
        _ => Ok(()),
    }
}

/// Runs `work` on an array whose one volume is written, to the last block, to its place: only what was written is rebuilt.
fn with_filled<T: 'static>(
    drives: u32,
    gib_per_drive: u64,
    work: impl AsyncFnOnce(World, Engine) -> Result<T, String> + 'static,
) -> Result<T, BenchError> {
    let description = describe(drives, gib_per_drive);
    let mut shelf = ModelShelf::default();
    let prepared = shelf.prepare(&Catalog::embedded(), &description);
    prepared.map_err(|error| BenchError::Failed(error.to_string()))?;
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let outcome = runtime.run(async move {
        let array = build(&world, &description, &shelf, Born::Empty, |_, drive| drive).await;
        let engine = array.map_err(|error| error.to_string())?.engine;
        let volume = engine.volumes()[0].clone();
        let sectors = volume.info().sectors.0;
        for at in (0..sectors).step_by(WRITE_SECTORS as usize) {
            let buf = world.buffer(WRITE_SECTORS.min((sectors - at) as u32)).freeze();
            volume.write(Lba(at), buf, false).await.map_err(|error| error.to_string())?;
        }
        engine.drain().await.map_err(|error| error.to_string())?;
        work(world, engine).await
    });
    outcome.map_err(BenchError::Failed)
}
