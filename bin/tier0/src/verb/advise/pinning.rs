//! Pins of the parts of a volume where the files of tables lie.
//!
//! What was pinned is kept in a file beside the plan, as the array reports it, so that the next run ends pins that are not wanted
//! any more. Pins that the administrator made or changed are left as they are.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tier0_advisor::plan::Move;
use tier0_api::{AdminRequest, PinStatus, Status, VolumePlace, VolumeStatus};
use tier0_units::ByteCount;

use super::extents::{below, joined, pieces};
use super::interrupt::or_interrupted;
use super::postgres::{Server, Settings};
use crate::consent;
use crate::control::Addressee;
use crate::failure::Failure;
use crate::output::{escaped, print};
use crate::signals::Signals;
use crate::text_file;
use crate::verb::asking::sentence;

/// The most pins that are made of a volume,
const PINS: usize = 48;
/// which may have so many in all.
const PINS_OF_VOLUME: usize = 64;

/// What is pinned where.
pub(super) struct Pinning<'a> {
    /// The plan, beside which the pins are kept.
    pub(super) plan: &'a Path,
    /// The array file.
    pub(super) array: &'a Path,
    /// The volume.
    pub(super) volume: &'a str,
    /// Where the file system's device begins on it, if the administrator says so.
    pub(super) offset: Option<u64>,
    /// How often the files are mapped again.
    pub(super) follow: Option<Duration>,
    /// Whether the user agrees to everything.
    pub(super) yes: bool,
}

/// What an earlier run has pinned of a volume.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Kept {
    array: String,
    volume: String,
    /// Pins as the array reports them: of whole extents.
    ranges: Vec<Range<u64>>,
    /// What they were made for.
    #[serde(skip)]
    wanted: Vec<Range<u64>>,
}

/// What the files of all moves take.
#[derive(Default)]
struct Mapped {
    ranges: Vec<Range<u64>>,
    bytes: u64,
    unplaced: u64,
}

/// Pins the files of `moves`; with `follow`, until Ctrl-C. `caches` are switched after the first time.
pub(super) async fn pin(
    pinning: &Pinning<'_>,
    moves: &[&Move],
    settings: &Settings,
    (signals, caches): (&Signals, &dyn Fn() -> Result<(), Failure>),
) -> Result<(), Failure> {
    if !settings.is_local() {
        return Err(Failure::Input(
            "the server is on another host, whose files cannot be found on a device from here; run this on its host, with a DSN of that host"
                .into(),
        ));
    }
    let array = Addressee::of(pinning.array)?;
    let status = array.status()?;
    check_volume(pinning, &status)?;
    let file = PathBuf::from(format!("{}.pins", pinning.plan.display()));
    let mut pinned = kept(&file, &status.array, pinning.volume)?;
    let ended = || print("ended; the pins stay (tier0 volume unpin ends them)\n");
    let Some(server) = or_interrupted(signals, Server::connect(settings)).await else {
        return Err(Failure::Interrupted);
    };
    let mut server = Some(server.map_err(Failure::Run)?);
    let mut is_first = true;
    loop {
        let round = once(pinning, &array, moves, server.as_ref(), &mut pinned, (&file, is_first));
        match or_interrupted(signals, round).await {
            None if is_first => return Err(Failure::Interrupted),
            None => return ended(),
            Some(Ok(())) if is_first => {
                is_first = false;
                caches()?;
            }
            Some(Ok(())) => {}
            // A database or an array that is away for a while keeps its pins.
            Some(Err(failure)) if pinning.follow.is_some() && !is_first => {
                tracing::warn!("{}; mapping again later", failure.text().unwrap_or_default());
                server = or_interrupted(signals, Server::connect(settings)).await.and_then(Result::ok);
            }
            Some(Err(failure)) => return Err(failure),
        }
        let Some(every) = pinning.follow else { return Ok(()) };
        if or_interrupted(signals, tokio::time::sleep(every)).await.is_none() {
            return ended();
        }
    }
}

/// Asks where the size does not tell the volume from others.
fn check_volume(pinning: &Pinning<'_>, status: &Status) -> Result<(), Failure> {
    let own = volume(status, pinning.volume)?;
    let volumes = status.pools.iter().flat_map(|pool| &pool.volumes);
    let alike: Vec<_> = volumes
        .filter(|other| other.name != own.name && other.size_bytes == own.size_bytes)
        .map(|other| escaped(&other.name))
        .collect();
    if alike.is_empty() || pinning.offset.is_some() {
        return Ok(());
    }
    let consequence = format!(
        "parts of volume {} are pinned; it is as large as {}, so make sure that the database's file system lies on {0}",
        escaped(&own.name),
        alike.join(", "),
    );
    consent::obtain(&consequence, pinning.yes)
}

