//! The sentences of findings.

use tier0_units::{counted, named};

use super::shared::{
    NOT_FOR_DATA, cannot_leave, cut_short, deleted, full, moved, one_or, remedy_for_cut_short,
    remedy_for_deleted, remedy_for_moved, space, way_back, what_fills,
};
use super::{add_command, remove_command, replace_command};
use crate::Subject;
use crate::finding::{FindingKind, LogCopyWay, LostPagesWay, Repair};

/// The fact and the remedy of a finding about `subject`. A pool that `is_paused` waits for drives: remedies that it could not
/// follow are left out.
pub fn finding(kind: &FindingKind, subject: &Subject, is_paused: bool) -> (String, String) {
    let told = of_sets(kind, is_paused).or_else(|| of_log(kind)).or_else(|| of_content(kind));
    let told = told.or_else(|| of_drives(kind, subject, is_paused)).or_else(|| of_server(kind));
    let (what, remedy) = told.unwrap_or_default();
    let is_of_use = !is_paused || can_be_followed_in_a_pause(kind);
    (what, if is_of_use { remedy } else { String::new() })
}

/// Whether the remedy helps while the pool waits for drives.
fn can_be_followed_in_a_pause(kind: &FindingKind) -> bool {
    !matches!(
        kind,
        FindingKind::LogLacksCopies { .. }
            | FindingKind::PagesRepaired { .. }
            | FindingKind::SparesLacking { .. }
            | FindingKind::Space { .. }
            | FindingKind::DrivesFailed { .. }
            | FindingKind::DriveCannotLeave { .. }
            | FindingKind::GroupCannotLeave { .. }
            | FindingKind::ColumnsMisplaced { .. }
    )
}

fn both(what: impl Into<String>, remedy: impl Into<String>) -> Option<(String, String)> {
    Some((what.into(), remedy.into()))
}

fn of_sets(kind: &FindingKind, is_paused: bool) -> Option<(String, String)> {
    match kind {
        FindingKind::SetsFailed { failed, sets } => both(
            format!("{} more drives than the level makes up for", lacking(*failed, *sets)),
            "bring drives back",
        ),
        FindingKind::SetsDegraded { degraded, sets, repair } => {
            let lack = lacking(*degraded, *sets);
            match repair {
                Repair::Runs(None) => both(format!("{lack} a drive, being rebuilt"), ""),
                Repair::Runs(Some((done, total))) => both(
                    format!("{lack} a drive, being rebuilt, {done} of {} done", counted(*total, "slot")),
                    "",
                ),
                Repair::Waits => both(format!("{lack} a drive, waiting for a rebuild"), ""),
                Repair::LacksSpace { columns, add_to, can_return } => {
                    let bring_back = match can_return {
                        true => ", or bring back a failed one that answers (tier0 drive rejoin)",
                        false => "",
                    };
                    let advice = format!("add a drive ({}){bring_back}", add_command(add_to));
                    both(
                        format!(
                            "{lack} a drive, and no drive has a spare chunklet for {}",
                            counted(*columns, "column")
                        ),
                        if is_paused { String::new() } else { advice },
                    )
                }
            }
        }
        FindingKind::PoolPaused { since_s, drives, why, next } => {
            let them = one_or(drives.len(), "it", "them");
            both(
                format!(
                    "paused for {since_s} s: it waits for {} and cannot run without {them} ({why})",
                    named("drive", drives)
                ),
                format!("bring {them} back; {next}"),
            )
        }
        FindingKind::ColumnsMisplaced { columns, drives, way_back: way } => both(
            format!(
                "{} of sets {} on {}, which {} {NOT_FOR_DATA}",
                counted(*columns, "column"),
                one_or(*columns as usize, "is", "are"),
                named("drive", drives),
                one_or(drives.len(), "is", "are")
            ),
            way_back(way),
        ),
        FindingKind::SparesLacking { group, free, kept, add_to } => {
            let of = group.as_ref().map(|name| format!(" of group {name:?}")).unwrap_or_default();
            let what = format!("spares{of}: {free} of {} are free", counted(*kept, "chunklet"));
            both(what, format!("add a drive ({})", add_command(add_to)))
        }
        FindingKind::Space { level, group } => {
            let (what, remedy) = space(level, &what_fills(group.as_ref()));
            both(what, remedy)
        }
        _ => None,
    }
}

