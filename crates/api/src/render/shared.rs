//! Facts and advice that events and findings share.

use std::path::Path;

use tier0_units::counted;

use crate::LostRange;
use crate::event::{AddTo, FileMoved, GroupHeld, SpaceLevel, WayBack};

/// What a drive is that is not for data.
pub(super) const NOT_FOR_DATA: &str = "for the write log or the flash cache alone";
/// What helps a pool that has no space.
const MORE_SPACE: &str =
    "discard what is not needed, delete clones, or add drives (tier0 drive add, tier0 pool grow)";

/// The command that replaces this drive.
pub fn replace_command(drive: &str) -> String {
    format!("tier0 drive replace ARRAY {drive} --name NEW --path PATH")
}

/// What helps where a drive of a group that has left its pool has failed.
pub fn remove_command(drive: &str) -> String {
    format!("remove it (tier0 drive remove ARRAY {drive}); it can be neither brought back nor replaced")
}

/// The command that adds a drive.
pub fn add_command(to: &AddTo) -> String {
    match to {
        AddTo::Pool => "tier0 drive add".to_owned(),
        AddTo::AnyGroup => "tier0 drive add --group GROUP".to_owned(),
        AddTo::Groups(groups) => format!("tier0 drive add --group {}", groups.join(" or ")),
    }
}

/// What keeps a group that is to leave: the fact and the remedy.
pub(super) fn cannot_leave(group: &str, held: &GroupHeld) -> (String, String) {
    let stay = format!("let it stay (tier0 pool remove-group ARRAY {group} --cancel)");
    let (what, remedy) = match held {
        GroupHeld::Full(full) => (
            format!("group {} has no free space beside the reserve", full.join(" and ")),
            format!(
                "add drives ({}, then tier0 pool grow), lower the reserve (tier0 pool reserve), or {stay}",
                add_command(&AddTo::Groups(full.clone()))
            ),
        ),
        GroupHeld::Lost { ranges, others } => {
            let range =
                |one: &LostRange| format!("volume {}, bytes {} to {}", one.volume, one.from, one.to - 1);
            let mut parts: Vec<String> = ranges.iter().map(range).collect();
            parts.extend((*others > 0).then(|| format!("{} more", counted(*others, "range"))));
            (
                format!("no copy of a part of it is right ({})", parts.join("; ")),
                format!("write these ranges again, discard them or delete the volume, or {stay}"),
            )
        }
    };
    (format!("group {group:?} is to leave and cannot: {what}"), remedy)
}

/// One noun or the other.
pub(super) fn one_or<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// A level of use: the fact about `what` and the remedy.
pub(super) fn space(level: &SpaceLevel, what: &str) -> (String, &'static str) {
    match level {
        SpaceLevel::Full => (
            format!(
                "{what} is full: writes to new space fail, and writes to space that is shared with a clone"
            ),
            MORE_SPACE,
        ),
        SpaceLevel::AtReserve { free, reserve } => (
            format!(
                "{what} has {free} free and keeps a reserve of {reserve}: writes of thin volumes to new space fail"
            ),
            "discard what is not needed, add drives, or lower the reserve (tier0 pool reserve)",
        ),
        SpaceLevel::Filling { percent, taken, usable } => {
            (format!("{what} is {percent} % full ({taken} of {usable})"), MORE_SPACE)
        }
        SpaceLevel::Overcommitted { promised, usable } => {
            (format!("{what} has {usable}, and {promised} are promised to volumes"), "watch how it fills")
        }
    }
}

/// What fills: the pool, or a group of its sets.
pub(super) fn what_fills(group: Option<&String>) -> String {
    group.map_or_else(|| "the pool".to_owned(), |group| format!("group {group:?}"))
}

/// Nothing is free under a drive: the fact, the remedy, and the part of it that a pool can follow that waits for drives.
pub(super) fn full(on_device: bool) -> [&'static str; 3] {
    match on_device {
        true => [
            "no space is left under its thin device",
            "add space under the device, and the drive continues by itself, or take the drive out (tier0 drive fail)",
            "add space under the device",
        ],
        false => [
            "the file system under it is full",
            "free space there, and the drive continues by itself",
            "free space there",
        ],
    }
}

pub(super) fn deleted(path: &Path, is_replaced: bool) -> String {
    let also = match is_replaced {
        true => "; another file has its path, and if that is a copy of the drive, the next start uses it",
        false => "",
    };
    format!("its file {path:?} was deleted, and exists only until this server ends{also}")
}

pub(super) fn remedy_for_deleted(drive: &str, is_replaced: bool) -> String {
    let first = match is_replaced {
        true => "move the other file away, do not stop the server",
        false => "do not stop the server",
    };
    format!(
        "{first}, and replace the drive ({}); if there are several, one after the other",
        replace_command(drive)
    )
}

pub(super) fn cut_short(path: &Path) -> String {
    format!("{path:?} is smaller than it was, so a part of the drive is missing")
}

pub(super) fn remedy_for_cut_short(drive: &str) -> String {
    format!(
        "restore its size if the missing part still exists, and run \"tier0 scrub\", or replace the drive ({})",
        replace_command(drive)
    )
}

pub(super) fn moved(moved: &FileMoved) -> String {
    let FileMoved { from, to, is_replaced } = moved;
    let fact = match to {
        Some(to) => format!("its file was moved from {from:?} to {to:?} while it serves"),
        None => format!("{from:?} does not lead to its file any more"),
    };
    let then = match is_replaced {
        true => "another file is there, and if that is a copy of the drive, the next start uses it",
        false => "the next start may not find it",
    };
    format!("{fact}, and {then}")
}

pub(super) fn remedy_for_moved(moved: &FileMoved) -> &'static str {
    match (moved.is_replaced, &moved.to) {
        (true, Some(_)) => "move the other file away and the file of the drive back, before the server ends",
        (false, Some(_)) => "move it back, or correct its path in the array file",
        (true, None) => {
            "undo the rename, the link or the mount that put the other file there, before the server ends"
        }
        (false, None) => "undo the rename, the link or the mount that hides it",
    }
}

pub(super) fn way_back(way: &WayBack) -> String {
    match way {
        WayBack::Moving => "they move back to drives of data, as \"tier0 status\" shows".to_owned(),
        WayBack::NeedsRoom { add_to, failed } => {
            let replace = failed
                .as_ref()
                .map(|drive| format!(", or replace the failed one ({})", replace_command(drive)));
            let add = add_command(add_to);
            format!(
                "they move to drives of data when one has room: add a drive ({add}){}",
                replace.unwrap_or_default()
            )
        }
    }
}
