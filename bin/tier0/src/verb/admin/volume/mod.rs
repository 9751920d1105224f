//! `tier0 volume`: volumes of a running array; [`list`] also shows those of one that is not running.

mod list;
mod pin;

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use tier0_api::{AdminRequest, VolumePlace};
use tier0_units::{ByteCount, WriteCache};

use self::list::VolumeList;
use self::pin::{range, until};
use crate::failure::Failure;
use crate::verb::asking::{Agreement, Answering, carry_out};
use crate::verb::settings;

const EXAMPLES: &str = "\
Examples:
  tier0 volume list array.toml
      all volumes with size, usage, caches and connections
  tier0 volume create array.toml logs --size 16MiB --thin
      a volume that takes space at the first write
  tier0 volume clone array.toml logs test
      a writable point-in-time copy; it shares space until either is written
  tier0 volume resize array.toml logs --size 24MiB
      make it larger
  tier0 volume shrink array.toml logs --size 20MiB --yes
      make it smaller; data beyond the new size is lost
  tier0 volume rename array.toml logs redo
      give it another name; clients stay connected
  tier0 volume set array.toml redo cache.write=volatile
      acknowledge from memory; the host must flush
  tier0 volume set array.toml redo cache.read=off cache.write=on
      no read cache; writes are acknowledged when the log has them
  tier0 volume set array.toml redo place=auto
      hot parts of it lie on flash, the rest on disks
  tier0 volume pin array.toml redo --range 0..4GiB --to fast --until 8h
      keep this part on flash until then
  tier0 volume unpin array.toml redo --range 0..4GiB
      let the tier decide again
  tier0 volume migrate array.toml redo --group flash
      move it to another group of RAID sets, online; migrating it back cancels that
  tier0 volume set array.toml redo iops.max=5000 mbps.max=200 burst=10
      ceilings per second over all clients; unused budget of 10 s may be used later
  tier0 volume set array.toml redo iops.max=none mbps.max=none
      no ceilings
  tier0 volume set array.toml redo weight=50
      five times the usual share of other volumes, while writers are delayed
  tier0 volume delete array.toml redo --force --yes
      disconnect clients that use it, then delete it";

/// Volumes of a running array.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Volume {
    /// List volumes with size, usage, caches and connections
    #[command(after_help = list::EXAMPLES)]
    List(VolumeList),
    /// Create a volume, which is served at once
    #[command(after_help = EXAMPLES)]
    Create(VolumeCreate),
    /// Clone a thin volume online (crash-consistent)
    #[command(after_help = EXAMPLES)]
    Clone(VolumeClone),
    /// Make a volume larger
    #[command(after_help = EXAMPLES)]
    Resize(VolumeResize),
    /// Make a volume smaller; data beyond its new size is lost
    #[command(after_help = EXAMPLES)]
    Shrink(VolumeShrink),
    /// Give a volume another name; clients stay connected
    #[command(after_help = EXAMPLES)]
    Rename(VolumeRename),
    /// Delete a volume and all its data
    #[command(after_help = EXAMPLES)]
    Delete(VolumeDelete),
    /// Switch a volume's caches, set its ceilings or its weight, or say where it lies, online
    #[command(after_help = EXAMPLES)]
    Set(VolumeSettings),
    /// Move a volume and its clones to another group of RAID sets, online
    #[command(after_help = EXAMPLES)]
    Migrate(VolumeMigrate),
    /// Keep a part of a volume on flash, or off it
    #[command(after_help = EXAMPLES)]
    Pin(VolumePin),
    /// End pins of a part of a volume
    #[command(after_help = EXAMPLES)]
    Unpin(VolumeUnpin),
}

/// A volume of an array.
#[derive(Args, Debug)]
struct OfVolume {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume
    volume: String,
}

/// A volume to be.
#[derive(Args, Debug)]
pub(crate) struct VolumeCreate {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume's name, which is also the name of its NBD export
    name: String,
    /// Its size
    #[arg(long)]
    size: ByteCount,
    /// Pool (required if the array has several)
    #[arg(long)]
    pool: Option<String>,
    /// Group of RAID sets to place it on [default: the pool's first]
    #[arg(long)]
    group: Option<String>,
    /// Allocate space at the first write instead of now
    #[arg(long)]
    thin: bool,
    /// When writes are acknowledged: durable, volatile or off
    #[arg(long, default_value = "durable")]
    write_cache: WriteCache,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
}

/// A volume to be with what another one holds.
#[derive(Args, Debug)]
pub(crate) struct VolumeClone {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The volume to clone, a thin one
    volume: String,
    /// The clone's name, which is also the name of its NBD export
    name: String,
    #[command(flatten)]
    answering: Answering,
}

/// A volume's new size, larger than before.
#[derive(Args, Debug)]
pub(crate) struct VolumeResize {
    #[command(flatten)]
    of: OfVolume,
    /// Its new size, not below its present one
    #[arg(long)]
    size: ByteCount,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
}

/// A volume's new size, smaller than before.
#[derive(Args, Debug)]
pub(crate) struct VolumeShrink {
    #[command(flatten)]
    of: OfVolume,
    /// Its new size, below its present one; shrink the file system on it first
    #[arg(long)]
    size: ByteCount,
    /// Disconnect connected clients; otherwise the volume is not shrunk while clients are connected
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
}

/// A volume and its new name.
#[derive(Args, Debug)]
pub(crate) struct VolumeRename {
    #[command(flatten)]
    of: OfVolume,
    /// Its new name, which is also the name of its NBD export
    name: String,
    #[command(flatten)]
    answering: Answering,
}

