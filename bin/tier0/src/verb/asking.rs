//! How a verb asks a running array to change something: consent first, then the request, then one answer.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tier0_api::{AdminReply, AdminRequest, DriveClass, DriveState, DriveStatus, PoolStatus, Status};
use tier0_control::admin::place_of;
use tier0_description::Description;
use tier0_pool::Space;
use tier0_units::{ByteCount, counted, named};

use super::config::facts;
use crate::consent;
use crate::control::{Addressee, misunderstood};
use crate::failure::Failure;
use crate::output::{json, print, wrapped};
use crate::patience::within;

/// How long files may take that the array file or the server names.
const LOOK_LIMIT: Duration = Duration::from_secs(10);

/// A thin volume that is to be larger than so many times its pool takes consent: most likely the size is a typing error.
const FAR_FACTOR: u64 = 10;

/// How the answer is given.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Answering {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Consent that is given beforehand.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Agreement {
    /// Skip the confirmation prompt
    #[arg(long)]
    pub(crate) yes: bool,
}

/// The answer for JSON.
#[derive(Serialize)]
struct Answer<'a> {
    /// `done`, `refused` (nothing was changed) or `failed`.
    result: &'a str,
    /// One sentence.
    text: &'a str,
    /// What was asked for.
    what: &'a AdminRequest,
    /// What an administrator should know of it, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Has the array of the file at `array` carry out `request`, and says how it went.
pub(super) fn carry_out(
    array: &Path,
    request: &AdminRequest,
    answering: Answering,
    agreement: Agreement,
) -> Result<(), Failure> {
    let server = Addressee::of(array);
    let ask = |server: &Addressee| {
        if let Some(tried) = without_force(request).filter(|_| !agreement.yes) {
            return overwriting(server, &tried, request);
        }
        agreed(server, request, agreement)?;
        server.ask(request)
    };
    let (asked, server) = match server {
        Ok(server) => (ask(&server), Some(server)),
        Err(failure) => (Err(failure), None),
    };
    let done = asked.and_then(sentence);
    let done = done.map(|text| with_what_is_left(text, array, request));
    let notes = match server.filter(|_| done.is_ok()) {
        Some(server) => overcommitment(&server, request),
        None => Vec::new(),
    };
    notes.iter().for_each(|note| tracing::warn!("{note}"));
    if !answering.json {
        return print(&format!("{}\n", wrapped(&done?, "")));
    }
    let (result, text) = match &done {
        Ok(text) => ("done", text.as_str()),
        Err(failure) => (failure.result(), &*failure.text().unwrap_or_default()),
    };
    print(&json(&Answer { result, text, what: request, notes }))?;
    done.map(|_| ())
}

/// What to tell of the pool of a thin volume that was made or has grown, where that is promised more than it has. Nothing
/// where the server is gone.
fn overcommitment(server: &Addressee, request: &AdminRequest) -> Vec<String> {
    let volume = match request {
        AdminRequest::VolumeCreate { name, .. } => name,
        AdminRequest::VolumeClone { name, .. } => name,
        AdminRequest::VolumeResize { volume, .. } => volume,
        _ => return Vec::new(),
    };
    let Ok(status) = server.status() else { return Vec::new() };
    let is_its = |pool: &&PoolStatus| pool.volumes.iter().any(|one| one.thin && one.name == *volume);
    let told = |pool: &PoolStatus| {
        let (usable, promised) =
            (ByteCount(pool.space.usable_bytes), ByteCount(pool.space.provisioned_bytes));
        (promised > usable).then(|| Space::overcommitment(&pool.name, usable, promised))
    };
    status.pools.iter().filter(is_its).filter_map(told).collect()
}

