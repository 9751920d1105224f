//! The sentences of events.

use tier0_units::{counted, named};

use super::shared::{
    NOT_FOR_DATA, cannot_leave, cut_short, deleted, full, moved, one_or, remedy_for_cut_short,
    remedy_for_deleted, remedy_for_moved, space, way_back, what_fills,
};
use super::{add_command, remove_command, replace_command};
use crate::event::{EventKind, FailureCause, PageFault, PageFound, PagesFound, PlaceFound, WaitFor};
use crate::{RebuildPurpose, Subject};

/// How the last event of a server begins that ended by itself, for readers of events without ids.
pub const ENDED: &str = "its server has ended";
/// How the event begins that `tier0 pool recover` leaves, for readers of events without ids.
pub const RECOVERED: &str = "it was assembled by \"tier0 pool recover --accept-loss\"";
/// How the event begins of a drive that has left its pool, for readers of events without ids.
pub const LEFT: &str = "it has left pool";

/// The fact and the remedy of an event about `subject`. The remedy is empty if nothing is to be done.
pub fn event(kind: &EventKind, subject: &Subject) -> (String, String) {
    let told = of_server(kind).or_else(|| of_drive(kind, subject)).or_else(|| of_content(kind));
    told.or_else(|| of_pool(kind)).unwrap_or_default()
}

fn fact(what: impl Into<String>) -> Option<(String, String)> {
    Some((what.into(), String::new()))
}

fn both(what: impl Into<String>, remedy: impl Into<String>) -> Option<(String, String)> {
    Some((what.into(), remedy.into()))
}

/// What the server tells of itself, and of requests.
fn of_server(kind: &EventKind) -> Option<(String, String)> {
    match kind {
        EventKind::ServerStarted { version, process } => {
            fact(format!("served by tier0 {version}, process {process}"))
        }
        EventKind::ServerEnded { error: None } => fact(ENDED),
        EventKind::ServerEnded { error: Some(error) } => fact(format!("{ENDED}: {error}")),
        EventKind::ServerKilled { last_event } => fact(format!(
            "previous server exited uncleanly (killed, or the machine stopped); its last event is from {last_event}"
        )),
        EventKind::StartWarning { text }
        | EventKind::ConnectionsCrowded { text }
        | EventKind::SocketLost { text }
        | EventKind::SocketRestored { text } => fact(text),
        EventKind::EventsMissed { count } => both(
            format!("{} before this one could not be written in time", counted(*count, "event")),
            "check the file system of the event file",
        ),
        EventKind::ProcessStalled { ms } => both(
            format!("the server process did not run for {ms} ms"),
            "look for a stopped process, a suspended machine or overloaded processors",
        ),
        EventKind::RequestDone { text } => fact(format!("admin: {text}")),
        EventKind::RequestFailed { text } => both(format!("delayed request failed: {text}"), "try again"),
        EventKind::WitnessUnusable { fault } => fact(fault),
        EventKind::WitnessUsable => fact("the witness can be used again"),
        EventKind::ArrayRecovered { volumes_harmed } => match volumes_harmed.as_slice() {
            [] => fact(format!("{RECOVERED}; no volume has lost data")),
            names => both(
                format!("{RECOVERED}; volumes that may have lost data: {}", names.join(", ")),
                "check what uses them, or restore a backup",
            ),
        },
        _ => None,
    }
}

