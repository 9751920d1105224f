//! The array of a plan: the array as it is, with a volume on flash for the objects that move.
//!
//! Where the pool of the data has a fast group, the volume lies there. Otherwise new drives make one, mirrored: it takes writes. What
//! is chosen when an array is created, such as the drives of the write log, stays as it is now, because a group that is added to an
//! array that serves does not move it.

use std::path::PathBuf;

use tier0_array::open::{GroupLayout, PoolLayout, Rehearsal, rehearse_creation};
use tier0_description::class::described;
use tier0_description::{
    Description, DriveDescription, GroupDescription, PoolDescription, VolumeDescription, is_name,
};
use tier0_pool::{CeilingsChange, DriveClass};
use tier0_raid::layout::{RaidConfig, RaidLevel};
use tier0_units::{ByteCount, SECTOR_BYTES, SectorCount};

/// The name of a new group, and of its drives with a number.
const GROUP: &str = "flash";
/// The name of a single group that had none, as `tier0 pool add-group` gives it.
const FIRST: &str = "disks";
/// Drives of a set of the new group.
const SET: u32 = 2;
/// Sectors of its stripe unit.
const STRIPE: SectorCount = SectorCount(128);
/// The most new drives.
const DRIVES_MAX: u64 = 960;
/// New sets that are tried beyond what the drives' size wants: log, metadata and whole chunklets take some of it.
const MORE_SETS: u64 = 8;

/// What is wanted of the flash.
pub(super) struct Wanted<'a> {
    /// How much of it there is to be.
    pub(super) flash: u64,
    /// What the objects take in whole pieces.
    pub(super) used: u64,
    /// The drive of the catalogue, for a new group.
    pub(super) drive: &'a str,
    /// Its capacity.
    pub(super) drive_bytes: u64,
    /// A name for the volume.
    pub(super) volume: &'a str,
    /// A volume of the pool.
    pub(super) beside: usize,
}

/// An array with a volume on flash.
pub(super) struct Next {
    /// The array as it is, with everything said that was chosen for it.
    pub(super) now: Description,
    /// The array of the plan.
    pub(super) next: Description,
    /// The volume on flash.
    pub(super) volume: String,
    /// The flash in words.
    pub(super) words: String,
}

/// An array without files, sockets and paths: what a case simulates, and what can be laid out without looking at a drive.
pub(super) fn modelled(description: &Description) -> Description {
    let mut description = description.clone();
    for drive in &mut description.drives {
        (drive.path, drive.size, drive.ram) = (None, None, None);
    }
    description.search.clear();
    description.listen.clear();
    (description.witness, description.control, description.events) = (None, None, None);
    description.cores = None;
    description
}

/// The array of a plan.
///
/// # Errors
/// The array has no room for the flash, or cannot be; with the remedy.
pub(super) fn next(array: &Description, wanted: &Wanted<'_>) -> Result<Next, String> {
    let pool = array.volumes[wanted.beside].pool;
    let mut now = array.clone();
    settle(&mut now, &layout(array)?);
    let name = volume_name(&now, wanted.volume);
    let fast = fast_group(&now, pool);
    if fast.is_some() && now.pools[pool].groups.len() == 1 {
        return Err(format!(
            "the data lies on flash already: all drives of pool {:?} are flash; name an array whose pool has disks",
            now.pools[pool].name
        ));
    }
    if let Some(group) = fast {
        let name_of = now.pools[pool].groups[group].name.clone();
        let free = group_of(&layout(&now)?, pool, group).free_bytes;
        if wanted.flash > free {
            return Err(format!(
                "--flash wants {:#}, and the fast group {name_of:?} of pool {:?} has {:#} free; plan with --flash {}",
                ByteCount(wanted.flash),
                now.pools[pool].name,
                ByteCount(free),
                in_mb(free)
            ));
        }
        let mut next = now.clone();
        let words = format!("{} on the fast group {name_of:?}", ByteCount(whole_mib(wanted.flash)));
        add_volume(&mut next, pool, &name_of, &name, wanted.flash.max(wanted.used).min(free));
        layout(&next)?;
        return Ok(Next { now, next, volume: name, words });
    }
    let least = wanted.flash.div_ceil(wanted.drive_bytes.max(1)).max(1);
    for sets in least..=least + MORE_SETS + least / 8 {
        if sets * u64::from(SET) > DRIVES_MAX {
            return Err(format!(
                "--flash wants {:#}, which is more than {DRIVES_MAX} mirrored drives of {} hold; lower --flash, or name a larger drive with \
                 --drive",
                ByteCount(wanted.flash),
                wanted.drive
            ));
        }
        let mut next = now.clone();
        let group = add_group(&mut next, pool, sets as usize * SET as usize, wanted)?;
        let group_name = next.pools[pool].groups[group].name.clone();
        let free = group_of(&layout(&next)?, pool, group).free_bytes;
        if free < whole_mib(wanted.used) {
            continue;
        }
        let words = format!(
            "{} × {} in {}",
            sets * u64::from(SET),
            wanted.drive,
            if sets == 1 { "a mirror" } else { "mirrors" }
        );
        add_volume(&mut next, pool, &group_name, &name, wanted.flash.max(wanted.used).min(free));
        layout(&next)?;
        return Ok(Next { now, next, volume: name, words });
    }
    Err(format!(
        "{} drives of {} leave no room for {:#} beside the log; name a larger drive with --drive",
        (least + MORE_SETS) * u64::from(SET),
        wanted.drive,
        ByteCount(wanted.used)
    ))
}