/// What was done, and what the array file still says of it.
fn with_what_is_left(text: String, array: &Path, request: &AdminRequest) -> String {
    let Ok(file) = Description::read(array) else { return text };
    match request {
        AdminRequest::VolumeDelete { volume, .. } if file.volumes.iter().any(|one| one.name == *volume) => {
            format!("{text}; remove it from the array file too, or the next start creates it again, empty")
        }
        AdminRequest::VolumeRename { volume, name } if volume != name => {
            match file.volumes.iter().any(|one| one.name == *volume) {
                true => format!(
                    "{text}; rename it in the array file too, or the next start creates an empty volume {volume:?}"
                ),
                false => text,
            }
        }
        AdminRequest::VolumeShrink { volume, size, .. } => {
            let named = file.volumes.iter().find(|one| one.name == *volume);
            match named.map(|named| named.sectors.bytes()).filter(|in_file| in_file != size) {
                Some(in_file) => {
                    format!("{text}; the array file still says {in_file}, which has no effect: correct it")
                }
                None => text,
            }
        }
        AdminRequest::VolumeCache { volume, read, write } => {
            let named = file.volumes.iter().find(|one| one.name == *volume);
            let Some(named) = named else { return text };
            let says = [
                says_otherwise("read_cache", named.read_cache, *read),
                says_otherwise("write_cache", named.write_cache, *write),
            ];
            with_what_the_file_says(text, &format!("volume {volume:?}"), says)
        }
        AdminRequest::VolumePlace { volume, place } => {
            let named = file.volumes.iter().find(|one| one.name == *volume);
            let Some(named) = named else { return text };
            let says = [says_otherwise("place", named.place, Some(place_of(*place)))];
            with_what_the_file_says(text, &format!("volume {volume:?}"), says)
        }
        AdminRequest::VolumeCeilings { volume, iops_max, mbps_max, burst_seconds } => {
            let named = file.volumes.iter().find(|one| one.name == *volume);
            let Some(named) = named.map(|named| named.ceilings) else { return text };
            let says = [
                says_otherwise("iops_max", named.iops_max, *iops_max),
                says_otherwise("mbps_max", named.mbps_max, *mbps_max),
                says_otherwise("burst", named.burst_seconds, *burst_seconds),
            ];
            with_what_the_file_says(text, &format!("volume {volume:?}"), says)
        }
        AdminRequest::VolumeWeight { volume, weight } => {
            let named = file.volumes.iter().find(|one| one.name == *volume);
            let Some(named) = named else { return text };
            let says = [says_otherwise("weight", named.weight, Some(*weight))];
            with_what_the_file_says(text, &format!("volume {volume:?}"), says)
        }
        AdminRequest::PoolCache { pool, read, write } => {
            let meant = file.pools.iter().filter(|one| pool.as_ref().is_none_or(|pool| one.name == *pool));
            meant.fold(text, |text, named| {
                let says = [
                    says_otherwise("read_cache", named.read_cache, *read),
                    says_otherwise("write_cache", named.write_cache, *write),
                ];
                with_what_the_file_says(text, &format!("pool {:?}", named.name), says)
            })
        }
        AdminRequest::DriveReplace { .. } | AdminRequest::DriveRemove { .. } => {
            let (with_one, with_none): (Vec<_>, Vec<_>) =
                pools_left_unnamed(file).into_iter().partition(|(_, has_one)| *has_one);
            let told = |pools: &[(String, bool)], fact: &str| {
                let names: Vec<&str> = pools.iter().map(|(name, _)| name.as_str()).collect();
                (!names.is_empty())
                    .then(|| format!("; the array file names {fact} of {}", named("pool", &names)))
            };
            let none = told(&with_none, "none of the remaining drives");
            let one = told(&with_one, "only one of the remaining drives");
            let facts: String = none.into_iter().chain(one).collect();
            match facts.is_empty() {
                true => text,
                false => format!(
                    "{text}{facts}: replace the file by the output of \"tier0 config\" before the next start"
                ),
            }
        }
        _ => text,
    }
}

/// What the file says of a field, where that is not what was set.
fn says_otherwise<T: Display + PartialEq>(field: &str, in_file: Option<T>, set: Option<T>) -> Option<String> {
    let (in_file, set) = (in_file?, set?);
    (in_file != set).then(|| format!("{field} {in_file}"))
}

/// What was done, and what the next start takes back.
fn with_what_the_file_says(
    text: String,
    section: &str,
    says: impl IntoIterator<Item = Option<String>>,
) -> String {
    let says: Vec<String> = says.into_iter().flatten().collect();
    match says.is_empty() {
        true => text,
        false => format!(
            "{text}; the array file has {} for {section}, which applies again at the next start: correct it too",
            says.join(" and ")
        ),
    }
}

/// Pools of which a start with this file would find no drive, or one alone, once what leaves has left; of each whether it is
/// one.
fn pools_left_unnamed(file: Description) -> Vec<(String, bool)> {
    let Some(facts) = facts(&file).ok().flatten() else { return Vec::new() };
    let left = move || {
        let left = file.pools_left_unnamed(&facts);
        left.into_iter().map(|(pool, has_one)| (pool.to_owned(), has_one)).collect::<Vec<_>>()
    };
    within(LOOK_LIMIT, left).unwrap_or_default()
}