/// "1 of 14 RAID sets lacks", "14 of 14 RAID sets lack".
fn lacking(some: u64, all: u64) -> String {
    format!("{some} of {} lack{}", counted(all, "RAID set"), if some == 1 { "s" } else { "" })
}

fn of_log(kind: &FindingKind) -> Option<(String, String)> {
    let copies = |count: u32| format!("{count} {}", one_or(count as usize, "copy", "copies"));
    match kind {
        FindingKind::LogFailed => {
            both("the write log has failed", "bring its drives back and restart the server")
        }
        FindingKind::LogLacksCopies { copies: has, wanted, way } => both(
            format!("the write log has {has} of {}", copies(*wanted)),
            match way {
                LogCopyWay::HasRoom => "wait for the new copy, or add a drive (tier0 drive add)",
                LogCopyWay::CanReturn => {
                    "no drive without a copy has room for one: bring back or replace the drive that held it (tier0 drive \
                     rejoin, replace), or add one (tier0 drive add)"
                }
                LogCopyWay::NoRoom => {
                    "no drive without a copy has room for one: replace the drive that held it (tier0 drive replace), or add \
                     one (tier0 drive add)"
                }
                LogCopyWay::NoneToReplace => {
                    "no drive without a copy has room for one: add a drive (tier0 drive add)"
                }
            },
        ),
        FindingKind::LogLessRedundant { copies: has, tolerance } => both(
            format!(
                "the write log is less redundant than its pool: {} for a level that makes up for the loss of {}",
                copies(*has),
                counted(u64::from(*tolerance), "drive")
            ),
            "name more drives in pool.log_drives when the array is created",
        ),
        FindingKind::LogMisplaced { on, wanted, absent, are_lost } => both(
            format!(
                "the write log is on {}, and log_drives says {}: it moves there when {} serves and has room for it",
                on.join(", "),
                wanted.join(", "),
                absent.join(" or ")
            ),
            match are_lost {
                true => "bring it back (tier0 drive rejoin), or replace it (tier0 drive replace)",
                false => "if that is not wanted, correct the array file",
            },
        ),
        FindingKind::DestageFailed { error } => {
            both(format!("data of the write log cannot be written to the sets: {error}"), "")
        }
        FindingKind::MetadataFailed => {
            both("no drive accepts metadata any more", "bring drives back and restart the server")
        }
        _ => None,
    }
}

fn of_content(kind: &FindingKind) -> Option<(String, String)> {
    match kind {
        FindingKind::PagesLost { pages, way } => both(
            format!("no copy passes its checksum of {}", counted(*pages, "page")),
            format!("status lists where, {}", lost_pages(way)),
        ),
        FindingKind::PagesLostBefore => both(
            "pages of which no copy is right were found before the last start",
            "run \"tier0 scrub\" to find which are still lost (\"tier0 events\" has those of then)",
        ),
        FindingKind::PagesRepaired { pages } => {
            both(format!("wrong on a drive and repaired: {}", counted(*pages, "page")), "run \"tier0 scrub\"")
        }
        FindingKind::DrivesUnverified { drives, is_under_way } => both(
            format!(
                "{} {} taken back, or overwritten, and not verified yet",
                named("drive", drives),
                one_or(drives.len(), "was", "were")
            ),
            match is_under_way {
                true => "keep the other drives in service until the scrub has ended",
                false => "scrub the pool (tier0 scrub), and keep the other drives in service until then",
            },
        ),
        _ => None,
    }
}

fn lost_pages(way: &LostPagesWay) -> String {
    match way {
        LostPagesWay::BringBack { drives, are_removed } => {
            let keep = match are_removed {
                true => "keep what is being removed (tier0 drive remove --stop), ",
                false => "",
            };
            let (have, them) = (one_or(drives.len(), "has", "have"), one_or(drives.len(), "it", "them"));
            format!(
                "{} {have} failed and may hold what is right: {keep}bring {them} back (tier0 drive rejoin), and restore from a \
                 backup what is wrong then",
                named("drive", drives)
            )
        }
        LostPagesWay::WaitForReturned { drives } => {
            let (were, they_are) =
                (one_or(drives.len(), "was", "were"), one_or(drives.len(), "it is", "they are"));
            format!(
                "{} {were} brought back and may hold what is right: wait until {they_are} rebuilt (tier0 status), then scrub, \
                 and restore from a backup what is wrong then",
                named("drive", drives)
            )
        }
        LostPagesWay::WaitForRepair => {
            "wait for the end of the rebuild and the scrub (tier0 status), then restore from a backup what is still wrong".to_owned()
        }
        LostPagesWay::Restore => "restore them from a backup".to_owned(),
    }
}

