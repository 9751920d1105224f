//! The verbs that ask a running array to do something: `tier0 drive`, `pool`, `scrub` and `volume`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tier0_array::admin::{AdminReply, AdminRequest};
use tier0_units::{ByteCount, WriteCache};

use crate::control::ask;
use crate::failure::Failure;
use crate::output::print;

const DRIVE_EXAMPLES: &str = "\
Examples:
  tier0 drive fail array.toml disk3                        take a failing drive out; spares take over
  tier0 drive replace array.toml disk3 --name disk9 --path /dev/sdx
  tier0 drive add array.toml --name disk9 --path /srv/disk9.img --size 20GiB
  tier0 drive remove array.toml disk3                      take a drive out for good

The array must be served (tier0 serve array.toml); \"tier0 status array.toml\" shows how a rebuild goes.";

const POOL_EXAMPLES: &str = "\
Examples:
  tier0 pool grow array.toml            after tier0 drive add: use the new drives and spread the data over all
  tier0 pool restripe array.toml --rate 100MiB   spread the data over all drives, at most this much per second
  tier0 pool restripe array.toml --stop          stop; what has moved has moved";

const SCRUB_EXAMPLES: &str = "\
Examples:
  tier0 scrub array.toml                verify everything that is stored, repair what is wrong
  tier0 scrub array.toml --rate 200MiB  at most this much per second
  tier0 scrub array.toml --stop         stop; the next start goes on from here";

const VOLUME_EXAMPLES: &str = "\
Examples:
  tier0 volume create array.toml logs --size 20GiB --thin
  tier0 volume resize array.toml logs --size 40GiB
  tier0 volume delete array.toml logs --force     clients that use it are cut off
  tier0 volume cache array.toml logs volatile     acknowledge from memory; the host must flush";

/// Drives of a running array.
#[derive(Debug, Subcommand)]
#[command(after_help = DRIVE_EXAMPLES)]
pub(crate) enum Drive {
    /// Take a drive out of service as if it had failed
    #[command(after_help = DRIVE_EXAMPLES)]
    Fail(NamedDrive),
    /// Add a drive to a pool
    #[command(after_help = DRIVE_EXAMPLES)]
    Add(NewDrive),
    /// Take a drive out of service, rebuild what it held on the others, then forget it
    #[command(after_help = DRIVE_EXAMPLES)]
    Remove(NamedDrive),
    /// Put a new drive in another's place
    #[command(after_help = DRIVE_EXAMPLES)]
    Replace(ReplacedDrive),
}

/// One of the array's drives.
#[derive(Args, Debug)]
pub(crate) struct NamedDrive {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The drive's name
    drive: String,
}

/// A drive that the array does not have yet.
#[derive(Args, Debug)]
pub(crate) struct NewDrive {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The pool, where there are several
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// A drive, and the one that takes its place.
#[derive(Args, Debug)]
pub(crate) struct ReplacedDrive {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The drive that goes
    drive: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Args, Debug)]
struct Place {
    /// What the new drive is called
    #[arg(long)]
    name: String,
    /// Its file or device
    #[arg(long)]
    path: PathBuf,
    /// Make the file at this size if it does not exist
    #[arg(long)]
    size: Option<ByteCount>,
    /// Overwrite what it holds
    #[arg(long)]
    force: bool,
}

/// Pools of a running array.
#[derive(Debug, Subcommand)]
#[command(after_help = POOL_EXAMPLES)]
pub(crate) enum Pool {
    /// Use drives that were added, and spread what is stored over all of them
    #[command(after_help = POOL_EXAMPLES)]
    Grow(Grow),
    /// Spread what is stored over all sets evenly
    #[command(after_help = POOL_EXAMPLES)]
    Restripe(Restripe),
}

/// What is to grow.
#[derive(Args, Debug)]
pub(crate) struct Grow {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The pool, where there are several
    #[arg(long)]
    pool: Option<String>,
}

/// What is to be spread.
#[derive(Args, Debug)]
pub(crate) struct Restripe {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The pool, where there are several
    #[arg(long)]
    pool: Option<String>,
    /// Move at most this much per second
    #[arg(long, value_name = "SIZE", conflicts_with = "stop")]
    rate: Option<ByteCount>,
    /// Stop what is going on
    #[arg(long)]
    stop: bool,
}

/// Verifies what is stored.
#[derive(Args, Debug)]
#[command(after_help = SCRUB_EXAMPLES)]
pub(crate) struct Scrub {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Only this pool
    #[arg(long)]
    pool: Option<String>,
    /// Read at most this much per second
    #[arg(long, value_name = "SIZE", conflicts_with = "stop")]
    rate: Option<ByteCount>,
    /// Stop the scrub that is going on
    #[arg(long)]
    stop: bool,
}