/// The sentence of what was done.
pub(super) fn sentence(reply: AdminReply) -> Result<String, Failure> {
    match reply {
        AdminReply::Done(text) => Ok(text),
        _ => Err(misunderstood()),
    }
}

/// Obtains consent where the request lowers redundancy, deletes, or most likely is a slip that cannot be undone.
fn agreed(server: &Addressee, request: &AdminRequest, Agreement { yes }: Agreement) -> Result<(), Failure> {
    let costs = matches!(
        request,
        AdminRequest::DriveFail { .. }
            | AdminRequest::DriveRemove { stop: false, .. }
            | AdminRequest::VolumeCreate { thin: true, .. }
            | AdminRequest::VolumeDelete { .. }
            | AdminRequest::VolumeResize { .. }
            | AdminRequest::VolumeShrink { .. }
            | AdminRequest::PoolAddGroup { .. }
    );
    if yes || !costs {
        return Ok(());
    }
    check_feasible(server, request)?;
    consequence(&server.status()?, request).map_or(Ok(()), |consequence| consent::obtain(&consequence, false))
}

/// Nothing is asked for what would be refused.
fn check_feasible(server: &Addressee, request: &AdminRequest) -> Result<(), Failure> {
    let (AdminRequest::DriveFail { drive } | AdminRequest::DriveRemove { drive, force: true, .. }) = request
    else {
        return Ok(());
    };
    match server.ask(&AdminRequest::CouldFail { drive: drive.clone() })? {
        AdminReply::Objections(against) => {
            against.into_iter().next().map_or(Ok(()), |one| Err(Failure::Input(one)))
        }
        _ => Err(misunderstood()),
    }
}

/// A request for a drive that is to be overwritten whatever it holds, as one for a drive that holds nothing.
fn without_force(request: &AdminRequest) -> Option<AdminRequest> {
    let mut tried = request.clone();
    match &mut tried {
        AdminRequest::DriveAdd { force, .. }
        | AdminRequest::DriveReplace { force, .. }
        | AdminRequest::DriveRejoin { force, .. }
        | AdminRequest::PoolAddGroup { force, .. }
            if *force =>
        {
            *force = false;
            Some(tried)
        }
        _ => None,
    }
}

/// Asks for consent where the server, `tried` without force, says that the drive holds something.
fn overwriting(
    server: &Addressee,
    tried: &AdminRequest,
    request: &AdminRequest,
) -> Result<AdminReply, Failure> {
    match server.ask(tried) {
        Err(Failure::Held(refused)) => {
            // The remedy behind the fact is to ask for what has been asked for.
            let held = refused.split("; ").next().unwrap_or_default();
            consent::obtain(&format!("{held}: all data on it will be lost"), false)?;
            server.ask(request)
        }
        // What is refused for another reason may be done with force.
        Err(Failure::Input(_)) => server.ask(request),
        done => done,
    }
}

