//! The verbs that ask a running array to do something: `tier0 drive`, `pool`, `scrub` and `volume`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tier0_control::admin::AdminRequest;
use tier0_description::Description;
use tier0_pool::{DriveClass, Reserve};
use tier0_units::{ByteCount, WriteCache};

use super::asking::{Agreement, Answering, carry_out};
use super::recover::{self, Recover};
use super::settings;
use crate::failure::Failure;

const DRIVE_EXAMPLES: &str = "\
Examples:
  tier0 drive add array.toml --name d9 --path d9.img --size 64MiB
      add a drive; its chunklets are spares until \"tier0 pool grow\"
  tier0 drive replace array.toml d1 --name d8 --path d8.img --size 64MiB
      copy what d1 holds to a new drive and the others, then forget d1
  tier0 drive fail array.toml d2 --yes
      take a failing drive out; spares take over
  tier0 drive remove array.toml d2
      copy what it holds to the others, then forget it

The array must be served (tier0 serve array.toml).
\"tier0 status array.toml\" shows how a rebuild goes.";

/// In one line it is wider than 80 columns.
const REPLACE_USAGE: &str = "\
tier0 drive replace [OPTIONS] --name <NAME> --path <PATH>
                           <ARRAY.TOML> <DRIVE>";

const REJOIN_EXAMPLES: &str = "\
Examples:
  tier0 drive rejoin array.toml d1
      take back d1, which was lost and answers again; what it lacks is rebuilt

The array must be served (tier0 serve array.toml).
\"tier0 status array.toml\" shows how a rebuild goes.";

const POOL_EXAMPLES: &str = "\
Examples:
  tier0 pool grow array.toml
      after tier0 drive add: use the new drives, spread the data over all
  tier0 pool restripe array.toml --rate 100MiB
      spread the data over all drives, at most this much per second
  tier0 pool restripe array.toml --stop
      stop; what has moved has moved
  tier0 pool log array.toml --drives ssd0,ssd1
      have the write log on these drives, which were added
  tier0 pool flash-cache array.toml 200GiB --drives ssd0,ssd1
      keep what is read from disks on these flash drives too; 0 takes it away
  tier0 pool reserve array.toml 2%
      leave so much free of thin volumes, until the next start
  tier0 pool set array.toml cache.read=off
      read everything from the drives, as to measure them
  tier0 pool set array.toml cache.read=on cache.write=on
      each volume uses the caches as it is set
  tier0 pool recover array.toml
      the last resort, while no server serves it: what would be lost";

const SCRUB_EXAMPLES: &str = "\
Examples:
  tier0 scrub array.toml
      verify everything that is stored, repair what is wrong
  tier0 scrub array.toml --rate 200MiB
      at most this much per second
  tier0 scrub array.toml --stop
      stop; the next scrub goes on from here, by itself when the server starts

A scrub that the end of the server interrupts goes on by itself at its next
start. Of a drive that was taken back, everything is read again then.
\"tier0 status\" shows how far it is and what it has found, by drive and, of pages
that no copy has, by volume; --json has all of them.";

const VOLUME_EXAMPLES: &str = "\
Examples:
  tier0 volume create array.toml logs --size 16MiB --thin
      a volume that takes space at the first write
  tier0 volume clone array.toml logs test
      a new volume with what it holds now, which takes space where either is written
  tier0 volume resize array.toml logs --size 24MiB
      make it larger
  tier0 volume set array.toml logs cache.write=volatile
      acknowledge from memory; the host must flush
  tier0 volume set array.toml logs cache.read=off cache.write=on
      no read cache; writes are acknowledged when the log has them
  tier0 volume delete array.toml logs --force --yes
      clients that use it are cut off";

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
    /// Take back a drive that was lost and answers again
    #[command(after_help = REJOIN_EXAMPLES)]
    Rejoin(RejoinedDrive),
    /// Copy what a drive holds to the others, then forget it
    #[command(after_help = DRIVE_EXAMPLES)]
    Remove(RemovedDrive),
    /// Add a drive, copy what another one holds to it and the others, then forget that one
    #[command(after_help = DRIVE_EXAMPLES, override_usage = REPLACE_USAGE)]
    Replace(ReplacedDrive),
}

