//! `cargo xtask bench recovery`: how long tier0 takes to serve again after it was killed with a full log, by the size of
//! the volume: it should depend on the log alone.

use clap::Args;

use super::served::{OnFiles, Served, Tables};
use super::{judge_at_most, table, through_nbd};
use crate::error::{BenchError, need};
use crate::spread::Spread;
use crate::{clock, fio, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    files: OnFiles,
}

/// Sizes of the volume in MiB; all of it holds data.
const VOLUMES_MIB: [u32; 3] = [1024, 2048, 4096];
/// The part that is written before the kill: the same in each volume, so that the logs hold as much.
const WRITTEN_MIB: u32 = VOLUMES_MIB[0];
const LOG_MIB: u32 = 256;
/// "In seconds": no more than this.
const SECONDS_MOST: f64 = 5.0;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    println!("{}", machine::describe());
    println!(
        "tier0 killed after random writes of 8 KiB to {WRITTEN_MIB} MiB, and started again; a mirror of two files, log \
         {LOG_MIB} MiB, {} rounds",
        options.files.rounds
    );
    let mut table = table(&["volume MiB", "log in use MB", "serves again after s"]);
    let mut worst: f64 = 0.0;
    for volume_mib in VOLUMES_MIB {
        let pool = format!("raid = \"raid1\"\nlog = \"{LOG_MIB}MiB\"");
        let volume = format!("size = \"{volume_mib}MiB\"");
        let array = Served::create(
            options.files.place.dir.as_deref(),
            (2, volume_mib + volume_mib / 2 + 3 * LOG_MIB),
            Tables { pool: &pool, volume: &volume, ..Tables::default() },
        )?;
        through_nbd::fill(&array.serve()?, volume_mib)?;
        let (mut used, mut took) = (Vec::new(), Vec::new());
        for _ in 0..options.files.rounds {
            let server = array.serve()?;
            let mut arguments = fio::random_writes_8k(64);
            arguments.push(format!("--io_size={}m", 4 * LOG_MIB));
            arguments.extend(through_nbd::target(&server, WRITTEN_MIB));
            fio::run(&arguments)?;
            let status = array.status()?;
            let log = &status["pools"][0]["log"]["used_bytes"];
            used.push(log.as_f64().ok_or_else(|| BenchError::Failed("no log in the status".into()))? / 1e6);
            drop(server);
            let began = clock::wall_s();
            let server = array.serve()?;
            took.push(clock::wall_s() - began);
            drop(server);
        }
        let took = Spread::of(took);
        worst = worst.max(took.range().1);
        table.add_row([volume_mib.to_string(), format!("{:.0}", Spread::of(used)), format!("{took:.2}")]);
    }
    println!("\nmedian (least to greatest) of the rounds\n{}", table.trim_fmt());
    println!("aimed at: <= {SECONDS_MOST} s: {}", judge_at_most(worst, SECONDS_MOST));
    Ok(())
}