/// Maps the files and changes the pins to them.
async fn once(
    pinning: &Pinning<'_>,
    array: &Addressee,
    moves: &[&Move],
    server: Option<&Server>,
    pinned: &mut Kept,
    (file, is_first): (&Path, bool),
) -> Result<(), Failure> {
    let Some(server) = server else { return Err(Failure::Run("the database is away; check it".into())) };
    let volume = volume(&array.status()?, pinning.volume)?.clone();
    let mapped = mapped(server, pinning, moves, volume.size_bytes).await?;
    let others: Vec<&PinStatus> = volume.pins.iter().filter(|pin| !is_own(pin, &pinned.ranges)).collect();
    let wanted = joined(mapped.ranges.clone(), PINS.min(PINS_OF_VOLUME.saturating_sub(others.len())));
    if let Some(other) = others.iter().find(|pin| touches(pin, &wanted)) {
        return Err(Failure::Input(format!(
            "a part of these files lies in {:#}..{:#} of volume {}, which is pinned already, and not by this plan; end that pin \
             first (tier0 volume unpin)",
            ByteCount(other.from_bytes),
            ByteCount(other.to_bytes),
            pinning.volume
        )));
    }
    if wanted == pinned.wanted && !is_first {
        return Ok(());
    }
    change(array, pinning.volume, &own_of(&volume, &pinned.ranges), &wanted)?;
    let made = self::volume(&array.status()?, pinning.volume)?.clone();
    let made = made.pins.iter().filter(|pin| is_fast(pin) && touches(pin, &wanted));
    pinned.ranges = made.map(|pin| pin.from_bytes..pin.to_bytes).collect();
    keep(file, pinned)?;
    tell(pinning.volume, &mapped, &wanted)?;
    pinned.wanted = wanted;
    Ok(())
}

fn touches(pin: &PinStatus, ranges: &[Range<u64>]) -> bool {
    ranges.iter().any(|range| range.start < pin.to_bytes && pin.from_bytes < range.end)
}

/// Whether it is of the kind that is made here.
fn is_fast(pin: &PinStatus) -> bool {
    pin.place == VolumePlace::Fast && pin.until_unix_s.is_none()
}

/// Whether a pin is one that an earlier run has made, unchanged.
fn is_own(pin: &PinStatus, pinned: &[Range<u64>]) -> bool {
    is_fast(pin) && pinned.contains(&(pin.from_bytes..pin.to_bytes))
}

/// The pins of a volume that an earlier run has made, and that are there, unchanged.
fn own_of(volume: &VolumeStatus, pinned: &[Range<u64>]) -> Vec<Range<u64>> {
    let own = volume.pins.iter().filter(|pin| is_own(pin, pinned));
    own.map(|pin| pin.from_bytes..pin.to_bytes).collect()
}

/// What an earlier run has pinned of this volume. Pins of another volume are not forgotten by another file of pins.
fn kept(file: &Path, array: &str, volume: &str) -> Result<Kept, Failure> {
    let fresh = Kept { array: array.to_owned(), volume: volume.to_owned(), ..Kept::default() };
    if !file.exists() {
        return Ok(fresh);
    }
    let kept: Kept = serde_json::from_str(&text_file::read(file)?).map_err(|error| {
        Failure::Input(format!(
            "{}: {error}; it has what was pinned before: delete it, and end old pins with tier0 volume unpin",
            file.display()
        ))
    })?;
    if kept.array != array || kept.volume != volume {
        return Err(Failure::Input(format!(
            "{} has pins of volume {:?} of array {:?}, which this plan made before; end them (tier0 volume unpin) and delete the file",
            file.display(),
            kept.volume,
            kept.array
        )));
    }
    Ok(kept)
}

fn keep(file: &Path, kept: &Kept) -> Result<(), Failure> {
    std::fs::write(file, crate::output::json(kept)).map_err(|error| {
        Failure::Run(format!(
            "cannot write {}: {error}; put the plan into a directory that can be written",
            file.display()
        ))
    })
}