/// A drive that is back.
#[derive(Args, Debug)]
pub(crate) struct RejoinedDrive {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The drive's name
    drive: String,
    /// Where it lies, if not where the array file has it, or where it was last
    #[arg(long)]
    path: Option<PathBuf>,
    /// Also if it was served elsewhere without the others: asks first, what it holds of that is lost
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
}

/// One of the array's drives.
#[derive(Args, Debug)]
pub(crate) struct NamedDrive {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The drive's name
    drive: String,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
}

/// A drive that is to leave.
#[derive(Args, Debug)]
pub(crate) struct RemovedDrive {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The drive's name
    drive: String,
    /// Take it out of service at once; until what it held is rebuilt, the array is less redundant. Of a lost drive: give
    /// up what it may hold of pages of which no copy is right
    #[arg(long, conflicts_with = "stop")]
    force: bool,
    /// Let it stay: what is being copied is copied to its end, and no more is begun
    #[arg(long)]
    stop: bool,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
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
    /// The group of sets that it is for, where the pool has several
    #[arg(long)]
    group: Option<String>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
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
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
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
    /// Overwrite what it holds; asks first where that is something
    #[arg(long)]
    force: bool,
    /// What kind of drive it is, flash or disk, if not what the device says
    #[arg(long)]
    class: Option<DriveClass>,
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
    /// Move the write log to other drives
    #[command(after_help = POOL_EXAMPLES)]
    Log(MovedLog),
    /// Keep what is read from disks on flash too, or change how much of it
    #[command(after_help = POOL_EXAMPLES)]
    FlashCache(SizedFlashCache),
    /// Change what thin volumes leave free, until the next start
    #[command(after_help = POOL_EXAMPLES)]
    Reserve(Reserved),
    /// Switch the caches of all volumes of a pool while they are used
    #[command(after_help = POOL_EXAMPLES)]
    Set(PoolSettings),
    /// The last resort: say what could be assembled of what no start opens, or do it
    #[command(after_help = recover::EXAMPLES)]
    Recover(Recover),
}

/// How large the flash cache is to be, and where.
#[derive(Args, Debug)]
pub(crate) struct SizedFlashCache {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Its size over all of its drives, rounded up to whole chunklets; 0 takes it away
    size: ByteCount,
    /// The drives that are to hold it, equal parts each; those that do, or else all flash drives of the pool
    #[arg(long, value_delimiter = ',')]
    drives: Vec<String>,
    /// The pool, where there are several
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    answering: Answering,
}

/// Where the write log is to lie.
#[derive(Args, Debug)]
pub(crate) struct MovedLog {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The drives, as many as the log has copies
    #[arg(long, value_delimiter = ',', required = true)]
    drives: Vec<String>,
    /// The pool, where there are several
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    answering: Answering,
}

/// What is to be kept.
#[derive(Args, Debug)]
pub(crate) struct Reserved {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// A share or a size with its unit, as in 5% or 20GiB; 0 keeps nothing
    reserve: Reserve,
    /// The pool, where there are several
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    answering: Answering,
}

/// What a pool is to do from now on.
#[derive(Args, Debug)]
pub(crate) struct PoolSettings {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// cache.read=on|off, cache.write=on|off; with cache.write=off, what was written is in its place when the answer comes
    #[arg(value_name = "KEY=VALUE", required = true)]
    settings: Vec<String>,
    /// Only this pool
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    answering: Answering,
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
    /// Move no more columns to make room for sets
    #[arg(long)]
    stop: bool,
    #[command(flatten)]
    answering: Answering,
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
    #[command(flatten)]
    answering: Answering,
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
    #[command(flatten)]
    answering: Answering,
}