/// What befalls a drive.
fn of_drive(kind: &EventKind, subject: &Subject) -> Option<(String, String)> {
    let name = match subject {
        Subject::Drive { name } => name,
        _ => "DRIVE",
    };
    match kind {
        EventKind::DriveFailed { cause, is_removed, group_left } => {
            let why = match cause {
                FailureCause::TakenOut => " (taken out by an administrator)".to_owned(),
                FailureCause::Error(error) => format!(" ({error})"),
                FailureCause::Unknown => String::new(),
            };
            let replace = replace_command(name);
            let remedy = match (is_removed, group_left) {
                (true, _) => String::new(),
                (false, true) => remove_command(name),
                (false, false) => {
                    format!("bring it back if it answers (tier0 drive rejoin), or replace it ({replace})")
                }
            };
            let then = match group_left {
                true => "its group has left the pool, so it holds no data",
                false => "its contents are rebuilt on other drives if they have space",
            };
            both(format!("failed{why}: {then}"), remedy)
        }
        EventKind::DriveFileDeleted { path, is_replaced } => {
            both(deleted(path, *is_replaced), remedy_for_deleted(name, *is_replaced))
        }
        EventKind::DriveCutShort { path } => both(cut_short(path), remedy_for_cut_short(name)),
        EventKind::DriveFrontOverwritten { error } => {
            let count = if let Subject::Drives { names } = subject { names.len() } else { 1 };
            let metadata = one_or(count, "its metadata were", "their metadata were");
            let what = format!("{metadata} overwritten from outside while the array serves");
            match error {
                None => both(
                    format!("{what}; the server writes them again, and a scrub repairs the rest"),
                    "find out what wrote to the drives and stop it; look at the end of the scrub (tier0 status)",
                ),
                Some(error) => both(
                    format!("{what}, and cannot be written again: {error}"),
                    "do not stop the server: find out what wrote to the drives, and run \"tier0 scrub\"",
                ),
            }
        }
        EventKind::DriveSuspect { error } => both(
            format!("suspect: {error}; its commands are tried again"),
            "check its cables and the log of the system",
        ),
        EventKind::DriveAnswers => fact("answers again"),
        EventKind::DriveAwaited { error, reason } => {
            both(format!("fails ({error}), and the pool cannot run without it: {reason}"), "bring it back")
        }
        EventKind::DriveReturned { pool } => fact(format!("back in pool {pool}")),
        EventKind::DriveLeft { pool } => fact(format!("{LEFT} {pool}")),
        EventKind::DriveFull { on_device } => {
            let [what, remedy, _] = full(*on_device);
            both(format!("{what}, so writes to it wait"), remedy)
        }
        EventKind::DriveHasSpace => fact("it has space again"),
        EventKind::DriveClassDiffers { class, other, other_class } => both(
            format!(
                "it is {class}, and {other} is {other_class}: its group has both, and data of flash may be on disks"
            ),
            format!("if its class is wrong, replace it (tier0 drive replace … --class {other_class})"),
        ),
        EventKind::DriveSizeRestored => both(
            "it has its size again, and data behind the cut may be gone",
            "wait for the scrub, which repairs it from the other drives (tier0 status)",
        ),
        EventKind::DriveFileMoved(file) => both(moved(file), remedy_for_moved(file)),
        EventKind::DriveFileBack { path } => fact(format!("its file is at {path:?} again")),
        EventKind::DriveMayBeCopy { original, moved_at } => both(
            format!(
                "this drive may be a copy: under a previous server, its file was moved to {original:?}, where it still \
                 exists, and another file took its path ({moved_at})"
            ),
            "a copy lacks later writes: stop the server and move the original back, or delete the original if it is no \
             longer needed",
        ),
        EventKind::SuperblockNotErased { error } => both(
            format!(
                "it has left its pool, and its superblock cannot be erased ({error}), so a start that finds it warns of it"
            ),
            "delete its file, overwrite the first and the last MiB of the device, or use it again with --force",
        ),
        EventKind::ColumnsMisplaced { columns, way_back: way } => both(
            format!(
                "it has {} of sets and is {NOT_FOR_DATA}: no drive of data had room, and the sets had to be redundant again",
                counted(*columns, "column")
            ),
            way_back(way),
        ),
        EventKind::ColumnsReturned => fact("it has no columns of sets any more: they are on drives of data"),
        EventKind::FlashCacheOff { error } => fact(format!(
            "its part of the flash cache is not used: {}; reads go to the other drives, no data is lost, and it is \
             created again later",
            error.as_deref().unwrap_or("it failed, or was too slow")
        )),
        _ => None,
    }
}

/// What was found wrong on a drive or in a volume.
fn of_content(kind: &EventKind) -> Option<(String, String)> {
    match kind {
        EventKind::PagesRepaired(found) => both(pages(found, Found::Repaired), SCRUB),
        EventKind::ChecksumsRepaired(found) => both(pages(found, Found::Checksums), SCRUB),
        EventKind::PagesLost(found) => {
            both(pages(found, Found::Lost), "restore what is lost from a backup (\"tier0 status\" lists it)")
        }
        EventKind::ChecksumsLost { volume, sector, sectors } => both(
            format!(
                "volume {volume} sectors {sector}+{sectors}: no copy of their checksums is right; reads of them fail until \
                 they are written again"
            ),
            "restore what they held from a backup",
        ),
        _ => None,
    }
}

/// What happened to pages that were found wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Repaired,
    Lost,
    Checksums,
}

const SCRUB: &str = "run \"tier0 scrub\" to find whether there are more";

