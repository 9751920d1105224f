//! Pins of the parts of a volume where the files of tables lie.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tier0_advisor::plan::Move;
use tier0_api::{AdminRequest, VolumePlace};
use tier0_units::ByteCount;

use super::extents::{below, joined, pieces};
use super::postgres::{Server, Settings};
use crate::control::Addressee;
use crate::failure::Failure;
use crate::output::print;
use crate::signals::Signals;
use crate::verb::asking::sentence;

/// The most pins that are made of a volume: it may have 64, and some are left for the administrator's own.
const PINS: usize = 48;

/// What is pinned where.
pub(super) struct Pinning<'a> {
    /// The array file.
    pub(super) array: &'a Path,
    /// The volume.
    pub(super) volume: &'a str,
    /// Where the file system's device begins on it, if the administrator says so.
    pub(super) offset: Option<u64>,
    /// How often the files are mapped again.
    pub(super) follow: Option<Duration>,
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
    let size = volume_bytes(&array, pinning.volume)?;
    let signals = Signals::catch()?;
    let mut pinned: Vec<Range<u64>> = Vec::new();
    let mut server = Some(Server::connect(settings).await.map_err(Failure::Run)?);
    loop {
        let mapped = match &server {
            Some(server) => mapped(server, pinning, moves, size).await,
            None => Err(Failure::Run("the database is away; check it".into())),
        };
        match mapped {
            Ok(mapped) => {
                let wanted = joined(mapped.ranges.clone(), PINS);
                if wanted != pinned {
                    change(&array, pinning.volume, &pinned, &wanted)?;
                    tell(pinning.volume, &mapped, &wanted)?;
                    pinned = wanted;
                }
            }
            // A database that is away for a while keeps its pins.
            Err(failure) if pinning.follow.is_some() && !pinned.is_empty() => {
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

/// The volume's size.
fn volume_bytes(array: &Addressee, name: &str) -> Result<u64, Failure> {
    let status = array.status()?;
    let volumes: Vec<_> = status.pools.iter().flat_map(|pool| &pool.volumes).collect();
    let found = volumes.iter().find(|volume| volume.name == name);
    found.map(|volume| volume.size_bytes).ok_or_else(|| {
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
        let located = server.located(one).await.map_err(Failure::Run)?;
        for file in located.files.iter().flat_map(|file| segments(&directory.join(file))) {
            let below = below(&file, pinning.offset).map_err(Failure::Input)?;
            if below.start + below.bytes > volume_bytes {
                return Err(Failure::Input(format!(
                    "the device below {} ends at {:#}, but volume {} has {:#}; name the volume that holds the database's file system",
                    file.display(),
                    ByteCount(below.start + below.bytes),
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
    Ok(mapped)
}

/// A file and those that go on after each GiB of it.
fn segments(first: &Path) -> Vec<PathBuf> {
    let further =
        (1..).map(|n| PathBuf::from(format!("{}.{n}", first.display()))).take_while(|file| file.exists());
    std::iter::once(first.to_owned()).chain(further).collect()
}

/// Ends the pins that are not wanted any more and makes those that are.
fn change(
    array: &Addressee,
    volume: &str,
    pinned: &[Range<u64>],
    wanted: &[Range<u64>],
) -> Result<(), Failure> {
    let stale = pinned.iter().filter(|range| !wanted.contains(range));
    for range in stale {
        let (from, to) = (ByteCount(range.start), ByteCount(range.end));
        sentence(array.ask(&AdminRequest::VolumeUnpin { volume: volume.to_owned(), from, to })?)?;
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
