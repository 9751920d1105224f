//! What a load is driven against: an NBD export, a file or device, or an array in virtual time.
//!
//! Invariants: nothing is written to a target that may hold data unless the user says `--overwrite`, and nothing at all to one
//! that the system uses.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;

use clap::Args;
use tier0_description::Description;
use tier0_drive::{DriveHandle, FileMedium, SystemUse};
use tier0_lab::profile::{ProfileError, ProfilePlan, ProfileProgress, ProfileReport, profile};
use tier0_nbd::client::{Client, ClientError, ClientOptions, list};
use tier0_nbd::protocol::handshake::Refusal;
use tier0_nbd::protocol::{ExportInfo, NbdUri};
use tier0_units::ByteCount;
use tier0_workload::spec::LoadSpec;
use tier0_workload::stats::LoadReport;
use tier0_world::{RealRuntime, World};

use crate::driving::{REFRESH, Shown, drive, real_world};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::twin::{ArrayState, Settling, Simulated, Twin};
use crate::unwritten;
use crate::verb::catalog::CatalogSource;

/// Which target, and how.
#[derive(Args, Debug)]
pub(crate) struct TargetOptions {
    /// Target: nbd://HOST[:PORT]/EXPORT, nbd+unix:///EXPORT?socket=PATH, a file, a block device, or an array
    /// file (.toml), whose array is simulated
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Allow writes to a target that may hold data; overwritten data is lost
    #[arg(long, help_heading = "Target")]
    overwrite: bool,
    /// Connections to an NBD server
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Target",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,
    /// The volume of an array file [default: its first]
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    volume: Option<String>,
    /// Read cache size of an array file's array [default: its share of array.memory; no read cache if that is not set]
    #[arg(long, value_name = "SIZE", help_heading = "Target")]
    read_cache: Option<ByteCount>,
    #[command(flatten)]
    catalog: CatalogSource,
}

/// A target that any number of loads can run on, one after the other.
pub(crate) enum Target {
    /// An export of an NBD server.
    Nbd(RealRuntime, Client),
    /// A file or a block device.
    File(RealRuntime, DriveHandle),
    /// An array in virtual time, fresh for every load.
    Array(Box<Twin>, Option<String>),
}

impl Target {
    /// Opens the target for loads that write like `load`, or do not.
    pub(crate) fn open(options: &TargetOptions, load: &LoadSpec) -> Result<Target, Failure> {
        let consent = Consent::of(load, options.overwrite);
        let text = &options.target;
        let is_array = !text.contains("://") && Path::new(text).extension().is_some_and(|end| end == "toml");
        if options.read_cache.is_some() && !is_array {
            let fact = "--read-cache applies only to a modelled array from an array file; remove it: other \
                        targets have their own cache";
            return Err(Failure::Input(fact.to_owned()));
        }
        if text.contains("://") {
            return open_nbd(options, text.parse().map_err(Failure::input)?, consent, load);
        }
        let path = Path::new(text);
        if is_array {
            let catalog = options.catalog.load()?;
            let description = Description::read_with(path, &catalog).map_err(Failure::input)?;
            let twin = Twin::new(&catalog, description, options.read_cache)?;
            return Ok(Target::Array(Box::new(twin), options.volume.clone()));
        }
        open_file(path, &consent, load)
    }

    /// Runs `load` to its end, or until a signal comes. An array in virtual time is settled first as `settling` says, and tells whether
    /// the figures are of a steady state.
    pub(crate) fn run(
        &self,
        load: LoadSpec,
        settling: Settling,
        signals: &Signals,
        shown: Shown,
    ) -> Result<(LoadReport, Option<ArrayState>), Failure> {
        let (owned, listener) = (signals.clone(), shown.listener());
        let report = match self {
            Target::Nbd(runtime, client) => {
                let (world, client) = (runtime.world().clone(), Rc::new(client.clone()));
                runtime.run(async move { drive(&world, client, load, &owned, REFRESH, listener).await })
            }
            Target::File(runtime, file) => {
                let (world, file) = (runtime.world().clone(), Rc::new(file.clone()));
                runtime.run(async move { drive(&world, file, load, &owned, REFRESH, listener).await })
            }
            Target::Array(twin, volume) => {
                let Simulated { report, state } =
                    twin.load(volume.as_deref(), load, settling, signals, shown)?;
                return Ok((report, Some(state)));
            }
        };
        report.map(|report| (report, None))
    }

