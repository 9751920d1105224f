//! `cargo xtask bench file`: random 8 KiB requests at queue depth 32 to a file with O_DIRECT, by fio's io_uring engine on
//! the file itself, through tier0's NBD on an array whose one drive is that file, and, where it is installed, through
//! qemu-nbd with io_uring: what the hop through NBD costs another server on the same machine.

use std::path::Path;
use std::process::Command;

use clap::Args;

use super::served::{OnFiles, Served};
use super::{judge_at_least, table, through_nbd};
use crate::error::{BenchError, need};
use crate::server::Server;
use crate::spread::Spread;
use crate::{fio, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    files: OnFiles,
    /// Seconds per run
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Size of the volume in MiB
    #[arg(long, default_value_t = 2048)]
    mib: u32,
}

/// The share of fio's own IOPS that is aimed at.
const RATIO_LEAST: f64 = 0.9;
/// Room for metadata, the log and a whole number of chunklets, in MiB.
const SPARE_MIB: u32 = 512;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    let pool = "raid = \"raid0\"\nset_size = 1\nstripe_unit = \"64KiB\"";
    let volume = format!("size = \"{}MiB\"", options.mib);
    let array = Served::create(options.files.dir.as_deref(), (1, options.mib + SPARE_MIB), pool, &volume)?;
    let file = array.path("d0.img");
    let server = array.serve()?;
    let through_nbd = through_nbd::target(&server, options.mib);
    let on_file = [
        "--ioengine=io_uring".to_owned(),
        "--direct=1".to_owned(),
        "--allow_file_create=0".to_owned(),
        format!("--filename={}", file.display()),
        // The file's first part is metadata and its last may never have been written.
        format!("--offset={}m", SPARE_MIB / 4),
        format!("--size={}m", options.mib - SPARE_MIB / 4),
    ];
    let mut fill = fio::fill();
    fill.extend(through_nbd.clone());
    fio::run(&fill)?;

    println!("{}", machine::describe());
    println!(
        "8 KiB random reads with O_DIRECT, queue depth 32, {} MiB, {} rounds of {} s, in turn",
        options.mib, options.files.rounds, options.seconds
    );
    let peer = start_qemu(&array.path("q"), &file);
    if let Err(error) = &peer {
        println!("without qemu-nbd: {error}");
    }
    let peer = peer.ok();
    let through_peer = peer.as_ref().map(|peer| {
        // The same part of the file that fio reads directly.
        let range = on_file[4..].iter().cloned();
        ["--ioengine=nbd".to_owned(), format!("--uri={}", peer.uri())]
            .into_iter()
            .chain(range)
            .collect::<Vec<_>>()
    });
    let mut rounds = Vec::new();
    for _ in 0..options.files.rounds {
        let ask = |target: &[String]| {
            let mut arguments = fio::random_8k(100, options.seconds);
            arguments.extend_from_slice(target);
            fio::run(&arguments)
        };
        let mut round = vec![ask(&on_file)?, ask(&through_nbd)?];
        if let Some(through_peer) = &through_peer {
            round.push(ask(through_peer)?);
        }
        rounds.push(round);
    }
    report(&rounds);
    Ok(())
}

/// Reads the file as tier0 does: past the page cache, with io_uring.
fn start_qemu(socket: &Path, file: &Path) -> Result<Server, BenchError> {
    need("qemu-nbd", "qemu-utils")?;
    let mut command = Command::new("qemu-nbd");
    command.args([
        "--format=raw",
        "--read-only",
        "--persistent",
        "--shared=8",
        "--cache=none",
        "--aio=io_uring",
    ]);
    command.arg("--socket").arg(socket).arg(file);
    Server::start("qemu-nbd", &mut command, socket, "")
}

fn report(rounds: &[Vec<fio::Outcome>]) {
    let mut table = table(&["", "IOPS", "p50 us", "p99 us", "p99.9 us"]);
    let contenders = ["fio io_uring", "tier0 through NBD", "qemu-nbd through NBD"];
    for (place, name) in contenders.into_iter().enumerate().take(rounds[0].len()) {
        let spread = |figure: &dyn Fn(&fio::Outcome) -> f64| {
            Spread::of(rounds.iter().map(|runs| figure(&runs[place])))
        };
        table.add_row([
            name.to_owned(),
            format!("{:.0}", spread(&|run| run.iops)),
            format!("{:.0}", spread(&|run| run.p50_us)),
            format!("{:.0}", spread(&|run| run.p99_us)),
            format!("{:.0}", spread(&|run| run.p99_9_us)),
        ]);
    }
    println!("\nmedian (least to greatest) of the rounds\n{}", table.trim_fmt());
    let over = |place: usize| Spread::of(rounds.iter().map(|round| round[1].iops / round[place].iops));
    let ratio = over(0);
    println!("tier0 / fio: {ratio:.2} x the IOPS, round by round");
    println!("  aimed at: >= {RATIO_LEAST} x: {}", judge_at_least(ratio.median(), RATIO_LEAST));
    if rounds[0].len() > 2 {
        println!("tier0 / qemu-nbd: {:.2} x the IOPS, round by round", over(2));
    }
}