/// Volumes of a running array.
#[derive(Debug, Subcommand)]
#[command(after_help = VOLUME_EXAMPLES)]
pub(crate) enum Volume {
    /// Create a volume, which is served at once
    #[command(after_help = VOLUME_EXAMPLES)]
    Create(VolumeCreate),
    /// Clone a thin volume while it is used: the clone holds what a power cut now would have left
    #[command(after_help = VOLUME_EXAMPLES)]
    Clone(VolumeClone),
    /// Make a volume larger
    #[command(after_help = VOLUME_EXAMPLES)]
    Resize(VolumeResize),
    /// Delete a volume and all that it holds
    #[command(after_help = VOLUME_EXAMPLES)]
    Delete(VolumeDelete),
    /// Switch a volume's caches while it is used
    #[command(after_help = VOLUME_EXAMPLES)]
    Set(VolumeSettings),
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
    /// The group of sets that it lies on; the pool's first if left out
    #[arg(long)]
    group: Option<String>,
    /// Take space at the first write, not now
    #[arg(long)]
    thin: bool,
    /// When writes are acknowledged: durable, volatile or off
    #[arg(long, default_value = "durable")]
    write_cache: WriteCache,
    #[command(flatten)]
    answering: Answering,
}

/// A volume to be with what another one holds.
#[derive(Args, Debug)]
pub(crate) struct VolumeClone {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume, a thin one
    volume: String,
    /// The clone's name, which is its NBD export's too
    name: String,
    #[command(flatten)]
    answering: Answering,
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
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
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
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
}

/// What a volume is to do from now on.
#[derive(Args, Debug)]
pub(crate) struct VolumeSettings {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume
    volume: String,
    /// cache.read=on|off, cache.write=durable|volatile|off|on (on is durable); with off, what was written is in its place
    /// when the answer comes
    #[arg(value_name = "KEY=VALUE", required = true)]
    settings: Vec<String>,
    #[command(flatten)]
    answering: Answering,
}

/// Where an array file has a drive; none where it cannot be read, or does not name it.
fn place_in_file(array: &Path, drive: &str) -> Option<PathBuf> {
    let description = Description::read(array).ok()?;
    let named = description.drives.into_iter().find(|named| named.name == drive)?;
    absolute(&named.path?).ok()
}

/// Does what a drive verb asks.
pub(crate) fn drive(verb: &Drive) -> Result<(), Failure> {
    match verb {
        Drive::Fail(NamedDrive { array, drive, agreement, answering }) => {
            let request = AdminRequest::DriveFail { drive: drive.clone() };
            carry_out(array, &request, *answering, *agreement)
        }
        Drive::Rejoin(RejoinedDrive { array, drive, path, force, agreement, answering }) => {
            let path = path.as_deref().map(absolute).transpose()?;
            let in_file = place_in_file(array, drive);
            let request = AdminRequest::DriveRejoin { drive: drive.clone(), path, in_file, force: *force };
            carry_out(array, &request, *answering, *agreement)
        }
        Drive::Remove(RemovedDrive { array, drive, force, stop, agreement, answering }) => {
            let request = AdminRequest::DriveRemove { drive: drive.clone(), force: *force, stop: *stop };
            carry_out(array, &request, *answering, *agreement)
        }
        Drive::Add(NewDrive { array, pool, group, place, agreement, answering }) => {
            let Place { name, path, size, force, class } = place;
            let (pool, name, path) = (pool.clone(), name.clone(), absolute(path)?);
            let group = group.clone();
            let request =
                AdminRequest::DriveAdd { pool, name, path, size: *size, force: *force, group, class: *class };
            carry_out(array, &request, *answering, *agreement)
        }
        Drive::Replace(ReplacedDrive { array, drive, place, agreement, answering }) => {
            let Place { name, path, size, force, class } = place;
            let (name, path, drive) = (name.clone(), absolute(path)?, drive.clone());
            let request =
                AdminRequest::DriveReplace { drive, name, path, size: *size, force: *force, class: *class };
            carry_out(array, &request, *answering, *agreement)
        }
    }
}