    /// Searches how many I/Os per second it gives within a latency limit.
    pub(crate) fn profile(
        &self,
        plan: ProfilePlan,
        signals: &Signals,
        shown: Shown,
        progress: impl FnMut(&ProfileProgress) + 'static,
    ) -> Result<ProfileReport, Failure> {
        let profiled = match self {
            Target::Nbd(runtime, client) => {
                let (world, client) = (runtime.world().clone(), Rc::new(client.clone()));
                runtime.run(async move { profile(&world, client, &plan, progress).await })
            }
            Target::File(runtime, file) => {
                let (world, file) = (runtime.world().clone(), Rc::new(file.clone()));
                runtime.run(async move { profile(&world, file, &plan, progress).await })
            }
            Target::Array(twin, name) => twin.profile(name.as_deref(), plan, signals, shown, progress)?,
        };
        profiled.map_err(|error| match error {
            ProfileError::Load(_) => Failure::input(error),
            ProfileError::Ended { .. } if signals.raised() => Failure::Interrupted,
            ProfileError::Ended { .. } => Failure::run(error),
        })
    }

    /// Leaves in good order.
    pub(crate) fn close(self) {
        if let Target::Nbd(runtime, client) = self {
            runtime.run(async move { client.close().await });
        }
    }
}

fn open_nbd(
    options: &TargetOptions,
    uri: NbdUri,
    consent: Consent,
    load: &LoadSpec,
) -> Result<Target, Failure> {
    let runtime = real_world()?;
    let world = runtime.world().clone();
    let connections = usize::from(options.connections);
    let (load, name) = (load.clone(), options.target.clone());
    let options = ClientOptions { connections, ..ClientOptions::default() };
    let client = runtime.run(async move {
        match Client::connect(&world, &uri, &options).await {
            Ok(client) => {
                consent.check_nbd(&uri, client.export())?;
                unwritten::tell(&client, &load, &unwritten::write_first(&name)).await;
                Ok(client)
            }
            Err(ClientError::Refused(refusal)) => Err(refused(&world, &uri, &refusal).await),
            Err(error) => Err(Failure::run(error)),
        }
    })?;
    Ok(Target::Nbd(runtime, client))
}

/// A server that refuses an export usually tells which ones it has.
async fn refused(world: &World, uri: &NbdUri, refusal: &Refusal) -> Failure {
    match list(world, &uri.address).await {
        Ok(exports) if !exports.is_empty() => {
            let names: Vec<_> = exports.iter().map(|export| format!("{:?}", export.name)).collect();
            Failure::Input(format!("{refusal}; available exports: {}", names.join(", ")))
        }
        _ => Failure::Run(format!("{refusal}; ask the server's administrator")),
    }
}

fn open_file(path: &Path, consent: &Consent, load: &LoadSpec) -> Result<Target, Failure> {
    let medium = match consent.writes {
        true => SystemUse::open_unused(path, || Ok(FileMedium::open(path)?), |usage| in_use(path, &usage))?,
        // What the system uses is not to be had alone, and reading does not disturb it.
        false if SystemUse::of(path).is_some() => FileMedium::open_to_read(path)?,
        false => FileMedium::open(path)?,
    };
    consent.check_file(path)?;
    if let Ok(found) = std::fs::metadata(path) {
        unwritten::tell_of_file(&path.display().to_string(), &found, load);
    }
    if !medium.is_direct() {
        tracing::warn!(
            ?path,
            "the file system does not support direct I/O; the figures include the page cache"
        );
    }
    let runtime = real_world()?;
    let drive = medium.drive(runtime.world()).map_err(Failure::run)?;
    Ok(Target::File(runtime, DriveHandle::new(drive)))
}

/// The system itself writes to what a load is to write to.
fn in_use(path: &Path, usage: &SystemUse) -> Failure {
    Failure::Input(format!("the load writes, and {path:?} is used by the system: {usage}, or use --read 100"))
}

/// Whether a load may write where it is sent.
struct Consent {
    writes: bool,
    given: bool,
}

impl Consent {
    /// Of a load, with or without the user's `--overwrite`.
    fn of(load: &LoadSpec, given: bool) -> Consent {
        Consent { writes: load.streams.iter().any(|stream| stream.read_percent < 100.0), given }
    }

    /// A file that occupies no space holds no data; any other file, and any device, may.
    fn check_file(&self, path: &Path) -> Result<(), Failure> {
        let empty = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.blocks() == 0);
        if !self.writes || self.given || empty {
            return Ok(());
        }
        Err(refusal(&path.display().to_string()))
    }

    /// An export may always hold data.
    fn check_nbd(&self, uri: &NbdUri, export: &ExportInfo) -> Result<(), Failure> {
        if self.writes && export.features.read_only {
            let text = format!("{uri} is read-only and the load writes; use --read 100");
            return Err(Failure::Input(text));
        }
        if !self.writes || self.given {
            return Ok(());
        }
        Err(refusal(&uri.to_string()))
    }
}

fn refusal(target: &str) -> Failure {
    Failure::Input(format!(
        "the load writes, and {target} may hold data; add --overwrite to allow data loss, or use --read 100"
    ))
}