/// The first page, how many there are beside it, and where some of those are.
fn pages(found: &PagesFound, kind: Found) -> String {
    let PagesFound { first, others, others_count } = found;
    let first = page(first, kind);
    if *others_count == 0 {
        return first;
    }
    let rest = if *others_count > others.len() as u64 { ", and more" } else { "" };
    // What is lost is restored by volume.
    let whose = |place: &PlaceFound| match kind {
        Found::Lost => volume(place).map_or_else(String::new, |volume| format!(" ({volume})")),
        Found::Repaired | Found::Checksums => String::new(),
    };
    let others: Vec<String> =
        others.iter().map(|place| format!("byte {}{}", place.byte, whose(place))).collect();
    format!("{first}; {others_count} more since, at {}{rest}", others.join(", "))
}

fn page(found: &PageFound, kind: Found) -> String {
    let PageFound { place, fault, is_overwritten } = found;
    let (what, byte) = (if kind == Found::Checksums { "copy of checksums" } else { "page" }, place.byte);
    let whose = volume(place).map_or_else(String::new, |volume| format!(", {volume}"));
    let fault = match fault {
        PageFault::Checksum => "fails its checksum",
        PageFault::Unreadable => "cannot be read",
        PageFault::CopiesDiffer => "differs from its copies",
        PageFault::ParityDiffers => "does not match its data",
        PageFault::Damaged => "is damaged",
    };
    let became = match (kind, is_overwritten) {
        (Found::Lost, _) => "no copy is right",
        (Found::Checksums, _) => "it was written again from another copy",
        (Found::Repaired, true) => "it was about to be overwritten",
        (Found::Repaired, false) => "it was repaired",
    };
    format!("the {what} at byte {byte}{whose} {fault}; {became}")
}

fn volume(place: &PlaceFound) -> Option<String> {
    let (name, sector, sectors) = place.volume.as_ref()?;
    Some(format!("volume {name} sectors {sector}+{sectors}"))
}