/// Volumes of a running array.
#[derive(Debug, Subcommand)]
#[command(after_help = VOLUME_EXAMPLES)]
pub(crate) enum Volume {
    /// Create a volume, which is served at once
    #[command(after_help = VOLUME_EXAMPLES)]
    Create(VolumeCreate),
    /// Make a volume larger
    #[command(after_help = VOLUME_EXAMPLES)]
    Resize(VolumeResize),
    /// Delete a volume and all that it holds
    #[command(after_help = VOLUME_EXAMPLES)]
    Delete(VolumeDelete),
    /// Change when a volume's writes are acknowledged: durable, volatile or off
    #[command(after_help = VOLUME_EXAMPLES)]
    Cache(VolumeCache),
}

/// A volume to be.
#[derive(Args, Debug)]
pub(crate) struct VolumeCreate {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume's name, which is its NBD export's too
    name: String,
    /// Its size
    #[arg(long)]
    size: ByteCount,
    /// The pool, where there are several
    #[arg(long)]
    pool: Option<String>,
    /// Take space at the first write, not now
    #[arg(long)]
    thin: bool,
    /// When writes are acknowledged: durable, volatile or off
    #[arg(long, default_value = "durable")]
    write_cache: WriteCache,
}

/// A volume's new size.
#[derive(Args, Debug)]
pub(crate) struct VolumeResize {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume
    volume: String,
    /// Its size from now on: not less than it has
    #[arg(long)]
    size: ByteCount,
}

/// A volume that goes.
#[derive(Args, Debug)]
pub(crate) struct VolumeDelete {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume
    volume: String,
    /// Cut off clients that are connected to it
    #[arg(long)]
    force: bool,
}

/// A volume's new mode.
#[derive(Args, Debug)]
pub(crate) struct VolumeCache {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume
    volume: String,
    /// durable, volatile or off
    write_cache: WriteCache,
}

/// Does what a drive verb asks.
pub(crate) fn drive(verb: &Drive) -> Result<(), Failure> {
    let (array, request) = match verb {
        Drive::Fail(NamedDrive { array, drive }) => (array, AdminRequest::DriveFail { drive: drive.clone() }),
        Drive::Remove(NamedDrive { array, drive }) => {
            (array, AdminRequest::DriveRemove { drive: drive.clone() })
        }
        Drive::Add(NewDrive { array, pool, place }) => {
            let Place { name, path, size, force } = place;
            let (name, path) = (name.clone(), absolute(path)?);
            (array, AdminRequest::DriveAdd { pool: pool.clone(), name, path, size: *size, force: *force })
        }
        Drive::Replace(ReplacedDrive { array, drive, place }) => {
            let Place { name, path, size, force } = place;
            let (name, path, drive) = (name.clone(), absolute(path)?, drive.clone());
            (array, AdminRequest::DriveReplace { drive, name, path, size: *size, force: *force })
        }
    };
    say(ask(array, &request)?)
}

/// Does what a pool verb asks.
pub(crate) fn pool(verb: &Pool) -> Result<(), Failure> {
    let (array, request) = match verb {
        Pool::Grow(Grow { array, pool }) => (array, AdminRequest::PoolGrow { pool: pool.clone() }),
        Pool::Restripe(Restripe { array, pool, rate, stop }) => {
            (array, AdminRequest::PoolRestripe { pool: pool.clone(), rate: *rate, stop: *stop })
        }
    };
    say(ask(array, &request)?)
}

/// Starts or stops a scrub.
pub(crate) fn scrub(verb: &Scrub) -> Result<(), Failure> {
    let pool = verb.pool.clone();
    let request = match verb.stop {
        true => AdminRequest::ScrubStop { pool },
        false => AdminRequest::ScrubStart { pool, rate: verb.rate },
    };
    say(ask(&verb.array, &request)?)
}

/// Does what a volume verb asks.
pub(crate) fn volume(verb: &Volume) -> Result<(), Failure> {
    let (array, request) = match verb {
        Volume::Create(VolumeCreate { array, name, size, pool, thin, write_cache }) => {
            let (pool, name) = (pool.clone(), name.clone());
            let (size, thin, write_cache) = (*size, *thin, *write_cache);
            (array, AdminRequest::VolumeCreate { pool, name, size, thin, write_cache })
        }
        Volume::Resize(VolumeResize { array, volume, size }) => {
            (array, AdminRequest::VolumeResize { volume: volume.clone(), size: *size })
        }
        Volume::Delete(VolumeDelete { array, volume, force }) => {
            (array, AdminRequest::VolumeDelete { volume: volume.clone(), force: *force })
        }
        Volume::Cache(VolumeCache { array, volume, write_cache }) => {
            (array, AdminRequest::VolumeCache { volume: volume.clone(), write_cache: *write_cache })
        }
    };
    say(ask(array, &request)?)
}

/// The server may run in another directory.
fn absolute(path: &std::path::Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::Input(format!("{path:?} is no path: {error}; correct it")))
}

fn say(reply: AdminReply) -> Result<(), Failure> {
    match reply {
        AdminReply::Done(text) | AdminReply::Refused(text) | AdminReply::Failed(text) => {
            print(&format!("{text}\n"))
        }
        AdminReply::Status(status) => print(&format!("{}\n", status.summary)),
    }
}