/// How a creation would lay it out.
fn layout(description: &Description) -> Result<Rehearsal, String> {
    rehearse_creation(&modelled(description)).map_err(|error| format!("the array file: {error}"))
}

fn group_of(layout: &Rehearsal, pool: usize, group: usize) -> &GroupLayout {
    &layout.pools[pool].groups[group]
}

/// Says what was chosen, so that more drives do not change it; a group gets the name that it has beside others.
fn settle(description: &mut Description, layout: &Rehearsal) {
    for number in 0..description.pools.len() {
        let PoolLayout { log, flash_cache, chunklet_bytes, extent_bytes, .. } = &layout.pools[number];
        let places = |names: &[String]| -> Vec<usize> {
            let named = |drive: &DriveDescription| names.contains(&drive.name);
            (0..description.drives.len()).filter(|place| named(&description.drives[*place])).collect()
        };
        let log = log.as_ref().map(|log| places(&log.drives));
        let cache = flash_cache.as_ref().map(|cache| places(&cache.drives));
        let pool = &mut description.pools[number];
        pool.chunklet_sectors = Some(chunklet_bytes / SECTOR_BYTES);
        pool.extent_sectors = Some(extent_bytes / SECTOR_BYTES);
        if let Some(drives) = log.filter(|_| pool.log_drives.is_empty()) {
            pool.log_drives = drives;
        }
        if let Some(drives) = cache.filter(|_| pool.flash_cache.drives.is_empty()) {
            pool.flash_cache.drives = drives;
        }
    }
    for pool in &mut description.pools {
        if let [single] = &mut pool.groups[..]
            && single.name.is_empty()
        {
            FIRST.clone_into(&mut single.name);
        }
    }
}

/// The group whose drives are all flash, the first of them.
fn fast_group(description: &Description, pool: usize) -> Option<usize> {
    let is_flash = |place: &usize| described(&description.drives[*place]) == Some(DriveClass::Flash);
    description.pools[pool]
        .groups
        .iter()
        .position(|group: &GroupDescription| group.drives.iter().all(is_flash))
}

/// Adds a mirrored group of new drives, and gives its place.
fn add_group(
    description: &mut Description,
    pool: usize,
    drives: usize,
    wanted: &Wanted<'_>,
) -> Result<usize, String> {
    // Where the others are files or devices, the new ones are some too, and the administrator says which.
    let beside = description.drives.iter().find_map(|drive| {
        let path = drive.path.as_ref()?;
        Some((path.parent()?.to_owned(), drive.size.is_some()))
    });
    let mut places = Vec::new();
    let mut number = 0;
    while places.len() < drives {
        let name = format!("{GROUP}{number}");
        number += 1;
        if description.drives.iter().any(|drive| drive.name == name) {
            continue;
        }
        let path: Option<PathBuf> =
            beside.as_ref().map(|(directory, _)| directory.join(format!("{name}.img")));
        let size = beside.as_ref().filter(|(_, is_sized)| *is_sized).map(|_| ByteCount(wanted.drive_bytes));
        places.push(description.drives.len());
        description.drives.push(DriveDescription {
            name,
            path,
            size,
            ram: None,
            model: Some(wanted.drive.to_owned()),
            class: None,
        });
    }
    let PoolDescription { groups, drives: members, .. } = &mut description.pools[pool];
    let taken: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let names = std::iter::once(GROUP.to_owned()).chain((2..).map(|n| format!("{GROUP}{n}")));
    let name = names.into_iter().find(|name| !taken.contains(&name.as_str())).unwrap_or_default();
    members.extend(&places);
    groups.push(GroupDescription {
        name,
        drives: places,
        raid: RaidConfig {
            level: RaidLevel::Raid1,
            set_size: SET as usize,
            stripe_unit: STRIPE,
            raid50_groups: 1,
        },
        spare_drives: 0,
    });
    Ok(groups.len() - 1)
}

fn add_volume(description: &mut Description, pool: usize, group: &str, name: &str, bytes: u64) {
    description.volumes.push(VolumeDescription {
        name: name.to_owned(),
        pool,
        sectors: SectorCount(bytes / (1 << 20) * ((1 << 20) / SECTOR_BYTES)),
        thin: false,
        write_cache: None,
        // Reads of flash gain nothing from memory that reads of disks need.
        read_cache: Some(false),
        place: None,
        group: Some(group.to_owned()),
        ceilings: CeilingsChange::default(),
        weight: None,
    });
}

/// A name that no volume has.
fn volume_name(description: &Description, wanted: &str) -> String {
    let wanted = if is_name(wanted) { wanted } else { GROUP };
    let is_taken = |name: &str| description.volumes.iter().any(|volume| volume.name == name);
    let mut names = std::iter::once(wanted.to_owned()).chain((2..).map(|n| format!("{wanted}{n}")));
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

fn whole_mib(bytes: u64) -> u64 {
    bytes.next_multiple_of(1 << 20)
}

/// As a size that --flash takes.
fn in_mb(bytes: u64) -> String {
    format!("{}MB", bytes / 1_000_000)
}
