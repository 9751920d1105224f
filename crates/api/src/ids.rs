//! The ids of events and of findings: stable names for programs, each with its meaning and what to do.
//!
//! An id never changes its meaning, and an id that is no longer used is never given to something else. The tables in
//! `docs/api/events.md` are made of this file.

use std::fmt;

use serde::Serialize;

/// Defines ids: the name of the variant, the id, its meaning, and what to do.
macro_rules! ids {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $id:literal, $meaning:literal, $action:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub enum $name {
            $(#[doc = $meaning] #[serde(rename = $id)] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The id.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $id,)* }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $($name::$variant => $meaning,)* }
            }

            /// What to do.
            pub const fn action(self) -> &'static str {
                match self { $($name::$variant => $action,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

ids! {
    /// Which event it is.
    EventId {
        ServerStarted = "server-started", "A server of the array started.", "Nothing.";
        ServerEnded = "server-ended", "The server of the array ended. The severity is critical if an error ended it.", "If an error ended it: remove its cause and start the server again.";
        ServerKilled = "server-killed", "The previous server did not end by itself: it was killed, or the machine stopped.", "Nothing for the array. If this was not intended, look for the cause in the log of the system.";
        StartWarning = "start-warning", "The start found something that an administrator should know.", "See the text.";
        ConnectionsCrowded = "connections-crowded", "Clients found no free connection, or connections were closed to make room for others.", "Look for clients that open too many connections, or raise the limits.";
        SocketLost = "socket-lost", "A unix socket of the server was removed or replaced, or cannot be created.", "See the text. If something else is in its place, remove it.";
        SocketRestored = "socket-restored", "A unix socket of the server is in its place again.", "Nothing.";
        EventsMissed = "events-missed", "Events were not written, because the file system of the event file was too slow.", "Check the file system of the event file.";
        ProcessStalled = "process-stalled", "The server process did not run for some time.", "Look for a stopped process, a suspended machine or an overloaded processor.";
        RequestDone = "request-done", "A request of an administrator was carried out.", "Nothing.";
        RequestFailed = "request-failed", "A request of an administrator that had to wait has failed.", "Send the request again.";
        WitnessUnusable = "witness-unusable", "The witness cannot be used.", "See the text.";
        WitnessUsable = "witness-usable", "The witness can be used again.", "Nothing.";
        ArrayRecovered = "array-recovered", "An administrator assembled the pool from incomplete drives and accepted the loss of data.", "Check the volumes that are named, or restore them from a backup.";
        DriveSuspect = "drive-suspect", "Commands of a drive fail or take too long. They are tried again.", "Check its cables, and the log of the system.";
        DriveAnswers = "drive-answers", "A suspect drive answers again.", "Nothing.";
        DriveAwaited = "drive-awaited", "A drive fails, and the pool cannot run without it.", "Bring the drive back.";
        DriveFailed = "drive-failed", "A drive is out of service: it failed, or an administrator took it out. Its contents are rebuilt on other drives if they have space.", "Bring it back with \"tier0 drive rejoin\", or replace it with \"tier0 drive replace\". If its group has left the pool, remove it.";
        DriveReturned = "drive-returned", "A failed drive is back in service.", "Nothing.";
        DriveLeft = "drive-left", "A drive has left its pool.", "Nothing.";
        DriveFull = "drive-full", "The file system or the thin device of a drive has no free space. Writes to the drive wait.", "Free space there.";
        DriveHasSpace = "drive-has-space", "A drive has space again.", "Nothing.";
        DriveClassDiffers = "drive-class-differs", "A drive that joined is of another class than its group, flash or disk.", "If the class is wrong, replace the drive with --class.";
        DriveFileDeleted = "drive-file-deleted", "The file of a drive was deleted while the server has it open.", "Do not stop the server. Replace the drive.";
        DriveCutShort = "drive-cut-short", "A file or device of a drive became smaller.", "Restore its size and scrub the pool, or replace the drive.";
        DriveSizeRestored = "drive-size-restored", "A drive that was cut short has its size again. Data behind the cut may be gone.", "Wait for the scrub, which repairs it.";
        DriveFrontOverwritten = "drive-front-overwritten", "Something else wrote over the metadata of drives that serve.", "Find what wrote to them and stop it. Look at the end of the scrub.";
        DriveFileMoved = "drive-file-moved", "The file of a drive is no longer at its path.", "Move it back, or correct the array file.";
        DriveFileBack = "drive-file-back", "The file of a drive is at its path again.", "Nothing.";
        DriveMayBeCopy = "drive-may-be-copy", "The drive that serves may be a copy of the original, which is elsewhere.", "Stop the server and move the original back, or delete the original.";
        SuperblockNotErased = "superblock-not-erased", "A drive has left its pool, and its superblock could not be erased.", "Delete its file, or overwrite the first and the last MiB of the device.";
        PagesRepaired = "pages-repaired", "Pages on a drive were wrong or unreadable, and were repaired.", "Scrub the pool. Replace a drive on which this goes on.";
        PagesLost = "pages-lost", "Pages on a drive are wrong, and no copy is right.", "Restore the data from a backup. \"tier0 status\" lists it.";
        ChecksumsRepaired = "checksums-repaired", "Copies of checksums on a drive were damaged, and were written again from other copies.", "Scrub the pool. Replace a drive on which this goes on.";
        ChecksumsLost = "checksums-lost", "No copy of the checksums of a part of a volume is right. Reads of it fail until it is written again.", "Restore the data from a backup.";
        ColumnsMisplaced = "columns-misplaced", "A drive that is not for data has columns of sets, because no drive of data had room.", "Add a drive, or replace the failed one.";
        ColumnsReturned = "columns-returned", "A drive that is not for data has no columns of sets any more.", "Nothing.";
        RebuildStarted = "rebuild-started", "A rebuild has begun.", "Nothing.";
        MoveStarted = "move-started", "Columns of sets are being copied to other drives.", "Nothing.";
        RebuildFinished = "rebuild-finished", "The rebuild, or the copying of columns, has ended. Every set is whole.", "Nothing.";
        RebuildLacksSpace = "rebuild-lacks-space", "Columns cannot be rebuilt, because no drive has a free chunklet for them.", "Add a drive.";
        ScrubFinished = "scrub-finished", "A scrub has verified the pool and found no error.", "Nothing.";
        ScrubFoundErrors = "scrub-found-errors", "A scrub has ended and found errors, or could not verify everything.", "If pages are lost, restore them from a backup. Otherwise scrub again later.";
        ScrubStopped = "scrub-stopped", "A scrub was stopped.", "Nothing.";
        ScrubFailed = "scrub-failed", "A scrub has ended early.", "Start it again.";
        PoolPaused = "pool-paused", "The pool waits for drives that it cannot run without.", "Bring the drives back.";
        PoolResumed = "pool-resumed", "The pool goes on after a pause.", "Nothing.";
        HostsRefused = "hosts-refused", "Hosts get errors, because the pool has waited too long for drives or for space.", "Bring the drives back, or free space under them.";
        PoolGrown = "pool-grown", "Sets were added to the pool after columns had moved.", "Nothing.";
        VolumeMigrated = "volume-migrated", "All of a volume lies in the group to which it was migrated.", "Nothing.";
        GroupRemoved = "group-removed", "A group of sets has left the pool, and its drives hold nothing of its data.", "Remove its drives.";
        GroupCannotLeave = "group-cannot-leave", "A group that is to leave has contents that cannot move: the groups of their volumes have no room, or no copy of a page is right.", "Add drives to those groups, write or delete what is lost, or let this one stay.";
        GrowthStuck = "growth-stuck", "The pool cannot grow now, because no column can move.", "Look for drives that are out of service, then grow the pool again.";
        GrowthFailed = "growth-failed", "The pool could not grow.", "Remove the cause, then grow the pool again.";
        SpaceFilling = "space-filling", "The pool, or a group of its sets, has reached a fill level of which the administrator wants to know.", "Add drives, or discard data.";
        SpaceReserved = "space-reserved", "Only the reserve is free. Writes of thin volumes to new space fail.", "Discard data, add drives, or lower the reserve.";
        SpaceFull = "space-full", "Nothing is free. Writes to new space fail.", "Add drives, or discard data.";
        SpaceAvailable = "space-available", "There is space for new data again.", "Nothing.";
        FlashCacheIncomplete = "flash-cache-incomplete", "The flash cache lacks drives that have failed.", "Bring them back, or replace them.";
        FlashCacheDiffers = "flash-cache-differs", "The flash cache is not as it was requested.", "See the text.";
        FlashCacheOff = "flash-cache-off", "The part of the flash cache on a drive is not used. It is created again later.", "Nothing. No data is lost.";
    }
}

ids! {
    /// Which finding of the status it is.
    FindingId {
        SetsFailed = "sets-failed", "Sets lack more drives than their level makes up for.", "Bring drives back.";
        SetsDegraded = "sets-degraded", "Sets lack a drive.", "Wait for the rebuild. If no drive has space, add one.";
        PoolPaused = "pool-paused", "The pool waits for drives that it cannot run without.", "Bring the drives back.";
        LogFailed = "log-failed", "The write log has failed.", "Bring its drives back and restart the server.";
        LogLacksCopies = "log-lacks-copies", "The write log has fewer copies than it should have.", "Wait for the new copy, or add or replace a drive.";
        LogLessRedundant = "log-less-redundant", "The write log survives fewer failures than the sets.", "Create the array with more drives in pool.log_drives.";
        LogMisplaced = "log-misplaced", "The write log is not on the drives that the array file names.", "Bring the drive back, replace it, or correct the array file.";
        DestageFailed = "destage-failed", "Data of the write log cannot be written to the sets.", "Remove the cause that the text names.";
        MetadataFailed = "metadata-failed", "No drive accepts metadata any more.", "Bring drives back and restart the server.";
        PagesLost = "pages-lost", "Pages have no correct copy.", "Bring back a drive that may have one, or restore the data from a backup.";
        PagesLostBefore = "pages-lost-before", "Pages had no correct copy before the last start.", "Scrub the pool to find which are still lost.";
        PagesRepaired = "pages-repaired", "Pages were wrong and were repaired, and no scrub has verified the pool since.", "Scrub the pool.";
        DrivesFailed = "drives-failed", "Drives have failed, and redundancy has been restored on other drives.", "Bring them back, or replace them. If their group has left the pool, remove them.";
        DriveSuspect = "drive-suspect", "Commands of a drive fail or take too long. They are tried again.", "Check its cables, and the log of the system.";
        DriveFull = "drive-full", "The file system or the thin device of a drive has no free space. Writes to the drive wait.", "Free space there.";
        DrivesUnverified = "drives-unverified", "Drives were brought back or overwritten, and no scrub has verified them since.", "Keep the other drives in service until the scrub has ended.";
        DriveCannotLeave = "drive-cannot-leave", "A drive that is to leave has contents for which no other drive has space.", "Add a drive, or keep this one.";
        GroupCannotLeave = "group-cannot-leave", "A group that is to leave has contents that cannot move: the groups of their volumes have no room, or no copy of a page is right.", "Add drives to those groups, write or delete what is lost, or let this one stay.";
        DriveFileDeleted = "drive-file-deleted", "The file of a drive was deleted while the server has it open.", "Do not stop the server. Replace the drive.";
        DriveCutShort = "drive-cut-short", "A file or device of a drive became smaller.", "Restore its size and scrub the pool, or replace the drive.";
        DriveFileMoved = "drive-file-moved", "The file of a drive is no longer at its path.", "Move it back, or correct the array file.";
        ColumnsMisplaced = "columns-misplaced", "Drives that are not for data have columns of sets.", "Add a drive, or replace the failed one.";
        SparesLacking = "spares-lacking", "Fewer chunklets are free for rebuilds than the pool should keep.", "Add a drive.";
        SpaceFilling = "space-filling", "The pool, or a group of its sets, has reached a fill level of which the administrator wants to know.", "Add drives, or discard data.";
        SpaceReserved = "space-reserved", "Only the reserve is free. Writes of thin volumes to new space fail.", "Discard data, add drives, or lower the reserve.";
        SpaceFull = "space-full", "Nothing is free. Writes to new space fail.", "Add drives, or discard data.";
        WitnessUnusable = "witness-unusable", "The witness cannot be used.", "See the text.";
        ServerTrouble = "server-trouble", "The server has a problem that concerns no pool, such as its event file or a socket.", "See the text.";
        StartRefused = "start-refused", "The next start with this array file would be refused. The command adds this finding, not the server.", "See the text.";
        ArrayFileBroken = "array-file-broken", "The array file cannot be read. The command adds this finding, not the server.", "Restore it: \"tier0 config\" prints it while the array is served.";
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use super::*;

    fn table(title: &str, about: &str, rows: impl Iterator<Item = [&'static str; 3]>) -> String {
        let mut text = format!("## {title}\n\n{about}\n\n| id | meaning | what to do |\n|---|---|---|\n");
        for [id, meaning, action] in rows {
            writeln!(text, "| `{id}` | {meaning} | {action} |").expect("a text takes all");
        }
        text
    }

    #[test]
    fn the_tables_in_docs_have_every_id() {
        let events = EventId::ALL.iter().map(|id| [id.name(), id.meaning(), id.action()]);
        let findings = FindingId::ALL.iter().map(|id| [id.name(), id.meaning(), id.action()]);
        let made = format!(
            "# Events and findings\n\n\
             Programs recognise an event or a finding by its id. Ids do not change. Texts may change with every version.\n\n\
             {}\n{}",
            table(
                "Events",
                "`tier0 events --json`, `tier0 status --json` (`events`). `subject` says what the event is about.",
                events
            ),
            table(
                "Findings",
                "`tier0 status --json` (`pools[].findings`), the worst first; those that the server or the command adds come last. `problems` has the same as texts.",
                findings
            )
        );
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api/events.md");
        if std::env::var_os("TIER0_WRITE_SCHEMA").is_some() {
            std::fs::write(&path, &made).expect("the tables are written");
        }
        assert!(
            std::fs::read_to_string(&path).unwrap_or_default() == made,
            "{} lacks what changed; run\nTIER0_WRITE_SCHEMA=1 cargo test -p tier0-api",
            path.display()
        );
    }

    #[test]
    fn ids_are_in_kebab_case_and_no_two_are_the_same() {
        let kinds = [
            EventId::ALL.iter().map(|id| id.name()).collect::<Vec<_>>(),
            FindingId::ALL.iter().map(|id| id.name()).collect(),
        ];
        for mut names in kinds {
            let count = names.len();
            assert!(
                names.iter().all(|name| name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()))
            );
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }
}