/// A volume that goes.
#[derive(Args, Debug)]
pub(crate) struct VolumeDelete {
    #[command(flatten)]
    of: OfVolume,
    /// Disconnect clients that use it
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
    #[command(flatten)]
    of: OfVolume,
    /// cache.read=on|off; cache.write=durable|volatile|off|on (on is durable; off destages dirty data before the command
    /// returns); iops.max=N|none, mbps.max=N|none (10^6 bytes per second), burst=SECONDS|none: ceilings of what clients get;
    /// weight=1..100: what it gets in comparison with others while writers are delayed (10 if never set);
    /// place=auto|fast|slow, in a pool with groups of flash and of disks
    #[arg(value_name = "KEY=VALUE", required = true)]
    settings: Vec<String>,
    #[command(flatten)]
    answering: Answering,
}

/// A volume that is to be of another group.
#[derive(Args, Debug)]
pub(crate) struct VolumeMigrate {
    #[command(flatten)]
    of: OfVolume,
    /// The group of RAID sets, of the same pool; "tier0 pool tier --rate" limits how fast it moves
    #[arg(long)]
    group: String,
    #[command(flatten)]
    answering: Answering,
}

/// A part of a volume that is to lie in one group.
#[derive(Args, Debug)]
pub(crate) struct VolumePin {
    #[command(flatten)]
    of: OfVolume,
    /// The part, from the first offset to before the second, as in 0..4GiB
    #[arg(long, value_name = "A..B", value_parser = range)]
    range: Range<u64>,
    /// The group: fast, or slow for the volume's own
    #[arg(long, value_parser = ["fast", "slow"])]
    to: String,
    /// When the pin ends: after a time, as in 8h, or at a UTC time, as in 2026-11-24T18:00 [default: never]
    #[arg(long, value_parser = until)]
    until: Option<u64>,
    #[command(flatten)]
    answering: Answering,
}

/// A part of a volume of which pins end.
#[derive(Args, Debug)]
pub(crate) struct VolumeUnpin {
    #[command(flatten)]
    of: OfVolume,
    /// The part, as in 0..4GiB [default: all of it]
    #[arg(long, value_name = "A..B", value_parser = range)]
    range: Option<Range<u64>>,
    #[command(flatten)]
    answering: Answering,
}

/// Does what a volume verb asks.
pub(crate) fn volume(verb: &Volume) -> Result<(), Failure> {
    let none = Agreement::default();
    let (array, request, answering, agreement) = match verb {
        Volume::List(verb) => return list::run(verb),
        Volume::Create(verb) => {
            let VolumeCreate { array, name, size, pool, group, thin, write_cache, agreement, answering } =
                verb;
            let (pool, name) = (pool.clone(), name.clone());
            let (size, thin, write_cache) = (*size, *thin, *write_cache);
            let request =
                AdminRequest::VolumeCreate { pool, name, size, thin, write_cache, group: group.clone() };
            (array, request, answering, *agreement)
        }
        Volume::Clone(VolumeClone { array, volume, name, answering }) => {
            let request = AdminRequest::VolumeClone { volume: volume.clone(), name: name.clone() };
            (array, request, answering, none)
        }
        Volume::Resize(VolumeResize { of: OfVolume { array, volume }, size, agreement, answering }) => {
            let request = AdminRequest::VolumeResize { volume: volume.clone(), size: *size };
            (array, request, answering, *agreement)
        }
        Volume::Shrink(VolumeShrink {
            of: OfVolume { array, volume },
            size,
            force,
            agreement,
            answering,
        }) => {
            let request = AdminRequest::VolumeShrink { volume: volume.clone(), size: *size, force: *force };
            (array, request, answering, *agreement)
        }
        Volume::Rename(VolumeRename { of: OfVolume { array, volume }, name, answering }) => {
            let request = AdminRequest::VolumeRename { volume: volume.clone(), name: name.clone() };
            (array, request, answering, none)
        }
        Volume::Delete(VolumeDelete { of: OfVolume { array, volume }, force, agreement, answering }) => {
            let request = AdminRequest::VolumeDelete { volume: volume.clone(), force: *force };
            (array, request, answering, *agreement)
        }
        Volume::Set(verb) => return set(verb),
        Volume::Pin(VolumePin { of: OfVolume { array, volume }, range, to, until, answering }) => {
            let place = if to == "fast" { VolumePlace::Fast } else { VolumePlace::Slow };
            let (from, to) = (ByteCount(range.start), ByteCount(range.end));
            let until_unix_s = until.unwrap_or(0);
            let request = AdminRequest::VolumePin { volume: volume.clone(), from, to, place, until_unix_s };
            (array, request, answering, none)
        }
        Volume::Migrate(VolumeMigrate { of: OfVolume { array, volume }, group, answering }) => {
            let request = AdminRequest::VolumeMigrate { volume: volume.clone(), group: group.clone() };
            (array, request, answering, none)
        }
        Volume::Unpin(VolumeUnpin { of: OfVolume { array, volume }, range, answering }) => {
            let range = range.clone().unwrap_or(0..u64::MAX);
            let (from, to) = (ByteCount(range.start), ByteCount(range.end));
            (array, AdminRequest::VolumeUnpin { volume: volume.clone(), from, to }, answering, none)
        }
    };
    carry_out(array, &request, *answering, agreement)
}

/// Sets what is said of a volume: its caches, then its ceilings.
fn set(
    VolumeSettings { of: OfVolume { array, volume }, settings, answering }: &VolumeSettings,
) -> Result<(), Failure> {
    let change = settings::of_volume(settings)?;
    let carry_out_one = |request| carry_out(array, &request, *answering, Agreement::default());
    change.requests(volume).into_iter().try_for_each(carry_out_one)
}
