//! `tier0 pool`: pools of a running array.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tier0_api::{AdminRequest, GroupDrive, GroupShape};
use tier0_control::admin::drive_class;
use tier0_pool::{DriveClass, Reserve};
use tier0_units::ByteCount;

use super::absolute;
use super::rate::{Pace, rate_or_none};
use crate::failure::Failure;
use crate::verb::asking::{Agreement, Answering, carry_out};
use crate::verb::recover::{self, Recover};
use crate::verb::settings;

const EXAMPLES: &str = "\
Examples:
  tier0 pool grow array.toml
      after tier0 drive add: use the new drives, rebalance the data
  tier0 pool restripe array.toml --rate 100MiB
      rebalance the data over all drives, at most this much per second
  tier0 pool restripe array.toml --stop
      stop; moved data stays at its new location
  tier0 pool add-group array.toml ssd --raid raid1 --drive a=/dev/sdx,b=/dev/sdy
      add a group of drives, as a tier, or to migrate volumes to
  tier0 pool remove-group array.toml ssd
      move what lies in the group to its volumes' own, then give it up
  tier0 pool log array.toml --drives ssd0,ssd1
      move the write log to these drives, which were added before
  tier0 pool flash-cache array.toml 200GiB --drives ssd0,ssd1
      cache reads from disks on these flash drives; 0 removes the cache
  tier0 pool tier array.toml on --rate 200MiB
      move hot data to flash by itself, at most this much per second
  tier0 pool reserve array.toml 2%
      keep this much space free from thin volumes, until the next start
  tier0 pool set array.toml cache.read=off
      read everything from the drives, for measurements
  tier0 pool set array.toml cache.read=on cache.write=on
      use the caches as each volume's own settings say
  tier0 pool recover array.toml
      last resort, with the server stopped: show what would be lost";

/// Pools of a running array.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Pool {
    /// Use added drives, and rebalance the data over all of them
    #[command(after_help = EXAMPLES)]
    Grow(Grow),
    /// Add a group of RAID sets with its drives, of another level or another kind of drives
    #[command(after_help = EXAMPLES)]
    AddGroup(AddedGroup),
    /// Take a group of RAID sets out of its pool, once what lies in it has moved to its volumes' own groups
    #[command(after_help = EXAMPLES)]
    RemoveGroup(RemovedGroup),
    /// Rebalance the data over all sets
    #[command(after_help = EXAMPLES)]
    Restripe(Restripe),
    /// Move the write log to other drives
    #[command(after_help = EXAMPLES)]
    Log(MovedLog),
    /// Create, resize or remove the flash cache for reads from disks
    #[command(after_help = EXAMPLES)]
    FlashCache(SizedFlashCache),
    /// Switch the performance tier on or off, or limit what it moves
    #[command(after_help = EXAMPLES)]
    Tier(PoolTier),
    /// Change the free-space reserve for thin volumes, until the next start
    #[command(after_help = EXAMPLES)]
    Reserve(Reserved),
    /// Switch the caches of all volumes of a pool, online
    #[command(after_help = EXAMPLES)]
    Set(PoolSettings),
    /// Last resort: assemble a pool that the server refuses to start; a dry run unless asked otherwise
    #[command(after_help = recover::EXAMPLES)]
    Recover(Recover),
}

/// A pool of an array.
#[derive(Args, Debug)]
struct OfPool {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Pool (required if the array has several)
    #[arg(long)]
    pool: Option<String>,
}

/// A group that is to leave its pool.
#[derive(Args, Debug)]
pub(crate) struct RemovedGroup {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The group; no volume may be of it (tier0 volume migrate)
    group: String,
    /// Pool (required if the array has several)
    #[arg(long)]
    pool: Option<String>,
    /// Let a group stay that is leaving
    #[arg(long)]
    cancel: bool,
    #[command(flatten)]
    answering: Answering,
}

/// How large the flash cache is to be, and where.
#[derive(Args, Debug)]
pub(crate) struct SizedFlashCache {
    #[command(flatten)]
    of: OfPool,
    /// Its total size over all of its drives, rounded up to whole chunklets; 0 removes it
    size: ByteCount,
    /// The drives to put it on, in equal parts; by default its present drives, or all flash drives of the pool
    #[arg(long, value_delimiter = ',')]
    drives: Vec<String>,
    #[command(flatten)]
    answering: Answering,
}

/// Where the write log is to lie.
#[derive(Args, Debug)]
pub(crate) struct MovedLog {
    #[command(flatten)]
    of: OfPool,
    /// The drives, one for each copy of the log
    #[arg(long, value_delimiter = ',', required = true)]
    drives: Vec<String>,
    #[command(flatten)]
    answering: Answering,
}

/// How the tier is to work.
#[derive(Args, Debug)]
pub(crate) struct PoolTier {
    #[command(flatten)]
    of: OfPool,
    /// on or off; off moves nothing by itself, only what is placed or pinned by hand
    #[arg(value_parser = ["on", "off"])]
    state: Option<String>,
    /// Move at most this much per second, as in 100MiB; 0 for no limit but the load of hosts
    #[arg(long, value_name = "SIZE", value_parser = rate_or_none, required_unless_present = "state")]
    rate: Option<ByteCount>,
    #[command(flatten)]
    answering: Answering,
}

/// What is to be kept.
#[derive(Args, Debug)]
pub(crate) struct Reserved {
    #[command(flatten)]
    of: OfPool,
    /// A share or a size with its unit, as in 5% or 20GiB; 0 for no reserve
    reserve: Reserve,
    #[command(flatten)]
    answering: Answering,
}