/// What the request costs; none where it costs nothing, or names what is not there: the array says so.
fn consequence(status: &Status, request: &AdminRequest) -> Option<String> {
    match request {
        AdminRequest::DriveRemove { drive: name, force: false, .. } => log_to_disk(status, name),
        AdminRequest::DriveFail { drive: name } | AdminRequest::DriveRemove { drive: name, .. } => {
            let found = |pool: &'_ PoolStatus| pool.drives.iter().position(|drive| drive.name == *name);
            let (pool, place) = status.pools.iter().find_map(|pool| Some((pool, found(pool)?)))?;
            let drive = &pool.drives[place];
            match drive.state {
                DriveState::Active => Some(without_drive(pool, drive)),
                _ => (pool.integrity.unrecoverable > 0)
                    .then(|| format!("pages that have a valid copy on drive {name:?} only are lost")),
            }
        }
        AdminRequest::VolumeDelete { volume: name, .. } => {
            let mut volumes = status.pools.iter().flat_map(|pool| &pool.volumes);
            let volume = volumes.find(|volume| volume.name == *name)?;
            let (size, holds) = (ByteCount(volume.size_bytes), ByteCount(volume.mapped_bytes));
            let stays = match volume.family.as_slice() {
                [] => String::new(),
                [other] => format!("; volume {other}, which shares data with it, keeps its own"),
                others => format!("; the {} volumes that share data with it keep their own", others.len()),
            };
            Some(format!("volume {name:?} of {size} is deleted with all its data ({holds}){stays}"))
        }
        AdminRequest::VolumeResize { volume: name, size } => {
            let found = |pool: &'_ PoolStatus| pool.volumes.iter().position(|volume| volume.name == *name);
            let (pool, place) = status.pools.iter().find_map(|pool| Some((pool, found(pool)?)))?;
            let volume = &pool.volumes[place];
            // A thick one is refused.
            let grows = volume.thin && size.0 > volume.size_bytes;
            let far_beyond = far_beyond(pool, *size).filter(|_| grows)?;
            Some(format!(
                "volume {name:?} grows from {} to {size}, {far_beyond}",
                ByteCount(volume.size_bytes)
            ))
        }
        AdminRequest::VolumeCreate { pool: meant, name, size, .. } => {
            let mut meant = status.pools.iter().filter(|one| meant.as_ref().is_none_or(|it| one.name == *it));
            // Of several, one is to be named, and what has the name already is refused.
            let (pool, None) = (meant.next()?, meant.next()) else { return None };
            let mut volumes = status.pools.iter().flat_map(|pool| &pool.volumes);
            let is_new = volumes.all(|volume| volume.name != *name);
            let far_beyond = far_beyond(pool, *size).filter(|_| is_new)?;
            Some(format!("volume {name:?} of {size} is created, {far_beyond}"))
        }
        AdminRequest::VolumeShrink { volume: name, size, .. } => {
            let mut volumes = status.pools.iter().flat_map(|pool| &pool.volumes);
            // One that is not larger is refused, or left as it is.
            let volume = volumes.find(|volume| volume.name == *name && volume.size_bytes > size.0)?;
            Some(format!(
                "volume {name:?} shrinks from {} to {size}: all data beyond {size} is lost, so shrink the file system on it \
                 first",
                ByteCount(volume.size_bytes)
            ))
        }
        AdminRequest::PoolAddGroup { name, shape, .. } if shape.raid == "raid0" => Some(format!(
            "group {name:?} of raid0 has no redundancy, and a group does not leave: if one of its drives is lost, the whole pool \
             cannot be started"
        )),
        _ => None,
    }
}

/// That a thin volume of this size is most likely a slip; none where it need not be.
fn far_beyond(pool: &PoolStatus, size: ByteCount) -> Option<String> {
    let usable = ByteCount(pool.space.usable_bytes);
    (size.0 / FAR_FACTOR > usable.0)
        .then(|| format!("more than {FAR_FACTOR} times the size of pool {} ({usable})", pool.name))
}

/// That the write log of a pool goes from flash to a disk without the drive of this name; none where it does not.
fn log_to_disk(status: &Status, name: &str) -> Option<String> {
    let is_flash = |drive: &DriveStatus| drive.class == Some(DriveClass::Flash);
    let is_it = |drive: &&DriveStatus| drive.name == name && drive.state == DriveState::Active;
    let (pool, drive) = status.pools.iter().find_map(|pool| Some((pool, pool.drives.iter().find(is_it)?)))?;
    let has_room = |other: &DriveStatus| {
        other.state == DriveState::Active && !other.leaving && !other.holds_log && other.chunklets_free > 0
    };
    let others = || pool.drives.iter().filter(|other| other.name != name && has_room(other));
    // Where no drive has room, it is refused.
    let to_disk = drive.holds_log && is_flash(drive) && !others().any(is_flash) && others().next().is_some();
    to_disk.then(|| {
        format!(
            "the write log of pool {} goes from drive {name:?}, which is flash, to a disk, so durable writes become slower",
            pool.name
        )
    })
}

fn without_drive(pool: &PoolStatus, drive: &DriveStatus) -> String {
    let others = pool.drives.iter().filter(|other| other.name != drive.name);
    let free: u64 =
        others.filter(|other| other.state == DriveState::Active).map(|other| other.chunklets_free).sum();
    let until = match free < drive.chunklets_used {
        true => format!(
            "the others have {} for the {} it uses, so the pool stays degraded until a drive is added",
            counted(free, "free chunklet"),
            drive.chunklets_used
        ),
        false => "the pool is degraded until the rebuild on the other drives ends".to_owned(),
    };
    let less = match pool.raid.split(' ').next().unwrap_or_default() {
        "raid6" => "survives one further failure instead of two",
        "raid5" | "raid50" => "survives no further failure",
        "raid1" | "raid10" => "keeps a single copy of the data on this drive",
        _ => "is less redundant",
    };
    format!(
        "drive {:?} goes out of service: pool {} ({}) {less}, and {until}",
        drive.name, pool.name, pool.raid
    )
}
