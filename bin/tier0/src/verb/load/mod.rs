//! `tier0 load`: drives a load against an NBD export, a file or device, or an array in virtual time.
//!
//! Invariant: nothing is written to a target that may hold data unless the user says `--overwrite`.

mod histogram;
mod options;
mod target;

use std::path::Path;
use std::rc::Rc;

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use tier0_array::Description;
use tier0_drive::{BlockTarget, DriveHandle, FileMedium};
use tier0_nbd::client::{Client, ClientError, ClientOptions, list};
use tier0_nbd::protocol::NbdUri;
use tier0_nbd::protocol::handshake::Refusal;
use tier0_workload::spec::LoadSpec;
use tier0_workload::stats::{LoadReport, Progress};
use tier0_world::World;

use self::options::LoadOptions;
use self::target::Target;
use crate::cli::Global;
use crate::driving::{REFRESH, drive, live_line, real_world, show_on, verdict};
use crate::failure::Failure;
use crate::output::{json, print};
use crate::signals::Signals;
use crate::twin::Twin;
use crate::verb::catalog::CatalogSource;

const EXAMPLES: &str = "\
Examples:
  tier0 load nbd://localhost/lun0 --queue-depth 32 --time 30s
  tier0 load 'nbd+unix:///lun0?socket=/run/tier0.sock' --read 70 --overwrite
  tier0 load /dev/sdb --block 64KiB --pattern sequential
  tier0 load disk.img --read 50 --verify --overwrite --ios 100000
  tier0 load nbd://localhost/lun0 --rate 5000 --warm-up 10s --json
  tier0 load array.toml --read 70 --users 64     the array it describes, in virtual time; nothing real is touched
  tier0 load nbd://localhost/lun0 --load oltp.toml --overwrite";

/// Drives a load and reports throughput and response times.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Load {
    /// What to load: nbd://HOST[:PORT]/EXPORT, nbd+unix:///EXPORT?socket=PATH, a file, a block device, or an array
    /// file (.toml), whose array is simulated
    #[arg(value_name = "TARGET")]
    target: String,
    #[command(flatten)]
    options: LoadOptions,
    /// Allow writes to a target that may hold data; what they hit is lost
    #[arg(long)]
    overwrite: bool,
    /// Connections to an NBD server
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,
    /// The volume of an array file [default: its first]
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    #[command(flatten)]
    catalog: CatalogSource,
    /// Print a histogram of the latencies too
    #[arg(long, conflicts_with = "json")]
    histogram: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result for JSON.
#[derive(Serialize)]
struct Outcome<'a> {
    target: &'a str,
    #[serde(flatten)]
    report: &'a LoadReport,
}

/// Runs the load.
pub(crate) fn run(verb: &Load, global: &Global) -> Result<(), Failure> {
    let load = verb.options.load()?;
    let signals = Signals::catch()?;
    let bar = live_line(global.quiet == 0);
    let report = match Target::parse(&verb.target)? {
        Target::Nbd(uri) => on_nbd(verb, uri, load, signals, &bar),
        Target::File(path) => on_file(verb, &path, load, signals, &bar),
        Target::Array(path) => on_array(verb, &path, load, signals, &bar),
    };
    bar.finish_and_clear();
    let report = report?;
    if verb.json {
        print(&json(&Outcome { target: &verb.target, report: &report }))?;
    } else {
        let histogram = if verb.histogram { histogram::bars(&report.all.histogram) } else { String::new() };
        print(&format!("{}\n{}{histogram}", verb.target, report.table()))?;
    }
    verdict(&report)
}

fn on_nbd(
    verb: &Load,
    uri: NbdUri,
    load: LoadSpec,
    signals: Signals,
    bar: &ProgressBar,
) -> Result<LoadReport, Failure> {
    let runtime = real_world()?;
    let world = runtime.world().clone();
    let options = ClientOptions { connections: usize::from(verb.connections), ..ClientOptions::default() };
    let consent = target::Consent::of(&load, verb.overwrite);
    let listener = show_on(bar);
    runtime.run(async move {
        let client = match Client::connect(&world, &uri, &options).await {
            Ok(client) => client,
            Err(ClientError::Refused(refusal)) => return Err(refused(&world, &uri, &refusal).await),
            Err(error) => return Err(Failure::run(error)),
        };
        consent.check_nbd(&uri, client.export())?;
        let report = on_target(&world, client.clone(), load, &signals, listener).await;
        client.close().await;
        report
    })
}

/// A server that refuses an export usually tells which ones it has.
async fn refused(world: &World, uri: &NbdUri, refusal: &Refusal) -> Failure {
    let remedy = match list(world, &uri.address).await {
        Ok(exports) if !exports.is_empty() => {
            let names: Vec<_> = exports.iter().map(|export| format!("{:?}", export.name)).collect();
            format!("it offers {}", names.join(", "))
        }
        _ => "ask whoever runs it".to_owned(),
    };
    Failure::Run(format!("{refusal}; {remedy}"))
}

fn on_file(
    verb: &Load,
    path: &Path,
    load: LoadSpec,
    signals: Signals,
    bar: &ProgressBar,
) -> Result<LoadReport, Failure> {
    let medium = FileMedium::open(path)?;
    target::Consent::of(&load, verb.overwrite).check_file(path)?;
    if !medium.is_direct() {
        tracing::warn!(?path, "the file system refuses direct I/O; this measures the page cache too");
    }
    let runtime = real_world()?;
    let world = runtime.world().clone();
    let drive = medium.drive(&world).map_err(Failure::run)?;
    let listener = show_on(bar);
    runtime.run(async move { on_target(&world, DriveHandle::new(drive), load, &signals, listener).await })
}

fn on_array(
    verb: &Load,
    path: &Path,
    load: LoadSpec,
    signals: Signals,
    bar: &ProgressBar,
) -> Result<LoadReport, Failure> {
    let description = Description::read(path).map_err(Failure::input)?;
    let twin = Twin::new(&verb.catalog.load()?, description)?;
    twin.load(verb.volume.as_deref(), load, &signals, show_on(bar))
}

async fn on_target<T: BlockTarget + 'static>(
    world: &World,
    target: T,
    load: LoadSpec,
    signals: &Signals,
    listener: impl FnMut(&Progress) + 'static,
) -> Result<LoadReport, Failure> {
    drive(world, Rc::new(target), load, signals, REFRESH, listener).await
}
