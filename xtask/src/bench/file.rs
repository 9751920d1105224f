//! `cargo xtask bench file`: random 8 KiB requests at queue depth 32 to a file with O_DIRECT, by fio's io_uring engine on
//! the file itself, through tier0's NBD on an array whose one drive is that file, and, where it is installed, through
//! qemu-nbd with io_uring: what the hop through NBD costs another server on the same machine.
//!
//! What it brings to keep the machine's processors awake, as `array.keep_awake` does, is told by further runs of fio's on
//! the file.
//!
//! Virtual drives change their speed from second to second. So runs are short and many, and each run through a server
//! lies between two of fio's on the file, whose mean it is compared with.

use std::path::Path;
use std::process::Command;

use clap::Args;
use tier0_world::real;

use super::served::{Place, Served, Tables};
use super::{judge_at_least, table, through_nbd};
use crate::error::{BenchError, need};
use crate::server::{Address, Server};
use crate::spread::Spread;
use crate::{fio, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// Rounds
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Seconds per run
    #[arg(long, default_value_t = 1)]
    seconds: u32,
    /// Size of the volume in MiB
    #[arg(long, default_value_t = 2048)]
    mib: u32,
}

/// The share of qemu-nbd's IOPS that is aimed at.
const RATIO_LEAST: f64 = 2.0;
/// The peer's name.
const QEMU: &str = "qemu-nbd through NBD";
/// Room for metadata, the log and a whole number of chunklets, in MiB.
const SPARE_MIB: u32 = 512;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("fio", "fio")?;
    let pool = "raid = \"raid0\"\nset_size = 1\nstripe_unit = \"64KiB\"";
    // What is measured is the way to the file.
    let volume = format!("size = \"{}MiB\"\nread_cache = false", options.mib);
    let tables = Tables { pool, volume: &volume, ..Tables::default() };
    let array = Served::create(options.place.dir.as_deref(), (1, options.mib + SPARE_MIB), tables)?;
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
        options.mib, options.rounds, options.seconds
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
    let ask = |target: &[String]| fio::run(&[fio::random_8k(100, options.seconds), target.to_vec()].concat());
    let mut contenders = vec![Contender::of("tier0 through NBD", through_nbd)];
    contenders.extend(through_peer.map(|target| Contender::of(QEMU, target)));
    match real::keep_awake() {
        Ok(_) => {
            let contender = Contender::of("fio io_uring, kept awake", on_file.to_vec());
            contenders.push(Contender { awake: true, ..contender });
        }
        Err(error) => println!("processors cannot be kept awake here: {error}"),
    }
    let mut direct = vec![ask(&on_file)?];
    for _ in 0..options.rounds {
        for contender in &mut contenders {
            let awake = contender.awake.then(real::keep_awake).transpose();
            let awake = awake.map_err(BenchError::system("processors cannot be kept awake"))?;
            contender.runs.push(ask(&contender.target)?);
            drop(awake);
            direct.push(ask(&on_file)?);
        }
    }
    report(&direct, &contenders);
    Ok(())
}

/// One of those that take turns with fio on the file.
struct Contender {
    name: &'static str,
    target: Vec<String>,
    /// The processors are kept awake for it.
    awake: bool,
    runs: Vec<fio::Outcome>,
}

impl Contender {
    fn of(name: &'static str, target: Vec<String>) -> Contender {
        Contender { name, target, awake: false, runs: Vec::new() }
    }
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
    Server::start("qemu-nbd", &mut command, &Address::Unix(socket.to_owned()), "")
}

/// `direct` are the runs on the file: one, and one after each run of a contender.
fn report(direct: &[fio::Outcome], contenders: &[Contender]) {
    let mut table = table(&["", "IOPS", "p50 us", "p99 us", "p99.9 us"]);
    let all = contenders.iter().map(|contender| (contender.name, contender.runs.as_slice()));
    for (name, runs) in std::iter::once(("fio io_uring", direct)).chain(all) {
        let spread = |figure: &dyn Fn(&fio::Outcome) -> f64| Spread::of(runs.iter().map(figure));
        table.add_row([
            name.to_owned(),
            format!("{:.0}", spread(&|run| run.iops)),
            format!("{:.0}", spread(&|run| run.p50_us)),
            format!("{:.0}", spread(&|run| run.p99_us)),
            format!("{:.0}", spread(&|run| run.p99_9_us)),
        ]);
    }
    println!("\nmedian (least to greatest) of the runs\n{}", table.trim_fmt());
    let iops = |runs: &[fio::Outcome]| runs.iter().map(|run| run.iops).collect::<Vec<_>>();
    let direct = iops(direct);
    for (turn, Contender { name, runs, .. }) in contenders.iter().enumerate() {
        let ratio = Spread::of(against_neighbours(&direct, &iops(runs), turn, contenders.len()));
        let (low, high) = ratio.middle_half();
        println!("{name} / fio io_uring: {ratio:.3} x the IOPS, half of the runs {low:.3} to {high:.3}");
    }
    if let [tier0, peer, ..] = contenders
        && peer.name == QEMU
    {
        let ratio =
            Spread::of(iops(&tier0.runs).into_iter().zip(iops(&peer.runs)).map(|(own, peer)| own / peer));
        println!("{} / {QEMU}: {ratio:.2} x the IOPS, round by round", tier0.name);
        println!("  aimed at: >= {RATIO_LEAST} x: {}", judge_at_least(ratio.median(), RATIO_LEAST));
    }
}

/// Each run of the server whose turn it is by the mean of the runs on the file before and after it.
fn against_neighbours(direct: &[f64], served: &[f64], turn: usize, turns: usize) -> Vec<f64> {
    let neighbours = direct.windows(2).skip(turn).step_by(turns);
    served.iter().zip(neighbours).map(|(iops, around)| 2.0 * iops / (around[0] + around[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_compared_with_those_around_it() {
        // One and two servers that reach half of what the file gives, while that becomes ever less.
        let direct = [8.0, 6.0, 4.0, 2.0, 1.0];
        assert_eq!(against_neighbours(&direct, &[3.5, 2.5, 1.5, 0.75], 0, 1), [0.5; 4]);
        assert_eq!(against_neighbours(&direct, &[3.5, 1.5], 0, 2), [0.5; 2]);
        assert_eq!(against_neighbours(&direct, &[2.5, 0.75], 1, 2), [0.5; 2]);
    }
}
