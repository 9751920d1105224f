//! `cargo xtask bench rebuild`: how long the rebuild of one lost drive takes, by the number of drives in the pool. Every
//! drive holds the same amount; chunklets of one drive are spread over all others, and so are the spares, so
//! twice the drives should take half the time. Modelled disks in virtual time, nobody else at work.

use clap::Args;
use tier0_array::Description;
use tier0_array::admin::{AdminReply, AdminRequest};
use tier0_array::simulated::{ModelShelf, build_protected};
use tier0_catalog::Catalog;
use tier0_drive::BlockTarget;
use tier0_units::{Lba, Nanos};
use tier0_world::{PayloadWidth, VirtualRuntime};

use super::{judge_at_most, table};
use crate::error::BenchError;
use crate::machine;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// GiB that each drive holds, of 136
    #[arg(long, default_value_t = 1)]
    gib_per_drive: u64,
}

/// Numbers of drives; each twice the one before.
const DRIVES: [u32; 3] = [8, 16, 32];
/// Twice the drives may take this share of the time: half, and a tenth for what does not divide.
const SHARE_MOST: f64 = 0.55;
/// Columns of a set, so that the work per byte is the same for all.
const SET_SIZE: u32 = 6;
/// A whole extent.
const WRITE_SECTORS: u32 = 2048;

struct Rebuild {
    time: Nanos,
    bytes: u64,
}

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    println!("{}", machine::describe());
    println!(
        "one of N disks (sas-15k-146gb-sff) lost, RAID 6 in sets of {SET_SIZE}, {} GiB held by each; virtual time",
        options.gib_per_drive
    );
    let mut table =
        table(&["drives", "rebuilt MB of data", "time s", "MB/s", "time by that of half the drives"]);
    let mut before: Option<f64> = None;
    let mut shares = Vec::new();
    for drives in DRIVES {
        let rebuild = lose_one(drives, options.gib_per_drive)?;
        let (time_s, megabytes) = (rebuild.time.as_secs_f64(), rebuild.bytes as f64 / 1e6);
        // Per byte: chunklets do not divide evenly.
        let cost = time_s / megabytes;
        let share = before.replace(cost).map(|before| cost / before);
        shares.extend(share);
        table.add_row([
            drives.to_string(),
            format!("{megabytes:.0}"),
            format!("{time_s:.1}"),
            format!("{:.0}", megabytes / time_s),
            share.map_or(String::new(), |share| format!("{share:.2}")),
        ]);
    }
    println!("\n{}", table.trim_fmt());
    let worst = shares.into_iter().fold(0.0, f64::max);
    println!("aimed at: <= {SHARE_MOST} each time: {}", judge_at_most(worst, SHARE_MOST));
    Ok(())
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
    let description = describe(drives, gib_per_drive);
    let mut shelf = ModelShelf::default();
    let prepared = shelf.prepare(&Catalog::embedded(), &description);
    prepared.map_err(|error| BenchError::Failed(error.to_string()))?;
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let world = runtime.world().clone();
    let outcome = runtime.run(async move {
        let array = build_protected(&world, &description, &shelf, |_, drive| drive).await;
        let engine = array.map_err(|error| error.to_string())?.engine;
        // Only what was written is rebuilt.
        let volume = engine.volumes()[0].clone();
        let sectors = volume.info().sectors.0;
        for at in (0..sectors).step_by(WRITE_SECTORS as usize) {
            let buf = world.buffer(WRITE_SECTORS.min((sectors - at) as u32)).freeze();
            volume.write(Lba(at), buf, false).await.map_err(|error| error.to_string())?;
        }
        engine.drain().await.map_err(|error| error.to_string())?;
        // The first drives hold the log too, and less data.
        let drive = engine.status().await.pools[0].drives.last().map(|drive| drive.name.clone());
        let drive = drive.expect("the pool has drives");
        let began = world.now();
        let reply = engine.administer(AdminRequest::DriveFail { drive }).await;
        if let AdminReply::Refused(reason) = reply {
            return Err(reason);
        }
        let mut bytes = 0;
        loop {
            world.sleep(Nanos::from_millis(100)).await;
            let status = engine.status().await;
            let pool = &status.pools[0];
            match &pool.rebuild {
                Some(rebuild) => {
                    let time = (world.now() - began).as_secs_f64();
                    bytes = (rebuild.rate_bytes_per_s as f64 * time) as u64;
                }
                None if pool.sets.degraded == 0 => break,
                None => {}
            }
        }
        Ok::<Rebuild, String>(Rebuild { time: world.now() - began, bytes })
    });
    outcome.map_err(BenchError::Failed)
}