fn of_drives(kind: &FindingKind, subject: &Subject, is_paused: bool) -> Option<(String, String)> {
    let name = match subject {
        Subject::Drive { name } => name,
        _ => "DRIVE",
    };
    match kind {
        FindingKind::DrivesFailed { drives, group_left: true, .. } => both(
            format!(
                "{} {} failed, and the group has left the pool, so nothing is lacking",
                named("drive", drives),
                one_or(drives.len(), "has", "have")
            ),
            remove_command(drives.first().map_or("DRIVE", String::as_str)),
        ),
        FindingKind::DrivesFailed { drives, can_return, hold_data, .. } => {
            let count = drives.len();
            let (have, it, answers) = (
                one_or(count, "has", "have"),
                one_or(count, "it", "them"),
                one_or(count, "it answers", "they answer"),
            );
            let purpose = match hold_data {
                true => "to have spares again",
                false => "and the write log or the flash cache goes back there",
            };
            let replace =
                format!("replace {it} ({})", replace_command(drives.first().map_or("DRIVE", String::as_str)));
            let advice = match can_return {
                true => format!("bring {it} back if {answers} (tier0 drive rejoin), or {replace}"),
                false => replace,
            };
            both(
                format!("{} {have} failed, and everything is redundant again", named("drive", drives)),
                format!("{advice}, {purpose}"),
            )
        }
        FindingKind::DriveSuspect { error } => both(
            format!("drive {name} is suspect ({error}); its commands are tried again"),
            "check its cables and the log of the system",
        ),
        FindingKind::DriveFull { on_device } => {
            let [what, remedy, remedy_paused] = full(*on_device);
            both(
                format!(
                    "drive {name}: {what}, so writes to it wait and hosts get \"no space\" when the write log is full"
                ),
                if is_paused { remedy_paused } else { remedy },
            )
        }
        FindingKind::DriveCannotLeave { lacks, add_to } => both(
            format!("drive {name} is to leave and cannot: {lacks}"),
            format!("add a drive ({}), or keep it (tier0 drive remove --stop)", add_command(add_to)),
        ),
        FindingKind::GroupCannotLeave { group, held } => Some(cannot_leave(group, held)),
        FindingKind::DriveFileDeleted { path, is_replaced } => both(
            format!("drive {name}: {}", deleted(path, *is_replaced)),
            remedy_for_deleted(name, *is_replaced),
        ),
        FindingKind::DriveCutShort { path } => {
            both(format!("drive {name}: {}", cut_short(path)), remedy_for_cut_short(name))
        }
        FindingKind::DriveFileMoved(file) => {
            both(format!("drive {name}: {}", moved(file)), remedy_for_moved(file))
        }
        _ => None,
    }
}