/// What a pool is to do from now on.
#[derive(Args, Debug)]
pub(crate) struct PoolSettings {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// cache.read=on|off, cache.write=on|off; cache.write=off destages all dirty data before the command returns
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
    #[command(flatten)]
    of: OfPool,
    /// Stop moving columns to make room for new sets
    #[arg(long)]
    stop: bool,
    #[command(flatten)]
    answering: Answering,
}

/// A group to be.
#[derive(Args, Debug)]
#[command(override_usage = "tier0 pool add-group ARRAY.TOML GROUP --raid LEVEL --drive NAME=PATH...")]
pub(crate) struct AddedGroup {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// The group's name
    group: String,
    /// Its RAID level: raid0, raid1, raid10, raid5, raid50 or raid6
    #[arg(long)]
    raid: String,
    /// Its drives, each by name and file or device
    #[arg(long = "drive", value_name = "NAME=PATH", required = true, value_delimiter = ',', value_parser = named_path)]
    drives: Vec<(String, PathBuf)>,
    /// Drives of a set [default: by the level and the number of drives]
    #[arg(long)]
    set_size: Option<usize>,
    /// RAID 5 groups of a RAID 50 set [default: 2]
    #[arg(long)]
    raid50_groups: Option<usize>,
    /// Stripe unit [default: 64KiB]
    #[arg(long)]
    stripe_unit: Option<ByteCount>,
    /// How many drives' worth of its space stays free for rebuilding [default: 0]
    #[arg(long)]
    spare_drives: Option<u32>,
    /// Name for the group that the pool has so far, if it has none [default: disks or flash, by its drives]
    #[arg(long)]
    first_name: Option<String>,
    /// Create files with this size where there are none
    #[arg(long)]
    size: Option<ByteCount>,
    /// Drive class, flash or disk, if the devices report the wrong one
    #[arg(long)]
    class: Option<DriveClass>,
    /// Leave all of the drives free for now; "tier0 pool grow" makes the sets, after the write log or a flash cache was moved to the
    /// drives
    #[arg(long)]
    without_sets: bool,
    /// Overwrite existing data on the drives; asks first if there is any
    #[arg(long)]
    force: bool,
    /// Pool (required if the array has several)
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    agreement: Agreement,
    #[command(flatten)]
    answering: Answering,
}

/// What is to be spread.
#[derive(Args, Debug)]
pub(crate) struct Restripe {
    #[command(flatten)]
    of: OfPool,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    answering: Answering,
}

/// Does what a pool verb asks.
pub(crate) fn pool(verb: &Pool) -> Result<(), Failure> {
    let (array, request, answering) = match verb {
        Pool::Grow(Grow { of: OfPool { array, pool }, stop, answering }) => {
            (array, AdminRequest::PoolGrow { pool: pool.clone(), stop: *stop }, answering)
        }
        Pool::AddGroup(new) => {
            return carry_out(&new.array, &add_group(new)?, new.answering, new.agreement);
        }
        Pool::RemoveGroup(RemovedGroup { array, group, pool, cancel, answering }) => {
            let (pool, group, cancel) = (pool.clone(), group.clone(), *cancel);
            (array, AdminRequest::PoolRemoveGroup { pool, group, cancel }, answering)
        }
        Pool::Log(MovedLog { of: OfPool { array, pool }, drives, answering }) => {
            (array, AdminRequest::PoolLog { pool: pool.clone(), drives: drives.clone() }, answering)
        }
        Pool::FlashCache(SizedFlashCache { of: OfPool { array, pool }, size, drives, answering }) => {
            let (pool, drives) = (pool.clone(), drives.clone());
            (array, AdminRequest::PoolFlashCache { pool, size: *size, drives }, answering)
        }
        Pool::Tier(PoolTier { of: OfPool { array, pool }, state, rate, answering }) => {
            let on = state.as_ref().map(|state| state == "on");
            (array, AdminRequest::PoolTier { pool: pool.clone(), on, rate: *rate }, answering)
        }
        Pool::Reserve(Reserved { of: OfPool { array, pool }, reserve, answering }) => {
            let request = AdminRequest::PoolReserve {
                pool: pool.clone(),
                reserve: tier0_control::admin::reserve(*reserve),
            };
            (array, request, answering)
        }
        Pool::Restripe(Restripe { of: OfPool { array, pool }, pace, answering }) => {
            let Pace { rate, stop } = *pace;
            (array, AdminRequest::PoolRestripe { pool: pool.clone(), rate, stop }, answering)
        }
        Pool::Set(PoolSettings { array, settings, pool, answering }) => {
            let (read, write) = settings::of_pool(settings)?;
            (array, AdminRequest::PoolCache { pool: pool.clone(), read, write }, answering)
        }
        Pool::Recover(verb) => return recover::run(verb),
    };
    carry_out(array, &request, *answering, Agreement::default())
}

fn add_group(new: &AddedGroup) -> Result<AdminRequest, Failure> {
    let drive = |(name, path): &(String, PathBuf)| {
        let (name, path) = (name.clone(), absolute(path)?);
        Ok(GroupDrive { name, path, size: new.size, class: new.class.map(drive_class) })
    };
    Ok(AdminRequest::PoolAddGroup {
        pool: new.pool.clone(),
        name: new.group.clone(),
        first_name: new.first_name.clone(),
        shape: GroupShape {
            raid: new.raid.clone(),
            set_size: new.set_size,
            raid50_groups: new.raid50_groups,
            stripe_unit: new.stripe_unit,
            spare_drives: new.spare_drives,
        },
        drives: new.drives.iter().map(drive).collect::<Result<_, Failure>>()?,
        without_sets: new.without_sets,
        force: new.force,
    })
}

/// A drive's name and where it lies.
fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        _ => Err("it is not a name and a path; write it as in ssd0=/dev/sdx".to_owned()),
    }
}