/// Does what a pool verb asks.
pub(crate) fn pool(verb: &Pool) -> Result<(), Failure> {
    let (array, request, answering) = match verb {
        Pool::Grow(Grow { array, pool, stop, answering }) => {
            (array, AdminRequest::PoolGrow { pool: pool.clone(), stop: *stop }, answering)
        }
        Pool::Log(MovedLog { array, drives, pool, answering }) => {
            (array, AdminRequest::PoolLog { pool: pool.clone(), drives: drives.clone() }, answering)
        }
        Pool::FlashCache(SizedFlashCache { array, size, drives, pool, answering }) => {
            let (pool, drives) = (pool.clone(), drives.clone());
            (array, AdminRequest::PoolFlashCache { pool, size: *size, drives }, answering)
        }
        Pool::Reserve(Reserved { array, reserve, pool, answering }) => {
            let request = AdminRequest::PoolReserve { pool: pool.clone(), reserve: *reserve };
            (array, request, answering)
        }
        Pool::Restripe(Restripe { array, pool, rate, stop, answering }) => {
            let request = AdminRequest::PoolRestripe { pool: pool.clone(), rate: *rate, stop: *stop };
            (array, request, answering)
        }
        Pool::Set(PoolSettings { array, settings, pool, answering }) => {
            let (read, write) = settings::of_pool(settings)?;
            (array, AdminRequest::PoolCache { pool: pool.clone(), read, write }, answering)
        }
        Pool::Recover(verb) => return recover::run(verb),
    };
    carry_out(array, &request, *answering, Agreement::default())
}

/// Starts or stops a scrub.
pub(crate) fn scrub(verb: &Scrub) -> Result<(), Failure> {
    let pool = verb.pool.clone();
    let request = match verb.stop {
        true => AdminRequest::ScrubStop { pool },
        false => AdminRequest::ScrubStart { pool, rate: verb.rate },
    };
    carry_out(&verb.array, &request, verb.answering, Agreement::default())
}

/// Does what a volume verb asks.
pub(crate) fn volume(verb: &Volume) -> Result<(), Failure> {
    let none = Agreement::default();
    let (array, request, answering, agreement) = match verb {
        Volume::Create(VolumeCreate { array, name, size, pool, group, thin, write_cache, answering }) => {
            let (pool, name) = (pool.clone(), name.clone());
            let (size, thin, write_cache) = (*size, *thin, *write_cache);
            let request =
                AdminRequest::VolumeCreate { pool, name, size, thin, write_cache, group: group.clone() };
            (array, request, answering, none)
        }
        Volume::Clone(VolumeClone { array, volume, name, answering }) => {
            let request = AdminRequest::VolumeClone { volume: volume.clone(), name: name.clone() };
            (array, request, answering, none)
        }
        Volume::Resize(VolumeResize { array, volume, size, agreement, answering }) => {
            let request = AdminRequest::VolumeResize { volume: volume.clone(), size: *size };
            (array, request, answering, *agreement)
        }
        Volume::Delete(VolumeDelete { array, volume, force, agreement, answering }) => {
            let request = AdminRequest::VolumeDelete { volume: volume.clone(), force: *force };
            (array, request, answering, *agreement)
        }
        Volume::Set(VolumeSettings { array, volume, settings, answering }) => {
            let (read, write) = settings::of_volume(settings)?;
            let request = AdminRequest::VolumeCache { volume: volume.clone(), read, write };
            (array, request, answering, none)
        }
    };
    carry_out(array, &request, *answering, agreement)
}

/// The server may run in another directory.
fn absolute(path: &std::path::Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::Input(format!("{path:?} is no path: {error}; correct it")))
}