/// The volume.
fn volume<'a>(status: &'a Status, name: &str) -> Result<&'a VolumeStatus, Failure> {
    let volumes: Vec<&VolumeStatus> = status.pools.iter().flat_map(|pool| &pool.volumes).collect();
    volumes.iter().find(|volume| volume.name == name).copied().ok_or_else(|| {
        let known: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
        Failure::Input(format!("the array has no volume {name:?}; it has {}", known.join(", ")))
    })
}

/// Where the files lie on the volume.
async fn mapped(
    server: &Server,
    pinning: &Pinning<'_>,
    moves: &[&Move],
    volume_bytes: u64,
) -> Result<Mapped, Failure> {
    let directory = server.data_directory().await.map_err(Failure::Run)?;
    let mut mapped = Mapped::default();
    for one in moves {
        // A table that was dropped, such as an old partition, is no reason to leave the others.
        let Some(located) = server.located(one).await.map_err(Failure::Run)? else {
            tracing::warn!("{} is not in this database and is left out", escaped(&one.object));
            continue;
        };
        for file in located.files.iter().flat_map(|file| segments(&directory.join(file))) {
            let below = below(&file, pinning.offset).map_err(Failure::Input)?;
            // The volume's own device is as large as it. Where an offset is given, it may be a part of one.
            let fits = match pinning.offset {
                None => below.device_bytes == volume_bytes,
                Some(offset) => offset.saturating_add(below.device_bytes) <= volume_bytes,
            };
            if !fits {
                return Err(Failure::Input(format!(
                    "{} lies on a device of {:#}, and volume {} has {:#}; name the volume that holds the database's file system",
                    file.display(),
                    ByteCount(below.device_bytes),
                    pinning.volume,
                    ByteCount(volume_bytes)
                )));
            }
            let (found, unplaced) = pieces(&file).map_err(Failure::Run)?;
            mapped.bytes += found.iter().map(|piece| piece.end - piece.start).sum::<u64>();
            mapped.unplaced += unplaced;
            mapped
                .ranges
                .extend(found.into_iter().map(|piece| below.start + piece.start..below.start + piece.end));
        }
    }
    match mapped.ranges.is_empty() {
        true => Err(Failure::Input(
            "no table of the plan has a file on the device; connect to the database of the plan, or make the plan again".into(),
        )),
        false => Ok(mapped),
    }
}

/// A file and those that go on after each GiB of it.
fn segments(first: &Path) -> Vec<PathBuf> {
    let further = (1..).map(|n| PathBuf::from(format!("{}.{n}", first.display())));
    std::iter::once(first.to_owned()).chain(further.take_while(|file| file.exists())).collect()
}

/// Ends the pins that were made before and makes those that are wanted.
fn change(
    array: &Addressee,
    volume: &str,
    pinned: &[Range<u64>],
    wanted: &[Range<u64>],
) -> Result<(), Failure> {
    for range in pinned {
        let (from, to) = (ByteCount(range.start), ByteCount(range.end));
        match array.ask(&AdminRequest::VolumeUnpin { volume: volume.to_owned(), from, to }) {
            // A refusal: the administrator has ended it already.
            Ok(_) | Err(Failure::Input(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    // All of them: ending a pin ends those of the same extents too.
    for range in wanted {
        let request = AdminRequest::VolumePin {
            volume: volume.to_owned(),
            from: ByteCount(range.start),
            to: ByteCount(range.end),
            place: VolumePlace::Fast,
            until_unix_s: 0,
        };
        sentence(array.ask(&request)?)?;
    }
    Ok(())
}

fn tell(volume: &str, mapped: &Mapped, wanted: &[Range<u64>]) -> Result<(), Failure> {
    let bytes: u64 = wanted.iter().map(|range| range.end - range.start).sum();
    let unplaced = match mapped.unplaced {
        0 => String::new(),
        bytes => format!("; {:#} have no place on the device yet", in_mib(bytes)),
    };
    print(&format!(
        "pinned {} of volume {volume} to the fast group, {:#} in all, for {:#} of files{unplaced}; \"tier0 status\" shows the moves\n",
        tier0_units::counted(wanted.len() as u64, "part"),
        in_mib(bytes),
        in_mib(mapped.bytes),
    ))
}

/// Rounded up to whole MiB.
fn in_mib(bytes: u64) -> ByteCount {
    ByteCount(bytes.next_multiple_of(1 << 20))
}
