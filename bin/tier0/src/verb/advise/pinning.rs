//! Pins of the parts of a volume where the files of tables lie.
//!
//! What was pinned is kept in a file beside the plan, so that the next run ends pins that are not wanted any more. Pins that the
//! administrator made are left as they are.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tier0_advisor::plan::Move;
use tier0_api::{AdminRequest, PinStatus, VolumePlace, VolumeStatus};
use tier0_units::ByteCount;

use super::extents::{below, joined, pieces};
use super::postgres::{Server, Settings};
use crate::control::Addressee;
use crate::failure::Failure;
use crate::output::{escaped, print};
use crate::signals::Signals;
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
}

/// What an earlier run has pinned.
#[derive(Default, Deserialize, Serialize)]
struct Kept {
    volume: String,
    ranges: Vec<Range<u64>>,
}

/// What the files of all moves take.
#[derive(Default)]
struct Mapped {
    ranges: Vec<Range<u64>>,
    bytes: u64,
    unplaced: u64,
}

/// Pins the files of `moves`; with `follow`, until Ctrl-C.
pub(super) async fn pin(pinning: &Pinning<'_>, moves: &[&Move], settings: &Settings) -> Result<(), Failure> {
    let array = Addressee::of(pinning.array)?;
    let file = PathBuf::from(format!("{}.pins", pinning.plan.display()));
    let mut pinned = kept(&file, pinning.volume)?;
    let signals = Signals::catch()?;
    let mut server = Some(Server::connect(settings).await.map_err(Failure::Run)?);
    let mut is_first = true;
    loop {
        match once(pinning, &array, moves, server.as_ref(), &mut pinned, (&file, is_first)).await {
            Ok(()) => is_first = false,
            // A database or an array that is away for a while keeps its pins.
            Err(failure) if pinning.follow.is_some() && !is_first => {
                tracing::warn!("{}; mapping again later", failure.text().unwrap_or_default());
                server = Server::connect(settings).await.ok();
            }
            Err(failure) => return Err(failure),
        }
        let Some(every) = pinning.follow else { return Ok(()) };
        let end = tokio::time::Instant::now() + every;
        while tokio::time::Instant::now() < end {
            if signals.raised() {
                return print("ended; the pins stay (tier0 volume unpin ends them)\n");
            }
            tokio::time::sleep(Duration::from_millis(200).min(every)).await;
        }
    }
}

/// Maps the files and changes the pins to them.
async fn once(
    pinning: &Pinning<'_>,
    array: &Addressee,
    moves: &[&Move],
    server: Option<&Server>,
    pinned: &mut Vec<Range<u64>>,
    (file, is_first): (&Path, bool),
) -> Result<(), Failure> {
    let Some(server) = server else { return Err(Failure::Run("the database is away; check it".into())) };
    let volume = volume(array, pinning.volume)?;
    let mapped = mapped(server, pinning, moves, volume.size_bytes).await?;
    let others: Vec<&PinStatus> = volume.pins.iter().filter(|pin| !is_own(pin, pinned)).collect();
    let wanted = joined(mapped.ranges.clone(), PINS.min(PINS_OF_VOLUME.saturating_sub(others.len())));
    let overlaps = |pin: &&&PinStatus| {
        wanted.iter().any(|range| range.start < pin.to_bytes && pin.from_bytes < range.end)
    };
    if let Some(other) = others.iter().find(overlaps) {
        return Err(Failure::Input(format!(
            "a part of these files lies in {:#}..{:#} of volume {}, which is pinned already, and not by this plan; end that pin \
             first (tier0 volume unpin)",
            ByteCount(other.from_bytes),
            ByteCount(other.to_bytes),
            pinning.volume
        )));
    }
    if wanted == *pinned && !is_first {
        return Ok(());
    }
    // Both are kept before anything changes: a run that ends in between leaves nothing that the next one does not know.
    let both = pinned.iter().chain(&wanted).cloned().collect();
    keep(file, pinning.volume, both)?;
    change(array, pinning.volume, pinned, &wanted)?;
    keep(file, pinning.volume, wanted.clone())?;
    tell(pinning.volume, &mapped, &wanted)?;
    *pinned = wanted;
    Ok(())
}

/// Whether a pin lies where an earlier run has pinned. Pins are of whole extents, so they are somewhat wider.
fn is_own(pin: &PinStatus, pinned: &[Range<u64>]) -> bool {
    let touches = |range: &Range<u64>| range.start < pin.to_bytes && pin.from_bytes < range.end;
    pin.place == VolumePlace::Fast && pin.until_unix_s.is_none() && pinned.iter().any(touches)
}

/// What an earlier run has pinned of this volume.
fn kept(file: &Path, volume: &str) -> Result<Vec<Range<u64>>, Failure> {
    let Ok(text) = std::fs::read_to_string(file) else { return Ok(Vec::new()) };
    let kept: Kept = serde_json::from_str(&text).map_err(|error| {
        Failure::Input(format!(
            "{}: {error}; it has what was pinned before: delete it, and end old pins with tier0 volume unpin",
            file.display()
        ))
    })?;
    Ok(if kept.volume == volume { kept.ranges } else { Vec::new() })
}

fn keep(file: &Path, volume: &str, ranges: Vec<Range<u64>>) -> Result<(), Failure> {
    let text = crate::output::json(&Kept { volume: volume.to_owned(), ranges });
    std::fs::write(file, text).map_err(|error| {
        Failure::Run(format!(
            "cannot write {}: {error}; put the plan into a directory that can be written",
            file.display()
        ))
    })
}

/// The volume.
fn volume(array: &Addressee, name: &str) -> Result<VolumeStatus, Failure> {
    let status = array.status()?;
    let volumes: Vec<VolumeStatus> = status.pools.into_iter().flat_map(|pool| pool.volumes).collect();
    let known: Vec<String> = volumes.iter().map(|volume| volume.name.clone()).collect();
    volumes.into_iter().find(|volume| volume.name == name).ok_or_else(|| {
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

/// Ends the pins that are not wanted any more and makes those that are.
fn change(
    array: &Addressee,
    volume: &str,
    pinned: &[Range<u64>],
    wanted: &[Range<u64>],
) -> Result<(), Failure> {
    for range in pinned.iter().filter(|range| !wanted.contains(range)) {
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