/// What befalls a pool.
fn of_pool(kind: &EventKind) -> Option<(String, String)> {
    match kind {
        EventKind::RebuildStarted => fact("a rebuild has begun"),
        EventKind::MoveStarted { purpose } => fact(match purpose {
            RebuildPurpose::Emptying => "the contents of drives that leave are being copied",
            RebuildPurpose::CopyBack => "columns move back to the drives that they belong to",
            RebuildPurpose::Rebuild | RebuildPurpose::Growth | RebuildPurpose::Spares => {
                "columns move to drives that have more room"
            }
        }),
        EventKind::RebuildFinished => fact("every set is whole, and no rebuild is running"),
        EventKind::RebuildLacksSpace { columns, has_ended, add_to } => {
            let columns = counted(*columns, "column");
            let what = match has_ended {
                true => format!("the rebuild has ended, and no drive has a spare chunklet for {columns}"),
                false => format!("{columns} cannot be rebuilt: no drive has a spare chunklet"),
            };
            both(what, format!("add a drive ({})", add_command(add_to)))
        }
        EventKind::ScrubFinished { pages } => {
            fact(format!("the scrub has verified {} and found no error", counted(*pages, "page")))
        }
        EventKind::ScrubFoundErrors { pages, repaired, lost, extents_skipped } => {
            let skipped = match extents_skipped {
                0 => String::new(),
                count => format!(", {} not verified", counted(*count, "extent")),
            };
            let remedy = match (lost, extents_skipped) {
                (0, 0) => "scrub again later (tier0 scrub); replace a drive that has more errors then",
                (0, _) => "see \"tier0 status\" for what prevents it, then scrub again (tier0 scrub)",
                _ => "restore what the events name from a backup",
            };
            let pages = counted(*pages, "page");
            both(format!("the scrub has verified {pages}: {repaired} repaired, {lost} lost{skipped}"), remedy)
        }
        EventKind::ScrubStopped => fact("the scrub was stopped"),
        EventKind::ScrubFailed => {
            both("the scrub ended early: a shard does not answer", "start it again (tier0 scrub)")
        }
        EventKind::PoolPaused { drives } => {
            let drives = named("drive", drives);
            let remedy = format!("bring {drives} back, and the pool continues by itself");
            both(format!("paused: it waits for {drives}"), remedy)
        }
        EventKind::PoolResumed { after_s } => {
            fact(format!("goes on after a pause of {after_s} s, with all requests that waited"))
        }
        EventKind::HostsRefused { wait, after_s } => {
            let (state, remedy) = match wait {
                WaitFor::Space => ("without space under its drives", "add space under its drives"),
                WaitFor::Drives => ("paused", "bring its drives back"),
            };
            both(
                format!("{state} for {after_s} s: hosts get errors instead of waiting longer"),
                format!("{remedy}, and the pool continues by itself"),
            )
        }
        EventKind::PoolGrown { sets, bytes } => {
            fact(format!("it has grown by {} and {bytes}", counted(*sets, "set")))
        }
        EventKind::VolumeMigrated { volume, group } => {
            fact(format!("volume {volume:?} has moved to group {group:?}"))
        }
        EventKind::GroupRemoved { group } => both(
            format!("group {group:?} has left it"),
            "remove the group's drives (tier0 drive remove), and the group from the array file (tier0 config)",
        ),
        EventKind::GroupCannotLeave { group, held } => Some(cannot_leave(group, held)),
        EventKind::GrowthStuck => both(
            "it cannot grow now: no column can move",
            "look for drives that are out of service, then grow it again (tier0 pool grow)",
        ),
        EventKind::GrowthFailed { error } => {
            both(format!("it cannot grow: {error}"), "grow it again (tier0 pool grow)")
        }
        EventKind::Space { level, group } => {
            let (what, remedy) = space(level, &what_fills(group.as_ref()));
            both(what, remedy)
        }
        EventKind::SpaceAvailable { group } => {
            let whose = group.as_ref().map(|name| format!(" in group {name:?}")).unwrap_or_default();
            fact(format!("there is space for new data again{whose}"))
        }
        EventKind::FlashCacheIncomplete { drives } => both(
            format!(
                "its flash cache lacks {}, which {} failed",
                named("drive", drives),
                one_or(drives.len(), "has", "have")
            ),
            format!(
                "bring back what answers (tier0 drive rejoin), or replace it ({}), and it gets its part of the cache again",
                replace_command(drives.first().map_or("DRIVE", String::as_str))
            ),
        ),
        EventKind::FlashCacheDiffers { error, is_in_file } => both(
            format!("its flash cache differs from the requested one: {error}"),
            if *is_in_file { "or correct the array file" } else { "" },
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tier0_units::ByteCount;

    use super::*;
    use crate::event::{AddTo, FileMoved, GroupHeld, SpaceLevel, WayBack};
    use crate::{DriveClass, EventId, LostRange};

    fn found(byte: u64) -> PagesFound {
        let place = PlaceFound { byte, volume: Some(("db".into(), 8, 8)) };
        let first = PageFound { place, fault: PageFault::Unreadable, is_overwritten: false };
        PagesFound { first, others: Vec::new(), others_count: 0 }
    }

    fn samples() -> Vec<EventKind> {
        let (text, error, path) =
            (|| "text".to_owned(), || "an error".to_owned(), || PathBuf::from("/d0.img"));
        let moved = FileMoved { from: path(), to: None, is_replaced: true };
        let space = |level| EventKind::Space { level, group: None };
        let (one, few) = (ByteCount(1), ByteCount(10));
        vec![
            EventKind::ServerStarted { version: text(), process: 1 },
            EventKind::ServerEnded { error: None },
            EventKind::ServerKilled { last_event: text() },
            EventKind::StartWarning { text: text() },
            EventKind::ConnectionsCrowded { text: text() },
            EventKind::SocketLost { text: text() },
            EventKind::SocketRestored { text: text() },
            EventKind::EventsMissed { count: 3 },
            EventKind::ProcessStalled { ms: 5 },
            EventKind::RequestDone { text: text() },
            EventKind::RequestFailed { text: text() },
            EventKind::WitnessUnusable { fault: text() },
            EventKind::WitnessUsable,
            EventKind::ArrayRecovered { volumes_harmed: vec![text()] },
            EventKind::DriveSuspect { error: error() },
            EventKind::DriveAnswers,
            EventKind::DriveAwaited { error: error(), reason: text() },
            EventKind::DriveFailed {
                cause: FailureCause::Error(error()),
                is_removed: false,
                group_left: false,
            },
            EventKind::DriveReturned { pool: text() },
            EventKind::DriveLeft { pool: text() },
            EventKind::DriveFull { on_device: true },
            EventKind::DriveHasSpace,
            EventKind::DriveClassDiffers {
                class: DriveClass::Flash,
                other: text(),
                other_class: DriveClass::Disk,
            },
            EventKind::DriveFileDeleted { path: path(), is_replaced: true },
            EventKind::DriveCutShort { path: path() },
            EventKind::DriveSizeRestored,
            EventKind::DriveFrontOverwritten { error: None },
            EventKind::DriveFileMoved(moved),
            EventKind::DriveFileBack { path: path() },
            EventKind::DriveMayBeCopy { original: path(), moved_at: text() },
            EventKind::SuperblockNotErased { error: error() },
            EventKind::PagesRepaired(found(1)),
            EventKind::PagesLost(found(1)),
            EventKind::ChecksumsRepaired(found(1)),
            EventKind::ChecksumsLost { volume: text(), sector: 0, sectors: 8 },
            EventKind::ColumnsMisplaced {
                columns: 1,
                way_back: WayBack::NeedsRoom { add_to: AddTo::Pool, failed: Some(text()) },
            },
            EventKind::ColumnsReturned,
            EventKind::RebuildStarted,
            EventKind::MoveStarted { purpose: RebuildPurpose::CopyBack },
            EventKind::RebuildFinished,
            EventKind::RebuildLacksSpace { columns: 2, has_ended: false, add_to: AddTo::AnyGroup },
            EventKind::ScrubFinished { pages: 1 },
            EventKind::ScrubFoundErrors { pages: 1, repaired: 1, lost: 0, extents_skipped: 1 },
            EventKind::ScrubStopped,
            EventKind::ScrubFailed,
            EventKind::PoolPaused { drives: vec![text()] },
            EventKind::PoolResumed { after_s: 1 },
            EventKind::HostsRefused { wait: WaitFor::Space, after_s: 1 },
            EventKind::PoolGrown { sets: 1, bytes: few },
            EventKind::VolumeMigrated { volume: text(), group: text() },
            EventKind::GroupRemoved { group: text() },
            EventKind::GroupCannotLeave {
                group: text(),
                held: GroupHeld::Lost {
                    ranges: vec![LostRange { volume: text(), from: 0, to: 4096, pages: 1 }],
                    others: 2,
                },
            },
            EventKind::GrowthStuck,
            EventKind::GrowthFailed { error: error() },
            space(SpaceLevel::Filling { percent: 70, taken: one, usable: few }),
            space(SpaceLevel::AtReserve { free: one, reserve: few }),
            space(SpaceLevel::Full),
            EventKind::SpaceAvailable { group: Some(text()) },
            EventKind::FlashCacheIncomplete { drives: vec![text()] },
            EventKind::FlashCacheDiffers { error: error(), is_in_file: true },
            EventKind::FlashCacheOff { error: None },
        ]
    }

    /// A kind without a sentence, or an id without a kind, cannot be overlooked.
    #[test]
    fn every_event_has_a_fact_and_no_full_stop() {
        let samples = samples();
        let ids: Vec<EventId> = samples.iter().map(EventKind::id).collect();
        assert_eq!(ids, EventId::ALL, "one sample for each id, in their order");
        for kind in samples {
            let (what, remedy) = event(&kind, &Subject::drive("d0"));
            assert!(
                !what.is_empty() && !what.ends_with('.') && !remedy.ends_with('.'),
                "{kind:?}: {what}; {remedy}"
            );
        }
    }

    /// A scrub that found many pages drove all other events out of the last ten that status shows.
    #[test]
    fn an_event_counts_the_pages_that_it_does_not_name() {
        let mut found = found(1);
        let told = |found: &PagesFound| pages(found, Found::Repaired);
        let first = "the page at byte 1, volume db sectors 8+8 cannot be read; it was repaired";
        assert_eq!(told(&found), first);
        let place = |byte| PlaceFound { byte, volume: Some(("db".into(), 16, 8)) };
        (found.others, found.others_count) = (vec![place(2), place(3)], 2);
        assert_eq!(told(&found), format!("{first}; 2 more since, at byte 2, byte 3"));
        found.others_count = 3;
        assert!(told(&found).ends_with("; 3 more since, at byte 2, byte 3, and more"));
        let lost = pages(&found, Found::Lost);
        assert!(
            lost.ends_with("at byte 2 (volume db sectors 16+8), byte 3 (volume db sectors 16+8), and more"),
            "{lost}"
        );
    }

    #[test]
    fn several_drives_are_told_in_the_plural() {
        let subject = Subject::drives(&["d0".to_owned(), "d1".to_owned()]);
        let (what, _) = event(&EventKind::DriveFrontOverwritten { error: None }, &subject);
        assert!(
            what.starts_with("their metadata were") && super::super::subject(&subject) == "drives d0, d1"
        );
    }

    /// A device that had shrunk was told as a full file system, which it does not have.
    #[test]
    fn a_full_device_is_no_full_file_system() {
        let told = |on_device| event(&EventKind::DriveFull { on_device }, &Subject::drive("d0"));
        let (what, remedy) = told(true);
        assert!(what.contains("thin") && remedy.contains("drive fail"));
        let (what, remedy) = told(false);
        assert!(what.contains("file system") && !remedy.contains("drive fail"));
    }
}