fn of_server(kind: &FindingKind) -> Option<(String, String)> {
    match kind {
        FindingKind::WitnessUnusable { fault } => both(fault, ""),
        FindingKind::ServerTrouble { text } | FindingKind::StartRefused { text } => both(text, ""),
        FindingKind::ArrayFileBroken { fault } => {
            both(fault, "the next start needs it: while the array is served, \"tier0 config\" prints it")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tier0_units::ByteCount;

    use super::*;
    use crate::FindingId;
    use crate::event::{AddTo, FileMoved, GroupHeld, SpaceLevel, WayBack};

    fn text() -> String {
        "text".to_owned()
    }

    fn misplaced(absent: &str, are_lost: bool) -> FindingKind {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        FindingKind::LogMisplaced {
            on: names(&["d0", "d2"]),
            wanted: names(&["d0", absent]),
            absent: names(&[absent]),
            are_lost,
        }
    }

    fn samples() -> Vec<FindingKind> {
        let (drives, path) = (|| vec![text()], || PathBuf::from("/d0.img"));
        let space = |level| FindingKind::Space { level, group: None };
        let (one, few) = (ByteCount(1), ByteCount(10));
        vec![
            FindingKind::SetsFailed { failed: 1, sets: 2 },
            FindingKind::SetsDegraded {
                degraded: 1,
                sets: 2,
                repair: Repair::LacksSpace { columns: 1, add_to: AddTo::Pool, can_return: true },
            },
            FindingKind::PoolPaused { since_s: 1, drives: drives(), why: text(), next: text() },
            FindingKind::LogFailed,
            FindingKind::LogLacksCopies { copies: 1, wanted: 2, way: LogCopyWay::CanReturn },
            FindingKind::LogLessRedundant { copies: 1, tolerance: 1 },
            misplaced("d1", true),
            FindingKind::DestageFailed { error: text() },
            FindingKind::MetadataFailed,
            FindingKind::PagesLost { pages: 5, way: LostPagesWay::Restore },
            FindingKind::PagesLostBefore,
            FindingKind::PagesRepaired { pages: 1 },
            FindingKind::DrivesFailed {
                drives: drives(),
                can_return: true,
                hold_data: true,
                group_left: false,
            },
            FindingKind::DriveSuspect { error: text() },
            FindingKind::DriveFull { on_device: false },
            FindingKind::DrivesUnverified { drives: drives(), is_under_way: true },
            FindingKind::DriveCannotLeave { lacks: text(), add_to: AddTo::Groups(drives()) },
            FindingKind::GroupCannotLeave { group: text(), held: GroupHeld::Full(drives()) },
            FindingKind::DriveFileDeleted { path: path(), is_replaced: false },
            FindingKind::DriveCutShort { path: path() },
            FindingKind::DriveFileMoved(FileMoved { from: path(), to: None, is_replaced: false }),
            FindingKind::ColumnsMisplaced { columns: 1, drives: drives(), way_back: WayBack::Moving },
            FindingKind::SparesLacking { group: None, free: 0, kept: 1, add_to: AddTo::AnyGroup },
            space(SpaceLevel::Filling { percent: 70, taken: one, usable: few }),
            space(SpaceLevel::AtReserve { free: one, reserve: few }),
            space(SpaceLevel::Full),
            FindingKind::WitnessUnusable { fault: text() },
            FindingKind::ServerTrouble { text: text() },
            FindingKind::StartRefused { text: text() },
            FindingKind::ArrayFileBroken { fault: text() },
        ]
    }

    #[test]
    fn every_finding_has_a_fact_and_no_full_stop() {
        let samples = samples();
        let ids: Vec<FindingId> = samples.iter().map(FindingKind::id).collect();
        assert_eq!(ids, FindingId::ALL, "one sample for each id, in their order");
        for kind in samples {
            let (what, remedy) = finding(&kind, &Subject::drive("d0"), false);
            assert!(
                !what.is_empty() && !what.ends_with('.') && !remedy.ends_with('.'),
                "{kind:?}: {what}; {remedy}"
            );
        }
    }

    /// A pool that waited for a drive was to be scrubbed, or to get drives, neither of which it could do.
    #[test]
    fn a_paused_pool_gets_no_advice_that_it_cannot_follow() {
        let told = |kind: &FindingKind, is_paused| finding(kind, &Subject::pool("p"), is_paused);
        let repaired = FindingKind::PagesRepaired { pages: 1 };
        let full = FindingKind::Space { level: SpaceLevel::Full, group: None };
        for kind in [repaired, full] {
            let ((what, remedy), (same, none)) = (told(&kind, false), told(&kind, true));
            assert!(what == same && !remedy.is_empty() && none.is_empty(), "{what}; {remedy}");
        }
    }

    #[test]
    fn a_log_that_lies_elsewhere_is_told() {
        let (what, remedy) = finding(&misplaced("d1", true), &Subject::pool("p"), false);
        assert!(
            what.contains("is on d0, d2, and log_drives says d0, d1") && what.contains("when d1 serves"),
            "{what}"
        );
        assert!(
            remedy.contains("drive rejoin") && !remedy.contains("correct"),
            "the file is right: {remedy}"
        );
        let (_, remedy) = finding(&misplaced("d3", false), &Subject::pool("p"), false);
        assert!(remedy.contains("correct the array file"), "{remedy}");
    }
}
