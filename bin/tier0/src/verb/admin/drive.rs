//! `tier0 drive`: drives of a running array.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tier0_api::AdminRequest;
use tier0_control::admin::drive_class;
use tier0_description::Description;
use tier0_pool::DriveClass;
use tier0_units::ByteCount;

use super::absolute;
use crate::failure::Failure;
use crate::verb::asking::{Agreement, Answering, carry_out};

const EXAMPLES: &str = "\
Examples:
  tier0 drive add array.toml --name d9 --path d9.img --size 64MiB
      add a drive; its space is spare until \"tier0 pool grow\"
  tier0 drive replace array.toml d1 --name d8 --path d8.img --size 64MiB
      copy the contents of d1 to a new drive and the others, then remove d1
  tier0 drive fail array.toml d2 --yes
      take a failing drive out; spares take over
  tier0 drive remove array.toml d2
      copy its contents to the other drives, then remove it

The array must be served (tier0 serve array.toml).
\"tier0 status array.toml\" shows the progress of a rebuild.";

/// In one line it is wider than 80 columns.
const REPLACE_USAGE: &str = "\
tier0 drive replace [OPTIONS] --name <NAME> --path <PATH>
                           <ARRAY.TOML> <DRIVE>";

const REJOIN_EXAMPLES: &str = "\
Examples:
  tier0 drive rejoin array.toml d1
      bring back d1, which failed and is online again; stale data is rebuilt

The array must be served (tier0 serve array.toml).
\"tier0 status array.toml\" shows the progress of a rebuild.";

/// Drives of a running array.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Drive {
    /// Fail a drive: take it out of service and rebuild its contents
    #[command(after_help = EXAMPLES)]
    Fail(NamedDrive),
    /// Add a drive to a pool
    #[command(after_help = EXAMPLES)]
    Add(NewDrive),
    /// Bring back a failed drive that is online again
    #[command(after_help = REJOIN_EXAMPLES)]
    Rejoin(RejoinedDrive),
    /// Copy a drive's contents to the other drives, then remove it
    #[command(after_help = EXAMPLES)]
    Remove(RemovedDrive),
    /// Replace a drive: copy its contents to a new drive and the others, then remove it
    #[command(after_help = EXAMPLES, override_usage = REPLACE_USAGE)]
    Replace(ReplacedDrive),
}

/// A drive of an array.
#[derive(Args, Debug)]
struct OfDrive {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The drive's name
    drive: String,
}

/// A drive that is back.
#[derive(Args, Debug)]
pub(crate) struct RejoinedDrive {
    #[command(flatten)]
    of: OfDrive,
    /// File or device of the drive, if not at the path in the array file or its last path
    #[arg(long)]
    path: Option<PathBuf>,
    /// Rejoin it even if it was served separately; asks first, because data written to it meanwhile is lost
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
    #[command(flatten)]
    of: OfDrive,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
}

/// A drive that is to leave.
#[derive(Args, Debug)]
pub(crate) struct RemovedDrive {
    #[command(flatten)]
    of: OfDrive,
    /// Take it out of service at once: the array is less redundant until its contents are rebuilt. Of a failed drive: give
    /// up pages that have no valid copy elsewhere
    #[arg(long, conflicts_with = "stop")]
    force: bool,
    /// Cancel the removal: the running copy is completed and no other is started
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
    /// Pool (required if the array has several)
    #[arg(long)]
    pool: Option<String>,
    /// Group of RAID sets to add it to (required if the pool has several)
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
    /// The drive to replace
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
    /// The new drive's name
    #[arg(long)]
    name: String,
    /// File or device of the new drive
    #[arg(long)]
    path: PathBuf,
    /// Create the file with this size if it does not exist
    #[arg(long)]
    size: Option<ByteCount>,
    /// Overwrite existing data on it; asks first if there is any
    #[arg(long)]
    force: bool,
    /// Drive class, flash or disk, if the device reports the wrong one
    #[arg(long)]
    class: Option<DriveClass>,
}

/// Does what a drive verb asks.
pub(crate) fn drive(verb: &Drive) -> Result<(), Failure> {
    match verb {
        Drive::Fail(NamedDrive { of: OfDrive { array, drive }, agreement, answering }) => {
            let request = AdminRequest::DriveFail { drive: drive.clone() };
            carry_out(array, &request, *answering, *agreement)
        }
        Drive::Rejoin(RejoinedDrive { of: OfDrive { array, drive }, path, force, agreement, answering }) => {
            let path = path.as_deref().map(absolute).transpose()?;
            let in_file = place_in_file(array, drive);
            let request = AdminRequest::DriveRejoin { drive: drive.clone(), path, in_file, force: *force };
            carry_out(array, &request, *answering, *agreement)
        }
        Drive::Remove(RemovedDrive { of: OfDrive { array, drive }, force, stop, agreement, answering }) => {
            let request = AdminRequest::DriveRemove { drive: drive.clone(), force: *force, stop: *stop };
            carry_out(array, &request, *answering, *agreement)
        }
        Drive::Add(NewDrive { array, pool, group, place, agreement, answering }) => {
            let Place { name, path, size, force, class } = place;
            let (pool, name, path) = (pool.clone(), name.clone(), absolute(path)?);
            let group = group.clone();
            let request = AdminRequest::DriveAdd {
                pool,
                name,
                path,
                size: *size,
                force: *force,
                group,
                class: class.map(drive_class),
            };
            carry_out(array, &request, *answering, *agreement)
        }
        Drive::Replace(ReplacedDrive { array, drive, place, agreement, answering }) => {
            let Place { name, path, size, force, class } = place;
            let (name, path, drive) = (name.clone(), absolute(path)?, drive.clone());
            let request = AdminRequest::DriveReplace {
                drive,
                name,
                path,
                size: *size,
                force: *force,
                class: class.map(drive_class),
            };
            carry_out(array, &request, *answering, *agreement)
        }
    }
}

/// Where an array file has a drive; none where it cannot be read, or does not name it.
fn place_in_file(array: &Path, drive: &str) -> Option<PathBuf> {
    let description = Description::read(array).ok()?;
    let named = description.drives.into_iter().find(|named| named.name == drive)?;
    absolute(&named.path?).ok()
}
